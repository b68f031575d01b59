"""The naive baseline: unlabelled means negative."""

from __future__ import annotations

from typing import Any

import numpy as np

from probgap._core.checks import ObservedLabels
from probgap._core.runtime import RandomStateLike
from probgap._core.types import Matrix
from probgap.baselines._base import BaselineClassifier


class NaiveClassifier(BaselineClassifier):
    """Fit with every unlabelled sample as a negative.

    It assumes that no positive is unlabelled; otherwise it learns to miss positives like
    the unlabelled ones. Fitted on true labels, it is the oracle that the other methods are
    compared with.

    Parameters
    ----------
    estimator : classifier whose fit takes sample_weight, default=None
        ``None`` takes an RBF support vector machine.
    pos_label : object, default=None
        The value of ``y`` for a labelled positive; the greater if None.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the estimator.

    Attributes
    ----------
    estimator_ : object
        The fitted classifier.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order; ``positive_index_`` is that of the positive.
    n_features_in_, feature_names_in_ : int, ndarray
        Features seen in ``fit``, and their names if they were all strings.

    Examples
    --------
    >>> from probgap.baselines import NaiveClassifier
    >>> from probgap.datasets import make_square
    >>> X, y_true, _ = make_square(200, random_state=0)
    >>> bool(NaiveClassifier().fit(X, y_true).score(X, y_true) > 0.95)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        pos_label: object = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.estimator = estimator
        self.pos_label = pos_label
        self.random_state = random_state

    def _fit(
        self, samples: Matrix, labels: ObservedLabels, rng: np.random.Generator
    ) -> None:
        observed = labels.labelled.astype(np.int8)
        self.estimator_ = self._final_estimator(rng).fit(samples, observed)
