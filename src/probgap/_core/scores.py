"""Scores that need no true labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
