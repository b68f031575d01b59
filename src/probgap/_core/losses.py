"""Losses of a score for the solver of linear models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, xlogy

Array = NDArray[np.float64]

# Nobody is surer than this of a label not seen.
SURE = 1e-6


class Logistic:
    """Minus the log-likelihood of a target between 0 and 1; knows no level."""

    def slopes(
        self, target: Array, score: Array, level: Array
    ) -> tuple[Array, Array, None]:
        del level
        return -log_expit(score) + (1.0 - target) * score, expit(score) - target, None

    def curvatures(
        self, target: Array, score: Array, level: float, *, safe: bool
    ) -> tuple[Array, Array, Array]:
        del target, level, safe
        chance = expit(score)
        curvature = chance * (1.0 - chance)
        return curvature, np.zeros_like(curvature), np.zeros_like(curvature)


class SquaredHinge:
    """The loss of a support vector machine; a target between 0 and 1 is part of each.

    The square of how far a score falls short of 1, times the target, and of how far it
    exceeds -1, times the rest.
    """

    def slopes(
        self, target: Array, score: Array, level: Array
    ) -> tuple[Array, Array, None]:
        del level
        short, beyond = np.maximum(1.0 - score, 0.0), np.maximum(1.0 + score, 0.0)
        loss = target * short**2 + (1.0 - target) * beyond**2
        return loss, 2.0 * ((1.0 - target) * beyond - target * short), None

    def curvatures(
        self, target: Array, score: Array, level: float, *, safe: bool
    ) -> tuple[Array, Array, Array]:
        del level, safe
        curvature = 2.0 * (target * (score < 1.0) + (1.0 - target) * (score > -1.0))
        return curvature, np.zeros_like(curvature), np.zeros_like(curvature)


def log_likelihoods(chance: Array, labelled: NDArray[np.bool_]) -> Array:
    """Give the log-likelihood of each label, by the chance of being labelled."""
    sure = np.clip(chance, SURE, 1.0 - SURE)
    likelihood: Array = xlogy(labelled, sure) + xlogy(~labelled, 1.0 - sure)
    return likelihood


def in_standard_errors(gain: Array, weight: Array | None = None) -> float:
    """Give the mean of a gain, sample by sample, as a multiple of its standard error."""
    share = np.ones(gain.size) if weight is None else weight
    share = share / share.sum()
    mean = float(share @ gain)
    error = float(np.sqrt(share**2 @ (gain - mean) ** 2))
    return mean / max(error, float(np.finfo(np.float64).tiny))
