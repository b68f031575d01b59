"""Linear models by Newton's method, fitted on all rows and on every fold together.

The Hessian of the model on all rows, less that of the rows a fold leaves out, is nearly
the Hessian of the fold's model where that begins: at the solution for all rows. So one
factor for each fold and a few gradients, taken for all folds in one pass over the rows,
replace a fit for each.

Of very many rows, some are enough for a Hessian: a step then gains a digit instead of
two, for a small part of the price. Gradients come from all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import ssyrk
from scipy.special import expit, log_expit
from sklearn.utils import gen_batches

from probgap._core.types import Array, Mask, Vector

Features = NDArray[np.float32]
Models = tuple[int | None, ...]  # each named by its fold; None is the one on all rows
Factor = tuple[Array, bool]

_BLOCK_BYTES = 8 * 2**20
_HALVINGS = 30
# The squared Newton decrement is twice what is left to gain, in units of the loss. This
# much is far below what data can tell; sums over many rows are not more exact.
_TOLERANCE = 1e-5
_TOLERANCE_PER_ROW = 1e-8
# Share of the promised fall of the loss that a step must bring, and of the loss that is
# rounding.
_ARMIJO = 1e-4
_ROUNDING = 1e-8
# Steps that leave more than this of the decrement ask for a new factor, cut short or
# not: one made where all rows counted makes steps too short where few do.
_SLOW = 0.9
# Gradients that are remembered.
_MEMORY = 10
# A Hessian takes so many rows, or so many for each feature if that is more.
_HESSIAN_ROWS = 8192
_HESSIAN_ROWS_PER_FEATURE = 8
# What single precision can take off an eigenvalue of a Hessian, as a share of the largest
# entry: nothing, as a rule, and at worst; and a change of the gradient along a step that
# is none.
_ROUNDINGS = (0.0, 1e-6, 1e-4, 1e-2)
_FLATTEST = 1e-12


class Loss(Protocol):
    """A convex loss of a row's score; its target lies between 0 and 1."""

    def slopes(self, target: Array, score: Array) -> tuple[Array, Array]:
        """Return the loss and its derivative."""
        ...

    def curvature(self, target: Vector, score: Vector) -> Vector:
        """Return the second derivative."""
        ...


class Logistic:
    """Minus the log-likelihood of the target."""

    def slopes(self, target: Array, score: Array) -> tuple[Array, Array]:
        return -log_expit(score) + (1.0 - target) * score, expit(score) - target

    def curvature(self, target: Vector, score: Vector) -> Vector:
        del target
        chance: Vector = expit(score)
        return chance * (1.0 - chance)


class SquaredHinge:
    """The loss of a support vector machine, for both classes as the target says.

    The square of how far a score falls short of 1, times the target, and of how far it
    exceeds -1, times the rest.
    """

    def slopes(self, target: Array, score: Array) -> tuple[Array, Array]:
        short, beyond = np.maximum(1.0 - score, 0.0), np.maximum(1.0 + score, 0.0)
        loss = target * short**2 + (1.0 - target) * beyond**2
        return loss, 2.0 * ((1.0 - target) * beyond - target * short)

    def curvature(self, target: Vector, score: Vector) -> Vector:
        return 2.0 * (target * (score < 1.0) + (1.0 - target) * (score > -1.0))


@dataclass(frozen=True, slots=True)
class LinearFits:
    """Models fitted on all rows (first) and on each fold, with the solver's evidence."""

    coef: Array
    intercept: Vector
    decrement: Vector
    n_iter: int
    converged: bool

    def score(self, features: Features, model: int = 0) -> Vector:
        """Return the scores of rows by one of the models."""
        coef = self.coef[:, model].astype(np.float32)
        score: Vector = (features @ coef).astype(np.float64) + self.intercept[model]
        return score


