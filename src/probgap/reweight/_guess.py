"""A guess which bounds are active, and how it is mended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Vector
from probgap.reweight._problem import Bounds

Rows = NDArray[np.intp]

# Steps that may fail to bring down the number of wrong guesses.
_PATIENCE = 8
# A gradient or a share of the bound this small is rounding.
_ROUNDING = 1e-12

AT_ZERO, FREE, AT_UPPER = -1, 0, 1


@dataclass(slots=True)
class Guess:
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


def first_guess(bounds: Bounds, rows: Rows, certify: bool) -> Guess:
    """Guess that no bound is active but those that leave no choice."""
    low, high = bounds.band
    return Guess(
        rows,
        bounds,
        state=np.zeros(rows.size, dtype=np.int8),
        band=AT_UPPER if low == high else FREE,
        certify=certify,
        centre=np.full(rows.size, 1.0 / rows.size),
    )
