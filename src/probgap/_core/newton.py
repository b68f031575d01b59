"""Linear models fitted on all rows and on every fold at once by Newton's method.

The model of a fold starts at the solution for all rows. Its Hessian there is that of all
rows less that of the rows that the fold leaves out. So one Cholesky factor for each fold
and a few gradients, computed for all folds in one pass over the rows, replace a separate
fit for each.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import ssyrk
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit, xlogy
from sklearn.utils import gen_batches

from probgap._core.runtime import spread_rows
from probgap._core.types import Array, Mask, Single, Vector

Factor = tuple[Array, bool]
# A step, how the gradient changed along it, and the inverse of their product.
Pair = tuple[Array, Array, Vector]

_BLOCK_BYTES = 8 * 2**20
_HALVINGS = 30
# Tolerances of the squared Newton decrement, about twice the remaining excess loss: far
# below what matters statistically, and no smaller than rounding in sums over many rows.
_TOLERANCE = 1e-5
_TOLERANCE_PER_ROW = 1e-8
# Share of the predicted decrease that a step must achieve (Armijo's condition), and share
# of the loss that is rounding.
_ARMIJO = 1e-4
_ROUNDING = 1e-8
# If a step leaves more than this share of the decrement, the Hessian is factorised anew: a
# factor from where all rows had curvature makes steps too short where few have.
_SLOW = 0.9
_N_PAIRS = 10
# Rows that a Hessian is estimated from, in all or per feature, whichever is more. Gradients
# use all rows, so that an inexact Hessian costs iterations, not accuracy.
_HESSIAN_ROWS = 8192
_HESSIAN_ROWS_PER_FEATURE = 8
# Jitter for the diagonal of a Hessian, as shares of its largest entry, tried in turn until
# it is positive definite: single precision can make eigenvalues negative.
_ROUNDINGS = (0.0, 1e-6, 1e-4, 1e-2)
# Curvature along a step below this is treated as zero.
_FLATTEST = 1e-12
# Probabilities are clipped here, or one wrong label would decide a log-likelihood.
_LEAST_PROBABILITY = 1e-6


class Logistic:
    """The log-loss of a target between 0 and 1."""

    def slopes(self, target: Array, score: Array) -> tuple[Array, Array]:
        """Return the loss and its derivative."""
        return -log_expit(score) + (1.0 - target) * score, expit(score) - target

    def curvature(self, target: Vector, score: Vector) -> Vector:
        """Return the second derivative."""
        del target
        chance: Vector = expit(score)
        return chance * (1.0 - chance)


class SquaredHinge:
    """The squared hinge loss, averaged over both classes by a target between 0 and 1."""

    def slopes(self, target: Array, score: Array) -> tuple[Array, Array]:
        """Return the loss and its derivative."""
        short, beyond = np.maximum(1.0 - score, 0.0), np.maximum(1.0 + score, 0.0)
        loss = target * short**2 + (1.0 - target) * beyond**2
        return loss, 2.0 * ((1.0 - target) * beyond - target * short)

    def curvature(self, target: Vector, score: Vector) -> Vector:
        """Return the second derivative."""
        return 2.0 * (target * (score < 1.0) + (1.0 - target) * (score > -1.0))


def log_likelihood(chance: Vector, labelled: Mask) -> Vector:
    """Return the log-likelihood of each label; no chance is 0 or 1."""
    p = np.clip(chance, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY)
    return xlogy(labelled, p) + xlogy(~labelled, 1.0 - p)


def bounded(log_odds: Vector, margin: float) -> Vector:
    """Clip log-odds so that probabilities stay ``margin`` away from 0 and 1."""
    most = float(logit(1.0 - margin))
    return np.clip(log_odds, -most, most)


def fit_few(
    columns: Array,
    target: Vector,
    weight: Vector,
    *,
    start: Vector,
    ridge: tuple[float, float] = (0.0, 0.0),
) -> tuple[Vector, float]:
    """Return coefficients of a few columns, none below 0, and the intercept.

    They minimise the log-loss. Two ridges pull coefficients and intercept, which is last,
    towards ``start``.
    """
    pull = np.append(np.full(columns.shape[1], ridge[0]), ridge[1])

    def penalised(parameters: Vector) -> tuple[float, Vector]:
        odds = columns @ parameters[:-1] + parameters[-1]
        losses, slope = Logistic().slopes(target, odds)
        slope = weight * slope
        away = parameters - start
        value = weight @ losses
        value += 0.5 * ridge[0] * (away[:-1] @ away[:-1])
        value += 0.5 * ridge[1] * away[-1] ** 2
        return float(value), np.append(columns.T @ slope, slope.sum()) + pull * away

    bounds = [(0.0, None)] * columns.shape[1] + [(None, None)]
    found = minimize(penalised, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return found[:-1], float(found[-1])


@dataclass(frozen=True, slots=True)
class LinearFits:
    """Models in columns: the first on all rows, the others on the rows of each fold."""

    coef: Array
    intercept: Vector
    n_iter: int
    converged: bool


def fit_penalised(
    features: Single,
    target: Vector,
    loss: Logistic | SquaredHinge,
    penalty: float,
    *,
    weight: Vector | None = None,
    trained: Mask | None = None,
    start: Vector | None = None,
    max_iter: int = 100,
) -> LinearFits:
    """Minimise a ridge-penalised sum of losses, over all rows and over each fold's rows.

    ``trained`` has a column for each fold, true for the rows that its model is fitted on.
    """
    n_rows, n_features = features.shape
    weight = np.ones(n_rows) if weight is None else weight
    every_row = np.ones((n_rows, 1), dtype=bool)
    whole = _Problem(features, target, weight, every_row, loss, penalty)
    first = np.zeros(n_features + 1) if start is None else start
    found, n_iter, converged = _descend(whole, first[:, None], [None], max_iter)
    if trained is not None:
        folds = replace(whole, trained=trained)
        factors = folds.factors_of_folds(found[:, 0])
        begin = np.repeat(found, len(factors), axis=1)
        on_folds, _, also_converged = _descend(folds, begin, factors, max_iter)
        found, converged = np.hstack([found, on_folds]), converged and also_converged
    return LinearFits(found[:-1], found[-1], n_iter, converged)


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Models to fit, a column each of ``trained`` and parameters (intercept last)."""

    features: Single
    target: Vector
    weight: Vector
    trained: Mask
    loss: Logistic | SquaredHinge
    penalty: float

    def value_and_gradient(self, parameters: Array) -> tuple[Vector, Array]:
        """Return losses and gradients of all models, in one pass over the rows."""
        coef = parameters[:-1]
        value = 0.5 * self.penalty * np.einsum("ij,ij->j", coef, coef)
        slope = np.zeros_like(parameters)
        slope[:-1] = self.penalty * coef
        single = coef.astype(np.float32)
        n, r = self.features.shape
        for rows in gen_batches(n, max(256, _BLOCK_BYTES // (4 * r))):
            block = self.features[rows]
            score = (block @ single).astype(np.float64) + parameters[-1]
            losses, by_score = self.loss.slopes(self.target[rows, None], score)
            counts = self.weight[rows, None] * self.trained[rows]
            value += np.einsum("ij,ij->j", losses, counts)
            by_score *= counts
            slope[:-1] += block.T @ by_score.astype(np.float32)
            slope[-1] += by_score.sum(axis=0)
        return value, slope

    def _hessian(self, parameters: Vector, rows: NDArray[np.intp] | slice) -> Array:
        """Return the lower triangle of the Hessian over some rows, without the penalty."""
        block = self.features[rows]
        score = (block @ parameters[:-1].astype(np.float32)).astype(np.float64)
        curvature = self.loss.curvature(self.target[rows], score + parameters[-1])
        curvature = self.weight[rows] * curvature
        root = np.sqrt(curvature).astype(np.float32)
        r = block.shape[1]
        matrix = np.zeros((r + 1, r + 1))
        matrix[:r, :r] = ssyrk(1.0, (block * root[:, None]).T, lower=1)
        matrix[r, :r] = curvature.astype(np.float32) @ block
        matrix[r, r] = curvature.sum()
        return matrix

    def _factorise(self, matrix: Array, rounding: float = 0.0) -> Factor:
        diagonal = np.full(matrix.shape[0], self.penalty)
        diagonal[-1] = 0.0
        # Where no row has curvature the matrix is 0, and jitter is all there is.
        diagonal += rounding * max(1.0, float(matrix.diagonal().max()))
        matrix = matrix.copy()
        matrix[np.diag_indices_from(matrix)] += diagonal
        return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

    def factor(self, parameters: Vector, model: int) -> Factor:
        """Factorise the Hessian of a model, with jitter if rounding made it indefinite."""
        rows = np.flatnonzero(self.trained[:, model])
        n = rows.size
        enough = max(_HESSIAN_ROWS, _HESSIAN_ROWS_PER_FEATURE * self.features.shape[1])
        if n > 2 * enough:
            rows = rows[spread_rows(n, enough)]
        some = slice(None) if rows.size == self.target.size else rows
        hessian = (n / rows.size) * self._hessian(parameters, some)
        for rounding in _ROUNDINGS:
            with suppress(LinAlgError):
                return self._factorise(hessian, rounding)
        msg = "The Hessian is not positive definite."
        raise LinAlgError(msg)

    def factors_of_folds(self, parameters: Vector) -> list[Factor | None]:
        """Factorise the Hessian of all rows less those that each fold leaves out."""
        hessian = self._hessian(parameters, slice(None))
        factors: list[Factor | None] = [None] * self.trained.shape[1]
        for k, trained in enumerate(self.trained.T):
            less = self._hessian(parameters, np.flatnonzero(~trained))
            with suppress(LinAlgError):
                factors[k] = self._factorise(hessian - less)
        return factors


def _descend(
    problem: _Problem, parameters: Array, factors: list[Factor | None], max_iter: int
) -> tuple[Array, int, bool]:
    """Return the minimisers, the number of steps, and whether all converged."""
    tolerance = max(_TOLERANCE, _TOLERANCE_PER_ROW * problem.target.size)
    decrement = np.full(len(factors), np.inf)
    pairs: list[Pair] = []
    value, gradient = problem.value_and_gradient(parameters)
    going = np.ones(len(factors), dtype=bool)
    n_steps = 0
    while going.any() and n_steps < max_iter:
        n_steps += 1
        for j in np.flatnonzero(going):
            if factors[j] is None:
                factors[j] = problem.factor(parameters[:, j], int(j))
                for _, _, inverse in pairs:
                    inverse[j] = 0.0
        step = _corrected_step(gradient, factors, pairs)
        before, decrement = decrement, -np.einsum("ij,ij->j", gradient, step)
        going &= decrement > tolerance
        if not going.any():
            break
        size = going.astype(np.float64)
        for _ in range(_HALVINGS):
            moved = parameters + size * step
            moved_value, moved_gradient = problem.value_and_gradient(moved)
            enough = value - _ARMIJO * size * decrement + _ROUNDING * np.abs(value)
            poor = going & ~(moved_value <= enough)
            if not poor.any():
                break
            size[poor] *= 0.5
        for j in np.flatnonzero(going & (decrement > _SLOW * before)):
            factors[j] = None
        taken, change = moved - parameters, moved_gradient - gradient
        product = np.einsum("ij,ij->j", taken, change)
        inverse = np.zeros_like(product)
        np.divide(1.0, product, out=inverse, where=product > _FLATTEST)
        pairs = [*pairs[1 - _N_PAIRS :], (taken, change, inverse)]
        parameters, value, gradient = moved, moved_value, moved_gradient
    return parameters, n_steps, not going.any()


def _corrected_step(
    gradient: Array, factors: list[Factor | None], pairs: list[Pair]
) -> Array:
    """Return the L-BFGS direction, with the inverse Hessian from the factors to start."""
    step = -gradient
    shares = []
    for taken, change, inverse in reversed(pairs):
        shares.append(inverse * np.einsum("ij,ij->j", taken, step))
        step = step - shares[-1] * change
    for j, factor in enumerate(factors):
        step[:, j] = cho_solve(factor, step[:, j], check_finite=False)
    for (taken, change, inverse), share in zip(pairs, reversed(shares), strict=True):
        back = inverse * np.einsum("ij,ij->j", change, step)
        step = step + (share - back) * taken
    return step
