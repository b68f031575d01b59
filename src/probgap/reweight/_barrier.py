"""An interior point method that needs no more than products with the kernel.

Weights stay strictly inside their bounds and approach them as fast as the gap closes
(predictor and corrector, after Mehrotra, 1992). Each step solves two systems with the
kernel and a positive diagonal, by conjugate gradients, preconditioned by a low-rank
factor; where the factor is the kernel, these take one iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from probgap._core.types import Vector
from probgap.reweight._certificate import Best
from probgap.reweight._conjugate import KernelSystem
from probgap.reweight._problem import RIDGE, Bounds

# Products of slacks and multipliers are to fall to this share within so many steps, or
# rounding is all that is left.
_SLOWEST = 0.7
_PATIENCE = 6
# Less than this is rounding, too.
_LEAST_SLACK = 1e-100
# Products of slacks and multipliers that are this small promise nothing but rounding.
_LEAST_MEAN = 1e-20
# How much of the way to the nearest bound a step may go.
_SHARE_OF_WAY = 0.99
# A band narrower than this has no inside: it is an equation.
_NARROWEST = 1e-6
# Error of a system, as a share of the mean product of slacks and multipliers.
_ERROR = 0.1


@dataclass(slots=True)
class _Pairs:
    """Slacks and multipliers of all bounds: zero, upper, and the band if it is one."""

    slack: Vector
    multiplier: Vector

    @property
    def mean(self) -> float:
        return float(self.slack @ self.multiplier) / self.slack.size


def follow_barrier(system: KernelSystem, best: Best) -> int:
    """Close the gap from the middle of the bounds.

    What is found is left in ``best``. Gives the number of steps.
    """
    bounds, kappa = best.bounds, best.kappa
    n = bounds.n
    low, high = bounds.band
    if bounds.upper <= low:
        return 0
    weights = np.full(n, min(max(1.0, 0.9 * low + 0.1 * high), 0.1 * low + 0.9 * high))
    gradient = system.kernel.product(weights, careful=True) / n - kappa
    pairs = _first_pairs(bounds, weights, gradient)
    steps = 0
    past = [np.inf] * _PATIENCE
    while (
        not best.is_good_enough
        and _LEAST_MEAN < pairs.mean < past[-_PATIENCE]
        and pairs.slack.min() > _LEAST_SLACK
    ):
        steps += 1
        past.append(_SLOWEST * pairs.mean)
        change, changes = _direction(system, gradient, pairs)
        weights = weights + change
        pairs = _Pairs(_slacks(bounds, weights), pairs.multiplier + changes)
        gradient = system.kernel.product(weights, careful=True) / n - kappa
        best.see_bound(weights, gradient)
        feasible = bounds.project(weights)
        of_feasible = gradient
        if (feasible != weights).any():
            of_feasible = system.kernel.product(feasible, careful=True) / n - kappa
        best.see_weights(feasible, of_feasible)
    return steps


def _slacks(bounds: Bounds, weights: Vector) -> Vector:
    low, high = bounds.band
    total = float(weights.sum())
    edges = [total - bounds.n * low, bounds.n * high - total]
    if high - low < _NARROWEST:
        edges = []
    return np.concatenate([weights, bounds.upper - weights, edges])


def _first_pairs(bounds: Bounds, weights: Vector, gradient: Vector) -> _Pairs:
    """Give all multipliers, so that products with slacks are about the same."""
    slack = _slacks(bounds, weights)
    multiplier = (float(np.abs(gradient).mean()) + RIDGE) / slack
    multiplier[: bounds.n] += np.maximum(gradient, 0.0)
    return _Pairs(slack, multiplier)


def _direction(
    system: KernelSystem, gradient: Vector, pairs: _Pairs
) -> tuple[Vector, Vector]:
    """Give the change of the weights, and that of the multipliers."""
    n = gradient.size
    ratio = pairs.multiplier / pairs.slack
    diagonal = n * (ratio[:n] + ratio[n : 2 * n] + RIDGE)
    inverse = system.precondition(diagonal, n * float(ratio[2 * n :].sum()))
    mean = pairs.mean
    level = None
    if pairs.slack.size == 2 * n:
        level = system.solve(np.ones(n), diagonal, inverse, _ERROR * 1e-2)

    def toward(product: Vector, error: float) -> tuple[Vector, Vector, float]:
        force = product / pairs.slack
        of_band = float(force[2 * n : -1].sum() - force[2 * n + 1 :].sum())
        right = force[:n] - force[n : 2 * n] + of_band - gradient
        change = system.solve(n * right, diagonal, inverse, n * error)
        if level is not None:
            change -= (float(change.sum()) / float(level.sum())) * level
        total = float(change.sum())
        slacks = np.concatenate([change, -change, [total, -total]])
        slacks = slacks[: pairs.slack.size]
        multipliers = force - pairs.multiplier - ratio * slacks
        length = min(_way(pairs.slack, slacks), _way(pairs.multiplier, multipliers))
        return slacks, multipliers, length

    slacks, multipliers, length = toward(np.zeros_like(ratio), _ERROR * mean)
    ahead = _Pairs(
        pairs.slack + length * slacks, pairs.multiplier + length * multipliers
    )
    centring = mean * (ahead.mean / mean) ** 3
    slacks, multipliers, length = toward(
        centring - slacks * multipliers, _ERROR * max(centring, _ERROR * mean)
    )
    length = min(1.0, _SHARE_OF_WAY * length)
    return length * slacks[:n], length * multipliers


def _way(values: Vector, changes: Vector) -> float:
    """Give how often the changes fit before a value is zero, at most about once."""
    return float(1.0 / max(_SHARE_OF_WAY, (-changes / values).max()))
