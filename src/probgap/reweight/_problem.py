"""The quadratic programme of kernel mean matching, and the judge of its solutions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_BISECTIONS = 100


@dataclass(frozen=True, slots=True)
class MatchingProblem:
    """Minimise ``w @ K @ w / (2 n) - kappa @ w`` over a box and a band.

    The box is ``0 <= w_i <= upper``, the band ``|mean(w) - 1| <= slack``. This is the
    squared distance between the two kernel means times ``n / 2``, less the part that
    does not depend on ``w``. In this scale the gradient has entries of order one
    whatever ``n`` is, so that a residual means the same on every problem.

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
    ridge: float = 1e-9

    @property
    def n(self) -> int:
        """Number of weights."""
        return self.kappa.size

    @property
    def band(self) -> tuple[float, float]:
        """Least and greatest mean weight that the box and the band allow."""
        return max(0.0, 1.0 - self.slack), min(1.0 + self.slack, self.upper)

    def gradient(self, weights: Vector) -> Vector:
        """Gradient of the objective."""
        product: Vector = self.kernel @ weights
        return product / self.n - self.kappa

    def squared_distance(self, weights: Vector) -> float:
        """Squared distance of the two means, less the target's own constant term."""
        return float(weights @ (self.gradient(weights) - self.kappa)) / self.n

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

    def kkt_residual(self, weights: Vector) -> float:
        """Measure how far feasible weights are from satisfying the KKT conditions.

        Each weight is compared with the one that a unit step against the gradient,
        cut to the box, would give, under the most favourable multiplier of the band.
        Zero at a solution, and only there.
        """
        gradient = self.gradient(weights)
        multiplier = self._band_multiplier(weights, gradient)
        return float(np.abs(self._move(weights, gradient + multiplier)).max())

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
        for _ in range(_BISECTIONS):
            middle = 0.5 * (least + greatest)
            moves = self._move(weights, gradient + middle)
            if moves.max() > -moves.min():
                greatest = middle
            else:
                least = middle
        return 0.5 * (least + greatest)
