"""A table in blocks: rows stay where they are, and a few of them can be fetched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from probgap._core.errors import InvalidInputError
from probgap._core.folds import RowFolds
from probgap._core.kernels import Matrix
from probgap._core.labels import ObservedLabels
from probgap._core.optional import load_library
from probgap.dask import _tasks as tasks
from probgap.dask._engine import Lazy, gather, keep, lazily, memory_for_keeping
from probgap.dask._survey import (
    Overview,
    as_labels,
    as_samples,
    overlook,
    require_sound,
    survey,
)

array = load_library("dask.array", extra="dask", purpose="a fit on blocks")

Positions = NDArray[np.intp]

_ROWS_IN_A_BLOCK = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class BlockTable:
    """Rows in blocks, labelled and in folds.

    Attributes
    ----------
    samples : list
        The numbers of each block: read again for each pass, or kept.
    marks : list
        Labels and folds of each block, kept.
    overview : Overview
        What is known of all blocks.
    folds : RowFolds
        How rows are held out.
    fold_counts : ndarray of shape (n_blocks, n_folds)
        Rows of each fold.
    kept : bool
        Whether the numbers are kept between passes.
    """

    samples: list[Lazy]
    marks: list[Lazy]
    overview: Overview
    folds: RowFolds
    fold_counts: Positions
    kept: bool

    @property
    def n_rows(self) -> int:
        """Number of rows in all blocks."""
        return int(self.overview.n_rows.sum())

    @property
    def n_labelled(self) -> int:
        """Number of labelled rows."""
        return int(self.overview.n_labelled.sum())

    @property
    def n_unlabelled(self) -> int:
        """Number of the others."""
        return self.n_rows - self.n_labelled

    def fetch(
        self,
        rows: Positions | None,
        numbers: tuple[list[Lazy], ...] = (),
        *,
        fold: int | None = None,
        held_out: bool = False,
    ) -> tasks.SomeRows:
        """Bring rows here, in their order, with some numbers that belong to them.

        Parameters
        ----------
        rows : ndarray or None
            Which, in ascending order; None for all.
        numbers : tuple of lists
            Numbers of all rows, in blocks.
        fold : int, optional
            Count only the rows that this fold's model sees.
        held_out : bool
            Or those that it does not see.
        """
        sizes = self.sizes_seen_by(fold, held_out=held_out)
        asked: Iterable[tuple[int, Positions | None]]
        if rows is None:
            asked = [(int(at), None) for at in np.flatnonzero(sizes)]
        else:
            asked = split_ranks(rows, sizes)
        parts = []
        for at, inside in asked:
            block = (self.samples[at], self.marks[at])
            more = [number[at] for number in numbers]
            parts.append(lazily(tasks.take, *block, inside, fold, held_out, *more))
        found: list[tasks.SomeRows] = gather(parts)
        return tasks.SomeRows(
            np.concatenate([part.samples for part in found]),
            tasks.Marks(
                np.concatenate([part.marks.labelled for part in found]),
                np.concatenate([part.marks.fold for part in found]),
            ),
            tuple(
                np.concatenate([part.numbers[k] for part in found])
                for k in range(len(numbers))
            ),
        )

    def places(self, ranks: Positions, *, labelled: bool) -> Positions:
        """Give where rows are in the table, by rank among the labelled or the others."""
        first = np.concatenate([[0], np.cumsum(self.overview.n_rows)])
        parts = [
            lazily(tasks.places, self.marks[at], labelled, inside, int(first[at]))
            for at, inside in split_ranks(ranks, self.sizes_of(labelled=labelled))
        ]
        return np.concatenate(gather(parts))

    def sizes_of(self, *, labelled: bool) -> Positions:
        """Count the labelled rows of each block, or the others."""
        n_labelled = self.overview.n_labelled
        return n_labelled if labelled else self.overview.n_rows - n_labelled

    def n_seen_by(self, fold: int | None) -> int:
        """Count the rows that a fold's model sees."""
        return int(self.sizes_seen_by(fold, held_out=False).sum())

    def sizes_seen_by(self, fold: int | None, *, held_out: bool) -> Positions:
        """Count the rows of each block that a fold's model sees, or does not see."""
        if fold is None:
            return self.overview.n_rows
        out: Positions = self.fold_counts[:, fold]
        return out if held_out else self.overview.n_rows - out


def split_ranks(ranks: Positions, sizes: Positions) -> Iterator[tuple[int, Positions]]:
    """Give the blocks that hold some of the ranks, and the ranks inside each."""
    first = np.concatenate([[0], np.cumsum(sizes)])
    for at in range(sizes.size):
        low, high = np.searchsorted(ranks, first[at : at + 2])
        if low < high:
            yield at, ranks[low:high] - first[at]


def open_table(
    X: Any, y: Any, pos_label: object, cv: int | None, seed: int
) -> BlockTable:
    """Look at all blocks once, check them, and mark labels and folds."""
    pairs = pair_blocks(X, y)
    surveys = gather([lazily(survey, *pair) for pair in pairs])
    require_sound(surveys)
    filled = [at for at, each in enumerate(surveys) if each.n_rows]
    pairs = [pairs[at] for at in filled]
    overview = overlook([surveys[at] for at in filled], pos_label)
    folds = RowFolds(_number_of_folds(cv, overview), seed)
    positive = overview.labels.classes[overview.labels.positive]
    before = np.concatenate([[0], np.cumsum(overview.n_labelled)])
    first = np.concatenate([[0], np.cumsum(overview.n_rows)])
    marks = [
        lazily(
            tasks.mark,
            lazily(as_labels, block_y),
            positive,
            folds,
            (int(before[at]), int(first[at] - before[at])),
        )
        for at, (_, block_y) in enumerate(pairs)
    ]
    marks = keep(marks)
    counted = gather([lazily(tasks.count_folds, m, folds.n_splits) for m in marks])
    samples = [lazily(as_samples, block_X) for block_X, _ in pairs]
    size = overview.itemsize * int(overview.n_rows.sum()) * overview.n_columns
    kept = size <= memory_for_keeping()
    return BlockTable(
        keep(samples) if kept else samples,
        marks,
        overview,
        folds,
        np.array([each[0] for each in counted]),
        kept,
    )


def _number_of_folds(cv: int | None, overview: Overview) -> int:
    n_labelled = int(overview.n_labelled.sum())
    smaller = min(n_labelled, int(overview.n_rows.sum()) - n_labelled)
    needed = 2 if cv is None else cv
    if smaller < needed:
        msg = (
            f"y must hold at least {needed} labelled and as many unlabelled samples. Got "
            f"{n_labelled} labelled among {int(overview.n_rows.sum())} samples."
        )
        raise InvalidInputError(msg)
    return min(5, smaller) if cv is None else cv


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
    """Give the blocks of X, each with the labels of its rows."""
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