def fit_linear(
    features: Features,
    target: Vector,
    loss: Loss,
    penalty: float,
    *,
    weight: Vector | None = None,
    trained: Mask | None = None,
    start: Vector | None = None,
    max_iter: int = 100,
) -> LinearFits:
    """Minimise a ridge-penalised sum of losses, over all rows and over each fold's rows.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        In single precision.
    target : ndarray of shape (n_rows,)
        What the loss compares scores with, from 0 to 1.
    loss : Loss
        The loss of a row.
    penalty : float
        Factor of half the squared coefficients; the intercept is free.
    weight : ndarray of shape (n_rows,), optional
        What each row counts for.
    trained : ndarray of shape (n_rows, n_folds), optional
        The rows that the model of each fold is fitted on.
    start : ndarray of shape (n_features + 1,), optional
        Coefficients and intercept to begin with.
    max_iter : int, default=100
        Most steps on all rows, and again on those of the folds.

    Returns
    -------
    LinearFits
        The models, and how far they may be from the minimum.
    """
    weight = np.ones(target.size) if weight is None else weight
    problem = _Problem(features, target, weight, trained, loss, penalty)
    first = np.zeros(features.shape[1] + 1) if start is None else start
    whole = _descend(problem, first[:, None], (None,), [None], max_iter)
    found = [whole]
    if problem.n_folds:
        # Go on from there to the rows of each fold.
        begin = np.repeat(whole.parameters, problem.n_folds, axis=1)
        factors = problem.fold_factors(whole.parameters[:, 0])
        models = tuple(range(problem.n_folds))
        found.append(_descend(problem, begin, models, factors, max_iter))
    parameters = np.hstack([state.parameters for state in found])
    return LinearFits(
        coef=parameters[:-1],
        intercept=parameters[-1],
        decrement=np.concatenate([state.decrement for state in found]),
        n_iter=whole.steps,
        converged=all(state.converged for state in found),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Rows, their loss and the penalty; parameters are coefficients and intercept."""

    features: Features
    target: Vector
    weight: Vector
    trained: Mask | None
    loss: Loss
    penalty: float

    @property
    def n_folds(self) -> int:
        return 0 if self.trained is None else self.trained.shape[1]

    @property
    def tolerance(self) -> float:
        return max(_TOLERANCE, _TOLERANCE_PER_ROW * self.target.size)

    @property
    def hessian_rows(self) -> int:
        return max(_HESSIAN_ROWS, _HESSIAN_ROWS_PER_FEATURE * self.features.shape[1])

    def value_and_gradient(
        self, parameters: Array, models: Models
    ) -> tuple[Vector, Array]:
        """Go over the rows once, for the models of all columns."""
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
            counts = self.weight[rows, None] * self._trained_on(rows, models)
            value += np.einsum("ij,ij->j", losses, counts)
            by_score *= counts
            slope[:-1] += block.T @ by_score.astype(np.float32)
            slope[-1] += by_score.sum(axis=0)
        return value, slope

    def _trained_on(self, rows: slice, models: Models) -> Mask:
        trained = np.ones((rows.stop - rows.start, len(models)), dtype=bool)
        for column, fold in enumerate(models):
            if fold is not None and self.trained is not None:
                trained[:, column] = self.trained[rows, fold]
        return trained

    def _hessian(self, parameters: Vector, rows: NDArray[np.intp] | slice) -> Array:
        """Return second derivatives of the sum over some rows, without the penalty.

        The lower triangle alone: a Cholesky factorisation reads no more.
        """
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
        # At least as much as that: where no row has any curvature, nothing else is there.
        diagonal += rounding * max(1.0, float(matrix.diagonal().max()))
        matrix = matrix.copy()
        matrix[np.diag_indices_from(matrix)] += diagonal
        return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

    def factor(self, parameters: Vector, fold: int | None) -> Factor:
        """Factorise the Hessian of a model, made definite where rounding spoilt that."""
        rows = np.arange(self.target.size)
        if fold is not None and self.trained is not None:
            rows = np.flatnonzero(self.trained[:, fold])
        n = rows.size
        if n > 2 * self.hessian_rows:
            rows = rows[np.linspace(0, n - 1, self.hessian_rows).astype(np.intp)]
        some = slice(None) if rows.size == self.target.size else rows
        hessian = (n / rows.size) * self._hessian(parameters, some)
        for rounding in _ROUNDINGS[:-1]:
            try:
                return self._factorise(hessian, rounding)
            except LinAlgError:
                continue
        return self._factorise(hessian, _ROUNDINGS[-1])

    def fold_factors(self, parameters: Vector) -> list[Factor | None]:
        """Factorise a Hessian for each fold: that of all less what the fold leaves out."""
        assert self.trained is not None  # or there would be no fold
        if self.target.size > 2 * self.hessian_rows:
            return [self.factor(parameters, None)] * self.n_folds
        whole = self._hessian(parameters, slice(None))
        factors: list[Factor | None] = []
        for trained in self.trained.T:
            less = self._hessian(parameters, np.flatnonzero(~trained))
            try:
                factors.append(self._factorise(whole - less))
            except LinAlgError:
                factors.append(None)
        return factors


@dataclass(slots=True)
class _State:
    parameters: Array
    decrement: Vector
    steps: int
    converged: bool


def _descend(
    problem: _Problem,
    parameters: Array,
    models: Models,
    factors: list[Factor | None],
    max_iter: int,
) -> _State:
    """Go down from given parameters, the models of all columns together.

    Steps are Newton's with the factor at hand, bent by what the last gradients showed
    of how the Hessian has changed since (L-BFGS); a model that gets nowhere by it gets
    a new factor.
    """
    k = parameters.shape[1]
    decrement = np.full(k, np.inf)
    pairs: list[_Pair] = []
    value, gradient = problem.value_and_gradient(parameters, models)
    going = np.ones(k, dtype=bool)
    steps = 0
    while going.any() and steps < max_iter:
        steps += 1
        for j in np.flatnonzero(going):
            if factors[j] is None:
                factors[j] = problem.factor(parameters[:, j], models[j])
                for pair in pairs:
                    pair.inverse[j] = 0.0
        step = _bent_step(gradient, factors, pairs)
        before, decrement = decrement, -np.einsum("ij,ij->j", gradient, step)
        going &= decrement > problem.tolerance
        if not going.any():
            break
        size = going.astype(np.float64)
        for _ in range(_HALVINGS):
            moved = parameters + size * step
            moved_value, moved_gradient = problem.value_and_gradient(moved, models)
            enough = value - _ARMIJO * size * decrement + _ROUNDING * np.abs(value)
            poor = going & ~(moved_value <= enough)
            if not poor.any():
                break
            size[poor] *= 0.5
        for j in np.flatnonzero(going & (decrement > _SLOW * before)):
            factors[j] = None
        pairs = [
            *pairs[1 - _MEMORY :],
            _Pair.of(moved - parameters, moved_gradient - gradient),
        ]
        parameters, value, gradient = moved, moved_value, moved_gradient
    return _State(parameters, decrement, steps, not going.any())


@dataclass(frozen=True, slots=True)
class _Pair:
    """How the gradient changed along a step; ``inverse`` is 0 where that says nothing."""

    step: Array
    change: Array
    inverse: Vector

    @classmethod
    def of(cls, step: Array, change: Array) -> _Pair:
        product = np.einsum("ij,ij->j", step, change)
        inverse = np.zeros_like(product)
        np.divide(1.0, product, out=inverse, where=product > _FLATTEST)
        return cls(step, change, inverse)


def _bent_step(
    gradient: Array, factors: list[Factor | None], pairs: list[_Pair]
) -> Array:
    """Return the step of L-BFGS that begins from factors of the Hessian."""
    step = -gradient
    shares = []
    for pair in reversed(pairs):
        shares.append(pair.inverse * np.einsum("ij,ij->j", pair.step, step))
        step = step - shares[-1] * pair.change
    for j, factor in enumerate(factors):
        step[:, j] = cho_solve(factor, step[:, j], check_finite=False)
    for pair, share in zip(pairs, reversed(shares), strict=True):
        back = pair.inverse * np.einsum("ij,ij->j", pair.change, step)
        step = step + (share - back) * pair.step
    return step
