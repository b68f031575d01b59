"""A model and the answers to what was asked, put together by a Gaussian process."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.validation import _num_samples, column_or_1d

from probgap._core.errors import InvalidInputError
from probgap._core.kernels import scale_gamma
from probgap._core.pipelines import (
    as_matrix,
    chance_positive,
    classifier_of,
    log_odds,
    samples_of,
)
from probgap._core.runtime import one_thread
from probgap._core.types import Array, Mask, Matrix, Vector

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

    def take(self, rows: NDArray[np.intp]) -> Points:
        """Return some of the points."""
        return Points(self.samples[rows], self.score[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What answers say of a model's log-odds, by Laplace's approximation.

    ``dual`` are the weights of the points in the correction, ``root`` the square roots of
    their curvatures, ``factor`` the Cholesky factor of 1 + root K root, ``residual`` the
    largest error of a weight.
    """

    points: Points
    dual: Vector
    root: Vector
    factor: Array
    residual: float
    n_iter: int
    converged: bool


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
    shared: Array = rbf_kernel(some.samples, others.samples, gamma=gamma)
    shared *= _WARP**2
    shared += _STRETCH**2 * np.multiply.outer(some.score, others.score)
    shared += _SHIFT**2
    return shared


def learn(
    answered: Points, positive: Mask, gamma: float, most_steps: int = _MOST_STEPS
) -> Belief:
    """Correct log-odds by answers: the most likely ones, by Newton's method."""
    prior = covariance(answered, answered, gamma)
    sign = np.where(positive, 1.0, -1.0)
    dual, value = np.zeros(sign.size), -np.inf
    moved, n_iter, converged = answered.score, 0, False
    while not converged and n_iter < most_steps:
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
        dual, n_iter = tried, n_iter + 1
        converged = bool(value - before <= _TOLERANCE)
    chance = expit(moved)
    residual = float(abs(dual - (positive - chance)).max())
    curvature = _curvature(prior, chance)
    return Belief(
        gamma, Answers(answered, dual, *curvature, residual, n_iter, converged)
    )


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

    Answers to what :func:`suggest` asks do not belong among the labels of ``fit``: those
    must have been collected without our help, the clear positives first, or the boundary
    is read off them wrongly; and for a negative there is no place at all. Here both
    count. The true log-odds are taken for those of the model plus a shift, a stretch and
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
        It has ``predict``, ``predict_proba`` and ``decision_function``, and
        :func:`suggest` takes it. :func:`probgap.io.save` does not: keep model and answers.

    Notes
    -----
    Measured by ``benchmarks/active.py`` (docs/design/active.md): on 8 draws with few
    labels, 90% of what the missing ones cost was won back after 40 answers to
    :func:`suggest` (median), on every draw within 120. With the positive answers among
    the labels of ``fit`` instead it took 90, and on 3 draws it did not happen within 120.

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
    found = belief.answers
    if found is not None and not found.converged:
        warnings.warn(
            f"The correction stopped after {found.n_iter} iterations without converging, "
            f"with a residual of {found.residual:.1e}. Scale the features.",
            ConvergenceWarning,
            stacklevel=2,
        )
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
