"""Kernel mean matching over blocks, by its dual.

With a weak pull towards weights of 1, the weight of a row at the solution is 1 less a
linear function of its features, cut off at the bounds. So there are as many unknowns as
features, and they minimise a sum over rows: Newton's method finds them as it finds
other linear models. The pull is weakened until it costs next to nothing.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import ProbgapWarning
from probgap._core.newton import LinearFits, Ridge, fit_rows
from probgap._core.rows import Slopes
from probgap.dask._rows import BlockRows
from probgap.dask._stages import AnyGap
from probgap.dask._values import BlockValues

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]

# What the pull may cost, as a share of what can be gained over uniform weights.
_TOLERANCE = 1e-4
_FIRST_PULL = 1e-2
_WEAKER = 0.1
_MOST_PULLS = 6
# Weights that rest on a smaller share of the rows than this are no estimate.
_FEWEST_EFFECTIVE = 0.02


@dataclass(frozen=True, slots=True)
class WeightLoss:
    """Minus the dual of matching; the target is 1 for rows to weight, 0 for others.

    ``share`` is the part of all rows that are to be weighted.
    """

    upper: float
    share: float

    def slopes(
        self, target: Array, score: Array, level: Array
    ) -> tuple[Array, Array, None]:
        """Give the loss, and its derivative by the score."""
        del level
        weight = weight_of(score, self.upper)
        best = -score * weight - 0.5 * (weight - 1.0) ** 2
        return target * best + self.share * score, self.share - target * weight, None

    def curvatures(
        self, target: Vector, score: Vector, level: float, *, safe: bool
    ) -> tuple[Vector, Vector, Vector]:
        """Give second derivatives: 1 where the weight lies between the bounds."""
        del level, safe
        weight = weight_of(score, self.upper)
        curvature = target * ((weight > 0.0) & (weight < self.upper))
        return curvature, np.zeros_like(curvature), np.zeros_like(curvature)


def weight_of(score: Array, upper: float) -> Array:
    """Give the weight that goes with a score of the dual."""
    return np.clip(1.0 - score, 0.0, upper)


@dataclass(frozen=True, slots=True)
class BlockMatching:
    """How well weights match.

    Attributes
    ----------
    objective : float
        Squared distance between the weighted mean of features and that of all rows.
    uniform : float
        The same with weights of 1.
    pull_share : float
        What the pull towards 1 may have cost, as a share of the gain over uniform.
    effective_sample_size : float
        Number of equally weighted rows with the same variance of a mean.
    n_passes : int
        Passes over all rows.
    converged : bool
        Whether the last fit converged and ``pull_share`` is at most 1e-4.
    """

    objective: float
    uniform: float
    pull_share: float
    effective_sample_size: float
    n_passes: int
    converged: bool


def match_blocks(
    gap: AnyGap, chosen: BlockValues, upper: float
) -> tuple[BlockValues, BlockMatching]:
    """Weight chosen rows so that the mean of their features is that of all rows.

    The mean of the weights is exactly 1: the band of the paper, without slack.
    """
    n_chosen = chosen.total()
    table, kernel = chosen.table, gap.rows.kernel
    rows = BlockRows(table, kernel, chosen)
    loss = WeightLoss(upper, n_chosen / table.n_rows)
    start = np.zeros(kernel.n_components + 2)
    uniform = _distance_of_uniform(rows, loss, n_chosen)
    pull = _FIRST_PULL * max(uniform, np.finfo(np.float64).tiny)
    for _ in range(_MOST_PULLS):
        fits = fit_rows(rows, loss, Ridge(n_chosen * pull), start=start)
        weight, squares = _weights(rows, fits, chosen, upper)
        objective = pull**2 * float(fits.coef[:, 0] @ fits.coef[:, 0])
        gain = max(uniform - objective, np.finfo(np.float64).tiny)
        cost = pull * (squares / n_chosen - 1.0) / gain
        if cost <= _TOLERANCE:
            break
        pull *= _WEAKER
        start = np.append(fits.coef[:, 0] / _WEAKER, [fits.intercept[0], 0.0])
    effective = n_chosen**2 / squares
    if effective < _FEWEST_EFFECTIVE * n_chosen:
        warnings.warn(
            "Kernel mean matching must spread its weight over many samples. Got an "
            f"effective sample size of {effective:.1f} out of {n_chosen:.0f}: what was "
            "chosen does not cover what was left out. Use a smaller upper, or "
            "reweight=False.",
            ProbgapWarning,
            stacklevel=4,
        )
    converged = fits.converged and cost <= _TOLERANCE
    evidence = BlockMatching(
        objective, uniform, cost, effective, rows.passes, converged
    )
    return weight, evidence


def _distance_of_uniform(rows: BlockRows, loss: WeightLoss, n_chosen: float) -> float:
    """Give the squared distance of means: the slope of the dual where it begins."""
    start = np.zeros((rows.n_features + 2, 1))
    value, slope = np.zeros(1), np.zeros_like(start)
    rows.add_slopes(Slopes(loss, start, (None,)), value, slope)
    apart = slope[:-2, 0] / n_chosen
    return float(apart @ apart)


def _weights(
    rows: BlockRows, fits: LinearFits, chosen: BlockValues, upper: float
) -> tuple[BlockValues, float]:
    score = rows.scores(fits)
    weight = score.map(partial(_chosen_weight, upper=upper), chosen).kept()
    return weight, weight.map(_squared).total()


def _chosen_weight(
    score: Vector, labelled: Mask, chosen: Vector, *, upper: float
) -> Vector:
    del labelled
    return chosen * weight_of(score, upper)


def _squared(values: Vector, labelled: Mask) -> Vector:
    del labelled
    return values**2
