"""The quadratic programme of kernel mean matching, and the judge of its solutions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Mask, Vector

_BISECTIONS = 100
RIDGE = 1e-9


def default_slack(n: int) -> float:
    """Give the usual half-width of the band for the mean of n weights."""
    return float(1.0 - 1.0 / np.sqrt(n))


@dataclass(frozen=True, slots=True)
class Bounds:
    """The box ``0 <= w_i <= upper`` and the band ``|mean(w) - 1| <= slack``.

    Attributes
    ----------
    n : int
        Number of weights.
    upper, slack : float
        The paper's B and epsilon.
    """

    n: int
    upper: float
    slack: float

    @property
    def band(self) -> tuple[float, float]:
        """Least and greatest mean weight that the box and the band allow."""
        return max(0.0, 1.0 - self.slack), min(1.0 + self.slack, self.upper)

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

        Each weight is compared with the one that a unit step against the gradient,
        cut to the box, would give, under the most favourable multiplier of the band.
        Zero at a solution, and only there.
        """
        multiplier = self._band_multiplier(weights, gradient)
        return float(np.abs(self._move(weights, gradient + multiplier)).max())

    def least(self, gradient: Vector) -> float:
        """Give the least product of the gradient with any feasible weights.

        Those weights fill the box in the order of the gradient, as far as the band
        lets them.
        """
        low, high = self.band
        ascending = np.sort(gradient)
        filled = self.upper * np.arange(self.n + 1)
        # How much total weight goes to each sample, in that order: all that may go
        # where the gradient is negative, no more than must where it is not.
        must = np.diff(np.minimum(filled, low * self.n))
        may = np.diff(np.minimum(filled, high * self.n))
        return float(np.where(ascending < 0.0, may, must) @ ascending)

    def _move(self, weights: Vector, step: Vector) -> Vector:
        return weights - np.clip(weights - step, 0.0, self.upper)

    def _band_multiplier(self, weights: Vector, gradient: Vector) -> float:
        """Find the admissible multiplier that leaves the least residual.

        It may be positive only at the upper edge of the band, negative only at the
        lower one. Every move rises with it, so the best one balances the largest
        move against the smallest, and bisection finds it.
        """
        low, high = self.band
        mean = float(weights.mean())
        edge = 1e-7 * max(1.0, high)
        least = -float(gradient.max()) if mean <= low + edge else 0.0
        greatest = -float(gradient.min()) if mean >= high - edge else 0.0
        least, greatest = min(least, 0.0), max(greatest, 0.0)
        if least == greatest:
            return least
        for _ in range(_BISECTIONS):
            middle = 0.5 * (least + greatest)
            moves = self._move(weights, gradient + middle)
            if moves.max() > -moves.min():
                greatest = middle
            else:
                least = middle
        return 0.5 * (least + greatest)


@dataclass(frozen=True, slots=True)
class MatchingProblem:
    """Minimise ``w @ K @ w / (2 n) - kappa @ w`` over a box and a band.

    This is the squared distance between the two kernel means times ``n / 2``, less the
    part that does not depend on ``w``. In this scale the gradient has entries of order
    one whatever ``n`` is, so that a residual means the same on every problem.

    A flat kernel leaves the weights undetermined along directions that do not change
    the objective. ``ridge * |w - 1|**2 / 2`` is added, far below any tolerance, to
    single out the solution nearest to uniform weights.

    Attributes
    ----------
    kernel : ndarray of shape (n, n)
        Kernel matrix K of the source.
    kappa : ndarray of shape (n,)
        Mean kernel value between each source sample and the target.
    upper, slack : float
        The paper's B and epsilon.
    """

    kernel: NDArray[np.float64]
    kappa: Vector
    upper: float
    slack: float
    ridge: float = RIDGE

    @property
    def n(self) -> int:
        """Number of weights."""
        return self.kappa.size

    @property
    def bounds(self) -> Bounds:
        """What the weights must satisfy."""
        return Bounds(self.n, self.upper, self.slack)

    def gradient(self, weights: Vector) -> Vector:
        """Gradient of the objective."""
        product: Vector = self.kernel @ weights
        return product / self.n - self.kappa

    def kkt_residual(self, weights: Vector) -> float:
        """Measure how far feasible weights are from satisfying the KKT conditions."""
        return self.bounds.kkt_residual(weights, self.gradient(weights))


@dataclass(frozen=True, slots=True)
class MatchingBatch:
    """Several problems: subsets of the same samples, each to match the same target.

    Attributes
    ----------
    kernel : ndarray of shape (n, n)
        Kernel matrix of all samples.
    kappa : ndarray of shape (n,)
        Mean kernel value between each sample and the target.
    chosen : ndarray of shape (n_problems, n)
        The samples that each problem may give weight to.
    upper : float
        The paper's B.
    slack : float or None
        The paper's epsilon; None for 1 - 1 / sqrt of the number of weights.
    n_target : int
        Number of samples in the target.
    """

    kernel: NDArray[np.float64]
    kappa: Vector
    chosen: Mask
    upper: float
    slack: float | None
    n_target: int

    @property
    def ridge(self) -> float:
        """The pull towards uniform weights, in units of their sum: ``u = w / n``.

        It goes by the size of the target, which problems share, so that a problem has
        the same answer by itself and in a batch. A target much larger than the source
        must not make it larger than what it is to stay below.
        """
        return RIDGE * min(self.n_target, 2 * self.kappa.size)

    def bounds(self, j: int) -> Bounds:
        """Bounds of the j-th problem."""
        n = int(np.count_nonzero(self.chosen[j]))
        return Bounds(
            n, self.upper, default_slack(n) if self.slack is None else self.slack
        )

    def problem(self, j: int) -> MatchingProblem:
        """State the j-th problem by itself."""
        chosen, bounds = self.chosen[j], self.bounds(j)
        kernel = self.kernel
        if not chosen.all():
            kernel = kernel[np.ix_(chosen, chosen)]
        return MatchingProblem(
            kernel,
            self.kappa[chosen],
            self.upper,
            bounds.slack,
            ridge=self.ridge / bounds.n,
        )
