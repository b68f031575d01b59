"""Several SVMs with the same samples and kernel, solved together on a device.

A decomposition method. SVMs on a quarter of the samples, themselves solved in this way,
predict decisions. Samples far from the margin by these predictions are fixed at a bound. The
others, the working set, are optimised with their kernel stored. One product of the kernel
with the changes then gives decisions and the duality gap of the whole problem, and a new
working set: free variables, those on the wrong side, and those nearest to the margin. If a
few rounds do not close the duality gap, all variables are solved for at once.

Most of the work is thus done with about a third of the rows: a tenth of the kernel, and more
samples than memory would allow for a whole one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Array, Mask, Vector
from probgap._device.arrays import Device, Tensor
from probgap._device.interior import Programmes, State, follow_barrier
from probgap._device.kernel import DeviceKernel, DevicePoints, Traffic, multiply_part
from probgap._device.plan import MemoryPlan, plan_memory, tile_values

# Up to this many variables are solved at once: on a CPU, and on a GPU, where a step costs
# about the same for any number of samples up to here.
_SMALLEST, _SMALLEST_ELSEWHERE = 2**12, 2**15
# Initial decisions come from SVMs on so many times fewer samples, whose weights are
# multiplied by the root of that, solved to this duality gap.
_FEWER = 4
_TOL_OF_GUESS = 1e-2
_SEED = 20180807
# Share of all variables in the working set; it grows if a round gains too little.
_SHARE = 0.3
_MORE, _LESS = 1.5, 0.7
_ALL = 0.8
_GAIN = 0.25
_MAX_ROUNDS = 20
# Tolerances of a working set: the first, and shares of the overall gap and tolerance.
_FIRST_TOL = 3e-2
_SHARE_OF_GAP = 0.1
_SHARE_OF_TOL = 0.3
# The sum over a working set must be this far from its extremes, relative to its range.
_ROOM = 1e-3
# A working set starts from its last values, moved this far to the middle of its bounds.
_INWARD = 0.05
# Tolerance of the equality constraint, as a share of the sum of all ranges.
_BALANCED = 1e-12
# Variables this near to a bound, as a share of its width, are rounded to it. After
# _IN_VAIN failures only nearer ones are; and a duality gap of _ENOUGH times the tolerance is
# accepted without rounding, as many variables may be near a bound but not at it.
_NEAR, _NEARER = 0.05, 1e-3
_IN_VAIN = 3
_ENOUGH = 0.1


@dataclass(frozen=True, slots=True)
class SVMSolutions:
    """Dual solutions of SVMs, one column or number for each.

    ``coef`` is label times dual variable, ``decision`` that of each sample, ``duality_gap``
    a share of the primal objective, ``kkt_residual`` the largest move of a dual variable in
    a projected unit gradient step. ``n_iter`` counts all steps, ``n_passes`` products with
    the whole kernel or the equivalent; ``plan`` is that of the largest working set.
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
    report: Callable[[MemoryPlan], None] | None = None,
    smallest: int | None = None,
    max_rounds: int = _MAX_ROUNDS,
) -> SVMSolutions:
    """Solve the duals of SVMs with hinge loss that differ in their sample weights.

    ``caps`` are the upper bounds of the dual variables of each SVM, C times the sample
    weight, 0 for samples left out; each SVM has both classes. ``budget`` is the memory in
    bytes to plan with, by default that of the device; ``report`` is called with each plan
    before memory is allocated. Up to ``smallest`` variables are solved at once, others in
    at most ``max_rounds`` rounds.
    """
    if smallest is None:
        smallest = _SMALLEST if device.is_cpu else _SMALLEST_ELSEWHERE
    with device.computing():
        points, traffic = (
            DevicePoints.of(device, samples, gamma),
            Traffic(samples.shape[0]),
        )
        work = _Workspace(points, traffic, [], budget, report, smallest, max_rounds)
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
    """Samples on a device, settings of the solver, and a record of its work."""

    points: DevicePoints
    traffic: Traffic
    plans: list[MemoryPlan]
    budget: float | None
    report: Callable[[MemoryPlan], None] | None
    smallest: int
    max_rounds: int

    def only(self, rows: Tensor) -> _Workspace:
        return replace(self, points=self.points.only(rows))

    def room(self) -> float:
        return self.points.device.budget() if self.budget is None else self.budget

    def kernel(self, n_problems: int) -> DeviceKernel:
        """Plan the memory for the kernel of all samples, and allocate it."""
        n, width = self.points.left.shape
        plan = plan_memory(n, width - 2, n_problems, self.room())
        self.plans.append(plan)
        if self.report is not None:
            self.report(plan)
        return DeviceKernel(self.points, plan, self.traffic)

    def product(self, vectors: Tensor, rows: Tensor | None = None) -> Tensor:
        """Multiply the kernel with vectors that are 0 outside ``rows`` (default: all)."""
        used = self.points.device.true_rows((vectors != 0.0).any(dim=1))
        side = math.isqrt(tile_values(self.room()))
        columns = used if rows is None else rows[used]
        return multiply_part(self.points, columns, vectors[used], side, self.traffic)


