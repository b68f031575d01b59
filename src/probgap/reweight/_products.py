"""A solver by products with the kernel: pivoting with conjugate gradients.

As in block principal pivoting, a guess says which weights lie at a bound, the others solve a
linear system, and all wrong guesses are corrected at once. Here the system is solved by
conjugate gradients, ever more accurately. If guesses cycle, as they do if the weights are
poorly determined, an interior point method takes over.

A ridge towards uniform weights (``pull``) keeps the system well conditioned and the guesses
from cycling. It is as strong as the tolerance allows; its cost is part of the certified
duality gap. Far from the centre it is weaker, so that its gradient, and with it the gradient
that remains, is about the same for every weight.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.utils import gen_batches

from probgap._core.types import Array, Mask, Vector
from probgap._device.arrays import Arrays
from probgap._device.interior import Programmes, follow_barrier, solve_part
from probgap.reweight._kernels import PanelKernel, times, times_transposed
from probgap.reweight._pivoting import AT_UPPER, AT_ZERO, FREE
from probgap.reweight._problem import Best

_MAX_STEPS = 25
_MAX_BARRIER_STEPS = 40
# Gradient of the ridge, error left in the gradient of free weights, and the gradient that
# frees a weight, as shares of the gradient that the tolerance allows.
_PULL = 0.8
_ERROR = 0.3
_RELEASE = 0.3
# The gain is not known at first: the ridge is then this share of the KKT tolerance.
_FIRST_PULL = 0.5
# The first system is solved to this share of the KKT residual, each next to a tenth of it.
_FIRST_ERROR = 0.005
_TIGHTEN = 0.1
# Once systems are solved to this multiple of the KKT tolerance, wrong guesses are counted.
_SERIOUS = 10.0
# Steps in a row that may fail to reduce the number of wrong guesses.
_PATIENCE = 6
# A guess has settled if clipping at the bounds moves the weights by less, on average.
_SETTLED = 1e-6
# Penalty that holds the mean weight at an edge of the band (augmented Lagrangian).
_PENALTY = 10.0
# The free rows of the matrix are copied if they are fewer than this share of the current
# copy, with some more rows that may be freed next.
_WORTH_A_COPY = 0.75
_SPARE_ROWS = 0.08
_CHUNK = 8192
# Jitter for the diagonal, in units of its largest entry: sums are in single precision.
_JITTER = (0.0, 1e-7, 1e-5, 1e-3)

Inverse = Callable[[Array], Array]  # of columns, of shape (n, 1, k)


class KernelHessian:
    """``K / n``, and its approximation ``(factor @ factor.T + rest * I) / n``.

    Without a kernel, the approximation is used for all.
    """

    def __init__(
        self, kernel: PanelKernel | None, factor: NDArray[Any], rest: float, n: int
    ) -> None:
        self.device = Arrays()
        self.kernel, self.factor, self.rest, self.n = kernel, factor, rest, n
        self._at_hand: tuple[NDArray[np.intp], KernelHessian] = np.arange(n), self

    def product(self, vectors: Array, *, careful: bool = False) -> Array:
        """Multiply with columns; ``careful`` rounds less."""
        if self.kernel is None:
            return self.thin_product(vectors)
        if vectors.shape[1] == 1:
            return self.kernel.product(vectors[:, 0], careful=careful)[:, None] / self.n
        return self.kernel.product(vectors, careful=careful) / self.n

    def thin_product(self, vectors: Array) -> Array:
        """Multiply the approximation with columns."""
        product = times(self.factor, times_transposed(self.factor, vectors))
        return (product + self.rest * vectors) / self.n

    def precondition(self, diagonal: Array, inside: Mask) -> Inverse:
        """Invert the sum of the approximation and a diagonal, for some rows.

        Where both are small, the inverse is a difference of almost equal numbers, and is
        computed in double precision.
        """
        factor, n, careful = self.factor, self.n, self.rest == 0.0
        inverse = np.where(inside, 1.0 / (self.rest + n * diagonal), 0.0)
        small = np.eye(factor.shape[1])
        for rows in gen_batches(factor.shape[0], _CHUNK):
            some = inside[rows, 0]
            part = factor[rows][some]
            part *= np.sqrt(inverse[rows][some]).astype(factor.dtype)
            small += part.T @ part
        of_small = _factorise(small)

        def apply(residual: Array) -> Array:
            plain = inverse * residual[:, 0]
            inner = times_transposed(factor, plain, careful=careful)
            inner = cho_solve(of_small, inner, check_finite=False)
            spread = times(factor, inner, careful=careful)
            return (n * (plain - inverse * spread))[:, None]

        return apply

    def part(self, free: Mask, near: Vector) -> tuple[NDArray[np.intp], KernelHessian]:
        """Return rows that include all free ones, and the Hessian of these rows.

        ``near`` is smallest for rows that are likely to be freed next.
        """
        n_free = int(np.count_nonzero(free))
        absent = free.copy()
        absent[self._at_hand[0]] = False
        if absent.any() or n_free < _WORTH_A_COPY * self._at_hand[0].size:
            self._at_hand = np.arange(self.n), self
            some = n_free + int(_SPARE_ROWS * n_free)
            if self.kernel is not None and some < _WORTH_A_COPY * self.n:
                order = np.argpartition(np.where(free, -np.inf, near), some)
                rows = np.sort(order[:some])
                part = self.kernel.restrict(rows)
                thin = self.factor[rows]
                self._at_hand = rows, KernelHessian(part, thin, self.rest, self.n)
        return self._at_hand


class DenseHessian:
    """``K / n`` as a dense matrix; systems are solved by Cholesky factorisation."""

    def __init__(self, matrix: Array) -> None:
        self.device, self._matrix, self.n = Arrays(), matrix, matrix.shape[0]

    def product(self, vectors: Array, **_: bool) -> Array:
        """Multiply with columns, always carefully."""
        product: Array = self._matrix @ vectors / self.n
        return product

    thin_product = product

    def precondition(self, diagonal: Array, _: Mask) -> Inverse:
        """Invert the sum of the matrix and a diagonal, for all rows."""
        factor = _factorise(self._matrix + np.diag(self.n * diagonal[:, 0]))
        return lambda residual: (
            self.n * cho_solve(factor, residual[:, 0], check_finite=False)[:, None]
        )


def _factorise(matrix: Array) -> Any:
    """Factorise a matrix that is definite up to rounding, with jitter if needed."""
    size = float(matrix.diagonal().max())
    for share in _JITTER:
        matrix[np.diag_indices_from(matrix)] += share * size
        with suppress(LinAlgError):
            return cho_factor(matrix, lower=True, check_finite=False)
    return cho_factor(np.diag(np.abs(matrix).sum(axis=1)), lower=True)


@np.errstate(all="ignore")  # at the limits of precision it stops by itself
def solve_by_products(
    hessian: Any,
    best: Best,
    start: Vector | None = None,
    *,
    max_steps: int = _MAX_STEPS,
) -> int:
    """Minimise from feasible weights until ``best`` is good enough; return the steps.

    ``hessian`` is a :class:`KernelHessian`, or one on a device.
    """
    uniform = best.bounds.uniform()
    weights = uniform if start is None else start
    both = _multiply(hessian, np.array([uniform, weights]).T)
    best.at_uniform = float(uniform @ (0.5 * both[:, 0] - best.kappa))
    best.update_weights(uniform, both[:, 0] - best.kappa)
    best.update(weights, both[:, 1] - best.kappa)
    search = _Search(hessian, best, weights, both[:, 1] - best.kappa, uniform)
    steps = 0
    while not best.is_good_enough and steps < max_steps and search.patience >= 0:
        steps += 1
        search.step()
    if not best.is_good_enough:
        steps += _by_interior_point(hessian, best)
    return steps


def _multiply(hessian: Any, vectors: Array) -> Array:
    device = hessian.device
    product: Array = device.get(hessian.product(device.put(vectors), careful=True))
    return product


def _update_feasible(best: Best, hessian: Any, point: Vector, gradient: Vector) -> None:
    """Update ``best`` by the projection of a point."""
    feasible = best.bounds.project(point)
    if (feasible != point).any():
        gradient = _multiply(hessian, feasible[:, None])[:, 0] - best.kappa
    best.update(feasible, gradient)


def _by_interior_point(hessian: Any, best: Best) -> int:
    """Solve by the interior point method; return the number of steps."""
    bounds, device = best.bounds, hessian.device
    n, (low, high) = bounds.n, bounds.band
    middle = min(max(1.0, 0.9 * low + 0.1 * high), 0.1 * low + 0.9 * high)
    ones = np.ones((n, 1))
    columns = (best.kappa[:, None], 0.0 * ones, bounds.upper * ones)
    numbers = np.array([[n * low], [n * high], [best.at_uniform]])
    problem = Programmes(device, *map(device.put, (*columns, *numbers)))

    def is_solved(_active: Any, _problems: Programmes, state: Any) -> Any:
        point, gradient = (device.get(a)[:, 0] for a in (state.x, state.gradient))
        best.update_bound(point, gradient)
        _update_feasible(best, hessian, point, gradient)
        return device.put(np.array([best.is_good_enough])) > 0.0

    start, most = device.put(middle * ones), _MAX_BARRIER_STEPS
    return follow_barrier(hessian, problem, start, is_solved, max_steps=most)


class _Search:
    """The state of pivoting: the guess, and the weights that solve it."""

    def __init__(
        self, hessian: Any, best: Best, start: Vector, gradient: Vector, centre: Vector
    ) -> None:
        self.hessian, self.best, bounds = hessian, best, best.bounds
        self.weights, self.gradient, self.centre = start, gradient, centre
        self.guess = np.zeros(bounds.n, dtype=np.int8)
        self.guess[(start <= 0.0) & (gradient > 0.0)] = AT_ZERO
        self.guess[(start >= bounds.upper) & (gradient < 0.0)] = AT_UPPER
        self.pull = np.full(bounds.n, _FIRST_PULL * best.kkt_tol)
        self.near = gradient
        self.error = _FIRST_ERROR * bounds.kkt_residual(start, gradient)
        low, high = bounds.band
        self.band, self.multiplier = AT_UPPER if low == high else FREE, 0.0
        self.fewest, self.patience = -1, _PATIENCE

    def step(self) -> None:
        """Solve for the guess, update ``best``, and correct the guess."""
        best, hessian, bounds = self.best, self.hessian, self.best.bounds
        free = self.guess == FREE
        penalty = _PENALTY * best.unit if self.band != FREE else 0.0
        edge = bounds.band[0 if self.band == AT_ZERO else 1]
        excess = penalty * (float(self.weights.mean()) - edge) + self.multiplier
        slope = self.gradient + self.pull * (self.weights - self.centre) + excess
        self.error = max(_ERROR * best.aim, self.error)
        point = self.weights.copy()
        if free.any():
            rows, part = hessian.part(free, self.near)
            right, pull = -slope[rows], self.pull[rows]
            point[rows] += solve_part(
                part, free[rows], right, pull, penalty / bounds.n, self.error
            )
        self.weights = np.clip(point, 0.0, bounds.upper)
        both = _multiply(hessian, np.array([self.weights, point - self.weights]).T)
        self.gradient = both[:, 0] - best.kappa
        of_point = self.gradient + both[:, 1]
        if self.band != FREE:
            self.multiplier += penalty * (float(point.mean()) - edge)
        slope = of_point + self.pull * (point - self.centre) + self.multiplier
        best.update_bound(point, of_point)
        _update_feasible(best, hessian, self.weights, self.gradient)
        self._correct(point, slope)

    def _correct(self, point: Vector, slope: Vector) -> None:
        best, bounds = self.best, self.best.bounds
        low, high = bounds.band
        serious = _SERIOUS * best.kkt_tol
        release = max(_RELEASE * best.aim, min(self.error, serious))
        wanted = self.guess.copy()
        wanted[point < 0.0] = AT_ZERO
        wanted[point > bounds.upper] = AT_UPPER
        wanted[(self.guess == AT_ZERO) & (slope < -release)] = FREE
        wanted[(self.guess == AT_UPPER) & (slope > release)] = FREE
        wrong = int(np.count_nonzero(wanted != self.guess))
        self.near = np.where(self.guess == AT_UPPER, -slope, slope)
        self.guess = wanted
        mean = float(point.mean())
        if self.band == FREE:
            self.band = AT_ZERO if mean < low else AT_UPPER if mean > high else FREE
        elif low < high and self.multiplier * self.band < 0.0:
            self.band, self.multiplier = FREE, 0.0
        strength = _FIRST_PULL * best.kkt_tol
        if self.error <= serious:
            strength = _PULL * best.aim
            self.patience -= 1
            if self.fewest < 0 or wrong < self.fewest:
                self.fewest, self.patience = wrong, _PATIENCE
            if np.abs(point - self.weights).mean() <= _SETTLED:
                # Centring the ridge here removes its cost.
                self.centre = self.weights
                self.fewest, self.patience = -1, _PATIENCE
        self.pull = strength / np.maximum(1.0, np.abs(point - self.centre))
        self.error *= _TIGHTEN
