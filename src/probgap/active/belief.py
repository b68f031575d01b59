"""What is believed of a model's log-odds after answers: a Gaussian process around it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from probgap._core.pipelines import (
    as_matrix,
    chance_positive,
    classifier_of,
    log_odds,
    samples_of,
)
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
    shared: Array = rbf_kernel(some.samples, others.samples, gamma=gamma)
    shared *= _WARP**2
    shared += _STRETCH**2 * np.multiply.outer(some.score, others.score)
    shared += _SHIFT**2
    return shared


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
