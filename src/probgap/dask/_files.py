"""A sample of the rows of files that are larger than memory."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from probgap import tables
from probgap._core.defaults import DEFAULTS
from probgap._core.errors import load_library
from probgap._core.runtime import spread_rows
from probgap._core.types import Rows
from probgap.dask._blocks import draw_ranks, on_workers, rows_of, split_ranks
from probgap.tables import LabelColumn, Table, TableReader

# A file, and the row groups of it that are read at a time, if it has some.
Piece: TypeAlias = tuple[str, list[int] | None]

_MOST_ROWS = 250_000  # of a Parquet file at a time
# Labelled and other rows that show how wide the prepared columns are.
_TO_MEASURE = (2000, 20_000)


def draw_table(
    source: str,
    label: str,
    *,
    positive: Sequence[str] | None = None,
    negative: str | None = None,
    seed: int = 0,
    max_memory: float = float(DEFAULTS.sample_bytes),
    **columns: Any,
) -> Table:
    """Draw all labelled rows of some files, and as many others as memory allows.

    The sample depends on the order of the rows and on the seed, not on who reads them.
    ``columns`` says how columns are to be used, as for ``plan_columns``; ``max_memory`` is
    for the prepared columns.

    Returns
    -------
    Table
        The rows, indexed by their place in all rows, and how many each represents.
    """
    files = tables.find_tables(source)
    with TableReader(files[0]) as reader:
        names = reader.columns
    pieces = [piece for file in files for piece in _list_pieces(file)]
    counted = on_workers(_count_rows, ((piece, label) for piece in pieces))
    total = dict(sum(counted, Counter()))
    labels = tables.read_label_counts(total, positive, negative, name=label)
    n_rows = np.array([part.total() for part in counted])
    tables.require_labels(labels.n_labelled, int(n_rows.sum()), label)
    labelled = np.array([labels.count(part) for part in counted])
    sizes = np.stack([labelled, n_rows - labelled])

    def take(ranks: list[tuple[Rows, Rows]]) -> Any:
        first = np.cumsum(n_rows) - n_rows
        calls = zip(pieces, first, ranks, strict=True)
        parts = on_workers(
            _take_rows, ((*call, names, label, labels) for call in calls)
        )
        return _concat(parts)

    by_kind = [
        split_ranks(spread_rows(n, min(n, most)), inside)
        for n, most, inside in zip(sizes.sum(axis=1), _TO_MEASURE, sizes, strict=True)
    ]
    sample = take(list(zip(*by_kind, strict=True)))
    width = _measure(sample, labels, label, columns)
    ranks, weights = draw_ranks(sizes, max_memory, width, seed)
    frame = take(ranks)
    name = Path(source).name if len(files) > 1 else Path(files[0]).name
    table = Table(frame, name, tables.path_of(source), "", (), tuple(files))
    if weights is None:
        return table
    known = labels.find(frame[label])
    note = (
        f"{len(frame):,} of {n_rows.sum():,} rows were drawn to fit and to check, "
        f"{known.sum():,} of {labels.n_labelled:,} labelled ones among them; counts "
        "are scaled to all rows."
    )
    return replace(table, notes=(note,), weight=np.where(known, *weights))


def _measure(sample: Any, labels: LabelColumn, label: str, columns: Any) -> int:
    known = labels.find(sample[label])
    plan = tables.plan_columns(sample, labelled=known, label=label, **columns)
    inputs = tables.read_inputs(sample, plan)
    return tables.make_preprocessor(plan).fit_transform(inputs).shape[1]


def _list_pieces(file: str) -> list[Piece]:
    with TableReader(file) as reader:
        parts = reader.groups(_MOST_ROWS)
    return [(file, None)] if parts is None else [(file, part) for part in parts]


def _read(piece: Piece, columns: Iterable[str]) -> Iterator[Any]:
    file, groups = piece
    with TableReader(file, columns=columns, groups=groups) as reader:
        yield from reader


def _count_rows(piece: Piece, label: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for frame in _read(piece, [label]):
        counts.update(tables.count_levels(frame[label]))
    return counts


def _take_rows(
    piece: Piece,
    first: int,
    ranks: tuple[Rows, Rows],
    names: tuple[str, ...],
    label: str,
    labels: LabelColumn,
) -> Any:
    """Take rows of a piece by their ranks among labelled and unlabelled ones."""
    parts, before = [], [0, 0]
    for frame in _read(piece, names) if any(map(len, ranks)) else ():
        known = labels.find(frame[label])
        wanted: list[Rows] = []
        for kind, size in enumerate((known.sum(), (~known).sum())):
            here = ranks[kind] - before[kind]
            wanted.append(here[(here >= 0) & (here < size)])
            before[kind] += int(size)
        parts.append(frame.iloc[rows_of(known, (wanted[0], wanted[1]))])
    taken = _concat(parts)
    return None if taken is None else taken.set_axis(taken.index + first)


def _concat(parts: list[Any]) -> Any:
    pd = load_library("pandas", extra="dask", purpose="tables in blocks")
    parts = [part for part in parts if part is not None]
    return pd.concat(parts) if parts else None
