"""Machines by parts: only variables that are not clearly at a bound need a solver.

A machine of a quarter of the samples, itself solved by parts, guesses decisions. Samples
far from the margin by that guess are put at the bound where they belong; the rest, a
part that is the same for all machines, is solved with its kernel kept, the others fixed.
One product of the kernel with what has changed then gives decisions and the duality gap
of the whole, and a new part: free variables, those on the wrong side, and the nearest.
Few rounds close the gap. What is proven is proven for all samples; where parts do not
close the gap, everything is one part.

Most of the work, systems with the kernel, is done with a kernel a third as wide: a tenth
of its values, and for more samples than a whole kernel would have memory for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from probgap._device._barrier import Solutions, follow_barrier, nothing_found, see
from probgap._device._hessian import Hessian
from probgap._device._kernel import DeviceKernel, Traffic, multiply_part
from probgap._device._plan import MemoryPlan, plan_memory, tile_side
from probgap._device._points import Points
from probgap._device._programme import Programmes
from probgap._device._torch import Device, Tensor

# So few variables are one part, on a processor and on others, where a step costs about
# the same for any number of samples up to here.
SMALLEST, SMALLEST_ELSEWHERE = 2**12, 2**15
# Guesses are made by machines of so many times fewer samples, which count for the root
# of that more, to this duality gap.
_FEWER = 4
_TOL_OF_GUESS = 1e-2
_SEED = 20180807
# The nearest share of all variables are in a part; more where rounds gain too little.
_SHARE = 0.3
_MORE, _LESS = 1.5, 0.7
_ALL = 0.8
_GAIN = 0.25
_MAX_ROUNDS = 20
# A part is solved to a share of the gap of the whole, and of what is asked for.
_FIRST_TOL = 3e-2
_SHARE_OF_GAP = 0.1
_SHARE_OF_TOL = 0.3
# The sum over a part must be this far from its least and greatest.
_ROOM = 1e-3
# So far towards the middle of its bounds a part starts from where it was.
_INWARD = 0.05
# Sums may be off by this share of all ranges.
_BALANCED = 1e-12


@dataclass(frozen=True, slots=True)
class Field:
    """Samples, the variables that belong to them, and the memory there is.

    Attributes
    ----------
    points : Points
        The samples.
    rows : Tensor of shape (n_variables,) or None
        The sample of each variable; None where they are the same.
    traffic : Traffic
        Where products with the kernel are counted.
    plans : list of MemoryPlan
        What was kept of each part.
    budget : float or None
        Bytes to plan with; None for what the device has.
    say : callable or None
        Told each plan before memory is taken.
    """

    points: Points
    rows: Tensor | None
    traffic: Traffic
    plans: list[MemoryPlan]
    budget: float | None
    say: Callable[[MemoryPlan], None] | None

    @property
    def device(self) -> Device:
        return self.points.device

    def at(self, variables: Tensor) -> Field:
        """Keep some variables and their samples."""
        if self.rows is None:
            return replace(self, points=self.points.only(variables))
        used, rows = self.rows[variables].unique(return_inverse=True)
        return replace(self, points=self.points.only(used), rows=rows)

    def plan(self, n_variables: int, n_problems: int) -> MemoryPlan:
        """Decide what is kept of the kernel of all samples."""
        n_features = int(self.points.left.shape[1]) - 2
        return plan_memory(
            self.points.n, n_features, n_variables, n_problems, self.room()
        )

    def room(self) -> float:
        """Give the bytes that may be taken now."""
        return self.device.budget() if self.budget is None else self.budget

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


def solve_in_parts(field: Field, problems: Programmes, tol: float) -> Solutions:
    """Solve all problems, from a guess, to a share of the gain over their reference."""
    n, n_problems = problems.linear.shape
    smallest = SMALLEST if field.device.is_cpu else SMALLEST_ELSEWHERE
    drawn = _guess(field, problems) if n > smallest else None
    if drawn is None:
        return _solve_whole(field, problems, tol)
    guess, worth = drawn
    xp = problems.device.xp
    found = nothing_found(problems)
    active = xp.arange(n_problems, device=guess.device)
    before = xp.full_like(problems.low, float("inf"))
    share, part_tol, farness = _SHARE, max(_FIRST_TOL, tol), guess.abs()
    x = xp.where(guess < 0.0, problems.upper, problems.lower)
    gradient: Tensor | None = None
    for _ in range(_MAX_ROUNDS):
        part = _nearest(problems, farness, share)
        middle = _centre(problems, x, part)
        if middle is None:
            share *= _MORE
        elif gradient is None:  # only now is the sum right
            x = middle
            some = (x != 0.0).any(dim=1).nonzero()[:, 0]
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
        see(found, active, problems, x, gradient, tol, 0.0)
        keep = (~found.converged[active]).nonzero()[:, 0]
        if not keep.numel():
            return found
        active, problems = active[keep], problems.only(keep)
        x, gradient, worth = x[:, keep], gradient[:, keep], worth[keep]
        gap, before = found.share[active], before[keep]
        share *= _MORE if bool((gap > _GAIN * before).any()) else _LESS
        before = gap
        part_tol = max(_SHARE_OF_TOL * tol, _SHARE_OF_GAP * float(gap.max()))
        _gap, level = problems.gap(x, gradient)
        farness = _farness(problems, x, gradient + level)
    rest = _solve_whole(field, problems, tol)
    see(found, active, problems, rest.x, rest.gradient, tol, 0.0)
    found.n_iter += rest.n_iter
    return found


def _solve_whole(field: Field, problems: Programmes, tol: float) -> Solutions:
    hessian = _hessian(field, problems)
    start = _first_point(problems, hessian)
    return follow_barrier(hessian, problems, start, tol=tol, finish=_round)


def _hessian(field: Field, problems: Programmes) -> Hessian:
    plan = field.plan(*problems.linear.shape)
    field.plans.append(plan)
    if field.say is not None:
        field.say(plan)
    kernel = DeviceKernel(field.points, plan, field.traffic)
    return Hessian(kernel, rows=field.rows)


def _guess(field: Field, problems: Programmes) -> tuple[Tensor, Tensor] | None:
    """Give slopes of the objective and its gain, by machines of fewer samples.

    None, if such a machine would have but one class.
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
    quiet = replace(field.at(few), say=None)
    found = solve_in_parts(quiet, smaller, _TOL_OF_GUESS)
    used = (found.x != 0.0).any(dim=1).nonzero()[:, 0]
    product = field.product(few[used], found.x[used])
    gain = smaller.reference - found.objective
    return product - problems.linear + found.multiplier, gain


