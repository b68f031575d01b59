"""Trees fitted to soft targets: a randomised forest, and gradient boosting."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from probgap._core.errors import InvalidInputError
from probgap._core.tasks import MARGIN, Fitted, Task, bounded
from probgap._core.types import Array, Matrix, Vector

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
