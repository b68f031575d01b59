"""The mixture of learners, weighted by held-out log-loss: the engine of the default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from probgap._core.checks import check_two_classes
from probgap._core.estimators import SignClassifier
from probgap._core.kernels import spread_rows
from probgap._core.learners import (
    MARGIN,
    Fitted,
    Learner,
    Part,
    Task,
    bounded,
    draw_part,
    fit_boosting,
    fit_forest,
    fit_kernel,
    fit_linear,
    soft_log_losses,
    usual_folds,
)
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, one_thread
from probgap._core.types import Array, Mask, Matrix, Vector
from probgap._core.views import MOST_COLUMNS, View, choose_view, see

# Rows that are predicted at a time: so many, or fewer where these hold more values.
_BLOCK_ROWS = 2**15
_BLOCK_VALUES = 2**22


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """A weighted sum of the log-odds of learners, all with the same view of samples.

    Without a view, they see the columns as they are.
    """

    learners: tuple[Learner, ...]
    weights: Vector
    intercept: float
    view: View | None = None

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        total = np.full(samples.shape[0], self.intercept)
        with one_thread():
            for rows in _blocks(samples):
                block = see(samples[rows], self.view)
                for learner, weight in zip(self.learners, self.weights, strict=True):
                    if weight > 0.0:
                        total[rows] += weight * learner.log_odds(block)
        return total


def _blocks(samples: Matrix) -> Any:
    """Return slices of rows, of as many as fit a fixed amount of memory."""
    n_rows, n_columns = samples.shape
    return gen_batches(n_rows, max(1, min(_BLOCK_ROWS, _BLOCK_VALUES // n_columns)))


def choose_weights(
    columns: Array, target: Vector, weight: Vector, strength: float = 20.0
) -> tuple[Vector, float]:
    """Weight learners so that held-out targets are predicted best.

    Non-negative weights of the log-odds minimise held-out log-loss, drawn towards equal
    weights as strongly as ``strength`` rows would. The second value is an intercept.
    """
    n_rows, n_learners = columns.shape
    equal = 1.0 / n_learners
    counts = weight * (n_rows / weight.sum())

    def penalised(parameters: Vector) -> tuple[float, Vector]:
        weights, intercept = parameters[:-1], parameters[-1]
        odds = columns @ weights + intercept
        losses = soft_log_losses(target, odds)
        slope = counts * (expit(odds) - target)
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
    return np.where(found.x[:-1] < 0.01, 0.0, found.x[:-1]), float(found.x[-1])


# --- the usual learners ----------------------------------------------------------------

_N_FOLDS = 5
# Beyond 10,000 rows there are fewer folds, smaller trees, and more rounds of boosting: as
# many as for 10,000 times the root of how many times as many rows, up to a limit that
# keeps predictions fast.
_N_FOLDS_OF_MANY = 3
_LEAF_OF_MANY = 5
_ROUNDS_PER_ROOT = 0.4
_MOST_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is learnt from, at most.

    Attributes
    ----------
    rows : int
        Rows that the kernel, the linear model and the forest are fitted on.
    values : int
        Values (rows times columns) that boosting is fitted on, if that is more.
    mixed : int
        Rows that weights of the learners are fitted on.
    columns : int
        Columns that are learnt from as they are; of more, components are.
    """

    rows: int = 10_000
    values: int = 8_000_000
    mixed: int = 100_000
    columns: int = MOST_COLUMNS


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """All rows, as they were given."""

    samples: Matrix
    target: Vector
    weight: Vector
    group: NDArray[Any]
    seed: int
    fold: NDArray[np.intp] | None = None

    @property
    def margin(self) -> float:
        return min(MARGIN, 1.0 / self.target.size)

    def draw(self, most: int) -> Part:
        return draw_part(self.weight, self.group, most, self.seed)

    def view(self, limits: Limits) -> View | None:
        # Of rows drawn whatever their group is: components may fit best those rows that
        # they were found in, and would tell of a group that there were more of.
        counted = np.flatnonzero(self.weight > 0.0)
        some = counted[spread_rows(counted.size, min(limits.rows, counted.size))]
        return choose_view(self.samples[some], self.seed, limits.columns)

    def task(self, part: Part, view: View | None, n_folds: int) -> Task:
        rows = part.rows
        if self.fold is not None:
            fold = self.fold[rows, None]
        else:
            fold = usual_folds(self.group[rows], n_folds, self.seed)
        samples = see(self.samples[rows], view)
        target = self.target[rows]
        return Task(samples, target, part.weight, fold, self.seed, self.margin)


def fit_usual(
    samples: Matrix,
    target: Vector,
    weight: Vector,
    group: NDArray[Any],
    seed: int,
    *,
    fold: NDArray[np.intp] | None = None,
    n_jobs: int | None = None,
) -> Fitted:
    """Fit and mix the usual learners, ``n_jobs`` of them at once.

    Of more than 10,000 rows, three of the learners see a sample, which holds the rows
    where ``group`` is true first; rows outside it are predicted as new ones are. ``fold``
    is the fold of each row; by default folds hold rows of each group evenly.
    """
    kept = samples.tocsr() if issparse(samples) else np.asarray(samples)
    with one_thread():
        whole = Whole(kept, target, weight, group, seed, fold)
        return fit_within(whole, Limits(), n_jobs)


