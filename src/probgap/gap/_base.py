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
    positive_index_: int

    @abstractmethod
    def _chance(self, X: Matrix) -> Vector:
        """Give P(s=1 | x), the chance to be labelled."""

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Give the chances to be unlabelled and to be labelled.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        chance = self._chance(X)
        columns = [1.0 - chance, chance]
        return np.column_stack(columns[:: 1 if self.positive_index_ == 1 else -1])

    def decision_function(self, X: Matrix) -> Vector:
        """Give the observed gap of each sample.

        If ``pos_label`` makes the lesser value positive the sign is turned, as
        scikit-learn's scorers expect; ``transform`` gives the gap as it is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The gap, in [-1, 1].
        """
        gap = gap_of(self._chance(X))
        return gap if self.positive_index_ == 1 else -gap

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
        labelled = gap_of(self._chance(X)) > 0.0
        at = np.where(labelled, self.positive_index_, 1 - self.positive_index_)
        predicted: NDArray[Any] = self.classes_[at]
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
        return gap_of(self._chance(X))[:, None]

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


def gap_of(chance: Vector) -> Vector:
    """Turn the chance to be labelled into a gap."""
    return np.clip(2.0 * chance - 1.0, -1.0, 1.0)
