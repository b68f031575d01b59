"""A Gaussian process around the log-odds of a classifier, learnt from answers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from probgap._core.estimators import (
    as_matrix,
    chance_positive,
    classifier_of,
    log_odds,
    samples_of,
)
from probgap._core.types import Array, Mask, Matrix, Rows, Vector
from probgap.reading import HiddenEstimate

# A variance that is zero by rounding.
LEAST = float(np.finfo(np.float64).tiny)

# Prior standard deviations of the error of the log-odds: a constant shift, a factor, and
# a smooth function of the sample. With a larger shift and a smaller stretch, answers
# about clear positives alone would turn all other rows positive.
_SHIFT, _STRETCH, _WARP = 1.0, 1.0, 3.0
# The correction of the ranking is averaged over several sizes of the smooth function and
# two widths of its kernel, relative to the usual one, weighted by their evidence: where
# answers show only noise, the ranking stays as it was.
_WARPS, _WIDTHS = (0.0, 0.5, 1.0, 2.0, 3.0), (1.0, 0.25)
# Their prior weights. With few answers the largest size dominates: smaller ones need more
# answers to recover what missing labels cost (benchmarks/active.py). The weight of size 0
# protects a good ranking where answers are nearly all alike (benchmarks/audit.py, 1%
# positives).
_PRIOR_OF_WARP, _PRIOR_OF_WIDTH = (8.0, 1.0, 1.0, 3.0, 24.0), (1.0, 0.05)
# Log-odds of a classifier are clipped to this size.
_SUREST = 6.0
# Share of the classifier's log-odds added where the curve of the estimate may be flat.
_KEEPS_ORDER = 1e-3
_MOST_STEPS = 100
_TOLERANCE = 1e-9
_SMALLEST_STEP = 1e-6
_LEAST_CURVATURE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Samples with the log-odds that a model gives them."""

    samples: Matrix
    score: Vector

    def take(self, rows: Rows) -> Points:
        """Return some of the points."""
        return Points(self.samples[rows], self.score[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Correction of a model's log-odds by answers, in Laplace's approximation.

    ``dual`` are the weights of the points in the correction, ``root`` the square roots
    of their curvatures, ``factor`` the Cholesky factor of 1 + root K root.
    """

    points: Points
    dual: Vector
    root: Vector
    factor: Array


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """Distribution of the true log-odds: those of a model, corrected by answers."""

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
        return np.maximum(prior - explained, LEAST)

    def covariance(self, some: Points, others: Points) -> Array:
        """Return the covariance of the log-odds of some points with those of others."""
        prior = covariance(some, others, self.gamma)
        return prior - self._explained(some).T @ self._explained(others)

    def _explained(self, points: Points) -> Array:
        if self.answers is None:
            return np.zeros((0, points.score.size))
        near = covariance(self.answers.points, points, self.gamma)
        root = self.answers.root[:, None]
        return solve_triangular(self.answers.factor, root * near, lower=True)


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """An average correction of log-odds: shift, stretch and smooth parts.

    ``smooth`` has the weights of the points in the part of each of ``gammas``.
    """

    points: Points
    linear: Vector
    gammas: Vector
    smooth: Array

    def shift(self, points: Points) -> Vector:
        """Return by how much the log-odds of points change."""
        stretch = _STRETCH**2 * (self.linear @ self.points.score)
        moved = points.score * stretch + _SHIFT**2 * self.linear.sum()
        for gamma, weights in zip(self.gammas, self.smooth, strict=True):
            near = rbf_kernel(points.samples, self.points.samples, gamma=float(gamma))
            moved = moved + near @ weights
        return moved


def see_rows(
    model: Any,
    X: Any,
    probability: Vector | None,
    estimate: HiddenEstimate | None = None,
) -> tuple[Points, Vector, Vector]:
    """Return rows as the classifier sees them; ``probability`` None asks it.

    Also, unclipped, their log-odds of being positive given that they are unlabelled, and
    their probability of being labelled, both from an estimate. Without one, they are the
    classifier's log-odds and 0.
    """
    seen = samples_of(model, X)
    if probability is None:
        probability = chance_positive(classifier_of(model), seen)
    score = log_odds(probability)
    labelled = np.zeros(score.size)
    if estimate is not None:
        at = estimate.find_scores(probability)
        score = log_odds(estimate.hidden_probability(at)) + _KEEPS_ORDER * score
        labelled = expit(estimate.log_odds(at))
    return Points(as_matrix(seen), np.clip(score, -_SUREST, _SUREST)), score, labelled


def covariance(
    some: Points, others: Points, gamma: float, warp: float = _WARP
) -> Array:
    """Return the prior covariance of the error of the log-odds."""
    near: Array = rbf_kernel(some.samples, others.samples, gamma=gamma)
    stretch = _STRETCH**2 * np.multiply.outer(some.score, others.score)
    return _SHIFT**2 + stretch + warp**2 * near


def average_corrections(answered: Points, positive: Mask, gamma: float) -> Correction:
    """Average corrections over sizes and widths, weighted by their evidence."""
    gammas = gamma * np.array(_WIDTHS)
    tried = [(at, warp) for at in range(gammas.size) for warp in _WARPS]
    prior = np.log(np.multiply.outer(_PRIOR_OF_WIDTH, _PRIOR_OF_WARP)).ravel()
    sign, evidence, duals = np.where(positive, 1.0, -1.0), [], []
    for at, warp in tried:
        answers = learn(answered, positive, gammas[at], warp)
        shift = covariance(answered, answered, gammas[at], warp) @ answers.dual
        fit = np.logaddexp(0.0, -sign * (answered.score + shift)).sum()
        spread = np.log(np.diag(answers.factor)).sum()
        evidence.append(-0.5 * answers.dual @ shift - fit - spread)
        duals.append(answers.dual)
    weight = np.exp(prior + evidence - max(prior + evidence))
    parts = (weight / weight.sum())[:, None] * np.array(duals)
    smooth = np.zeros((gammas.size, positive.size))
    for (at, warp), part in zip(tried, parts, strict=True):
        smooth[at] += warp**2 * part
    return Correction(answered, parts.sum(axis=0), gammas, smooth)


def learn(
    answered: Points, positive: Mask, gamma: float, warp: float = _WARP
) -> Answers:
    """Find the most likely log-odds given answers, by Newton's method."""
    prior = covariance(answered, answered, gamma, warp)
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
        what = f"The correction did not converge in {_MOST_STEPS} iterations."
        warnings.warn(f"{what} Scale the features.", ConvergenceWarning, stacklevel=3)
    return Answers(answered, dual, *_curvature(prior, expit(moved)))


def _curvature(prior: Array, chance: Vector) -> tuple[Vector, Array]:
    root = np.sqrt(np.maximum(chance * (1.0 - chance), _LEAST_CURVATURE))
    inner = np.eye(root.size) + root[:, None] * prior * root
    factor, _ = cho_factor(inner, lower=True)
    return root, np.tril(factor)
