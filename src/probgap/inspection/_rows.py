"""Why one row is scored as it is: its columns, and labelled positives like it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches
from sklearn.utils.validation import _num_samples

from probgap._core.errors import InvalidInputError
from probgap._core.pipelines import (
    as_matrix,
    chance_positive,
    check_rows,
    classifier_of,
    input_columns,
    log_odds,
    samples_of,
    take_rows,
)
from probgap._core.runtime import RandomStateLike, as_generator
from probgap._core.types import Vector
from probgap.inspection._importance import as_table

Rows = NDArray[np.intp]

# Cells of the rows that are scored at once, and rows that are scored in all.
_BLOCK_CELLS = 4_000_000
_MOST_SCORED = 20_000


@dataclass(frozen=True, slots=True)
class RowContributions:
    """What each column adds to the log-odds of one row.

    Attributes
    ----------
    columns : list
        Names of the columns, or their numbers where they have none.
    values : ndarray of shape (n_columns,)
        Contributions, which sum to ``prediction - baseline``.
    baseline : float
        Mean log-odds of the background rows.
    prediction : float
        Log-odds of the row.
    n_background : int
        How many background rows were used.
    """

    columns: list[Any]
    values: Vector
    baseline: float
    prediction: float
    n_background: int


@dataclass(frozen=True, slots=True)
class NearestLabelled:
    """Labelled positives, the nearest first.

    Attributes
    ----------
    index : ndarray of shape (n,)
        Which rows they are.
    distance : ndarray of shape (n,)
        How far they are, in the space that the classifier sees.
    """

    index: Rows
    distance: Vector


def row_contributions(
    model: Any,
    row: Any,
    background: Any,
    *,
    n_background: int = 100,
    random_state: RandomStateLike = None,
) -> RowContributions:
    """Attribute a row's score to its columns, by Shapley values.

    The score is the log-odds of P(Y=1 | x). For each background row the columns are
    replaced by those of the row one at a time, in a random order and then in the
    reverse of it; a column's contribution is the mean change that its replacement makes
    [1]_. Whatever the orders, contributions sum to the log-odds of the row less the mean
    of those of the background rows. Which of two columns that say the same gets the
    credit is a matter of convention, and columns are combined in ways that may not occur
    in nature.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    row : {array-like, frame} of shape (1, n_features)
        The row, as the model takes it.
    background : {array-like, frame} of shape (n_samples, n_features)
        Rows to compare with.
    n_background : int, default=100
        Of more background rows, so many are drawn; fewer where columns are many.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the draw and the orders.

    Returns
    -------
    RowContributions
        A contribution for each column that the model looks at.

    References
    ----------
    .. [1] Strumbelj, Kononenko, "Explaining prediction models and individual
       predictions with feature contributions", Knowledge and Information Systems, 2014.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.inspection import row_contributions
    >>> X, y, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> parts = row_contributions(model, [[-0.8, 0.8]], X, random_state=0)
    >>> bool(abs(parts.values.sum() - (parts.prediction - parts.baseline)) < 1e-9)
    True
    >>> bool((parts.values > 0).all())
    True
    """
    classifier, rng = classifier_of(model), as_generator(random_state)
    row, background = as_table(row), as_table(background)
    _check_single(row)
    columns = input_columns(model, background)
    most = max(1, min(n_background, _MOST_SCORED // (2 * len(columns))))
    drawn = np.sort(rng.permutation(_num_samples(background))[:most])
    table = _append_row(take_rows(background, drawn), row)

    def score(rows: Any) -> Vector:
        return log_odds(chance_positive(classifier, samples_of(model, rows)))

    ends = score(table)
    orders = np.array([rng.permutation(len(columns)) for _ in drawn])
    orders = np.concatenate([orders, orders[:, ::-1]])
    base = np.tile(np.arange(drawn.size), 2)
    total = np.zeros(len(columns))
    for batch in gen_batches(base.size, max(1, _BLOCK_CELLS // len(columns) ** 2)):
        order, start = orders[batch], base[batch]
        # After step k the first k columns of an order are the row's.
        steps = np.arange(1, len(columns))[None, :, None]
        taken = np.argsort(order, axis=1)[:, None, :] < steps
        source = np.where(taken, drawn.size, start[:, None, None])
        source = source.reshape(-1, len(columns))
        between = score(_mix_rows(table, columns, source)) if source.size else source
        between = between.reshape(start.size, len(columns) - 1)
        last = np.full(start.size, ends[-1])
        path = np.column_stack([ends[start], between, last])
        np.add.at(total, order, np.diff(path, axis=1))
    return RowContributions(
        columns=columns,
        values=total / base.size,
        baseline=float(ends[:-1].mean()),
        prediction=float(ends[-1]),
        n_background=int(drawn.size),
    )


def nearest_labelled(
    model: Any, X: Any, labelled: ArrayLike, row: Any, n: int = 5
) -> NearestLabelled:
    """Find the labelled positives that are nearest to a row.

    Distances are Euclidean ones after what comes before the classifier in a pipeline:
    what the classifier takes for alike. If the row itself is a labelled one of X, it is
    found at distance 0.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        Rows, as the model takes them.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    row : {array-like, sparse matrix, frame} of shape (1, n_features)
        The row, as the model takes it.
    n : int, default=5
        How many to find; fewer where fewer are labelled.

    Returns
    -------
    NearestLabelled
        Indices into X, and distances.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap import PGPUClassifier
    >>> from probgap.inspection import nearest_labelled
    >>> X = np.arange(60.0).reshape(-1, 1)
    >>> s = np.arange(60) >= 40
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> nearest_labelled(model, X, s, [[39.0]], n=2).index
    array([40, 41])
    """
    mask = check_rows(X, labelled)
    if n < 1:
        msg = f"n must be at least 1. Got {n!r}."
        raise InvalidInputError(msg)
    asked = as_matrix(samples_of(model, row))
    _check_single(asked)
    rows = np.flatnonzero(mask)
    known = as_matrix(samples_of(model, take_rows(X, rows)))
    search = NearestNeighbors(n_neighbors=min(n, rows.size)).fit(known)
    distance, found = search.kneighbors(asked)
    return NearestLabelled(rows[found[0]], distance[0])


def _check_single(row: Any) -> None:
    if _num_samples(row) != 1:
        msg = f"Expected a single row, got {_num_samples(row)}."
        raise InvalidInputError(msg)


def _append_row(rows: Any, row: Any) -> Any:
    """Return rows with one more below them."""
    if not hasattr(rows, "columns"):
        return np.vstack([rows, row])
    pandas = import_module("pandas")  # there is a frame, so there is pandas
    return pandas.concat([rows, row[rows.columns]], ignore_index=True)


def _mix_rows(table: Any, columns: list[Any], source: Rows) -> Any:
    """Return rows whose cells come from the rows ``source`` of a table, or the first."""
    if not hasattr(table, "columns"):
        return np.take_along_axis(table, source, axis=0)
    at = {name: source[:, j] for j, name in enumerate(columns)}
    first = np.zeros(source.shape[0], dtype=np.intp)
    cells = {
        name: table[name].take(at.get(name, first)).reset_index(drop=True)
        for name in table.columns
    }
    return type(table)(cells)
