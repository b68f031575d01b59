"""The exact solver: a dense interior point method. It knows nothing of PU learning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probgap.reweight._problem import MatchingProblem

_MAX_ITER = 100
# The gradient condition is met to about the square root of what the interior point
# method is asked for where a bound is only just active; hence two attempts.
_ATTEMPTS = (1e-4, 1e-6)
# Uniform weights that are optimal up to rounding are the answer: nothing is nearer.
_ROUNDING = 1e-13


@dataclass(frozen=True, slots=True)
class QPSolution:
    """What a solver hands back: weights, and how many iterations they took."""

    weights: NDArray[np.float64]
    n_iter: int


def solve_exactly(problem: MatchingProblem, tol: float) -> QPSolution:
    """Solve by PIQP, in O(n^3) time and O(n^2) memory."""
    n_iter = 0
    best = problem.bounds.project(np.ones(problem.n))
    best_residual = problem.kkt_residual(best)
    if best_residual <= _ROUNDING:
        return QPSolution(best, n_iter)
    for share in _ATTEMPTS:
        attempt = _interior_point(problem, tol * share)
        n_iter += attempt.n_iter
        residual = problem.kkt_residual(attempt.weights)
        if residual < best_residual:
            best, best_residual = attempt.weights, residual
        if best_residual <= tol:
            break
    return QPSolution(best, n_iter)


def _interior_point(problem: MatchingProblem, tol: float) -> QPSolution:
    import piqp  # noqa: PLC0415 (compiled: loaded when a problem is solved)

    n = problem.n
    hessian = np.asfortranarray(problem.kernel / n)
    hessian[np.diag_indices(n)] += problem.ridge
    mean_row = np.full((1, n), 1.0 / n, order="F")
    low, high = (np.array([edge]) for edge in problem.bounds.band)
    # A band without width is an equation: as two inequalities it has no interior.
    equation = (mean_row, low) if low == high else (None, None)
    inequality = (None, None, None) if low == high else (mean_row, low, high)
    solver = piqp.DenseSolver()
    settings = solver.settings
    # Relative tolerances loosen the stopping rule by orders of magnitude here.
    settings.eps_rel = settings.eps_duality_gap_rel = 0.0
    settings.eps_abs = settings.eps_duality_gap_abs = tol
    settings.max_iter = _MAX_ITER
    solver.setup(
        hessian,
        -problem.kappa - problem.ridge,
        *equation,
        *inequality,
        np.zeros(n),
        np.full(n, problem.upper),
    )
    solver.solve()
    weights = np.nan_to_num(np.asarray(solver.result.x, dtype=np.float64), nan=1.0)
    return QPSolution(problem.bounds.project(weights), int(solver.result.info.iter))
