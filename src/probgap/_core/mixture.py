"""The default's mixture of learners, weighted by held-out log-loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array, issparse
from scipy.special import expit
from sklearn.utils import gen_batches
from sklearn.utils.extmath import randomized_svd

from probgap._core.checks import check_predict_input, check_two_classes
from probgap._core.defaults import DEFAULTS, Defaults
from probgap._core.estimators import SignClassifier
from probgap._core.learners import (
    FittedLearner,
    Learner,
    LearnerTask,
    fit_boosting,
    fit_forest,
    fit_kernel,
    fit_linear,
    stratified_folds,
)
from probgap._core.newton import bounded, fit_few
from probgap._core.runtime import (
    RandomStateLike,
    as_generator,
    draw_rows,
    draw_seed,
    one_thread,
    spread_rows,
)
from probgap._core.types import Array, Mask, Matrix, Rows, Single, Vector

# Most rows, and most values, that are predicted at a time.
_BLOCK_ROWS = 2**15
_BLOCK_VALUES = 2**22
_N_FOLDS = 5  # scikit-learn's default
# Most values of dense samples from which components are computed: 200 MB.
_MOST_VALUES = 50_000_000
# Dense samples with this share of zeros are treated as sparse: counts or indicators.
_MOSTLY_ZERO = 0.75
# Trees use single precision, whose largest value is 3e38. A column whose range is below
# this share of its values is too narrow for differences of squares.
_LARGEST = 1e30
_NARROWEST = 1e-6
_FARTHEST = 1e15


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """A weighted sum of the log-odds of learners, all with the same view of samples."""

    learners: tuple[Learner, ...]
    weights: Vector
    intercept: float
    view: View

    @one_thread()
    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        total = np.full(samples.shape[0], self.intercept)
        for rows in _blocks(samples):
            block = self.view(samples[rows])
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
    together: Rows | None = None,
    n_jobs: int | None = None,
    limits: Defaults = DEFAULTS,
) -> FittedLearner:
    """Fit the four learners of the default, ``n_jobs`` at once, and mix them.

    Beyond ``most_rows`` kernel, linear model and forest are fitted on a sample, and boosting
    on a larger one, of ``most_values``; samples prefer the rows of ``group``. Rows outside
    them are predicted like new ones. ``fold`` is the fold of
    each row; by default folds are stratified by ``group``. Rows with the same number in
    ``together`` are held out together, by all learners.
    """
    grouped = together is not None
    if fold is not None:
        fold = fold[:, None]
    elif grouped:
        fold = stratified_folds(group, _N_FOLDS, seed, together)
    samples = samples.tocsr() if issparse(samples) else np.asarray(samples)
    # The view is fitted on evenly spaced rows: components fit the rows that they come from
    # best, and would leak the group if the sample preferred it.
    some = spread_rows(target.size, min(limits.most_rows, target.size))
    view = choose_view(samples[some], seed, limits)

    def draw(most: int, n_folds: int) -> tuple[Rows, LearnerTask]:
        rows, weights = draw_rows(weight, group, most, seed)
        if fold is None:
            folds = stratified_folds(group[rows], n_folds, seed)
        else:
            folds = fold[rows]
        known = view(samples[rows]), target[rows], weights, folds
        return rows, LearnerTask(*known, seed, limits, grouped=grouped)

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
    learnt, unseen = [few, few, few, many], None
    if grouped and fold is not None:
        unseen = fold[:, 0]
    columns = _held_out(samples, view, fitted, learnt, seed, unseen)
    columns = bounded(columns, 1.0 / (target.size + 2.0))
    shares, intercept = choose_weights(columns, target, weight)
    mixture = Mixture(tuple(one.learner for one in fitted), shares, intercept, view)
    return FittedLearner(mixture, columns @ shares + intercept)


def _held_out(
    samples: Matrix,
    view: View,
    fitted: list[FittedLearner],
    learnt: list[Rows],
    seed: int,
    fold: Rows | None,
) -> Array:
    """Return held-out log-odds of all rows, a column for each learner."""
    columns = np.empty((samples.shape[0], len(fitted)))
    outside = np.empty(columns.shape, dtype=np.int8)
    rng = np.random.default_rng(seed)
    for j, (one, rows) in enumerate(zip(fitted, learnt, strict=True)):
        drawn = rng.integers(len(one.partial), size=len(outside))
        outside[:, j] = drawn if fold is None else fold % len(one.partial)
        columns[rows, j] = one.held_out
        outside[rows, j] = -1
    for rows in _blocks(samples) if (outside >= 0).any() else ():
        block = view(samples[rows])
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
    start = np.append(np.full(n_learners, 1.0 / n_learners), 0.0)
    counts = weight * (n_rows / weight.sum())
    ridge = float(n_learners), 1.0
    weights, intercept = fit_few(columns, target, counts, start=start, ridge=ridge)
    return np.where(weights < 0.01, 0.0, weights), intercept


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns, those with extreme values shifted and scaled to [-1, 1]."""

    centre: Vector | None = None  # None: no column is shifted or scaled
    scale: Vector | None = None

    @classmethod
    def fit(cls, samples: Array) -> Self:
        """Find columns that are too large, small or narrow."""
        low, high = samples.min(axis=0), samples.max(axis=0)
        half, most = high / 2.0 - low / 2.0, np.maximum(np.abs(low), np.abs(high))
        narrow = half < np.maximum(_NARROWEST * most, 1.0 / _LARGEST)
        odd = (most > _LARGEST) | (narrow & (half > 0.0))
        if not odd.any():
            return cls()
        scale = np.where(odd, np.where(half > 0.0, half, most), 1.0)
        return cls(np.where(odd, low / 2.0 + high / 2.0, 0.0), scale)

    def __call__(self, samples: Matrix) -> Array:
        columns = _as_dense(samples)
        if self.scale is not None:
            with np.errstate(over="ignore"):
                columns = (columns - self.centre) / self.scale
        return np.ascontiguousarray(np.clip(columns, -_LARGEST, _LARGEST))


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Principal components of standardised dense columns."""

    scale: Vector
    offset: Vector
    basis: Single

    @classmethod
    def fit(cls, samples: Matrix, per_root: float, seed: int) -> Self:
        """Compute the components."""
        n_rows, n_columns = samples.shape
        some = spread_rows(n_rows, min(n_rows, max(2, _MOST_VALUES // n_columns)))
        block = np.clip(samples[some], -_LARGEST, _LARGEST)
        constant = block.max(axis=0) == block.min(axis=0)
        deviation = block.std(axis=0, dtype=np.float64)
        scale = np.where(constant | (deviation == 0.0), 1.0, deviation)
        mean = block.mean(axis=0, dtype=np.float64) / scale
        standard = _standard(block, scale) - mean.astype(np.float32)
        basis = _components(standard, per_root, seed)
        return cls(scale, mean @ basis, basis)

    def __call__(self, samples: Matrix) -> Array:
        standard = _standard(_as_dense(samples, np.float32), self.scale)
        return (standard @ self.basis).astype(np.float64) - self.offset


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Components of sparse columns, which are not centred, so that they stay sparse.

    If no value is negative, columns are treated as word counts and weighted by TF-IDF:
    ``log(1 + count)`` times the inverse document frequency, with rows scaled to length 1.
    Otherwise columns are divided by their largest absolute value.
    """

    counts: bool
    factor: Vector
    basis: Single

    @classmethod
    def fit(cls, samples: Matrix, per_root: float, seed: int) -> Self:
        """Compute the components of the weighted columns."""
        n_rows, n_columns = samples.shape
        counts = bool(samples.nnz == 0 or samples.data.min() >= 0.0)
        if counts:
            rows = np.bincount(samples.indices, samples.data > 0.0, n_columns)
            factor = 1.0 + np.log((1.0 + n_rows) / (1.0 + rows))
        else:
            most = np.asarray(abs(samples).max(axis=0).todense()).ravel()
            factor = 1.0 / np.where(most > 0.0, most, 1.0)
        weighted = _weighted(samples, factor, counts=counts)
        return cls(counts, factor, _components(weighted, per_root, seed))

    def __call__(self, samples: Matrix) -> Array:
        weighted = _weighted(csr_array(samples), self.factor, counts=self.counts)
        return np.asarray(weighted @ self.basis, dtype=np.float64)


