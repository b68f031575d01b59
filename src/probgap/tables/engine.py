"""What the command line and dask need of tables: files in pieces, labels by counts."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from probgap.tables._base import Frame, Series, pa, pq, refuse
from probgap.tables._cells import to_cells
from probgap.tables._labels import count_levels, read_label_counts
from probgap.tables._parquet import ParquetRows
from probgap.tables._plan import ColumnPlan
from probgap.tables._read import to_frame
from probgap.tables._source import PARQUET, OpenSource

__all__ = [
    "RowGroups",
    "append_parquet",
    "count_levels",
    "find_tables",
    "list_row_groups",
    "missing_columns",
    "needed_columns",
    "read_label_counts",
    "read_row_groups",
]


def find_tables(source: str) -> list[str]:
    """Return the files of a folder of Parquet files, of a pattern, or of one file.

    They are in the order of their names; of several, those that hold rows.
    """
    path = Path(source)
    if path.is_dir():
        files = sorted(str(file) for file in path.glob("*.parquet"))
    elif glob.has_magic(source) and not path.exists():
        found = glob.glob(source)  # noqa: PTH207 (a pattern may be absolute)
        files = sorted(file for file in found if Path(file).is_file())
    else:
        return [source]
    # Other tools write files without rows beside those that have some.
    files = [file for file in files if _may_hold_rows(file)] or files
    if not files:
        refuse(f"The folder or pattern {source!r} has no Parquet files.")
    return files


def _may_hold_rows(file: str) -> bool:
    try:
        return int(pq.read_metadata(file).num_rows) > 0
    except (pa.ArrowException, OSError):
        return True  # reported when it is read


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups of a Parquet file that are read at once; ``first`` is their first row."""

    file: str
    groups: tuple[int, ...]
    first: int
    n_rows: int


def list_row_groups(
    file: str, *, max_rows: int = 250_000
) -> tuple[list[RowGroups], tuple[str, ...]]:
    """Return the row groups of a file in pieces of at most some rows, and the columns."""
    with _open(file) as rows:
        stored, columns = rows.metadata, rows.columns
    pieces = [RowGroups(file, (), 0, 0)]
    for group in range(stored.num_row_groups):
        last, size = pieces[-1], stored.row_group(group).num_rows
        if last.groups and last.n_rows + size > max_rows:
            last = RowGroups(file, (), last.first + last.n_rows, 0)
            pieces.append(last)
        groups, n_rows = (*last.groups, group), last.n_rows + size
        pieces[-1] = replace(last, groups=groups, n_rows=n_rows)
    return pieces, columns


def read_row_groups(piece: RowGroups, columns: Sequence[str]) -> Frame:
    """Read a piece of a Parquet file, with rows indexed by their place in the file."""
    with _open(piece.file) as rows:
        missing = [name for name in columns if name not in rows.columns]
        if missing:
            refuse(
                f"{piece.file} has no column {missing[0]!r}; all files must have it."
            )
        return to_frame(list(rows.batches(columns, piece.groups)), start=piece.first)


@contextmanager
def _open(file: str) -> Iterator[ParquetRows]:
    with closing(OpenSource(file)) as source:
        if source.peek(len(PARQUET)) != PARQUET:
            refuse(f"{file} is not a Parquet file, or it is gzipped.")
        yield ParquetRows(source)


def needed_columns(model: Any) -> tuple[str, ...]:
    """Return the columns that a plan, a ColumnTransformer or its pipeline needs."""
    if isinstance(model, ColumnPlan):
        return model.inputs
    while hasattr(model, "steps"):
        model = model.steps[0][1]
    if not hasattr(model, "transformers"):
        refuse(
            "model must be a plan of columns, a ColumnTransformer or a pipeline that "
            f"begins with one. Got {type(model).__name__}."
        )
    return tuple(name for _, _, names in model.transformers for name in names)


def missing_columns(model: Any, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that a model needs and a table lacks."""
    have = set(columns)
    return tuple(name for name in needed_columns(model) if name not in have)


@contextmanager
def append_parquet(stream: Any) -> Iterator[Callable[[Frame], None]]:
    """Yield a function that writes frames to a Parquet file, one after the other.

    The first decides the types of the columns; anything but numbers becomes text.
    """
    writer: Any = None

    def write(frame: Frame) -> None:
        nonlocal writer
        rows = pa.table({str(name): _plain(frame[name]) for name in frame.columns})
        if writer is None:
            writer = pq.ParquetWriter(stream, rows.schema)
        try:
            writer.write_table(rows.cast(writer.schema))
        except pa.ArrowException as error:
            refuse(f"Later rows do not have the column types of the first: {error}.")

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _plain(column: Series) -> Any:
    if column.dtype.kind in "biuf":
        return pa.array(column.to_numpy())
    return to_cells(column).cast(pa.string())
