"""Kernel mean matching by products with the kernel: pivoting with conjugate gradients.

As in block principal pivoting, a guess says which weights lie at a bound, the others solve a
linear system, and all wrong guesses are corrected at once. Here the system is solved by
conjugate gradients, ever more accurately. If guesses cycle, as they do if the weights are
poorly determined, the interior point method takes over.

A ridge towards uniform weights (``pull``) keeps the system well conditioned and the guesses
from cycling. It is as strong as the tolerance allows; its cost is part of the certified
duality gap. Far from the centre it is weaker, so that its gradient, and with it the gradient
that remains, is about the same for every weight.
"""

import numpy as np

from probgap._core.arrays import Tensor
from probgap._core.hessian import Hessian
from probgap._core.quadratic import Best, State, conjugate_gradients, follow_barrier
from probgap._core.types import Array, Mask

AT_ZERO, FREE, AT_UPPER = -1, 0, 1

_MAX_STEPS = 25
_MAX_BARRIER_STEPS = 40
# Loose systems cost the interior point method few more steps here, and half the time.
_BARRIER_ERROR = 0.5
# Gradient of the ridge, error left in the gradient of free weights, and the gradient that
# frees a weight, as shares of the gradient that the tolerance allows.
_PULL = 0.8
_ERROR = 0.3
_RELEASE = 0.3
# The gain is not known at first: the ridge is then this share of the KKT tolerance. If the
# duality gap would need gradients below the second share of that tolerance, it is out of
# reach; gradients then aim at the third share.
_FIRST_PULL = 0.5
_LEAST_SHARE = 0.1
_SHARE_OF_RESIDUAL = 0.6
# The first system is solved to this share of the KKT residual, each next to a tenth of it.
_FIRST_ERROR = 0.005
_TIGHTEN = 0.1
# Once systems are solved to this multiple of the KKT tolerance, wrong guesses are counted.
_SERIOUS = 10.0
# Steps in a row that may fail to reduce the number of wrong guesses.
_PATIENCE = 1
# A guess has settled if clipping at the bounds moves the weights by less, on average.
_SETTLED = 1e-6
# Penalty that holds the mean weight at an edge of the band (augmented Lagrangian).
_PENALTY = 10.0


def search(
    hessian: Hessian, best: Best, unit: float, *, max_steps: int = _MAX_STEPS
) -> int:
    """Minimise from uniform weights until ``best`` is good enough; return the steps.

    ``best`` is in numpy's arrays, of one column, the Hessian in any; ``unit`` is the size
    of the kernel's diagonal.
    """
    with np.errstate(all="ignore"):  # at the limits of precision it stops by itself
        uniform = best.programme.project(np.ones_like(best.x))
        gradient = _multiply(hessian, uniform) - best.programme.linear
        best.reference = best.programme.objective(uniform, gradient)
        best.update(uniform, gradient)
        guesses, steps = _Guesses(hessian, best, unit), 0
        while not best.is_good_enough and steps < max_steps and guesses.patience >= 0:
            steps += 1
            guesses.step()
        if not best.is_good_enough:
            steps += _by_interior_point(hessian, best)
    return steps


def _multiply(hessian: Hessian, vectors: Array) -> Array:
    arrays = hessian.arrays
    return arrays.get(hessian.product(arrays.put(vectors), careful=True))


def _update_feasible(best: Best, hessian: Hessian, x: Array, gradient: Array) -> None:
    """Update ``best`` by the projection of a point."""
    feasible = best.programme.project(x)
    if (feasible != x).any():
        gradient = _multiply(hessian, feasible) - best.programme.linear
    best.update(feasible, gradient)


def _by_interior_point(hessian: Hessian, best: Best) -> int:
    """Solve by the interior point method; return the number of steps."""
    programme, arrays = best.programme, hessian.arrays
    n = best.x.size
    low, high = float(programme.low[0]) / n, float(programme.high[0]) / n
    middle = min(max(1.0, 0.9 * low + 0.1 * high), 0.1 * low + 0.9 * high)

    def is_solved(state: State) -> Mask:
        x, gradient = arrays.get(state.x), arrays.get(state.gradient)
        best.update_bound(x, gradient)
        _update_feasible(best, hessian, x, gradient)
        return best.is_good_enough

    start = arrays.put(np.full((n, 1), middle))
    reference, there = arrays.put(best.reference), programme.on(arrays)
    return follow_barrier(
        hessian,
        there,
        reference,
        start,
        is_solved,
        max_steps=_MAX_BARRIER_STEPS,
        share=_BARRIER_ERROR,
    )


