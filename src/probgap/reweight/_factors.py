"""Linear systems with part of a kernel matrix: one factor for all parts, or one each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from probgap._core.types import Array, Vector
from probgap.reweight._guess import FREE, Guess, Rows
from probgap.reweight._problem import MatchingBatch

_REFINEMENTS = 3


@dataclass(slots=True)
class BaseFactor:
    """Cholesky factor of ``K + ridge`` for all rows, to be bent to any guess.

    A bound that holds a weight adds a multiplier to the right-hand side: with
    ``Y = L^-1 E`` for the held rows E, the multipliers solve ``Y'Y m = held - free``,
    and the gradient at a held row is its multiplier. Columns of Y are kept, since
    problems of a batch hold much the same rows. The first column is that of the sum.
    """

    lower: Array
    ridge: float
    to_kappa: Vector
    to_ones: Vector
    position: NDArray[np.intp]
    columns: Array
    gram: Array

    @classmethod
    def of(cls, batch: MatchingBatch) -> BaseFactor:
        n = batch.kappa.size
        ridge = batch.ridge
        # Symmetric: the transpose is a copy in LAPACK's order, without reordering.
        shifted = np.array(batch.kernel.T, order="F")
        shifted[np.diag_indices(n)] += ridge
        lower, fault = dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
        if fault:
            raise LinAlgError
        right = np.array([batch.kappa, np.ones(n)]).T
        half = dtrsm(1.0, lower, right, lower=1)
        both = dtrsm(1.0, lower, half, lower=1, trans_a=1)
        first_in_doubt = int(np.argmin(np.append(batch.chosen.all(axis=0), False)))
        base = cls(
            lower=lower,
            ridge=ridge,
            to_kappa=both[:, 0],
            to_ones=both[:, 1],
            position=np.full(n + 1, -1),
            columns=half[:, 1:],
            gram=half[:, 1:].T @ half[:, 1:],
        )
        base.position[n] = 0
        # Where the rows that some problem leaves out come last, their columns are
        # those of a small triangle.
        last = n - first_in_doubt
        if 0 < last <= n // 2:
            corner = np.asfortranarray(lower[first_in_doubt:, first_in_doubt:])
            fresh = np.zeros((n, last))
            fresh[first_in_doubt:] = dtrsm(1.0, corner, np.eye(last), lower=1)
            base._keep(np.arange(first_in_doubt, n), fresh)
        return base

    def _keep(self, rows: Rows, fresh: Array) -> None:
        known = self.columns.shape[1]
        self.position[rows] = known + np.arange(rows.size)
        cross = self.columns.T @ fresh
        self.gram = np.block([[self.gram, cross], [cross.T, fresh.T @ fresh]])
        self.columns = np.asfortranarray(np.vstack([self.columns.T, fresh.T]).T)

    def _learn(self, held: list[Rows]) -> None:
        rows = np.unique(np.concatenate(held))
        rows = rows[self.position[rows] < 0]
        if rows.size == 0:
            return
        unit = np.zeros((self.lower.shape[0], rows.size), order="F")
        unit[rows, np.arange(rows.size)] = 1.0
        self._keep(rows, dtrsm(1.0, self.lower, unit, lower=1, overwrite_b=1))

    def _without_bounds(self, guesses: list[Guess]) -> list[Vector]:
        pulled = [guess for guess in guesses if guess.answer is not None]
        right = np.zeros((self.lower.shape[0], len(pulled)), order="F")
        for k, guess in enumerate(pulled):
            right[guess.rows, k] = self.ridge * guess.centre
        half = dtrsm(1.0, self.lower, right, lower=1, overwrite_b=1)
        both = iter(dtrsm(1.0, self.lower, half, lower=1, trans_a=1, overwrite_b=1).T)
        return [
            self.to_kappa
            + (
                (self.ridge / guess.bounds.n) * self.to_ones
                if guess.answer is None
                else next(both)
            )
            for guess in guesses
        ]

    def solve(self, guesses: list[Guess]) -> list[tuple[Vector, Vector, float]]:
        """Give u, the gradient at held rows, and the multiplier of the sum, for each."""
        n = self.lower.shape[0]
        held, values = [], []
        for guess in guesses:
            out = np.ones(n, dtype=bool)
            out[guess.rows] = False
            left_out = np.flatnonzero(out)
            rows = np.concatenate([left_out, guess.bound_rows])
            value = np.concatenate([np.zeros(left_out.size), guess.values()])
            if guess.band != FREE:
                rows, value = np.append(rows, n), np.append(value, guess.edge)
            held.append(rows)
            values.append(value)
        self._learn(held)
        free = self._without_bounds(guesses)
        multipliers = np.zeros((self.columns.shape[1], len(guesses)))
        for k, (rows, value) in enumerate(zip(held, values, strict=True)):
            at = self.position[rows]
            plain = np.append(free[k], free[k].sum())[rows]
            multipliers[at, k] = _solve_definite(
                self.gram[np.ix_(at, at)], value - plain
            )
        bent = dtrsm(
            1.0,
            self.lower,
            self.columns @ multipliers,
            lower=1,
            trans_a=1,
            overwrite_b=1,
        )
        outcomes = []
        for k, guess in enumerate(guesses):
            gradient = np.zeros(n)
            inside = held[k][held[k] < n]
            gradient[inside] = multipliers[self.position[inside], k]
            of_sum = float(multipliers[0, k]) if guess.band != FREE else 0.0
            u = free[k] + bent[:, k]
            outcomes.append((u[guess.rows], gradient[guess.rows] + of_sum, of_sum))
        return outcomes


def product_with(
    batch: MatchingBatch, thin: Array | None, rows: Rows, u: Vector
) -> Vector:
    if not u.any():
        return np.zeros(u.size)
    product: Vector
    if thin is not None:
        product = thin @ (u @ thin)
        return product
    spread = np.zeros(batch.kappa.size)
    spread[rows] = u
    product = batch.kernel @ spread
    return product[rows]


def solve_shifted(matrix: Array, ridge: float, right: Array) -> Array:
    matrix[np.diag_indices_from(matrix)] += ridge
    factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    solution: Array = cho_solve(factor, right, check_finite=False)
    return solution


def solve_thin(thin: Array, ridge: float, right: Array) -> Array:
    """Solve with ``thin @ thin.T + ridge`` by the identity of Woodbury.

    The identity takes the difference of almost equal numbers; what that costs is won
    back by solving for the residual.
    """
    small = thin.T @ thin
    small[np.diag_indices_from(small)] += ridge
    factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)
    solution = np.zeros_like(right)
    residual = right
    for _ in range(_REFINEMENTS):
        inner = cho_solve(factor, thin.T @ residual, check_finite=False)
        solution += (residual - thin @ inner) / ridge
        residual = right - thin @ (thin.T @ solution) - ridge * solution
    return solution


def _solve_definite(matrix: Array, right: Vector) -> Vector:
    if right.size == 0:
        return right
    solution: Vector = cho_solve(cho_factor(matrix, check_finite=False), right)
    return solution
