"""Quadratic programmes over a box and a band, several at once, and proofs of solutions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from probgap._device._torch import Device, Tensor

# A band narrower than this share of the box has no inside: it is an equation.
_NARROWEST = 1e-9
_BISECTIONS = 100


@dataclass(frozen=True, slots=True)
class Programmes:
    """Minimise ``x H x / 2 - linear x`` over ``lower <= x <= upper`` and a band of sum(x).

    One column for each problem; all have the same H.

    Attributes
    ----------
    device : Device
        Where the arrays are.
    linear, lower, upper : Tensor of shape (n, n_problems)
        Linear term and box. A variable whose bounds are the same is none.
    low, high : Tensor of shape (n_problems,)
        Least and greatest sum.
    reference : Tensor of shape (n_problems,)
        Objective of a plain answer: gaps are judged as shares of what is gained over it.
    """

    device: Device
    linear: Tensor
    lower: Tensor
    upper: Tensor
    low: Tensor
    high: Tensor
    reference: Tensor

    @property
    def inside(self) -> Tensor:
        """Which variables each problem has."""
        return self.upper > self.lower

    @property
    def held(self) -> Tensor:
        """Which problems have a sum that is given."""
        width = (self.upper - self.lower).sum(dim=0)
        return self.high - self.low <= _NARROWEST * width

    def only(self, columns: Tensor) -> Programmes:
        """Keep some problems."""
        names = ("linear", "lower", "upper", "low", "high", "reference")
        return replace(
            self, **{name: getattr(self, name)[..., columns] for name in names}
        )

    def at(self, rows: Tensor) -> Programmes:
        """Keep some variables, of all problems."""
        names = ("linear", "lower", "upper")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def objective(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Give the objective, by the gradient ``H x - linear``."""
        return 0.5 * (x * (gradient - self.linear)).sum(dim=0)

    def least(self, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Give the least product of the gradient with any feasible point.

        That point fills the box in the order of the gradient, as far as the band lets
        it. Also gives minus the gradient where filling stops, the multiplier of a sum
        that is given: the middle, where it stops between two variables.
        """
        xp = self.device.xp
        width = self.upper - self.lower
        ascending, order = gradient.sort(dim=0)
        width = width.gather(0, order)
        filled = width.cumsum(dim=0)
        base = self.lower.sum(dim=0)
        must, may = (
            xp.minimum(filled, edge - base).diff(dim=0, prepend=0.0 * filled[:1])
            for edge in (self.low, self.high)
        )
        fill = xp.where(ascending < 0.0, may, must)
        value = (fill * ascending).sum(dim=0) + (self.lower * gradient).sum(dim=0)
        need = (self.high - base)[None, :]
        tiny = 1e-12 * filled[-1:]
        last = ascending.shape[0] - 1
        ends = [
            (filled < need + shift).sum(dim=0, keepdim=True).clamp_(max=last)
            for shift in (-tiny, tiny)
        ]
        first, second = (ascending.gather(0, end)[0] for end in ends)
        return value, -0.5 * (first + second)

    def gap(self, x: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Bound how far the objective is from the least, by the tangent at x."""
        value, multiplier = self.least(gradient)
        return ((x * gradient).sum(dim=0) - value).clamp(min=0.0), multiplier

    def kkt_residual(self, x: Tensor, gradient: Tensor, multiplier: Tensor) -> Tensor:
        """Measure how far a unit step against the gradient moves, cut to the box."""
        step = x - gradient - multiplier
        there = self.device.xp.minimum(
            self.device.xp.maximum(step, self.lower), self.upper
        )
        return (x - there).abs().amax(dim=0)

    def project(self, x: Tensor) -> Tensor:
        """Put points inside the box and on a sum that is given, by the same shift."""
        xp = self.device.xp
        under = (self.lower - x).amin(dim=0)
        over = (self.upper - x).amax(dim=0)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (under + over)
            moved = xp.minimum(xp.maximum(x + middle, self.lower), self.upper)
            short = moved.sum(dim=0) < self.high
            under, over = (
                xp.where(short, middle, under),
                xp.where(short, over, middle),
            )
        shifted = x + 0.5 * (under + over)
        return xp.minimum(xp.maximum(shifted, self.lower), self.upper)
