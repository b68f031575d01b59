"""Block principal pivoting: guess which bounds are active, solve, correct the guess.

Once it is known which weights lie at a bound, the others solve a linear system. All that
exceed a bound are then fixed at it, and all at a bound with a multiplier of the wrong sign
are freed, until nothing changes: the solution is exact. If the number of wrong guesses has
not fallen for some steps, single ones are corrected, which cannot cycle (Judice and Pires,
1994).

A ridge towards uniform weights, far below any tolerance, makes the system definite if the
kernel is flat. The tangent at the solution is then a weak bound; that at a second solution,
with the ridge towards the first, bounds the optimal objective far more closely.

Weights are scaled to ``u = w / n`` here: the matrix is then the same for every problem of a
batch, and one Cholesky factor of it serves them all.
"""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dtrsm

from probgap._core.types import Array, Mask, Rows, Vector
from probgap.reweight._result import Bounds
from probgap.reweight._search import AT_UPPER, AT_ZERO, FREE

_RIDGE = 1e-9
_MAX_STEPS = 40
# Steps in a row that may fail to reduce the number of wrong guesses.
_PATIENCE = 8
# Tolerance for rounding, of gradients and relative to the bounds.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class MatchingBatch:
    """Several problems: subsets of one sample, each to be matched to the same target.

    ``kernel`` is the matrix of all samples, ``kappa`` the mean kernel value between each
    of them and the ``n_target`` samples of the target, ``chosen`` a mask of the samples of
    each problem.
    """

    kernel: Array
    kappa: Vector
    chosen: Mask
    upper: float
    slack: float | None
    n_target: int

    @property
    def ridge(self) -> float:
        """The ridge towards uniform weights, the same for a problem alone or in a batch."""
        return _RIDGE * min(self.n_target, 2 * self.kappa.size)

    def products(self, points: list[tuple[Rows, Vector]]) -> list[Vector]:
        """Multiply the kernel of some rows for each point, in one pass over the kernel."""
        spread = np.zeros((self.kappa.size, len(points)))
        for k, (rows, u) in enumerate(points):
            spread[rows, k] = u
        found = self.kernel @ spread
        return [found[rows, k] for k, (rows, _) in enumerate(points)]


class Guess:
    """The active set of one problem: which bounds of the weights and of their sum hold.

    ``answer`` is the solution u, once the guess was right, and ``witness`` the second
    solution, not feasible, whose tangent bounds the objective.
    """

    def __init__(
        self, rows: Rows, bounds: Bounds, patience: int, certify: bool
    ) -> None:
        self.rows, self.bounds = rows, bounds
        self._patience, self._certify = patience, certify
        low, high = bounds.band
        self.state = np.zeros(rows.size, dtype=np.int8)
        self.band = AT_UPPER if low == high else FREE
        self.centre = np.full(rows.size, 1.0 / rows.size)
        self.answer: Vector | None = None
        self.witness: Vector | None = None
        self.steps = self._failures = 0
        self._fewest: int | None = None

    @property
    def done(self) -> bool:
        return (self.witness if self._certify else self.answer) is not None

    @property
    def weights(self) -> Vector:
        if self.answer is None:
            return self._project(np.ones(self.rows.size))
        return self._project(self.bounds.n * self.answer)

    def _project(self, weights: Vector) -> Vector:
        zero = np.zeros(weights.size)
        return self.bounds.programme(zero).project(weights[:, None])[:, 0]

    @property
    def edge(self) -> float:
        return self.bounds.band[0 if self.band == AT_ZERO else 1]

    def at_bounds(self) -> Vector:
        """Return u where it lies at a bound, and 0 where it is free."""
        return np.where(self.state == AT_UPPER, self.bounds.upper / self.bounds.n, 0.0)

    def correct(self, u: Vector, gradient: Vector, multiplier: float) -> None:
        """Correct the guess by the solution and the multiplier of the sum."""
        if self.answer is not None:
            self.witness = u
            return
        self.steps += 1
        n, upper = self.bounds.n, self.bounds.upper
        tiny = _ROUNDING * max(1.0, n * float(np.abs(u).max()))
        slope = gradient - multiplier
        wanted = self.state.copy()
        free = self.state == FREE
        wanted[free & (u < -tiny / n)] = AT_ZERO
        wanted[free & (u > (upper + tiny) / n)] = AT_UPPER
        wanted[(self.state == AT_ZERO) & (slope < -tiny)] = FREE
        wanted[(self.state == AT_UPPER) & (slope > tiny)] = FREE
        low, high = self.bounds.band
        total, band = float(u.sum()), self.band
        if band == FREE:
            below, above = total < low - tiny, total > high + tiny
            band = AT_ZERO if below else AT_UPPER if above else FREE
        elif low < high and multiplier * band > tiny:
            band = FREE
        wrong = np.flatnonzero(wanted != self.state)
        count = wrong.size + (band != self.band)
        if count == 0:
            self.answer = self.centre = u
            return
        if self._fewest is None or count < self._fewest:
            self._fewest, self._failures = count, 0
        elif self._failures < self._patience:
            self._failures += 1
        else:
            # One at a time, always the last: this cannot return to an earlier guess.
            if band == self.band:
                self.state[wrong[-1]] = wanted[wrong[-1]]
            self.band = band
            return
        self.state, self.band = wanted, band


