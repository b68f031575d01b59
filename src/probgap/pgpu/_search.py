"""The search for a boundary on one fold, with the work shared between candidates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError, ProbgapWarning
from probgap._core.folds import Fold
from probgap._core.kernels import TrainingFeatures
from probgap._core.runtime import draw_seed, one_thread
from probgap._core.svm import FastSVC
from probgap._core.types import Mask, Matrix, Vector
from probgap.pgpu.steps import Shares, Steps, choose_steps, spread_weights
from probgap.relabel import Relabelling

Rows = NDArray[np.intp]
Criterion = Callable[[Mask, Mask], float]


def score_fold(
    model: Any,
    criterion: Criterion,
    samples: Matrix,
    labelled: Mask,
    fold: Fold,
    grid: Vector,
    seed: int,
) -> Vector:
    """Score every boundary on one fold: the steps of the algorithm, each for all of them.

    One gap, one kernel matrix to match by, and one fit for each distinct selection.
    """
    train, test = fold
    rows, known = samples[train], labelled[train]
    scores = np.full(grid.size, -np.inf)
    # One thread, so that the bits do not depend on how many folds run at once.
    with one_thread(), warnings.catch_warnings():
        # A candidate that is no use loses; only the chosen one is worth a warning.
        warnings.simplefilter("ignore", ProbgapWarning)
        rng = np.random.default_rng(seed)
        steps = choose_steps(model, train.size, boundary=float(grid[0]))
        gap = steps.estimate_gap(rows, known, None, rng)
        features = steps.map_features(rows, known, rng)
        final_seed = draw_seed(rng)
        first, which = _distinct(steps, gap.observed_gap_, grid)
        found = {}
        for i in first:
            at_value = replace(steps, boundary=float(grid[i]))
            curve = at_value.place_boundary(gap, known, None, None, rng)
            if curve.boundary.fallback is None:  # there are negatives to learn from
                placed = curve.place(gap.observed_gap_, gap._training_log_odds())
                found[i] = curve, steps.relabel(placed, known)
        relabelled = [relabelling for _, relabelling in found.values()]
        weights = _weigh_each(steps, rows, relabelled, features)
        for (i, (curve, result)), weight in zip(found.items(), weights, strict=True):
            share = result.positive_share
            data = Shares(rows, share, weight, known, features, curve)
            classifier = steps.classify(data, np.random.default_rng(final_seed))
            predicted = _find_positives(classifier, samples[test])
            scores[i] = criterion(labelled[test], predicted)
    if np.isnan(scores).any():
        msg = f"scoring must return a number. Got NaN from {criterion!r}."
        raise InvalidInputError(msg)
    of_each: Vector = scores[first][which]
    return of_each


def _distinct(steps: Steps, gap: Vector, grid: Vector) -> tuple[Rows, Rows]:
    """Return the values that choose differently, and which of them each value equals."""
    if steps.rule == "expectation":
        # What a sample counts for depends on the value itself.
        every = np.arange(grid.size)
        return every, every
    # The samples at or below the boundary are the first so many by gap: their number
    # tells which they are, and that settles who is chosen.
    below = [np.count_nonzero(gap <= value) for value in grid]
    _, first, which = np.unique(below, return_index=True, return_inverse=True)
    return first, which


def _weigh_each(
    steps: Steps,
    samples: Matrix,
    relabelled: list[Relabelling],
    features: TrainingFeatures | None,
) -> list[Vector]:
    """Return the weights of several selections, from one kernel matrix."""
    weights = [spread_weights(each.decided, None) for each in relabelled]
    matching = steps.reweight
    if matching is None:
        return weights
    # Where nothing is left out there is nothing to match, unless 1 is too large.
    partial = [
        i
        for i, each in enumerate(relabelled)
        if each.n_undecided or matching.upper < 1.0
    ]
    chosen = [relabelled[i].decided for i in partial]
    if features is not None:
        # A kernel matrix of all samples is what kernel features are there to avoid.
        results = [matching.match(samples, each, features=features) for each in chosen]
    else:
        results = matching.match_each(samples, chosen) if chosen else []
    for i, result in zip(partial, results, strict=True):
        weights[i] = spread_weights(relabelled[i].decided, result)
    return weights


def _find_positives(classifier: Any, samples: Matrix) -> Mask:
    """Return which samples a classifier calls positive."""
    if isinstance(classifier, FastSVC):
        return classifier.decision_function(samples) > 0.0  # faster than to predict
    predicted: Mask = classifier.predict(samples) == 1
    return predicted
