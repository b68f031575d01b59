"""Learners of a target between 0 and 1, and their mixture by held-out log-loss.

Each learner is fitted on soft targets (an observed label, or the probability of being
positive) and predicts its training rows by models that have not seen them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import expit, log_expit, logit
from sklearn.utils import gen_batches

from probgap._core.features import KernelFeatures
from probgap._core.kernels import Matrix
from probgap._core.losses import Logistic
from probgap._core.newton import LinearFits, Ridge, fit_rows
from probgap._core.rows import HeldRows

Vector = NDArray[np.float64]
Folds = NDArray[np.intp]

# Held-out probabilities stay this far from 0 and 1: a single row must not decide.
_MARGIN = 1e-4
_MOST_LOG_ODDS = float(logit(1.0 - _MARGIN))
_BLOCK_ROWS = 2**15


class Learner(Protocol):
    """A fitted learner."""

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A learner, and what it predicts for its training rows without having seen them."""

    learner: Learner
    held_out: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Rows to learn from, with soft targets, weights and folds.

    ``fold`` has a column for each repetition of cross-validation.
    """

    samples: Matrix
    target: Vector
    weight: Vector
    fold: Folds
    seed: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.target.size

    @property
    def frequency(self) -> float:
        """Weighted mean of the targets."""
        return float(np.average(self.target, weights=self.weight))


def draw_folds(group: NDArray[Any], n_folds: int, n_repeats: int, seed: int) -> Folds:
    """Assign rows to folds, each group evenly, in ``n_repeats`` different ways."""
    rng = np.random.default_rng(seed)
    fold = np.empty((group.size, n_repeats), dtype=np.intp)
    for repeat in range(n_repeats):
        for value in np.unique(group):
            rows = np.flatnonzero(group == value)
            first = rng.integers(n_folds)
            fold[rng.permutation(rows), repeat] = (
                first + np.arange(rows.size)
            ) % n_folds
    return fold


def soft_log_loss(target: Vector, log_odds: Vector, weight: Vector) -> float:
    """Return the mean cross-entropy of soft targets."""
    losses = -log_expit(log_odds) + (1.0 - target) * log_odds
    return float(np.average(losses, weights=weight))


# --- linear models, on kernel features or on the columns themselves -------------------


def column_scale(samples: Matrix) -> Vector:
    """Return the standard deviation of each column, 1 where it is constant."""
    if issparse(samples):
        mean = np.asarray(samples.mean(axis=0)).ravel()
        square = np.asarray(samples.multiply(samples).mean(axis=0)).ravel()
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    else:
        deviation = samples.std(axis=0, dtype=np.float64)
    return np.where(deviation > 0.0, deviation, 1.0)


def scaled(samples: Matrix, scale: Vector) -> Matrix:
    """Divide each column by its scale."""
    if issparse(samples):
        return samples.multiply(1.0 / scale).tocsr()
    return samples / scale


@dataclass(frozen=True, slots=True, eq=False)
class KernelLogistic:
    """Logistic regression on Nystroem features of an RBF kernel."""

    features: KernelFeatures
    scale: Vector
    coef: Vector
    intercept: float

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        score = np.empty(samples.shape[0])
        for rows in gen_batches(samples.shape[0], _BLOCK_ROWS):
            score[rows] = self.features.score(
                scaled(samples[rows], self.scale), self.coef
            )
        return score + self.intercept


@dataclass(frozen=True, slots=True, eq=False)
class LinearLogistic:
    """Logistic regression on the columns."""

    coef: Vector
    intercept: float

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        return np.asarray(samples @ self.coef, dtype=np.float64) + self.intercept


def fit_kernel(
    task: Task,
    *,
    penalties: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0, 1000.0),
    n_landmarks: int = 300,
) -> Fitted:
    """Fit kernel logistic regression; the penalty is chosen by held-out log-loss."""
    scale = column_scale(task.samples)
    standard = scaled(task.samples, scale)
    gamma = 1.0 / task.samples.shape[1]
    features = KernelFeatures.fit(standard, n_landmarks, gamma, task.seed)
    fits, held_out = _choose_penalty(features.transform(standard), task, penalties)
    return Fitted(
        KernelLogistic(features, scale, fits.coef[:, 0], float(fits.intercept[0])),
        held_out,
    )


def fit_linear(
    task: Task, *, penalties: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0)
) -> Fitted:
    """Fit logistic regression; the penalty is chosen by held-out log-loss."""
    scale = column_scale(task.samples)
    mean = np.asarray(task.samples.mean(axis=0)).ravel() / scale
    columns = scaled(task.samples, scale) - mean
    fits, held_out = _choose_penalty(columns.astype(np.float32), task, penalties)
    coef = fits.coef[:, 0]
    intercept = float(fits.intercept[0] - mean @ coef)
    return Fitted(LinearLogistic(coef / scale, intercept), held_out)


def _choose_penalty(
    features: NDArray[np.float32], task: Task, penalties: tuple[float, ...]
) -> tuple[LinearFits, Vector]:
    """Fit for growing C, as long as held-out log-loss falls."""
    n_folds = int(task.fold.max()) + 1
    trained = task.fold[:, :, None] != np.arange(n_folds)
    rows = HeldRows(
        features, task.target, task.weight, trained.reshape(task.n_rows, -1)
    )
    start, best, least = None, None, np.inf
    for penalty in penalties:
        fits = fit_rows(rows, Logistic(), Ridge(1.0 / penalty), start=start)
        start = np.concatenate([fits.coef[:, 0], fits.intercept[:1], fits.level[:1]])
        held_out = _held_out(features, fits, task.fold, n_folds)
        loss = soft_log_loss(task.target, held_out, task.weight)
        if best is None or loss < least:
            best, least = (fits, held_out), loss
        else:
            break
    assert best is not None  # there is a penalty to try
    return best


def _held_out(
    features: NDArray[np.float32], fits: LinearFits, fold: Folds, n_folds: int
) -> Vector:
    """Average over repetitions what the models of the other folds predict."""
    each = features @ fits.coef[:, 1:].astype(np.float32) + fits.intercept[1:]
    columns = fold + n_folds * np.arange(fold.shape[1])
    found = np.take_along_axis(each, columns, axis=1).mean(axis=1)
    return np.clip(found, -_MOST_LOG_ODDS, _MOST_LOG_ODDS)


# --- trees -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Extremely randomised trees, shrunk a little towards the mean of the targets."""

    trees: Any
    frequency: float

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        return _shrunk(self.trees.predict(samples), self.frequency, len(self.trees))


