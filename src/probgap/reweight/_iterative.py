"""Pivoting by conjugate gradients, for kernels that are not to be factorised.

As in block principal pivoting, a guess says which weights lie at a bound, the others
solve a linear system, and all guesses that prove wrong are mended at once. Here the
system is solved by conjugate gradients, preconditioned by a low-rank factor, and only
as exactly as the guess deserves.

A pull towards uniform weights keeps the system well conditioned and the guesses from
cycling. It is as strong as the tolerance allows: what it costs is part of the gap that
is certified. Far from the centre it is weaker, so that its force, and with it the
gradient that is left, is about the same for every weight.

Any point, feasible or not, has a tangent that bounds the least objective. That of the
solution before it is cut to the bounds is far closer than that of the weights
themselves. So the best weights and the best bound may come from different steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Vector
from probgap.reweight._certificate import Best, Goal
from probgap.reweight._conjugate import KernelSystem
from probgap.reweight._guess import AT_UPPER, AT_ZERO, FREE
from probgap.reweight._problem import Bounds

_MAX_STEPS = 25
# Force of the pull, error left in the gradient of free weights, and the force that
# sets a weight free, as shares of the gradient that the tolerance allows.
_PULL = 0.8
_ERROR = 0.3
_RELEASE = 0.3
# The gain is not known at first: the pull is then this share of the KKT residual
# asked for.
_FIRST_PULL = 0.5
# The first system is solved to this share of the gradient, each next one to a tenth.
_FIRST_ERROR = 0.005
_TIGHTEN = 0.1
# From this multiple of the KKT residual on, the guess is taken seriously.
_SERIOUS = 10.0
# Steps that may fail to bring down the number of wrong guesses.
_PATIENCE = 6
# What is cut off at the bounds, as a share of all weight, when a guess has settled.
_SETTLED = 1e-6
# The sum of the weights, where it is at an edge, is held there by this penalty.
_PENALTY = 10.0


@dataclass(slots=True)
class _State:
    """Where the search stands."""

    guess: NDArray[np.int8]
    weights: Vector
    gradient: Vector
    centre: Vector
    pull: Vector
    near: Vector
    error: float
    band: int
    multiplier: float = 0.0
    fewest: int = -1
    patience: int = _PATIENCE


def pivot_iteratively(
    system: KernelSystem, best: Best, weights: Vector, gradient: Vector
) -> int:
    """Pivot from feasible weights until they are good enough, or guesses cycle.

    What is found is left in ``best``. Gives the number of steps.
    """
    uniform = best.bounds.project(np.ones(best.bounds.n))
    state = _first_state(best.bounds, weights, gradient, uniform, best.goal)
    steps = 0
    while not best.is_good_enough and steps < _MAX_STEPS and state.patience >= 0:
        steps += 1
        _step(state, system, best)
    return steps


def _first_state(
    bounds: Bounds, weights: Vector, gradient: Vector, uniform: Vector, goal: Goal
) -> _State:
    low, high = bounds.band
    guess = np.zeros(bounds.n, dtype=np.int8)
    guess[(weights <= 0.0) & (gradient > 0.0)] = AT_ZERO
    guess[(weights >= bounds.upper) & (gradient < 0.0)] = AT_UPPER
    return _State(
        guess=guess,
        weights=weights,
        gradient=gradient,
        centre=uniform,
        pull=np.full(bounds.n, _FIRST_PULL * goal.kkt_tol),
        near=gradient,
        error=_FIRST_ERROR * bounds.kkt_residual(weights, gradient),
        band=AT_UPPER if low == high else FREE,
    )


def _step(state: _State, system: KernelSystem, best: Best) -> None:
    """Solve for the guess, see what the solution proves, and mend the guess."""
    bounds, kappa = best.bounds, best.kappa
    low, high = bounds.band
    n = bounds.n
    free = state.guess == FREE
    held = state.band != FREE
    penalty = _PENALTY * best.goal.unit if held else 0.0
    edge = low if state.band == AT_ZERO else high
    excess = penalty * (float(state.weights.mean()) - edge) + state.multiplier
    slope = state.gradient + state.pull * (state.weights - state.centre) + excess
    state.error = max(_ERROR * best.aim, state.error)
    point = state.weights + system.solve_part(
        free, -n * slope, n * state.pull, state.near, penalty, n * state.error
    )
    weights = np.clip(point, 0.0, bounds.upper)
    both = system.kernel.product(np.array([weights, point - weights]).T, careful=True)
    gradient = both[:, 0] / n - kappa
    of_point = gradient + both[:, 1] / n
    if held:
        state.multiplier += penalty * (float(point.mean()) - edge)
    slope = of_point + state.pull * (point - state.centre) + state.multiplier
    state.weights, state.gradient = weights, gradient
    best.see_bound(point, of_point)
    feasible = bounds.project(weights)
    if (feasible != weights).any():
        gradient = system.kernel.product(feasible, careful=True) / n - kappa
    best.see_weights(feasible, gradient)
    best.see_bound(feasible, gradient)
    _mend(state, point, slope, best)


def _mend(state: _State, point: Vector, slope: Vector, best: Best) -> None:
    bounds, goal = best.bounds, best.goal
    low, high = bounds.band
    release = max(_RELEASE * best.aim, min(state.error, _SERIOUS * goal.kkt_tol))
    wanted = state.guess.copy()
    wanted[point < 0.0] = AT_ZERO
    wanted[point > bounds.upper] = AT_UPPER
    wanted[(state.guess == AT_ZERO) & (slope < -release)] = FREE
    wanted[(state.guess == AT_UPPER) & (slope > release)] = FREE
    wrong = int(np.count_nonzero(wanted != state.guess))
    state.near = np.where(state.guess == AT_UPPER, -slope, slope)
    state.guess = wanted
    mean = float(point.mean())
    if state.band == FREE:
        state.band = AT_ZERO if mean < low else AT_UPPER if mean > high else FREE
    elif low < high and state.multiplier * state.band < 0.0:
        state.band, state.multiplier = FREE, 0.0
    strength = _FIRST_PULL * goal.kkt_tol
    if state.error <= _SERIOUS * goal.kkt_tol:
        strength = _PULL * best.aim
        state.patience -= 1
        if state.fewest < 0 or wrong < state.fewest:
            state.fewest, state.patience = wrong, _PATIENCE
        cut = float(np.abs(point - state.weights).mean())
        if cut <= _SETTLED:
            # What the pull still costs is won back by moving its centre here.
            state.centre = state.weights
            state.fewest, state.patience = -1, _PATIENCE
    distance = np.maximum(1.0, np.abs(point - state.centre))
    state.pull = strength / distance
    state.error *= _TIGHTEN
