"""The result of kernel mean matching, and its problem as a quadratic programme."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from probgap._core.arrays import Arrays
from probgap._core.output import fact_table, number
from probgap._core.quadratic import Best, Programme
from probgap._core.types import Vector

# A KKT residual this share of the tolerance is as good as a certified duality gap.
_KKT_SHARE = 1e-2


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
    def of(cls, n: int, upper: float, slack: float | None) -> Self:
        """Fill in the default slack, 1 - 1 / sqrt(n)."""
        default = float(1.0 - 1.0 / np.sqrt(n))
        return cls(n, float(upper), default if slack is None else float(slack))

    @property
    def band(self) -> tuple[float, float]:
        """Smallest and largest mean weight that the box and the band allow."""
        return max(0.0, 1.0 - self.slack), min(1.0 + self.slack, self.upper)

    def programme(self, kappa: Vector) -> Programme:
        """State the problem ``w @ K @ w / (2 n) - kappa @ w``.

        It is the squared distance between the two kernel means times ``n / 2``, less the
        part that does not depend on ``w``. In this scale the gradient has entries of order
        one for every ``n``, so that residuals of different problems are comparable.
        """
        zero = np.zeros((self.n, 1))
        low, high = (np.array([self.n * edge]) for edge in self.band)
        return Programme(Arrays(), kappa[:, None], zero, zero + self.upper, low, high)

    def best(self, kappa: Vector, tol: float, unit: float = 1.0) -> Best:
        """Begin to look for weights; ``unit`` is the size of the kernel's diagonal."""
        return Best(self.programme(kappa), tol, _KKT_SHARE * tol * unit)

    def result(
        self, best: Best, solver: str, n_iter: int, gamma: Any, unit: float = 1.0
    ) -> KMMResult:
        """Return what was found."""
        low, high = self.band
        mean = float(best.x.mean())
        return KMMResult(
            weights=best.x[:, 0].copy(),
            objective=2.0 * float(best.objective[0]) / self.n,
            kkt_residual=float(best.kkt_residual[0]) / unit,
            band_slack=max(0.0, min(mean - low, high - mean)),
            n_iter=n_iter,
            converged=bool(best.is_good_enough[0]),
            solver=solver,
            gamma=gamma,
            duality_gap=2.0 * float(best.duality_gap[0]) / self.n,
        )
