"""Which rows would teach most if a person labelled them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtr
from scipy.stats import norm
from sklearn.utils.validation import _num_samples

from probgap._core.checks import check_labelled, check_unit_interval
from probgap._core.errors import InvalidInputError
from probgap._core.kernels import scale_gamma
from probgap._core.runtime import RandomStateLike, as_generator, one_thread
from probgap._core.types import Vector
from probgap.active._correct import CorrectedClassifier
from probgap.active.belief import Belief, Points

Rows = NDArray[np.intp]

# So many rows are thought of, and by what they teach about so many others.
_MOST_CANDIDATES, _MOST_OTHERS = 1000, 600
_LEAST = float(np.finfo(np.float64).tiny)


def suggest(
    model: Any,
    X: Any,
    n: int = 50,
    *,
    labelled: ArrayLike | None = None,
    probability: ArrayLike | None = None,
    random_state: RandomStateLike = 0,
) -> NDArray[np.intp]:
    """Choose the rows whose true class would teach most, one after the other.

    The model's log-odds may be off, by a shift, a stretch and a smooth function of the
    row (:func:`correct`). An answer makes them surer for rows like the one asked about.
    What counts is how much surer the calls become, summed over rows: most near the
    boundary, P(Y=1 | x) = 1/2, where calls may change, and where many rows lie. Each
    choice makes rows like it less worth asking about, so that the list is diverse.

    Tell the answers to :func:`correct`, not to ``fit``, positive and negative ones; what
    it returns can be asked for the next rows. All rows are taken for equally easy and
    cheap to judge.

    Parameters
    ----------
    model : PGPUClassifier, Pipeline or CorrectedClassifier
        A fitted classifier, a pipeline that ends in one, or one corrected by answers.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        Rows to choose from, as the model takes them.
    n : int, default=50
        How many to choose at most.
    labelled : array-like of shape (n_samples,), default=None
        True for rows whose class is known already: labelled, or asked about before, with
        whatever answer. ``None`` stands for none.
    probability : array-like of shape (n_samples,), default=None
        P(Y=1 | x) of the rows by models that have not seen them, such as ``posterior_``
        of the classifier for the rows it was fitted on. ``None`` asks the model.
    random_state : int, Generator, RandomState or None, default=0
        Seeds the draw of rows to think of, and of rows to be surer of, where there are
        more than 1000 or 600.

    Returns
    -------
    ndarray of shape (at most n,)
        Indices of rows, the most telling first.

    Notes
    -----
    Measured by ``benchmarks/active.py`` (docs/research/active.md) on data sets that the
    rule was not chosen on, 22 draws with few labels: answers needed until 90% of what
    the missing labels cost is won back, median 30, against 50 for random choice and 30
    for the rows closest to 1/2; not reached with 120 answers on 0, 2 and 1 of them.

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
    chance = None
    if probability is not None:
        chance = check_unit_interval(probability, "probability", n_rows)
    rng = as_generator(random_state)
    with one_thread():
        corrected = isinstance(model, CorrectedClassifier)
        points = Points.of(model.model if corrected else model, X, chance)
        belief = model.belief if corrected else Belief(scale_gamma(points.samples))
        rows = draw_candidates(belief, points, np.flatnonzero(~known), rng)
        if rows.size == 0:
            return rows
        others = np.sort(rng.choice(n_rows, min(n_rows, _MOST_OTHERS), replace=False))
        return rows[teach_most(belief, points.take(rows), points.take(others), n)]


def draw_candidates(
    belief: Belief,
    points: Points,
    rows: Rows,
    rng: np.random.Generator,
    most: int = _MOST_CANDIDATES,
) -> Rows:
    """Return all rows, or draw many, sooner those whose calls are likely wrong."""
    if rows.size <= most:
        return rows
    some = points.take(rows)
    deviation, mean = np.sqrt(belief.variance(some)), abs(belief.mean(some))
    z = mean / deviation
    regret = deviation * norm.pdf(z) - mean * ndtr(-z)
    chance = np.maximum(regret * _evenness(mean), _LEAST)
    drawn = rng.choice(rows.size, most, replace=False, p=chance / chance.sum())
    return rows[np.sort(drawn)]


def teach_most(belief: Belief, candidates: Points, others: Points, n: int) -> Rows:
    """Choose one by one what lessens the expected regret of calling others most.

    The regret of calling a row by the sign of its mean log-odds falls with their variance
    at the rate of the normal density at mean / deviation, over twice the deviation. An
    answer lessens variances whatever it is, so that choices need not wait for it.
    """
    mean, variance = belief.mean(candidates), belief.variance(candidates)
    mean_of_others, variance_of_others = belief.mean(others), belief.variance(others)
    shared = belief.covariance(candidates, others)
    even = _evenness(mean_of_others)
    taken = np.zeros((0, mean.size))
    chosen: list[int] = []
    for _ in range(min(n, mean.size)):
        deviation = np.sqrt(variance_of_others)
        worth = even * norm.pdf(mean_of_others / deviation) / deviation
        doubt = _evenness(mean / np.sqrt(1.0 + np.pi / 8.0 * variance))
        total = variance + 1.0 / np.maximum(doubt, 1e-3)
        gain = (shared**2 @ worth) / total
        gain[chosen] = -1.0
        best = int(np.argmax(gain))
        chosen.append(best)
        one = candidates.take(np.array([best]))
        like = belief.covariance(candidates, one)[:, 0] - taken.T @ taken[:, best]
        like /= np.sqrt(total[best])
        like_others = shared[best] / np.sqrt(total[best])
        shared -= np.multiply.outer(like, like_others)
        variance = np.maximum(variance - like**2, _LEAST)
        variance_of_others = np.maximum(variance_of_others - like_others**2, _LEAST)
        taken = np.vstack([taken, like])
    return np.array(chosen, dtype=np.intp)


def _evenness(log_odds: Vector) -> Vector:
    """Return how much chances move with log-odds: p (1 - p)."""
    even: Vector = expit(log_odds) * expit(-log_odds)
    return even
