"""The first look at a block: how many rows, which labels, and whether all is in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from probgap._core.errors import InvalidInputError
from probgap._core.labels import ObservedLabels, is_missing, read_labels
from probgap.dask._tasks import merge_moments, moments

# Labels beyond so many that differ are not listed.
_MOST_LABELS = 6
SOURCE = "probgap_source"


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What the first look at a block shows.

    Attributes
    ----------
    n_rows, n_columns : int
        Its shape.
    double : bool
        Whether its numbers are in double precision.
    moments : tuple
        Number, mean and squared differences of all its numbers.
    labels : dict
        How often each label occurs, at most some of them; None stands for a missing one.
    source : tuple of str and int, or None
        The file it comes from and its first row there, where that is known.
    fault : tuple of str and int, or None
        What is wrong, and in which row, where something is.
    """

    n_rows: int
    n_columns: int
    double: bool
    moments: tuple[int, float, float]
    labels: dict[Any, int]
    source: tuple[str, int] | None
    fault: tuple[str, int] | None


def survey(X: Any, y: Any) -> Survey:
    """Look at a block."""
    source = getattr(X, "attrs", {}).get(SOURCE)
    names = [str(name) for name in getattr(X, "columns", ())]
    labels = as_labels(y)
    n_rows, n_columns = X.shape
    strange = _find_strange(X)
    if strange is not None:
        return Survey(n_rows, n_columns, True, (0, 0.0, 0.0), {}, source, (strange, 0))
    try:
        samples = as_samples(X)
    except (TypeError, ValueError):
        text = _find_text(X, names)
        return Survey(n_rows, n_columns, True, (0, 0.0, 0.0), {}, source, text)
    fault = _find_infinite(samples, names)
    if labels.size != n_rows:
        fault = f"{n_rows:,} rows of X beside {labels.size:,} of y", 0
    return Survey(
        n_rows,
        n_columns,
        samples.dtype == np.float64,
        (0, 0.0, 0.0) if fault else moments(samples.astype(np.float64, copy=False)),
        {} if fault else _count_labels(labels),
        source,
        fault,
    )


def _find_strange(X: Any) -> str | None:
    """Say what a block is, if not rows of real numbers."""
    if issparse(X):
        return "a sparse matrix"
    if isinstance(X, np.ma.MaskedArray):
        return "a masked array"
    kinds = X.dtypes if hasattr(X, "dtypes") else [X.dtype]
    for kind in kinds:
        if getattr(kind, "kind", "O") in "cmMSUV":
            return f"values of type {kind}"
    return None


def as_samples(X: Any) -> NDArray[Any]:
    """Give a block as rows of floating point numbers."""
    values = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if values.dtype not in (np.float64, np.float32):
        values = values.astype(np.float64)
    return np.ascontiguousarray(values)


def as_labels(y: Any) -> NDArray[Any]:
    """Give the labels of a block."""
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _count_labels(y: NDArray[Any]) -> dict[Any, int]:
    missing = is_missing(y)
    present = y[~missing]
    if y.dtype.kind == "O":
        present = np.asarray(present.tolist())
    found, times = np.unique(present, return_counts=True)
    some = slice(_MOST_LABELS)
    counts = dict(zip(found[some].tolist(), times[some].tolist(), strict=True))
    return counts | ({None: int(missing.sum())} if missing.any() else {})


def _find_infinite(samples: NDArray[Any], names: list[str]) -> tuple[str, int] | None:
    if np.isfinite(samples).all():
        return None
    row, column = np.argwhere(~np.isfinite(samples))[0]
    value = samples[row, column]
    return f"{value} in {_name(names, column)}", int(row)


def _find_text(X: Any, names: list[str]) -> tuple[str, int]:
    values = np.asarray(X, dtype=object)
    for row, column in np.ndindex(*values.shape):
        try:
            float(values[row, column])
        except (TypeError, ValueError):
            return f"{str(values[row, column])[:40]!r} in {_name(names, column)}", row
    return "something that is no number", 0


def _name(names: list[str], column: int) -> str:
    return f"column {names[column]!r}" if names else f"feature {column}"


@dataclass(frozen=True, slots=True, eq=False)
class Overview:
    """All blocks together: rows and labelled rows of each, labels, and spread of numbers."""

    n_rows: NDArray[np.intp]
    n_labelled: NDArray[np.intp]
    n_columns: int
    labels: ObservedLabels
    variance: float
    itemsize: int


def require_sound(surveys: list[Survey]) -> None:
    """Say what is wrong in the first block that is not right."""
    n_rows = [each.n_rows for each in surveys]
    first = np.concatenate([[0], np.cumsum(n_rows)])
    if first[-1] == 0:
        msg = "X must hold rows. Got none."
        raise InvalidInputError(msg)
    width = surveys[0].n_columns
    for at, each in enumerate(surveys):
        fault = each.fault
        if fault is None and each.n_columns != width:
            fault = f"{each.n_columns} columns where the first block has {width}", 0
        if fault is not None:
            raise InvalidInputError(_blame(each, fault, at, int(first[at])))


def overlook(surveys: list[Survey], pos_label: object) -> Overview:
    """Put surveys of sound blocks together."""
    counts: dict[Any, int] = {}
    for each in surveys:
        for value, times in each.labels.items():
            counts[value] = counts.get(value, 0) + times
    labels = read_labels(_small_array(list(counts)), pos_label)
    positive = labels.classes.tolist()[labels.positive]
    n_labelled = np.array([each.labels.get(positive, 0) for each in surveys])
    try:
        n, _, squares = merge_moments([each.moments for each in surveys])
    except OverflowError:
        n, squares = 1, np.inf
    return Overview(
        np.array([each.n_rows for each in surveys]),
        n_labelled,
        surveys[0].n_columns,
        labels,
        squares / n,
        8 if any(each.double for each in surveys) else 4,
    )


def _small_array(values: list[Any]) -> NDArray[Any]:
    return np.array(values, dtype=object if None in values else None)


def _blame(survey: Survey, fault: tuple[str, int], at: int, first: int) -> str:
    what, row = fault
    if survey.source is not None:
        file, begin = survey.source
        last = begin + survey.n_rows
        where = f"row {begin + row + 1:,} of {file} (rows {begin + 1:,} to {last:,})"
    else:
        last = first + survey.n_rows
        where = (
            f"row {first + row + 1:,} (block {at + 1}, rows {first + 1:,} to {last:,})"
        )
    return (
        "X must hold finite numbers, as many in every row, and y one label for each row. "
        f"Got {what}, {where}."
    )
