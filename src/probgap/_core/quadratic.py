"""Quadratic programmes over a box and one band on the sum, several at once.

The dual of a support vector machine, also with weights and for all folds together, and
kernel mean matching are such problems. A :class:`Programme` states them, :class:`Best` keeps
what was found with its proof, and :func:`follow_barrier` solves them: Mehrotra's
predictor-corrector method (1992), for problems with one Hessian, on numpy or torch arrays. A
product with one column for each problem reads the kernel once. Systems with the Hessian and
a positive diagonal are solved by conjugate gradients, preconditioned by its factor. The
first steps, far from the solution, use the factor in place of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from probgap._core.arrays import Arrays, Tensor
from probgap._core.hessian import Hessian

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
# variable. Its square is that of the system for ones, which gives the multiplier of the sum.
_ERROR = 0.1
# A band narrower than this share of the box is treated as an equality constraint.
_NARROWEST = 1e-9
# A sum is at an edge of its band if it is this near, relative to the edge.
_AT_EDGE = 1e-7
# Points with a sum this many times the largest feasible one give no usable bound.
_FARTHEST = 10.0
_BISECTIONS = 100
_EPSILON = float(np.finfo(np.float64).eps)
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Programme:
    """Minimise ``x H x / 2 - linear x`` over ``lower <= x <= upper`` and a band of sum(x).

    One column for each problem; all have the same H. A variable with equal bounds is fixed.
    ``low`` and ``high`` bound the sum.
    """

    arrays: Arrays
    linear: Tensor
    lower: Tensor
    upper: Tensor
    low: Tensor
    high: Tensor

    def on(self, arrays: Arrays) -> Programme:
        """Copy a programme of numpy's arrays to others."""
        parts = (self.linear, self.lower, self.upper, self.low, self.high)
        return Programme(arrays, *map(arrays.put, parts))

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
        return self.arrays.xp.concatenate([inside, inside, band, band])

    def slacks(self, x: Tensor) -> Tensor:
        """Return the distances to lower and upper bounds and both edges of the band."""
        xp, total = self.arrays.xp, x.sum(axis=0)[None]
        edges = [total - self.low, self.high - total]
        slacks = xp.concatenate([x - self.lower, self.upper - x, *edges])
        return xp.where(self.exists, slacks, 1.0)

    def objective(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Return the objective, given the gradient ``H x - linear``."""
        return 0.5 * (x * (gradient - self.linear)).sum(axis=0)

    def least(self, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Minimise the product of the gradient with feasible points.

        The minimiser fills the box in ascending order of the gradient, as far as the band
        allows where it is negative, as far as it requires elsewhere. Also returns minus the
        gradient where filling stops, the multiplier of an equality constraint: the midpoint,
        if it stops between two variables.
        """
        xp, take = self.arrays.xp, self.arrays.take_along
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

    def gap(self, x: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Bound the distance to the optimum by the tangent at x; also the multiplier."""
        value, multiplier = self.least(gradient)
        gap = (x * gradient).sum(axis=0) - value
        return self.arrays.xp.clip(gap, 0.0, None), multiplier

    def project(self, x: Tensor) -> Tensor:
        """Project to box and band: shift all variables by the same amount, and clip."""
        xp = self.arrays.xp
        clipped = xp.clip(x, self.lower, self.upper)
        total = clipped.sum(axis=0)
        short, off = total < self.low, (total < self.low) | (total > self.high)
        if not bool(off.any()):
            return clipped
        edge = xp.where(short, self.low, self.high)
        under, over = xp.amin(self.lower - x, axis=0), xp.amax(self.upper - x, axis=0)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (under + over)
            below = xp.clip(x + middle, self.lower, self.upper).sum(axis=0) < edge
            under, over = xp.where(below, middle, under), xp.where(below, over, middle)
        shifted = xp.clip(x + xp.where(short, over, under), self.lower, self.upper)
        return xp.where(off, shifted, clipped)

    def kkt_residual(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Return the largest move of a variable in a projected unit gradient step.

        The multiplier of the sum is the most favourable one: positive only at the upper
        edge of the band, negative only at the lower one. All moves increase with it, so that
        bisection finds the one that balances the largest move against the smallest.
        """
        xp, total = self.arrays.xp, x.sum(axis=0)

        def moves(multiplier: Tensor) -> Tensor:
            return x - xp.clip(x - gradient - multiplier, self.lower, self.upper)

        near = _AT_EDGE * xp.clip(xp.abs(self.high), 1.0, None)
        least = xp.clip(-xp.amax(gradient, axis=0), None, 0.0)
        most = xp.clip(-xp.amin(gradient, axis=0), 0.0, None)
        least = xp.where(total <= self.low + near, least, 0.0)
        most = xp.where(total >= self.high - near, most, 0.0)
        for _ in range(_BISECTIONS if bool((least < most).any()) else 0):
            middle = 0.5 * (least + most)
            found = moves(middle)
            up = xp.amax(found, axis=0) > -xp.amin(found, axis=0)
            least, most = xp.where(up, least, middle), xp.where(up, middle, most)
        return xp.amax(xp.abs(moves(0.5 * (least + most))), axis=0)


@dataclass(slots=True)
class Best:
    """The best points and the best lower bounds so far, and the stopping criterion.

    A duality gap of ``share`` times the gain over the objective ``reference`` is good
    enough, or a KKT residual of ``kkt_tol``. ``gap_error`` and ``kkt_error`` bound what an
    approximation of the kernel adds to gap and residual.

    The tangent at any point, feasible or not, bounds the optimal objective from below: the
    best point and the best bound may come from different points.
    """

    programme: Programme
    share: float
    kkt_tol: float = 0.0
    reference: Tensor = np.nan  # nothing is known yet
    gap_error: float = 0.0
    kkt_error: float = 0.0
    x: Tensor = field(init=False)
    gradient: Tensor = field(init=False)
    objective: Tensor = field(init=False)
    bound: Tensor = field(init=False)

    def __post_init__(self) -> None:
        linear, infinite = self.programme.linear, 0.0 * self.programme.low + np.inf
        self.x, self.gradient = 0.0 * linear, -1.0 * linear
        self.objective, self.bound = infinite, -infinite

    def update_bound(self, x: Tensor, gradient: Tensor) -> None:
        """Bound the optimal objective by the tangent at a point, or at a multiple of it.

        If the kernel is positive, the gradient at a slightly larger multiple of the point
        has no negative entries, which can improve the bound.
        """
        programme, xp = self.programme, self.programme.arrays.xp
        product = gradient + programme.linear
        value = 0.5 * (x * product).sum(axis=0)
        bound = programme.least(gradient)[0] - value
        positive = xp.amin(product, axis=0) > 0.0
        if bool(positive.any()):
            more = xp.clip(xp.amax(-gradient / product, axis=0), 0.0, None)
            more = xp.where(positive, more, 0.0)
            lifted = programme.least(gradient + more * product)[0]
            bound = xp.maximum(bound, lifted - (1.0 + more) ** 2 * value)
        # Far from the feasible set, rounding spoils the bound.
        far = (programme.high > 0.0) & (
            xp.abs(x).sum(axis=0) > _FARTHEST * programme.high
        )
        bound = xp.where(far | ~(bound > self.bound), self.bound, bound)
        self.bound = bound

    def update(self, x: Tensor, gradient: Tensor) -> None:
        """Keep feasible points that are the best so far, and update the bounds by them."""
        xp, objective = self.programme.arrays.xp, self.programme.objective(x, gradient)
        better = objective < self.objective
        self.x = xp.where(better, x, self.x)
        self.gradient = xp.where(better, gradient, self.gradient)
        self.objective = xp.where(better, objective, self.objective)
        self.update_bound(x, gradient)

    @property
    def duality_gap(self) -> Tensor:
        """Upper bound of the distance to the optimal objective, up to rounding."""
        xp = self.programme.arrays.xp
        rounding = _EPSILON * xp.abs(self.objective)
        return xp.maximum(self.objective - self.bound, rounding) + self.gap_error

    @property
    def relative_gap(self) -> Tensor:
        """The duality gap as a share of the possible gain over the reference."""
        gap = self.duality_gap
        gain = self.reference - self.objective
        relative = gap / self.programme.arrays.xp.clip(gain + gap, _TINY, None)
        # Without a bound the gap is infinite.
        return self.programme.arrays.xp.where(gap < np.inf, relative, np.inf)

    @property
    def kkt_residual(self) -> Tensor:
        """How far the points are from satisfying the KKT conditions."""
        return self.programme.kkt_residual(self.x, self.gradient) + self.kkt_error

    @property
    def is_good_enough(self) -> Tensor:
        """Whether the duality gap, or else the KKT residual, is small enough."""
        good = self.relative_gap <= self.share
        if self.kkt_tol > 0.0 and not bool(good.all()):
            good = good | (self.kkt_residual <= self.kkt_tol)
        return good


class State(NamedTuple):
    """The iterates of all programme; multipliers in the order of ``Programme.slacks``."""

    x: Tensor
    gradient: Tensor
    multipliers: Tensor
    level: Tensor  # multiplier of an equality constraint on the sum


def follow_barrier(
    hessian: Hessian,
    programme: Programme,
    reference: Tensor,
    start: Tensor,
    is_solved: Callable[[State], Tensor],
    *,
    max_steps: int = _MAX_STEPS,
    share: float = _ERROR,
) -> int:
    """Solve all programme from strictly feasible points; return the number of steps.

    ``is_solved`` gets the state, and returns which programme are solved.
    """
    state = _begin(hessian, programme, reference, start, share)
    for steps in range(max_steps):
        if bool(is_solved(state).all()):
            return steps
        state, lengths = _step(hessian, programme, state, hessian.product, share)
        if bool((lengths < _SHORTEST).all()):
            break
    is_solved(state)
    return steps + 1


def _begin(
    hessian: Hessian,
    programme: Programme,
    reference: Tensor,
    start: Tensor,
    share: float,
) -> State:
    """Take the first steps with the factor in place of the kernel."""
    where, thin = programme.arrays.xp.where, hessian.thin_product
    state = _first_state(programme, start, thin(start) - programme.linear)
    first, _level = programme.gap(state.x, state.gradient)
    for _ in range(_MAX_THIN_STEPS):
        gap, _level = programme.gap(state.x, state.gradient)
        gain = reference - programme.objective(state.x, state.gradient)
        # The gain may be negative, as the factor only approximates the kernel.
        far = (gap > _THIN_SHARE * (gain + gap)) & (gap > _THIN_FALL * first)
        if not bool(far.any()):
            break
        moved, _lengths = _step(hessian, programme, state, thin, share)
        both = zip(moved, state, strict=True)
        state = State(*(where(far, there, here) for there, here in both))
    gradient = hessian.product(state.x, careful=True) - programme.linear
    return state._replace(gradient=gradient)


def _first_state(programme: Programme, x: Tensor, gradient: Tensor) -> State:
    """Choose multipliers whose products with the slacks are about equal."""
    xp, n = programme.arrays.xp, x.shape[0]
    slacks, exists = programme.slacks(x), programme.exists
    _gap, level = programme.gap(x, gradient)
    level = xp.where(programme.sum_is_given, level, 0.0)
    slope = gradient + level
    nearest = xp.minimum(slacks[:n], slacks[n:-2])
    inside = programme.inside
    count = xp.clip(inside.sum(axis=0), 1, None)
    unit = (inside * nearest * xp.abs(slope)).sum(axis=0) / count + _TINY
    multipliers = xp.where(exists, unit / slacks, 0.0)
    multipliers[:n] += xp.where(inside, xp.clip(slope, 0.0, None), 0.0)
    multipliers[n:-2] += xp.where(inside, xp.clip(-slope, 0.0, None), 0.0)
    return State(x, gradient, multipliers, level)


def _step(
    hessian: Hessian,
    programme: Programme,
    state: State,
    product: Callable[..., Tensor],
    share: float,
) -> tuple[State, Tensor]:
    """Take a step in all problems; also return the step lengths."""
    xp = programme.arrays.xp
    newton = _Newton(hessian, programme, state, product, share)
    count = programme.exists.sum(axis=0)
    mean = (newton.slacks * state.multipliers).sum(axis=0) / count
    size = xp.clip(xp.abs(state.x).sum(axis=0), _TINY, None)
    error = share * mean * xp.clip(programme.inside.sum(axis=0), 1, None) / size
    slacks, ahead, way = newton.toward(0.0 * newton.slacks, error)
    there = newton.slacks + way * slacks
    there = (there * (state.multipliers + way * ahead.multipliers)).sum(axis=0) / count
    centring = mean * xp.clip(there / mean, 0.0, 1.0) ** 3
    _slacks, change, way = newton.toward(
        centring - slacks * ahead.multipliers,
        error * xp.clip(centring / mean, share, None),
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
    gradient = product(x, careful=True) - programme.linear
    return State(x, gradient, multipliers, level), xp.where(sound, way, 0.0)


class _Newton:
    """The Newton directions of one step, which share a preconditioner."""

    def __init__(
        self,
        hessian: Hessian,
        programme: Programme,
        state: State,
        product: Callable[..., Tensor],
        share: float,
    ) -> None:
        self._error_of_ones = share**2
        self._programme, self._state, self._xp = programme, state, programme.arrays.xp
        self._inside, self._given = programme.inside, programme.sum_is_given
        self._exists, self.slacks = programme.exists, programme.slacks(state.x)
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
        missing = self._programme.high - state.x.sum(axis=0)
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
            errors = self._xp.stack([error, 0.0 * error + self._error_of_ones], axis=1)
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
    error: Tensor,
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
