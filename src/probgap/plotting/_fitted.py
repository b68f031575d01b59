"""What a picture needs of a fitted model, and of the labels it is shown with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from probgap._core.checks import check_labelled, read_labels
from probgap._core.errors import InvalidInputError
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A fitted classifier, the gaps of samples by it, and which are labelled."""

    classifier: PGPUClassifier | PGPUClassifierCV
    observed_gap: NDArray[np.float64]
    labelled: NDArray[np.bool_]


def look_at(estimator: Any, X: Any, y: ArrayLike) -> Seen:
    """Give the gaps of ``X``, or of the training samples where ``X`` is None."""
    steps, classifier = None, estimator
    if isinstance(estimator, Pipeline):
        steps, classifier = estimator[:-1], estimator[-1]
    if not isinstance(classifier, PGPUClassifier | PGPUClassifierCV):
        msg = (
            "estimator must be a PGPUClassifier or PGPUClassifierCV, or a pipeline that "
            f"ends in one. Got {type(classifier).__name__}."
        )
        raise InvalidInputError(msg)
    check_is_fitted(classifier)
    if X is None:
        gap = classifier.observed_gap_
    else:
        inner = X if steps is None or len(steps) == 0 else steps.transform(X)
        gap = classifier.gap_estimator_.transform(inner)[:, 0]
    positive = classifier.classes_[classifier.positive_index_]
    labelled = check_labelled(read_labels(y, positive).labelled, gap.size)
    return Seen(classifier, gap, labelled)
