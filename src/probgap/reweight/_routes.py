"""Ways through large problems: features, a low-rank factor, products in panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.utils import gen_batches

from probgap._core.kernels import kernel_diagonal, kernel_matrix, spread_rows
from probgap._core.types import Matrix, Vector
from probgap.reweight._blocks import BlockKernel
from probgap.reweight._certificate import Certified, Goal
from probgap.reweight._growing import GrowingFactor
from probgap.reweight._operators import (
    DenseKernel,
    PanelKernel,
    ThinKernel,
    times,
    times_transposed,
)
from probgap.reweight._problem import Bounds, MatchingProblem
from probgap.reweight._system import solve_system

# A KKT residual this share of the tolerance is as good as a certified gap.
KKT_SHARE = 1e-2
# Kernels that are positive semidefinite, so that a factor says what it leaves out.
DEFINITE = ("rbf", "laplacian", "linear", "cosine", "polynomial", "poly")

# Columns that show whether the rank is low: what they leave is then at most this.
_PROBE = 96
_PROMISING = 1e-3
# A low rank is at most this, and this share of the number of samples.
_LARGEST_RANK = 600
_LARGEST_SHARE = 1 / 6
# What the factor may leave out of half the squared distance of means, in units of the
# tolerance and the diagonal; the second, if that proves too much, and so on.
_BLUR = 2.5e-4
_FINER = 1e-2
_FINEST = 1e-13
# Rank of a preconditioner, as a share of n and of its root: the larger the matrix, the
# more a product with it costs against one with the factor.
_PRECONDITION_SHARE = 1 / 12
_PRECONDITION_ROOT = 6.4
# Matrices up to this size are multiplied with in double precision.
_LARGEST_IN_DOUBLE = 1000
# Rows of the target that may become pivots, and rows that are reduced at a time.
_TARGET_ROWS = 5000
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Task:
    """A source to weight, a target to match, and how well."""

    source: Matrix
    target: Matrix
    kernel: Any
    params: Mapping[str, Any]
    bounds: Bounds
    tol: float
    max_memory: float
    start: Vector | None = None

    def between(self, A: Matrix, B: Matrix) -> NDArray[np.float64]:
        return kernel_matrix(A, B, self.kernel, self.params)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task, by which solver, and whether it is good enough."""

    certified: Certified
    solver: str
    unit: float
    converged: bool


def match_at_scale(task: Task, solver: str) -> Outcome:
    """Solve without a dense matrix in double precision."""
    if solver != "iterative" and _has_features(task, solver):
        return _by_features(task)
    samples = _stack(task)
    diagonal = kernel_diagonal(samples, task.kernel, task.params)
    growing = GrowingFactor(lambda p: task.between(samples, samples[p]), diagonal)
    unit = float(diagonal[: task.bounds.n].mean()) or 1.0
    if solver != "iterative":
        insist = solver == "low_rank"
        outcome = _by_low_rank(task, growing, samples, unit, insist=insist)
        if outcome is not None:
            return outcome
    return _by_products(task, growing, unit)


def _has_features(task: Task, solver: str) -> bool:
    if task.kernel != "linear" or sp.issparse(task.source) or sp.issparse(task.target):
        return False
    n, d = task.source.shape
    return d <= n // 4 or solver == "low_rank"


def _by_features(task: Task) -> Outcome:
    """Match means of features: the factor is given."""
    features = task.source
    m = task.target.shape[0]
    kappa = times(features, times_transposed(task.target, np.full(m, 1.0 / m)))
    diagonal = np.einsum("ij,ij->i", features, features, dtype=np.float64)
    goal = _goal(task, float(diagonal.mean()) or 1.0)
    certified = solve_system(
        ThinKernel(features), kappa, task.bounds, features, 0.0, goal, task.start
    )
    return judge(certified, goal, "low_rank")


def _stack(task: Task) -> Matrix:
    """Put some of the target below the source."""
    some = spread_rows(task.target.shape[0], _TARGET_ROWS)
    both = [task.source, task.target[some]]
    if any(map(sp.issparse, both)):
        return sp.vstack(both, format="csr")
    return np.vstack(both)


def _by_low_rank(
    task: Task, growing: GrowingFactor, samples: Matrix, unit: float, *, insist: bool
) -> Outcome | None:
    """Solve with the factor in the place of the kernel, if it leaves little enough."""
    limit = growing.rest.size
    if not insist:
        room = task.max_memory / (16.0 * limit)
        limit = int(min(_LARGEST_RANK, _LARGEST_SHARE * task.bounds.n, room))
        growing.grow(min(_PROBE, limit), _leaves_at_most(_BLUR * task.tol * unit))
        if growing.rest.mean() > _PROMISING * unit:
            return None
    start, outcome = task.start, None
    level = max(_BLUR * task.tol, 2.0 * _FINEST)
    while level > _FINEST:
        enough = _leaves_at_most(level * unit)
        growing.grow(limit, enough)
        if not (insist or enough(growing.rest)):
            return None
        outcome = _with_factor(task, growing, samples[growing.pivots], unit, start)
        if outcome.converged or growing.exhausted:
            break
        start = outcome.certified.weights
        level *= _FINER
    return outcome if insist or (outcome and outcome.converged) else None


