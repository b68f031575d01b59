"""A classifier that was fitted on blocks, asked about blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from probgap import pgpu
from probgap.dask import _foreign as foreign
from probgap.dask._lazy import apply_lazily

Lazy = Any  # a dask array or dataframe


class LazyClassifier(ClassifierMixin, BaseEstimator):
    """Predicts by a fitted classifier for memory, block by block."""

    model_: pgpu.PGPUClassifier
    classes_: NDArray[Any]
    estimator: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def predict(self, X: Lazy) -> Lazy:
        """Predict the true label of each row, when asked to compute.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array or series of shape (n_samples,)
            Values of ``classes_``. An array always, where ``estimator`` is one of one's
            own that predicts on dask alone.
        """
        check_is_fitted(self)
        return self._apply(X, "predict", self.classes_.dtype)

    def decision_function(self, X: Lazy) -> Lazy:
        """Give a score that is above 0 exactly where ``predict`` is ``classes_[1]``.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array or series of shape (n_samples,)
            The decision of the final classifier.
        """
        return self._apply(X, "decision_function", np.dtype(np.float64))

    def predict_proba(self, X: Lazy) -> Lazy:
        """Give P(Y | x), the chance of being negative and of being positive.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array or dataframe of shape (n_samples, 2)
            Probabilities of the true label, in the order of ``classes_``.
        """
        check_is_fitted(self)
        columns: NDArray[Any] = self.classes_
        return self._apply(X, "predict_proba", np.dtype(np.float64), columns)

    def _apply(
        self,
        X: Lazy,
        method: str,
        dtype: np.dtype[Any],
        columns: NDArray[Any] | None = None,
    ) -> Lazy:
        check_is_fitted(self)
        model = self.model_
        kept = foreign.stays_on_dask(model.estimator_, self.estimator)
        if kept and hasattr(X, "to_delayed"):
            model, X = foreign.by_chances(model, X)
        return apply_lazily(model, method, X, dtype, columns)
