"""The constraints of kernel mean matching, optimality certificates, and the result.

The problem is to minimise ``w @ K @ w / (2 n) - kappa @ w`` over a box and a band: the
squared distance between the two kernel means times ``n / 2``, less the part that does not
depend on ``w``. In this scale the gradient has entries of order one for every ``n``, so that
residuals of different problems are comparable.
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
# If the duality gap would need gradients below this share of the KKT tolerance, it is out of
# reach; gradients then aim at the second share of that tolerance.
_LEAST_SHARE = 0.1
_SHARE_OF_RESIDUAL = 0.6
# Points with a mean this many times the largest feasible one give no usable bound.
_FARTHEST = 10.0


@dataclass(frozen=True, slots=True)
class KMMResult:
    """Weights, and certificates of their optimality.

    Attributes
    ----------
    weights : ndarray of shape (n_source,)
        One weight for each source sample, in [0, upper].
    objective : float
        Squared distance between the weighted source mean and the target mean in
        feature space, less the term that depends on the target alone. If a sample is
        matched to itself, it is estimated from 1000 rows.
    kkt_residual : float
        Largest violation of the optimality conditions, for a gradient with entries of
        order one. Zero at a solution.
    band_slack : float
        How far the mean weight is from the nearer edge of its band.
    n_iter : int
        Iterations of the solver.
    converged : bool
        Whether the tolerance is met.
    solver : str
        Which solver was used.
    gamma : float or None
        Width of the kernel, where it has one.
    duality_gap : float
        Upper bound of the distance to the optimal objective, if the kernel is positive
        semidefinite.
    n_passes, bytes_moved : float
        Number of products with the whole kernel, and bytes that they read or wrote, on a
        device; 0 otherwise.
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
        """Number of equally weighted samples whose mean has the same variance."""
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """The box ``0 <= w_i <= upper`` and the band ``|mean(w) - 1| <= slack``."""

    n: int
    upper: float
    slack: float

    @classmethod
    def of(cls, n: int, upper: float, slack: float | None) -> Bounds:
        """Fill in the default slack, 1 - 1 / sqrt(n)."""
        default = float(1.0 - 1.0 / np.sqrt(n))
        return cls(n, float(upper), default if slack is None else float(slack))

    @property
    def band(self) -> tuple[float, float]:
        """Smallest and largest mean weight that the box and the band allow."""
        return max(0.0, 1.0 - self.slack), min(1.0 + self.slack, self.upper)

    def uniform(self) -> Vector:
        """Return the feasible weights nearest to 1."""
        return self.project(np.ones(self.n))

    def project(self, weights: Vector) -> Vector:
        """Project weights to box and band: shift all by the same amount, and clip."""
        low, high = self.band
        clipped = np.clip(weights, 0.0, self.upper)
        mean = float(clipped.mean())
        if low <= mean <= high:
            return clipped
        # The mean of clip(w + t) rises with t: bisect for the edge that was crossed.
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
        """Return the largest move of a feasible weight in a projected unit gradient step.

        The multiplier of the band is the most favourable one: positive only at its upper
        edge, negative only at its lower one. All moves increase with it, so that bisection
        finds the one that balances the largest move against the smallest.
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
        """Minimise the product of the gradient with feasible weights.

        The minimiser fills the box in ascending order of the gradient: as far as the band
        allows where it is negative, as far as it requires elsewhere.
        """
        low, high = self.band
        ascending = np.sort(gradient)
        filled = self.upper * np.arange(self.n + 1)
        must = np.diff(np.minimum(filled, low * self.n))
        may = np.diff(np.minimum(filled, high * self.n))
        return float(np.where(ascending < 0.0, may, must) @ ascending)


@dataclass(slots=True)
class Best:
    """The best weights and the best lower bound so far, and the stopping criterion.

    A duality gap of ``share`` times the gain over uniform weights is good enough, or a KKT
    residual of ``kkt_tol``. ``unit`` is the size of the kernel's diagonal. ``gap_error`` and
    ``kkt_error`` bound what an approximation of the kernel adds to gap and residual.

    The tangent at any point, feasible or not, bounds the optimal objective from below: the
    best weights and the best bound may come from different points.
    """

    bounds: Bounds
    kappa: Vector
    share: float
    kkt_tol: float
    unit: float = 1.0
    gap_error: float = 0.0
    kkt_error: float = 0.0
    at_uniform: float = np.nan
    weights: Vector = field(init=False)
    gradient: Vector = field(init=False)
    objective: float = np.inf
    bound: float = -np.inf

    @classmethod
    def of(cls, bounds: Bounds, kappa: Vector, tol: float, unit: float = 1.0) -> Best:
        return cls(bounds, kappa, tol, _KKT_SHARE * tol * unit, unit)

    def update_bound(self, point: Vector, gradient: Vector) -> None:
        """Bound the optimal objective by the tangent at a point, or at a multiple of it.

        If the kernel is positive, the gradient at a slightly larger multiple of the point
        has no negative entries, which can improve the bound.
        """
        # Far from the feasible set, rounding spoils the bound.
        if np.abs(point).mean() > _FARTHEST * self.bounds.band[1]:
            return
        product = gradient + self.kappa
        value = 0.5 * float(point @ product)
        self.bound = max(self.bound, self.bounds.least(gradient) - value)
        if product.min() > 0.0:
            more = max(0.0, float((-gradient / product).max()))
            lifted = self.bounds.least(gradient + more * product)
            self.bound = max(self.bound, lifted - (1.0 + more) ** 2 * value)

    def update_weights(self, weights: Vector, gradient: Vector) -> None:
        """Keep feasible weights if they are the best so far."""
        objective = 0.5 * float(weights @ (gradient - self.kappa))
        if objective < self.objective:
            self.weights, self.gradient = weights, gradient
            self.objective = objective

    def update(self, weights: Vector, gradient: Vector) -> None:
        """Update weights and bound by feasible weights."""
        self.update_weights(weights, gradient)
        self.update_bound(weights, gradient)

    @property
    def duality_gap(self) -> float:
        """Upper bound of the distance to the optimal objective, up to rounding."""
        rounding = _EPSILON * abs(self.objective)
        return max(self.objective - self.bound, rounding) + self.gap_error

    @property
    def kkt_residual(self) -> float:
        """How far the weights are from satisfying the KKT conditions."""
        residual = self.bounds.kkt_residual(self.weights, self.gradient)
        return residual + self.kkt_error

    @property
    def aim(self) -> float:
        """Gradient of free weights that the duality gap or else the KKT residual allows."""
        allowed = self.share * (self.at_uniform - self.objective) / self.bounds.n
        if allowed < _LEAST_SHARE * self.kkt_tol:
            return _SHARE_OF_RESIDUAL * self.kkt_tol
        return min(allowed, self.kkt_tol)

    @property
    def is_good_enough(self) -> bool:
        """Whether the duality gap, or else the KKT residual, is small enough."""
        gap, gain = self.duality_gap, self.at_uniform - self.objective
        # Without a bound the gap is infinite, and inf <= inf must not count.
        if gap < np.inf and gap <= self.share * (gain + gap):
            return True
        return self.kkt_residual <= self.kkt_tol

    def result(
        self, solver: str, n_iter: int, gamma: float | None, **work: Any
    ) -> KMMResult:
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