def _leaves_at_most(level: float) -> Callable[[Vector], bool]:
    """Tell whether means differ by no more, half squared, than the factor says."""
    return lambda rest: 2.0 * float(np.sqrt(rest).mean()) ** 2 <= level


def _with_factor(
    task: Task,
    growing: GrowingFactor,
    pivots: Matrix,
    unit: float,
    start: Vector | None,
) -> Outcome:
    """Solve for the factor, and count what it leaves out against the answer.

    With ``a`` and ``b`` the mean lengths of what it leaves out of weighted source and
    target, squared distances of means are off by ``(a + b)^2`` at most.
    """
    n = task.bounds.n
    factor = np.ascontiguousarray(growing.factor[:n])
    mean, left_of_target = _reduce_target(task, growing, pivots)
    left = np.sqrt(growing.rest[:n])
    goal = _goal(task, unit)
    # Weights are not known yet; those of a good answer are about uniform here.
    both = float(left.mean()) + left_of_target
    goal.blur = 0.5 * n * both**2
    goal.kkt_blur = float(left.max()) * both
    certified = solve_system(
        ThinKernel(factor), factor @ mean, task.bounds, factor, 0.0, goal, start
    )
    both = float((certified.weights * left).mean()) + left_of_target
    blur = 0.5 * n * both**2
    certified = replace(
        certified,
        gap=certified.gap - goal.blur + blur,
        residual=certified.residual - goal.kkt_blur + float(left.max()) * both,
    )
    return judge(certified, goal, "low_rank")


def _reduce_target(
    task: Task, growing: GrowingFactor, pivots: Matrix
) -> tuple[Vector, float]:
    """Average the target in terms of the factor, and what the factor leaves of it."""
    m = task.target.shape[0]
    total, left = np.zeros(growing.rank), 0.0
    for rows in gen_batches(m, _BLOCK):
        block = task.target[rows]
        features = solve_triangular(
            growing.triangle,
            task.between(pivots, block),
            lower=True,
            check_finite=False,
        )
        total += features.sum(axis=1)
        rest = kernel_diagonal(block, task.kernel, task.params)
        rest = rest - np.einsum("ij,ij->j", features, features)
        left += float(np.sqrt(np.maximum(rest, 0.0)).sum())
    return total / m, left / m


def _by_products(task: Task, growing: GrowingFactor, unit: float) -> Outcome:
    """Solve by products with the kernel, and precondition by the factor."""
    n, source = task.bounds.n, task.source
    growing = growing.of_first_rows(n, lambda p: task.between(source, source[p]))
    growing.grow(_rank_of_preconditioner(n), lambda rest: not rest.any())
    dtype = np.float64 if n <= _LARGEST_IN_DOUBLE else np.float32
    across, within = (
        BlockKernel(source, other, task.kernel, task.params, dtype)
        for other in (task.target, source)
    )
    kappa = across.mean()
    goal = _goal(task, unit)
    certified = solve_system(
        PanelKernel.of(within, task.max_memory),
        kappa,
        task.bounds,
        growing.factor,
        float(growing.rest.mean()),
        goal,
        task.start,
    )
    return judge(certified, goal, "iterative")


def match_dense(problem: MatchingProblem, tol: float) -> Certified:
    """Solve with a kernel matrix that is there already."""
    kernel = problem.kernel
    diagonal = np.maximum(kernel.diagonal(), 0.0)
    growing = GrowingFactor(lambda p: kernel[:, p], diagonal, np.float32)
    growing.grow(_rank_of_preconditioner(problem.n), lambda rest: not rest.any())
    unit = float(diagonal.mean()) or 1.0
    return solve_system(
        DenseKernel(kernel),
        problem.kappa,
        problem.bounds,
        growing.factor,
        float(growing.rest.mean()),
        Goal(tol, KKT_SHARE * tol * unit, unit),
    )


def _rank_of_preconditioner(n: int) -> int:
    return int(min(_PRECONDITION_ROOT * np.sqrt(n), np.ceil(_PRECONDITION_SHARE * n)))


def _goal(task: Task, unit: float) -> Goal:
    return Goal(task.tol, KKT_SHARE * task.tol * unit, unit)


def judge(certified: Certified, goal: Goal, solver: str) -> Outcome:
    """Say whether what was found meets the goal."""
    converged = certified.residual <= goal.kkt_tol or certified.gap <= goal.tol * (
        certified.gain + certified.gap
    )
    return Outcome(certified, solver, goal.unit, bool(converged))
