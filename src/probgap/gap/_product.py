"""Maximum likelihood for a labelling rate that rises with the gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

Vector = NDArray[np.float64]

_MAX_ITER = 500
# Probabilities this near to 1 leave no information about an unlabelled sample.
_NEAREST_TO_ONE = 1.0 - 1e-12


@dataclass(frozen=True, slots=True)
class RatePrior:
    """What is assumed of the labelling rate expit(level + slope * score).

    Attributes
    ----------
    slope : float
        How fast the rate rises with the score; 0 means that labels are missing at
        random. It is fixed: positive and unlabelled data do not identify it.
    level : float
        Where the level is expected.
    spread : float
        Standard deviation of the level about that.
    """

    slope: float
    level: float
    spread: float


@dataclass(frozen=True, slots=True)
class ProductFit:
    """The fitted model, and the optimiser's evidence."""

    coef: Vector
    intercept: float
    level: float
    n_iter: int
    converged: bool

    def score(self, features: Vector) -> Vector:
        """Give the log-odds of being positive."""
        return features @ self.coef + self.intercept


def fit_product(
    features: Vector, labelled: NDArray[np.bool_], *, C: float, prior: RatePrior
) -> ProductFit:
    """Fit P(s=1 | x) = expit(f) * expit(level + slope * f), f linear in the features.

    The first factor is the chance of being positive, the second the chance that a
    positive is labelled. Maximises the likelihood of the observed labels less a ridge
    penalty on f, and less the prior on the level. The penalty counts both factors,
    or the rate could borrow f for nothing.
    """
    n_features = features.shape[1]
    slope = prior.slope
    ridge = (1.0 + slope**2) / C
    positive = labelled.astype(np.float64)

    def loss(parameters: Vector) -> tuple[float, Vector]:
        coef, intercept, level = (
            parameters[:n_features],
            parameters[n_features],
            parameters[n_features + 1],
        )
        score = features @ coef + intercept
        rate_score = level + slope * score
        is_positive, is_labelled = expit(score), expit(rate_score)
        p = np.minimum(is_positive * is_labelled, _NEAREST_TO_ONE)
        log_p = log_expit(score) + log_expit(rate_score)
        off_level = (level - prior.level) / prior.spread
        value = (
            -float(positive @ log_p + (1.0 - positive) @ np.log1p(-p))
            + 0.5 * ridge * float(coef @ coef)
            + 0.5 * off_level**2
        )
        # d loss / d log p, then the chain rule through the two log-sigmoids.
        residual = (p - positive) / (1.0 - p)
        by_score = residual * ((1.0 - is_positive) + slope * (1.0 - is_labelled))
        by_level = residual @ (1.0 - is_labelled) + off_level / prior.spread
        gradient = np.concatenate(
            [features.T @ by_score + ridge * coef, [by_score.sum(), by_level]]
        )
        return value, gradient

    start = np.zeros(n_features + 2)
    start[-1] = prior.level
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _MAX_ITER}
    )
    return ProductFit(
        coef=found.x[:n_features],
        intercept=float(found.x[n_features]),
        level=float(found.x[n_features + 1]),
        n_iter=int(found.nit),
        converged=bool(found.success),
    )
