"""Learners of a target between 0 and 1: linear models, kernels, forest and boosting.

Each is fitted on soft targets (an observed label, or the probability of being positive)
and predicts its training rows by models that have not seen them.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from probgap._core._sklearn import HalfBinomialLoss
from probgap._core.checks import group_folds
from probgap._core.defaults import DEFAULTS, Defaults
from probgap._core.errors import refuse
from probgap._core.kernels import KernelFeatures
from probgap._core.newton import LinearFits, Logistic, bounded, fit_penalised
from probgap._core.types import Array, Matrix, Rows, Single, Vector

# Values in standard deviations are clipped here, where the kernel is 0 in any case.
_FARTHEST = 1e15
# Share of bootstrap samples that do not contain a given row.
_LEFT_OUT = 0.37
# Of this many times the mean weight a row may be in all bootstrap samples.
_HEAVY = 2.0
# The most bins that scikit-learn's histograms have.
_N_BINS = 255
_BINNED_ROWS = 50_000


class Learner(Protocol):
    """A fitted learner."""

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        ...


# Makes a learner from coefficients and intercept.
Maker = Callable[[Vector, float], Learner]


@dataclass(frozen=True, slots=True, eq=False)
class FittedLearner:
    """A learner, and held-out log-odds of its training rows.

    ``partial`` are learners fitted on part of the rows. They predict rows outside the
    training sample with the same accuracy as the held-out ones inside it.
    """

    learner: Learner
    held_out: Vector
    partial: tuple[Learner, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class LearnerTask:
    """Rows to learn from; ``fold`` has a column for each repetition of cross-validation."""

    samples: Array
    target: Vector
    weight: Vector
    fold: Rows
    seed: int
    limits: Defaults = DEFAULTS
    grouped: bool = False  # whether rows of a fold may be near copies of each other

    @property
    def margin(self) -> float:
        """Distance of held-out probabilities from 0 and 1, so that no row dominates."""
        return 1.0 / (self.target.size + 2.0)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1


def stratified_folds(
    group: NDArray[Any], most: int, seed: int, together: Rows | None = None
) -> Rows:
    """Assign rows of each group evenly to folds, as many as the smallest group allows.

    Rows with the same number in ``together`` get the same fold.

    The only member of a group gets a fold of its own, so that the models that predict all
    other rows have seen it.
    """
    n_repeats = DEFAULTS.n_repeats
    if group.size * n_repeats > DEFAULTS.most_rows:
        n_repeats = 1
    rng = np.random.default_rng(seed)
    if together is not None:
        folds = [group_folds(group, together, most, rng) for _ in range(n_repeats)]
        return np.stack(folds, axis=1)
    values, counts = np.unique(group, return_counts=True)
    n_folds = int(min(most, counts[counts > 1].min(initial=group.size)))
    fold = np.empty((group.size, n_repeats), dtype=np.intp)
    for repeat in range(n_repeats):
        alone = n_folds if counts.max() > 1 else 0
        for value, count in zip(values, counts, strict=True):
            rows = np.flatnonzero(group == value)
            if count == 1:
                fold[rows, repeat] = alone
                alone += 1
                continue
            first = rng.integers(n_folds)
            places = (first + np.arange(rows.size)) % n_folds
            fold[rng.permutation(rows), repeat] = places
    return fold


# --- logistic regression ---------------------------------------------------------------


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
        # In double precision: rounding in single would depend on the other rows of a block.
        return self.features.score(standard, self.coef, np.float64) + self.intercept


@dataclass(frozen=True, slots=True, eq=False)
class LinearLogistic:
    """Logistic regression on the columns."""

    coef: Vector
    intercept: float

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        return np.asarray(samples @ self.coef, dtype=np.float64) + self.intercept


def fit_kernel(task: LearnerTask) -> FittedLearner:
    """Fit kernel logistic regression; held-out log-loss chooses penalty and landmarks.

    The penalty is chosen with few landmarks. Their number is then doubled while that
    lowers the loss significantly: the kernels of most tables have few informative
    directions.
    """
    scale = _column_scale(task.samples)
    standard = task.samples / scale
    gamma = 1.0 / task.samples.shape[1]
    n_landmarks, most = task.limits.landmarks
    kernel = KernelFeatures.fit(standard, n_landmarks, gamma, task.seed)
    best = _choose_penalty(task, kernel.transform(standard), task.limits.penalties)
    while 2 * n_landmarks <= min(most, task.target.size // 3):
        n_landmarks *= 2
        wider = KernelFeatures.fit(standard, n_landmarks, gamma, task.seed)
        found = _choose_penalty(task, wider.transform(standard), (best.C,))
        if not _is_better(found, best, task.weight):
            break
        kernel, best = wider, found

    def make(coef: Vector, intercept: float) -> Learner:
        return KernelLogistic(kernel, scale, coef, float(intercept))

    return best.learners(make, task.n_folds)


def fit_linear(task: LearnerTask) -> FittedLearner:
    """Fit logistic regression."""
    scale = _column_scale(task.samples)
    mean = task.samples.mean(axis=0) / scale
    columns = task.samples / scale - mean

    def make(coef: Vector, intercept: float) -> Learner:
        return LinearLogistic(coef / scale, float(intercept - mean @ coef))

    best = _choose_penalty(task, columns.astype(np.float32), task.limits.penalties)
    return best.learners(make, task.n_folds)


def _column_scale(samples: Array) -> Vector:
    """Return the standard deviation of each column, 1 where it is constant."""
    deviation = samples.std(axis=0, dtype=np.float64)
    # Rounding can give equal values a deviation that is not exactly 0.
    varies = samples.max(axis=0) > samples.min(axis=0)
    return np.where(varies & (deviation > 0.0), deviation, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """The models with the best penalty, their held-out log-odds and log-losses."""

    fits: LinearFits
    C: float
    held_out: Vector
    losses: Vector
    loss: float

    def learners(self, make: Maker, n_folds: int) -> FittedLearner:
        """Return the model on all rows, and those of the first repetition as partial."""
        models = tuple(map(make, self.fits.coef.T, self.fits.intercept))
        return FittedLearner(models[0], self.held_out, models[1 : n_folds + 1])


def _is_better(new: _Choice, old: _Choice, weight: Vector) -> bool:
    """Return whether the log-loss fell by more than two standard errors of the fall."""
    share = weight / weight.sum()
    fall = old.losses - new.losses
    mean = share @ fall
    return bool(mean > 2.0 * np.sqrt(share**2 @ (fall - mean) ** 2))


def _choose_penalty(
    task: LearnerTask, features: Single, grid: tuple[float, ...]
) -> _Choice:
    """Fit with increasing C while the held-out log-loss falls."""
    n_folds, margin = task.n_folds, task.margin
    trained = task.fold[:, :, None] != np.arange(n_folds)
    trained = trained.reshape(task.target.size, -1)
    # For each repetition, the index of the model that has not seen the row.
    own = task.fold + n_folds * np.arange(task.fold.shape[1])
    start, best = None, None
    for C in grid:
        # BLAS may set floating-point flags for padding that it then ignores.
        with np.errstate(invalid="ignore"):
            fits = fit_penalised(
                features,
                task.target,
                Logistic(),
                1.0 / C,
                weight=task.weight,
                trained=trained,
                start=start,
            )
        start = np.append(fits.coef[:, 0], fits.intercept[0])
        each = features @ fits.coef[:, 1:].astype(np.float32) + fits.intercept[1:]
        found = np.take_along_axis(each, own, axis=1).mean(axis=1)
        found = bounded(found, margin)
        losses, _ = Logistic().slopes(task.target, found)
        loss = float(np.average(losses, weights=task.weight))
        if best is not None and loss >= best.loss:
            break
        best = _Choice(fits, C, found, losses, loss)
    assert best is not None  # there is a penalty to try
    return best


# --- trees -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Extremely randomised trees, shrunk slightly towards the mean target."""

    trees: Any
    frequency: float
    margin: float

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        # The forest's own predict converts and checks samples once for each tree.
        single = np.ascontiguousarray(samples, dtype=np.float32)
        # tree_.predict does not check the width and would read out of bounds.
        if single.shape[1] != self.trees.n_features_in_:
            refuse(
                f"X must have {self.trees.n_features_in_} columns. Got {single.shape[1]}."
            )
        total = np.zeros(len(single))
        for tree in self.trees.estimators_:
            total += tree.tree_.predict(single)[:, 0]
        n_trees = len(self.trees)
        return self.shrunk(total / n_trees, n_trees)

    def some(self, start: int, count: int) -> Self:
        """Return a forest of some of the trees."""
        trees = copy.copy(self.trees)
        trees.estimators_ = trees.estimators_[start : start + count]
        return replace(self, trees=trees)

    def shrunk(self, share: Vector, strength: float) -> Vector:
        """Return log-odds of shares of ``strength`` rows plus one with the mean target."""
        drawn = (strength * share + self.frequency) / (strength + 1.0)
        odds: Vector = logit(np.clip(drawn, self.margin, 1.0 - self.margin))
        return odds


