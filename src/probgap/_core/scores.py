"""Scores that need no true labels."""

import numpy as np
from scipy.special import xlogy

from probgap._core.types import Array, Mask

# Nobody is surer than this of a label not seen.
_SURE = 1e-6


def observed_accuracy(labelled: Mask, predicted: Mask) -> float:
    """Return the share of samples whose prediction agrees with the observed label."""
    return float(np.mean(labelled == predicted))


def lee_liu(labelled: Mask, predicted: Mask, weight: Array | None = None) -> float:
    """Return the squared recall on labelled positives over the share predicted positive.

    It ranks classifiers as precision times recall does when labels are missing at
    random, without needing a negative.
    """
    if not predicted.any() or not labelled.any():
        return 0.0
    counts = np.ones(labelled.size) if weight is None else weight
    recall = counts[predicted & labelled].sum() / counts[labelled].sum()
    return float(recall**2 / (counts[predicted].sum() / counts.sum()))


def log_likelihoods(chance: Array, labelled: Mask) -> Array:
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
