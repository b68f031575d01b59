"""An interior point method for quadratic programmes, on numpy or torch arrays.

Mehrotra's predictor-corrector method (1992), for several problems with the same Hessian at
once: a product with one column for each reads the kernel once. Systems with the Hessian and
a positive diagonal are solved by conjugate gradients, preconditioned by a low-rank factor.
The first steps, far from the solution, use the factor in place of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from probgap._core.types import Mask, Vector
from probgap._device.arrays import Arrays, Tensor

_MAX_STEPS = 60
_MAX_CG = 100
# The factor replaces the kernel until the duality gap is this share of the gain, or has
# fallen to this share of the first.
_THIN_SHARE = 0.1
_THIN_FALL = 0.01
_MAX_THIN_STEPS = 25
# Stop at steps shorter than this; a step goes this share of the way to a bound.
_SHORTEST = 1e-7
_SHARE_OF_WAY = 0.99
# Error of a system, relative to the mean product of slacks and multipliers over the mean
# variable; and that of the system for ones, which gives the multiplier of the sum.
_ERROR = 0.1
_ERROR_OF_ONES = 1e-2
# A band narrower than this share of the box is treated as an equality constraint.
_NARROWEST = 1e-9
_BISECTIONS = 100
_TINY = 1e-300


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
        return gap / self.device.xp.clip(gain + gap, _TINY, None)

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


class State(NamedTuple):
    """The iterates of all problems; multipliers in the order of ``Programmes.slacks``."""

    x: Tensor
    gradient: Tensor
    multipliers: Tensor
    level: Tensor  # multiplier of an equality constraint on the sum

    def only(self, columns: Any) -> State:
        return State(*(part[..., columns] for part in self))


def follow_barrier(
    hessian: Any,
    problems: Programmes,
    start: Tensor,
    is_solved: Callable[[Tensor, Programmes, State], Tensor],
    *,
    max_steps: int = _MAX_STEPS,
) -> int:
    """Solve all problems from strictly feasible points; return the number of steps.

    ``hessian`` has ``product(vectors, careful)``, ``thin_product(vectors)`` with the factor
    in place of the kernel, and ``precondition(diagonal, inside)``, which inverts the sum of
    the latter and a diagonal for each problem. ``is_solved`` gets the indices of the
    remaining problems, these problems and their state, and returns which are solved.
    """
    device = problems.device
    state = _begin(hessian, problems, start)
    active = device.true_rows(problems.low == problems.low)
    steps = 0
    while True:
        keep = device.true_rows(~is_solved(active, problems, state))
        if keep.shape[0] == 0 or steps >= max_steps:
            return steps
        if keep.shape[0] < active.shape[0]:
            active, problems = active[keep], problems.only(keep)
            state = state.only(keep)
        state, lengths = _step(hessian, problems, state, hessian.product)
        steps += 1
        if bool((lengths < _SHORTEST).all()):
            max_steps = steps


def _begin(hessian: Any, problems: Programmes, start: Tensor) -> State:
    """Take the first steps with the factor in place of the kernel."""
    where = problems.device.xp.where

    def thin_product(vectors: Tensor, **_: Any) -> Tensor:
        return hessian.thin_product(vectors)

    state = _first_state(problems, start, thin_product(start) - problems.linear)
    first, _level = problems.duality_gap(state.x, state.gradient)
    for _ in range(_MAX_THIN_STEPS):
        gap, _level = problems.duality_gap(state.x, state.gradient)
        gain = problems.reference - problems.objective(state.x, state.gradient)
        # The gain may be negative, as the factor only approximates the kernel.
        far = (gap > _THIN_SHARE * (gain + gap)) & (gap > _THIN_FALL * first)
        if not bool(far.any()):
            break
        moved, _lengths = _step(hessian, problems, state, thin_product)
        both = zip(moved, state, strict=True)
        state = State(*(where(far, there, here) for there, here in both))
    gradient = hessian.product(state.x, careful=True) - problems.linear
    return state._replace(gradient=gradient)


def _first_state(problems: Programmes, x: Tensor, gradient: Tensor) -> State:
    """Choose multipliers whose products with the slacks are about equal."""
    xp, n = problems.device.xp, x.shape[0]
    slacks, exists = problems.slacks(x), problems.exists
    _gap, level = problems.duality_gap(x, gradient)
    level = xp.where(problems.sum_is_given, level, 0.0)
    slope = gradient + level
    nearest = xp.minimum(slacks[:n], slacks[n:-2])
    inside = problems.inside
    count = xp.clip(inside.sum(axis=0), 1, None)
    unit = (inside * nearest * xp.abs(slope)).sum(axis=0) / count + _TINY
    multipliers = xp.where(exists, unit / slacks, 0.0)
    multipliers[:n] += xp.where(inside, xp.clip(slope, 0.0, None), 0.0)
    multipliers[n:-2] += xp.where(inside, xp.clip(-slope, 0.0, None), 0.0)
    return State(x, gradient, multipliers, level)


def _step(
    hessian: Any, problems: Programmes, state: State, product: Callable[..., Tensor]
) -> tuple[State, Tensor]:
    """Take a step in all problems; also return the step lengths."""
    xp = problems.device.xp
    newton = _Newton(hessian, problems, state, product)
    count = problems.exists.sum(axis=0)
    mean = (newton.slacks * state.multipliers).sum(axis=0) / count
    size = xp.clip(xp.abs(state.x).sum(axis=0), _TINY, None)
    error = _ERROR * mean * xp.clip(problems.inside.sum(axis=0), 1, None) / size
    slacks, ahead, way = newton.toward(0.0 * newton.slacks, error)
    there = newton.slacks + way * slacks
    there = (there * (state.multipliers + way * ahead.multipliers)).sum(axis=0) / count
    centring = mean * xp.clip(there / mean, 0.0, 1.0) ** 3
    _slacks, change, way = newton.toward(
        centring - slacks * ahead.multipliers,
        error * xp.clip(centring / mean, _ERROR, None),
    )
    # At the limits of precision the direction may not be finite: stay.
    sound = xp.isfinite(change.x.sum(axis=0) + way)
    x, multipliers, level = (
        xp.where(sound, now + way * by, now)
        for now, by in (
            (state.x, change.x),
            (state.multipliers, change.multipliers),
            (state.level, change.level),
        )
    )
    gradient = product(x, careful=True) - problems.linear
    return State(x, gradient, multipliers, level), xp.where(sound, way, 0.0)


class _Newton:
    """The Newton directions of one step, which share a preconditioner."""

    def __init__(
        self,
        hessian: Any,
        problems: Programmes,
        state: State,
        product: Callable[..., Tensor],
    ) -> None:
        self._problems, self._state, self._xp = problems, state, problems.device.xp
        self._inside, self._given = problems.inside, problems.sum_is_given
        self._exists, self.slacks = problems.exists, problems.slacks(state.x)
        self._ratio = state.multipliers / self.slacks
        n = state.x.shape[0]
        diagonal = self._ratio[:n] + self._ratio[n:-2]
        self._inverse = hessian.precondition(diagonal, self._inside)
        inside, where = self._inside[:, :, None], self._xp.where

        # Not a method: a reference cycle would keep the kernel in memory.
        def times(vectors: Tensor) -> Tensor:
            flat = product(vectors.reshape(n, -1)).reshape(vectors.shape)
            return where(inside, flat + diagonal[:, :, None] * vectors, 0.0)

        self._times = times
        self._solved: tuple[Tensor, Tensor, Tensor] | None = None
        self._of_ones: Tensor = None

    def toward(self, products: Tensor, error: Tensor) -> tuple[Tensor, State, Tensor]:
        """Move towards given products of slacks and multipliers.

        Returns the changes of slacks and of the state, and the step length.
        """
        state, xp, n = self._state, self._xp, self._state.x.shape[0]
        force = xp.where(self._exists, products / self.slacks, 0.0)
        band = state.multipliers[-1] - state.multipliers[-2]
        level = xp.where(self._given, state.level, band)
        right = force[:n] - force[n:-2] - state.gradient - level
        solution = self._solve(xp.where(self._inside, right, 0.0), error)
        total, of_ones = solution.sum(axis=0), self._of_ones.sum(axis=0)
        missing = self._problems.high - state.x.sum(axis=0)
        ratio = self._ratio[-1] + self._ratio[-2]
        # The change of the level: it vanishes at the solution, and with it the error that
        # the system for ones leaves.
        pull = xp.where(
            self._given,
            (total - missing) / xp.clip(of_ones, _TINY, None),
            (ratio * total + force[-1] - force[-2] - band) / (1.0 + ratio * of_ones),
        )
        x = solution - pull * self._of_ones
        total = x.sum(axis=0)[None]
        slacks = xp.concatenate([x, -x, total, -total])
        slacks = xp.where(self._exists, slacks, 0.0)
        multipliers = force - state.multipliers - self._ratio * slacks
        multipliers = xp.where(self._exists, multipliers, 0.0)
        fall = xp.maximum(
            xp.amax(-slacks / self.slacks, axis=0),
            xp.amax(-multipliers / xp.clip(state.multipliers, _TINY, None), axis=0),
        )
        way = _SHARE_OF_WAY / xp.clip(fall, _SHARE_OF_WAY, None)
        level = xp.where(self._given, pull, 0.0)
        return slacks, State(x, None, multipliers, level), way

    def _solve(self, right: Tensor, error: Tensor) -> Tensor:
        """Solve, starting from the last solution; the first time, also for ones."""
        if self._solved is None:
            residual = self._xp.stack([right, 1.0 * self._inside], axis=2)
            start = 0.0 * residual
            errors = self._xp.stack([error, 0.0 * error + _ERROR_OF_ONES], axis=1)
        else:
            start, left, before = self._solved
            start, residual = start[:, :, None], (left + right - before)[:, :, None]
            errors = error[:, None]
        solution, left = conjugate_gradients(
            self._times, self._inverse, start, residual, errors, self._xp
        )
        if self._solved is None:
            self._of_ones = solution[:, :, 1]
        self._solved = solution[:, :, 0], left[:, :, 0], right
        return self._solved[0]


def conjugate_gradients(
    times: Callable[[Tensor], Tensor],
    inverse: Callable[[Tensor], Tensor],
    solution: Tensor,
    residual: Tensor,
    error: Any,
    xp: Any,
) -> tuple[Tensor, Tensor]:
    """Solve each column until no entry of its residual is above its error."""
    direction = better = inverse(residual)
    along = (residual * better).sum(axis=0)
    for _ in range(_MAX_CG):
        going = xp.amax(xp.abs(residual), axis=0) > error
        if not bool(going.any()):
            break
        curved = times(direction)
        bend = (direction * curved).sum(axis=0)
        going = going & (bend > 0.0) & (along > 0.0)
        if not bool(going.any()):
            break  # only rounding is left
        length = xp.where(going, along / xp.clip(bend, _TINY, None), 0.0)
        solution = solution + length * direction
        residual = residual - length * curved
        better = inverse(residual)
        before, along = along, (residual * better).sum(axis=0)
        turn = xp.where(going, along / xp.clip(before, _TINY, None), 0.0)
        direction = better + turn * direction
    return solution, residual


def solve_part(
    hessian: Any,
    inside: Mask,
    right: Vector,
    diagonal: Vector,
    penalty: float,
    error: float,
) -> Vector:
    """Solve with ``H + diag(diagonal) + penalty`` for some variables; the others are 0.

    Vectors are numpy arrays. No entry of the residual may exceed ``error``.
    """
    device = hessian.device
    mine, pull = device.put(inside[:, None]) > 0.0, device.put(diagonal[:, None])
    plain = hessian.precondition(pull, mine)
    inverse = plain
    if penalty > 0.0:
        of_ones = plain(1.0 * mine[:, :, None])
        share = penalty / (1.0 + penalty * of_ones.sum())

        def inverse(residual: Tensor) -> Tensor:
            solution = plain(residual)
            return solution - share * solution.sum() * of_ones

    def times(vectors: Tensor) -> Tensor:
        column = vectors[:, :, 0]
        product = hessian.product(column) + pull * column + penalty * column.sum()
        return device.xp.where(mine, product, 0.0)[:, :, None]

    residual = device.put(np.where(inside, right, 0.0)[:, None, None])
    solution, _ = conjugate_gradients(
        times, inverse, 0.0 * residual, residual, error, device.xp
    )
    return device.get(solution)[:, 0, 0]
