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
    share = float(np.mean(predicted))
    if share == 0.0 or not labelled.any():
        return 0.0
    recall = float(np.mean(predicted[labelled]))
    return recall**2 / share
