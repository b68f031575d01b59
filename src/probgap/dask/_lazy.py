"""Predictions that are made when they are asked for, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.optional import load_library
from probgap.dask._values import BlockValues

Lazy = Any  # a dask array or dataframe


def apply_lazily(
    model: Any,
    method: str,
    X: Lazy,
    dtype: np.dtype[Any],
    columns: NDArray[Any] | None = None,
) -> Lazy:
    """Apply a method of a fitted model to blocks; what is in memory is done at once."""
    if hasattr(X, "map_partitions"):
        pd = load_library("pandas", extra="dask", purpose="dask dataframes")
        if columns is None:
            meta = pd.Series([], dtype=dtype, name=method)
        else:
            meta = pd.DataFrame({name: np.empty(0, dtype) for name in columns.tolist()})
        return X.map_partitions(_on_frame, model, method, columns, dtype, meta=meta)
    if hasattr(X, "map_blocks"):
        X = X.rechunk({1: -1})
        if columns is None:
            return X.map_blocks(
                _on_array, model, method, dtype, dtype=dtype, drop_axis=1
            )
        chunks = (X.chunks[0], (columns.size,))
        return X.map_blocks(_on_array, model, method, dtype, dtype=dtype, chunks=chunks)
    return getattr(model, method)(X)


def _on_array(
    block: NDArray[Any], model: Any, method: str, kind: np.dtype[Any]
) -> NDArray[Any]:
    if block.shape[0] == 0:
        return np.empty((0, 2) if method == "predict_proba" else 0, kind)
    found: NDArray[Any] = getattr(model, method)(block)
    return found


def _on_frame(
    frame: Any,
    model: Any,
    method: str,
    columns: NDArray[Any] | None,
    kind: np.dtype[Any],
) -> Any:
    pd = load_library("pandas", extra="dask", purpose="dask dataframes")
    found = _on_array(frame, model, method, kind)
    if columns is None:
        return pd.Series(found, index=frame.index, name=method)
    return pd.DataFrame(found, index=frame.index, columns=columns.tolist())


def as_lazy_array(values: BlockValues) -> Lazy:
    """Give numbers in blocks as a dask array."""
    da = load_library("dask.array", extra="dask", purpose="a fit on blocks")
    sizes = values.table.overview.n_rows.tolist()
    parts = [
        da.from_delayed(part, (size,), dtype=np.float64)
        for part, size in zip(values.parts, sizes, strict=True)
    ]
    return da.concatenate(parts)
