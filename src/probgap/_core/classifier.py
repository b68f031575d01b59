"""What every classifier of the true label does alike: predict by the sign of a decision."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from probgap._core.types import Matrix


class TrueLabelClassifier(ClassifierMixin, BaseEstimator):
    """A classifier fitted on observed labels that predicts true ones."""

    classes_: NDArray[Any]
    positive_index_: int

    @abstractmethod
    def _decide(self, X: Matrix) -> NDArray[np.float64]:
        """Give a score that is above 0 where the sample looks positive."""

    def decision_function(self, X: Matrix) -> NDArray[np.float64]:
        """Give a score that is above 0 exactly where ``predict`` is positive.

        That is, where it is ``classes_[1]``: if ``pos_label`` makes the lesser value
        positive, the sign turns with it, as scikit-learn's scorers expect.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The decision of the final classifier; where that one gives probabilities
            of its own, the difference between them.
        """
        decision = self._decide(X)
        return decision if self.positive_index_ == 1 else -decision

    def predict(self, X: Matrix) -> NDArray[Any]:
        """Predict the true label of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        positive = self._decide(X) > 0.0
        at = np.where(positive, self.positive_index_, 1 - self.positive_index_)
        predicted: NDArray[Any] = self.classes_[at]
        return predicted

    def __sklearn_tags__(self) -> Any:
        """Say that there are two classes and that sparse input is welcome."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags
