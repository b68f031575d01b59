"""The choice between three solvers.

Pivoting with one dense factor is fastest on small problems and on many with the same
kernel, a low-rank factor in two or three dimensions, products with the kernel in more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from sklearn.utils import gen_batches

from probgap._core.kernels import kernel_diagonal, kernel_matrix, mean_kernel
from probgap._core.runtime import spread_rows
from probgap._core.types import Array, Matrix, Vector
from probgap.reweight._kernels import (
    BlockKernel,
    GrowingFactor,
    PanelKernel,
    times,
    times_transposed,
)
from probgap.reweight._pivoting import MatchingBatch, solve_by_pivoting
from probgap.reweight._problem import Best, Bounds, KMMResult
from probgap.reweight._products import (
    DenseHessian,
    KernelHessian,
    solve_by_products,
)

SOLVERS = ("auto", "low_rank", "iterative", "pivoting", "exact")

# Positive semidefinite kernels, for which the residual of a factor is known.
_DEFINITE = ("rbf", "laplacian", "linear", "cosine", "polynomial", "poly")
# With fewer source samples, or a smaller tolerance, pivoting is as fast.
_SMALL = 500
_EXACT_TOL = 1e-6
# Up to this size pivoting takes over what other solvers did not solve; beyond, it would take
# minutes. Its interior point method aims at this share of the KKT tolerance.
_LARGEST_DENSE = 6000
_AS_EXACT = 1e-2
# Columns that show whether the rank is low: their mean residual is then at most this.
_PROBE = 96
_PROMISING = 1e-3
# Largest rank that counts as low, in all and as a share of the number of samples.
_LARGEST_RANK = 600
_LARGEST_SHARE = 1 / 6
# Allowed error of the factor in half the squared distance of means, in units of tolerance
# and diagonal; if that does not suffice, it is multiplied by the second, and so on.
_ERROR = 2.5e-4
_FINER = 1e-2
_FINEST = 1e-13
# Rank of the preconditioner, as a multiple of n and of its square root, whichever is less.
_PRECONDITION_SHARE = 1 / 12
_PRECONDITION_ROOT = 6.4
# Matrices up to this size are multiplied with in double precision.
_LARGEST_IN_DOUBLE = 1000
# Most rows of the target that may become pivots, and rows processed at a time.
_TARGET_ROWS = 5000
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Task:
    """A source to weight, a target to match, and a tolerance."""

    source: Matrix
    target: Matrix
    kernel: Any
    params: Mapping[str, Any]
    bounds: Bounds
    tol: float
    max_memory: float
    start: Vector | None = None

    @property
    def gamma(self) -> float | None:
        return self.params.get("gamma")

    def between(self, A: Matrix, B: Matrix) -> Array:
        return kernel_matrix(A, B, self.kernel, self.params)


def solve(task: Task, solver: str) -> KMMResult:
    """Solve by the named solver, or by the one that "auto" chooses."""
    if solver in ("low_rank", "iterative"):
        return _solve_at_scale(task, solver)
    n, auto = task.bounds.n, solver == "auto" and task.kernel in _DEFINITE
    too_large = 8.0 * n**2 > task.max_memory
    if auto and (too_large or (n >= _SMALL and task.tol >= _EXACT_TOL)):
        result = _solve_at_scale(task, solver)
        pivot = not (result.converged or too_large or n > _LARGEST_DENSE)
        return _solve_by_pivoting(task) if pivot else result
    result = _solve_by_pivoting(task)
    if auto and not result.converged:
        # A singular kernel can stop the dense solvers short of the certificate.
        other = _solve_at_scale(task, solver)
        return other if other.converged else result
    return result


def _solve_by_pivoting(task: Task) -> KMMResult:
    """Solve a single problem as a batch of one."""
    batch = MatchingBatch(
        kernel=task.between(task.source, task.source),
        kappa=mean_kernel(task.source, task.target, task.kernel, task.params),
        chosen=np.ones((1, task.bounds.n), dtype=bool),
        upper=task.bounds.upper,
        slack=task.bounds.slack,
        n_target=task.target.shape[0],
    )
    return solve_batch(batch, task.tol, task.gamma, certify=True)[0]


def solve_batch(
    batch: MatchingBatch, tol: float, gamma: float | None, **limits: Any
) -> list[KMMResult]:
    """Solve problems by pivoting, or by an interior point method where that fails.

    ``limits`` are those of :func:`solve_by_pivoting`.
    """
    guesses, results = solve_by_pivoting(batch, **limits), []
    answers = [(guess.rows, guess.weights / guess.bounds.n) for guess in guesses]
    witnesses = [(g.rows, g.witness) for g in guesses if g.witness is not None]
    products = iter(batch.products(answers + witnesses))
    gradients = [next(products) - batch.kappa[guess.rows] for guess in guesses]
    for guess, gradient in zip(guesses, gradients, strict=True):
        rows, n = guess.rows, guess.bounds.n
        best = Best.of(guess.bounds, batch.kappa[rows], tol)
        best.update(guess.weights, gradient)
        if guess.witness is not None:
            best.update_bound(n * guess.witness, next(products) - best.kappa)
        if not best.is_good_enough:
            kernel = batch.kernel[np.ix_(rows, rows)]
            uniform = best.bounds.uniform()
            half = 0.5 * (kernel @ uniform) / n
            best.at_uniform = float(uniform @ (half - best.kappa))
        result = best.result("pivoting", guess.steps, gamma)
        if not result.converged:
            other = _by_dense_interior_point(kernel, best, batch.ridge, gamma)
            if other.kkt_residual < result.kkt_residual:
                result = other
        results.append(result)
    return results


def _by_dense_interior_point(
    kernel: Array, tried: Best, ridge: float, gamma: float | None
) -> KMMResult:
    """Solve as exactly as pivoting would, with the same ridge."""
    bounds, n = tried.bounds, tried.bounds.n
    shifted = DenseHessian(kernel + ridge * np.eye(n))
    found = Best(bounds, tried.kappa + ridge / n, 0.0, _AS_EXACT * tried.kkt_tol)
    steps = solve_by_products(shifted, found, max_steps=0)
    best = replace(tried, objective=np.inf, bound=-np.inf)
    best.update(found.weights, kernel @ found.weights / n - best.kappa)
    return best.result("exact", steps, gamma)


def _solve_at_scale(task: Task, solver: str) -> KMMResult:
    """Solve by a low-rank factor or by products, without a dense matrix."""
    n, d = task.source.shape
    insist = solver == "low_rank"
    dense = not (sp.issparse(task.source) or sp.issparse(task.target))
    thin = d <= n // 4 or insist
    if task.kernel == "linear" and dense and thin and solver != "iterative":
        return _by_features(task)
    some = task.target[spread_rows(task.target.shape[0], _TARGET_ROWS)]
    both = [task.source, some]
    samples = np.vstack(both) if dense else sp.vstack(both, format="csr")
    diagonal = kernel_diagonal(samples, task.kernel, task.params)
    growing = GrowingFactor(lambda p: task.between(samples, samples[p]), diagonal)
    unit = float(diagonal[:n].mean()) or 1.0
    result = None
    if solver != "iterative":
        result = _by_low_rank(task, growing, samples, unit, insist=insist)
    return _by_products(task, growing, unit) if result is None else result


def _by_features(task: Task) -> KMMResult:
    """Match means of features: with a linear kernel, the samples are the factor."""
    n, m = task.bounds.n, task.target.shape[0]
    mean = times_transposed(task.target, np.full(m, 1.0 / m))
    diagonal = np.einsum("ij,ij->i", task.source, task.source, dtype=np.float64)
    unit = float(diagonal.mean()) or 1.0
    return _with_factor(task, task.source, mean, unit, np.zeros(n), 0.0)


def _by_low_rank(
    task: Task, growing: GrowingFactor, samples: Matrix, unit: float, *, insist: bool
) -> KMMResult | None:
    """Solve with a low-rank factor for the kernel; None if it is not accurate enough."""
    limit = growing.rest.size
    if not insist:
        room = task.max_memory / (16.0 * limit)
        limit = int(min(_LARGEST_RANK, _LARGEST_SHARE * task.bounds.n, room))
        growing.grow(min(_PROBE, limit), _leaves_at_most(_ERROR * task.tol * unit))
        if growing.rest.mean() > _PROMISING * unit:
            return None
    result = None
    level = max(_ERROR * task.tol, 2.0 * _FINEST)
    while level > _FINEST:
        enough = _leaves_at_most(level * unit)
        growing.grow(limit, enough)
        if not (insist or enough(growing.rest)):
            return None
        factor = np.ascontiguousarray(growing.factor[: task.bounds.n])
        left = np.sqrt(growing.rest[: task.bounds.n])
        mean, of_target = _reduce_target(task, growing, samples[growing.pivots])
        result = _with_factor(task, factor, mean, unit, left, of_target)
        if result.converged or growing.exhausted:
            break
        task = replace(task, start=result.weights)
        level *= _FINER
    return result if insist or (result and result.converged) else None


def _leaves_at_most(level: float) -> Callable[[Vector], bool]:
    """Return a test of whether half the squared error of a mean is at most ``level``."""
    return lambda rest: 2.0 * float(np.sqrt(rest).mean()) ** 2 <= level


def _with_factor(
    task: Task,
    factor: Array,
    mean: Vector,
    unit: float,
    left: Vector,
    left_of_target: float,
) -> KMMResult:
    """Solve with a factor and the target's mean features; add the error to the gap.

    ``left`` are norms of the residuals of the source. With ``a`` and ``b`` the mean norms of
    weighted source and target, squared distances of means are off by at most ``(a + b)^2``.
    """
    n = task.bounds.n
    best = Best.of(task.bounds, times(factor, mean), task.tol, unit)

    def bound_error(weights: Vector) -> None:
        both = float((weights * left).mean()) + left_of_target
        best.gap_error, best.kkt_error = 0.5 * n * both**2, float(left.max()) * both

    # The weights are not known yet: assume uniform ones.
    bound_error(np.ones(n))
    steps = solve_by_products(KernelHessian(None, factor, 0.0, n), best, task.start)
    bound_error(best.weights)
    return best.result("low_rank", steps, task.gamma)


def _reduce_target(
    task: Task, growing: GrowingFactor, pivots: Matrix
) -> tuple[Vector, float]:
    """Return the mean features of the target by the factor, and the mean residual norm."""
    m = task.target.shape[0]
    total, left = np.zeros(growing.rank), 0.0
    for rows in gen_batches(m, _BLOCK):
        block = task.target[rows]
        values = task.between(pivots, block)
        features = solve_triangular(
            growing.triangle, values, lower=True, check_finite=False
        )
        total += features.sum(axis=1)
        rest = kernel_diagonal(block, task.kernel, task.params)
        rest = rest - np.einsum("ij,ij->j", features, features)
        left += float(np.sqrt(np.maximum(rest, 0.0)).sum())
    return total / m, left / m


def _by_products(task: Task, growing: GrowingFactor, unit: float) -> KMMResult:
    """Solve by products with the kernel, preconditioned by the factor."""
    n, source = task.bounds.n, task.source
    growing = growing.of_first_rows(n, lambda p: task.between(source, source[p]))
    rank = int(min(_PRECONDITION_ROOT * np.sqrt(n), np.ceil(_PRECONDITION_SHARE * n)))
    growing.grow(rank, lambda rest: not rest.any())
    dtype = np.float64 if n <= _LARGEST_IN_DOUBLE else np.float32
    across, within = (
        BlockKernel(source, other, task.kernel, task.params, dtype)
        for other in (task.target, source)
    )
    kernel = PanelKernel.of(within, task.max_memory)
    hessian = KernelHessian(kernel, growing.factor, float(growing.rest.mean()), n)
    best = Best.of(task.bounds, across.mean(), task.tol, unit)
    steps = solve_by_products(hessian, best, task.start)
    return best.result("iterative", steps, task.gamma)
