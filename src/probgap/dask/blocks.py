"""A table in blocks: what its labels are, and a sample of its rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from probgap._core.checks import ObservedLabels, is_missing, read_labels
from probgap._core.errors import InvalidInputError, ProbgapWarning, load_library
from probgap._core.types import Mask, Matrix, Vector
from probgap.dask.engine import Lazy, gather, lazily

array = load_library("dask.array", extra="dask", purpose="a fit on blocks")

Positions = NDArray[np.intp]

SOURCE = "probgap_source"
_ROWS_IN_A_BLOCK = 100_000
# Labels beyond so many that differ are not listed.
_MOST_LABELS = 6
# Rows of each kind without which nothing can be fitted.
_FEWEST = 2
_BYTES_OF_A_VALUE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks of rows, and how many of each kind they hold.

    Attributes
    ----------
    pairs : list
        Samples and labels of each block, lazy.
    n_columns : int
        Number of features.
    n_rows, n_labelled : ndarray of shape (n_blocks,)
        Rows of each block, and labelled ones.
    labels : ObservedLabels
        The two labels, and which is positive; its mask is of no use.
    """

    pairs: list[tuple[Lazy, Lazy]]
    n_columns: int
    n_rows: Positions
    n_labelled: Positions
    labels: ObservedLabels

    @property
    def positive(self) -> Any:
        """The label of a labelled positive."""
        return self.labels.classes[self.labels.positive]

    def sizes(self, *, labelled: bool) -> Positions:
        """Return how many rows of a kind each block holds."""
        return self.n_labelled if labelled else self.n_rows - self.n_labelled

    def count(self, *, labelled: bool) -> int:
        """Count the labelled rows of all blocks, or the others."""
        return int(self.sizes(labelled=labelled).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows drawn from blocks.

    Attributes
    ----------
    samples : ndarray of shape (n_drawn, n_columns)
        The rows, in the order of the table.
    labelled : ndarray of shape (n_drawn,)
        Which of them are labelled.
    rows : ndarray of shape (n_drawn,)
        Where they are in the table.
    weight : ndarray of shape (n_drawn,) or None
        How many rows each stands for; None where all were taken.
    """

    samples: NDArray[Any]
    labelled: Mask
    rows: Positions
    weight: Vector | None


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """What a block gave: rows, or what is wrong with it."""

    samples: NDArray[Any]
    labelled: Mask
    inside: Positions
    n_rows: int
    n_columns: int
    source: tuple[str, int] | None = None
    fault: tuple[str, int] | None = None


def open_blocks(X: Any, y: Any, pos_label: object) -> Blocks:
    """Read the labels of all blocks: how many rows there are, and who is labelled."""
    pairs = pair_blocks(X, y)
    counted: list[dict[Any, int]] = gather(
        [lazily(_count_labels, labels) for _, labels in pairs]
    )
    counts: dict[Any, int] = {}
    for part in counted:
        for value, times in part.items():
            counts[value] = counts.get(value, 0) + times
    if not counts:
        msg = "X must hold rows. Got none."
        raise InvalidInputError(msg)
    kinds = list(counts)
    known = np.array(kinds, dtype=object if None in kinds else None)
    labels = read_labels(known, pos_label)
    positive = labels.classes.tolist()[labels.positive]
    n_rows = np.array([sum(part.values()) for part in counted])
    n_labelled = np.array([part.get(positive, 0) for part in counted])
    blocks = Blocks(pairs, X.shape[1], n_rows, n_labelled, labels)
    few, n = blocks.count(labelled=True), int(n_rows.sum())
    if min(few, n - few) < _FEWEST:
        msg = (
            f"y must hold at least {_FEWEST} labelled and as many unlabelled samples. "
            f"Got {few} labelled among {n} samples."
        )
        raise InvalidInputError(msg)
    return blocks


def draw_sample(blocks: Blocks, max_memory: float, seed: int) -> Sample:
    """Draw all labelled rows, and as many others as memory allows, in one pass.

    Which rows are drawn depends on their order in the table and on the seed, not on how
    they are cut into blocks. Every value of every block is checked.
    """
    numbers = [blocks.count(labelled=kind) for kind in (True, False)]
    drawn = _share_room(blocks, numbers, max_memory)
    rng = np.random.default_rng([seed, 1])
    ranks = [
        np.sort(rng.choice(n, few, replace=False, shuffle=False))
        if few < n
        else np.arange(n)
        for n, few in zip(numbers, drawn, strict=True)
    ]
    by_kind = [
        split_ranks(ranks[0], blocks.sizes(labelled=True)),
        split_ranks(ranks[1], blocks.sizes(labelled=False)),
    ]
    parts = [
        lazily(_take, *pair, blocks.positive, *inside)
        for pair, *inside in zip(blocks.pairs, *by_kind, strict=True)
    ]
    taken: list[Taken] = gather(parts)
    _require_sound(taken, blocks)
    first = np.cumsum(blocks.n_rows) - blocks.n_rows
    labelled = np.concatenate([part.labelled for part in taken])
    stands_for = [n / few for n, few in zip(numbers, drawn, strict=True)]
    weight = np.where(labelled, *stands_for)
    return Sample(
        np.concatenate([part.samples for part in taken]),
        labelled,
        np.concatenate(
            [part.inside + at for part, at in zip(taken, first, strict=True)]
        ),
        None if drawn == numbers else weight,
    )


def _share_room(blocks: Blocks, numbers: list[int], max_memory: float) -> list[int]:
    """Return how many labelled rows to draw, and how many others."""
    most = int(max_memory // (_BYTES_OF_A_VALUE * blocks.n_columns))
    if most < 2 * _FEWEST:
        needed = 2 * _FEWEST * _BYTES_OF_A_VALUE * blocks.n_columns
        msg = f"max_memory must hold some rows: {needed:,} bytes. Got {max_memory!r}."
        raise InvalidInputError(msg)
    n_labelled, n_unlabelled = numbers
    few = min(n_labelled, max(most // 2, most - n_unlabelled))
    if few < n_labelled:
        warnings.warn(
            f"The {n_labelled:,} labelled rows take more than half of max_memory="
            f"{max_memory:.3g}: {few:,} of them are drawn, and as many others, each "
            "weighted to stand for all. Use a larger max_memory to fit to more.",
            ProbgapWarning,
            stacklevel=4,
        )
    return [few, min(n_unlabelled, most - few)]


def split_ranks(ranks: Positions, sizes: Positions) -> Iterator[Positions]:
    """Yield the ranks that fall into each block, counted from its first."""
    first = np.concatenate([[0], np.cumsum(sizes)])
    at = np.searchsorted(ranks, first)
    for k in range(sizes.size):
        yield ranks[at[k] : at[k + 1]] - first[k]


def _count_labels(y: Any) -> dict[Any, int]:
    labels = as_labels(y)
    missing = is_missing(labels)
    present = labels[~missing]
    if labels.dtype.kind == "O":
        present = np.asarray(present.tolist())
    found, times = np.unique(present, return_counts=True)
    # Of many labels all are counted with the last: there are too many anyhow.
    times = np.append(times[:_MOST_LABELS], times[_MOST_LABELS:].sum(dtype=int))
    kinds = found[: _MOST_LABELS + 1].tolist()
    counts = dict(zip(kinds, times.tolist(), strict=False))
    return counts | ({None: int(missing.sum())} if missing.any() else {})


def is_positive(y: NDArray[Any], positive: Any) -> Mask:
    """Return which entries are the positive label; a missing one never is."""
    present = ~is_missing(y)
    labelled = np.zeros(y.size, dtype=bool)
    labelled[present] = y[present] == positive
    return labelled


def as_samples(X: Any) -> NDArray[Any]:
    """Return a block as rows of floating point numbers."""
    values = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if values.dtype not in (np.float64, np.float32):
        values = values.astype(np.float64)
    return np.ascontiguousarray(values)


def as_labels(y: Any) -> NDArray[Any]:
    """Return the labels of a block."""
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _take(
    X: Any, y: Any, positive: Any, labelled: Positions, others: Positions
) -> Taken:
    """Take rows of a block by their ranks among the labelled and the others."""
    mask = is_positive(as_labels(y), positive)
    inside = np.sort(
        np.concatenate([np.flatnonzero(mask)[labelled], np.flatnonzero(~mask)[others]])
    )
    n_rows, n_columns = X.shape
    fault = _find_strange(X)
    names = [str(name) for name in getattr(X, "columns", ())]
    samples = np.empty((0, n_columns))
    if fault is None and n_rows != mask.size:
        fault = f"{n_rows:,} rows of X beside {mask.size:,} of y", 0
    if fault is None:
        try:
            samples = as_samples(X)
            fault = _find_infinite(samples, names)
        except (TypeError, ValueError):
            fault = _find_text(X, names)
    source = getattr(X, "attrs", {}).get(SOURCE)
    if fault is not None:
        return Taken(samples[:0], mask[:0], inside, n_rows, n_columns, source, fault)
    return Taken(samples[inside], mask[inside], inside, n_rows, n_columns, source)


def _find_strange(X: Any) -> tuple[str, int] | None:
    """Return what a block is, if not rows of real numbers."""
    if issparse(X):
        return "a sparse matrix", 0
    if isinstance(X, np.ma.MaskedArray):
        return "a masked array", 0
    kinds = X.dtypes if hasattr(X, "dtypes") else [X.dtype]
    for kind in kinds:
        if getattr(kind, "kind", "O") in "cmMSUV":
            return f"values of type {kind}", 0
    return None


def _find_infinite(samples: NDArray[Any], names: list[str]) -> tuple[str, int] | None:
    if np.isfinite(samples).all():
        return None
    row, column = np.argwhere(~np.isfinite(samples))[0]
    return f"{samples[row, column]} in {_name(names, column)}", int(row)


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


def _require_sound(taken: list[Taken], blocks: Blocks) -> None:
    """Refuse the first block that is not right, by file and row."""
    first = np.cumsum(blocks.n_rows) - blocks.n_rows
    for at, part in enumerate(taken):
        fault = part.fault
        if fault is None and part.n_columns != blocks.n_columns:
            fault = f"{part.n_columns} columns in place of {blocks.n_columns}", 0
        if fault is not None:
            raise InvalidInputError(_blame(part, fault, at, int(first[at])))


def _blame(part: Taken, fault: tuple[str, int], at: int, first: int) -> str:
    what, row = fault
    if part.source is not None:
        file, begin = part.source
        last = begin + part.n_rows
        where = f"row {begin + row + 1:,} of {file} (rows {begin + 1:,} to {last:,})"
    else:
        last = first + part.n_rows
        where = (
            f"row {first + row + 1:,} (block {at + 1}, rows {first + 1:,} to {last:,})"
        )
    return (
        "X must hold finite numbers, as many in every row, and y one label for each row. "
        f"Got {what}, {where}."
    )


def as_blocks(samples: Matrix, labels: ObservedLabels) -> tuple[Lazy, Lazy, Any]:
    """Cut what is in memory into blocks: samples, labels, and which label is positive."""
    if issparse(samples):
        msg = (
            "X must be dense. Got a sparse matrix; probgap.PGPUClassifier takes those."
        )
        raise InvalidInputError(msg)
    positive = labels.classes[labels.positive]
    other = labels.classes[1 - labels.positive]
    y = np.where(labels.labelled, positive, other)
    return (
        array.from_array(samples, chunks=(_ROWS_IN_A_BLOCK, samples.shape[1])),
        array.from_array(y, chunks=_ROWS_IN_A_BLOCK),
        positive,
    )


def pair_blocks(X: Any, y: Any) -> list[tuple[Lazy, Lazy]]:
    """Return the blocks of X, each with the labels of its rows."""
    blocks = _blocks_of(X, "X")
    if X.ndim != 2 or X.shape[1] == 0:
        msg = f"X must have rows and columns. Got {X.ndim} dimension(s)"
        more = "." if X.ndim != 2 else " and no column."
        raise InvalidInputError(msg + more)
    if hasattr(X, "chunks") and hasattr(y, "chunks") and sum(X.chunks[0]) == y.shape[0]:
        # Blocks of unknown length are taken to go together, and counted later.
        y = y.rechunk((X.chunks[0], *y.chunks[1:]))
    labels = _blocks_of(y, "y")
    if len(blocks) != len(labels):
        msg = (
            "y must have as many blocks as X, or be a dask array of known length. Got "
            f"{len(labels)} blocks beside {len(blocks)}."
        )
        raise InvalidInputError(msg)
    return list(zip(blocks, labels, strict=True))


def _blocks_of(collection: Any, name: str) -> list[Lazy]:
    if not hasattr(collection, "to_delayed"):
        msg = (
            f"{name} must be a dask array or a dask dataframe. Got "
            f"{type(collection).__name__}; probgap.PGPUClassifier takes what is in "
            "memory."
        )
        raise InvalidInputError(msg)
    if hasattr(collection, "chunks") and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.asarray(collection.to_delayed(), dtype=object)))
