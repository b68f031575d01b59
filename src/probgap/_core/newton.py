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
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import ssyrk
from scipy.special import expit, log_expit
from sklearn.utils import gen_batches

from probgap._core.types import Array, Mask, Vector

Features = NDArray[np.float32]
Models = tuple[int | None, ...]
Factor = tuple[Array, bool]

_BLOCK_BYTES = 8 * 2**20
_MAX_STEPS = 100
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
# entry: as a rule, and at worst; and a change of the gradient along a step that is none.
_ROUNDINGS = (1e-6, 1e-4, 1e-2)
_FLATTEST = 1e-12


# --- losses of a row ------------------------------------------------------------------


class RowLoss(Protocol):
    """A loss of each row, given its score and a level that all rows share.

    ``target`` is what the rows are to be: one column, beside one column of scores for
    each model.
    """

    def slopes(
        self, target: Array, score: Array, level: Array
    ) -> tuple[Array, Array, Array | None]:
        """Give it, and its derivatives by the score and by the level, if it has one."""
        ...

    def curvatures(
        self, target: Vector, score: Vector, level: float, *, safe: bool
    ) -> tuple[Vector, Vector, Vector]:
        """Give second derivatives: by the score, by both, by the level.

        ``safe`` asks for ones that make a positive semidefinite matrix.
        """
        ...


class Logistic:
    """Minus the log-likelihood of a target between 0 and 1; knows no level."""

    def slopes(
        self, target: Array, score: Array, level: Array
    ) -> tuple[Array, Array, None]:
        del level
        return -log_expit(score) + (1.0 - target) * score, expit(score) - target, None

    def curvatures(
        self, target: Array, score: Array, level: float, *, safe: bool
    ) -> tuple[Array, Array, Array]:
        del target, level, safe
        chance = expit(score)
        curvature = chance * (1.0 - chance)
        return curvature, np.zeros_like(curvature), np.zeros_like(curvature)


class SquaredHinge:
    """The loss of a support vector machine; a target between 0 and 1 is part of each.

    The square of how far a score falls short of 1, times the target, and of how far it
    exceeds -1, times the rest.
    """

    def slopes(
        self, target: Array, score: Array, level: Array
    ) -> tuple[Array, Array, None]:
        del level
        short, beyond = np.maximum(1.0 - score, 0.0), np.maximum(1.0 + score, 0.0)
        loss = target * short**2 + (1.0 - target) * beyond**2
        return loss, 2.0 * ((1.0 - target) * beyond - target * short), None

    def curvatures(
        self, target: Array, score: Array, level: float, *, safe: bool
    ) -> tuple[Array, Array, Array]:
        del level, safe
        curvature = 2.0 * (target * (score < 1.0) + (1.0 - target) * (score > -1.0))
        return curvature, np.zeros_like(curvature), np.zeros_like(curvature)


# --- rows -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Some rows: features, what they are to be, what they count for, and folds.

    ``trained`` says which rows the model of each fold is fitted on.
    """

    features: NDArray[Any]
    target: Vector
    weight: Vector
    trained: Mask | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """The sum of losses over the rows of a block, and its derivatives, for some models.

    ``models`` names each by the fold that it is fitted for; None is the one for all rows.
    """

    loss: RowLoss
    parameters: Array
    models: Models

    def __call__(self, block: RowBlock) -> tuple[Vector, Array]:
        """Go over the rows once, for the models of all columns."""
        coef = self.parameters[:-2].astype(block.features.dtype)
        intercept, level = self.parameters[-2], self.parameters[-1]
        score = (block.features @ coef).astype(np.float64) + intercept
        counts = block.weight[:, None] * self._trained(block)
        losses, by_score, by_level = self.loss.slopes(
            block.target[:, None], score, level
        )
        value = np.einsum("ij,ij->j", losses, counts)
        slope = np.zeros_like(self.parameters)
        by_score *= counts
        slope[:-2] = block.features.T @ by_score.astype(block.features.dtype)
        slope[-2] = by_score.sum(axis=0)
        if by_level is not None:
            slope[-1] = np.einsum("ij,ij->j", by_level, counts)
        return value, slope

    def _trained(self, block: RowBlock) -> Mask:
        trained = np.ones((block.target.size, len(self.models)), dtype=bool)
        for column, fold in enumerate(self.models):
            if fold is not None and block.trained is not None:
                trained[:, column] = block.trained[:, fold]
        return trained


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """Rows whose features are held in memory.

    Attributes
    ----------
    features : ndarray of shape (n_rows, n_features)
        In single precision.
    target : ndarray of shape (n_rows,)
        What the loss compares scores with.
    weight : ndarray of shape (n_rows,) or None
        What each row counts for; None for one each.
    trained : ndarray of shape (n_rows, n_folds) or None
        The rows that the model of each fold is fitted on.
    """

    features: Features
    target: Vector
    weight: Vector | None = None
    trained: Mask | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.features.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.features.shape[1]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return 0 if self.trained is None else self.trained.shape[1]

    def add_slopes(self, slopes: Slopes, value: Vector, slope: Array) -> None:
        """Add value and derivatives of the sum of losses over all rows."""
        n, r = self.features.shape
        for rows in gen_batches(n, max(256, _BLOCK_BYTES // (4 * r))):
            block_value, block_slope = slopes(self.block(rows))
            value += block_value
            slope += block_slope

    def spread(self, fold: int | None, most: int) -> tuple[RowBlock, int]:
        """Return the rows a fold's model is fitted on, and their number.

        If there are more than twice ``most`` of them, so many, spread evenly.
        """
        if fold is None or self.trained is None:
            rows = np.arange(self.n_rows)
        else:
            rows = np.flatnonzero(self.trained[:, fold])
        n = rows.size
        if n > 2 * most:
            rows = rows[np.linspace(0, n - 1, most).astype(np.intp)]
        some = slice(None) if rows.size == self.n_rows else rows
        return self.block(some), n

    def left_out(self, fold: int) -> RowBlock:
        """Return the rows that a fold's model is not fitted on."""
        assert self.trained is not None  # or there would be no fold
        return self.block(np.flatnonzero(~self.trained[:, fold]))

    def block(self, rows: NDArray[np.intp] | slice) -> RowBlock:
        """Give some of the rows."""
        features = self.features[rows]
        return RowBlock(
            features,
            self.target[rows],
            np.ones(features.shape[0]) if self.weight is None else self.weight[rows],
            None if self.trained is None else self.trained[rows],
        )


