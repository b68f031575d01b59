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
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Array, Mask
from probgap._device.arrays import Device, Tensor
from probgap._device.hessian import DeviceHessian
from probgap._device.interior import TINY, State, follow_barrier
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


@dataclass(slots=True)
class SVMSolutions:
    """Dual solutions of SVMs, one column or number for each.

    ``coef`` is label times dual variable. ``gap`` bounds how far the objective is from the
    least, ``duality_gap`` is that as a share of the primal objective, ``kkt_residual`` how
    far a unit step against the gradient moves a dual variable. ``n_iter`` are the steps of
    all parts, ``n_passes`` products in values of the whole kernel, ``plan`` that of the
    largest part, ``decision`` that of the sample of each variable. Arrays are the device's
    until all is solved.
    """

    coef: Tensor
    gradient: Tensor
    objective: Tensor
    gap: Tensor
    duality_gap: Tensor
    intercept: Tensor
    kkt_residual: Tensor
    converged: Tensor
    n_iter: int = 0
    n_passes: float = 0.0
    bytes_moved: float = 0.0
    plan: MemoryPlan | None = None
    decision: Tensor = None

    @property
    def dual_objective(self) -> Tensor:
        """The objective as it is maximised."""
        return -self.objective

    @classmethod
    def nothing(cls, problems: Programmes) -> SVMSolutions:
        """Return what is known before the first point."""
        full_like, low = problems.device.xp.full_like, problems.low
        objective, gap, share, residual = (
            full_like(low, float("inf")) for _ in range(4)
        )
        x, level = 0.0 * problems.linear, 0.0 * low
        gradient, never = x - problems.linear, gap < 0.0
        return cls(x, gradient, objective, gap, share, level, residual, never)

    def arrays(self) -> list[str]:
        """Return the names of what there is of each SVM."""
        return [f.name for f in fields(self)[:8]]

    def see(
        self,
        active: Tensor,
        problems: Programmes,
        x: Tensor,
        gradient: Tensor,
        tol: float,
    ) -> None:
        """Keep points that are better than those found before."""
        objective = problems.objective(x, gradient)
        gap, level = problems.duality_gap(x, gradient)
        share = gap / (problems.reference - objective + gap).clamp(min=TINY)
        level = problems.device.xp.where(problems.sum_is_given, level, 0.0)
        residual = problems.kkt_residual(x, gradient, level)
        good = share <= tol
        better = problems.device.true_rows(good | (gap < self.gap[active]))
        new = (x, gradient, objective, gap, share, level, residual, good)
        for name, value in zip(self.arrays(), new, strict=True):
            getattr(self, name)[..., active[better]] = value[..., better]

    def take(self, columns: Tensor, other: SVMSolutions, chosen: Tensor) -> None:
        """Put some of what others found in the place of some of this."""
        for name in self.arrays():
            getattr(self, name)[..., columns] = getattr(other, name)[..., chosen]


def solve_svms(
    device: Device,
    samples: Array,
    positive: Mask,
    caps: Array,
    *,
    gamma: float,
    tol: float,
    rows: NDArray[np.intp] | None = None,
    budget: float | None = None,
    say: Callable[[MemoryPlan], None] | None = None,
    smallest: int | None = None,
    max_rounds: int = _MAX_ROUNDS,
) -> SVMSolutions:
    """Solve the duals of SVMs with hinge loss that differ in what samples count for.

    ``positive`` is the class of each variable, ``rows`` its sample where one counts for
    both classes. ``caps`` is what a sample counts for in each SVM, C times its weight, 0
    for one that is left out; each SVM has both classes. ``budget`` is the bytes to plan
    with, by default what the device has, and ``say`` is told each plan before memory is
    taken. ``smallest`` variables are one part, and parts are tried ``max_rounds`` times.
    """
    n_variables, n_svms = caps.shape
    if smallest is None:
        smallest = _SMALLEST if device.is_cpu else _SMALLEST_ELSEWHERE
    with device.computing():
        field = _Field(
            points=Points.of(device, samples, gamma),
            rows=None if rows is None else device.put_rows(rows),
            traffic=Traffic(samples.shape[0]),
            plans=[],
            budget=budget,
            say=say,
            smallest=smallest,
            max_rounds=max_rounds,
        )
        sign = device.put(np.where(positive, 1.0, -1.0)[:, None])
        cap = device.put(caps)
        zero = device.zeros(n_svms)
        problems = Programmes(
            device,
            linear=sign.expand(n_variables, n_svms),
            lower=-cap * (sign < 0.0),
            upper=cap * (sign > 0.0),
            low=zero,
            high=zero,
            reference=zero,
        )
        found = _solve_in_parts(field, problems, tol)
        found.decision = device.get(found.gradient + sign + found.intercept)
        for name in found.arrays():
            setattr(found, name, device.get(getattr(found, name)))
        traffic = field.traffic
        found.n_passes, found.bytes_moved = traffic.passes, traffic.bytes_moved
        found.plan = max(field.plans, key=lambda plan: plan.n_rows)
        return found


