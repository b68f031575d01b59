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

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from probgap._core.types import Array, Mask, Matrix, Vector
from probgap.reweight._growing import GrowingFactor
from probgap.reweight._problem import Bounds, default_slack

Rows = NDArray[np.intp]

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

    def guesses(self, *, certify: bool, patience: int) -> list[Guess]:
        """Begin each problem with the guess that no bound is active."""
        guesses = []
        for rows in map(np.flatnonzero, self.chosen):
            n = rows.size
            slack = default_slack(n) if self.slack is None else self.slack
            bounds = Bounds(n, self.upper, slack)
            guesses.append(Guess(rows, bounds, certify, patience))
        return guesses


@dataclass(slots=True)
class Guess:
    """The active set of one problem: which bounds of the weights and of their sum hold.

    ``answer`` is the solution u, once the guess was right, and ``witness`` the second
    solution, not feasible, whose tangent bounds the objective.
    """

    rows: Rows
    bounds: Bounds
    certify: bool
    patience: int
    state: NDArray[np.int8] = field(init=False)
    band: int = field(init=False)
    centre: Vector = field(init=False)
    answer: Vector | None = None
    witness: Vector | None = None
    fewest: int | None = None
    failures: int = 0
    steps: int = 0

    def __post_init__(self) -> None:
        low, high = self.bounds.band
        self.state = np.zeros(self.rows.size, dtype=np.int8)
        self.band = AT_UPPER if low == high else FREE
        self.centre = np.full(self.rows.size, 1.0 / self.rows.size)

    @property
    def done(self) -> bool:
        return (self.witness if self.certify else self.answer) is not None

    @property
    def weights(self) -> Vector:
        if self.answer is None:
            return self.bounds.uniform()
        return self.bounds.project(self.bounds.n * self.answer)

    @property
    def edge(self) -> float:
        return self.bounds.band[0 if self.band == AT_ZERO else 1]

    def values(self) -> Vector:
        """Return the values of the weights at a bound."""
        cap = self.bounds.upper / self.bounds.n
        return np.where(self.state[self.state != FREE] == AT_UPPER, cap, 0.0)

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
        if self.fewest is None or count < self.fewest:
            self.fewest, self.failures = count, 0
        elif self.failures < self.patience:
            self.failures += 1
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
    max_thin_steps: int = _MAX_THIN_STEPS,
    patience: int = _PATIENCE,
) -> list[Guess]:
    """Solve the problems of a batch, with one factorisation if few bounds are active."""
    guesses = batch.guesses(certify=certify, patience=patience)
    thin = _thin_factor(batch)
    try:
        if thin is None:
            _solve_with_shared_factor(batch, guesses, max_steps)
        warm: NDArray[np.int8] | None = None
        # Largest selections first: they have the fewest active bounds, and warm-start the
        # others.
        for guess in sorted(guesses, key=lambda guess: -guess.rows.size):
            if guess.done:
                continue
            if warm is not None and guess.answer is None:
                guess.state = warm[guess.rows]
            steps = max_steps if thin is None else max_thin_steps
            _solve_with_own_factor(batch, thin, guess, steps)
            warm = np.zeros(batch.kappa.size, dtype=np.int8)
            warm[guess.rows] = guess.state
    except LinAlgError:
        # The kernel is not positive definite: return what was solved so far.
        pass
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


def _solve_with_shared_factor(
    batch: MatchingBatch, guesses: list[Guess], max_steps: int
) -> None:
    """Pivot with the factor of all rows, while few enough bounds are active."""
    base = SharedFactor.of(batch)
    many = len(guesses) >= _MANY and batch.kappa.size >= _LARGE
    share = _LARGEST_SHARE_OF_MANY if many else _LARGEST_SHARE
    going = guesses
    for _ in range(max_steps):
        going = [
            guess
            for guess in going
            if not guess.done
            and np.count_nonzero(guess.state) <= share * guess.rows.size
        ]
        if not going:
            return
        for guess, outcome in zip(going, base.solve(going), strict=True):
            guess.correct(*outcome)


