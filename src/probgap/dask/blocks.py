"""A table in blocks: its labels, and a sample of its rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from probgap._core.checks import (
    ObservedLabels,
    decode_labels,
    is_missing,
    is_number,
    require_labelled_and_unlabelled,
)
from probgap._core.errors import InvalidInputError, ProbgapWarning, load_library
from probgap._core.types import Mask, Matrix, Rows, Vector
from probgap.dask.engine import Lazy, gather, lazily

array = load_library("dask.array", extra="dask", purpose="a fit on blocks")

SOURCE = "probgap_source"
_ROWS_IN_A_BLOCK = 100_000
# Most distinct labels counted in a block: two, and some more to show in an error.
_MOST_LABELS = 6
# Fewest rows of each kind to fit on.
_FEWEST = 2
_BYTES_OF_A_VALUE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks of rows, and the number of labelled and unlabelled rows in each."""

    pairs: list[tuple[Lazy, Lazy]]  # samples and labels of each
    n_columns: int
    sizes: Rows  # (2, n_blocks): labelled and unlabelled rows of each block
    labels: ObservedLabels  # the two labels; the mask is not used

    @property
    def positive(self) -> Any:
        """The label of a labelled positive."""
        return self.labels.classes[self.labels.positive]

    @property
    def n_rows(self) -> Rows:
        """Rows of each block."""
        return self.sizes.sum(axis=0)

    @property
    def counts(self) -> list[int]:
        """Number of labelled and of unlabelled rows."""
        return self.sizes.sum(axis=1).tolist()


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows drawn from blocks, in the order of the table."""

    samples: NDArray[Any]
    labelled: Mask
    rows: Rows  # their indices in the table
    weight: Vector | None  # how many rows each represents; None if all were taken


def open_blocks(X: Any, y: Any, pos_label: object) -> Blocks:
    """Read the labels of all blocks, and count labelled and unlabelled rows."""
    pairs = pair_blocks(X, y)
    counted = gather(lazily(_count_labels, labels) for _, labels in pairs)
    kinds = list(sum(counted, Counter()))
    if not kinds:
        msg = "X must hold rows. Got none."
        raise InvalidInputError(msg)
    known = np.array(kinds, dtype=object if None in kinds else None)
    labels = decode_labels(known, pos_label)
    labelled = np.array([part[labels.name_of("labelled")] for part in counted])
    others = np.array([part.total() for part in counted]) - labelled
    blocks = Blocks(pairs, X.shape[1], np.stack([labelled, others]), labels)
    require_labelled_and_unlabelled(labels, counts=blocks.counts)
    return blocks


def draw_sample(blocks: Blocks, max_memory: float, seed: int) -> Sample:
    """Draw all labelled rows, and as many unlabelled ones as memory allows, in one pass.

    The sample depends on the order of the rows and on the seed, not on how they are split
    into blocks. Every value of every block is checked.
    """
    numbers = blocks.counts
    drawn = _divide_memory(blocks.n_columns, numbers, max_memory)
    rng = np.random.default_rng([seed, 1])
    by_kind = []
    for n, few, sizes in zip(numbers, drawn, blocks.sizes, strict=True):
        ranks = np.arange(n)
        if few < n:
            ranks = np.sort(rng.choice(n, few, replace=False, shuffle=False))
        by_kind.append(split_ranks(ranks, sizes))
    first = np.cumsum(blocks.n_rows) - blocks.n_rows
    parts = enumerate(zip(blocks.pairs, first, *by_kind, strict=True))
    expected = blocks.positive, blocks.n_columns
    taken = gather(
        lazily(_take, *pair, *expected, at, start, *inside)
        for at, (pair, start, *inside) in parts
    )
    for part in taken:
        if isinstance(part, str):
            raise InvalidInputError(part)
    samples, labelled, rows = map(np.concatenate, zip(*taken, strict=True))
    weight = None
    if drawn != numbers:
        weight = np.where(labelled, numbers[0] / drawn[0], numbers[1] / drawn[1])
    return Sample(samples, labelled, rows, weight)


def _divide_memory(n_columns: int, numbers: list[int], max_memory: float) -> list[int]:
    """Return how many labelled rows to draw, and how many unlabelled ones."""
    most = int(max_memory // (_BYTES_OF_A_VALUE * n_columns))
    if most < 2 * _FEWEST:
        needed = 2 * _FEWEST * _BYTES_OF_A_VALUE * n_columns
        msg = f"max_memory must hold some rows: {needed:,} bytes. Got {max_memory!r}."
        raise InvalidInputError(msg)
    n_labelled, n_unlabelled = numbers
    few = min(n_labelled, max(most // 2, most - n_unlabelled))
    if few < n_labelled:
        warnings.warn(
            f"The {n_labelled:,} labelled rows take more than half of max_memory="
            f"{max_memory:.3g}: {few:,} of them are drawn, and as many others, each "
            "weighted to represent all. Use a larger max_memory to fit to more.",
            ProbgapWarning,
            stacklevel=5,
        )
    return [few, min(n_unlabelled, most - few)]


def split_ranks(ranks: Rows, sizes: Rows) -> Iterator[Rows]:
    """Yield the ranks that fall into each block, counted from its first."""
    first = np.concatenate([[0], np.cumsum(sizes)])
    at = np.searchsorted(ranks, first)
    for k in range(sizes.size):
        yield ranks[at[k] : at[k + 1]] - first[k]


# Functions that run on workers, on one block.


def as_samples(X: Any) -> NDArray[Any]:
    """Return a block as rows of floating point numbers."""
    values = np.asarray(X)
    if values.dtype not in (np.float64, np.float32):
        values = values.astype(np.float64)
    return np.ascontiguousarray(values)


def _as_labels(y: Any) -> NDArray[Any]:
    values = np.asarray(y)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _count_labels(y: Any) -> Counter[Any]:
    labels = _as_labels(y)
    missing = is_missing(labels)
    counts = Counter(labels[~missing].tolist()).most_common(_MOST_LABELS)
    return Counter(dict(counts)) + Counter({None: int(missing.sum())})


def find_labelled(y: Any, positive: Any) -> Mask:
    """Return which rows of a block have the positive label; missing means unlabelled."""
    labels = _as_labels(y)
    present = ~is_missing(labels)
    labelled = np.zeros(labels.size, dtype=bool)
    labelled[present] = labels[present] == positive
    return labelled


def _take(
    X: Any,
    y: Any,
    positive: Any,
    n_columns: int,
    at: int,
    first: int,
    labelled: Rows,
    others: Rows,
) -> tuple[NDArray[Any], Mask, Rows] | str:
    """Take rows of a block by their ranks among labelled and unlabelled rows.

    Returns the samples, the mask of labelled ones and their indices in the table; or an
    error message about the block.
    """
    mask = find_labelled(y, positive)
    fault = _find_fault(X, mask.size, n_columns)
    if fault is not None:
        return _describe_fault(X, *fault, at, first)
    chosen = [np.flatnonzero(mask)[labelled], np.flatnonzero(~mask)[others]]
    inside = np.sort(np.concatenate(chosen))
    return as_samples(X)[inside], mask[inside], inside + first


def _find_fault(X: Any, n_labels: int, n_columns: int) -> tuple[str, int] | None:
    """Return what is wrong with a block, and in which of its rows; None if nothing is."""
    n_rows, width = X.shape
    kinds = X.dtypes if hasattr(X, "dtypes") else [X.dtype]
    strange = [kind for kind in kinds if getattr(kind, "kind", "O") in "cmMSUV"]
    faults = {
        "a sparse matrix": issparse(X),
        "a masked array": isinstance(X, np.ma.MaskedArray),
        f"values of type {[*strange, None][0]}": bool(strange),
        f"{n_rows:,} rows of X beside {n_labels:,} of y": n_rows != n_labels,
        f"{width} columns in place of {n_columns}": width != n_columns,
    }
    for what, found in faults.items():
        if found:
            return what, 0
    try:
        values = as_samples(X)
        bad = ~np.isfinite(values)
    except (TypeError, ValueError):
        values = np.asarray(X, dtype=object)
        bad = ~np.vectorize(is_number, otypes=[bool])(values)
    if not bad.any():
        return None
    row, column = np.argwhere(bad)[0]
    value, name = values[row, column], f"feature {column}"
    if hasattr(X, "columns"):
        name = f"column {str(X.columns[column])!r}"
    shown = repr(value[:40]) if isinstance(value, str) else str(value)
    return f"{shown} in {name}", int(row)


def _describe_fault(X: Any, what: str, row: int, at: int, first: int) -> str:
    """Return an error message that names the row, and its file if known."""
    file, first = getattr(X, "attrs", {}).get(SOURCE, ("", first))
    rows = f"rows {first + 1:,} to {first + X.shape[0]:,}"
    of_file, inside = (f" of {file}", rows) if file else ("", f"block {at + 1}, {rows}")
    return (
        "X must hold finite numbers, as many in every row, and y one label for each row. "
        f"Got {what}, row {first + row + 1:,}{of_file} ({inside})."
    )


# How collections become blocks.


def as_blocks(samples: Matrix, labels: ObservedLabels) -> tuple[Lazy, Lazy, Any]:
    """Split data in memory into blocks; return samples, labels and the positive label."""
    if issparse(samples):
        msg = (
            "X must be dense. Got a sparse matrix; probgap.PGPUClassifier takes those."
        )
        raise InvalidInputError(msg)
    other, positive = labels.classes[[1 - labels.positive, labels.positive]]
    y = np.where(labels.labelled, positive, other)
    return (
        array.from_array(samples, chunks=(_ROWS_IN_A_BLOCK, -1)),
        array.from_array(y, chunks=_ROWS_IN_A_BLOCK),
        positive,
    )


def pair_blocks(X: Any, y: Any) -> list[tuple[Lazy, Lazy]]:
    """Return the blocks of X, each with the labels of its rows."""
    blocks = _blocks_of(X, "X")
    if X.ndim != 2 or X.shape[1] == 0:
        more = "" if X.ndim != 2 else " and no column"
        msg = f"X must have rows and columns. Got {X.ndim} dimension(s){more}."
        raise InvalidInputError(msg)
    if hasattr(X, "chunks") and hasattr(y, "chunks") and sum(X.chunks[0]) == y.shape[0]:
        # Blocks of unknown length are assumed to match, and checked when they are read.
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
