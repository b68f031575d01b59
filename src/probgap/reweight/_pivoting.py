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
from scipy.linalg import LinAlgError

from probgap._core.types import Matrix, Vector
from probgap.reweight._factors import (
    BaseFactor,
    product_with,
    solve_shifted,
    solve_thin,
)
from probgap.reweight._guess import FREE, Guess, first_guess
from probgap.reweight._low_rank import factorise
from probgap.reweight._problem import MatchingBatch

# Past so many steps an interior point method is faster, unless steps cost next to
# nothing.
_MAX_STEPS = 40
_MAX_THIN_STEPS = 200
# Where more than this share of the weights lies at a bound, a factor of the rest alone
# is cheaper than bending that of all.
_LARGEST_SHARE = 0.1
# Kernels of no higher rank are solved through that. What the factor leaves is less
# than the ridge by this much.
_LARGEST_RANK = 150
_NEGLIGIBLE_REST = 1e-2


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
        first_guess(batch.bounds(j), np.flatnonzero(chosen), certify)
        for j, chosen in enumerate(batch.chosen)
    ]
    n = batch.kappa.size
    thin = factorise(
        batch.kernel,
        min(_LARGEST_RANK, n // 8),
        _NEGLIGIBLE_REST * batch.ridge,
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


def _bend_one_factor(batch: MatchingBatch, guesses: list[Guess]) -> None:
    """Go on until every guess is right, or has too many bounds for this to pay."""
    base = BaseFactor.of(batch)
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


def _factor_each_time(batch: MatchingBatch, thin: Matrix | None, guess: Guess) -> None:
    """Pivot with a factor of the free part alone, for problems where many bounds bind."""
    ridge = batch.ridge
    kappa = batch.kappa[guess.rows]
    rows = thin[guess.rows] if thin is not None else None
    most = _MAX_STEPS if thin is None else _MAX_THIN_STEPS
    while not guess.done and guess.steps < most:
        target = kappa + ridge * guess.centre
        free = guess.state == FREE
        u = np.zeros(guess.rows.size)
        u[~free] = guess.values()
        right = target[free] - product_with(batch, rows, guess.rows, u)[free]
        multiplier = 0.0
        if free.any():
            rights = np.array([right, np.ones(right.size)]).T
            if rows is None:
                inside = guess.rows[free]
                both = solve_shifted(
                    batch.kernel[np.ix_(inside, inside)], ridge, rights
                )
            else:
                both = solve_thin(rows[free], ridge, rights)
            u[free] = both[:, 0]
            if guess.band != FREE:
                short = guess.edge - float(u.sum())
                multiplier = short / float(both[:, 1].sum())
                u[free] += multiplier * both[:, 1]
        gradient = product_with(batch, rows, guess.rows, u) + ridge * u - target
        guess.mend(u, gradient, multiplier)
