"""Labels asked for: which rows would teach most, and a model corrected by the answers.

What is believed of the true log-odds is a Gaussian process around those of the model.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit, ndtr
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.validation import _num_samples, column_or_1d

from probgap._core.checks import check_labelled, check_unit_interval
from probgap._core.errors import InvalidInputError
from probgap._core.estimators import (
    as_matrix,
    chance_positive,
    classifier_of,
    log_odds,
    samples_of,
)
from probgap._core.kernels import scale_gamma
from probgap._core.runtime import RandomStateLike, as_generator, one_thread
from probgap._core.types import Array, Mask, Matrix, Vector

__all__ = ["CorrectedClassifier", "correct", "suggest"]

Rows = NDArray[np.intp]

# Standard deviations of what is wrong with the log-odds: all of them by one number, by a
# factor, and by a smooth function of the sample. With a larger shift and a smaller stretch,
# answers about clear positives alone would make positives of all the rest.
_SHIFT, _STRETCH, _WARP = 1.0, 1.0, 3.0
# A classifier's own log-odds are not to be trusted further.
_SUREST = 6.0
_MOST_STEPS = 100
_TOLERANCE = 1e-9
_SMALLEST_STEP = 1e-6
_LEAST_CURVATURE = 1e-9
_LEAST = float(np.finfo(np.float64).tiny)
# So many rows are thought of, and by what they teach about so many others.
_MOST_CANDIDATES, _MOST_OTHERS = 1000, 600


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Samples with the log-odds that a model gives them."""

    samples: Matrix
    score: Vector

    @classmethod
    def of(cls, model: Any, X: Any, probability: Vector | None = None) -> Points:
        """Return rows as the classifier sees them; ``probability`` None asks it."""
        samples = samples_of(model, X)
        if probability is None:
            probability = chance_positive(classifier_of(model), samples)
        score = np.clip(log_odds(probability), -_SUREST, _SUREST)
        return cls(as_matrix(samples), score)

    def take(self, rows: Rows) -> Points:
        """Return some of the points."""
        return Points(self.samples[rows], self.score[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What answers say of a model's log-odds, by Laplace's approximation.

    ``dual`` are the weights of the points in the correction, ``root`` the square roots of
    their curvatures, ``factor`` the Cholesky factor of 1 + root K root.
    """

    points: Points
    dual: Vector
    root: Vector
    factor: Array


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What is thought of the true log-odds: those of a model, corrected by answers."""

    gamma: float
    answers: Answers | None = None

    def mean(self, points: Points) -> Vector:
        """Return the corrected log-odds."""
        if self.answers is None:
            return points.score
        near = covariance(points, self.answers.points, self.gamma)
        return points.score + near @ self.answers.dual

    def variance(self, points: Points) -> Vector:
        """Return the variance of the log-odds."""
        prior = _SHIFT**2 + (_STRETCH * points.score) ** 2 + _WARP**2
        explained = (self._explained(points) ** 2).sum(axis=0)
        return np.maximum(prior - explained, _LEAST)

    def covariance(self, some: Points, others: Points) -> Array:
        """Return the covariance of the log-odds of some points with those of others."""
        prior = covariance(some, others, self.gamma)
        return prior - self._explained(some).T @ self._explained(others)

    def _explained(self, points: Points) -> Array:
        if self.answers is None:
            return np.zeros((0, points.score.size))
        near = covariance(self.answers.points, points, self.gamma)
        root = self.answers.root[:, None]
        part: Array = solve_triangular(self.answers.factor, root * near, lower=True)
        return part


def covariance(some: Points, others: Points, gamma: float) -> Array:
    """Return the covariance, before any answer, of what is wrong with log-odds."""
    near: Array = rbf_kernel(some.samples, others.samples, gamma=gamma)
    stretch = _STRETCH**2 * np.multiply.outer(some.score, others.score)
    return _SHIFT**2 + stretch + _WARP**2 * near


def learn(answered: Points, positive: Mask, gamma: float) -> Belief:
    """Correct log-odds by answers: the most likely ones, by Newton's method."""
    prior = covariance(answered, answered, gamma)
    sign = np.where(positive, 1.0, -1.0)
    dual, value, moved = np.zeros(sign.size), -np.inf, answered.score
    for _ in range(_MOST_STEPS):
        chance = expit(moved)
        root, factor = _curvature(prior, chance)
        aim = root**2 * (moved - answered.score) + (positive - chance)
        full = aim - root * cho_solve((factor, True), root * (prior @ aim)) - dual
        step, before = 1.0, value
        while True:
            tried = dual + step * full
            shift = prior @ tried
            moved = answered.score + shift
            value = -0.5 * tried @ shift - np.logaddexp(0.0, -sign * moved).sum()
            if value >= before or step < _SMALLEST_STEP:
                break
            step *= 0.5
        dual = tried
        if value - before <= _TOLERANCE:
            break
    else:
        warnings.warn(
            f"The correction did not converge in {_MOST_STEPS} iterations. Scale the "
            "features.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Belief(gamma, Answers(answered, dual, *_curvature(prior, expit(moved))))


def _curvature(prior: Array, chance: Vector) -> tuple[Vector, Array]:
    root = np.sqrt(np.maximum(chance * (1.0 - chance), _LEAST_CURVATURE))
    inner = np.eye(root.size) + root[:, None] * prior * root
    factor, _ = cho_factor(inner, lower=True)
    return root, np.tril(factor)


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedClassifier:
    """A classifier whose log-odds are corrected by answers: see :func:`correct`.

    Attributes
    ----------
    model : PGPUClassifier or Pipeline
        The model that was corrected.
    belief : object
        The correction, and how uncertain it is.
    """

    model: Any
    belief: Belief

    @property
    def classes_(self) -> NDArray[Any]:
        """The two labels, in ascending order."""
        classes: NDArray[Any] = classifier_of(self.model).classes_
        return classes

    def decision_function(self, X: Any) -> Vector:
        """Return the log-odds of being positive of each row."""
        with one_thread():
            return self.belief.mean(Points.of(self.model, X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        positive = classifier_of(self.model).positive_index_
        called = self.decision_function(X) > 0.0
        return self.classes_[np.where(called, positive, 1 - positive)]

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, in the order of ``classes_``."""
        chance = expit(self.decision_function(X))
        turn = 1 if classifier_of(self.model).positive_index_ == 1 else -1
        return np.column_stack([1.0 - chance, chance][::turn])


def correct(model: Any, X: Any, y: ArrayLike) -> CorrectedClassifier:
    """Correct a fitted model by rows whose true class somebody has found out.

    Answers to what :func:`suggest` asks do not belong among the labels of ``fit``, which
    must have been collected without our help; and for a negative there is no place
    there. The true log-odds are taken for those of the model plus a shift, a stretch and
    a smooth function of the row, each unknown and probably small (a Gaussian process
    around the model). Up to a thousand answers it takes less than a second.

    It assumes that answers are right, and that rows were not chosen by looking at their
    class. Columns should have like scales, as for the model itself. Where there are no
    answers nearby the model stays as it was, but for shift and stretch.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one: fitted without the answers.
    X : {array-like, sparse matrix, frame} of shape (n_answers, n_features)
        The rows with an answer, all that there are so far.
    y : array-like of shape (n_answers,)
        The true class of each: as in ``classes_`` of the model, or True for positive.

    Returns
    -------
    CorrectedClassifier
        It has ``predict``, ``predict_proba`` and ``decision_function``;
        :func:`suggest` and :func:`probgap.io.save` take it.

    Notes
    -----
    Measured by ``benchmarks/active.py`` on 8 draws with few labels: 90% of what the
    missing ones cost was won back after 40 answers to :func:`suggest` (median). With the
    positive answers among the labels of ``fit`` instead it took 90.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.active import correct, suggest
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("constant", 0.8), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> rows = suggest(model, X, 30, labelled=s == 1)
    >>> better = correct(model, X[rows], y[rows])  # y: what a person says
    >>> bool((better.predict(X) == y).mean() > (model.predict(X) == y).mean())
    True
    """
    positive = _check_answers(classifier_of(model), y, _num_samples(X))
    with one_thread():
        answered = Points.of(model, X)
        belief = learn(answered, positive, scale_gamma(answered.samples))
    return CorrectedClassifier(model, belief)


def _check_answers(classifier: Any, y: ArrayLike, n_rows: int) -> Mask:
    """Return which answers are positive, having checked that there are answers."""
    answers = column_or_1d(y)
    if answers.size == 0 or answers.size != n_rows:
        msg = (
            "y must have an answer for each row of X, and there must be one. Got "
            f"{answers.size} for {n_rows} rows."
        )
        raise InvalidInputError(msg)
    classes = classifier.classes_
    if answers.dtype == bool and classes.dtype != bool:
        return answers
    strange = answers[~np.isin(answers, classes)]
    if strange.size:
        known = ", ".join(map(repr, classes.tolist()))
        msg = f"y must hold classes of the model, {known}. Got {strange.tolist()[0]!r}."
        raise InvalidInputError(msg)
    positive: Mask = answers == classes[classifier.positive_index_]
    return positive


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

    The model's log-odds may be off, as in :func:`correct`, and an answer makes them surer
    for rows like the one asked about. What counts is how much surer the calls become,
    summed over rows: most near P(Y=1 | x) = 1/2, where calls may change, and where many
    rows lie. Each choice makes rows like it less worth asking about.

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
    Measured by ``benchmarks/active.py`` on data sets that the rule was not chosen on, 22
    draws with few labels: 90% of what the missing labels cost was won back after 30
    answers (median), against 50 for rows chosen at random.

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
    nothing = np.zeros(n_rows, dtype=bool)
    known = check_labelled(nothing if labelled is None else labelled, n_rows)
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
    at the rate of the normal density at mean / deviation, over twice the deviation.
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
