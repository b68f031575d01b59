"""Doing nothing about it: unlabelled means negative."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context

from probgap._core.checks import check_fit_inputs
from probgap._core.runtime import RandomStateLike, as_generator
from probgap._core.types import Matrix
from probgap.baselines._base import BaselineClassifier


class NaiveClassifier(BaselineClassifier):
    """Take every unlabelled sample for negative, and fit.

    It assumes that nothing is hidden. With hidden positives it misses exactly those
    that look like the ones nobody has labelled yet. Fitted on true labels, it is the
    oracle that the other methods are measured against.

    Parameters
    ----------
    estimator : classifier whose fit takes sample_weight, default=None
        ``None`` takes an RBF support vector machine.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive. ``None`` takes the
        greater of the two.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the estimator.

    Attributes
    ----------
    estimator_ : object
        The fitted classifier.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order.
    positive_index_ : int
        Which of them is positive: 1, unless ``pos_label`` says otherwise.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where ``X`` had names that are all strings.

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

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit on the observed labels as if they were true.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Observed labels: labelled positive, or unlabelled.

        Returns
        -------
        NaiveClassifier
            The fitted classifier.
        """
        samples, labels = check_fit_inputs(self, X, y, self.pos_label)
        rng = as_generator(self.random_state)
        self.classes_, self.positive_index_ = labels.classes, labels.positive
        self.estimator_ = self._final_estimator(rng).fit(
            samples, labels.labelled.astype(np.int8)
        )
        return self
