"""What is known of a solution: the best weights, and the best bound on the objective."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from probgap._core.types import Vector
from probgap.reweight._problem import Bounds

# A gap that asks for gradients below this share of the KKT residual asked for is out of
# reach. Gradients are then to be somewhat below that residual.
_LEAST_SHARE = 0.1
_KKT_SHARE = 0.6
# Points with a mean this many times the largest feasible one prove nothing.
_FARTHEST = 10.0


@dataclass(frozen=True, slots=True)
class Certified:
    """Feasible weights, and how far from the optimum they can be at most.

    ``witness`` is a point, not a feasible one as a rule, whose tangent proves it.
    """

    weights: Vector
    objective: float
    gap: float
    residual: float
    gain: float
    n_iter: int
    witness: Vector


@dataclass(slots=True)
class Goal:
    """When to stop: ``blur`` is what the kernel at hand may differ from the true one.

    A gap up to the share ``tol`` of the gain will do, and so will a KKT residual of
    ``kkt_tol``. ``blur`` adds to the gap, ``kkt_blur`` to the residual. ``unit`` is the
    size of the kernel's diagonal.
    """

    tol: float
    kkt_tol: float
    unit: float = 1.0
    blur: float = 0.0
    kkt_blur: float = 0.0


@dataclass(slots=True)
class Best:
    """The least objective and the greatest lower bound so far."""

    bounds: Bounds
    kappa: Vector
    goal: Goal
    at_uniform: float
    weights: Vector = field(default_factory=lambda: np.empty(0))
    gradient: Vector = field(default_factory=lambda: np.empty(0))
    witness: Vector = field(default_factory=lambda: np.empty(0))
    objective: float = np.inf
    bound: float = -np.inf

    def see_bound(self, point: Vector, gradient: Vector) -> None:
        # Rounding makes the tangent of a point far away a proof of nothing.
        if np.abs(point).mean() <= _FARTHEST * self.bounds.band[1]:
            bound = lower_bound(self.bounds, point, gradient, self.kappa)
            if bound > self.bound:
                self.bound, self.witness = bound, point

    def see_weights(self, weights: Vector, gradient: Vector) -> None:
        objective = 0.5 * float(weights @ (gradient - self.kappa))
        if objective < self.objective:
            self.weights, self.gradient = weights, gradient
            self.objective = objective

    @property
    def gap(self) -> float:
        return max(self.objective - self.bound, 0.0) + self.goal.blur

    @property
    def gain(self) -> float:
        return self.at_uniform - self.objective

    @property
    def aim(self) -> float:
        """The size that the goal lets a gradient have.

        By the gap, as long as rounding does not matter for it, or else by the KKT
        residual.
        """
        allowed = self.goal.tol * self.gain / self.bounds.n
        if allowed < _LEAST_SHARE * self.goal.kkt_tol:
            return _KKT_SHARE * self.goal.kkt_tol
        return min(allowed, self.goal.kkt_tol)

    @property
    def is_good_enough(self) -> bool:
        """Whether the gap, or else the KKT residual, meets the goal."""
        goal = self.goal
        # Before there is a bound the gap is infinite, and no share of itself.
        if self.gap < np.inf and self.gap <= goal.tol * (self.gain + self.gap):
            return True
        residual = self.bounds.kkt_residual(self.weights, self.gradient)
        return residual + goal.kkt_blur <= goal.kkt_tol

    def certified(self, n_iter: int) -> Certified:
        residual = self.bounds.kkt_residual(self.weights, self.gradient)
        return Certified(
            self.weights,
            self.objective,
            self.gap,
            residual + self.goal.kkt_blur,
            self.gain,
            n_iter,
            self.witness,
        )


def lower_bound(
    bounds: Bounds, point: Vector, gradient: Vector, kappa: Vector
) -> float:
    """Bound the least objective by the tangent at any point, or at a multiple of it.

    Where the gradient is negative and the kernel positive, a slightly larger multiple
    of the point has none, and that can be worth more than it costs.
    """
    product = gradient + kappa
    value = 0.5 * float(point @ product)
    bound = bounds.least(gradient) - value
    if product.min() > 0.0:
        more = max(0.0, float((-gradient / product).max()))
        lifted = bounds.least(gradient + more * product)
        bound = max(bound, lifted - (1.0 + more) ** 2 * value)
    return bound
