"""How far a model's log-odds may be off: a Gaussian process around them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit
from sklearn.metrics.pairwise import rbf_kernel

from probgap._core.types import Mask, Matrix, Vector

Square = NDArray[np.float64]

# Standard deviations of what is wrong with the log-odds: all of them by one number, by a
# factor, and by a smooth function of the sample. With a larger shift and a smaller stretch,
# answers about clear positives alone would make positives of all the rest.
_SHIFT = 1.0
_STRETCH = 1.0
_WARP = 3.0

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


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What answers say of a model's log-odds, by Laplace's approximation.

    ``points`` are the samples whose class is known, ``dual`` their weights in the
    correction, ``root`` the square roots of their curvatures, and ``factor`` the Cholesky
    factor of 1 + root K root. ``residual`` is how far the weights are from what they
    must be, at most, after ``n_iter`` steps of Newton's method.
    """

    points: Points
    dual: Vector
    root: Vector
    factor: Square
    residual: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What is thought of the true log-odds: those of a model, corrected by answers."""

    gamma: float
    answers: Answers | None = None

    def mean(self, points: Points) -> Vector:
        """Give the corrected log-odds."""
        if self.answers is None:
            return points.score
        near = covariance(points, self.answers.points, self.gamma)
        return points.score + near @ self.answers.dual

    def spread(self, points: Points) -> Vector:
        """Give the variance of the log-odds."""
        prior = _SHIFT**2 + (_STRETCH * points.score) ** 2 + _WARP**2
        if self.answers is None:
            return prior
        known: Vector = prior - (self._explained(self.answers, points) ** 2).sum(axis=0)
        return np.maximum(known, _LEAST)

    def together(self, some: Points, others: Points) -> Square:
        """Give the covariance of the log-odds of some points with those of others."""
        prior = covariance(some, others, self.gamma)
        if self.answers is None:
            return prior
        left = self._explained(self.answers, some)
        return prior - left.T @ self._explained(self.answers, others)

    def _explained(self, answers: Answers, points: Points) -> Square:
        near = answers.root[:, None] * covariance(answers.points, points, self.gamma)
        part: Square = solve_triangular(answers.factor, near, lower=True)
        return part


def covariance(some: Points, others: Points, gamma: float) -> Square:
    """Give the covariance, before any answer, of what is wrong with log-odds."""
    shared: Square = rbf_kernel(some.samples, others.samples, gamma=gamma)
    shared *= _WARP**2
    shared += _STRETCH**2 * np.multiply.outer(some.score, others.score)
    shared += _SHIFT**2
    return shared


def learn(answered: Points, positive: Mask, gamma: float) -> Belief:
    """Correct log-odds by answers: the most likely ones, by Newton's method."""
    prior = covariance(answered, answered, gamma)
    sign = np.where(positive, 1.0, -1.0)
    dual, value = np.zeros(sign.size), -np.inf
    moved, n_iter, converged = answered.score, 0, False
    while not converged and n_iter < _MOST_STEPS:
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
    root, factor = _curvature(prior, chance)
    residual = float(abs(dual - (positive - chance)).max())
    found = Answers(answered, dual, root, factor, residual, n_iter, converged)
    return Belief(gamma, found)


def _curvature(prior: Square, chance: Vector) -> tuple[Vector, Square]:
    root = np.sqrt(np.maximum(chance * (1.0 - chance), _LEAST_CURVATURE))
    inner = np.eye(root.size) + root[:, None] * prior * root
    factor, _ = cho_factor(inner, lower=True)
    return root, np.tril(factor)
