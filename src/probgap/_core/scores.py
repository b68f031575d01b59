"""Scores that need no true labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from probgap._core.types import Array

# Nobody is surer than this of a label not seen.
_SURE = 1e-6


def observed_accuracy(
    labelled: NDArray[np.bool_], predicted: NDArray[np.bool_]
) -> float:
    """Share of samples whose prediction agrees with the observed label."""
    return float(np.mean(labelled == predicted))


def lee_liu(labelled: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """Squared recall on labelled positives over the share predicted positive.

    It ranks classifiers as precision times recall does when labels are missing at
    random, without needing a negative.
    """
    return lee_liu_by_counts(
        int(np.count_nonzero(predicted[labelled])),
        int(np.count_nonzero(labelled)),
        int(np.count_nonzero(predicted)),
        predicted.size,
    )


def lee_liu_by_counts(
    n_found: float, n_labelled: float, n_predicted: float, n_samples: float
) -> float:
    """Return it for so many predicted positive, labelled ones among them, of so many."""
    if n_predicted == 0 or n_labelled == 0:
        return 0.0
    return (n_found / n_labelled) ** 2 / (n_predicted / n_samples)


def log_likelihoods(chance: Array, labelled: NDArray[np.bool_]) -> Array:
    """Return the log-likelihood of each label, by the chance of being labelled."""
    sure = np.clip(chance, _SURE, 1.0 - _SURE)
    likelihood: Array = xlogy(labelled, sure) + xlogy(~labelled, 1.0 - sure)
    return likelihood


def in_standard_errors(gain: Array, weight: Array | None = None) -> float:
    """Return the mean of a gain, sample by sample, as a multiple of its standard error."""
    share = np.ones(gain.size) if weight is None else weight
    share = share / share.sum()
    mean = float(share @ gain)
    error = float(np.sqrt(share**2 @ (gain - mean) ** 2))
    return mean / max(error, float(np.finfo(np.float64).tiny))
