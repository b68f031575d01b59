"""Which rows would teach most if a person labelled them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.validation import _num_samples

from probgap._core.checks import check_gap, check_labelled
from probgap._core.errors import InvalidInputError
from probgap._core.kernels import Matrix, median_gamma
from probgap._core.pipelines import (
    as_matrix,
    chance_positive,
    classifier_of,
    samples_of,
    take_rows,
)
from probgap._core.rng import RandomStateLike, as_generator

__all__ = ["suggest"]

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
Vector = NDArray[np.float64]

# So many of the least certain rows are compared with each other, and with so many others.
_MOST_CANDIDATES = 1500
_MOST_OTHERS = 1000
# How far from 1/2 a chance may be for a row whose gap is decided.
_IN_DOUBT = 0.3


def suggest(
    model: Any,
    X: Any,
    n: int = 50,
    *,
    labelled: ArrayLike | None = None,
    gap: ArrayLike | None = None,
    random_state: RandomStateLike = 0,
) -> NDArray[np.intp]:
    """Choose the unlabelled rows whose true label would teach most.

    Rows near the boundary, P(Y=1 | x) about 1/2, come first, sooner if many rows are
    like them; each choice makes rows like it less worth asking about, so that the list
    is diverse. Rows whose observed gap is decided, not between the boundary and 0, count
    half, and not at all where the model is sure (P(Y=1 | x) below 0.2 or above 0.8): the
    list may be shorter than ``n``. It is a rule of thumb: it has no idea what labelling costs, and
    it follows the model, so that it will not find positives in ground that the model
    takes for surely negative.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        Rows to choose from, as the model takes them.
    n : int, default=50
        How many to choose at most.
    labelled : array-like of shape (n_samples,), default=None
        True for rows that are labelled already. ``None`` stands for none.
    gap : array-like of shape (n_samples,), default=None
        Observed gaps of the rows, where better ones are known than the model would
        give now: ``observed_gap_`` of the rows that it was fitted on.
    random_state : int, Generator, RandomState or None, default=0
        Seeds the draw of rows that likeness is judged by, where there are many.

    Returns
    -------
    ndarray of shape (at most n,)
        Indices of rows, the most telling first.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.active import suggest
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> rows = suggest(PGPUClassifier(random_state=0).fit(X, s), X, 5, labelled=s == 1)
    >>> bool(abs(X[rows, 0] - X[rows, 1]).max() < 0.5)  # near the true edge
    True
    """
    if n < 1:
        msg = f"n must be at least 1. Got {n!r}."
        raise InvalidInputError(msg)
    n_rows = _num_samples(X)
    known = np.zeros(n_rows, dtype=bool)
    if labelled is not None:
        known = check_labelled(labelled, n_rows)
    rng = as_generator(random_state)
    classifier = classifier_of(model)
    samples = samples_of(model, X)
    chance = chance_positive(classifier, samples)
    observed = (
        classifier.gap_estimator_.transform(samples)[:, 0] if gap is None else gap
    )
    undecided = _between(check_gap(observed), classifier.boundary_.value)
    rows = _least_certain(chance, undecided, ~known)
    if rows.size == 0:
        return rows
    others = np.sort(rng.choice(n_rows, min(n_rows, _MOST_OTHERS), replace=False))
    chosen = _spread_out(
        as_matrix(take_rows(samples, rows)),
        as_matrix(take_rows(samples, others)),
        _doubt(chance[rows], undecided[rows]),
        n,
    )
    return rows[chosen]


def _between(gap: Vector, lower: float) -> Mask:
    return (gap > lower) & (gap <= 0.0)


def _doubt(chance: Vector, undecided: Mask) -> Vector:
    """Weigh rows by how even their chance is; what the gap decided counts half."""
    doubt: Vector = (4.0 * chance * (1.0 - chance)) ** 2
    return np.where(undecided, doubt, 0.5 * doubt)


def _least_certain(chance: Vector, undecided: Mask, eligible: Mask) -> Rows:
    """Order rows by how much they are in doubt."""
    rows = np.flatnonzero(eligible & (undecided | (abs(chance - 0.5) < _IN_DOUBT)))
    order = np.lexsort((rows, -_doubt(chance[rows], undecided[rows])))
    return rows[order[:_MOST_CANDIDATES]]


def _spread_out(candidates: Matrix, others: Matrix, doubt: Vector, n: int) -> Rows:
    """Choose one by one: much in doubt, like many others, unlike those chosen."""
    gamma = median_gamma(others)
    crowd = rbf_kernel(candidates, others, gamma=gamma).mean(axis=1)
    worth = doubt * crowd
    chosen: list[int] = []
    for _ in range(min(n, doubt.size)):
        best = int(np.argmax(worth))
        chosen.append(best)
        like = rbf_kernel(candidates, candidates[[best]], gamma=gamma)[:, 0]
        worth = worth * (1.0 - like)
        worth[best] = -1.0
    return np.array(chosen, dtype=np.intp)
