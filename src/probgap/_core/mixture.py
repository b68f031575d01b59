"""The default's mixture of learners, weighted by held-out log-loss."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.utils import gen_batches

from probgap._core.checks import check_predict_input, check_two_classes
from probgap._core.defaults import DEFAULTS, Defaults
from probgap._core.estimators import SignClassifier
from probgap._core.learners import (
    FittedLearner,
    Learner,
    Task,
    bounded,
    fit_boosting,
    fit_forest,
    fit_kernel,
    fit_linear,
    stratified_folds,
)
from probgap._core.newton import Logistic
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, one_thread
from probgap._core.types import Array, Mask, Matrix, Rows, Vector
from probgap._core.validation import draw_rows, spread_rows
from probgap._core.views import View, apply_view, choose_view

# Most rows, and most values, that are predicted at a time.
_BLOCK_ROWS = 2**15
_BLOCK_VALUES = 2**22
_N_FOLDS = 5  # scikit-learn's default


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """A weighted sum of the log-odds of learners, all with the same view of samples."""

    learners: tuple[Learner, ...]
    weights: Vector
    intercept: float
    view: View | None = None

    @one_thread()
    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        total = np.full(samples.shape[0], self.intercept)
        for rows in _blocks(samples):
            block = apply_view(samples[rows], self.view)
            for learner, weight in zip(self.learners, self.weights, strict=True):
                if weight > 0.0:
                    total[rows] += weight * learner.log_odds(block)
        return total


def _blocks(samples: Matrix) -> Any:
    """Return slices of rows that fit a fixed amount of memory."""
    n_rows, n_columns = samples.shape
    return gen_batches(n_rows, max(1, min(_BLOCK_ROWS, _BLOCK_VALUES // n_columns)))


@one_thread()
def fit_mixture(
    samples: Matrix,
    target: Vector,
    weight: Vector,
    group: Mask,
    seed: int,
    *,
    fold: Rows | None = None,
    n_jobs: int | None = None,
    limits: Defaults = DEFAULTS,
) -> FittedLearner:
    """Fit the four learners of the default, ``n_jobs`` at once, and mix them.

    Beyond ``most_rows`` kernel, linear model and forest are fitted on a sample, and boosting
    on a larger one, of ``most_values``; samples prefer the rows of ``group``. Rows outside
    them are predicted like new ones. ``fold`` is the fold of
    each row; by default folds are stratified by ``group``.
    """
    samples = samples.tocsr() if issparse(samples) else np.asarray(samples)
    # The view is fitted on evenly spaced rows: components fit the rows that they come from
    # best, and would leak the group if the sample preferred it.
    some = spread_rows(target.size, min(limits.most_rows, target.size))
    view = choose_view(samples[some], seed, limits)

    def draw(most: int, n_folds: int) -> tuple[Rows, Task]:
        rows, weights = draw_rows(weight, group, most, seed)
        if fold is None:
            folds = stratified_folds(group[rows], n_folds, seed)
        else:
            folds = fold[rows, None]
        seen = apply_view(samples[rows], view)
        return rows, Task(seen, target[rows], weights, folds, seed, limits)

    few, task = draw(limits.most_rows, _N_FOLDS)
    many, grown, boosted = few, task, task
    if few.size < target.size:
        most = max(limits.most_rows, limits.most_values // task.samples.shape[1])
        many, boosted = draw(most, limits.n_repeats)
        # Bootstrap samples drawn with the sampling weights would hardly contain a row of
        # the scarce group. Without these weights the odds are off by a constant factor,
        # which the intercept of the mixture corrects.
        grown = replace(task, weight=weight[few])
    # The slowest first. Compiled code releases the GIL; each thread needs an OpenMP limit
    # of its own.
    jobs = (
        (fit_kernel, task),
        (fit_boosting, boosted),
        (fit_forest, grown),
        (fit_linear, task),
    )
    kernel, boosting, forest, linear = Parallel(n_jobs, prefer="threads")(
        delayed(one_thread()(fit))(task) for fit, task in jobs
    )
    fitted = [kernel, linear, forest, boosting]
    columns = _held_out(samples, view, fitted, [few, few, few, many], seed)
    columns = bounded(columns, 1.0 / (target.size + 2.0))
    shares, intercept = choose_weights(columns, target, weight)
    mixture = Mixture(tuple(one.learner for one in fitted), shares, intercept, view)
    return FittedLearner(mixture, columns @ shares + intercept)


def _held_out(
    samples: Matrix,
    view: View | None,
    fitted: list[FittedLearner],
    learnt: list[Rows],
    seed: int,
) -> Array:
    """Return held-out log-odds of all rows, a column for each learner."""
    columns = np.empty((samples.shape[0], len(fitted)))
    outside = np.empty(columns.shape, dtype=np.int8)
    rng = np.random.default_rng(seed)
    for j, (one, rows) in enumerate(zip(fitted, learnt, strict=True)):
        outside[:, j] = rng.integers(len(one.partial), size=len(outside))
        columns[rows, j] = one.held_out
        outside[rows, j] = -1
    for rows in _blocks(samples) if (outside >= 0).any() else ():
        block = apply_view(samples[rows], view)
        for j, one in enumerate(fitted):
            for k, learner in enumerate(one.partial):
                others = np.flatnonzero(outside[rows, j] == k)
                if others.size:
                    odds = learner.log_odds(block[others])
                    columns[rows.start + others, j] = odds
    return columns


def choose_weights(
    columns: Array, target: Vector, weight: Vector
) -> tuple[Vector, float]:
    """Return the mixture weights of least held-out log-loss.

    A ridge pulls them towards equal ones, with the strength of one row for each learner.
    """
    n_rows, n_learners = columns.shape
    equal = 1.0 / n_learners
    counts = weight * (n_rows / weight.sum())

    def penalised(parameters: Vector) -> tuple[float, Vector]:
        weights, intercept = parameters[:-1], parameters[-1]
        odds = columns @ weights + intercept
        losses, slope = Logistic().slopes(target, odds)
        slope *= counts
        away = weights - equal
        value = counts @ losses + 0.5 * n_learners * (away @ away)
        value += 0.5 * intercept**2
        by_weights = columns.T @ slope + n_learners * away
        return float(value), np.append(by_weights, slope.sum() + intercept)

    found = minimize(
        penalised,
        np.append(np.full(n_learners, equal), 0.0),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * n_learners + [(None, None)],
    )
    return np.where(found.x[:-1] < 0.01, 0.0, found.x[:-1]), float(found.x[-1])


class MixedClassifier(SignClassifier):
    """A mixture of kernel and linear logistic regression, a forest and boosted trees.

    ``held_out_`` are log-odds of training samples by models that have not seen them.
    """

    mixture_: Mixture
    held_out_: Vector

    def __init__(
        self, *, random_state: RandomStateLike = None, n_jobs: int | None = None
    ) -> None:
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit to labels of two classes."""
        samples, which = check_two_classes(self, X, y)
        weight = np.ones(which.size)
        return self._fit(samples, which.astype(np.float64), weight, which == 1)

    def fit_on_shares(
        self, samples: Matrix, share: Vector, weight: Vector, labelled: Mask
    ) -> Self:
        """Fit to the positive share of each sample; NaN leaves it out."""
        self.classes_, self.n_features_in_ = np.array([0, 1]), samples.shape[1]
        used = np.isfinite(share) & (weight > 0.0)
        if used.all():
            return self._fit(samples, share, weight, labelled)
        self._fit(samples[used], share[used], weight[used], labelled[used])
        held_out = np.empty(share.size)
        held_out[used] = self.held_out_
        held_out[~used] = self.decision_function(samples[~used])
        self.held_out_ = held_out
        return self

    def _fit(self, samples: Matrix, share: Vector, weight: Vector, group: Mask) -> Self:
        seed = draw_seed(as_generator(self.random_state))
        fitted = fit_mixture(samples, share, weight, group, seed, n_jobs=self.n_jobs)
        assert isinstance(fitted.learner, Mixture)
        self.mixture_, self.held_out_ = fitted.learner, fitted.held_out
        return self

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        return self.mixture_.log_odds(samples)

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Return the probabilities of the two classes."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1.0 - positive, positive])