# --- the solver -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ridge:
    """Half the squared coefficients times ``coef``, and a pull on the level.

    ``level`` is where the level is pulled to, with strength ``pull``.
    """

    coef: float
    level: float = 0.0
    pull: float = 1.0


@dataclass(frozen=True, slots=True)
class LinearFits:
    """Models fitted on all rows (first) and on each fold, with the solver's evidence."""

    coef: Array
    intercept: Vector
    level: Vector
    decrement: Vector
    n_iter: int
    converged: bool

    def score(self, features: Features, model: int = 0) -> Vector:
        """Score rows by one of the models."""
        coef = self.coef[:, model].astype(np.float32)
        score: Vector = (features @ coef).astype(np.float64) + self.intercept[model]
        return score


def fit_linear(
    features: Features,
    target: Vector,
    loss: RowLoss,
    ridge: Ridge,
    *,
    weight: Vector | None = None,
    trained: Mask | None = None,
    start: Vector | None = None,
) -> LinearFits:
    """Fit to rows in memory: see :class:`HeldRows` and :func:`fit_rows`."""
    rows = HeldRows(features, target, weight, trained)
    return fit_rows(rows, loss, ridge, start=start)


def fit_rows(
    rows: HeldRows, loss: RowLoss, ridge: Ridge, *, start: Vector | None = None
) -> LinearFits:
    """Minimise a penalised sum of losses, over all rows and over each fold's rows.

    Parameters
    ----------
    rows : HeldRows
        What to sum over, in which folds.
    loss : RowLoss
        The loss of a row.
    ridge : Ridge
        The penalty.
    start : ndarray of shape (n_features + 2,), optional
        Coefficients, intercept and level to begin with.

    Returns
    -------
    LinearFits
        The models, and how far they may be from the minimum.
    """
    r = rows.n_features
    problem = _Problem(rows, loss, ridge)
    first = np.append(np.zeros(r + 1), ridge.level) if start is None else start
    found = _one_by_one(problem, first)
    parameters = np.hstack([state.parameters for state in found])
    return LinearFits(
        coef=parameters[:r],
        intercept=parameters[r],
        level=parameters[r + 1],
        decrement=np.concatenate([state.decrement for state in found]),
        n_iter=found[0].steps,
        converged=all(state.converged for state in found),
    )


def _one_by_one(problem: _Problem, first: Vector) -> list[_State]:
    """Fit to all rows, and go on from there to the rows of each fold."""
    whole = _descend(problem, first[:, None], (None,), [None])
    n_folds = problem.rows.n_folds
    if n_folds == 0:
        return [whole]
    begin = np.repeat(whole.parameters, n_folds, axis=1)
    factors = problem.fold_factors(whole.parameters[:, 0])
    return [whole, _descend(problem, begin, tuple(range(n_folds)), factors)]


@dataclass(slots=True)
class _State:
    parameters: Array
    decrement: Vector
    steps: int
    converged: bool


