"""What weights must satisfy, how good they are known to be, and the result of matching.

Minimise ``w @ K @ w / (2 n) - kappa @ w`` over a box and a band: the squared distance
between the two kernel means times ``n / 2``, less the part that does not depend on ``w``.
In this scale the gradient has entries of order one whatever ``n`` is, so that a residual
means the same on every problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from probgap._core.output import fact_table, number
from probgap._core.types import Vector

# A KKT residual this share of the tolerance is as good as a certified duality gap.
_KKT_SHARE = 1e-2

_BISECTIONS = 100
_EPSILON = float(np.finfo(np.float64).eps)
# A duality gap that asks for gradients below this share of the KKT residual asked for is
# out of reach. Gradients are then to be somewhat below that residual.
_LEAST_SHARE = 0.1
_SHARE_OF_RESIDUAL = 0.6
# Points with a mean this many times the largest feasible one prove nothing.
_FARTHEST = 10.0


@dataclass(frozen=True, slots=True)
class KMMResult:
    """Weights, and the evidence that they solve the problem.

    Attributes
    ----------
    weights : ndarray of shape (n_source,)
        One weight for each source sample, in [0, upper].
    objective : float
        Squared distance between the weighted source mean and the target mean in
        feature space, less the term that depends on the target alone. Of a sample
        matched to itself, where the distance is 0, it is an estimate from 1000 rows.
    kkt_residual : float
        Largest violation of the optimality conditions, in the scale in which the
        gradient of the problem has entries of order one. Zero at a solution.
    band_slack : float
        How far the mean weight is from the nearer edge of its band. Never negative.
    n_iter : int
        Iterations of the solver.
    converged : bool
        Whether the tolerance asked for is met.
    solver : str
        Which solver was used.
    gamma : float or None
        Width of the kernel, where the kernel has one.
    duality_gap : float
        The objective is certainly within this of the least possible one, if the kernel
        is positive semidefinite.
    n_passes, bytes_moved : float
        Products with the whole kernel, of a solver on a device, and the bytes that they
        read or wrote; 0 for others.
    """

    weights: Vector
    objective: float
    kkt_residual: float
    band_slack: float
    n_iter: int
    converged: bool
    solver: str
    gamma: float | None
    duality_gap: float = np.inf
    n_passes: float = 0.0
    bytes_moved: float = 0.0

    @property
    def effective_sample_size(self) -> float:
        """Number of equally weighted samples with the same variance of a mean."""
        total = float(self.weights.sum())
        return total**2 / float(self.weights @ self.weights) if total > 0.0 else 0.0

    def _repr_html_(self) -> str:
        largest = float(self.weights.max(initial=0.0))
        facts = {
            "weights": f"{self.weights.size:,}, largest {number(largest)}",
            "effective sample size": f"{self.effective_sample_size:,.1f}",
            "objective": number(self.objective, 6),
            "duality gap": number(self.duality_gap, 2),
            "KKT residual": number(self.kkt_residual, 2),
            "converged": "yes" if self.converged else "no",
            "solver": f"{self.solver} (iterations: {self.n_iter:,})",
            "kernel width": "none" if self.gamma is None else number(self.gamma),
        }
        return fact_table("Kernel mean matching", facts)


def default_slack(n: int) -> float:
    """Return the usual half-width of the band for the mean of n weights."""
    return float(1.0 - 1.0 / np.sqrt(n))


@dataclass(frozen=True, slots=True)
class Bounds:
    """The box ``0 <= w_i <= upper`` and the band ``|mean(w) - 1| <= slack``."""

    n: int
    upper: float
    slack: float

    @property
    def band(self) -> tuple[float, float]:
        """Least and greatest mean weight that the box and the band allow."""
        return max(0.0, 1.0 - self.slack), min(1.0 + self.slack, self.upper)

    def uniform(self) -> Vector:
        """Return the feasible weights nearest to 1."""
        return self.project(np.ones(self.n))

    def project(self, weights: Vector) -> Vector:
        """Put weights inside the box and the band, moving each by the same shift."""
        low, high = self.band
        clipped = np.clip(weights, 0.0, self.upper)
        mean = float(clipped.mean())
        if low <= mean <= high:
            return clipped
        # The mean of clip(w + t) rises with t from 0 to upper: keep two shifts, one
        # whose mean is under the edge that was crossed and one whose mean is not.
        edge = low if mean < low else high
        under, over = -float(weights.max()), self.upper - float(weights.min())
        for _ in range(_BISECTIONS):
            middle = 0.5 * (under + over)
            if np.clip(weights + middle, 0.0, self.upper).mean() < edge:
                under = middle
            else:
                over = middle
        shift = over if edge == low else under
        return np.clip(weights + shift, 0.0, self.upper)

    def kkt_residual(self, weights: Vector, gradient: Vector) -> float:
        """Measure how far feasible weights are from satisfying the KKT conditions.

        That is how far a unit step against the gradient, cut to the box, moves a weight,
        under the most favourable multiplier of the band: positive only at its upper edge,
        negative only at its lower one. Every move rises with it, so that bisection finds
        the one that balances the largest move against the smallest.
        """

        def moves(multiplier: float) -> Vector:
            step = gradient + multiplier
            return weights - np.clip(weights - step, 0.0, self.upper)

        low, high = self.band
        mean = float(weights.mean())
        edge = 1e-7 * max(1.0, high)
        least = min(-float(gradient.max()), 0.0) if mean <= low + edge else 0.0
        most = max(-float(gradient.min()), 0.0) if mean >= high - edge else 0.0
        for _ in range(_BISECTIONS if least < most else 0):
            middle = 0.5 * (least + most)
            found = moves(middle)
            if found.max() > -found.min():
                most = middle
            else:
                least = middle
        return float(np.abs(moves(0.5 * (least + most))).max())

    def least(self, gradient: Vector) -> float:
        """Return the least product of the gradient with any feasible weights.

        Those weights fill the box in the order of the gradient: all that may go where
        it is negative, no more than must where it is not.
        """
        low, high = self.band
        ascending = np.sort(gradient)
        filled = self.upper * np.arange(self.n + 1)
        must = np.diff(np.minimum(filled, low * self.n))
        may = np.diff(np.minimum(filled, high * self.n))
        return float(np.where(ascending < 0.0, may, must) @ ascending)


@dataclass(slots=True)
class Best:
    """The least objective and the greatest lower bound so far, and when they will do.

    A duality gap up to the share ``share`` of the gain will do, and so will a KKT residual
    of ``kkt_tol``. ``unit`` is the size of the kernel's diagonal. ``blur`` is what the
    kernel at hand may add to the gap, ``kkt_blur`` what it may add to the residual.

    Any point, feasible or not, has a tangent that bounds the least objective: the best
    weights and the best bound may come from different points.
    """

    bounds: Bounds
    kappa: Vector
    share: float
    kkt_tol: float
    unit: float = 1.0
    blur: float = 0.0
    kkt_blur: float = 0.0
    at_uniform: float = np.nan
    weights: Vector = field(init=False)
    gradient: Vector = field(init=False)
    objective: float = np.inf
    bound: float = -np.inf

    @classmethod
    def of(cls, bounds: Bounds, kappa: Vector, tol: float, unit: float = 1.0) -> Best:
        """Begin with nothing, to end at a tolerance."""
        return cls(bounds, kappa, tol, _KKT_SHARE * tol * unit, unit)

    def see_bound(self, point: Vector, gradient: Vector) -> None:
        """Bound the least objective by the tangent at a point, or at a multiple of it.

        Where the gradient is negative and the kernel positive, a slightly larger multiple
        of the point has none, and that can be worth more than it costs.
        """
        # Rounding makes the tangent of a point far away a proof of nothing.
        if np.abs(point).mean() > _FARTHEST * self.bounds.band[1]:
            return
        product = gradient + self.kappa
        value = 0.5 * float(point @ product)
        self.bound = max(self.bound, self.bounds.least(gradient) - value)
        if product.min() > 0.0:
            more = max(0.0, float((-gradient / product).max()))
            lifted = self.bounds.least(gradient + more * product)
            self.bound = max(self.bound, lifted - (1.0 + more) ** 2 * value)

    def see_weights(self, weights: Vector, gradient: Vector) -> None:
        """Keep feasible weights that are better than those before."""
        objective = 0.5 * float(weights @ (gradient - self.kappa))
        if objective < self.objective:
            self.weights, self.gradient = weights, gradient
            self.objective = objective

    def see(self, weights: Vector, gradient: Vector) -> None:
        """Keep feasible weights, and what they prove."""
        self.see_weights(weights, gradient)
        self.see_bound(weights, gradient)

    @property
    def duality_gap(self) -> float:
        """How far the objective can be from the least one at most, up to rounding."""
        rounding = _EPSILON * abs(self.objective)
        return max(self.objective - self.bound, rounding) + self.blur

    @property
    def kkt_residual(self) -> float:
        """How far the weights are from satisfying the KKT conditions."""
        residual = self.bounds.kkt_residual(self.weights, self.gradient)
        return residual + self.kkt_blur

    @property
    def aim(self) -> float:
        """The size that a gradient may have.

        By the duality gap, as long as rounding does not matter for it, or else by the
        KKT residual.
        """
        allowed = self.share * (self.at_uniform - self.objective) / self.bounds.n
        if allowed < _LEAST_SHARE * self.kkt_tol:
            return _SHARE_OF_RESIDUAL * self.kkt_tol
        return min(allowed, self.kkt_tol)

    @property
    def is_good_enough(self) -> bool:
        """Whether the duality gap, or else the KKT residual, is small enough."""
        gap, gain = self.duality_gap, self.at_uniform - self.objective
        # Before there is a bound the gap is infinite, and no share of itself.
        if gap < np.inf and gap <= self.share * (gain + gap):
            return True
        return self.kkt_residual <= self.kkt_tol

    def result(
        self, solver: str, n_iter: int, gamma: float | None, **work: Any
    ) -> KMMResult:
        """Report the weights and what is known of them."""
        low, high = self.bounds.band
        mean = float(self.weights.mean())
        return KMMResult(
            weights=self.weights,
            objective=2.0 * self.objective / self.bounds.n,
            kkt_residual=self.kkt_residual / self.unit,
            band_slack=max(0.0, min(mean - low, high - mean)),
            n_iter=n_iter,
            converged=bool(self.is_good_enough),
            solver=solver,
            gamma=gamma,
            duality_gap=2.0 * self.duality_gap / self.bounds.n,
            **work,
        )
