"""What workers do with a block of rows: pure functions, that may run twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.features import KernelFeatures
from probgap._core.folds import RowFolds
from probgap._core.labels import is_missing
from probgap._core.newton import LinearFits
from probgap._core.rows import RowBlock, Slopes
from probgap.gap._boosting import NO_PART, BoostedChance, Parts
from probgap.gap._rate import blend

Vector = NDArray[np.float64]
Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Positions = NDArray[np.intp]

# Kernel values that are made at a time: what goes through a cache takes half the time.
_BLOCK_BYTES = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Which rows of a block are labelled, and the fold that holds each out."""

    labelled: Mask
    fold: NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class SomeRows:
    """Rows of a block that were asked for."""

    samples: NDArray[Any]
    marks: Marks
    numbers: tuple[Vector, ...]


def mark(
    y: NDArray[Any], positive: Any, folds: RowFolds, before: tuple[int, int]
) -> Marks:
    """Mark the labelled rows, and find the folds of all."""
    labelled = is_positive(y, positive)
    return Marks(labelled, folds.fold_of(labelled, *before))


def is_positive(y: NDArray[Any], positive: Any) -> Mask:
    """Say which entries are the positive label; a missing one never is."""
    present = ~is_missing(y)
    labelled = np.zeros(y.size, dtype=bool)
    labelled[present] = y[present] == positive
    return labelled


def count_folds(marks: Marks, n_folds: int) -> tuple[NDArray[np.intp]]:
    """Count the rows of each fold."""
    return (np.bincount(marks.fold, minlength=n_folds),)


def take(
    samples: NDArray[Any],
    marks: Marks,
    at: Positions | None,
    fold: int | None,
    held_out: bool,
    *numbers: Vector,
) -> SomeRows:
    """Take rows by their place among those a fold's model sees, or does not see."""
    if fold is None:
        rows = np.arange(marks.fold.size)
    else:
        rows = np.flatnonzero((marks.fold == fold) == held_out)
    rows = rows if at is None else rows[at]
    return SomeRows(
        samples[rows],
        Marks(marks.labelled[rows], marks.fold[rows]),
        tuple(number[rows] for number in numbers),
    )


def trained_by(fold: NDArray[np.int8], n_folds: int) -> Mask:
    """Say which rows the model of each fold is fitted on."""
    trained: Mask = fold[:, None] != np.arange(n_folds)
    return trained


def add_slopes(
    samples: NDArray[Any],
    marks: Marks,
    kernel: KernelFeatures,
    slopes: Slopes,
    n_folds: int,
    target: Vector | None,
    weight: Vector | None,
    column: Vector | None,
) -> tuple[Vector, Array]:
    """Add up losses and slopes over a block; coefficients are those of kernel values."""
    value = np.zeros(slopes.parameters.shape[1])
    slope = np.zeros_like(slopes.parameters)
    target = marks.labelled.astype(np.float64) if target is None else target
    weight = np.ones(target.size) if weight is None else weight
    for rows, block in _kernel_blocks(samples, kernel, column):
        trained = trained_by(marks.fold[rows], n_folds)
        more = slopes(RowBlock(block, target[rows], weight[rows], trained))
        value += more[0]
        slope += more[1]
    return value, slope


def _kernel_blocks(
    samples: NDArray[Any], kernel: KernelFeatures, column: Vector | None
) -> Iterator[tuple[slice, Array]]:
    """Give kernel values, rounded as everywhere, for products in double precision.

    One more column may stand beside them.
    Coefficients of kernel values are large, and cancel: single precision would leave a
    loss too rough to go down.
    """
    double = np.empty((0, 0))
    for rows, block in kernel.kernel_blocks(samples, _BLOCK_BYTES):
        width = block.shape[1]
        if len(double) < len(block):
            double = np.empty((len(block), width + (column is not None)))
        double[: len(block), :width] = block
        if column is not None:
            double[: len(block), width] = column[rows]
        yield rows, double[: len(block)]


def scores(
    samples: NDArray[Any],
    marks: Marks,
    kernel: KernelFeatures,
    inner: LinearFits,
    column: Vector | None,
) -> Vector:
    """Score each row by the model of all rows."""
    return _scores(samples, marks, kernel, inner, column)[0]


