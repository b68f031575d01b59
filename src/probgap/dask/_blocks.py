"""Blocks of rows: calls on workers, and a sample of labelled and unlabelled rows."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from probgap._core.checks import (
    ObservedLabels,
    decode_labels,
    is_missing,
    require_labelled_and_unlabelled,
)
from probgap._core.errors import (
    load_library,
    refuse,
    warn,
)
from probgap._core.runtime import one_thread
from probgap._core.types import Mask, Rows, Vector

dask = load_library("dask", extra="dask", purpose="a fit on blocks")

Lazy = Any  # dask's Delayed, which has no types

# Most distinct labels counted in a block: two, and some more to show in an error.
_MOST_LABELS = 6
# Fewest rows of each kind to fit on.
_FEWEST = 2
_BYTES_OF_A_VALUE = 8


def on_workers(
    function: Callable[..., Any], calls: Iterable[Sequence[Any]]
) -> list[Any]:
    """Return what a pure function makes of the arguments of each call."""
    run = dask.delayed(_on_one_thread, pure=False)
    return list(dask.compute(*(run(function, *arguments) for arguments in calls)))


def _on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    # So that results do not depend on how many threads a worker has.
    with one_thread():
        return function(*arguments)


# How rows are chosen.


def draw_ranks(
    sizes: Rows, max_memory: float, n_columns: int, seed: int
) -> tuple[list[tuple[Rows, Rows]], tuple[float, float] | None]:
    """Draw all labelled rows, and as many unlabelled ones as memory allows.

    Returns for each block their ranks among its labelled and its unlabelled rows, whose
    numbers are in ``sizes``; and how many rows a labelled and an unlabelled one
    represents, None if all are drawn. The sample depends on the order of the rows and on
    the seed, not on how they are split into blocks.
    """
    numbers = sizes.sum(axis=1).tolist()
    drawn = _divide_memory(n_columns, numbers, max_memory)
    rng = np.random.default_rng([seed, 1])
    by_kind = []
    for n, few, inside in zip(numbers, drawn, sizes, strict=True):
        ranks = np.arange(n)
        if few < n:
            ranks = np.sort(rng.choice(n, few, replace=False, shuffle=False))
        by_kind.append(split_ranks(ranks, inside))
    weights = (numbers[0] / drawn[0], numbers[1] / drawn[1])
    return list(zip(*by_kind, strict=True)), None if drawn == numbers else weights


def _divide_memory(n_columns: int, numbers: list[int], max_memory: float) -> list[int]:
    """Return how many labelled rows to draw, and how many unlabelled ones."""
    most = int(max_memory // (_BYTES_OF_A_VALUE * n_columns))
    if most < 2 * _FEWEST:
        needed = 2 * _FEWEST * _BYTES_OF_A_VALUE * n_columns
        refuse(f"max_memory must hold some rows: {needed:,} bytes. Got {max_memory!r}.")
    n_labelled, n_unlabelled = numbers
    few = min(n_labelled, max(most // 2, most - n_unlabelled))
    if few < n_labelled:
        warn(
            f"The {n_labelled:,} labelled rows take more than half of max_memory="
            f"{max_memory:.3g}: {few:,} of them are drawn, and as many others, each "
            "weighted to represent all. Use a larger max_memory to fit to more."
        )
    return [few, min(n_unlabelled, most - few)]


def split_ranks(ranks: Rows, sizes: Rows) -> list[Rows]:
    """Return the ranks that fall into each block, counted from its first."""
    first = np.cumsum(sizes) - sizes
    parts = np.split(ranks, np.searchsorted(ranks, first[1:]))
    return [part - start for part, start in zip(parts, first, strict=True)]


# Rows of dask arrays and dataframes.


class Sample(NamedTuple):
    """Rows drawn from blocks, in the order of the table."""

    samples: NDArray[Any]
    labels: ObservedLabels
    rows: Rows  # their indices in the table
    weight: Vector | None  # how many rows each represents; None if all were taken


def draw_sample(
    X: Any, y: Any, named: tuple[object, object], max_memory: float, seed: int
) -> Sample:
    """Draw rows in one pass over the blocks, which checks every value.

    ``named`` are the labels that are said to mean positive, and negative.
    """
    pairs = _pair_blocks(X, y)
    counted = on_workers(_count_labels, ([labels] for _, labels in pairs))
    kinds = list(sum(counted, Counter()))
    if not kinds:
        refuse("X must hold rows. Got none.")
    known = np.array(kinds, dtype=object if None in kinds else None)
    labels = decode_labels(known, *named)
    positive = known[labels.labelled].tolist()
    negative = [] if labels.negative is None else known[labels.negative].tolist()
    n_rows = [part.total() for part in counted]
    of_kind = np.array([sum(part[mark] for mark in positive) for part in counted])
    sizes = np.stack([of_kind, n_rows - of_kind])
    require_labelled_and_unlabelled(labels, counts=sizes.sum(axis=1).tolist())
    ranks, weights = draw_ranks(sizes, max_memory, X.shape[1], seed)
    places = enumerate(np.cumsum(n_rows) - n_rows)
    calls = (
        (*pair, (positive, negative), X.shape[1], place, inside)
        for pair, place, inside in zip(pairs, places, ranks, strict=True)
    )
    taken = on_workers(_take, calls)
    samples, labelled, checked, rows = map(np.concatenate, zip(*taken, strict=True))
    weight = None if weights is None else np.where(labelled, *weights)
    found = ObservedLabels(labelled, labels.classes, labels.positive)
    if negative:
        found = replace(found, negative=checked)
    return Sample(samples, found, rows, weight)


def _pair_blocks(X: Any, y: Any) -> list[tuple[Lazy, Lazy]]:
    """Return the blocks of X, each with the labels of its rows."""
    blocks = _blocks_of(X, "X")
    if X.ndim != 2 or X.shape[1] == 0:
        more = "" if X.ndim != 2 else " and no column"
        refuse(f"X must have rows and columns. Got {X.ndim} dimension(s){more}.")
    if hasattr(X, "chunks") and hasattr(y, "chunks") and sum(X.chunks[0]) == y.shape[0]:
        # Blocks of unknown length are assumed to match, and checked when they are read.
        y = y.rechunk((X.chunks[0], *y.chunks[1:]))
    labels = _blocks_of(y, "y")
    if len(blocks) != len(labels):
        refuse(
            "y must have as many blocks as X, or be a dask array of known length. Got "
            f"{len(labels)} blocks beside {len(blocks)}."
        )
    return list(zip(blocks, labels, strict=True))


def _blocks_of(collection: Any, name: str) -> list[Lazy]:
    if not hasattr(collection, "to_delayed"):
        kind = type(collection).__name__
        refuse(
            f"{name} must be a dask array or a dask dataframe. Got {kind}; "
            "probgap.PGPUClassifier takes what is in memory."
        )
    if hasattr(collection, "chunks") and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    if hasattr(collection, "simplify"):
        # By itself, dask may merge the blocks of a few columns, but not those of others.
        blocks = collection.simplify().to_delayed(optimize_graph=False)
    else:
        blocks = collection.to_delayed()
    return list(np.ravel(np.asarray(blocks, dtype=object)))


# What workers do with a block.


def _as_labels(y: Any) -> NDArray[Any]:
    values = np.asarray(y)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _count_labels(y: Any) -> Counter[Any]:
    labels = _as_labels(y)
    missing = is_missing(labels)
    counts = Counter(labels[~missing].tolist()).most_common(_MOST_LABELS)
    return Counter(dict(counts)) + Counter({None: int(missing.sum())})


def _take(
    X: Any,
    y: Any,
    kinds: tuple[list[Any], list[Any]],
    n_columns: int,
    place: tuple[int, int],
    ranks: tuple[Rows, Rows],
) -> tuple[NDArray[Any], Mask, Mask, Rows]:
    """Take rows of a block by their ranks among labelled and other rows.

    ``kinds`` are the values that mean positive, and negative; ``place`` is the number of
    the block and that of its first row. Returns the samples, the masks of those that are
    labelled and negative, and their indices in the table.
    """
    labels = _as_labels(y)
    mask, checked = ~is_missing(labels), ~is_missing(labels)
    for which, kind in zip((mask, checked), kinds, strict=True):
        which[which] = np.isin(labels[which], kind)
    at, first = place
    try:
        values = _read_numbers(X, mask.size, n_columns, first)
    except (TypeError, ValueError) as error:
        refuse(
            "X must hold finite numbers, as many in every row, and y one label for each "
            f"row. Got {error} (block {at + 1}, rows {first + 1:,} to "
            f"{first + X.shape[0]:,})."
        )
    rows = rows_of(mask, ranks)
    return values[rows], mask[rows], checked[rows], rows + first


def rows_of(labelled: Mask, ranks: tuple[Rows, Rows]) -> Rows:
    """Return rows by their ranks among the labelled ones, and among the others."""
    kinds = zip((labelled, ~labelled), ranks, strict=True)
    return np.sort(np.concatenate([np.flatnonzero(mask)[at] for mask, at in kinds]))


def _read_numbers(X: Any, n_labels: int, n_columns: int, first: int) -> NDArray[Any]:
    """Return a block as finite floating point numbers, or say what is wrong with it."""
    if X.shape != (n_labels, n_columns):
        shape = f"{X.shape[0]:,} rows of {X.shape[1]} columns"
        refuse(f"{shape} beside {n_labels:,} labels, in place of {n_columns}")
    kinds = list(getattr(X, "dtypes", [getattr(X, "dtype", None)]))
    strange = [kind for kind in kinds if getattr(kind, "kind", "O") in "cmMSUV"]
    if strange or issparse(X) or isinstance(X, np.ma.MaskedArray):
        refuse(f"a {type(X).__name__} of {[*strange, *kinds][0]}")
    values = np.asarray(X)
    if values.dtype not in (np.float64, np.float32):
        values = values.astype(np.float64)
    for row, column in np.argwhere(~np.isfinite(values))[:1]:
        columns = getattr(X, "columns", None)
        name = f"feature {column}" if columns is None else f"column {columns[column]!r}"
        refuse(f"{values[row, column]} in {name}, row {first + row + 1:,}")
    return np.ascontiguousarray(values)