def pivot(
    batch: MatchingBatch,
    *,
    certify: bool,
    patience: int = _PATIENCE,
) -> list[Guess]:
    """Solve the problems of a batch with one factorisation.

    ``certify`` asks for the second solution of each, too. Guesses that did not come right
    have no answer.
    """
    guesses = []
    for rows in map(np.flatnonzero, batch.chosen):
        bounds = Bounds.of(rows.size, batch.upper, batch.slack)
        guesses.append(Guess(rows, bounds, patience, certify))
    # If the kernel is not positive definite, what was solved so far is returned.
    with suppress(LinAlgError):
        shared = SharedFactor(batch)
        for _ in range(_MAX_STEPS):
            waiting = [guess for guess in guesses if not guess.done]
            if not waiting:
                break
            shared.correct(waiting)
    return guesses


class SharedFactor:
    """Cholesky factor L of ``K + ridge`` for all rows, which serves every guess.

    Fixing a weight adds a multiplier to the right-hand side: with ``Y = L^-1 E`` for the
    fixed rows E, the multipliers m solve ``Y'Y m = fixed values - unconstrained values``,
    and the gradient at a fixed row is its multiplier. Columns of Y are cached, since
    problems of a batch fix mostly the same rows. The first column is that of the sum.
    """

    def __init__(self, batch: MatchingBatch) -> None:
        self._n, self._ridge = n, ridge = batch.kappa.size, batch.ridge
        # K is symmetric: its transpose is already in LAPACK's (Fortran) order.
        matrix = np.array(batch.kernel.T, order="F")
        matrix[np.diag_indices(n)] += ridge
        lower, _ = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        half = dtrsm(1.0, lower, np.array([batch.kappa, np.ones(n)]).T, lower=1)
        self._lower = lower
        self._to_kappa, self._to_ones = dtrsm(1.0, lower, half, lower=1, trans_a=1).T
        self._position = np.append(np.full(n, -1), 0)
        self._columns = half[:, 1:]
        self._gram = self._columns.T @ self._columns
        # If the rows that some problem leaves out come last, their columns follow from a
        # small triangle.
        first_in_doubt = int(np.argmin(np.append(batch.chosen.all(axis=0), False)))
        last = n - first_in_doubt
        if 0 < last <= n // 2:
            corner = np.asfortranarray(lower[first_in_doubt:, first_in_doubt:])
            fresh = np.zeros((n, last))
            fresh[first_in_doubt:] = dtrsm(1.0, corner, np.eye(last), lower=1)
            self._keep(np.arange(first_in_doubt, n), fresh)

    def _keep(self, rows: Rows, fresh: Array) -> None:
        self._position[rows] = self._columns.shape[1] + np.arange(rows.size)
        cross = self._columns.T @ fresh
        self._gram = np.block([[self._gram, cross], [cross.T, fresh.T @ fresh]])
        self._columns = np.asfortranarray(np.vstack([self._columns.T, fresh.T]).T)

    def _learn(self, rows: Rows) -> None:
        rows = rows[self._position[rows] < 0]
        if rows.size > 0:
            unit = np.zeros((self._n, rows.size), order="F")
            unit[rows, np.arange(rows.size)] = 1.0
            self._keep(rows, dtrsm(1.0, self._lower, unit, lower=1, overwrite_b=1))

    def _without_bounds(self, guesses: list[Guess]) -> list[Vector]:
        """Return the unconstrained solution of each guess."""
        pulled = [guess for guess in guesses if guess.answer is not None]
        right = np.zeros((self._n, len(pulled)), order="F")
        for k, guess in enumerate(pulled):
            right[guess.rows, k] = self._ridge * guess.centre
        half = dtrsm(1.0, self._lower, right, lower=1, overwrite_b=1)
        both = iter(dtrsm(1.0, self._lower, half, lower=1, trans_a=1, overwrite_b=1).T)
        free = []
        for guess in guesses:
            share = self._ridge / guess.bounds.n
            pull = share * self._to_ones if guess.answer is None else next(both)
            free.append(self._to_kappa + pull)
        return free

    def correct(self, guesses: list[Guess]) -> None:
        """Solve for each guess, and correct it."""
        n, everything = self._n, np.arange(self._n)
        fixed, values = [], []
        for guess in guesses:
            left_out = np.setdiff1d(everything, guess.rows, assume_unique=True)
            active = guess.state != FREE
            rows = np.concatenate([left_out, guess.rows[active]])
            value = np.append(np.zeros(left_out.size), guess.at_bounds()[active])
            if guess.band != FREE:
                rows, value = np.append(rows, n), np.append(value, guess.edge)
            fixed.append(rows)
            values.append(value)
        self._learn(np.unique(np.concatenate(fixed)))
        free = self._without_bounds(guesses)
        multipliers = np.zeros((self._columns.shape[1], len(guesses)))
        for k, (rows, value) in enumerate(zip(fixed, values, strict=True)):
            if rows.size > 0:
                at = self._position[rows]
                factor = cho_factor(self._gram[np.ix_(at, at)], check_finite=False)
                plain = np.append(free[k], free[k].sum())[rows]
                multipliers[at, k] = cho_solve(factor, value - plain)
        spread = self._columns @ multipliers
        bent = dtrsm(1.0, self._lower, spread, lower=1, trans_a=1, overwrite_b=1)
        for k, guess in enumerate(guesses):
            gradient = np.zeros(n)
            inside = fixed[k][fixed[k] < n]
            gradient[inside] = multipliers[self._position[inside], k]
            of_sum = float(multipliers[0, k]) if guess.band != FREE else 0.0
            u = free[k] + bent[:, k]
            guess.correct(u[guess.rows], gradient[guess.rows] + of_sum, of_sum)