@dataclass(frozen=True, slots=True)
class _Field:
    """Samples, the variables that belong to them, and the memory there is.

    ``rows`` is the sample of each variable, None where they are the same.
    """

    points: Points
    rows: Tensor | None
    traffic: Traffic
    plans: list[MemoryPlan]
    budget: float | None
    say: Callable[[MemoryPlan], None] | None
    smallest: int
    max_rounds: int

    @property
    def device(self) -> Device:
        return self.points.device

    def at(self, variables: Tensor) -> _Field:
        """Keep some variables and their samples."""
        if self.rows is None:
            return replace(self, points=self.points.only(variables))
        used, rows = self.rows[variables].unique(return_inverse=True)
        return replace(self, points=self.points.only(used), rows=rows)

    def room(self) -> float:
        """Return the bytes that may be taken now."""
        return self.device.budget() if self.budget is None else self.budget

    def hessian(self, problems: Programmes) -> DeviceHessian:
        """Plan memory for the kernel of all samples, and take it."""
        n_features = int(self.points.left.shape[1]) - 2
        n_variables, n_problems = problems.linear.shape
        plan = plan_memory(
            self.points.n, n_features, n_variables, n_problems, self.room()
        )
        self.plans.append(plan)
        if self.say is not None:
            self.say(plan)
        kernel = DeviceKernel(self.points, plan, self.traffic)
        return DeviceHessian(kernel, rows=self.rows)

    def product(self, variables: Tensor, vectors: Tensor) -> Tensor:
        """Multiply some columns of the kernel, for all variables."""
        side = tile_side(self.points.n, self.room())
        if self.rows is None:
            return multiply_part(self.points, variables, vectors, side, self.traffic)
        used, rows = self.rows[variables].unique(return_inverse=True)
        summed = self.device.zeros(used.shape[0], vectors.shape[1])
        summed.index_add_(0, rows, vectors)
        product = multiply_part(self.points, used, summed, side, self.traffic)
        return product[self.rows]


def _solve_in_parts(field: _Field, problems: Programmes, tol: float) -> SVMSolutions:
    """Solve all problems, from a guess, to a share of the gain over their reference."""
    n = problems.linear.shape[0]
    drawn = _guess(field, problems) if n > field.smallest else None
    if drawn is None:
        return _solve_whole(field, problems, tol)
    guess, worth = drawn
    xp, true_rows = problems.device.xp, problems.device.true_rows
    found = SVMSolutions.nothing(problems)
    active = true_rows(problems.low == problems.low)
    before = xp.full_like(problems.low, float("inf"))
    share, part_tol, farness = _SHARE, max(_FIRST_TOL, tol), guess.abs()
    x = xp.where(guess < 0.0, problems.upper, problems.lower)
    gradient: Tensor | None = None
    for _ in range(field.max_rounds):
        part = _nearest(problems, farness, share)
        middle = _centre(problems, x, part)
        if middle is None:
            share *= _MORE
        elif gradient is None:  # only now is the sum right
            x = middle
            some = true_rows((x != 0.0).any(dim=1))
            gradient = field.product(some, x[some]) - problems.linear
        if share > _ALL:
            break
        if middle is None or gradient is None:
            continue
        # With many at the wrong bound there may be no gain over the reference yet.
        least = problems.objective(x, gradient) + worth
        judged = replace(problems, reference=xp.maximum(problems.reference, least))
        start = x + _INWARD * (middle - x)
        x, gradient, steps = _improve(field, judged, x, gradient, part, start, part_tol)
        found.n_iter += steps
        found.see(active, problems, x, gradient, tol)
        keep = true_rows(~found.converged[active])
        if not keep.numel():
            return found
        active, problems = active[keep], problems.only(keep)
        x, gradient, worth = x[:, keep], gradient[:, keep], worth[keep]
        gap, before = found.duality_gap[active], before[keep]
        share *= _MORE if bool((gap > _GAIN * before).any()) else _LESS
        before = gap
        part_tol = max(_SHARE_OF_TOL * tol, _SHARE_OF_GAP * float(gap.max()))
        _gap, level = problems.duality_gap(x, gradient)
        farness = _farness(problems, x, gradient + level)
    rest = _solve_whole(field, problems, tol)
    found.see(active, problems, rest.coef, rest.gradient, tol)
    found.n_iter += rest.n_iter
    return found