class _Guesses:
    """The state of pivoting: the guess, and the weights that solve it."""

    def __init__(self, hessian: Hessian, best: Best, unit: float) -> None:
        self._hessian, self._best, self._programme = hessian, best, best.programme
        self._n, self._kkt_tol = best.x.size, best.kkt_tol
        self._low, self._high = (
            float(p[0]) for p in (best.programme.low, best.programme.high)
        )
        self._x, self._gradient, self._centre = best.x, best.gradient, best.x
        self._guess = np.zeros(best.x.shape, dtype=np.int8)
        self._pull = np.full(best.x.shape, _FIRST_PULL * best.kkt_tol)
        self._error = _FIRST_ERROR * float(best.kkt_residual[0])
        self._band = AT_UPPER if self._low == self._high else FREE
        self._multiplier = 0.0
        self._fewest, self.patience = -1, _PATIENCE
        self._penalty = _PENALTY * unit

    @property
    def _aim(self) -> float:
        """Gradient of free weights that the duality gap or else the KKT residual allows."""
        gain = float((self._best.reference - self._best.objective)[0])
        allowed = self._best.share * gain / self._n
        if allowed < _LEAST_SHARE * self._kkt_tol:
            return _SHARE_OF_RESIDUAL * self._kkt_tol
        return min(allowed, self._kkt_tol)

    def step(self) -> None:
        """Solve for the guess, update ``best``, and correct the guess."""
        best, hessian = self._best, self._hessian
        free = self._guess == FREE
        penalty = self._penalty if self._band != FREE else 0.0
        edge = self._low if self._band == AT_ZERO else self._high
        excess = penalty * (float(self._x.sum()) - edge) / self._n + self._multiplier
        slope = self._gradient + self._pull * (self._x - self._centre) + excess
        self._error = max(_ERROR * self._aim, self._error)
        point = self._x.copy()
        if free.any():
            point += self._solve(free, -slope, penalty / self._n)
        self._x = np.clip(point, 0.0, self._programme.upper)
        both = _multiply(hessian, np.hstack([self._x, point - self._x]))
        self._gradient = both[:, :1] - self._programme.linear
        of_point = self._gradient + both[:, 1:]
        if self._band != FREE:
            self._multiplier += penalty * (float(point.sum()) - edge) / self._n
        slope = of_point + self._pull * (point - self._centre) + self._multiplier
        best.update_bound(point, of_point)
        _update_feasible(best, hessian, self._x, self._gradient)
        self._correct(point, slope)

    def _solve(self, free: Mask, right: Array, penalty: float) -> Array:
        """Solve with the Hessian, the ridge and the penalty of the sum for free weights."""
        hessian, arrays = self._hessian, self._hessian.arrays
        mine, pull = arrays.put(1.0 * free) > 0.0, arrays.put(self._pull)
        plain = inverse = hessian.precondition(pull, mine)
        if penalty > 0.0:
            of_ones = plain(1.0 * mine[:, :, None])
            share = penalty / (1.0 + penalty * of_ones.sum())

            def inverse(residual: Tensor) -> Tensor:
                solution = plain(residual)
                return solution - share * solution.sum() * of_ones

        def times(vectors: Tensor) -> Tensor:
            column = vectors[:, :, 0]
            product = hessian.product(column) + pull * column + penalty * column.sum()
            return arrays.xp.where(mine, product, 0.0)[:, :, None]

        residual = arrays.put(np.where(free, right, 0.0)[:, :, None])
        solution, _ = conjugate_gradients(
            times, inverse, 0.0 * residual, residual, self._error, arrays.xp
        )
        return arrays.get(solution)[:, :, 0]

    def _correct(self, point: Array, slope: Array) -> None:
        serious = _SERIOUS * self._kkt_tol
        release = max(_RELEASE * self._aim, min(self._error, serious))
        wanted = self._guess.copy()
        wanted[point < 0.0] = AT_ZERO
        wanted[point > self._programme.upper] = AT_UPPER
        wanted[(self._guess == AT_ZERO) & (slope < -release)] = FREE
        wanted[(self._guess == AT_UPPER) & (slope > release)] = FREE
        wrong = int(np.count_nonzero(wanted != self._guess))
        self._guess, total = wanted, float(point.sum())
        if self._band == FREE:
            above = AT_UPPER if total > self._high else FREE
            self._band = AT_ZERO if total < self._low else above
        elif self._low < self._high and self._multiplier * self._band < 0.0:
            self._band, self._multiplier = FREE, 0.0
        strength = _FIRST_PULL * self._kkt_tol
        if self._error <= serious:
            strength = _PULL * self._aim
            self.patience -= 1
            if self._fewest < 0 or wrong < self._fewest:
                self._fewest, self.patience = wrong, _PATIENCE
            if np.abs(point - self._x).mean() <= _SETTLED:
                # Centring the ridge here removes its cost.
                self._centre = self._x
                self._fewest, self.patience = -1, _PATIENCE
        self._pull = strength / np.maximum(1.0, np.abs(point - self._centre))
        self._error *= _TIGHTEN