class _Found:
    """The best points so far, their relative duality gaps, and which meet ``tol``."""

    def __init__(self, problems: Programmes, tol: float) -> None:
        self.x, self.gradient = 0.0 * problems.linear, -1.0 * problems.linear
        self.gap = problems.device.xp.full_like(problems.low, float("inf"))
        self.good, self.tol, self.steps = self.gap < 0.0, tol, 0

    def put(self, columns: Tensor, x: Tensor, gradient: Tensor, gap: Tensor) -> None:
        self.x[:, columns], self.gradient[:, columns] = x, gradient
        self.gap[columns] = gap

    def update(
        self, active: Tensor, problems: Programmes, x: Tensor, gradient: Tensor
    ) -> None:
        """Keep points that are better than those before."""
        gap = problems.relative_gap(x, gradient)
        good = gap <= self.tol
        better = problems.device.true_rows(good | (gap < self.gap[active]))
        columns = active[better]
        self.put(columns, x[:, better], gradient[:, better], gap[better])
        self.good[columns] = good[better]


def _solve_in_parts(work: _Workspace, problems: Programmes, tol: float) -> _Found:
    """Solve all problems by decomposition, to a relative duality gap of ``tol``."""
    n = problems.linear.shape[0]
    drawn = _guess(work, problems) if n > work.smallest else None
    if drawn is None:
        return _solve_whole(work, problems, tol)
    guess, worth = drawn
    xp, true_rows = problems.device.xp, problems.device.true_rows
    found = _Found(problems, tol)
    active = true_rows(problems.low == problems.low)
    before = xp.full_like(problems.low, float("inf"))
    share, part_tol, distance = _SHARE, max(_FIRST_TOL, tol), guess.abs()
    x = xp.where(guess < 0.0, problems.upper, problems.lower)
    gradient: Tensor | None = None
    for _ in range(work.max_rounds):
        if share > _ALL:
            break
        part = _nearest(problems, distance, share)
        middle = _centre(problems, x, part)
        if middle is None:
            share *= _MORE
            continue
        if gradient is None:  # the first point that satisfies the equality constraint
            x, gradient = middle, work.product(middle) - problems.linear
        # With many variables at the wrong bound there may be no gain yet.
        least = problems.objective(x, gradient) + worth
        judged = replace(problems, reference=xp.maximum(problems.reference, least))
        start = x + _INWARD * (middle - x)
        x, gradient, steps = _improve(work, judged, x, gradient, part, start, part_tol)
        found.steps += steps
        found.update(active, problems, x, gradient)
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
        distance = _distance(problems, x, gradient + level)
    rest = _solve_whole(work, problems, tol)
    found.update(active, problems, rest.x, rest.gradient)
    found.steps += rest.steps
    return found


def _solve_whole(work: _Workspace, problems: Programmes, tol: float) -> _Found:
    kernel = work.kernel(problems.linear.shape[1])
    return _follow(kernel, problems, _first_point(problems, kernel), tol)


def _follow(
    kernel: DeviceKernel, problems: Programmes, start: Tensor, tol: float
) -> _Found:
    """Solve until the solution, with variables rounded to bounds, meets ``tol``."""
    xp, true_rows = problems.device.xp, problems.device.true_rows
    found, in_vain = _Found(problems, tol), xp.zeros_like(problems.low)

    def is_solved(active: Tensor, problems: Programmes, state: State) -> Tensor:
        """Round what meets ``tol``; return which still do, or need no rounding."""
        found.update(active, problems, state.x, state.gradient)
        chosen = true_rows(found.good[active])
        if chosen.numel():
            these, columns = problems.only(chosen), active[chosen]
            late = in_vain[columns] >= _IN_VAIN
            enough = late & (found.gap[columns] <= _ENOUGH * tol)
            x = _round(these, state.only(chosen), xp.where(late, _NEARER, _NEAR))
            gradient = kernel.product(x, careful=True) - these.linear
            gap = these.relative_gap(x, gradient)
            fine = true_rows(gap <= tol)
            found.put(columns[fine], x[:, fine], gradient[:, fine], gap[fine])
            # Solutions that fail after rounding are kept, but get another step.
            found.good[columns] = (gap <= tol) | enough
            in_vain[columns] += 1.0
        return found.good[active]

    found.steps = follow_barrier(kernel, problems, start, is_solved)
    # If no step is left, accept solutions that could not be rounded.
    found.good |= found.gap <= tol
    return found