View = Columns | Directions | Words


def choose_view(samples: Matrix, seed: int, limits: Defaults) -> View:
    """Choose columns or, if there are too many of them, components."""
    if samples.shape[1] <= limits.most_columns:
        return Columns.fit(_as_dense(samples))
    if issparse(samples) or (samples == 0).mean() >= _MOSTLY_ZERO:
        return Words.fit(csr_array(samples), limits.components_per_root, seed)
    return Directions.fit(samples, limits.components_per_root, seed)


def _as_dense(samples: Matrix, dtype: Any = np.float64) -> NDArray[Any]:
    """Return samples as an array of floats, at least as precise as ``dtype``."""
    dense = samples.toarray() if issparse(samples) else np.asarray(samples)
    return dense.astype(np.promote_types(dense.dtype, dtype), copy=False)


def _standard(block: NDArray[Any], scale: Vector) -> Single:
    with np.errstate(over="ignore"):
        standard = block / scale
    return np.clip(standard, -_FARTHEST, _FARTHEST).astype(np.float32)


def _weighted(samples: Matrix, factor: Vector, *, counts: bool) -> Any:
    """Weight sparse columns, and scale rows of counts to length 1; single precision."""
    values = samples.astype(np.float64)
    if counts:
        values.data = np.log1p(np.maximum(values.data, 0.0))
    with np.errstate(over="ignore"):
        values.data = values.data * factor[values.indices]
    values.data = np.clip(values.data, -_FARTHEST, _FARTHEST)
    if counts:
        length = np.sqrt(np.asarray(values.multiply(values).sum(axis=1)).ravel())
        values = diags_array(1.0 / np.where(length > 0.0, length, 1.0)) @ values
    return values.astype(np.float32)


