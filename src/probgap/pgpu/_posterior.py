"""From the decision of the final classifier to a probability of being positive."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, xlogy

from probgap._core.types import Vector

# Labelled positives above this quantile of their gaps count as certain positives.
_CERTAIN_QUANTILE = 0.9
_LOG_SLOPES = (-10.0, 10.0)
# Probabilities nearer to 0 and 1 than this would outweigh any other in an average.
_CERTAIN = 1e-4


def clearest_gap(observed_gap: Vector, labelled: NDArray[np.bool_]) -> float:
    """Return the gap from which on labelled positives count as certain."""
    return float(np.quantile(observed_gap[labelled], _CERTAIN_QUANTILE))


def posterior_from_gap(
    observed_gap: Vector, boundary: float, clearest: float
) -> Vector:
    """Estimate P(Y=1 | x) from the observed gap and the boundary.

    Three points of the curve are known: where the true gap is -1 so is the observed
    one; where it is 0 the observed one is the boundary; and where it is 1 the
    observed one is that of the clearest labelled positives. Between them the curve
    is taken as straight.
    """
    middle = min(max(boundary, -1.0 + 1e-6), 1.0 - 2e-6)
    knots = [-1.0, middle, max(clearest, middle + 1e-6)]
    return np.interp(observed_gap, knots, [0.0, 0.5, 1.0])


def average_chances(first: Vector, second: Vector) -> Vector:
    """Return probabilities whose log-odds are the mean of those of two estimates."""
    odds = [logit(np.clip(p, _CERTAIN, 1.0 - _CERTAIN)) for p in (first, second)]
    return np.asarray(expit(0.5 * (odds[0] + odds[1])))


def fit_slope(decision: Vector, posterior: Vector) -> float:
    """Return the slope a for which expit(a * decision) is closest to the posterior.

    Closest in cross-entropy. There is no intercept, so that the probability passes
    1/2 where the decision passes 0.
    """
    scale = float(np.abs(decision).mean())
    if scale == 0.0:
        return 1.0
    scaled = decision / scale

    def cross_entropy(log_slope: float) -> float:
        p = expit(np.exp(log_slope) * scaled)
        tiny = np.finfo(np.float64).tiny
        return -float(
            np.mean(
                xlogy(posterior, np.maximum(p, tiny))
                + xlogy(1.0 - posterior, np.maximum(1.0 - p, tiny))
            )
        )

    best = minimize_scalar(cross_entropy, bounds=_LOG_SLOPES, method="bounded")
    return float(np.exp(best.x)) / scale
