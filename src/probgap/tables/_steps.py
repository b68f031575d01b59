"""From a table to a matrix: the pipeline in front of a classifier, and its steps.

Files of models may name the functions in ``IN_MODEL_FILES``. Each computes from its
arguments alone.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
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

from probgap._core.types import Array, Vector
from probgap.tables._cells import (
    LARGEST,
    Frame,
    Series,
    pc,
    pd,
    refuse_cell,
    to_cells,
    to_days,
    to_floats,
    to_levels,
    to_text,
)
from probgap.tables._kinds import TOKEN
from probgap.tables._plan import ColumnPlan

IN_MODEL_FILES = (
    "bend",
    "hold",
    "name_dates",
    "to_categories",
    "to_dates",
    "to_documents",
    "to_numbers",
)
_MOST_LEVELS = 24
# A block of more columns than the first is brought down to the second.
_WIDE, _NARROW = 400, 200
_TEXT_WORDS = 2**14
_TEXT_COLUMNS, _ALL_TEXT_COLUMNS = 40, 200


def make_preprocessor(plan: ColumnPlan) -> ColumnTransformer:
    """Return the step between a table and a classifier, not yet fitted.

    It takes DataFrames whose columns may be in any order, with others among them, and
    returns a dense matrix. Every column of the table weighs about the same in the distance
    between two rows, which is what a kernel sees.

    *Numbers* are imputed by the median, with a column of 0 and 1 that says where; measured
    from the median in units of the range that holds 90% of the values; transformed by an
    inverse hyperbolic sine, so that neither a huge value nor a long tail presses all others
    together; standardised, and clipped to [-5, 5]. *Dates* become the year, the month,
    the weekday and a count of days, each prepared as a number, with variance one together.
    *Categories* become one column of 0 and 1 for each of their 24 commonest levels; rare
    levels (fewer than 10 rows; fewer in tables below 1,000 rows) and levels that come up
    later share one, and missing is a level. *Text* becomes TF-IDF weights of its words,
    hashed, brought down to 40 columns by a truncated singular value decomposition and to
    length one. If numbers or levels would take more than 400 columns, such a decomposition
    brings them down to 200.

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
    numbers, dates, categories, texts = (
        list(plan.names(use)) for use in ("number", "date", "category", "text")
    )
    blocks: list[tuple[str, Any, list[str]]] = []
    if numbers:
        read = FunctionTransformer(to_numbers, feature_names_out="one-to-one")
        blocks.append(("numbers", _numbers(read, len(numbers)), numbers))
    if dates:
        order = [column.name for column in plan.columns if column.day_first]
        read = FunctionTransformer(
            to_dates, kw_args={"day_first": order}, feature_names_out=name_dates
        )
        blocks.append(("dates", _numbers(read, 4 * len(dates)), dates))
    if categories:
        distinct = [c.n_distinct for c in plan.columns if c.use == "category"]
        n_levels = sum(min(n, _MOST_LEVELS) for n in distinct)
        step = _categories(plan.min_frequency, n_levels)
        blocks.append(("categories", step, categories))
    width = max(2, min(_TEXT_COLUMNS, _ALL_TEXT_COLUMNS // max(1, len(texts))))
    for at, text in enumerate(texts, start=1):
        blocks.append((f"text_{at}", _text(width), [text]))
    # Together, the four numbers of a date weigh as much as one column.
    weights = {"dates": 0.5} if dates else None
    return ColumnTransformer(blocks, sparse_threshold=0.0, transformer_weights=weights)


def _numbers(read: FunctionTransformer, n_columns: int) -> Pipeline:
    values = [
        ("impute", SimpleImputer(strategy="median", keep_empty_features=True)),
        ("range", RobustScaler(quantile_range=(5.0, 95.0))),
        ("bend", FunctionTransformer(bend, feature_names_out="one-to-one")),
        ("scale", StandardScaler()),
        ("hold", FunctionTransformer(hold, feature_names_out="one-to-one")),
    ]
    missing = MissingIndicator(error_on_new=False)
    both = FeatureUnion([("value", Pipeline(values)), ("missing", missing)])
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
    steps = [
        ("read", FunctionTransformer(to_documents)),
        ("words", words),
        ("weights", TfidfTransformer(sublinear_tf=True)),
        ("topics", TruncatedSVD(width, random_state=0)),
        ("length", Normalizer()),
    ]
    return Pipeline(steps)


def _narrow(n_columns: int) -> list[tuple[str, Any]]:
    narrow = ("narrow", TruncatedSVD(_NARROW, random_state=0))
    return [narrow] if n_columns > _WIDE else []


def read_inputs(frame: Frame, plan: ColumnPlan) -> Frame:
    """Return the columns that a model learns from, with numbers parsed."""
    names = list(plan.names("number"))
    others = frame[list(plan.names("date", "category", "text"))]
    numbers = pd.DataFrame(to_numbers(frame[names]), frame.index, names)
    return pd.concat([numbers, others], axis=1)


def to_numbers(frame: Frame) -> Array:
    """Return columns as numbers, NaN where a cell is missing; beyond 1e100 as 1e100.

    Numbers may be written as text. Other text and infinite numbers are refused.
    """
    if (frame.dtypes == np.float64).all():
        numbers = np.asfortranarray(frame.to_numpy(dtype=np.float64))
        if not np.isinf(numbers).any():
            return np.clip(numbers, -LARGEST, LARGEST)
    columns = [_to_finite(column) for _, column in frame.items()]
    return np.clip(columns, -LARGEST, LARGEST).T


def _to_finite(column: Series) -> Vector:
    values, bad = to_floats(to_cells(column))
    wrong = bad | np.isinf(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        refuse_cell(column, row, "a number" if bad[row] else "a finite number")
    return values


def to_categories(frame: Frame) -> NDArray[np.object_]:
    """Return columns as names of levels, "(missing)" where a cell is missing."""
    levels = [to_levels(to_cells(column)) for _, column in frame.items()]
    filled = [pc.fill_null(each, "(missing)").to_pylist() for each in levels]
    return np.array(filled, dtype=object).T


def to_documents(column: Frame) -> list[str]:
    """Return a column, or a frame of one, as documents, empty where a cell is missing."""
    series = column.iloc[:, 0] if hasattr(column, "columns") else column
    return pc.fill_null(to_text(to_cells(series)), "").to_pylist()


def to_dates(frame: Frame, day_first: Collection[str] = ()) -> Array:
    """Return year, month from 1, weekday from 0 for Monday, and days since 1970.

    They stand side by side for each column of dates, NaN where a cell is missing. In the
    columns of ``day_first``, 3/4/2020 is in April. What is no date is refused.
    """
    columns: list[Array] = []
    for name, column in frame.items():
        days, bad = to_days(to_cells(column), day_first=name in day_first)
        if bad.any():
            order = "day/month" if name in day_first else "month/day"
            expected = f"a date as year-month-day or {order}/year"
            refuse_cell(column, int(np.argmax(bad)), expected)
        stamps = np.nan_to_num(days).astype("int64").astype("datetime64[D]")
        months = stamps.astype("datetime64[M]").astype("int64")  # since 1970
        parts = (1970 + months // 12, 1 + months % 12, (days + 3) % 7, days)
        columns += [np.where(np.isnan(days), np.nan, part) for part in parts]
    return np.array(columns).T


def name_dates(_: object, names: Sequence[str]) -> NDArray[np.object_]:
    """Return the feature names of :func:`to_dates`."""
    parts = ("year", "month", "weekday", "days")
    return np.array([f"{name}_{part}" for name in names for part in parts], object)


def bend(X: Array) -> Array:
    """Return asinh(2 x), clipped to [-12, 12]: linear near 0, logarithmic far out."""
    return np.clip(np.arcsinh(2.0 * X), -12.0, 12.0)


def hold(X: Array) -> Array:
    """Return standardised numbers, clipped to [-5, 5]."""
    return np.clip(X, -5.0, 5.0)
