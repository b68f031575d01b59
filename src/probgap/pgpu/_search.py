"""Scores of all candidate boundaries on one fold, with shared computations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from probgap._core.errors import InvalidInputError, ProbgapWarning
from probgap._core.estimators import weigh_copies
from probgap._core.kernels import TrainingFeatures
from probgap._core.runtime import draw_seed, one_thread
from probgap._core.svm import FastSVC
from probgap._core.types import Mask, Matrix, Vector
from probgap._core.validation import Fold
from probgap.pgpu.steps import SoftLabels, Steps, choose_steps, fit_pgpu
from probgap.reweight import KernelMeanMatching, KMMResult

Rows = NDArray[np.intp]
Criterion = Callable[[Mask, Mask], float]

# Beyond this many training rows a kernel matrix does not fit well into memory.
_MOST_ROWS = 12_000


def score_fold(
    model: Any,
    criterion: Criterion,
    samples: Matrix,
    labelled: Mask,
    fold: Fold,
    grid: Vector,
    seed: int,
) -> Vector:
    """Score every boundary on one fold.

    The algorithm runs once for each distinct selection of samples; gap, kernel features
    and kernel matrices are computed once for all.
    """
    train, test = fold
    rows, known = samples[train], labelled[train]
    scores = np.full(grid.size, -np.inf)
    # One thread, so that the bits do not depend on how many folds run at once.
    with one_thread(), warnings.catch_warnings():
        # Warn of the chosen boundary only, not of candidates that lose.
        warnings.simplefilter("ignore", ProbgapWarning)
        rng = np.random.default_rng(seed)
        steps = choose_steps(model, train.size, boundary=float(grid[0]))
        gap = steps.estimate_gap(rows, known, None, rng)
        features = steps.map_features(rows, known, rng)
        final = FinalOnFold(steps.fit_final, rows, samples[test], features)
        steps = replace(
            steps,
            n_landmarks=None,
            fit_gap=lambda *_: gap,
            read=lambda *_, **__: None,
            fit_final=final.fit_and_predict,
        )
        final_seed = draw_seed(rng)
        first, which = _distinct(steps, gap.observed_gap_, grid)
        chosen = {}
        for i in first:
            at_value = replace(steps, boundary=float(grid[i]))
            curve = at_value.place_boundary(gap, known, None, None, rng)
            if curve.boundary.fallback is None:  # there are negatives to learn from
                posteriors = curve.evaluate(gap.observed_gap_, gap._training_log_odds())
                chosen[i] = steps.relabel(posteriors, known).decided
        matched = _match_each(steps.reweight, rows, list(chosen.values()), features)
        for i, matching in zip(chosen, matched, strict=True):
            reweight = None if matching is None else PrecomputedMatching(matching)
            at_value = replace(steps, boundary=float(grid[i]), reweight=reweight)
            fitted = fit_pgpu(rows, known, at_value, np.random.default_rng(final_seed))
            scores[i] = criterion(labelled[test], fitted.classifier)
    if np.isnan(scores).any():
        msg = f"scoring must return a number. Got NaN from {criterion!r}."
        raise InvalidInputError(msg)
    return np.asarray(scores[first][which])


def _distinct(steps: Steps, gap: Vector, grid: Vector) -> tuple[Rows, Rows]:
    """Return the values with distinct selections, and which of them each value equals."""
    if steps.rule == "expectation":
        # Here the weights of samples depend on the value itself.
        every = np.arange(grid.size)
        return every, every
    # Samples at or below the boundary are the first in the order of gaps, so that their
    # number determines the selection.
    below = [np.count_nonzero(gap <= value) for value in grid]
    _, first, which = np.unique(below, return_index=True, return_inverse=True)
    return first, which


@dataclass(frozen=True, slots=True)
class PrecomputedMatching:
    """The result of a kernel mean matching, computed with those of other candidates."""

    result: KMMResult

    def match(self, *_: Any, **__: Any) -> KMMResult:
        """Return the result."""
        return self.result


def _match_each(
    matching: KernelMeanMatching | None,
    samples: Matrix,
    chosen: list[Mask],
    features: TrainingFeatures | None,
) -> list[KMMResult | None]:
    """Match selections by one kernel matrix; None for those that need no weights."""
    found: list[KMMResult | None] = [None] * len(chosen)
    if matching is None:
        return found
    # A selection of all samples needs no weights, unless the upper bound is below 1.
    partial = [i for i, c in enumerate(chosen) if matching.upper < 1.0 or not c.all()]
    masks = [chosen[i] for i in partial]
    if features is not None:
        # Kernel features exist to avoid a kernel matrix of all samples.
        results = [matching.match(samples, mask, features=features) for mask in masks]
    else:
        results = matching.match_each(samples, masks) if masks else []
    for i, result in zip(partial, results, strict=True):
        found[i] = result
    return found


class FinalOnFold:
    """Fits final classifiers on a fold, with one kernel matrix where possible.

    In place of a fitted classifier it returns its predictions, which are then scored.
    """

    def __init__(
        self,
        fit: Callable[[Any, SoftLabels], Any],
        train: Matrix,
        test: Matrix,
        features: TrainingFeatures | None,
    ) -> None:
        self.fit = fit
        self.train = train
        self.test = test
        self.features = features
        self._kernels: dict[float, tuple[Matrix, Matrix]] = {}

    def fit_and_predict(self, estimator: Any, data: SoftLabels) -> Mask:
        """Fit to soft labels of training rows, and return which test rows are positive."""
        share = data.share
        is_hard = not ((share > 0.0) & (share < 1.0)).any()
        if is_hard and share.size <= _MOST_ROWS and _shares_a_kernel(estimator):
            return self._predict_by_kernel(estimator, share, data.weight)
        # If the kernel width depends on the rows, libsvm computes the values that it needs
        # faster than we could compute a new matrix of all rows.
        fitted = self.fit(estimator, replace(data, features=self.features))
        if isinstance(fitted, FastSVC):
            return fitted.decision_function(self.test) > 0.0  # faster than predict
        predicted: Mask = fitted.predict(self.test) == 1
        return predicted

    def _predict_by_kernel(self, estimator: SVC, share: Vector, weight: Vector) -> Mask:
        """Fit libsvm to all rows, with weight 0 for those left out, which it skips."""
        gamma = estimator.gamma
        gamma = 1.0 / self.train.shape[1] if gamma == "auto" else float(gamma)
        if gamma not in self._kernels:
            self._kernels[gamma] = (
                rbf_kernel(self.train, gamma=gamma),
                rbf_kernel(self.test, self.train, gamma=gamma),
            )
        train, test = self._kernels[gamma]
        positive, negative = weigh_copies(share, weight)
        weights = positive + negative
        model = clone(estimator).set_params(kernel="precomputed")
        with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            model.fit(train, positive > 0.0, sample_weight=weights)
        # libsvm counts support vectors among the rows that have weight.
        support = np.flatnonzero(weights)[model.support_]
        decision = test[:, support] @ model.dual_coef_[0] + model.intercept_[0]
        predicted: Mask = decision > 0.0
        return predicted


def _shares_a_kernel(estimator: Any) -> bool:
    """Return whether the kernel does not depend on the rows that are fitted on."""
    return (
        type(estimator) in (SVC, FastSVC)
        and estimator.kernel == "rbf"
        and (estimator.gamma == "auto" or isinstance(estimator.gamma, Real))
        and estimator.class_weight is None
        and estimator.probability in (False, "deprecated")
    )
