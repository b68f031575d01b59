"""Lazy predictions of a fitted classifier, block by block."""

from __future__ import annotations

import copy
import pickle
import zlib
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from probgap import pgpu
from probgap._core.errors import load_library
from probgap.dask.engine import Lazy

# Attributes about training rows, and others that predictions do not need.
_NOT_NEEDED = (
    "gap_estimator_",
    "observed_gap_",
    "posterior_",
    "reading_",
    "relabelling_",
    "row_weight_",
    "sample_weight_",
)


class LazyClassifier(ClassifierMixin, BaseEstimator):
    """Predicts block by block with a fitted in-memory classifier."""

    model_: pgpu.PGPUClassifier
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def predict(self, X: Lazy) -> Lazy:
        """Predict the true label of each row, lazily.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array or series of shape (n_samples,)
            Values of ``classes_``.
        """
        return self._apply(X, "predict")

    def decision_function(self, X: Lazy) -> Lazy:
        """Return a score that is above 0 exactly where ``predict`` is ``classes_[1]``.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array or series of shape (n_samples,)
            The decision of the final classifier.
        """
        return self._apply(X, "decision_function")

    def predict_proba(self, X: Lazy) -> Lazy:
        """Return P(Y | x), the probabilities of being negative and of being positive.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array or dataframe of shape (n_samples, 2)
            Probabilities of the true label, in the order of ``classes_``.
        """
        return self._apply(X, "predict_proba")

    def _apply(self, X: Lazy, method: str) -> Lazy:
        check_is_fitted(self)
        if not hasattr(X, "to_delayed"):
            return getattr(self.model_, method)(X)
        empty = np.empty(0, self.classes_.dtype if method == "predict" else np.float64)
        if method == "predict_proba":
            empty = np.empty((0, 2))
        model = _pack(self.model_)
        if hasattr(X, "map_partitions"):
            meta = _predict_frame(X._meta, b"", method, empty, self.classes_)
            return X.map_partitions(
                _predict_frame, model, method, empty, self.classes_, meta=meta
            )
        X = X.rechunk({1: -1})
        form: dict[str, Any] = {"drop_axis": 1}
        if empty.ndim == 2:
            form = {"chunks": (X.chunks[0], (2,))}
        return X.map_blocks(_predict, model, method, empty, dtype=empty.dtype, **form)


def _pack(model: pgpu.PGPUClassifier) -> bytes:
    """Serialise only what predictions need, so that the graph stays small."""
    slim = copy.copy(model)
    if hasattr(slim.estimator_, "held_out_"):
        slim.estimator_ = copy.copy(slim.estimator_)
        del slim.estimator_.held_out_
    # If two posteriors are averaged, one of them is read off the gap.
    needed = {"gap_estimator_", "reading_"} if model.averages_ else set()
    for name in set(_NOT_NEEDED) - needed:
        delattr(slim, name)
    return zlib.compress(pickle.dumps(slim), level=1)


@lru_cache(maxsize=4)  # once for all blocks of a worker
def _unpack(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))


def _predict(
    block: Any, model: bytes, method: str, empty: NDArray[Any]
) -> NDArray[Any]:
    if block.shape[0] == 0:
        return empty
    found: NDArray[Any] = getattr(_unpack(model), method)(block)
    return found


def _predict_frame(
    frame: Any, model: bytes, method: str, empty: NDArray[Any], classes: NDArray[Any]
) -> Any:
    pd = load_library("pandas", extra="dask", purpose="dask dataframes")
    found = _predict(frame, model, method, empty)
    if found.ndim == 1:
        return pd.Series(found, index=frame.index, name=method)
    return pd.DataFrame(found, index=frame.index, columns=classes.tolist())