def held_out_scores(
    samples: NDArray[Any],
    marks: Marks,
    kernel: KernelFeatures,
    inner: LinearFits,
    column: Vector | None,
) -> Vector:
    """Score each row by the model of the fold that holds it out."""
    return _scores(samples, marks, kernel, inner, column)[1]


def blended_scores(
    samples: NDArray[Any],
    marks: Marks,
    kernel: KernelFeatures,
    inner: LinearFits,
    column: Vector | None,
    separability: float,
) -> Vector:
    """Score each row by the model of all rows and that of its fold."""
    return blend(*_scores(samples, marks, kernel, inner, column), separability)


def _scores(
    samples: NDArray[Any],
    marks: Marks,
    kernel: KernelFeatures,
    inner: LinearFits,
    column: Vector | None,
) -> tuple[Vector, Vector]:
    seen, unseen = np.empty(marks.fold.size), np.empty(marks.fold.size)
    for rows, block in _kernel_blocks(samples, kernel, column):
        by_each = block @ inner.coef + inner.intercept
        seen[rows] = by_each[:, 0]
        # The last column is that of the only model, where there is but one.
        fold = np.minimum(1 + marks.fold[rows], by_each.shape[1] - 1)
        unseen[rows] = by_each[np.arange(len(by_each)), fold]
    return seen, unseen


def chances_by_trees(
    samples: NDArray[Any], boosted: BoostedChance, at: Positions, part: Parts
) -> Vector:
    """Give chances of being labelled by trees; those grown of rows ``at`` hold them out."""
    held_out_by = np.full(len(samples), NO_PART, dtype=np.int8)
    held_out_by[at] = part
    return boosted.held_out(samples, held_out_by)


def map_values(
    function: Callable[..., Vector], values: Vector, marks: Marks, *others: Vector
) -> Vector:
    """Apply a function row by row."""
    return function(values, marks.labelled, *others)


def moments(values: Vector) -> tuple[int, float, float]:
    """Give number, mean and sum of squared differences from the mean."""
    if values.size == 0:
        return 0, 0.0, 0.0
    # Numbers that are too large are refused by who sees the sum.
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(values.mean(dtype=np.float64))
        squares = float(((values - mean) ** 2).sum(dtype=np.float64))
    return values.size, mean, squares


def moments_of(
    values: Vector, marks: Marks, labelled: bool | None
) -> tuple[int, float, float]:
    """Give those of the labelled or of the unlabelled rows, or of all."""
    return moments(values if labelled is None else of(values, marks, labelled))


def of(values: Vector, marks: Marks, labelled: bool) -> Vector:
    """Give the numbers of the labelled or of the unlabelled rows."""
    return values[marks.labelled == labelled]


def some_of(values: Vector, marks: Marks, labelled: bool, ranks: Positions) -> Vector:
    """Give the numbers of some of them, by their rank among them."""
    return of(values, marks, labelled)[ranks]


def places(marks: Marks, labelled: bool, ranks: Positions, first: int) -> Positions:
    """Give where such rows are in the table, by their rank among those of the block."""
    found: Positions = first + np.flatnonzero(marks.labelled == labelled)[ranks]
    return found


def count_at_most(
    values: Vector, marks: Marks, labelled: bool, value: float
) -> tuple[int]:
    """Count such rows whose number is at most the given one."""
    return (int(np.count_nonzero(of(values, marks, labelled) <= value)),)


def least(values: Vector, marks: Marks, labelled: bool, few: int) -> Vector:
    """Give the least of their numbers."""
    return np.sort(of(values, marks, labelled))[:few]


def merge_moments(parts: list[tuple[int, float, float]]) -> tuple[int, float, float]:
    """Put moments of blocks together, without the loss of a sum of squares."""
    n, mean, squares = 0, 0.0, 0.0
    for count, average, spread in parts:
        if count:
            apart, both = average - mean, n + count
            squares += spread + apart**2 * n * count / both
            mean += apart * count / both
            n = both
    return n, mean, squares
