"""The choice of a solver, and each of them for one problem.

CPU seconds for n source and n target samples in d dimensions, by ``benchmarks/kmm.py``:

==== == ===== ========= ========
   n  d exact iterative low_rank
==== == ===== ========= ========
 300  2 0.013     0.007    0.005
 300 10 0.006     0.021
 500  2 0.026     0.009    0.009
 500 10 0.016     0.034
1000  2 0.077     0.025    0.015
1000 10 0.083     0.070
2000  2 0.180     0.036    0.018
2000 10 0.426     0.126
4000  2           0.12     0.03
==== == ===== ========= ========

Up to 500 samples all take next to nothing, and "exact" is exact. Where bounds are many, as
for selections of a sample, "iterative" takes 0.07 s for 1200 of 2000 samples in double
precision, 0.7 s in single, and "exact" 0.11 s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import gen_batches

from probgap._core.arrays import Arrays
from probgap._core.hessian import Blocks, GrowingFactor, Hessian
from probgap._core.quadratic import Best
from probgap._core.types import Array, Matrix, Vector
from probgap.reweight._pivoting import MatchingBatch, pivot
from probgap.reweight._result import Bounds, KMMResult
from probgap.reweight._search import search

SOLVERS = ("auto", "exact", "iterative", "low_rank")

# Positive semidefinite kernels, for which the residual of a factor is known.
_DEFINITE = ("rbf", "laplacian", "linear", "cosine", "polynomial", "poly")
# With fewer source samples, or a smaller tolerance, pivoting is as fast.
_SMALL = 500
_EXACT_TOL = 1e-5
# Up to this size pivoting takes over what other solvers did not solve; beyond, it would take
# minutes.
_LARGEST_DENSE = 6000
# Products that take over from pivoting aim at this share of the KKT tolerance.
_AS_EXACT = 1e-2
# Eigenvalues below minus this share of the diagonal are no rounding.
_INDEFINITE = 1e-8
# Columns that show whether the rank is low: their mean residual is then at most this.
_PROBE = 96
_PROMISING = 1e-3
# Largest rank that counts as low, in all and as a share of the number of samples.
_LARGEST_RANK = 600
_LARGEST_SHARE = 1 / 6
# Error that the factor may leave in the objective at uniform weights, as a share of ``tol``.
_ERROR = 2.5e-4
# Rank of the preconditioner, as a multiple of n and of its square root, whichever is less.
_PRECONDITION_SHARE = 1 / 8
_PRECONDITION_ROOT = 8.0
# Matrices up to this size are multiplied with in double precision.
_LARGEST_IN_DOUBLE = 1500
# Rows of which the kernel is evaluated at a time for its diagonal, and bytes for its means.
_DIAGONAL_BLOCK = 64
_BLOCK_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Task:
    """A source to weight, a target to match, and a tolerance."""

    source: Matrix
    target: Matrix
    kernel: Any
    params: Mapping[str, Any]
    bounds: Bounds
    tol: float

    @property
    def gamma(self) -> float | None:
        return self.params.get("gamma")

    def kernel_diagonal(self) -> Vector:
        """Evaluate the kernel of each source sample with itself."""
        diagonal = np.ones(self.bounds.n)
        if self.kernel not in ("rbf", "laplacian"):
            for rows in gen_batches(diagonal.size, _DIAGONAL_BLOCK):
                some = self.source[rows]
                block = pairwise_kernels(some, metric=self.kernel, **self.params)
                diagonal[rows] = np.diagonal(block)
        return diagonal

    def blocks(self, other: Matrix, arrays: Arrays, *, single: bool) -> Blocks:
        return Blocks(
            self.source, other, self.kernel, self.params, arrays, single=single
        )


def choose_solver(n: int, kernel: Any, tol: float) -> str:
    """Choose a solver by the number of source samples, the kernel and the tolerance.

    A low rank is only known once some columns of the kernel are: "low_rank" becomes
    "iterative" if it is not accurate enough.
    """
    if n < _SMALL or tol < _EXACT_TOL or kernel not in _DEFINITE:
        return "exact"
    return "low_rank"


def solve(task: Task, solver: str, arrays: Arrays | None) -> KMMResult:
    """Solve by the named solver, or by the one that "auto" chooses."""
    if arrays is not None:
        return _by_products(task, arrays)
    n, named = task.bounds.n, solver != "auto"
    if not named:
        solver = choose_solver(n, task.kernel, task.tol)
    if solver == "exact":
        return _by_pivoting(task)
    result = _by_low_rank(task, insist=named) if solver == "low_rank" else None
    result = result or _by_products(task, Arrays())
    if named or result.converged or n > _LARGEST_DENSE:
        return result
    exact = _by_pivoting(task)
    return exact if exact.kkt_residual < result.kkt_residual else result


def _by_pivoting(task: Task) -> KMMResult:
    """Solve a single problem as a batch of one."""
    source, target, n_target = (
        task.source.astype(np.float64),
        task.target,
        task.target.shape[0],
    )
    kernel = partial(pairwise_kernels, metric=task.kernel, **task.params)
    total = np.zeros(task.bounds.n)
    for rows in gen_batches(n_target, max(1, _BLOCK_BYTES // (8 * total.size))):
        total += kernel(source, target[rows]).sum(axis=1)
    batch = MatchingBatch(
        kernel=kernel(source),
        kappa=total / n_target,
        chosen=np.ones((1, task.bounds.n), dtype=bool),
        upper=task.bounds.upper,
        slack=task.bounds.slack,
        n_target=n_target,
    )
    return solve_batch(batch, task.tol, task.gamma, certify=True)[0]


def solve_batch(
    batch: MatchingBatch, tol: float, gamma: float | None, *, certify: bool
) -> list[KMMResult]:
    """Solve problems by pivoting, or by products where that fails."""
    guesses, results = pivot(batch, certify=certify), []
    answers = [(guess.rows, guess.weights / guess.bounds.n) for guess in guesses]
    witnesses = [(g.rows, g.witness) for g in guesses if g.witness is not None]
    products = iter(batch.products(answers + witnesses))
    gradients = [next(products) - batch.kappa[guess.rows] for guess in guesses]
    for guess, gradient in zip(guesses, gradients, strict=True):
        rows, n = guess.rows, guess.bounds.n
        best = guess.bounds.best(batch.kappa[rows], tol)
        best.update(guess.weights[:, None], gradient[:, None])
        if guess.witness is not None:
            of_witness = next(products) - batch.kappa[rows]
            best.update_bound(n * guess.witness[:, None], of_witness[:, None])
        result = None
        if not best.is_good_enough:
            kernel = batch.kernel[np.ix_(rows, rows)]
            uniform = best.programme.project(np.ones((n, 1)))
            slope = kernel @ uniform / n - best.programme.linear
            best.reference = best.programme.objective(uniform, slope)
            if not best.is_good_enough:
                result = _rescue(kernel, guess.bounds, best, batch.ridge, gamma)
        found = guess.bounds.result(best, "exact", guess.steps, gamma)
        results.append(result or found)
    return results


def _rescue(
    kernel: Array, bounds: Bounds, best: Best, ridge: float, gamma: float | None
) -> KMMResult:
    """Solve by the interior point method as exactly as pivoting would, with its ridge."""
    n = bounds.n
    shifted = kernel + ridge * np.eye(n)
    blocks = Blocks(shifted, shifted, "precomputed", {}, Arrays(), single=False)
    hessian = Hessian.exact(blocks, np.maximum(shifted.diagonal(), 0.0), n, 1.0 / n)
    finer = bounds.best(best.programme.linear[:, 0] + ridge / n, best.share)
    finer.share, finer.kkt_tol = 0.0, _AS_EXACT * best.kkt_tol
    steps = search(hessian, finer, 1.0, max_steps=0)
    best.update(finer.x, kernel @ finer.x / n - best.programme.linear)
    result = bounds.result(best, "iterative", steps, gamma)
    # What looks like an optimum of an indefinite form may be none.
    definite = np.linalg.eigvalsh(kernel)[0] >= -_INDEFINITE * np.abs(kernel).max()
    return replace(result, converged=result.converged and bool(definite))


def _by_low_rank(task: Task, *, insist: bool) -> KMMResult | None:
    """Solve with a low-rank factor for the kernel; None if it is not accurate enough.

    The factor F of the source leaves norms ``left`` in each sample's features, and with
    them at most ``(mean of weights * left)^2`` in squared distances of means. With a linear
    kernel the samples are the factor, and nothing is left.
    """
    n, d = task.source.shape
    dense = not issparse(task.source) and not issparse(task.target)
    diagonal = task.kernel_diagonal()
    unit = float(diagonal.mean()) or 1.0
    if task.kernel == "linear" and dense and (insist or d <= n // 4):
        factor, left = np.asarray(task.source, np.float64), np.zeros(n)
        kappa = factor @ task.target.mean(axis=0, dtype=np.float64)
    else:
        blocks = task.blocks(task.source, Arrays(), single=False)
        growing = GrowingFactor(blocks, diagonal)
        limit = n if insist else int(min(_LARGEST_RANK, _LARGEST_SHARE * n))

        error = 0.0 if insist else _ERROR * task.tol * unit

        def enough(rest: Vector) -> bool:
            return float(np.sqrt(rest).mean()) ** 2 <= error

        growing.grow(min(_PROBE, limit), enough)
        if not insist and growing.rest.mean() > _PROMISING * unit:
            return None
        growing.grow(limit, enough)
        if not (insist or enough(growing.rest)):
            return None
        factor, left = growing.factor, np.sqrt(growing.rest)
        kappa = _mean(task, Arrays(), single=n > _LARGEST_IN_DOUBLE)
    best = task.bounds.best(kappa, task.tol, unit)

    def bound_error(weights: Vector) -> None:
        both = float((weights * left).mean())
        best.gap_error, best.kkt_error = 0.5 * n * both**2, float(left.max()) * both

    bound_error(np.ones(n))  # the weights are not known yet: assume uniform ones
    steps = search(Hessian(Arrays(), None, factor, np.zeros(n), 1.0 / n), best, unit)
    bound_error(best.x[:, 0])
    result = task.bounds.result(best, "low_rank", steps, task.gamma, unit)
    return result if insist or result.converged else None


def _by_products(task: Task, arrays: Arrays) -> KMMResult:
    """Solve by products with the kernel, preconditioned by a factor."""
    n = task.bounds.n
    single = n > _LARGEST_IN_DOUBLE
    diagonal = task.kernel_diagonal()
    unit = float(diagonal.mean()) or 1.0
    rank = int(min(_PRECONDITION_ROOT * np.sqrt(n), np.ceil(_PRECONDITION_SHARE * n)))
    with arrays.computing():
        best = task.bounds.best(_mean(task, arrays, single=single), task.tol, unit)
        blocks = task.blocks(task.source, arrays, single=single)
        hessian = Hessian.exact(blocks, diagonal, rank, 1.0 / n)
        steps = search(hessian, best, unit)
    return task.bounds.result(best, "iterative", steps, task.gamma, unit)


def _mean(task: Task, arrays: Arrays, *, single: bool) -> Vector:
    return task.blocks(task.target, arrays, single=single).mean()
