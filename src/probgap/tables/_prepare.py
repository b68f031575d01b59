"""From a table to a matrix: the pipeline in front of a classifier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from probgap._core.errors import InvalidInputError
from probgap.tables._kinds import TOKEN
from probgap.tables._plan import ColumnPlan
from probgap.tables._steps import bend, hold, to_categories, to_documents, to_numbers

_MOST_LEVELS = 24
# A block of more columns than the first is brought down to the second.
_WIDE, _NARROW = 400, 200
_TEXT_WORDS = 2**14
_TEXT_COLUMNS, _ALL_TEXT_COLUMNS = 40, 200


def make_preprocessor(plan: ColumnPlan) -> ColumnTransformer:
    """Make the step between a table and a classifier, not yet fitted.

    It takes DataFrames whose columns may be in any order, with others among them, and
    gives a dense matrix. Every column of the table has about the same say in the
    distance between two rows, which is what a kernel sees: a number has variance one,
    the levels of a category are 0 or 1, and a text is a vector of length one.

    *Numbers* are missing where a cell is empty: the median takes their place, and a
    column of 0 and 1 says where. Each is measured from its median in units of the
    range that holds 90% of the values, then bent (:func:`bend`): as it is in the
    middle, logarithmic far outside. So neither a single huge value nor a long tail
    presses all others together. Then it is standardised, and held between -5 and 5
    (:func:`hold`). *Categories* become one column for each of their 24 commonest
    levels; rare levels (fewer than 10 rows; fewer in tables below 1,000 rows) and
    levels that come up later share one, and missing is a level. *Text* becomes TF-IDF
    weights of its words, hashed, brought down to 40 columns by a truncated singular
    value decomposition and to length one. If numbers or levels would take more than
    400 columns, such a decomposition brings them down to 200.

    Parameters
    ----------
    plan : ColumnPlan
        Made by :func:`plan_columns`.

    Returns
    -------
    ColumnTransformer
        Made of scikit-learn's classes and of functions of this module.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import make_preprocessor, plan_columns
    >>> frame = pd.DataFrame(
    ...     {"age": [31, 45, None, 27], "team": ["a", "b", "a", "b"], "won": [1, 0, 0, 0]}
    ... )
    >>> step = make_preprocessor(plan_columns(frame, label="won"))
    >>> step.fit_transform(frame).shape
    (4, 4)
    """
    numbers, categories = plan.names("number"), plan.names("category")
    texts = plan.names("text")
    blocks: list[tuple[str, Any, list[str]]] = []
    if numbers:
        blocks.append(("numbers", _numbers(len(numbers)), list(numbers)))
    if categories:
        levels = sum(
            min(column.n_distinct, _MOST_LEVELS)
            for column in plan.columns
            if column.use == "category"
        )
        step = _categories(plan.min_frequency, levels)
        blocks.append(("categories", step, list(categories)))
    width = max(2, min(_TEXT_COLUMNS, _ALL_TEXT_COLUMNS // max(1, len(texts))))
    for at, text in enumerate(texts, start=1):
        blocks.append((f"text_{at}", _text(width), [text]))
    return ColumnTransformer(blocks, sparse_threshold=0.0)


def missing_columns(model: Any, columns: Iterable[str]) -> tuple[str, ...]:
    """Name the columns that a model needs and a table lacks.

    Parameters
    ----------
    model : ColumnPlan, ColumnTransformer or Pipeline
        What needs columns; of a pipeline, its first step.
    columns : iterable of str
        The columns of the table.

    Returns
    -------
    tuple of str
        Those that are not there, in the order in which the model names them.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import missing_columns, plan_columns
    >>> frame = pd.DataFrame({"age": [31, 45, 27], "won": [1, 0, 0]})
    >>> missing_columns(plan_columns(frame, label="won"), ["Age", "won"])
    ('age',)
    """
    have = set(columns)
    return tuple(name for name in needed_columns(model) if name not in have)


def needed_columns(model: Any) -> tuple[str, ...]:
    """Name the columns that a model needs.

    Parameters
    ----------
    model : ColumnPlan, ColumnTransformer or Pipeline
        What needs columns; of a pipeline, its first step.

    Returns
    -------
    tuple of str
        Their names.

    Examples
    --------
    >>> import pandas as pd
    >>> from probgap.tables import make_preprocessor, needed_columns, plan_columns
    >>> frame = pd.DataFrame({"age": [31, 45, 27], "won": [1, 0, 0]})
    >>> needed_columns(make_preprocessor(plan_columns(frame, label="won")))
    ('age',)
    """
    if isinstance(model, ColumnPlan):
        return model.inputs
    while isinstance(model, Pipeline):
        model = model.steps[0][1]
    if not isinstance(model, ColumnTransformer):
        msg = (
            "model must be a plan of columns, a ColumnTransformer or a pipeline that "
            f"begins with one. Got {type(model).__name__}."
        )
        raise InvalidInputError(msg)
    return tuple(name for _, _, names in model.transformers for name in names)


def _numbers(n_columns: int) -> Pipeline:
    values = [
        ("impute", SimpleImputer(strategy="median", keep_empty_features=True)),
        ("range", RobustScaler(quantile_range=(5.0, 95.0))),
        ("bend", FunctionTransformer(bend, feature_names_out="one-to-one")),
        ("scale", StandardScaler()),
        ("hold", FunctionTransformer(hold, feature_names_out="one-to-one")),
    ]
    both = FeatureUnion(
        [
            ("value", Pipeline(values)),
            ("missing", MissingIndicator(error_on_new=False)),
        ]
    )
    read = FunctionTransformer(to_numbers, feature_names_out="one-to-one")
    return Pipeline([("read", read), ("numbers", both), *_narrow(n_columns)])


def _categories(min_frequency: int, n_levels: int) -> Pipeline:
    read = FunctionTransformer(to_categories, feature_names_out="one-to-one")
    encode = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=min_frequency,
        max_categories=_MOST_LEVELS,
    )
    return Pipeline([("read", read), ("levels", encode), *_narrow(n_levels)])


def _text(width: int) -> Pipeline:
    words = HashingVectorizer(
        n_features=_TEXT_WORDS,
        strip_accents="unicode",
        token_pattern=TOKEN,
        alternate_sign=False,
        norm=None,
    )
    return Pipeline(
        [
            ("read", FunctionTransformer(to_documents)),
            ("words", words),
            ("weights", TfidfTransformer(sublinear_tf=True)),
            ("topics", TruncatedSVD(width, random_state=0)),
            ("length", Normalizer()),
        ]
    )


def _narrow(n_columns: int) -> list[tuple[str, Any]]:
    if n_columns <= _WIDE:
        return []
    return [("narrow", TruncatedSVD(_NARROW, random_state=0))]
