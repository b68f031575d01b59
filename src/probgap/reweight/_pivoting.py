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

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dtrsm

from probgap._core.types import Array, Mask, Rows, Vector
from probgap.reweight._kernels import GrowingFactor
from probgap.reweight._problem import Bounds

AT_ZERO, FREE, AT_UPPER = -1, 0, 1

_RIDGE = 1e-9
# Beyond so many steps an interior point method is faster; with a thin factor steps are
# cheap, and more are allowed.
_MAX_STEPS = 40
_MAX_THIN_STEPS = 200
# Steps in a row that may fail to reduce the number of wrong guesses.
_PATIENCE = 8
# Tolerance for rounding, of gradients and relative to the bounds.
_ROUNDING = 1e-12
# If more than this share of the weights lies at a bound, a factor of the free ones alone is
# cheaper than the shared factor, unless many large problems share that.
_LARGEST_SHARE, _LARGEST_SHARE_OF_MANY = 0.1, 0.5
_MANY, _LARGE = 10, 2000
# Kernels up to this rank are replaced by a thin factor, whose residual is below this share
# of the ridge. Iterative refinement recovers the accuracy.
_LARGEST_RANK = 150
_NEGLIGIBLE_REST = 1e-2
_REFINEMENTS = 3


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
            return self.bounds.uniform()
        return self.bounds.project(self.bounds.n * self.answer)

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


def solve_by_pivoting(
    batch: MatchingBatch,
    *,
    certify: bool,
    max_steps: int = _MAX_STEPS,
    patience: int = _PATIENCE,
) -> list[Guess]:
    """Solve the problems of a batch, with one factorisation if few bounds are active.

    ``certify`` asks for the second solution of each, too.
    """
    guesses = []
    for rows in map(np.flatnonzero, batch.chosen):
        bounds = Bounds.of(rows.size, batch.upper, batch.slack)
        guesses.append(Guess(rows, bounds, patience, certify))
    thin = _thin_factor(batch)
    # If the kernel is not positive definite, what was solved so far is returned.
    with suppress(LinAlgError):
        if thin is None:
            _pivot_together(batch, guesses, max_steps)
        warm: NDArray[np.int8] | None = None
        # Largest selections first: they have the fewest active bounds, and warm-start the
        # others.
        for guess in sorted(guesses, key=lambda guess: -guess.rows.size):
            if guess.done:
                continue
            if warm is not None and guess.answer is None:
                guess.state = warm[guess.rows]
            most = max_steps if thin is None else _MAX_THIN_STEPS
            _pivot_alone(batch, thin, guess, most)
            warm = np.zeros(batch.kappa.size, dtype=np.int8)
            warm[guess.rows] = guess.state
    return guesses


def _thin_factor(batch: MatchingBatch) -> Array | None:
    """Return a thin F with ``F @ F.T`` equal to the kernel, or None."""
    diagonal = np.maximum(batch.kernel.diagonal(), 0.0)
    left = _NEGLIGIBLE_REST * batch.ridge
    growing = GrowingFactor(
        lambda p: batch.kernel[:, p], diagonal, least_rest=1e-2 * left
    )
    most = min(_LARGEST_RANK, diagonal.size // 8)
    growing.grow(most, lambda rest: float(rest.max()) <= left)
    if growing.rank == 0 or growing.rest.max() > left:
        return None
    return np.ascontiguousarray(growing.factor)


def _pivot_together(batch: MatchingBatch, guesses: list[Guess], max_steps: int) -> None:
    """Pivot with the factor of all rows, while few enough bounds are active."""
    shared = SharedFactor(batch)
    many = len(guesses) >= _MANY and batch.kappa.size >= _LARGE
    share = _LARGEST_SHARE_OF_MANY if many else _LARGEST_SHARE
    for _ in range(max_steps):
        guesses = [
            guess
            for guess in guesses
            if not guess.done
            and np.count_nonzero(guess.state) <= share * guess.rows.size
        ]
        if not guesses:
            return
        shared.correct(guesses)


def _pivot_alone(
    batch: MatchingBatch, thin: Array | None, guess: Guess, max_steps: int
) -> None:
    """Pivot with a factor of the free rows alone, if many bounds are active."""
    ridge, rows = batch.ridge, guess.rows
    own = None if thin is None else thin[rows]

    def times_kernel(u: Vector) -> Vector:
        return batch.products([(rows, u)])[0] if own is None else own @ (u @ own)

    while not guess.done and guess.steps < max_steps:
        target = batch.kappa[rows] + ridge * guess.centre
        free = guess.state == FREE
        u, multiplier = guess.at_bounds(), 0.0
        right = target[free]
        if u.any():  # as a rule, no weight is at its upper bound
            right -= times_kernel(u)[free]
        if free.any():
            rights = np.array([right, np.ones(right.size)]).T
            if own is None:
                inside = rows[free]
                matrix = batch.kernel[inside].take(inside, axis=1)
                factor = _factorise(matrix.T, ridge)
                both = cho_solve(factor, rights, check_finite=False)
            else:
                both = _solve_thin(own[free], ridge, rights)
            u[free] = both[:, 0]
            if guess.band != FREE:
                short = guess.edge - float(u.sum())
                multiplier = short / float(both[:, 1].sum())
                u[free] += multiplier * both[:, 1]
        gradient = times_kernel(u) + ridge * u - target
        guess.correct(u, gradient, multiplier)


def _factorise(matrix: Array, ridge: float) -> tuple[Array, bool]:
    """Return the Cholesky factor of the matrix and a ridge; overwrites the matrix."""
    matrix[np.diag_indices_from(matrix)] += ridge
    return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)


def _solve_thin(thin: Array, ridge: float, right: Array) -> Array:
    """Solve with ``thin @ thin.T + ridge`` by the Woodbury identity."""
    factor = _factorise(thin.T @ thin, ridge)
    solution = np.zeros_like(right)
    residual = right
    for _ in range(_REFINEMENTS):
        inner = cho_solve(factor, thin.T @ residual, check_finite=False)
        solution += (residual - thin @ inner) / ridge
        residual = right - thin @ (thin.T @ solution) - ridge * solution
    return solution


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
        lower, _ = _factorise(np.array(batch.kernel.T, order="F"), ridge)
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
