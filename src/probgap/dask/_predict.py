"""Predictions of a fitted classifier, made block by block when they are asked for."""

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

Lazy = Any  # a dask array or dataframe

# What belongs to training rows, and what predictions do not need.
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
    """Predicts by a fitted classifier for memory, block by block."""

    model_: pgpu.PGPUClassifier
    classes_: NDArray[Any]

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
            Values of ``classes_``.
        """
        check_is_fitted(self)
        return self._apply(X, "predict", self.classes_.dtype)

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
        return self._apply(X, "decision_function", np.dtype(np.float64))

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
        if not hasattr(X, "to_delayed"):
            return getattr(self.model_, method)(X)
        packed = _pack(self.model_)
        if hasattr(X, "map_partitions"):
            pd = load_library("pandas", extra="dask", purpose="dask dataframes")
            if columns is None:
                meta = pd.Series([], dtype=dtype, name=method)
            else:
                empty = {name: np.empty(0, dtype) for name in columns.tolist()}
                meta = pd.DataFrame(empty)
            return X.map_partitions(
                _on_frame, packed, method, columns, dtype, meta=meta
            )
        X = X.rechunk({1: -1})
        if columns is None:
            return X.map_blocks(
                _on_array, packed, method, dtype, dtype=dtype, drop_axis=1
            )
        chunks = (X.chunks[0], (columns.size,))
        return X.map_blocks(
            _on_array, packed, method, dtype, dtype=dtype, chunks=chunks
        )


def _pack(model: pgpu.PGPUClassifier) -> bytes:
    """Pack what predicts, so that a graph of many blocks stays small."""
    slim = copy.copy(model)
    if hasattr(slim.estimator_, "held_out_"):
        slim.estimator_ = copy.copy(slim.estimator_)
        del slim.estimator_.held_out_
    # Where two estimates are averaged, one of them is read off the gap.
    needed = {"gap_estimator_", "reading_"} if model.averages_ else set()
    for name in set(_NOT_NEEDED) - needed:
        delattr(slim, name)
    return zlib.compress(pickle.dumps(slim), level=1)


@lru_cache(maxsize=4)
def _unpack(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))


def _on_array(
    block: Any, packed: bytes, method: str, kind: np.dtype[Any]
) -> NDArray[Any]:
    if block.shape[0] == 0:
        return np.empty((0, 2) if method == "predict_proba" else 0, kind)
    found: NDArray[Any] = getattr(_unpack(packed), method)(block)
    return found


def _on_frame(
    frame: Any,
    packed: bytes,
    method: str,
    columns: NDArray[Any] | None,
    kind: np.dtype[Any],
) -> Any:
    pd = load_library("pandas", extra="dask", purpose="dask dataframes")
    found = _on_array(frame, packed, method, kind)
    if columns is None:
        return pd.Series(found, index=frame.index, name=method)
    return pd.DataFrame(found, index=frame.index, columns=columns.tolist())
