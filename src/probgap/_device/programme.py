"""Quadratic programmes over a box and a band, several at once, on any array namespace."""

from __future__ import annotations

from dataclasses import dataclass, replace

from probgap._device.arrays import Arrays, Tensor

# A band narrower than this share of the box is treated as an equality constraint.
_NARROWEST = 1e-9
_BISECTIONS = 100
TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Programmes:
    """Minimise ``x H x / 2 - linear x`` over ``lower <= x <= upper`` and a band of sum(x).

    One column for each problem; all have the same H. A variable with equal bounds is fixed.
    ``low`` and ``high`` bound the sum. ``reference`` is the objective of a trivial
    solution: duality gaps are measured relative to the gain over it.
    """

    device: Arrays
    linear: Tensor
    lower: Tensor
    upper: Tensor
    low: Tensor
    high: Tensor
    reference: Tensor

    @property
    def inside(self) -> Tensor:
        return self.upper > self.lower

    @property
    def sum_is_given(self) -> Tensor:
        """Which problems have an equality constraint on the sum."""
        width = (self.upper - self.lower).sum(axis=0)
        return self.high - self.low <= _NARROWEST * width

    @property
    def exists(self) -> Tensor:
        """Which inequality constraints exist, in the order of ``slacks``."""
        inside, band = self.inside, ~self.sum_is_given[None]
        return self.device.xp.concatenate([inside, inside, band, band])

    def slacks(self, x: Tensor) -> Tensor:
        """Return the distances to lower and upper bounds and both edges of the band."""
        xp, total = self.device.xp, x.sum(axis=0)[None]
        edges = [total - self.low, self.high - total]
        slacks = xp.concatenate([x - self.lower, self.upper - x, *edges])
        return xp.where(self.exists, slacks, 1.0)

    def only(self, columns: Tensor) -> Programmes:
        names = ("linear", "lower", "upper", "low", "high", "reference")
        kept = {name: getattr(self, name)[..., columns] for name in names}
        return replace(self, **kept)

    def at(self, rows: Tensor) -> Programmes:
        names = ("linear", "lower", "upper")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def objective(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Return the objective, given the gradient ``H x - linear``."""
        return 0.5 * (x * (gradient - self.linear)).sum(axis=0)

    def least(self, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Minimise the product of the gradient with feasible points.

        The minimiser fills the box in ascending order of the gradient, as far as the band
        allows. Also returns minus the gradient where filling stops, the multiplier of an
        equality constraint: the midpoint, if it stops between two variables.
        """
        xp, take = self.device.xp, self.device.take_along
        order = xp.argsort(gradient, axis=0)
        ascending = take(gradient, order)
        filled = xp.cumsum(take(self.upper - self.lower, order), axis=0)
        base = self.lower.sum(axis=0)
        must, may = (
            xp.diff(xp.minimum(filled, edge - base), axis=0, prepend=0.0 * filled[:1])
            for edge in (self.low, self.high)
        )
        fill = xp.where(ascending < 0.0, may, must)
        value = (fill * ascending).sum(axis=0) + (self.lower * gradient).sum(axis=0)
        need = (self.high - base)[None, :]
        tiny = 1e-12 * filled[-1:]
        last = ascending.shape[0] - 1
        ends = [
            xp.clip((filled < need + shift).sum(axis=0)[None], 0, last)
            for shift in (-tiny, tiny)
        ]
        first, second = (take(ascending, end)[0] for end in ends)
        return value, -0.5 * (first + second)

    def duality_gap(self, x: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Bound the distance to the optimum by the tangent at x; also the multiplier."""
        value, multiplier = self.least(gradient)
        gap = (x * gradient).sum(axis=0) - value
        return self.device.xp.clip(gap, 0.0, None), multiplier

    def relative_gap(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Return the duality gap as a share of the possible gain over the reference."""
        gap, _multiplier = self.duality_gap(x, gradient)
        gain = self.reference - self.objective(x, gradient)
        return gap / self.device.xp.clip(gain + gap, TINY, None)

    def kkt_residual(self, x: Tensor, gradient: Tensor, multiplier: Tensor) -> Tensor:
        """Return the largest move of a variable in a projected unit gradient step."""
        xp = self.device.xp
        there = xp.clip(x - gradient - multiplier, self.lower, self.upper)
        return xp.amax(xp.abs(x - there), axis=0)

    def project(self, x: Tensor) -> Tensor:
        """Project points to the box and the equality constraint, by a common shift."""
        xp = self.device.xp
        under = xp.amin(self.lower - x, axis=0)
        over = xp.amax(self.upper - x, axis=0)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (under + over)
            short = xp.clip(x + middle, self.lower, self.upper).sum(axis=0) < self.high
            under = xp.where(short, middle, under)
            over = xp.where(short, over, middle)
        return xp.clip(x + 0.5 * (under + over), self.lower, self.upper)