def _nearest(problems: Programmes, farness: Tensor, share: float) -> Tensor:
    """Mark the variables of each problem that are nearest, or on the wrong side."""
    inside = problems.inside
    farness = problems.device.xp.where(inside, farness, float("inf"))
    count = (share * inside.sum(dim=0)).long().clamp(min=1) - 1
    last = farness.sort(dim=0).values.gather(0, count[None])
    return inside & (farness <= last.clamp(min=0.0))


def _farness(problems: Programmes, x: Tensor, slope: Tensor) -> Tensor:
    """Say by how much each variable wants to be where it is; less than 0 if it is not."""
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
    field: Field,
    problems: Programmes,
    x: Tensor,
    gradient: Tensor,
    part: Tensor,
    start: Tensor,
    tol: float,
) -> tuple[Tensor, Tensor, int]:
    """Solve for a part of the variables; gives all, the gradient, and the steps."""
    where = problems.device.xp.where
    some = part.any(dim=1).nonzero()[:, 0]
    here, mine = x[some], part[some]
    few = problems.at(some)
    few = replace(
        few,
        lower=where(mine, few.lower, here),
        upper=where(mine, few.upper, here),
        low=here.sum(dim=0),
        high=here.sum(dim=0),
    )
    hessian = _hessian(field.at(some), few)
    product = hessian.product(here, careful=True)
    few = replace(few, linear=product - gradient[some])
    done = problems.objective(x, gradient) - few.objective(here, gradient[some])
    few = replace(few, reference=problems.reference - done)
    found = follow_barrier(hessian, few, start[some], tol=tol, finish=_round)
    del hessian  # its memory is needed
    change = found.x - here
    moved = (change != 0.0).any(dim=1).nonzero()[:, 0]
    gradient = gradient + field.product(some[moved], change[moved])
    gradient[some] = found.gradient
    x = x.clone()
    x[some] = found.x
    return x, gradient, found.n_iter


def _first_point(problems: Programmes, hessian: Hessian) -> Tensor:
    """Balance the classes within their bounds, as far in as the objective falls."""
    positive, negative = problems.upper.sum(dim=0), -problems.lower.sum(dim=0)
    less = 0.5 * problems.device.xp.minimum(positive, negative)
    x = problems.upper * (less / positive) + problems.lower * (less / negative)
    bend = (x * hessian.thin_product(x)).sum(dim=0)
    return x * ((x * problems.linear).sum(dim=0) / bend).clamp(1e-6, 1.0)


def _round(
    problems: Programmes, x: Tensor, below: Tensor, above: Tensor, near: Tensor
) -> Tensor:
    """Put variables there that are near a bound, if its multiplier is greater than that."""
    where = problems.device.xp.where
    width = problems.upper - problems.lower
    at_lower, at_upper = (
        (slack <= near * width) & (slack <= multiplier * width)
        for slack, multiplier in (
            (x - problems.lower, below),
            (problems.upper - x, above),
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
