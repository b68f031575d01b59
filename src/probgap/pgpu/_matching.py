"""Kernel mean matching in kernel features, for more samples than a kernel is for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from probgap._core.features import TrainingFeatures
from probgap.reweight import KMMResult, kernel_mean_matching

# Kernel features come in the order of what they hold of the kernel; beyond so many of
# the last, they hold little of a mean.
_MOST_FEATURES = 300


def match_features(
    features: TrainingFeatures,
    chosen: NDArray[np.bool_],
    *,
    upper: float,
    slack: float | None,
) -> KMMResult:
    """Weight chosen samples so that the mean of their features is that of all samples.

    Samples whose features are not held in memory get no weight.
    """
    last = features.map.n_components
    values = features.values[:, max(0, last - _MOST_FEATURES) : last]
    stands_for = (
        np.ones(values.shape[0]) if features.weight is None else features.weight
    )
    mean = np.average(values, axis=0, weights=stands_for)
    here = chosen[features.rows]
    # All that a linear kernel knows of a target is its mean.
    result = kernel_mean_matching(
        values[here], mean[None, :], kernel="linear", upper=upper, slack=slack
    )
    if features.weight is None:
        return result
    weights = np.zeros(chosen.size)
    share = features.weight[here] / features.weight[here].mean()
    weights[np.arange(chosen.size)[features.rows][here]] = result.weights / share
    return replace(result, weights=weights[chosen])
