"""Which solver gets a problem, and the evidence that its answer is one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from probgap._core.output import fact_table, number
from probgap._core.types import Vector
from probgap.reweight._pivoting import solve_by_pivoting
from probgap.reweight._problem import Bounds, MatchingBatch
from probgap.reweight._qp import solve_exactly
from probgap.reweight._routes import KKT_SHARE, Outcome, match_dense

SOLVERS = ("auto", "low_rank", "iterative", "pivoting", "exact")

# The dense interior point method takes over from pivoting up to this size; beyond, it
# would run for minutes, and the iterative solver takes over.
LARGEST_FOR_EXACT = 6000


@dataclass(frozen=True, slots=True)
class KMMResult:
    """Weights, and the evidence that they solve the problem.

    Attributes
    ----------
    weights : ndarray of shape (n_source,)
        One weight for each source sample, in [0, upper].
    objective : float
        Squared distance between the weighted source mean and the target mean in
        feature space, less the term that depends on the target alone. Of a sample
        matched to itself, where the distance is 0, it is an estimate from 1000 rows.
    kkt_residual : float
        Largest violation of the optimality conditions, in the scale in which the
        gradient of the problem has entries of order one. Zero at a solution.
    band_slack : float
        How far the mean weight is from the nearer edge of its band. Never negative.
    n_iter : int
        Iterations of the solver.
    converged : bool
        Whether the tolerance asked for is met.
    solver : str
        Which solver was used.
    gamma : float or None
        Width of the kernel, where the kernel has one.
    duality_gap : float
        The objective is certainly within this of the least possible one, if the kernel
        is positive semidefinite.
    n_passes : float
        Products with the whole kernel, of a solver on a device; 0 for others.
    bytes_moved : float
        Bytes that these products read or wrote.
    """

    weights: NDArray[np.float64]
    objective: float
    kkt_residual: float
    band_slack: float
    n_iter: int
    converged: bool
    solver: str
    gamma: float | None
    duality_gap: float = np.inf
    n_passes: float = 0.0
    bytes_moved: float = 0.0

    @property
    def effective_sample_size(self) -> float:
        """Number of equally weighted samples with the same variance of a mean."""
        total = float(self.weights.sum())
        return total**2 / float(self.weights @ self.weights) if total > 0.0 else 0.0

    def _repr_html_(self) -> str:
        largest = float(self.weights.max(initial=0.0))
        facts = {
            "weights": f"{self.weights.size:,}, largest {number(largest)}",
            "effective sample size": f"{self.effective_sample_size:,.1f}",
            "objective": number(self.objective, 6),
            "duality gap": number(self.duality_gap, 2),
            "KKT residual": number(self.kkt_residual, 2),
            "converged": "yes" if self.converged else "no",
            "solver": f"{self.solver} (iterations: {self.n_iter:,})",
            "kernel width": "none" if self.gamma is None else number(self.gamma),
        }
        return fact_table("Kernel mean matching", facts)


class _Answer(NamedTuple):
    weights: Vector
    n_iter: int
    solver: str
    witness: Vector | None = None


def solve_batch(
    batch: MatchingBatch,
    solver: str,
    tol: float,
    gamma: float | None,
    *,
    certify: bool = True,
) -> list[KMMResult]:
    """Solve every problem of a batch by the named solver, or by the rule of "auto".

    ``certify`` asks for a close bound on the least objective, for some more time.
    """
    everything = range(batch.chosen.shape[0])
    if solver == "exact":
        results = _judge(
            batch, {j: _exactly(batch, j, tol) for j in everything}, tol, gamma
        )
    else:
        results = _pivot(batch, tol, gamma, certify=certify)
    if solver == "auto":
        again = {
            j: _once_more(batch, j, tol)
            for j, result in results.items()
            if not result.converged
        }
        for j, result in _judge(batch, again, tol, gamma).items():
            if result.kkt_residual < results[j].kkt_residual:
                results[j] = result
    for result in results.values():
        if not result.converged:
            warn(result, tol)
    return [results[j] for j in everything]


def nothing_to_match(bounds: Bounds, mean: float, gamma: float | None) -> KMMResult:
    """Give uniform weights, which match a sample to itself exactly."""
    return KMMResult(
        weights=np.ones(bounds.n),
        objective=-mean,
        kkt_residual=0.0,
        band_slack=float(min(bounds.slack, bounds.upper - 1.0)),
        n_iter=0,
        converged=True,
        solver="none needed",
        gamma=gamma,
        duality_gap=0.0,
    )


def as_result(
    outcome: Outcome, bounds: Bounds, tol: float, gamma: float | None
) -> KMMResult:
    """Report what came of a large problem, aloud if it is not good enough."""
    found = outcome.certified
    low, high = bounds.band
    mean = float(found.weights.mean())
    result = KMMResult(
        weights=found.weights,
        objective=2.0 * found.objective / bounds.n,
        kkt_residual=found.residual / outcome.unit,
        band_slack=max(0.0, min(mean - low, high - mean)),
        n_iter=found.n_iter,
        converged=outcome.converged,
        solver=outcome.solver,
        gamma=gamma,
        duality_gap=2.0 * found.gap / bounds.n,
    )
    if not result.converged:
        warn(result, tol)
    return result


def _pivot(
    batch: MatchingBatch, tol: float, gamma: float | None, *, certify: bool
) -> dict[int, KMMResult]:
    pivoted = dict(enumerate(solve_by_pivoting(batch, certify=certify)))
    answers = {
        j: _Answer(
            _uniform(batch.bounds(j)) if p.weights is None else p.weights,
            p.n_iter,
            "pivoting",
            p.witness,
        )
        for j, p in pivoted.items()
    }
    return _judge(batch, answers, tol, gamma)


def _once_more(batch: MatchingBatch, j: int, tol: float) -> _Answer:
    """Solve what pivoting did not: exactly, or by products if there is too much of it."""
    if np.count_nonzero(batch.chosen[j]) <= LARGEST_FOR_EXACT:
        return _exactly(batch, j, tol)
    solution = match_dense(batch.problem(j), tol)
    return _Answer(
        solution.weights,
        solution.n_iter,
        "iterative",
        solution.witness / solution.weights.size,
    )


def _exactly(batch: MatchingBatch, j: int, tol: float) -> _Answer:
    solution = solve_exactly(batch.problem(j), KKT_SHARE * tol)
    return _Answer(solution.weights, solution.n_iter, "exact")


def _uniform(bounds: Bounds) -> Vector:
    return bounds.project(np.ones(bounds.n))


def _judge(
    batch: MatchingBatch, answers: dict[int, _Answer], tol: float, gamma: float | None
) -> dict[int, KMMResult]:
    """Turn answers into results, with one product for the gradients of all."""
    points = [(batch.chosen[j], a.weights / a.weights.size) for j, a in answers.items()]
    points += [
        (batch.chosen[j], a.witness)
        for j, a in answers.items()
        if a.witness is not None
    ]
    products = _products(batch, points)
    witnessed = len(answers)
    results = {}
    for k, (j, answer) in enumerate(answers.items()):
        weights, bounds, rows = answer.weights, batch.bounds(j), batch.chosen[j]
        kappa = batch.kappa[rows]
        gradient = products[rows, k] - kappa
        residual = bounds.kkt_residual(weights, gradient)
        objective = float(weights @ (gradient - kappa))
        gap = float(weights @ gradient) - bounds.least(gradient)
        if answer.witness is not None:
            product = products[rows, witnessed]
            witnessed += 1
            bound = bounds.least(product - kappa)
            bound -= 0.5 * bounds.n * float(answer.witness @ product)
            gap = min(gap, 0.5 * objective - bound)
        # Rounding can make a gap of nothing negative.
        gap = max(gap, 0.0)
        converged = residual <= KKT_SHARE * tol
        if not converged:
            gain = _objective_of_uniform(batch, j) - objective + 2.0 * gap
            converged = 2.0 * gap <= tol * gain
        low, high = bounds.band
        mean = float(weights.mean())
        results[j] = KMMResult(
            weights=weights,
            objective=objective / bounds.n,
            kkt_residual=residual,
            band_slack=max(0.0, min(mean - low, high - mean)),
            n_iter=answer.n_iter,
            converged=bool(converged),
            solver=answer.solver,
            gamma=gamma,
            duality_gap=2.0 * gap / bounds.n,
        )
    return results


def _products(
    batch: MatchingBatch, points: list[tuple[NDArray[np.bool_], Vector]]
) -> NDArray[np.float64]:
    spread = np.zeros((batch.kappa.size, len(points)))
    for k, (rows, point) in enumerate(points):
        spread[rows, k] = point
    products: NDArray[np.float64] = batch.kernel @ spread
    return products


def _objective_of_uniform(batch: MatchingBatch, j: int) -> float:
    weights = np.zeros(batch.kappa.size)
    bounds = batch.bounds(j)
    weights[batch.chosen[j]] = _uniform(bounds)
    return float(weights @ (batch.kernel @ weights / bounds.n - 2.0 * batch.kappa))


def warn(result: KMMResult, tol: float) -> None:
    warnings.warn(
        f"Kernel mean matching must meet tol={tol:g}. Got a KKT residual of "
        f"{result.kkt_residual:.2g}: the weights may be far from the best ones. Give a "
        "larger tol, a smaller upper, or scaled features, or solver='exact'.",
        ConvergenceWarning,
        stacklevel=4,
    )
