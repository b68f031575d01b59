"""Which input columns a model's ranking rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.inspection import permutation_importance
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from probgap._core.errors import InvalidInputError
from probgap._core.folds import smaller_group
from probgap._core.pipelines import (
    chance_positive,
    check_rows,
    classifier_of,
    input_columns,
    refit,
    sample_rows,
    samples_of,
    take_rows,
)
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Mask, Vector

SCORED_BY = "ROC AUC of held-out labelled rows against unlabelled ones"
_HELD_OUT = 0.4
_FEWEST_LABELLED = 5
_N_GROUPS = 8


@dataclass(frozen=True, slots=True)
class ColumnImportance:
    """How much worse held-out rows are ranked without a column, the greatest first.

    Attributes
    ----------
    columns : list
        Names of the columns, or their numbers where they have none.
    importance : ndarray of shape (n_columns,)
        Mean fall of the score when the column is shuffled.
    spread : ndarray of shape (n_columns,)
        Standard deviation of that over shuffles.
    score : float
        The score with all columns in place.
    scored_by : str
        What the score is.
    n_left_out : int
        How many columns were not tried: those least tied to the score, of very many.
    n_rows : int
        How many held-out rows were ranked.
    """

    columns: list[Any]
    importance: Vector
    spread: Vector
    score: float
    scored_by: str
    n_left_out: int
    n_rows: int


def column_importance(
    model: Any,
    X: Any,
    labelled: ArrayLike,
    *,
    n_repeats: int = 5,
    max_columns: int = 100,
    max_rows: int = 5000,
    random_state: RandomStateLike = None,
) -> ColumnImportance:
    """Shuffle input columns of held-out rows, and see how much worse they are ranked.

    A copy of the model's gap estimator, from whose score the ranking is read, is fitted
    on 60% of the rows. On the others each column of X, not of what a pipeline makes of
    it, is shuffled (:func:`sklearn.inspection.permutation_importance`). The score is
    what positive and unlabelled data allow: the chance that a labelled row is ranked
    above an unlabelled one. It has its ceiling below 1, as hidden positives are rightly
    ranked high. Columns that say the same stand in for each other, and each seems to
    matter less than it does.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        Rows, as the model takes them.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    n_repeats : int, default=5
        How often each column is shuffled.
    max_columns : int, default=100
        Of more columns, those are tried that are tied most to the model's score, each
        by itself.
    max_rows : int, default=5000
        Of more rows, so many are drawn, with the share of labelled ones that there is.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the split, the fit and the shuffles.

    Returns
    -------
    ColumnImportance
        Columns, the most important first, with mean and spread.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap import PGPUClassifier
    >>> from probgap.inspection import column_importance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> s = (X[:, 2] > 0) & (rng.random(300) < 0.7)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> column_importance(model, X, s, random_state=0).columns[0]
    2
    """
    mask = check_rows(X, labelled)
    if smaller_group(mask) < _FEWEST_LABELLED:
        msg = (
            f"labelled must mark at least {_FEWEST_LABELLED} rows and leave as many, to "
            f"hold some out. Got {int(mask.sum())} of {mask.size}."
        )
        raise InvalidInputError(msg)
    rng = as_generator(random_state)
    rows = sample_rows(mask, max_rows, rng)
    how = {
        "test_size": _HELD_OUT,
        "stratify": mask[rows],
        "random_state": draw_seed(rng),
    }
    train, test = train_test_split(rows, **how)
    seen = samples_of(model, take_rows(X, train))
    copy = refit(classifier_of(model).gap_estimator_, seen, mask[train], draw_seed(rng))
    unseen, known = as_table(take_rows(X, test)), mask[test]
    chance = chance_positive(copy, samples_of(model, unseen))
    columns, named = input_columns(model, unseen), hasattr(unseen, "columns")
    tried = _most_tied(unseen, columns, chance, max_columns)
    at = tried if named else (slice(None), tried)

    def score(_: Any, part: Any, labels: Mask) -> float:
        table = unseen.copy()
        table[at] = part
        ranked = chance_positive(copy, samples_of(model, table))
        return float(roc_auc_score(labels, ranked))

    how = {"n_repeats": n_repeats, "random_state": draw_seed(rng)}
    falls = permutation_importance(copy, unseen[at], known, scoring=score, **how)
    order = np.argsort(-falls.importances_mean, kind="stable")
    return ColumnImportance(
        columns=[tried[i] for i in order],
        importance=falls.importances_mean[order],
        spread=falls.importances_std[order],
        score=float(roc_auc_score(known, chance)),
        scored_by=SCORED_BY,
        n_left_out=len(columns) - len(tried),
        n_rows=int(test.size),
    )


def as_table(rows: Any) -> Any:
    """Return rows whose columns can be exchanged: a frame, or a dense array."""
    if hasattr(rows, "toarray"):
        return rows.toarray()
    return rows if hasattr(rows, "shape") else np.asarray(rows)


def _most_tied(X: Any, columns: list[Any], score: Vector, most: int) -> list[Any]:
    """Return the columns whose groups of values differ most in the score."""
    if len(columns) <= most:
        return columns
    values = (X[c].to_numpy() if hasattr(X, "columns") else X[:, c] for c in columns)
    tie = np.array([_tie(column, score) for column in values])
    kept = np.sort(np.argsort(-tie, kind="stable")[:most])
    return [columns[i] for i in kept]


def _tie(values: NDArray[Any], score: Vector) -> float:
    """Return the share of the score's variance that lies between groups of values."""
    if values.dtype.kind in "fiub":
        codes = np.nan_to_num(values.astype(np.float64), nan=np.inf).argsort().argsort()
    else:
        _, codes = np.unique(values.astype(str), return_inverse=True)
    group = codes * _N_GROUPS // (int(codes.max()) + 1)
    size = np.maximum(np.bincount(group, minlength=_N_GROUPS), 1)
    mean = np.bincount(group, weights=score, minlength=_N_GROUPS) / size
    return float(np.sum(size * (mean - score.mean()) ** 2))
