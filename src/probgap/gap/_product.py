"""Maximum likelihood for a labelling rate that rises with the gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.special import expit, log_expit

from probgap._core.newton import LinearFits, Ridge, factor_at, fit_rows
from probgap._core.rows import RowBlock, Rows
from probgap.gap._rate import RatePrior

Vector = NDArray[np.float64]
Array = NDArray[np.float64]

# Probabilities this near to 1 leave no information about an unlabelled sample.
_NEAREST_TO_ONE = 1.0 - 1e-12


@dataclass(frozen=True, slots=True)
class ProductLoss:
    """Minus the log-likelihood of P(s=1 | x) = expit(score) * expit(level + slope * score).

    The first factor is the chance of being positive, the second the chance that a
    positive is labelled. Not convex: an unlabelled sample with a high score may be a
    positive or a negative.
    """

    slope: float

    def slopes(
        self, target: Array, score: Array, level: Array
    ) -> tuple[Array, Array, Array]:
        """Give the loss, and its derivatives by the score and by the level."""
        rate_score = level + self.slope * score
        is_positive, is_labelled = expit(score), expit(rate_score)
        p = np.minimum(is_positive * is_labelled, _NEAREST_TO_ONE)
        log_p = log_expit(score) + log_expit(rate_score)
        loss = -target * log_p - (1.0 - target) * np.log1p(-p)
        # d loss / d log p, then the chain rule through the two log-sigmoids.
        residual = (p - target) / (1.0 - p)
        by_score = residual * ((1.0 - is_positive) + self.slope * (1.0 - is_labelled))
        return loss, by_score, residual * (1.0 - is_labelled)

    def curvatures(
        self, target: Vector, score: Vector, level: float, *, safe: bool
    ) -> tuple[Vector, Vector, Vector]:
        """Give second derivatives, or (``safe``) what they are on average over labels."""
        is_positive, is_labelled = expit(score), expit(level + self.slope * score)
        p = np.minimum(is_positive * is_labelled, _NEAREST_TO_ONE)
        by_level = 1.0 - is_labelled
        by_score = (1.0 - is_positive) + self.slope * by_level
        if safe:
            known = p / (1.0 - p)
            return known * by_score**2, known * by_score * by_level, known * by_level**2
        residual = (p - target) / (1.0 - p)
        known = p * (1.0 - target) / (1.0 - p) ** 2
        bend = is_labelled * by_level
        return (
            known * by_score**2
            - residual * (is_positive * (1.0 - is_positive) + self.slope**2 * bend),
            known * by_score * by_level - residual * self.slope * bend,
            known * by_level**2 - residual * bend,
        )


def fit_product(
    rows: Rows, *, C: float, prior: RatePrior, start: Vector | None = None
) -> LinearFits:
    """Fit P(s=1 | x) = expit(f) * expit(level + slope * f), f linear in the features.

    Maximises the likelihood of the observed labels less a ridge penalty on f, and less
    the prior on the level. The penalty counts both factors, or the rate could borrow f
    for nothing. ``start`` holds coefficients and intercept to begin with.
    """
    return fit_rows(
        rows,
        ProductLoss(prior.slope),
        _ridge(C, prior),
        start=None if start is None else np.append(start, prior.level),
    )


def moved_scores(
    rows: Rows,
    some: RowBlock,
    fits: LinearFits,
    counts: Array,
    *,
    C: float,
    prior: RatePrior,
) -> Array:
    """Give how f moves on some of the rows, were each counted so much more.

    ``counts`` has a column for each draw. One Newton step from the solution stands for
    a fit, as is enough for a spread.
    """
    parameters = np.concatenate([fits.coef[:, 0], fits.intercept[:1], fits.level[:1]])
    loss, features = ProductLoss(prior.slope), some.features
    factor = factor_at(rows, loss, _ridge(C, prior), parameters)
    score = fits.score(features)
    _, by_score, by_level = loss.slopes(some.target, score, fits.level[:1])
    pull = (counts * by_score[:, None]).astype(np.float32)
    gradient = np.vstack([features.T @ pull, pull.sum(axis=0), by_level @ counts])
    step = -cho_solve(factor, gradient, check_finite=False)
    moved: Array = features @ step[:-2].astype(np.float32) + step[-2]
    return moved


def _ridge(C: float, prior: RatePrior) -> Ridge:
    return Ridge((1.0 + prior.slope**2) / C, prior.level, prior.spread**-2)
