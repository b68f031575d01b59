"""Scores: the recovered share of a method, and a score without negatives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.checks import read_labels
from probgap._core.errors import InvalidInputError
from probgap._core.validation import lee_liu

__all__ = ["lee_liu_score", "recovered_share"]


def recovered_share(method: float, naive: float, clean: float) -> float:
    """Return the share of the loss due to missing labels that a method recovers.

    ``(method - naive) / (clean - naive)``: 0 for a method that is as good as ignoring
    the problem, 1 for one that is as good as knowing every label. It does not depend on
    the scale of the scores, and is meaningless if clean and naive are about equal.

    Parameters
    ----------
    method, naive, clean : float
        Scores against true labels of the method, of a classifier that takes
        unlabelled as negative, and of the same classifier fitted on true labels.

    Returns
    -------
    float
        The share; NaN if ``clean`` equals ``naive``.

    Examples
    --------
    >>> from probgap.metrics import recovered_share
    >>> round(recovered_share(0.95, 0.90, 0.96), 3)
    0.833
    """
    for name, value in (("method", method), ("naive", naive), ("clean", clean)):
        if not np.isfinite(value):
            msg = f"{name} must be a finite score. Got {value!r}."
            raise InvalidInputError(msg)
    return float((method - naive) / (clean - naive)) if clean != naive else np.nan


def lee_liu_score(
    y: ArrayLike, y_pred: ArrayLike, *, pos_label: object = None
) -> float:
    """Score predictions without known negatives.

    ``recall ** 2 / P(predicted positive)``, with the recall of labelled positives. It
    ranks as precision times recall does if labels are missing at random; with biased
    labels the recall, and so the score, is too high.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Observed labels.
    y_pred : array-like of shape (n_samples,)
        Predictions, of the same two values.
    pos_label : object, default=None
        The positive value. ``None`` takes the greater of the two in ``y``.

    Returns
    -------
    float
        The score, at least 0; greater is better.

    References
    ----------
    .. [1] Lee, Liu, "Learning with Positive and Unlabeled Examples Using Weighted
       Logistic Regression", ICML 2003.

    Examples
    --------
    >>> from probgap.metrics import lee_liu_score
    >>> lee_liu_score([1, 1, 0, 0], [1, 1, 1, 0])
    1.3333333333333333
    """
    labels = read_labels(y, pos_label)
    predicted = np.asarray(y_pred)
    if predicted.shape != labels.labelled.shape:
        msg = (
            f"y_pred must have one value for each of the {labels.labelled.size} "
            f"samples. Got shape {predicted.shape}."
        )
        raise InvalidInputError(msg)
    return lee_liu(labels.labelled, predicted == labels.classes[labels.positive])
