"""What every gap estimator can do once it knows P(s=1 | x)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from probgap._core.kernels import Matrix

Vector = NDArray[np.float64]


class GapClassifier(TransformerMixin, ClassifierMixin, BaseEstimator):
    """A classifier of labelled against unlabelled whose decision is the observed gap."""

    classes_: NDArray[Any]

    @abstractmethod
    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Give P(s=0 | x) and P(s=1 | x)."""

    def decision_function(self, X: Matrix) -> Vector:
        """Give the observed gap of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The gap, in [-1, 1].
        """
        return gap_of(self.predict_proba(X))

    def predict(self, X: Matrix) -> NDArray[Any]:
        """Say whether each sample is likelier to be labelled than not.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        labelled = self.decision_function(X) > 0.0
        predicted: NDArray[Any] = self.classes_[labelled.astype(np.intp)]
        return predicted

    def transform(self, X: Matrix) -> NDArray[np.float64]:
        """Give the observed gap as a column, for use inside a pipeline.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 1)
            The gap, in [-1, 1].
        """
        return self.decision_function(X)[:, None]

    def get_feature_names_out(
        self,
        input_features: ArrayLike | None = None,  # noqa: ARG002 (scikit-learn passes it)
    ) -> NDArray[Any]:
        """Name the column that ``transform`` gives.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Not used: the gap is one column whatever the input.

        Returns
        -------
        ndarray of shape (1,)
            ``["observed_gap"]``.
        """
        check_is_fitted(self)
        return np.array(["observed_gap"], dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Say that there are two classes and that sparse input is welcome."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def gap_of(proba: NDArray[np.float64]) -> Vector:
    """Turn probabilities of unlabelled and labelled into a gap."""
    return np.clip(proba[:, 1] - proba[:, 0], -1.0, 1.0)
