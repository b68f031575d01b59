"""An interior point method for several programmes with one kernel, step by step together.

Predictor and corrector after Mehrotra (1992). Each step solves systems with the kernel
and a positive diagonal by conjugate gradients, preconditioned by a low-rank factor. A
product of the kernel with a column for each problem reads the kernel once, so that
machines of all folds cost little more than one.

Few steps reach any accuracy, whatever the data: gradient methods need thousands for
the digits that decide, and active sets, which may need fewer products, take turns that
cannot be batched. The first steps, far from the bounds, need no kernel at all: the
factor stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from probgap._device._hessian import Hessian
from probgap._device._newton import TINY, Newton, Slacks, State
from probgap._device._programme import Programmes
from probgap._device._torch import Tensor

_MAX_STEPS = 60
# With the factor in the place of the kernel, until the gap is this share of the gain.
_THIN_SHARE = 0.1
# or has fallen to this share of the first.
_THIN_FALL = 0.01
_MAX_THIN_STEPS = 25
# Steps shorter than this go nowhere.
_SHORTEST = 1e-7
# Error of a system, as a share of the mean product of slacks and multipliers for a mean
# variable.
_ERROR = 0.1

# How near to a bound is taken for at it, as a share of the width. Where that was in vain
# so often, only what is nearer; and a gap of so much of what is asked for is good without
# rounding: many variables may be near a bound but not at it.
_NEAR, _NEARER = 0.05, 1e-3
_IN_VAIN = 3
_ENOUGH = 0.1

# Rounds points to bounds, given the problems, the points, the multipliers of the bounds,
# and how near is near.
Finish = Callable[[Programmes, Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(slots=True)
class Solutions:
    """Feasible points and what is known of them, one column or number for each problem.

    ``gap`` bounds how far the objective is from the least, ``share`` is the gap as a
    share of the gain over the reference.
    """

    x: Tensor
    gradient: Tensor
    objective: Tensor
    gap: Tensor
    share: Tensor
    multiplier: Tensor
    residual: Tensor
    converged: Tensor
    n_iter: int


def follow_barrier(
    hessian: Hessian,
    problems: Programmes,
    start: Tensor,
    *,
    tol: float,
    kkt_tol: float = 0.0,
    finish: Finish | None = None,
    max_steps: int = _MAX_STEPS,
) -> Solutions:
    """Solve all problems from points strictly inside of their bounds.

    Parameters
    ----------
    hessian : Hessian
        The second derivative, which they share.
    problems : Programmes
        The problems.
    start : Tensor of shape (n, n_problems)
        Points to begin with.
    tol : float
        The gap may be this share of what is gained over the reference.
    kkt_tol : float, default=0.0
        A KKT residual of this will do as well.
    finish : callable, default=None
        Rounds a point to bounds; a problem is solved when what that gives is good.
    max_steps : int, default=60
        The most steps with the kernel.
    """
    found = nothing_found(problems)
    in_vain = problems.device.xp.zeros_like(problems.low)
    state = _begin(hessian, problems, start)
    active = problems.device.xp.arange(start.shape[1], device=start.device)
    while active.numel():
        see(found, active, problems, state.x, state.gradient, tol, kkt_tol)
        good = found.converged[active]
        if finish is not None and bool(good.any()):
            good = _finish(
                found, active, problems, state, hessian, finish, tol, good, in_vain
            )
        stuck = found.n_iter >= max_steps
        if not stuck:
            keep = (~good).nonzero()[:, 0]
            active, problems, state = (
                active[keep],
                problems.only(keep),
                state.only(keep),
            )
        if stuck or not active.numel():
            break
        lengths = _step(hessian, problems, state, hessian.product)
        found.n_iter += 1
        state.gradient = hessian.product(state.x, careful=True) - problems.linear
        if bool((lengths < _SHORTEST).all()):
            max_steps = found.n_iter
    # Where there is no step left, what could not be rounded is good as it is.
    found.converged |= found.share <= tol
    return found


def _begin(hessian: Hessian, problems: Programmes, start: Tensor) -> State:
    """Take the first steps with the factor in the place of the kernel."""
    where = problems.device.xp.where
    gradient = hessian.thin_product(start) - problems.linear
    state = _first_state(problems, start, gradient)
    first, _level = problems.gap(state.x, state.gradient)
    for _ in range(_MAX_THIN_STEPS):
        gap, _level = problems.gap(state.x, state.gradient)
        gain = problems.reference - problems.objective(state.x, state.gradient)
        # The gain may be none at all, with a factor that is not the kernel.
        far = (gap > _THIN_SHARE * (gain + gap)) & (gap > _THIN_FALL * first)
        if not bool(far.any()):
            break
        before = state.only(slice(None))
        _step(
            hessian, problems, state, lambda vectors, **_: hessian.thin_product(vectors)
        )
        state.gradient = hessian.thin_product(state.x) - problems.linear
        for name in (f.name for f in fields(state)):
            setattr(
                state, name, where(far, getattr(state, name), getattr(before, name))
            )
    state.gradient = hessian.product(state.x, careful=True) - problems.linear
    return state


def _first_state(problems: Programmes, x: Tensor, gradient: Tensor) -> State:
    """Give all multipliers, so that products with slacks are about the same."""
    xp = problems.device.xp
    slacks = Slacks.of(problems, x)
    _gap, level = problems.gap(x, gradient)
    level = xp.where(slacks.held, level, 0.0)
    slope = gradient + level
    nearest = xp.minimum(slacks.below, slacks.above)
    count = slacks.inside.sum(dim=0).clamp(min=1)
    unit = (slacks.inside * nearest * slope.abs()).sum(dim=0) / count + TINY
    below = unit / slacks.below + slope.clamp(min=0.0)
    above = unit / slacks.above + (-slope).clamp(min=0.0)
    return State(
        x=x,
        gradient=gradient,
        below=xp.where(slacks.inside, below, 0.0),
        above=xp.where(slacks.inside, above, 0.0),
        level=level,
        band_below=xp.where(slacks.held, 0.0, unit / slacks.band_below),
        band_above=xp.where(slacks.held, 0.0, unit / slacks.band_above),
    )


def _step(
    hessian: Hessian,
    problems: Programmes,
    state: State,
    product: Callable[..., Tensor],
) -> Tensor:
    """Move all problems a step, but for the gradient; gives how far they went."""
    xp = problems.device.xp
    slacks = Slacks.of(problems, state.x)
    newton = Newton(hessian, problems, state, slacks, product)
    mean = slacks.mean_product(state, None, 0.0)
    count = slacks.inside.sum(dim=0).clamp(min=1)
    per_variable = mean * count / state.x.abs().sum(dim=0).clamp(min=TINY)
    zero = 0.0 * state.x
    none = (zero, zero, zero[:1], zero[:1])
    ahead = newton.toward(none, _ERROR * per_variable)
    way = newton.way(ahead)
    centring = (
        mean * (slacks.mean_product(state, ahead, way) / mean).clamp(0.0, 1.0) ** 3
    )
    products = tuple(
        (centring - sign * by * multiplier)
        for sign, by, multiplier in zip(
            (1.0, -1.0, 1.0, -1.0),
            (ahead.x, ahead.x, ahead.total[None], ahead.total[None]),
            ahead.multipliers,
            strict=True,
        )
    )
    looser = xp.maximum(centring / mean, _ERROR + 0.0 * mean)
    change = newton.toward(products, _ERROR * per_variable * looser)
    way = newton.way(change)
    moves = {
        "x": change.x,
        "level": change.level,
        "below": change.multipliers[0],
        "above": change.multipliers[1],
        "band_below": change.multipliers[2][0],
        "band_above": change.multipliers[3][0],
    }
    # At the limits of precision there may be no direction left: stay.
    sound = xp.isfinite(change.x.sum(dim=0) + way)
    for name, move in moves.items():
        now = getattr(state, name)
        setattr(state, name, xp.where(sound, now + way * move, now))
    return xp.where(sound, way, 0.0)


def nothing_found(problems: Programmes) -> Solutions:
    """Give what is known before the first point."""
    xp = problems.device.xp
    infinite = xp.full_like(problems.low, float("inf"))
    return Solutions(
        x=xp.zeros_like(problems.linear),
        gradient=-problems.linear,
        objective=infinite.clone(),
        gap=infinite.clone(),
        share=infinite.clone(),
        multiplier=0.0 * problems.low,
        residual=infinite.clone(),
        converged=problems.low != problems.low,
        n_iter=0,
    )


def see(
    found: Solutions,
    active: Tensor,
    problems: Programmes,
    x: Tensor,
    gradient: Tensor,
    tol: float,
    kkt_tol: float,
) -> None:
    """Keep points that are better than those found before."""
    objective = problems.objective(x, gradient)
    gap, multiplier = problems.gap(x, gradient)
    share = gap / (problems.reference - objective + gap).clamp(min=TINY)
    multiplier = problems.device.xp.where(problems.held, multiplier, 0.0)
    residual = problems.kkt_residual(x, gradient, multiplier)
    good = (share <= tol) | (residual <= kkt_tol)
    better = good | (gap < found.gap[active])
    columns, chosen = active[better], better.nonzero()[:, 0]
    found.x[:, columns] = x[:, chosen]
    found.gradient[:, columns] = gradient[:, chosen]
    for name, value in (
        ("objective", objective),
        ("gap", gap),
        ("share", share),
        ("multiplier", multiplier),
        ("residual", residual),
        ("converged", good),
    ):
        getattr(found, name)[columns] = value[chosen]


def _finish(
    found: Solutions,
    active: Tensor,
    problems: Programmes,
    state: State,
    hessian: Hessian,
    finish: Finish,
    tol: float,
    good: Tensor,
    in_vain: Tensor,
) -> Tensor:
    """Round what is good, and say which of it still is, or is good enough without."""
    chosen = good.nonzero()[:, 0]
    these, some, columns = problems.only(chosen), state.only(chosen), active[chosen]
    xp = problems.device.xp
    late = in_vain[columns] >= _IN_VAIN
    enough = late & (found.share[columns] <= _ENOUGH * tol)
    x = finish(these, some.x, some.below, some.above, xp.where(late, _NEARER, _NEAR))
    gradient = hessian.product(x, careful=True) - these.linear
    rounded = nothing_found(these)
    every = xp.arange(columns.numel(), device=columns.device)
    see(rounded, every, these, x, gradient, tol, 0.0)
    fine = rounded.converged
    for name in (f.name for f in fields(Solutions) if f.name != "n_iter"):
        kept, new = getattr(found, name), getattr(rounded, name)
        kept[..., columns[fine]] = new[..., fine]
    # What is good inside the bounds is kept, but another step may let it be rounded.
    found.converged[columns] = fine | enough
    in_vain[columns] += 1.0
    return found.converged[active]