def _guess(work: _Workspace, problems: Programmes) -> tuple[Tensor, Tensor] | None:
    """Estimate the slopes of the objective and the gain by SVMs on fewer samples.

    Returns None if such an SVM would have only one class.
    """
    n = problems.linear.shape[0]
    rng = np.random.default_rng(_SEED)
    drawn = np.sort(rng.choice(n, size=n // _FEWER, replace=False))
    few = work.points.device.put_rows(drawn)
    heavier, smaller = (n / drawn.size) ** 0.5, problems.at(few)
    smaller = replace(
        smaller, lower=heavier * smaller.lower, upper=heavier * smaller.upper
    )
    sides = (smaller.upper.sum(dim=0) > 0.0) & (smaller.lower.sum(dim=0) < 0.0)
    if not bool(sides.all()):
        return None
    quiet = replace(work.only(few), report=None)
    found = _solve_in_parts(quiet, smaller, _TOL_OF_GUESS)
    _gap, level = smaller.duality_gap(found.x, found.gradient)
    slope = work.product(found.x, few) - problems.linear + level
    return slope, smaller.reference - smaller.objective(found.x, found.gradient)


def _nearest(problems: Programmes, distance: Tensor, share: float) -> Tensor:
    """Return the mask of the variables of each problem with the smallest distances."""
    inside = problems.inside
    distance = problems.device.xp.where(inside, distance, float("inf"))
    count = (share * inside.sum(dim=0)).long().clamp(min=1) - 1
    last = distance.sort(dim=0).values.gather(0, count[None])
    return inside & (distance <= last.clamp(min=0.0))


def _distance(problems: Programmes, x: Tensor, slope: Tensor) -> Tensor:
    """Return how strongly the slope holds variables at a bound; negative for free ones."""
    where = problems.device.xp.where
    at_upper = where(x >= problems.upper, -slope, -1.0)
    return where(x <= problems.lower, slope, at_upper)


def _centre(problems: Programmes, x: Tensor, part: Tensor) -> Tensor | None:
    """Move a working set between its bounds to satisfy the equality; None if impossible."""
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
    """Optimise a working set; return all variables, the gradient, and the steps."""
    where = problems.device.xp.where
    some = problems.device.true_rows(part.any(dim=1))
    here, mine, few = x[some], part[some], problems.at(some)
    kernel = work.only(some).kernel(x.shape[1])
    few = replace(
        few,
        linear=kernel.product(here, careful=True) - gradient[some],
        lower=where(mine, few.lower, here),
        upper=where(mine, few.upper, here),
        low=here.sum(dim=0),
        high=here.sum(dim=0),
    )
    done = problems.objective(x, gradient) - few.objective(here, gradient[some])
    few = replace(few, reference=problems.reference - done)
    found = _follow(kernel, few, start[some], tol)
    del kernel  # frees its memory for the product
    gradient = gradient + work.product(found.x - here, some)
    gradient[some] = found.gradient
    x = x.clone()
    x[some] = found.x
    return x, gradient, found.steps


def _first_point(problems: Programmes, kernel: DeviceKernel) -> Tensor:
    """Return a feasible point with balanced classes, scaled to minimise the objective."""
    positive, negative = problems.upper.sum(dim=0), -problems.lower.sum(dim=0)
    less = 0.5 * problems.device.xp.minimum(positive, negative)
    x = problems.upper * (less / positive) + problems.lower * (less / negative)
    bend = (x * kernel.thin_product(x)).sum(dim=0)
    return x * ((x * problems.linear).sum(dim=0) / bend).clamp(1e-6, 1.0)


def _round(problems: Programmes, state: State, near: Tensor) -> Tensor:
    """Round variables near a bound to it, if the multiplier exceeds the relative slack."""
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