def fit_forest(task: LearnerTask) -> FittedLearner:
    """Fit trees on bootstrap samples, for out-of-bag predictions.

    Rows of great weight are in nearly all of them, and so are near copies of a row that is
    not: then trees are fitted on all folds but one.
    """
    from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 (slow to import)

    trees = ExtraTreesRegressor(
        min_samples_leaf=task.limits.smallest_leaf,
        max_features="sqrt",
        bootstrap=True,
        oob_score=lambda *_: 0.0,
        n_jobs=1,
        random_state=task.seed,
    )
    frequency = float(np.average(task.target, weights=task.weight))
    if task.grouped or task.weight.max() > _HEAVY * task.weight.mean():
        return _fit_forest_by_folds(task, Forest(trees, frequency, task.margin))
    trees.fit(task.samples, task.target, sample_weight=task.weight)
    forest = Forest(trees, frequency, task.margin)
    n_trees = len(trees)
    held_out = forest.shrunk(trees.oob_prediction_, _LEFT_OUT * n_trees)
    trees.oob_score = False
    del trees.oob_prediction_
    few = round(_LEFT_OUT * n_trees)
    partial = tuple(forest.some(start, few) for start in (0, n_trees - few))
    return FittedLearner(forest, held_out, partial)


def _fit_forest_by_folds(task: LearnerTask, unfitted: Forest) -> FittedLearner:
    """Fit trees on all folds but one, as many as a row is out of the bag of."""
    fold, few = task.fold[:, 0], round(_LEFT_OUT * unfitted.trees.n_estimators)
    held_out, partial = np.empty(fold.size), []
    for k in range(task.n_folds):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        trees = copy.copy(unfitted.trees).set_params(n_estimators=few, oob_score=False)
        trees.set_params(random_state=task.seed + k)
        weight = task.weight[train]
        trees.fit(task.samples[train], task.target[train], sample_weight=weight)
        partial.append(replace(unfitted, trees=trees))
        held_out[test] = partial[k].log_odds(task.samples[test])
    trees = copy.copy(partial[0].trees)
    trees.estimators_ = [tree for one in partial for tree in one.trees.estimators_]
    return FittedLearner(replace(unfitted, trees=trees), held_out, tuple(partial))


