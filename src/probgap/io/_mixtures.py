"""Judges of mixtures and readings: their numbers are finite, and fit each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from probgap.io._walk import name_of

# What predicts by a mixture.
MIXED = ("probgap._core.mixed.MixedClassifier", "probgap.gap._mixed.MixedGapEstimator")

_LEARNERS = "probgap._core.learners"
_ROUNDING = 1e-6


def mixture_is_sound(mixture: Any) -> bool:
    """Judge a mixture: a weight for each learner, and all need the columns of its view.

    Trees follow indices of columns without asking how many there are.
    """
    learners = mixture.learners
    _, n_columns = _shape_of_view(mixture)
    return (
        type(learners) is tuple
        and len(learners) > 0
        and all(_width(learner) == n_columns for learner in learners)
        and _is_array(mixture.weights, (len(learners),), least=0.0)
        and _is_number(mixture.intercept)
    )


def columns_are_sound(view: Any) -> bool:
    """Judge a view of the columns themselves."""
    n = view.scale.size
    return (
        n > 0
        and _is_array(view.centre, (n,))
        and _is_array(view.scale, (n,), above=0.0)
    )


def directions_are_sound(view: Any) -> bool:
    """Judge a view of components of dense columns."""
    n_inputs, n_columns = view.basis.shape
    return (
        min(n_inputs, n_columns) > 0
        and _is_array(view.basis, (n_inputs, n_columns))
        and _is_array(view.scale, (n_inputs,), above=0.0)
        and _is_array(view.offset, (n_columns,))
    )


def words_are_sound(view: Any) -> bool:
    """Judge a view of components of sparse columns."""
    n_inputs, n_columns = view.basis.shape
    return (
        min(n_inputs, n_columns) > 0
        and type(view.counts) is bool
        and _is_array(view.basis, (n_inputs, n_columns))
        and _is_array(view.factor, (n_inputs,))
    )


def kernel_is_sound(learner: Any) -> bool:
    """Judge logistic regression on kernel features: landmarks, rotation, coefficients."""
    features = learner.features
    n_landmarks, n_features = features.landmarks.shape
    n_components = features.rotation.shape[1]
    return (
        name_of(type(features)) == "probgap._core.features.KernelFeatures"
        and min(n_landmarks, n_features, n_components) > 0
        and _is_array(features.landmarks, (n_landmarks, n_features))
        and _is_number(features.gamma)
        and features.gamma > 0.0
        and _is_array(features.rotation, (n_landmarks, n_components))
        and _is_array(learner.scale, (n_features,), above=0.0)
        and _is_array(learner.coef, (n_components,))
        and _is_number(learner.intercept)
    )


def linear_is_sound(learner: Any) -> bool:
    """Judge logistic regression: finite coefficients."""
    return _is_array(learner.coef, (learner.coef.size,)) and _is_number(
        learner.intercept
    )


def owner_is_sound(owner: Any) -> bool:
    """Judge what predicts by a mixture: it expects the columns that the mixture does.

    Without a number of its own it would take samples of any, and trees would read
    outside of them.
    """
    expected = owner.n_features_in_
    return type(expected) is int and _inputs_of(owner) == expected


def classifier_is_sound(classifier: Any) -> bool:
    """Judge a classifier: the mixtures in it expect the columns that it does."""
    parts = (getattr(classifier, n, None) for n in ("gap_estimator_", "estimator_"))
    mixed = [part for part in parts if name_of(type(part)) in MIXED]
    expected = getattr(classifier, "n_features_in_", None)
    return all(type(expected) is int and _inputs_of(part) == expected for part in mixed)


def _inputs_of(owner: Any) -> int:
    mixture = owner.mixture_
    if name_of(type(mixture)) != f"{_LEARNERS}.Mixture":
        msg = f"it predicts by a {type(mixture).__name__}"
        raise TypeError(msg)
    return _shape_of_view(mixture)[0]


def curves_are_sound(curves: Any) -> bool:
    """Judge curves: as many of each number, within the range that it can have."""
    n = curves.weights.size
    return (
        n > 0
        and _is_array(curves.weights, (n,), least=0.0)
        and abs(float(curves.weights.sum()) - 1.0) < _ROUNDING
        and all(
            _is_array(part, (n,), least=0.0, most=1.0)
            for part in (curves.ceiling, curves.share)
        )
        and _is_array(curves.middle, (2, n))
        and _is_array(curves.width, (2, n), above=0.0)
        and _is_array(curves.spread, (n,), above=0.0)
        and _is_array(curves.shift, (n,))
    )


def reading_is_sound(reading: Any) -> bool:
    """Judge a reading: curves, finite numbers, and scores to count with."""
    numbers = ("boundary", "class_prior", "strangeness", "slope", "offset")
    counts = ("n_hidden", "n_labelled", "n_unlabelled")
    intervals = (reading.class_prior_interval, reading.n_hidden_interval)
    return (
        name_of(type(reading.curves)) == "probgap.reading._curves.Curves"
        and all(_is_number(getattr(reading, name)) for name in (*numbers, *counts))
        and all(getattr(reading, name) >= 0.0 for name in counts)
        and all(
            type(ends) is tuple and len(ends) == 2 and all(map(_is_number, ends))
            for ends in intervals
        )
        and reading.scores.size > 0
        and _is_array(reading.scores, (reading.scores.size,))
    )


def _is_array(
    array: Any,
    shape: tuple[int, ...],
    *,
    least: float = -np.inf,
    above: float = -np.inf,
    most: float = np.inf,
) -> bool:
    return bool(
        type(array) is np.ndarray
        and array.dtype.kind == "f"
        and array.shape == shape
        and np.isfinite(array).all()
        and (array >= least).all()
        and (array > above).all()
        and (array <= most).all()
    )


def _is_number(value: Any) -> bool:
    return type(value) in (float, int) and bool(np.isfinite(value))


def _width(learner: Any) -> int:
    """Return how many columns a learner needs; there is no other kind than these."""
    return int(_WIDTHS[name_of(type(learner))](learner))


def _shape_of_view(mixture: Any) -> tuple[int, int]:
    """Return how many columns a mixture takes, and how many its learners see."""
    if mixture.view is None:
        width = _width(mixture.learners[0])
        return width, width
    n_inputs, n_columns = _VIEWS[name_of(type(mixture.view))](mixture.view)
    return int(n_inputs), int(n_columns)


# Trees have been taken apart in a file, and are put together when it was read.
_WIDTHS: dict[str, Callable[[Any], int]] = {
    f"{_LEARNERS}.KernelLogistic": lambda learner: learner.scale.size,
    f"{_LEARNERS}.LinearLogistic": lambda learner: learner.coef.size,
    "probgap.io._stored.StoredForest": lambda learner: learner.n_features,
    "probgap.io._stored.StoredBoosting": lambda learner: learner.n_features,
}
_VIEWS: dict[str, Callable[[Any], tuple[int, int]]] = {
    "probgap._core.views.Columns": lambda view: (view.scale.size, view.scale.size),
    "probgap._core.views.Directions": lambda view: view.basis.shape,
    "probgap._core.views.Words": lambda view: view.basis.shape,
}
