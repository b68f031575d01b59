"""A task seen through its scores: calibrated log-odds and a summary of fixed length."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from probgap._core.types import Mask, Vector

# Log-odds beyond this say nothing that a finite sample could know.
MOST_LOG_ODDS = 9.0

_LEVELS = np.array(
    [
        0.01,
        0.03,
        0.08,
        0.15,
        0.25,
        0.35,
        0.45,
        0.55,
        0.65,
        0.75,
        0.85,
        0.92,
        0.96,
        0.985,
        0.995,
    ]
)


def platt_scaling(
    scores: Vector, labelled: Mask, weight: Vector
) -> tuple[float, float]:
    """Return slope and offset that turn scores into log-odds of being labelled."""
    centre, deviation = float(scores.mean()), float(scores.std())
    deviation = deviation if deviation > 0.0 else 1.0
    standard = (scores - centre) / deviation
    # Platt's targets: no group is certain, however well it is told apart.
    n_labelled = weight[labelled].sum()
    n_others = weight[~labelled].sum()
    target = np.where(
        labelled, (n_labelled + 1.0) / (n_labelled + 2.0), 1.0 / (n_others + 2.0)
    )

    def loss(parameters: Vector) -> tuple[float, Vector]:
        odds = parameters[0] * standard + parameters[1]
        losses = -log_expit(odds) + (1.0 - target) * odds
        slope = weight * (expit(odds) - target)
        return float(weight @ losses), np.array([slope @ standard, slope.sum()])

    start = np.array([1.0, logit(n_labelled / (n_labelled + n_others))])
    bounds = [(0.0, None), (None, None)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    slope = float(found[0] / deviation)
    return slope, float(found[1] - slope * centre)


def calibrate(scores: Vector, labelled: Mask, weight: Vector) -> Vector:
    """Return log-odds of being labelled: Platt scaling of scores that rise with it."""
    slope, offset = platt_scaling(scores, labelled, weight)
    return np.clip(slope * scores + offset, -MOST_LOG_ODDS, MOST_LOG_ODDS)


def summarise(log_odds: Vector, labelled: Mask, weight: Vector) -> Vector:
    """Describe how the log-odds of labelled and of unlabelled rows are distributed.

    Quantiles of both groups, where each quantile lies in the other group, means,
    standard deviations and counts: 67 numbers.
    """
    groups = [_Group.of(log_odds[mask], weight[mask]) for mask in (labelled, ~labelled)]
    quantiles = [group.quantile(_LEVELS) for group in groups]
    lies = [
        _smooth_logit(groups[1 - i].share_below(quantiles[i]), groups[1 - i].count)
        for i in range(2)
    ]
    moments = [number for group in groups for number in (group.mean, group.deviation)]
    counts = [np.log(group.count) for group in groups]
    chance = expit(log_odds)
    # Elkan and Noto's estimate of the labelling rate.
    level = np.average(chance[labelled], weights=weight[labelled])
    return np.concatenate([*quantiles, *lies, moments, counts, [logit(level)]])


class _Group:
    """Weighted values, sorted."""

    def __init__(self, values: Vector, weight: Vector) -> None:
        self.values, self.weight = values, weight
        self.count = float(weight.sum())
        self.mean = float(np.average(values, weights=weight))
        self.deviation = float(
            np.sqrt(np.average((values - self.mean) ** 2, weights=weight))
        )
        # The share below the middle of each value.
        self.position = (np.cumsum(weight) - 0.5 * weight) / self.count

    @classmethod
    def of(cls, values: Vector, weight: Vector) -> _Group:
        order = np.argsort(values, kind="stable")
        return cls(values[order], weight[order])

    def quantile(self, levels: Vector) -> Vector:
        return np.interp(levels, self.position, self.values)

    def share_below(self, values: Vector) -> Vector:
        left = np.searchsorted(self.values, values, side="left")
        right = np.searchsorted(self.values, values, side="right")
        total = np.append(0.0, np.cumsum(self.weight))
        return 0.5 * (total[left] + total[right]) / self.count


def _smooth_logit(share: Vector, count: float) -> Vector:
    """Return log-odds of a share of so many, none of them infinite."""
    return np.asarray(logit((share * count + 0.5) / (count + 1.0)))