def _solve_with_own_factor(
    batch: MatchingBatch, thin: Matrix | None, guess: Guess, max_steps: int
) -> None:
    """Pivot with a factor of the free rows alone, if many bounds are active."""
    ridge = batch.ridge
    kappa = batch.kappa[guess.rows]
    rows = thin[guess.rows] if thin is not None else None
    while not guess.done and guess.steps < max_steps:
        target = kappa + ridge * guess.centre
        free = guess.state == FREE
        u = np.zeros(guess.rows.size)
        u[~free] = guess.values()
        right = target[free] - _product_with(batch, rows, guess.rows, u)[free]
        multiplier = 0.0
        if free.any():
            rights = np.array([right, np.ones(right.size)]).T
            if rows is None:
                inside = guess.rows[free]
                matrix = batch.kernel[np.ix_(inside, inside)]
                matrix[np.diag_indices_from(matrix)] += ridge
                both = cho_solve(_factorise(matrix.T), rights, check_finite=False)
            else:
                both = _solve_thin(rows[free], ridge, rights)
            u[free] = both[:, 0]
            if guess.band != FREE:
                short = guess.edge - float(u.sum())
                multiplier = short / float(both[:, 1].sum())
                u[free] += multiplier * both[:, 1]
        gradient = _product_with(batch, rows, guess.rows, u) + ridge * u - target
        guess.correct(u, gradient, multiplier)


def _product_with(
    batch: MatchingBatch, thin: Array | None, rows: Rows, u: Vector
) -> Any:
    if thin is not None:
        return thin @ (u @ thin)
    spread = np.zeros(batch.kappa.size)
    spread[rows] = u
    return (batch.kernel @ spread)[rows]


def _factorise(matrix: Array) -> tuple[Array, bool]:
    """Return the Cholesky factor, overwriting the matrix."""
    return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)


def _solve_thin(thin: Array, ridge: float, right: Array) -> Array:
    """Solve with ``thin @ thin.T + ridge`` by the Woodbury identity."""
    small = thin.T @ thin
    small[np.diag_indices_from(small)] += ridge
    factor = _factorise(small)
    solution = np.zeros_like(right)
    residual = right
    for _ in range(_REFINEMENTS):
        inner = cho_solve(factor, thin.T @ residual, check_finite=False)
        solution += (residual - thin @ inner) / ridge
        residual = right - thin @ (thin.T @ solution) - ridge * solution
    return solution