def fit_forest(task: Task, *, n_trees: int = 100, smallest_leaf: int = 3) -> Fitted:
    """Grow trees on bootstrap samples, so that each row has trees that never saw it."""
    from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 (slow to import)

    trees = ExtraTreesRegressor(
        n_trees,
        min_samples_leaf=smallest_leaf,
        max_features="sqrt",
        bootstrap=True,
        oob_score=lambda *_: 0.0,
        n_jobs=1,
        random_state=task.seed,
    )
    trees.fit(task.samples, task.target, sample_weight=task.weight)
    held_out = _shrunk(trees.oob_prediction_, task.frequency, 0.37 * n_trees)
    trees.oob_score = False
    return Fitted(Forest(trees, task.frequency), held_out)


def _shrunk(share: Vector, frequency: float, strength: float) -> Vector:
    """Return log-odds of shares that count for ``strength`` rows beside one at random."""
    drawn = (strength * share + frequency) / (strength + 1.0)
    odds: Vector = logit(np.clip(drawn, _MARGIN, 1.0 - _MARGIN))
    return odds


@dataclass(frozen=True, slots=True, eq=False)
class Boosting:
    """The mean of gradient boosted trees, each fitted on all folds but one."""

    models: tuple[Any, ...]

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        total = sum(_raw(model, samples) for model in self.models)
        return np.asarray(total / len(self.models), dtype=np.float64)


def _raw(model: Any, samples: Matrix) -> Vector:
    chance = model.predict(samples)
    return np.clip(
        logit(np.clip(chance, 1e-9, 1.0 - 1e-9)), -_MOST_LOG_ODDS, _MOST_LOG_ODDS
    )