@dataclass(frozen=True, slots=True, eq=False)
class Boosting:
    """The mean of gradient boosted trees, each fitted on all folds but one."""

    models: tuple[Any, ...]
    margin: float

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        each = (np.clip(m.predict(samples), 1e-9, 1.0 - 1e-9) for m in self.models)
        odds = [bounded(logit(chance), self.margin) for chance in each]
        return np.mean(odds, axis=0, dtype=np.float64)


def fit_boosting(task: LearnerTask) -> FittedLearner:
    """Fit gradient boosting with the log-loss of soft targets, a model for each fold."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415

    fold = task.fold[:, 0]
    held_out = np.empty(fold.size)
    many = fold.size > task.limits.most_rows
    rounds = {} if many else {"max_iter": task.limits.boosting_rounds}
    # Weighted quantiles for the bins cost more than the trees. They are not needed if the
    # weights are equal, or if columns hold no more values than there are bins.
    equal = bool((task.weight == task.weight[0]).all())
    seen = _rounded(task.samples) if many and not equal else task.samples
    partial = []
    for k in range(task.n_folds):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        model = HistGradientBoostingRegressor(
            loss=HalfBinomialLoss(),
            early_stopping=False,
            random_state=task.seed,
            **rounds,
        )
        weight = None if equal else task.weight[train]
        model.fit(seen[train], task.target[train], sample_weight=weight)
        partial.append(Boosting((model,), task.margin))
        held_out[test] = partial[k].log_odds(task.samples[test])
    models = tuple(model for one in partial for model in one.models)
    return FittedLearner(Boosting(models, task.margin), held_out, tuple(partial))


def _rounded(samples: Array) -> Array:
    """Round each column to the nearest of at most ``_N_BINS`` of its values.

    Bin edges then lie halfway between these values, so that a model fitted to rounded
    columns can be applied to the original ones.
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