def fit_within(whole: Whole, limits: Limits, n_jobs: int | None = None) -> Fitted:
    """Fit and mix the usual learners, on as much of the rows as limits allow."""
    part, view = whole.draw(limits.rows), whole.view(limits)
    parts = [part] * 4
    task = whole.task(part, view, _N_FOLDS)
    # The longest first.
    jobs: list[Any] = [delayed(_fit_alone)(fit_kernel, task)]
    if part.rows.size == np.count_nonzero(whole.weight):
        jobs += [delayed(_fit_alone)(fit, task) for fit in (fit_boosting, fit_forest)]
    else:
        parts[3] = whole.draw(max(limits.rows, limits.values // task.samples.shape[1]))
        many = whole.task(parts[3], view, _N_FOLDS_OF_MANY)
        n_rounds = int(min(_ROUNDS_PER_ROOT * np.sqrt(many.n_rows), _MOST_ROUNDS))
        boost = partial(fit_boosting, n_rounds=max(1, n_rounds), rounded=True)
        # Bootstrap samples by weights that stand for others would hardly hold a row of
        # the scarce group. Without them probabilities are off by some factor of their
        # odds, which the intercept of the mixture makes good.
        plain = replace(task, weight=whole.weight[part.rows])
        grow = partial(fit_forest, smallest_leaf=_LEAF_OF_MANY)
        jobs += [delayed(_fit_alone)(boost, many), delayed(_fit_alone)(grow, plain)]
    jobs.append(delayed(_fit_alone)(fit_linear, task))
    # Compiled code does the work and lets other threads run.
    kernel, boosting, forest, linear = Parallel(n_jobs, prefer="threads")(jobs)
    fitted = [kernel, linear, forest, boosting]
    columns = bounded(_held_out_of_all(whole, view, fitted, parts), whole.margin)
    mixed = whole.draw(limits.mixed)
    weights, intercept = choose_weights(
        columns[mixed.rows], whole.target[mixed.rows], mixed.weight
    )
    mixture = Mixture(tuple(one.learner for one in fitted), weights, intercept, view)
    return Fitted(mixture, columns @ weights + intercept)


def _fit_alone(fit: Callable[[Task], Fitted], task: Task) -> Fitted:
    """Fit a learner on one thread: OpenMP's limit holds for the thread that sets it."""
    with one_thread():
        return fit(task)


def _held_out_of_all(
    whole: Whole, view: View | None, fitted: list[Fitted], parts: list[Part]
) -> Array:
    """Return log-odds of all rows, a column for each learner that has not seen them."""
    columns = np.empty((whole.target.size, len(fitted)))
    outside = np.empty(columns.shape, dtype=np.int8)
    rng = np.random.default_rng(whole.seed)
    for j, (one, part) in enumerate(zip(fitted, parts, strict=True)):
        outside[:, j] = rng.integers(len(one.partial), size=len(outside))
        columns[part.rows, j] = one.held_out
        outside[part.rows, j] = -1
    for rows in _blocks(whole.samples) if (outside >= 0).any() else ():
        block = see(whole.samples[rows], view)
        for j, one in enumerate(fitted):
            for k, learner in enumerate(one.partial):
                others = np.flatnonzero(outside[rows, j] == k)
                if others.size:
                    odds = learner.log_odds(block[others])
                    columns[rows.start + others, j] = odds
    return columns


class MixedClassifier(SignClassifier):
    """Mix kernel and linear logistic regression, a forest and boosted trees.

    The weights of the learners minimise held-out log-loss. :meth:`fit_on_shares` takes
    soft labels, the share of each sample that counts as positive.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds, landmarks and trees.
    n_jobs : int, default=None
        Number of learners to fit at once, each in a thread.

    Attributes
    ----------
    mixture_ : Mixture
        The fitted learners and their weights.
    held_out_ : ndarray of shape (n_samples,)
        Log-odds of the training samples, by models that have not seen them.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order.
    n_features_in_ : int
        Number of features seen in ``fit``.
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
        """Fit to the share of each sample that counts as positive; NaN leaves it out.

        Folds hold labelled and unlabelled samples evenly.
        """
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
        with one_thread():
            fitted = fit_usual(samples, share, weight, group, seed, n_jobs=self.n_jobs)
        assert isinstance(fitted.learner, Mixture)
        self.mixture_, self.held_out_ = fitted.learner, fitted.held_out
        return self

    def _decide(self, X: Matrix) -> Vector:
        """Return the log-odds of the second class."""
        check_is_fitted(self)
        samples = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        with one_thread():
            return self.mixture_.log_odds(samples)

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Return the probabilities of the two classes."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1.0 - positive, positive])
