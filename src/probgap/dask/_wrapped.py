"""Steps 1 and 5 by a classifier that is itself fitted on dask arrays.

It is handed rows that are chosen block by block when they are read, as dask arrays of
known length. What it makes of them on its workers is its own affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from probgap._core.errors import InvalidInputError
from probgap._core.estimators import (
    clone_with_seed,
    is_one_sided,
    round_small_parts,
    split_copies,
    without_negligible,
)
from probgap._core.features import KernelFeatures
from probgap._core.optional import load_library
from probgap.dask import _tasks as tasks
from probgap.dask._engine import Lazy, gather, lazily
from probgap.dask._foreign import chances_by_block, to_memory, unfitted_in_memory
from probgap.dask._rows import BlockRows
from probgap.dask._table import BlockTable
from probgap.dask._values import BlockValues
from probgap.gap import ObservedGapEstimator
from probgap.gap._base import gap_of
from probgap.gap._observed import can_hold_out

Array = Any  # a dask array
Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WrappedGap:
    """Step 1: the gap by a classifier of one's own, and kernel features for later steps."""

    model: ObservedGapEstimator
    observed_gap: BlockValues
    rows: BlockRows

    @property
    def feature_map(self) -> KernelFeatures:
        """How features are made: by the kernel alone."""
        return self.rows.kernel


def observed_gap_by(
    estimator: Any, table: BlockTable, rng: np.random.Generator
) -> tuple[ObservedGapEstimator, BlockValues]:
    """Estimate gaps of rows by models that have not seen them, as in memory.

    The model that is given back was fitted on all rows, and does without dask if it can.
    """
    # Seeds are drawn as by a classifier in memory that was given this estimator.
    model = clone_with_seed(ObservedGapEstimator(estimator, cv=table.folds), rng)
    estimator = model.estimator
    on_all = _fit_labels(estimator, table, None)
    by_fold: list[tuple[int | None, Any]] = [(None, on_all)]
    if can_hold_out(min(table.n_labelled, table.n_unlabelled)):
        by_fold = [
            (fold, _fit_labels(estimator, table, fold))
            for fold in range(table.folds.n_splits)
        ]
    # Chances of all folds are asked for together, so that a block is read once.
    found: list[list[tuple[int | None, Lazy]]] = [[] for _ in table.samples]
    for fold, fitted in by_fold:
        sizes = table.sizes_seen_by(fold, held_out=True)
        parts = chances_by_block(fitted, _samples(table, fold, held_out=True))
        for at, part in zip(np.flatnonzero(sizes), parts, strict=True):
            found[at].append((fold, part))
    gaps = [
        lazily(_put_together, marks, [f for f, _ in pairs], *[p for _, p in pairs])
        for marks, pairs in zip(table.marks, found, strict=True)
    ]
    model.estimator, model.cv = unfitted_in_memory(estimator), None
    model.estimator_ = to_memory(on_all)
    model.classes_, model.positive_index_ = np.array([False, True]), 1
    model.n_features_in_ = table.overview.n_columns
    return model, BlockValues(table, gaps).kept()


def _fit_labels(estimator: Any, table: BlockTable, fold: int | None) -> Any:
    """Fit on the labels of all rows, or of those outside a fold."""
    y = [lazily(_labels, marks, fold) for marks in table.marks]
    sizes = table.sizes_seen_by(fold, held_out=False)
    return clone(estimator).fit(
        _samples(table, fold, held_out=False), _as_array(y, sizes, (), np.int8)
    )


def _samples(table: BlockTable, fold: int | None, *, held_out: bool) -> Array:
    dtype = _dtype(table)
    parts = [
        lazily(_rows, samples, marks, fold, held_out, dtype)
        for samples, marks in zip(table.samples, table.marks, strict=True)
    ]
    sizes = table.sizes_seen_by(fold, held_out=held_out)
    return _as_array(parts, sizes, (table.overview.n_columns,), dtype)


def _dtype(table: BlockTable) -> Any:
    return np.float64 if table.overview.itemsize == 8 else np.float32


def _as_array(
    parts: list[Lazy], sizes: Iterable[int], more: tuple[int, ...], dtype: Any
) -> Array:
    """Give parts of known length as a dask array, without those that are empty."""
    da = load_library("dask.array", extra="dask", purpose="a fit on blocks")
    return da.concatenate(
        [
            da.from_delayed(part, (int(size), *more), dtype=dtype)
            for part, size in zip(parts, sizes, strict=True)
            if size
        ]
    )


def _rows(
    samples: NDArray[Any],
    marks: tasks.Marks,
    fold: int | None,
    held_out: bool,
    dtype: Any,
) -> NDArray[Any]:
    found = tasks.take(samples, marks, None, fold, held_out)
    return found.samples.astype(dtype, copy=False)