def fit_boosting(
    task: Task,
    *,
    n_rounds: int = 40,
    learning_rate: float = 0.15,
    n_leaves: int = 10,
    smallest_leaf: int = 20,
) -> Fitted:
    """Fit gradient boosting with the log-loss of soft targets, a model for each fold."""
    from sklearn._loss.loss import HalfBinomialLoss  # noqa: PLC0415
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415

    fold = task.fold[:, 0]
    held_out = np.empty(fold.size)
    models = []
    equal = bool((task.weight == task.weight[0]).all())
    for k in range(int(fold.max()) + 1):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        model = HistGradientBoostingRegressor(
            loss=HalfBinomialLoss(),
            learning_rate=learning_rate,
            max_iter=n_rounds,
            max_leaf_nodes=n_leaves,
            min_samples_leaf=smallest_leaf,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=task.seed,
        )
        # Weighted quantiles for the bins cost more than the trees.
        weight = None if equal else task.weight[train]
        model.fit(task.samples[train], task.target[train], sample_weight=weight)
        held_out[test] = _raw(model, task.samples[test])
        models.append(model)
    return Fitted(Boosting(tuple(models)), held_out)


# --- the mixture -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """A weighted sum of the log-odds of learners."""

    learners: tuple[Learner, ...]
    weights: Vector
    intercept: float

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        total = np.full(samples.shape[0], self.intercept)
        for learner, weight in zip(self.learners, self.weights, strict=True):
            if weight > 0.0:
                total += weight * learner.log_odds(samples)
        return total


def mix(fitted: list[Fitted], task: Task, strength: float = 20.0) -> Fitted:
    """Weight learners so that held-out targets are predicted best.

    Non-negative weights of the log-odds minimise held-out log-loss, drawn towards equal
    weights as strongly as ``strength`` rows would.
    """
    columns = np.column_stack([one.held_out for one in fitted])
    n_learners = columns.shape[1]
    equal = 1.0 / n_learners
    counts = task.weight * (task.n_rows / task.weight.sum())

    def penalised(parameters: Vector) -> tuple[float, Vector]:
        weights, intercept = parameters[:-1], parameters[-1]
        odds = columns @ weights + intercept
        losses = -log_expit(odds) + (1.0 - task.target) * odds
        slope = counts * (expit(odds) - task.target)
        away = weights - equal
        value = counts @ losses + 0.5 * strength * n_learners * (away @ away)
        value += 0.5 * intercept**2
        by_weights = columns.T @ slope + strength * n_learners * away
        return float(value), np.append(by_weights, slope.sum() + intercept)

    found = minimize(
        penalised,
        np.append(np.full(n_learners, equal), 0.0),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * n_learners + [(None, None)],
    )
    weights = np.where(found.x[:-1] < 0.01, 0.0, found.x[:-1])
    intercept = float(found.x[-1])
    learners = tuple(one.learner for one in fitted)
    return Fitted(Mixture(learners, weights, intercept), columns @ weights + intercept)


def fit_mixture(task: Task, learners: tuple[Callable[[Task], Fitted], ...]) -> Fitted:
    """Fit learners to a task and mix them."""
    return mix([fit(task) for fit in learners], task)


N_FOLDS = 5
# Fewer rows than this are cross-validated in several ways: one split says too little.
FEW_ROWS = 600
N_REPEATS = 3


def fit_usual(
    samples: Matrix,
    target: Vector,
    weight: Vector,
    group: NDArray[Any],
    seed: int,
) -> Fitted:
    """Fit and mix the usual learners; folds hold rows of each group evenly."""
    repeats = N_REPEATS if target.size < FEW_ROWS else 1
    n_folds = int(min(N_FOLDS, np.unique(group, return_counts=True)[1].min()))
    fold = draw_folds(group, n_folds, repeats, seed)
    task = Task(samples, target, weight, fold, seed)
    return fit_mixture(task, (fit_kernel, fit_linear, fit_forest, fit_boosting))
