"""The search for a boundary on one fold, with the work shared between candidates."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError, ProbgapWarning
from probgap._core.features import TrainingFeatures
from probgap._core.folds import Fold
from probgap._core.kernels import Matrix
from probgap._core.rng import draw_seed
from probgap._core.threads import one_thread
from probgap.boundary import Boundary, estimate_boundary
from probgap.pgpu._base import BasePGPU, spread_weights
from probgap.pgpu._fold import FitOnFold
from probgap.pgpu._posterior import posterior_from_gap
from probgap.relabel import Relabelling
from probgap.reweight import KMMResult, match_selections

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
Vector = NDArray[np.float64]
Criterion = Callable[[Mask, Mask], float]


def score_fold(
    model: BasePGPU,
    criterion: Criterion,
    samples: Matrix,
    labelled: Mask,
    fold: Fold,
    grid: Vector,
    seed: int,
) -> Vector:
    """Score every boundary on one fold: one gap, and one fit per distinct selection."""
    train, test = fold
    # One thread, so that the bits do not depend on how many folds run at once.
    with one_thread():
        rng = np.random.default_rng(seed)
        model_of_gap, features = model._fit_gap(samples[train], labelled[train], rng)
        gap = model_of_gap.observed_gap_
        seed = draw_seed(rng)
        first, which = _distinct(model, gap, grid)
        predictions = _predict_with_each(
            model, grid[first], gap, samples, labelled, fold, features, seed
        )
        distinct = [
            -np.inf
            if predicted is None
            else float(criterion(labelled[test], predicted))
            for predicted in predictions
        ]
        scores = np.array(distinct)[which]
    if np.isnan(scores).any():
        msg = f"scoring must return a number. Got NaN from {criterion!r}."
        raise InvalidInputError(msg)
    return scores


def _distinct(model: BasePGPU, gap: Vector, grid: Vector) -> tuple[Rows, Rows]:
    """Give the values that choose differently, and which of them each value equals."""
    if model.relabelling == "expectation":
        # What a sample counts for depends on the value itself.
        every = np.arange(grid.size)
        return every, every
    # The samples at or below the boundary are the first so many by gap: their number
    # says which they are, and that settles who is chosen.
    below = [np.count_nonzero(gap <= value) for value in grid]
    _, first, which = np.unique(below, return_index=True, return_inverse=True)
    return first, which


def _boundary_of(value: float, gap: Vector, labelled: Mask) -> Boundary | None:
    """Take a value of the grid for the boundary, or nothing where it is no use."""
    boundary = estimate_boundary(gap, labelled, rule=float(value), n_bootstrap=0)
    return boundary if boundary.fallback is None else None


def _predict_with_each(
    model: BasePGPU,
    values: Vector,
    gap: Vector,
    samples: Matrix,
    labelled: Mask,
    fold: Fold,
    features: TrainingFeatures | None,
    seed: int,
) -> list[Mask | None]:
    """Predict the test part of a fold, once for each value that is of any use.

    The work is shared: one kernel matrix serves to match all selections, and one to
    train all support vector machines, where the final classifier is one whose kernel
    is known.
    """
    train = fold[0]
    with warnings.catch_warnings():
        # A candidate that is no use loses; only the chosen one is worth a warning.
        warnings.simplefilter("ignore", ProbgapWarning)
        boundaries = [_boundary_of(v, gap, labelled[train]) for v in values]
        relabelled = {
            i: model._relabel(
                gap,
                labelled[train],
                posterior_from_gap(gap, labelled[train], boundary.value),
                boundary,
            )
            for i, boundary in enumerate(boundaries)
            if boundary is not None
        }
    weights = _weigh_each(model, samples[train], relabelled, features)
    predictions: list[Mask | None] = [None] * values.size
    fit = FitOnFold(samples, fold, features)
    for i, relabelling in relabelled.items():
        estimator = model._final_estimator(train.size, np.random.default_rng(seed))
        predictions[i] = fit.predict(estimator, relabelling.positive_share, weights[i])
    return predictions


def _weigh_each(
    model: BasePGPU,
    samples: Matrix,
    relabelled: dict[int, Relabelling],
    features: TrainingFeatures | None,
) -> dict[int, Vector]:
    """Weight each selection so that it stands for all samples."""
    chosen = {i: relabelling.decided for i, relabelling in relabelled.items()}
    # Where nothing is left out there is nothing to match, unless 1 is too large a weight.
    partial = [i for i, mask in chosen.items() if not mask.all() or model.upper < 1.0]
    matched: dict[int, KMMResult] = {}
    if model.reweight and model._n_kernel_features(samples.shape[0]) is not None:
        # A kernel matrix of all samples is what kernel features are there to avoid.
        matched = {i: model._match(samples, chosen[i], features) for i in partial}
    elif model.reweight and partial:
        results = match_selections(
            samples,
            [chosen[i] for i in partial],
            gamma=model.gamma,
            upper=model.upper,
            slack=model.slack,
            kernel=model.kernel,
        )
        matched = dict(zip(partial, results, strict=True))
    return {i: spread_weights(mask, matched.get(i)) for i, mask in chosen.items()}
