"""Block principal pivoting: guess which bounds are active, solve, mend the guess.

Once it is known which weights lie at a bound, the others solve a linear system. Weights
that come out beyond their bound go to it, weights at a bound that the gradient pulls
away from it are set free, all at once, until none is left. The answer is exact. A step
that does not bring the number of wrong guesses down for long is replaced by one that
mends a single guess, which cannot cycle (Judice and Pires, 1994).

The ridge that makes the system definite pulls the weights towards uniform ones, where
the kernel leaves them a choice. The tangent at the answer proves little then. Solving
once more with the same factor and the answer in the place of the uniform weights gives
another point, whose tangent bounds the least objective far more closely.

Weights are in units of their sum here: ``u = w / n``. Then the matrix is the same for
every problem of a batch, and one Cholesky factor of it serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from probgap.reweight._low_rank import factorise
from probgap.reweight._problem import Bounds, MatchingBatch, Vector

Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]

_MAX_STEPS = 200
# Steps that may fail to bring down the number of wrong guesses.
_PATIENCE = 8
# Where more than this share of the weights lies at a bound, a factor of the rest alone
# is cheaper than bending that of all.
_LARGEST_SHARE = 0.1
# Kernels of no higher rank are solved through that. What the factor leaves is less
# than the ridge by this much.
_LARGEST_RANK = 150
_NEGLIGIBLE_REST = 1e-2
_REFINEMENTS = 3
# A gradient or a share of the bound this small is rounding.
_ROUNDING = 1e-12

AT_ZERO, FREE, AT_UPPER = -1, 0, 1


@dataclass(slots=True)
class _Guess:
    """Which bounds of one problem are active: of each weight, and of their sum."""

    rows: Rows
    bounds: Bounds
    state: NDArray[np.int8]
    band: int
    certify: bool
    centre: Vector
    answer: Vector | None = None
    witness: Vector | None = None
    fewest: int = -1
    patience: int = _PATIENCE
    steps: int = 0

    @property
    def done(self) -> bool:
        """Whether the guess was right, and what proves it is there if asked for."""
        return (self.witness if self.certify else self.answer) is not None

    @property
    def cap(self) -> float:
        return self.bounds.upper / self.bounds.n

    @property
    def edge(self) -> float:
        return self.bounds.band[0 if self.band == AT_ZERO else 1]

    @property
    def bound_rows(self) -> Rows:
        bound_rows: Rows = self.rows[self.state != FREE]
        return bound_rows

    def values(self) -> Vector:
        """Values of the weights at a bound."""
        return np.where(self.state[self.state != FREE] == AT_UPPER, self.cap, 0.0)

    def mend(self, u: Vector, gradient: Vector, multiplier: float) -> None:
        """Look at the solution for this guess and correct what is wrong in it.

        ``multiplier`` is that of the sum, where the sum is at an edge: what the
        gradient of a free weight is then.
        """
        if self.answer is not None:
            self.witness = u
            return
        self.steps += 1
        tiny = _ROUNDING * max(1.0, self.bounds.n * float(np.abs(u).max()))
        slope = gradient - multiplier
        wanted = self.state.copy()
        free = self.state == FREE
        wanted[free & (u < -tiny / self.bounds.n)] = AT_ZERO
        wanted[free & (u > self.cap + tiny / self.bounds.n)] = AT_UPPER
        wanted[(self.state == AT_ZERO) & (slope < -tiny)] = FREE
        wanted[(self.state == AT_UPPER) & (slope > tiny)] = FREE
        low, high = self.bounds.band
        total = float(u.sum())
        band = self.band
        if band == FREE:
            if total < low - tiny:
                band = AT_ZERO
            elif total > high + tiny:
                band = AT_UPPER
        elif low < high and multiplier * band > tiny:
            band = FREE
        wrong = np.flatnonzero(wanted != self.state)
        count = wrong.size + (band != self.band)
        if count == 0:
            self.answer = self.centre = u
            return
        if self.fewest < 0 or count < self.fewest:
            self.fewest, self.patience = count, _PATIENCE
        elif self.patience > 0:
            self.patience -= 1
        else:
            # One at a time, always the last: this cannot come back to an old guess.
            if band == self.band:
                self.state[wrong[-1]] = wanted[wrong[-1]]
            self.band = band
            return
        self.state, self.band = wanted, band


@dataclass(frozen=True, slots=True)
class Pivoted:
    """Weights of one problem, and how many guesses they took; None if none was right.

    ``witness`` is a point, not a feasible one, whose tangent bounds the objective.
    """

    weights: Vector | None
    witness: Vector | None
    n_iter: int


def solve_by_pivoting(batch: MatchingBatch, *, certify: bool) -> list[Pivoted]:
    """Solve every problem of a batch: one factorisation for all, where few bounds bind."""
    guesses = [
        _first_guess(batch.bounds(j), np.flatnonzero(chosen), certify)
        for j, chosen in enumerate(batch.chosen)
    ]
    n = batch.kappa.size
    thin = factorise(
        batch.kernel,
        min(_LARGEST_RANK, n // 8),
        _NEGLIGIBLE_REST * _ridge_in_units_of_sum(batch),
    )
    try:
        if thin is None:
            _bend_one_factor(batch, guesses)
        warm: NDArray[np.int8] | None = None
        # From the largest selection down: the fewer are left out, the fewer bind.
        for guess in sorted(guesses, key=lambda guess: -guess.rows.size):
            if guess.done:
                continue
            if warm is not None and guess.answer is None:
                guess.state = warm[guess.rows]
            _factor_each_time(batch, thin, guess)
            warm = np.zeros(n, dtype=np.int8)
            warm[guess.rows] = guess.state
    except LinAlgError:
        # Not positive definite, so no kernel: what was solved so far stands.
        pass
    return [
        Pivoted(
            None
            if guess.answer is None
            else guess.bounds.project(guess.bounds.n * guess.answer),
            guess.witness,
            guess.steps,
        )
        for guess in guesses
    ]


def _first_guess(bounds: Bounds, rows: Rows, certify: bool) -> _Guess:
    """Guess that no bound is active but those that leave no choice."""
    low, high = bounds.band
    return _Guess(
        rows,
        bounds,
        state=np.zeros(rows.size, dtype=np.int8),
        band=AT_UPPER if low == high else FREE,
        certify=certify,
        centre=np.full(rows.size, 1.0 / rows.size),
    )


def _ridge_in_units_of_sum(batch: MatchingBatch) -> float:
    return batch.ridge * batch.kappa.size


def _bend_one_factor(batch: MatchingBatch, guesses: list[_Guess]) -> None:
    """Go on until every guess is right, or has too many bounds for this to pay."""
    base = _BaseFactor.of(batch)
    going = guesses
    for _ in range(_MAX_STEPS):
        going = [
            guess
            for guess in going
            if not guess.done
            and np.count_nonzero(guess.state) <= _LARGEST_SHARE * guess.rows.size
        ]
        if not going:
            return
        for guess, outcome in zip(going, base.solve(going), strict=True):
            guess.mend(*outcome)


@dataclass(slots=True)
class _BaseFactor:
    """Cholesky factor of ``K + ridge`` for all rows, to be bent to any guess.

    A bound that holds a weight adds a multiplier to the right-hand side: with
    ``Y = L^-1 E`` for the held rows E, the multipliers solve ``Y'Y m = held - free``,
    and the gradient at a held row is its multiplier. Columns of Y are kept, since
    problems of a batch hold much the same rows. The last column is that of the sum.
    """

    lower: Matrix
    ridge: float
    to_kappa: Vector
    to_ones: Vector
    position: NDArray[np.intp]
    columns: Matrix
    gram: Matrix

    @classmethod
    def of(cls, batch: MatchingBatch) -> _BaseFactor:
        n = batch.kappa.size
        ridge = _ridge_in_units_of_sum(batch)
        shifted = np.array(batch.kernel, order="F")
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

    def _keep(self, rows: Rows, fresh: Matrix) -> None:
        known = self.columns.shape[1]
        self.position[rows] = known + np.arange(rows.size)
        cross = self.columns.T @ fresh
        self.gram = np.block([[self.gram, cross], [cross.T, fresh.T @ fresh]])
        self.columns = np.hstack([self.columns, fresh])

    def _learn(self, held: list[Rows]) -> None:
        rows = np.unique(np.concatenate(held))
        rows = rows[self.position[rows] < 0]
        if rows.size == 0:
            return
        unit = np.zeros((self.lower.shape[0], rows.size), order="F")
        unit[rows, np.arange(rows.size)] = 1.0
        self._keep(rows, dtrsm(1.0, self.lower, unit, lower=1, overwrite_b=1))

    def _without_bounds(self, guesses: list[_Guess]) -> list[Vector]:
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

    def solve(self, guesses: list[_Guess]) -> list[tuple[Vector, Vector, float]]:
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


def _factor_each_time(batch: MatchingBatch, thin: Matrix | None, guess: _Guess) -> None:
    """Pivot with a factor of the free part alone, for problems where many bounds bind."""
    ridge = _ridge_in_units_of_sum(batch)
    kappa = batch.kappa[guess.rows]
    rows = thin[guess.rows] if thin is not None else None
    while not guess.done and guess.steps < _MAX_STEPS:
        target = kappa + ridge * guess.centre
        free = guess.state == FREE
        u = np.zeros(guess.rows.size)
        u[~free] = guess.values()
        right = target[free] - _product(batch, rows, guess.rows, u)[free]
        multiplier = 0.0
        if free.any():
            rights = np.array([right, np.ones(right.size)]).T
            if rows is None:
                inside = guess.rows[free]
                both = _solve_shifted(
                    batch.kernel[np.ix_(inside, inside)], ridge, rights
                )
            else:
                both = _solve_thin(rows[free], ridge, rights)
            u[free] = both[:, 0]
            if guess.band != FREE:
                short = guess.edge - float(u.sum())
                multiplier = short / float(both[:, 1].sum())
                u[free] += multiplier * both[:, 1]
        gradient = _product(batch, rows, guess.rows, u) + ridge * u - target
        guess.mend(u, gradient, multiplier)


def _product(
    batch: MatchingBatch, thin: Matrix | None, rows: Rows, u: Vector
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


def _solve_shifted(matrix: Matrix, ridge: float, right: Matrix) -> Matrix:
    matrix[np.diag_indices_from(matrix)] += ridge
    factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    solution: Matrix = cho_solve(factor, right, check_finite=False)
    return solution


def _solve_thin(thin: Matrix, ridge: float, right: Matrix) -> Matrix:
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


def _solve_definite(matrix: Matrix, right: Vector) -> Vector:
    if right.size == 0:
        return right
    solution: Vector = cho_solve(cho_factor(matrix, check_finite=False), right)
    return solution
