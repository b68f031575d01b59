"""Linear systems with part of a kernel matrix, by conjugate gradients."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from probgap._core.types import Mask, Vector
from probgap.reweight._operators import KernelOperator, times, times_transposed

_MAX_ITER = 100
# A part of the matrix is copied where it is so much smaller than what is at hand. Some
# of the rows that may come back next are copied with it.
_WORTH_A_COPY = 0.75
_SPARE_ROWS = 0.08
_CHUNK = 8192
# Of sums in single precision so much may be rounding, in units of the largest.
_JITTER = (0.0, 1e-7, 1e-5, 1e-3)


class KernelSystem(Protocol):
    """What solvers ask of a kernel matrix: products, and solutions with a diagonal."""

    @property
    def kernel(self) -> KernelOperator:
        """The matrix."""

    def solve_part(
        self,
        free: Mask,
        right: Vector,
        pull: Vector,
        near: Vector,
        penalty: float,
        error: float,
    ) -> Vector:
        """Solve for the free rows; the others are zero in the solution."""

    def precondition(self, pull: Vector, penalty: float) -> Any:
        """Prepare to solve for all rows."""

    def solve(self, right: Vector, pull: Vector, inverse: Any, error: float) -> Vector:
        """Solve for all rows."""


class System:
    """``K + diag(pull) + penalty``, whole or of those rows that are free.

    Parameters
    ----------
    kernel : KernelOperator
        The matrix K.
    factor : ndarray of shape (n, rank)
        ``factor @ factor.T`` approximates K, for a preconditioner.
    rest : float
        The size of what it leaves, 0.0 where it is exact.
    """

    def __init__(
        self, kernel: KernelOperator, factor: NDArray[Any], rest: float
    ) -> None:
        self.kernel, self.factor, self.rest = kernel, factor, rest
        self._rows = np.arange(kernel.n)
        self._part, self._part_of_factor = kernel, factor

    def solve_part(
        self,
        free: Mask,
        right: Vector,
        pull: Vector,
        near: Vector,
        penalty: float,
        error: float,
    ) -> Vector:
        """Solve for the free rows; the others are zero in the solution.

        ``near`` is small for rows that are not free but may be soon. The penalty is on
        the square of the sum. No entry of the residual is to be above ``error``.
        """
        solution = np.zeros(free.size)
        if not free.any():
            return solution
        self._fetch(free, near)
        rows = self._rows
        inverse = Preconditioner(
            self._part_of_factor,
            np.where(free[rows], 1.0 / (self.rest + pull[rows]), 0.0),
            penalty,
            careful=self.rest == 0.0,
        )
        solution[rows] = _conjugate_gradients(
            self._part, np.where(free, right, 0.0)[rows], pull[rows], inverse, error
        )
        return solution

    def precondition(self, pull: Vector, penalty: float) -> Preconditioner:
        """Prepare to solve for all rows."""
        return Preconditioner(
            self.factor, 1.0 / (self.rest + pull), penalty, careful=self.rest == 0.0
        )

    def solve(
        self, right: Vector, pull: Vector, inverse: Preconditioner, error: float
    ) -> Vector:
        """Solve for all rows."""
        return _conjugate_gradients(self.kernel, right, pull, inverse, error)

    def _fetch(self, free: Mask, near: Vector) -> None:
        """Have a part of the matrix at hand that holds the free rows and few others."""
        n_free = int(np.count_nonzero(free))
        absent = free.copy()
        absent[self._rows] = False
        if not absent.any() and n_free >= _WORTH_A_COPY * self._rows.size:
            return
        spare = int(_SPARE_ROWS * n_free)
        self._rows = np.arange(free.size)
        self._part, self._part_of_factor = self.kernel, self.factor
        if n_free + spare < _WORTH_A_COPY * free.size:
            order = np.argpartition(np.where(free, -np.inf, near), n_free + spare)
            rows = np.sort(order[: n_free + spare])
            part = self.kernel.restrict(rows)
            if part is not None:
                self._rows, self._part = rows, part
                self._part_of_factor = self.factor[rows]


class Preconditioner:
    """Inverse of ``F @ F.T + diag(d) + penalty``, by that of d, 0 for what is left out.

    It is the difference of almost equal numbers, where d is small: ``careful`` takes it
    in double precision.
    """

    def __init__(
        self,
        factor: NDArray[Any],
        inverse_diagonal: Vector,
        penalty: float,
        *,
        careful: bool,
    ) -> None:
        self.factor, self.inverse_diagonal = factor, inverse_diagonal
        self.penalty = penalty
        self._root, self._careful = np.sqrt(penalty), careful
        rank = factor.shape[1]
        small = np.eye(rank + 1)
        for start in range(0, factor.shape[0], _CHUNK):
            inverse = inverse_diagonal[start : start + _CHUNK]
            inside = inverse > 0.0
            part = factor[start : start + _CHUNK][inside]
            column = self._root * (inverse[inside] @ part)
            small[-1, :-1] += column
            scale = np.sqrt(inverse[inside]).astype(factor.dtype)
            part *= scale[:, None]
            small[:-1, :-1] += part.T @ part
        small[-1, -1] += penalty * float(inverse_diagonal.sum())
        self._small = _factorise(small)

    def __call__(self, residual: Vector) -> Vector:
        plain = self.inverse_diagonal * residual
        inner = np.append(self._project(plain), self._root * plain.sum())
        inner = cho_solve(self._small, inner, check_finite=False)
        spread = self._spread(inner[:-1]) + self._root * inner[-1]
        return plain - self.inverse_diagonal * spread

    def _project(self, vector: Vector) -> Vector:
        if self._careful:
            return times_transposed(self.factor, vector)
        return vector.astype(self.factor.dtype, copy=False) @ self.factor

    def _spread(self, vector: Vector) -> Vector:
        if self._careful:
            return times(self.factor, vector)
        return self.factor @ vector.astype(self.factor.dtype, copy=False)


def _factorise(matrix: NDArray[np.float64]) -> Any:
    """Factorise what is definite but for rounding, which is taken into the bargain."""
    size = float(matrix.diagonal().max())
    for share in _JITTER:
        matrix[np.diag_indices_from(matrix)] += share * size
        with suppress(LinAlgError):
            return cho_factor(matrix, lower=True, check_finite=False)
    return cho_factor(np.diag(np.abs(matrix).sum(axis=1)), lower=True)


def _conjugate_gradients(
    kernel: KernelOperator,
    right: Vector,
    pull: Vector,
    inverse: Preconditioner,
    error: float,
) -> Vector:
    inside = inverse.inverse_diagonal > 0.0
    solution = np.zeros(right.size)
    residual = right.copy()
    direction = better = inverse(residual)
    along = float(residual @ better)
    for _ in range(_MAX_ITER):
        if np.abs(residual).max() <= error:
            break
        curved = kernel.product(direction) + pull * direction
        curved += inverse.penalty * direction.sum()
        curved[~inside] = 0.0
        bend = float(direction @ curved)
        if bend <= 0.0 or along <= 0.0:  # rounding, or no kernel
            break
        solution += (along / bend) * direction
        residual -= (along / bend) * curved
        better = inverse(residual)
        before, along = along, float(residual @ better)
        direction = better + (along / before) * direction
    return solution