def _labels(marks: tasks.Marks, fold: int | None) -> NDArray[np.int8]:
    labelled = marks.labelled if fold is None else marks.labelled[marks.fold != fold]
    return labelled.astype(np.int8)


def _put_together(
    marks: tasks.Marks, folds: list[int | None], *chances: NDArray[Any]
) -> Vector:
    """Give the gap of each row by the model of its fold."""
    gap = np.full(marks.fold.size, np.nan)
    for fold, chance in zip(folds, chances, strict=True):
        rows = np.ones(gap.size, dtype=bool) if fold is None else marks.fold == fold
        if chance.shape != (np.count_nonzero(rows), 2):
            msg = (
                "gap_estimator must give two chances for each row. Got an array of shape "
                f"{chance.shape} for {np.count_nonzero(rows)} rows."
            )
            raise InvalidInputError(msg)
        gap[rows] = gap_of(chance[:, 1])
    return gap


def fit_on_blocks(
    estimator: Any, share: BlockValues, decided: BlockValues, weight: BlockValues | None
) -> Any:
    """Fit on each row as a positive, as a negative, or as a part of each, as in memory.

    ``share`` is how much of a row counts as positive; ``decided`` is 1 for rows that
    have one, 0 for others; ``weight`` is what a row counts for, None for 1. Copies of
    rows of a block make a block.
    """
    table = share.table
    share = _round_shares(share)
    weight = decided if weight is None else weight
    most = _largest_copies(share, weight)
    if min(most) <= 0.0:
        # The weights left a whole class out, and nothing to learn it from.
        weight, most = decided, _largest_copies(share, decided)
    pairs = list(zip(share.parts, weight.parts, strict=True))
    counts = gather([lazily(_count_copies, *pair, most) for pair in pairs])
    sizes = [sum(count) for count in counts]
    dtype = _dtype(table)
    X = [
        lazily(_copies, samples, *pair, most, dtype)
        for samples, pair in zip(table.samples, pairs, strict=True)
    ]
    y = [lazily(_classes_of_copies, count) for count in counts]
    weights = [lazily(_weights_of_copies, *pair, most) for pair in pairs]
    fitted = estimator.fit(
        _as_array(X, sizes, (table.overview.n_columns,), dtype),
        _as_array(y, sizes, (), np.int8),
        sample_weight=_as_array(weights, sizes, (), np.float64),
    )
    return to_memory(fitted)


def _round_shares(share: BlockValues) -> BlockValues:
    rounded = share.map(_round)
    spans = gather([lazily(_span, part) for part in rounded.parts])
    one_sided = is_one_sided(min(s[0] for s in spans), max(s[1] for s in spans))
    return share if one_sided else rounded


def _round(share: Vector, labelled: Mask) -> Vector:
    del labelled
    return round_small_parts(share)


def _span(share: Vector) -> tuple[float, float]:
    known = share[np.isfinite(share)]
    if known.size == 0:
        return np.inf, -np.inf
    return float(known.min()), float(known.max())


def _largest_copies(share: BlockValues, weight: BlockValues) -> tuple[float, float]:
    pairs = zip(share.parts, weight.parts, strict=True)
    found = gather([lazily(_largest, *pair) for pair in pairs])
    return max(most[0] for most in found), max(most[1] for most in found)


def _largest(share: Vector, weight: Vector) -> tuple[float, float]:
    positive, negative = split_copies(share, weight)
    return float(positive.max()), float(negative.max())


def _kept_copies(
    share: Vector, weight: Vector, most: tuple[float, float]
) -> tuple[Vector, Vector]:
    positive, negative = map(without_negligible, split_copies(share, weight), most)
    return positive, negative


def _count_copies(
    share: Vector, weight: Vector, most: tuple[float, float]
) -> tuple[int, int]:
    positive, negative = map(np.count_nonzero, _kept_copies(share, weight, most))
    return int(positive), int(negative)


def _copies(
    samples: NDArray[Any],
    share: Vector,
    weight: Vector,
    most: tuple[float, float],
    dtype: Any,
) -> NDArray[Any]:
    both = np.concatenate(
        [np.flatnonzero(c) for c in _kept_copies(share, weight, most)]
    )
    return samples[both].astype(dtype, copy=False)


def _classes_of_copies(count: tuple[int, int]) -> NDArray[np.int8]:
    return np.repeat(np.array([1, 0], dtype=np.int8), count)


def _weights_of_copies(
    share: Vector, weight: Vector, most: tuple[float, float]
) -> Vector:
    return np.concatenate([c[c > 0.0] for c in _kept_copies(share, weight, most)])
