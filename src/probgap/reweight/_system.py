"""One problem through the iterative solvers, from its operator to its certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Vector
from probgap.reweight._barrier import follow_barrier
from probgap.reweight._certificate import Best, Certified, Goal
from probgap.reweight._conjugate import KernelSystem, System
from probgap.reweight._iterative import pivot_iteratively
from probgap.reweight._operators import KernelOperator
from probgap.reweight._problem import Bounds


def solve_system(
    kernel: KernelOperator,
    kappa: Vector,
    bounds: Bounds,
    factor: NDArray[Any],
    rest: float,
    goal: Goal,
    start: Vector | None = None,
) -> Certified:
    """Minimise ``w @ K @ w / (2 n) - kappa @ w`` within bounds.

    Parameters
    ----------
    kernel : KernelOperator
        The matrix K.
    kappa : ndarray of shape (n,)
        The linear term.
    bounds : Bounds
        Box and band.
    factor : ndarray of shape (n, rank)
        ``factor @ factor.T`` approximates K.
    rest : float
        The size of what it leaves, 0.0 where it is exact.
    goal : Goal
        When to stop.
    start : ndarray of shape (n,), default=None
        Feasible weights to begin with; uniform ones by default.
    """
    system = System(kernel, factor, rest)
    return solve_with(system, kappa, bounds, goal, start)


def solve_with(
    system: KernelSystem,
    kappa: Vector,
    bounds: Bounds,
    goal: Goal,
    start: Vector | None = None,
) -> Certified:
    """Minimise as :func:`solve_system`, with a system that is there already."""
    n, kernel = bounds.n, system.kernel
    uniform = bounds.project(np.ones(n))
    weights = uniform if start is None else start
    both = kernel.product(np.array([uniform, weights]).T, careful=True) / n
    best = Best(bounds, kappa, goal, float(uniform @ (0.5 * both[:, 0] - kappa)))
    gradient = both[:, 1] - kappa
    best.see_weights(uniform, both[:, 0] - kappa)
    best.see_weights(weights, gradient)
    best.see_bound(weights, gradient)
    steps = pivot_iteratively(system, best, weights, gradient)
    # Where guesses cycle, many weights are almost free to be anything.
    steps += follow_barrier(system, best)
    return best.certified(steps)