@dataclass(slots=True)
class SharedFactor:
    """Cholesky factor L of ``K + ridge`` for all rows, which serves every guess.

    Fixing a weight adds a multiplier to the right-hand side: with ``Y = L^-1 E`` for the
    fixed rows E, the multipliers m solve ``Y'Y m = fixed values - unconstrained values``,
    and the gradient at a fixed row is its multiplier. Columns of Y are cached, since
    problems of a batch fix mostly the same rows. The first column is that of the sum.
    """

    lower: Array
    ridge: float
    to_kappa: Vector
    to_ones: Vector
    position: Rows
    columns: Array
    gram: Array

    @classmethod
    def of(cls, batch: MatchingBatch) -> SharedFactor:
        n = batch.kappa.size
        # K is symmetric: its transpose is already in LAPACK's (Fortran) order.
        shifted = np.array(batch.kernel.T, order="F")
        shifted[np.diag_indices(n)] += batch.ridge
        lower, fault = dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
        if fault:
            raise LinAlgError
        half = dtrsm(1.0, lower, np.array([batch.kappa, np.ones(n)]).T, lower=1)
        both = dtrsm(1.0, lower, half, lower=1, trans_a=1)
        base = cls(
            lower=lower,
            ridge=batch.ridge,
            to_kappa=both[:, 0],
            to_ones=both[:, 1],
            position=np.append(np.full(n, -1), 0),
            columns=half[:, 1:],
            gram=half[:, 1:].T @ half[:, 1:],
        )
        # If the rows that some problem leaves out come last, their columns follow from a
        # small triangle.
        first_in_doubt = int(np.argmin(np.append(batch.chosen.all(axis=0), False)))
        last = n - first_in_doubt
        if 0 < last <= n // 2:
            corner = np.asfortranarray(lower[first_in_doubt:, first_in_doubt:])
            fresh = np.zeros((n, last))
            fresh[first_in_doubt:] = dtrsm(1.0, corner, np.eye(last), lower=1)
            base._keep(np.arange(first_in_doubt, n), fresh)
        return base

    def _keep(self, rows: Rows, fresh: Array) -> None:
        self.position[rows] = self.columns.shape[1] + np.arange(rows.size)
        cross = self.columns.T @ fresh
        self.gram = np.block([[self.gram, cross], [cross.T, fresh.T @ fresh]])
        self.columns = np.asfortranarray(np.vstack([self.columns.T, fresh.T]).T)

    def _learn(self, fixed: list[Rows]) -> None:
        rows = np.unique(np.concatenate(fixed))
        rows = rows[self.position[rows] < 0]
        if rows.size > 0:
            unit = np.zeros((self.lower.shape[0], rows.size), order="F")
            unit[rows, np.arange(rows.size)] = 1.0
            self._keep(rows, dtrsm(1.0, self.lower, unit, lower=1, overwrite_b=1))

    def _without_bounds(self, guesses: list[Guess]) -> list[Vector]:
        """Return the unconstrained solution of each guess."""
        pulled = [guess for guess in guesses if guess.answer is not None]
        right = np.zeros((self.lower.shape[0], len(pulled)), order="F")
        for k, guess in enumerate(pulled):
            right[guess.rows, k] = self.ridge * guess.centre
        half = dtrsm(1.0, self.lower, right, lower=1, overwrite_b=1)
        both = iter(dtrsm(1.0, self.lower, half, lower=1, trans_a=1, overwrite_b=1).T)
        free = []
        for guess in guesses:
            share = self.ridge / guess.bounds.n
            pull = share * self.to_ones if guess.answer is None else next(both)
            free.append(self.to_kappa + pull)
        return free

    def solve(self, guesses: list[Guess]) -> list[tuple[Vector, Vector, float]]:
        """Return u, the gradient at fixed rows, and the multiplier of the sum, for each."""
        n = self.lower.shape[0]
        fixed, values = [], []
        for guess in guesses:
            left_out = np.setdiff1d(np.arange(n), guess.rows, assume_unique=True)
            rows = np.concatenate([left_out, guess.rows[guess.state != FREE]])
            value = np.concatenate([np.zeros(left_out.size), guess.values()])
            if guess.band != FREE:
                rows, value = np.append(rows, n), np.append(value, guess.edge)
            fixed.append(rows)
            values.append(value)
        self._learn(fixed)
        free = self._without_bounds(guesses)
        multipliers = np.zeros((self.columns.shape[1], len(guesses)))
        for k, (rows, value) in enumerate(zip(fixed, values, strict=True)):
            if rows.size > 0:
                at = self.position[rows]
                factor = cho_factor(self.gram[np.ix_(at, at)], check_finite=False)
                plain = np.append(free[k], free[k].sum())[rows]
                multipliers[at, k] = cho_solve(factor, value - plain)
        spread = self.columns @ multipliers
        bent = dtrsm(1.0, self.lower, spread, lower=1, trans_a=1, overwrite_b=1)
        outcomes = []
        for k, guess in enumerate(guesses):
            gradient = np.zeros(n)
            inside = fixed[k][fixed[k] < n]
            gradient[inside] = multipliers[self.position[inside], k]
            of_sum = float(multipliers[0, k]) if guess.band != FREE else 0.0
            u = free[k] + bent[:, k]
            outcomes.append((u[guess.rows], gradient[guess.rows] + of_sum, of_sum))
        return outcomes