def _components(samples: Any, per_root: float, seed: int) -> Single:
    """Return the leading right singular vectors as columns.

    Few rows cannot tell directions apart; with many components all distances between rows
    become alike.
    """
    usual = per_root * np.sqrt(samples.shape[0])
    n_components = int(np.clip(usual, 1, min(samples.shape)))
    _, _, rows = randomized_svd(samples, n_components, n_iter=2, random_state=seed)
    basis: Single = np.ascontiguousarray(rows.T, dtype=np.float32)
    return basis


@dataclass(eq=False, repr=False, kw_only=True)
class MixedClassifier(SignClassifier):
    """A mixture of kernel and linear logistic regression, a forest and boosted trees.

    ``held_out_`` are log-odds of training samples by models that have not seen them.
    """

    random_state: RandomStateLike = None
    n_jobs: int | None = None

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit to labels of two classes."""
        samples, which = check_two_classes(self, X, y)
        weight = np.ones(which.size)
        return self._fit(samples, which.astype(np.float64), weight, which == 1)

    def _fit(
        self,
        samples: Matrix,
        share: Vector,
        weight: Vector,
        group: Mask,
        together: Rows | None = None,
    ) -> Self:
        seed, jobs = draw_seed(as_generator(self.random_state)), self.n_jobs
        known = samples, share, weight, group, seed
        fitted = fit_mixture(*known, together=together, n_jobs=jobs)
        assert isinstance(fitted.learner, Mixture)
        self.mixture_ = fitted.learner
        self.held_out_: Vector = fitted.held_out
        return self

    def fit_on_shares(
        self,
        samples: Matrix,
        share: Vector,
        weight: Vector,
        labelled: Mask,
        together: Rows | None = None,
    ) -> Self:
        """Fit to the positive share of each sample; NaN leaves it out."""
        self.classes_, self.n_features_in_ = np.array([0, 1]), samples.shape[1]
        used = np.isfinite(share) & (weight > 0.0)
        if used.all():
            return self._fit(samples, share, weight, labelled, together)
        apart = None if together is None else together[used]
        self._fit(samples[used], share[used], weight[used], labelled[used], apart)
        held_out = np.empty(share.size)
        held_out[used] = self.held_out_
        held_out[~used] = self.decision_function(samples[~used])
        self.held_out_ = held_out
        return self

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        return self.mixture_.log_odds(samples)

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Return the probabilities of the two classes."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1.0 - positive, positive])