@dataclass(slots=True)
class _Problem:
    rows: HeldRows
    loss: RowLoss
    ridge: Ridge

    @property
    def tolerance(self) -> float:
        return max(_TOLERANCE, _TOLERANCE_PER_ROW * self.rows.n_rows)

    @property
    def hessian_rows(self) -> int:
        return max(_HESSIAN_ROWS, _HESSIAN_ROWS_PER_FEATURE * self.rows.n_features)

    def value_and_gradient(
        self, parameters: Array, models: Models
    ) -> tuple[Vector, Array]:
        """Go over the rows once, for the models of all columns."""
        value, slope = self._penalty(parameters)
        self.rows.add_slopes(Slopes(self.loss, parameters, models), value, slope)
        return value, slope

    def _penalty(self, parameters: Array) -> tuple[Vector, Array]:
        coef, off = parameters[:-2], parameters[-1] - self.ridge.level
        value = 0.5 * self.ridge.coef * np.einsum("ij,ij->j", coef, coef)
        slope = np.zeros_like(parameters)
        slope[:-2] = self.ridge.coef * coef
        slope[-1] = self.ridge.pull * off
        return value + 0.5 * self.ridge.pull * off**2, slope

    def _hessian(self, parameters: Vector, rows: RowBlock, *, safe: bool) -> Array:
        """Second derivatives of the sum over some rows, without the penalty."""
        block = rows.features
        score = (block @ parameters[:-2].astype(np.float32)).astype(np.float64)
        curvatures = self.loss.curvatures(
            rows.target, score + parameters[-2], float(parameters[-1]), safe=safe
        )
        by_score, by_both, by_level = (rows.weight * c for c in curvatures)
        r = block.shape[1]
        matrix = np.zeros((r + 2, r + 2))
        matrix[:r, :r] = _weighted_gram(block, by_score)
        # The lower triangle is all that a Cholesky factorisation reads.
        matrix[r, :r] = by_score.astype(np.float32) @ block
        matrix[r + 1, :r] = by_both.astype(np.float32) @ block
        matrix[r, r] = by_score.sum()
        matrix[r + 1, r] = by_both.sum()
        matrix[r + 1, r + 1] = by_level.sum()
        return matrix

    def _factorise(self, matrix: Array, *, rounding: float = 0.0) -> Factor:
        diagonal = np.full(matrix.shape[0], self.ridge.coef)
        diagonal[-2:] = 0.0, self.ridge.pull
        # At least as much as that: where no row has any curvature, nothing else is there.
        diagonal += rounding * max(1.0, float(matrix.diagonal().max()))
        matrix = matrix.copy()
        matrix[np.diag_indices_from(matrix)] += diagonal
        return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

    def factor(self, parameters: Vector, fold: int | None) -> Factor:
        """Factorise the Hessian of a model: the true one, or one that is definite."""
        some, n = self.rows.spread(fold, self.hessian_rows)
        scale = n / some.target.size
        try:
            return self._factorise(scale * self._hessian(parameters, some, safe=False))
        except LinAlgError:
            safe = scale * self._hessian(parameters, some, safe=True)
        for rounding in _ROUNDINGS[:-1]:
            try:
                return self._factorise(safe, rounding=rounding)
            except LinAlgError:
                continue
        return self._factorise(safe, rounding=_ROUNDINGS[-1])

    def fold_factors(self, parameters: Vector) -> list[Factor | None]:
        """Factorise a Hessian for each fold: that of all less what the fold leaves out."""
        n_folds = self.rows.n_folds
        if self.rows.n_rows > 2 * self.hessian_rows:
            return [self.factor(parameters, None)] * n_folds
        everything, _ = self.rows.spread(None, self.hessian_rows)
        whole = self._hessian(parameters, everything, safe=False)
        factors: list[Factor | None] = []
        for fold in range(n_folds):
            less = self._hessian(parameters, self.rows.left_out(fold), safe=False)
            try:
                factors.append(self._factorise(whole - less))
            except LinAlgError:
                factors.append(None)
        return factors


def _weighted_gram(block: Features, weight: Vector) -> Array:
    """Give the lower triangle of ``block.T @ diag(weight) @ block``."""
    gram = _gram(block, np.maximum(weight, 0.0))
    below = np.flatnonzero(weight < 0.0)
    if below.size:
        gram -= _gram(block[below], -weight[below])
    return gram


def _gram(block: Features, weight: Vector) -> Array:
    root = np.sqrt(weight).astype(np.float32)
    gram: Array = ssyrk(1.0, (block * root[:, None]).T, lower=1).astype(np.float64)
    return gram


def _descend(
    problem: _Problem, parameters: Array, models: Models, factors: list[Factor | None]
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
    while going.any() and steps < _MAX_STEPS:
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
    """Give the step of L-BFGS that begins from factors of the Hessian."""
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
