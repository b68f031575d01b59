"""Columns of an array or a frame, exchanged between rows."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


def as_table(rows: Any) -> Any:
    """Give rows whose columns can be exchanged: a frame, or a dense array."""
    if hasattr(rows, "toarray"):
        return rows.toarray()
    return rows if hasattr(rows, "shape") else np.asarray(rows)


def append_row(rows: Any, row: Any) -> Any:
    """Put one row below others."""
    if not hasattr(rows, "columns"):
        return np.vstack([rows, row])
    pandas = import_module("pandas")  # there is a frame, so there is pandas
    return pandas.concat([rows, row[rows.columns]], ignore_index=True)


def mix_rows(table: Any, columns: list[Any], source: Rows) -> Any:
    """Make rows whose cells come from several rows of a table.

    ``source`` has a row for each new one, and a column for each of ``columns``: from
    which row of the table the cell is. Other columns are from the first row.
    """
    if not hasattr(table, "columns"):
        return np.take_along_axis(table, source, axis=0)
    first = np.zeros(source.shape[0], dtype=np.intp)
    at = {name: source[:, j] for j, name in enumerate(columns)}
    cells = {
        name: table[name].take(at.get(name, first)).reset_index(drop=True)
        for name in table.columns
    }
    return type(table)(cells)


def shuffle_column(X: Any, column: Any, order: Rows) -> Any:
    """Give a copy in which the values of one column are in another order."""
    copy = X.copy()
    if hasattr(copy, "columns"):
        copy[column] = copy[column].take(order).set_axis(copy.index)
    else:
        copy[:, column] = copy[order, column]
    return copy
