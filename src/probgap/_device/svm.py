"""Support vector machines on a device: all that share samples and kernel, in parts.

Only variables that are not clearly at a bound need a solver. SVMs of a quarter of the
samples, themselves solved in parts, guess decisions. Samples far from the margin by that
guess are put at the bound where they belong; the rest, a part that is the same for all
SVMs, is solved with its kernel kept, the others fixed. One product of the kernel with what
has changed then gives decisions and the duality gap of the whole, and a new part: free
variables, those on the wrong side, and the nearest. Few rounds close the duality gap. What
is proven is proven for all samples; where parts do not close it, everything is one part.

Most of the work, systems with the kernel, is done with a kernel a third as wide: a tenth
of its values, and for more samples than a whole kernel would have memory for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Array, Mask, Vector
from probgap._device.arrays import Device, Tensor
from probgap._device.hessian import DeviceHessian
from probgap._device.interior import State, follow_barrier
from probgap._device.kernel import DeviceKernel, Points, Traffic, multiply_part
from probgap._device.plan import MemoryPlan, plan_memory, tile_side
from probgap._device.programme import Programmes

# So few variables are one part, on a processor and on others, where a step costs about
# the same for any number of samples up to here.
_SMALLEST, _SMALLEST_ELSEWHERE = 2**12, 2**15
# Guesses are made by SVMs of so many times fewer samples, which count for the root of
# that more, to this duality gap.
_FEWER = 4
_TOL_OF_GUESS = 1e-2
_SEED = 20180807
# The nearest share of all variables are in a part; more where rounds gain too little.
_SHARE = 0.3
_MORE, _LESS = 1.5, 0.7
_ALL = 0.8
_GAIN = 0.25
_MAX_ROUNDS = 20
# A part is solved to a share of the duality gap of the whole, and of what is asked for.
_FIRST_TOL = 3e-2
_SHARE_OF_GAP = 0.1
_SHARE_OF_TOL = 0.3
# The sum over a part must be this far from its least and greatest.
_ROOM = 1e-3
# So far towards the middle of its bounds a part starts from where it was.
_INWARD = 0.05
# Sums may be off by this share of all ranges.
_BALANCED = 1e-12
# How near to a bound is taken for at it, as a share of the width. Where that was in vain
# so often, only what is nearer; and a duality gap of so much of what is asked for is good
# without rounding: many variables may be near a bound but not at it.
_NEAR, _NEARER = 0.05, 1e-3
_IN_VAIN = 3
_ENOUGH = 0.1


@dataclass(frozen=True, slots=True)
class SVMSolutions:
    """Dual solutions of SVMs, one column or number for each.

    ``coef`` is label times dual variable, ``decision`` that of each sample,
    ``duality_gap`` a share of the primal objective, ``kkt_residual`` how far a unit step
    against the gradient moves a dual variable. ``n_iter`` are the steps of all parts,
    ``n_passes`` products in values of the whole kernel, ``plan`` that of the largest part.
    """

    coef: Array
    decision: Array
    intercept: Vector
    dual_objective: Vector
    duality_gap: Vector
    kkt_residual: Vector
    converged: NDArray[np.bool_]
    n_iter: int
    n_passes: float
    bytes_moved: float
    plan: MemoryPlan


def solve_svms(
    device: Device,
    samples: Array,
    positive: Mask,
    caps: Array,
    *,
    gamma: float,
    tol: float,
    budget: float | None = None,
    say: Callable[[MemoryPlan], None] | None = None,
    smallest: int | None = None,
    max_rounds: int = _MAX_ROUNDS,
) -> SVMSolutions:
    """Solve the duals of SVMs with hinge loss that differ in what samples count for.

    ``caps`` is what a sample counts for in each SVM, C times its weight, 0 for one that
    is left out; each SVM has both classes. ``budget`` is the bytes to plan with, by
    default what the device has, and ``say`` is told each plan before memory is taken.
    ``smallest`` variables are one part, and parts are tried ``max_rounds`` times.
    """
    if smallest is None:
        smallest = _SMALLEST if device.is_cpu else _SMALLEST_ELSEWHERE
    with device.computing():
        points, traffic = Points.of(device, samples, gamma), Traffic(samples.shape[0])
        work = _Workspace(points, traffic, [], budget, say, smallest, max_rounds)
        sign = device.put(np.where(positive, 1.0, -1.0)[:, None])
        cap, zero = device.put(caps), device.zeros(caps.shape[1])
        problems = Programmes(
            device,
            linear=sign.expand(caps.shape),
            lower=-cap * (sign < 0.0),
            upper=cap * (sign > 0.0),
            low=zero,
            high=zero,
            reference=zero,
        )
        found = _solve_in_parts(work, problems, tol)
        x, gradient, get = found.x, found.gradient, device.get
        _gap, level = problems.duality_gap(x, gradient)
        return SVMSolutions(
            coef=get(x),
            decision=get(gradient + sign + level),
            intercept=get(level),
            dual_objective=get(-problems.objective(x, gradient)),
            duality_gap=get(found.gap),
            kkt_residual=get(problems.kkt_residual(x, gradient, level)),
            converged=get(found.good),
            n_iter=found.steps,
            n_passes=traffic.passes,
            bytes_moved=traffic.bytes_moved,
            plan=max(work.plans, key=lambda plan: plan.n_rows),
        )


@dataclass(frozen=True, slots=True)
class _Workspace:
    """Samples on a device, the memory there is for them, and what was done with it."""

    points: Points
    traffic: Traffic
    plans: list[MemoryPlan]
    budget: float | None
    say: Callable[[MemoryPlan], None] | None
    smallest: int
    max_rounds: int

    def only(self, rows: Tensor) -> _Workspace:
        return replace(self, points=self.points.only(rows))

    def room(self) -> float:
        return self.points.device.budget() if self.budget is None else self.budget

    def hessian(self, n_problems: int) -> DeviceHessian:
        """Plan memory for the kernel of all samples, and take it."""
        n, width = self.points.left.shape
        plan = plan_memory(n, width - 2, n_problems, self.room())
        self.plans.append(plan)
        if self.say is not None:
            self.say(plan)
        return DeviceHessian(DeviceKernel(self.points, plan, self.traffic))

    def product(self, vectors: Tensor, rows: Tensor | None = None) -> Tensor:
        """Multiply the columns of some rows, or of all that are not 0, for all samples."""
        used = self.points.device.true_rows((vectors != 0.0).any(dim=1))
        side = tile_side(self.points.n, self.room())
        columns = used if rows is None else rows[used]
        return multiply_part(self.points, columns, vectors[used], side, self.traffic)


@dataclass(slots=True)
class _Found:
    """The best points so far, their duality gaps as shares, and which are good enough."""

    x: Tensor
    gradient: Tensor
    gap: Tensor
    good: Tensor
    steps: int = 0

    @classmethod
    def nothing(cls, problems: Programmes) -> _Found:
        gap = problems.device.xp.full_like(problems.low, float("inf"))
        return cls(0.0 * problems.linear, -1.0 * problems.linear, gap, gap < 0.0)

    def put(self, columns: Tensor, x: Tensor, gradient: Tensor, gap: Tensor) -> None:
        self.x[:, columns], self.gradient[:, columns] = x, gradient
        self.gap[columns] = gap

    def see(
        self,
        active: Tensor,
        problems: Programmes,
        x: Tensor,
        gradient: Tensor,
        tol: float,
    ) -> None:
        """Keep points that are better than those found before."""
        gap = problems.relative_gap(x, gradient)
        good = gap <= tol
        better = problems.device.true_rows(good | (gap < self.gap[active]))
        columns = active[better]
        self.put(columns, x[:, better], gradient[:, better], gap[better])
        self.good[columns] = good[better]


def _solve_in_parts(work: _Workspace, problems: Programmes, tol: float) -> _Found:
    """Solve all problems, from a guess, to a share of the gain over their reference."""
    n = problems.linear.shape[0]
    drawn = _guess(work, problems) if n > work.smallest else None
    if drawn is None:
        return _solve_whole(work, problems, tol)
    guess, worth = drawn
    xp, true_rows = problems.device.xp, problems.device.true_rows
    found = _Found.nothing(problems)
    active = true_rows(problems.low == problems.low)
    before = xp.full_like(problems.low, float("inf"))
    share, part_tol, farness = _SHARE, max(_FIRST_TOL, tol), guess.abs()
    x = xp.where(guess < 0.0, problems.upper, problems.lower)
    gradient: Tensor | None = None
    for _ in range(work.max_rounds):
        part = _nearest(problems, farness, share)
        middle = _centre(problems, x, part)
        if middle is None:
            share *= _MORE
        elif gradient is None:  # only now is the sum right
            x, gradient = middle, work.product(middle) - problems.linear
        if share > _ALL:
            break
        if middle is None or gradient is None:
            continue
        # With many at the wrong bound there may be no gain over the reference yet.
        least = problems.objective(x, gradient) + worth
        judged = replace(problems, reference=xp.maximum(problems.reference, least))
        start = x + _INWARD * (middle - x)
        x, gradient, steps = _improve(work, judged, x, gradient, part, start, part_tol)
        found.steps += steps
        found.see(active, problems, x, gradient, tol)
        keep = true_rows(~found.good[active])
        if not keep.numel():
            return found
        active, problems = active[keep], problems.only(keep)
        x, gradient, worth = x[:, keep], gradient[:, keep], worth[keep]
        gap, before = found.gap[active], before[keep]
        share *= _MORE if bool((gap > _GAIN * before).any()) else _LESS
        before = gap
        part_tol = max(_SHARE_OF_TOL * tol, _SHARE_OF_GAP * float(gap.max()))
        _gap, level = problems.duality_gap(x, gradient)
        farness = _farness(problems, x, gradient + level)
    rest = _solve_whole(work, problems, tol)
    found.see(active, problems, rest.x, rest.gradient, tol)
    found.steps += rest.steps
    return found


def _solve_whole(work: _Workspace, problems: Programmes, tol: float) -> _Found:
    hessian = work.hessian(problems.linear.shape[1])
    return _follow(hessian, problems, _first_point(problems, hessian), tol)


def _follow(
    hessian: DeviceHessian, problems: Programmes, start: Tensor, tol: float
) -> _Found:
    """Solve until what is rounded to bounds is good."""
    found = _Found.nothing(problems)
    in_vain = problems.device.xp.zeros_like(problems.low)
    see = partial(_see_rounded, found, hessian, tol, in_vain)
    found.steps = follow_barrier(hessian, problems, start, see)
    # Where there is no step left, what could not be rounded is good as it is.
    found.good |= found.gap <= tol
    return found


def _see_rounded(
    found: _Found,
    hessian: DeviceHessian,
    tol: float,
    in_vain: Tensor,
    active: Tensor,
    problems: Programmes,
    state: State,
) -> Tensor:
    """Round what is good; return which of it still is, or is good enough without."""
    found.see(active, problems, state.x, state.gradient, tol)
    chosen = problems.device.true_rows(found.good[active])
    if chosen.numel():
        these, columns = problems.only(chosen), active[chosen]
        late = in_vain[columns] >= _IN_VAIN
        enough = late & (found.gap[columns] <= _ENOUGH * tol)
        near = problems.device.xp.where(late, _NEARER, _NEAR)
        x = _round(these, state.only(chosen), near)
        gradient = hessian.product(x, careful=True) - these.linear
        gap = these.relative_gap(x, gradient)
        fine = problems.device.true_rows(gap <= tol)
        found.put(columns[fine], x[:, fine], gradient[:, fine], gap[fine])
        # What is good inside the bounds is kept, but another step may let it be rounded.
        found.good[columns] = (gap <= tol) | enough
        in_vain[columns] += 1.0
    return found.good[active]


def _guess(work: _Workspace, problems: Programmes) -> tuple[Tensor, Tensor] | None:
    """Return slopes of the objective and its gain, by SVMs of fewer samples.

    None, if such an SVM would have but one class.
    """
    n = problems.linear.shape[0]
    rng = np.random.default_rng(_SEED)
    drawn = np.sort(rng.choice(n, size=n // _FEWER, replace=False))
    few = work.points.device.put_rows(drawn)
    heavier = (n / drawn.size) ** 0.5
    smaller = problems.at(few)
    smaller = replace(
        smaller, lower=heavier * smaller.lower, upper=heavier * smaller.upper
    )
    sides = (smaller.upper.sum(dim=0) > 0.0) & (smaller.lower.sum(dim=0) < 0.0)
    if not bool(sides.all()):
        return None
    quiet = replace(work.only(few), say=None)
    found = _solve_in_parts(quiet, smaller, _TOL_OF_GUESS)
    _gap, level = smaller.duality_gap(found.x, found.gradient)
    slope = work.product(found.x, few) - problems.linear + level
    return slope, smaller.reference - smaller.objective(found.x, found.gradient)


def _nearest(problems: Programmes, farness: Tensor, share: float) -> Tensor:
    """Mark the variables of each problem that are nearest, or on the wrong side."""
    inside = problems.inside
    farness = problems.device.xp.where(inside, farness, float("inf"))
    count = (share * inside.sum(dim=0)).long().clamp(min=1) - 1
    last = farness.sort(dim=0).values.gather(0, count[None])
    return inside & (farness <= last.clamp(min=0.0))


def _farness(problems: Programmes, x: Tensor, slope: Tensor) -> Tensor:
    """Measure how much variables want to be where they are; below 0 if they do not."""
    where = problems.device.xp.where
    at_upper = where(x >= problems.upper, -slope, -1.0)
    return where(x <= problems.lower, slope, at_upper)


def _centre(problems: Programmes, x: Tensor, part: Tensor) -> Tensor | None:
    """Put a part between its bounds, so that the sum is right; None if it cannot be."""
    where = problems.device.xp.where
    width = where(part, problems.upper - problems.lower, 0.0)
    rest = where(part, problems.lower, x)
    level = (problems.high - rest.sum(dim=0)) / width.sum(dim=0)
    if not bool(((level > _ROOM) & (level < 1.0 - _ROOM)).all()):
        return None
    return rest + level * width


def _improve(
    work: _Workspace,
    problems: Programmes,
    x: Tensor,
    gradient: Tensor,
    part: Tensor,
    start: Tensor,
    tol: float,
) -> tuple[Tensor, Tensor, int]:
    """Solve for a part of the variables; return all, the gradient, and the steps."""
    where = problems.device.xp.where
    some = problems.device.true_rows(part.any(dim=1))
    here, mine, few = x[some], part[some], problems.at(some)
    few = replace(
        few,
        lower=where(mine, few.lower, here),
        upper=where(mine, few.upper, here),
        low=here.sum(dim=0),
        high=here.sum(dim=0),
    )
    hessian = work.only(some).hessian(x.shape[1])
    product = hessian.product(here, careful=True)
    few = replace(few, linear=product - gradient[some])
    done = problems.objective(x, gradient) - few.objective(here, gradient[some])
    few = replace(few, reference=problems.reference - done)
    found = _follow(hessian, few, start[some], tol)
    del hessian  # its memory is needed
    gradient = gradient + work.product(found.x - here, some)
    gradient[some] = found.gradient
    x = x.clone()
    x[some] = found.x
    return x, gradient, found.steps


def _first_point(problems: Programmes, hessian: DeviceHessian) -> Tensor:
    """Balance the classes within their bounds, as far in as the objective falls."""
    positive, negative = problems.upper.sum(dim=0), -problems.lower.sum(dim=0)
    less = 0.5 * problems.device.xp.minimum(positive, negative)
    x = problems.upper * (less / positive) + problems.lower * (less / negative)
    bend = (x * hessian.thin_product(x)).sum(dim=0)
    return x * ((x * problems.linear).sum(dim=0) / bend).clamp(1e-6, 1.0)


def _round(problems: Programmes, state: State, near: Tensor) -> Tensor:
    """Put variables there that are near a bound, if its multiplier is greater than that."""
    where, x, n = problems.device.xp.where, state.x, state.x.shape[0]
    width = problems.upper - problems.lower
    at_lower, at_upper = (
        (slack <= near * width) & (slack <= multiplier * width)
        for slack, multiplier in (
            (x - problems.lower, state.multipliers[:n]),
            (problems.upper - x, state.multipliers[n:-2]),
        )
    )
    fixed = where(at_lower, problems.lower, where(at_upper, problems.upper, x))
    at_bound = at_lower | at_upper
    others = replace(
        problems,
        lower=where(at_bound, fixed, problems.lower),
        upper=where(at_bound, fixed, problems.upper),
    )
    rounded = others.project(fixed)
    missing = (problems.high - rounded.sum(dim=0)).abs()
    balanced = missing <= _BALANCED * width.sum(dim=0)
    return where(balanced, rounded, problems.project(x))
