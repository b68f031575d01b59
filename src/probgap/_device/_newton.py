"""Directions of the interior point method: where all problems stand, and where to go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from probgap._device._hessian import Hessian
from probgap._device._programme import Programmes
from probgap._device._torch import Tensor

# How much of the way to the nearest bound a step may go.
_SHARE_OF_WAY = 0.99
# Error of the solution for ones, which gives the multiplier of the sum.
_ERROR_OF_LEVEL = 1e-2
_MAX_CG = 100
TINY = 1e-300


@dataclass(slots=True)
class State:
    """Where each problem that is not solved yet stands."""

    x: Tensor
    gradient: Tensor
    below: Tensor  # multipliers of the lower and the upper bounds
    above: Tensor
    level: Tensor  # multiplier of a sum that is given
    band_below: Tensor  # and of a band
    band_above: Tensor

    def only(self, columns: Tensor) -> State:
        return State(*(getattr(self, f.name)[..., columns] for f in fields(self)))


@dataclass(slots=True)
class Slacks:
    """Distances to all bounds, and which of them there are."""

    below: Tensor
    above: Tensor
    band_below: Tensor
    band_above: Tensor
    inside: Tensor
    held: Tensor

    @classmethod
    def of(cls, problems: Programmes, x: Tensor) -> Slacks:
        where = problems.device.xp.where
        inside, held = problems.inside, problems.held
        total = x.sum(dim=0)
        return cls(
            where(inside, x - problems.lower, 1.0),
            where(inside, problems.upper - x, 1.0),
            where(held, 1.0, total - problems.low),
            where(held, 1.0, problems.high - total),
            inside,
            held,
        )

    def mean_product(self, state: State, change: Change | None, way: Any) -> Tensor:
        """Average the products of slacks and multipliers, a way ahead."""
        pairs = [
            (self.below, state.below),
            (self.above, state.above),
            (self.band_below[None], state.band_below[None]),
            (self.band_above[None], state.band_above[None]),
        ]
        total: Any = 0.0
        for k, (slack, multiplier) in enumerate(pairs):
            if change is None:
                total = total + (slack * multiplier).sum(dim=0)
                continue
            by = change.x if k < 2 else change.total[None]
            slack_ahead = slack + (way if k % 2 == 0 else -way) * by
            ahead = multiplier + way * change.multipliers[k]
            total = total + (slack_ahead * ahead).sum(dim=0)
        return total / self._count()

    def _count(self) -> Tensor:
        return 2.0 * self.inside.sum(dim=0) + 2.0 * (~self.held)


@dataclass(slots=True)
class Change:
    """A step: of the variables, their sum, the multipliers, and that of the sum."""

    x: Tensor
    total: Tensor
    multipliers: tuple[Tensor, Tensor, Tensor, Tensor]
    level: Tensor


class Newton:
    """Directions of one step, from one preconditioner."""

    def __init__(
        self,
        hessian: Hessian,
        problems: Programmes,
        state: State,
        slacks: Slacks,
        product: Callable[..., Tensor],
    ) -> None:
        self._problems, self._state, self._slacks = problems, state, slacks
        self._xp = problems.device.xp
        self._ratios = (
            state.below / slacks.below,
            state.above / slacks.above,
            state.band_below / slacks.band_below,
            state.band_above / slacks.band_above,
        )
        diagonal = self._ratios[0] + self._ratios[1]
        self._inverse = hessian.precondition(diagonal, slacks.inside)
        inside, where = slacks.inside[:, :, None], self._xp.where

        # Not a method: a cycle would keep the kernel in memory.
        def times(vectors: Tensor) -> Tensor:
            flat = product(vectors.reshape(vectors.shape[0], -1)).reshape(vectors.shape)
            return where(inside, flat + diagonal[:, :, None] * vectors, 0.0)

        self._times = times
        self._solution: Tensor | None = None
        self._left: Tensor | None = None
        self._right: Tensor | None = None
        self._of_one: Tensor | None = None

    def toward(self, products: Any, error: Tensor) -> Change:
        """Aim at given products of slacks and multipliers."""
        state, slacks, xp = self._state, self._slacks, self._xp
        below, above = products[0] / slacks.below, products[1] / slacks.above
        band = (
            products[2][0] / slacks.band_below,
            products[3][0] / slacks.band_above,
        )
        level = xp.where(slacks.held, state.level, band[1] - band[0])
        right = xp.where(slacks.inside, below - above - state.gradient - level, 0.0)
        solution = self._solve(right, error)
        assert self._of_one is not None  # solved for at the same time
        total, of_one = solution.sum(dim=0), self._of_one.sum(dim=0)
        missing = xp.where(slacks.held, self._problems.high - state.x.sum(dim=0), 0.0)
        ratio = self._ratios[2] + self._ratios[3]
        pull = xp.where(
            slacks.held,
            (total - missing) / of_one.clamp(min=TINY),
            ratio * total / (1.0 + ratio * of_one),
        )
        x = solution - pull * self._of_one
        total = x.sum(dim=0)
        multipliers = (
            xp.where(slacks.inside, below - state.below - self._ratios[0] * x, 0.0),
            xp.where(slacks.inside, above - state.above + self._ratios[1] * x, 0.0),
            xp.where(
                slacks.held, 0.0, band[0] - state.band_below - self._ratios[2] * total
            )[None],
            xp.where(
                slacks.held, 0.0, band[1] - state.band_above + self._ratios[3] * total
            )[None],
        )
        return Change(x, total, multipliers, xp.where(slacks.held, pull, 0.0))

    def _solve(self, right: Tensor, error: Tensor) -> Tensor:
        """Solve, from where the last solution left off; and for ones, the first time."""
        if self._solution is None or self._left is None:
            ones = self._slacks.inside.to(right.dtype)
            both = self._xp.stack([right, ones], dim=2)
            errors = self._xp.stack([error, 0.0 * error + _ERROR_OF_LEVEL], dim=1)
            solution, left = conjugate_gradients(
                self._times, self._inverse, 0.0 * both, both, errors, self._xp
            )
            self._of_one = solution[:, :, 1]
        else:
            left = (self._left + right - self._right)[:, :, None]
            solution, left = conjugate_gradients(
                self._times,
                self._inverse,
                self._solution[:, :, None],
                left,
                error[:, None],
                self._xp,
            )
        self._solution, self._left, self._right = (
            solution[:, :, 0],
            left[:, :, 0],
            right,
        )
        return self._solution

    def way(self, change: Change) -> Tensor:
        """Give how far each problem can go before a slack or a multiplier is zero."""
        state, slacks = self._state, self._slacks
        moves = (
            (-change.x / slacks.below).amax(dim=0),
            (change.x / slacks.above).amax(dim=0),
            self._xp.where(slacks.held, 0.0, -change.total / slacks.band_below),
            self._xp.where(slacks.held, 0.0, change.total / slacks.band_above),
        )
        fall = self._xp.stack(moves).amax(dim=0)
        multipliers = (state.below, state.above, state.band_below, state.band_above)
        for now, by in zip(multipliers, change.multipliers, strict=True):
            relative = -by / now.reshape(by.shape).clamp(min=TINY)
            fall = self._xp.maximum(fall, relative.amax(dim=0))
        return (_SHARE_OF_WAY / fall.clamp(min=_SHARE_OF_WAY)).clamp(max=1.0)


def conjugate_gradients(
    times: Callable[[Tensor], Tensor],
    inverse: Callable[[Tensor], Tensor],
    solution: Tensor,
    residual: Tensor,
    error: Tensor,
    xp: Any,
) -> tuple[Tensor, Tensor]:
    """Solve each column until no entry of its residual is above its error."""
    better = inverse(residual)
    direction = better
    along = (residual * better).sum(dim=0)
    for _ in range(_MAX_CG):
        going = residual.abs().amax(dim=0) > error
        if not bool(going.any()):
            break
        curved = times(direction)
        bend = (direction * curved).sum(dim=0)
        going = going & (bend > 0.0) & (along > 0.0)
        if not bool(going.any()):
            break  # rounding is all that is left
        length = xp.where(going, along / bend.clamp(min=TINY), 0.0)
        solution = solution + length * direction
        residual = residual - length * curved
        better = inverse(residual)
        before, along = along, (residual * better).sum(dim=0)
        turn = xp.where(going, along / before.clamp(min=TINY), 0.0)
        direction = better + turn * direction
    return solution, residual
