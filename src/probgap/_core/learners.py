"""Learners of a target between 0 and 1: linear models, kernels, forest and boosting.

Each is fitted on soft targets (an observed label, or the probability of being positive)
and predicts its training rows by models that have not seen them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logit

from probgap._core.defaults import DEFAULTS
from probgap._core.errors import InvalidInputError
from probgap._core.kernels import KernelFeatures
from probgap._core.newton import LinearFits, Logistic
from probgap._core.newton import fit_linear as fit_by_newton
from probgap._core.types import Array, Matrix, Vector

Rows = NDArray[np.intp]

# Held-out probabilities stay this far from 0 and 1, or one part of as many as there are
# rows: a single row must not decide.
MARGIN = 1e-4
# Fewer rows than this are cross-validated in several ways: one split says too little.
FEW_ROWS = 2000
N_REPEATS = 3


class Learner(Protocol):
    """A fitted learner."""

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A learner, and what it predicts for its training rows without having seen them.

    ``partial`` are learners fitted on a part of these rows, as those are that predict the
    others. Any of them predicts new rows as training rows are predicted: what all of
    them say together would tell rows that were learnt from and others apart.
    """

    learner: Learner
    held_out: Vector
    partial: tuple[Learner, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Rows to learn from, with soft targets, weights and folds.

    ``fold`` has a column for each repetition of cross-validation; ``margin`` is how far
    held-out probabilities stay from 0 and 1.
    """

    samples: Matrix
    target: Vector
    weight: Vector
    fold: Rows
    seed: int
    margin: float = MARGIN

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.target.size

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    @property
    def frequency(self) -> float:
        """Weighted mean of the targets."""
        return float(np.average(self.target, weights=self.weight))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some rows, in their order, and the weights with which they stand for all."""

    rows: Rows
    weight: Vector

    def inside(self, n_rows: int) -> NDArray[np.bool_]:
        """Tell for each of so many rows whether it is one of these."""
        inside = np.zeros(n_rows, dtype=bool)
        inside[self.rows] = True
        return inside


def draw_part(weight: Vector, group: NDArray[Any], most: int, seed: int) -> Part:
    """Draw at most so many of the rows that have weight.

    The group, taken as true or false, that is true is kept whole as long as it takes up
    no more than half. Those kept of a group weigh, together, their part of the whole
    group; a row weighs as much as before on average.
    """
    counted = np.flatnonzero(weight > 0.0)
    if counted.size <= most:
        return Part(counted, weight[counted])
    rng = np.random.default_rng(seed)
    first = group[counted].astype(bool)
    groups = [counted[first], counted[~first]]
    few = min(groups[0].size, most // 2)
    sizes = [max(few, most - groups[1].size), most - few]
    rows, weights = [], []
    for members, size in zip(groups, sizes, strict=True):
        kept = rng.choice(members, min(size, members.size), replace=False)
        rows.append(kept)
        stands = weight[members].sum() / max(weight[kept].sum(), np.finfo(float).tiny)
        weights.append(weight[kept] * (stands * most / counted.size))
    order = np.argsort(np.concatenate(rows))
    return Part(np.concatenate(rows)[order], np.concatenate(weights)[order])


def usual_folds(group: NDArray[Any], most: int, seed: int) -> Rows:
    """Assign rows to as many folds as the smallest group has members, up to ``most``.

    The only member of a group has a fold for itself, so that all other rows are
    predicted by models that have seen it.
    """
    counts = np.unique(group, return_counts=True)[1]
    n_folds = int(min(most, counts[counts > 1].min(initial=group.size)))
    repeats = N_REPEATS if group.size < FEW_ROWS else 1
    return draw_folds(group, n_folds, repeats, seed)


def draw_folds(group: NDArray[Any], n_folds: int, n_repeats: int, seed: int) -> Rows:
    """Assign rows to folds, each group evenly, in ``n_repeats`` different ways.

    A group of one takes a fold of its own, beyond the ``n_folds`` of the others.
    """
    rng = np.random.default_rng(seed)
    fold = np.empty((group.size, n_repeats), dtype=np.intp)
    values, counts = np.unique(group, return_counts=True)
    n_shared = n_folds if counts.max() > 1 else 0
    for repeat in range(n_repeats):
        alone = n_shared
        for value, count in zip(values, counts, strict=True):
            rows = np.flatnonzero(group == value)
            if count == 1:
                fold[rows, repeat] = alone
                alone += 1
                continue
            first = rng.integers(n_folds)
            fold[rng.permutation(rows), repeat] = (
                first + np.arange(rows.size)
            ) % n_folds
    return fold


def bounded(log_odds: Vector, margin: float) -> Vector:
    """Return log-odds of probabilities that far from 0 and 1."""
    most = float(logit(1.0 - margin))
    return np.clip(log_odds, -most, most)


def soft_log_losses(target: Vector, log_odds: Vector) -> Vector:
    """Return the cross-entropy of each soft target."""
    losses: Vector = -log_expit(log_odds) + (1.0 - target) * log_odds
    return losses


def soft_log_loss(target: Vector, log_odds: Vector, weight: Vector) -> float:
    """Return the mean cross-entropy of soft targets."""
    return float(np.average(soft_log_losses(target, log_odds), weights=weight))


# Deviations from the mean beyond which the kernel is 0, whatever its width.
_FARTHEST = 1e15


def column_scale(samples: Array) -> Vector:
    """Return the standard deviation of each column, 1 where it is constant."""
    deviation = samples.std(axis=0, dtype=np.float64)
    # Of equal values, rounding can leave a deviation that is not 0.
    varies = samples.max(axis=0) > samples.min(axis=0)
    return np.where(varies & (deviation > 0.0), deviation, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class KernelLogistic:
    """Logistic regression on Nystroem features of an RBF kernel."""

    features: KernelFeatures
    scale: Vector
    coef: Vector
    intercept: float

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        standard = np.clip(samples / self.scale, -_FARTHEST, _FARTHEST)
        # Rounded, as the last bits depend on how an array lies in memory; summed up in
        # double precision, as they would depend on which rows are beside.
        weights = (self.features.rotation @ self.coef).astype(np.float32)
        score = np.empty(len(standard))
        for rows, kernel in self.features.kernel_blocks(standard):
            score[rows] = kernel.astype(np.float64) @ weights.astype(np.float64)
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
) -> Fitted:
    """Fit kernel logistic regression; the penalty is chosen by held-out log-loss."""
    scale = column_scale(task.samples)
    standard = task.samples / scale
    gamma = 1.0 / task.samples.shape[1]
    n_landmarks = landmarks_for(*task.samples.shape)
    features = KernelFeatures.fit(standard, n_landmarks, gamma, task.seed)
    fits, held_out = _choose_penalty(features.transform(standard), task, penalties)
    each = [
        KernelLogistic(features, scale, coef, float(intercept))
        for coef, intercept in zip(fits.coef.T, fits.intercept, strict=True)
    ]
    return Fitted(each[0], held_out, tuple(each[1 : task.n_folds + 1]))


def landmarks_for(n_rows: int, n_columns: int) -> int:
    """Return how many landmarks suit rows: more where kernels have more directions."""
    fewest, most = DEFAULTS.landmark_range
    by_columns = min(DEFAULTS.landmarks_per_column * n_columns, most)
    return int(max(fewest, min(by_columns, n_rows // DEFAULTS.rows_per_landmark)))


def fit_linear(
    task: Task, *, penalties: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0)
) -> Fitted:
    """Fit logistic regression; the penalty is chosen by held-out log-loss."""
    scale = column_scale(task.samples)
    mean = task.samples.mean(axis=0) / scale
    columns = task.samples / scale - mean
    fits, held_out = _choose_penalty(columns.astype(np.float32), task, penalties)
    each = [
        LinearLogistic(coef / scale, float(intercept - mean @ coef))
        for coef, intercept in zip(fits.coef.T, fits.intercept, strict=True)
    ]
    return Fitted(each[0], held_out, tuple(each[1 : task.n_folds + 1]))


def _choose_penalty(
    features: NDArray[np.float32], task: Task, penalties: tuple[float, ...]
) -> tuple[LinearFits, Vector]:
    """Fit for growing C, as long as held-out log-loss falls."""
    held_in = task.fold[:, :, None] != np.arange(task.n_folds)
    trained = held_in.reshape(task.n_rows, -1)
    start, best, least = None, None, np.inf
    for penalty in penalties:
        # BLAS may raise a flag for numbers beyond the end of a row, which it ignores.
        with np.errstate(invalid="ignore"):
            fits = fit_by_newton(
                features,
                task.target,
                Logistic(),
                1.0 / penalty,
                weight=task.weight,
                trained=trained,
                start=start,
            )
        start = np.append(fits.coef[:, 0], fits.intercept[0])
        held_out = bounded(_held_out(features, fits, task), task.margin)
        loss = soft_log_loss(task.target, held_out, task.weight)
        if best is None or loss < least:
            best, least = (fits, held_out), loss
        else:
            break
    assert best is not None  # there is a penalty to try
    return best


def _held_out(features: NDArray[np.float32], fits: LinearFits, task: Task) -> Vector:
    """Average over repetitions what the models of the other folds predict."""
    each = features @ fits.coef[:, 1:].astype(np.float32) + fits.intercept[1:]
    columns = task.fold + task.n_folds * np.arange(task.fold.shape[1])
    found: Vector = np.take_along_axis(each, columns, axis=1).mean(axis=1)
    return found


# What scikit-learn sorts the values of a column into at most.
_N_BINS = 255
_BINNED_ROWS = 50_000
# Share of bootstrap samples that a row is not in.
_LEFT_OUT = 0.37


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Extremely randomised trees, shrunk a little towards the mean of the targets."""

    trees: Any
    frequency: float
    margin: float = MARGIN

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        # The forest's own predict converts and checks samples once for each tree.
        single = np.ascontiguousarray(samples, dtype=np.float32)
        # Compiled code would read beyond the end of narrower rows.
        if single.shape[1] != self.trees.n_features_in_:
            msg = f"X must have {self.trees.n_features_in_} columns. Got {single.shape[1]}."
            raise InvalidInputError(msg)
        total = np.zeros(len(single))
        for tree in self.trees.estimators_:
            total += tree.tree_.predict(single)[:, 0]
        n_trees = len(self.trees)
        return self.shrunk(total / n_trees, n_trees)

    def some(self, start: int, count: int) -> Forest:
        """Return a forest of some of the trees."""
        trees = copy.copy(self.trees)
        trees.estimators_ = trees.estimators_[start : start + count]
        return Forest(trees, self.frequency, self.margin)

    def shrunk(self, share: Vector, strength: float) -> Vector:
        """Return log-odds of shares as of so many rows, beside one drawn at random."""
        drawn = (strength * share + self.frequency) / (strength + 1.0)
        odds: Vector = logit(np.clip(drawn, self.margin, 1.0 - self.margin))
        return odds


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
    forest = Forest(trees, task.frequency, task.margin)
    held_out = forest.shrunk(trees.oob_prediction_, _LEFT_OUT * n_trees)
    trees.oob_score = False
    del trees.oob_prediction_
    few = max(1, round(_LEFT_OUT * n_trees))
    partial = tuple(forest.some(start, few) for start in (0, n_trees - few))
    return Fitted(forest, held_out, partial)


@dataclass(frozen=True, slots=True, eq=False)
class Boosting:
    """The mean of gradient boosted trees, each fitted on all folds but one."""

    models: tuple[Any, ...]
    margin: float = MARGIN

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        total = sum(_raw(model, samples, self.margin) for model in self.models)
        return np.asarray(total / len(self.models), dtype=np.float64)


def _raw(model: Any, samples: Matrix, margin: float) -> Vector:
    chance = model.predict(samples)
    return bounded(logit(np.clip(chance, 1e-9, 1.0 - 1e-9)), margin)


def fit_boosting(
    task: Task,
    *,
    n_rounds: int = 40,
    learning_rate: float = 0.15,
    n_leaves: int = 10,
    smallest_leaf: int = 20,
    rounded: bool = False,
) -> Fitted:
    """Fit gradient boosting with the log-loss of soft targets, a model for each fold.

    Weighted quantiles for the bins cost more than the trees. They are not needed where
    weights are equal, nor where columns are ``rounded`` to so many values before.
    """
    from sklearn._loss.loss import HalfBinomialLoss  # noqa: PLC0415
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415

    fold = task.fold[:, 0]
    held_out = np.empty(fold.size)
    models = []
    equal = bool((task.weight == task.weight[0]).all())
    seen = task.samples if equal or not rounded else _rounded(task.samples)
    for k in range(task.n_folds):
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
        weight = None if equal else task.weight[train]
        model.fit(seen[train], task.target[train], sample_weight=weight)
        held_out[test] = _raw(model, task.samples[test], task.margin)
        models.append(model)
    partial = tuple(Boosting((model,), task.margin) for model in models)
    return Fitted(Boosting(tuple(models), task.margin), held_out, partial)


def _rounded(samples: Array) -> Array:
    """Round each column to the nearest of as many of its values as there are bins.

    Bins then end halfway between these values, so that a model fitted to rounded columns
    can be applied to the columns themselves.
    """
    rounded = np.empty_like(samples)
    step = max(1, len(samples) // _BINNED_ROWS)
    for j, column in enumerate(samples.T):
        values = np.unique(column[::step])
        if values.size > _N_BINS:
            share = np.linspace(0.0, 1.0, _N_BINS)
            values = np.quantile(column[::step], share, method="inverted_cdf")
            values = np.unique(values)
        halfway = values[:-1] / 2.0 + values[1:] / 2.0
        rounded[:, j] = values[np.searchsorted(halfway, column)]
    return rounded