def _solve_whole(field: _Field, problems: Programmes, tol: float) -> SVMSolutions:
    hessian = field.hessian(problems)
    return _follow(hessian, problems, _first_point(problems, hessian), tol)


def _follow(
    hessian: DeviceHessian, problems: Programmes, start: Tensor, tol: float
) -> SVMSolutions:
    """Solve until what is rounded to bounds is good."""
    found = SVMSolutions.nothing(problems)
    in_vain = problems.device.xp.zeros_like(problems.low)
    see = partial(_see_rounded, found, hessian, tol, in_vain)
    found.n_iter = follow_barrier(hessian, problems, start, see)
    # Where there is no step left, what could not be rounded is good as it is.
    found.converged |= found.duality_gap <= tol
    return found


def _see_rounded(
    found: SVMSolutions,
    hessian: DeviceHessian,
    tol: float,
    in_vain: Tensor,
    active: Tensor,
    problems: Programmes,
    state: State,
) -> Tensor:
    """Round what is good; return which of it still is, or is good enough without."""
    found.see(active, problems, state.x, state.gradient, tol)
    chosen = problems.device.true_rows(found.converged[active])
    if chosen.numel():
        these, some, columns = problems.only(chosen), state.only(chosen), active[chosen]
        xp = problems.device.xp
        late = in_vain[columns] >= _IN_VAIN
        enough = late & (found.duality_gap[columns] <= _ENOUGH * tol)
        x = _round(these, some, xp.where(late, _NEARER, _NEAR))
        gradient = hessian.product(x, careful=True) - these.linear
        rounded = SVMSolutions.nothing(these)
        every = xp.arange(columns.numel(), device=columns.device)
        rounded.see(every, these, x, gradient, tol)
        fine = problems.device.true_rows(rounded.converged)
        found.take(columns[fine], rounded, fine)
        # What is good inside the bounds is kept, but another step may let it be rounded.
        found.converged[columns] = rounded.converged | enough
        in_vain[columns] += 1.0
    return found.converged[active]


def _guess(field: _Field, problems: Programmes) -> tuple[Tensor, Tensor] | None:
    """Return slopes of the objective and its gain, by SVMs of fewer samples.

    None, if such an SVM would have but one class.
    """
    n = problems.linear.shape[0]
    rng = np.random.default_rng(_SEED)
    drawn = np.sort(rng.choice(n, size=n // _FEWER, replace=False))
    few = field.device.put_rows(drawn)
    heavier = (n / drawn.size) ** 0.5
    smaller = problems.at(few)
    smaller = replace(
        smaller, lower=heavier * smaller.lower, upper=heavier * smaller.upper
    )
    sides = (smaller.upper.sum(dim=0) > 0.0) & (smaller.lower.sum(dim=0) < 0.0)
    if not bool(sides.all()):
        return None
    found = _solve_in_parts(replace(field.at(few), say=None), smaller, _TOL_OF_GUESS)
    used = field.device.true_rows((found.coef != 0.0).any(dim=1))
    product = field.product(few[used], found.coef[used])
    gain = smaller.reference - found.objective
    return product - problems.linear + found.intercept, gain


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
    field: _Field,
    problems: Programmes,
    x: Tensor,
    gradient: Tensor,
    part: Tensor,
    start: Tensor,
    tol: float,
) -> tuple[Tensor, Tensor, int]:
    """Solve for a part of the variables; return all, the gradient, and the steps."""
    where, true_rows = problems.device.xp.where, problems.device.true_rows
    some = true_rows(part.any(dim=1))
    here, mine = x[some], part[some]
    few = problems.at(some)
    few = replace(
        few,
        lower=where(mine, few.lower, here),
        upper=where(mine, few.upper, here),
        low=here.sum(dim=0),
        high=here.sum(dim=0),
    )
    hessian = field.at(some).hessian(few)
    product = hessian.product(here, careful=True)
    few = replace(few, linear=product - gradient[some])
    done = problems.objective(x, gradient) - few.objective(here, gradient[some])
    few = replace(few, reference=problems.reference - done)
    found = _follow(hessian, few, start[some], tol)
    del hessian  # its memory is needed
    change = found.coef - here
    moved = true_rows((change != 0.0).any(dim=1))
    gradient = gradient + field.product(some[moved], change[moved])
    gradient[some] = found.gradient
    x = x.clone()
    x[some] = found.coef
    return x, gradient, found.n_iter


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
