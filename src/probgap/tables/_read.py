"""Read tables: whole, or a chunk of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from probgap._core.errors import refuse
from probgap._core.types import Vector
from probgap.tables._cells import Frame, check_columns, listed, pd, to_frame
from probgap.tables._csv import CsvRows
from probgap.tables._excel import ExcelRows
from probgap.tables._parquet import ParquetRows
from probgap.tables._source import (
    PARQUET,
    ZIP,
    OpenSource,
    Source,
    find_tables,
    join_digests,
)

_CHUNK_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Table:
    """A table that was read, and what is known of its file.

    Attributes
    ----------
    frame : DataFrame
        The rows. Cells of a CSV file are text, as they stand in the file, and missing
        where they are empty; columns of a Parquet file are numbers, booleans or text.
    name : str
        Name of the file; of several, that of their folder or their pattern.
    path : str
        The path or pattern, absolute; "-" for standard input, "" for a stream.
    sha256 : str
        Of the file's bytes; of several files, of their digests one after the other.
    notes : tuple of str
        How the file was read, where there was a choice.
    files : tuple of str
        The files, where there are several.
    weight : ndarray or None
        How many rows each represents, where they were drawn from a larger table.
    """

    frame: Frame
    name: str
    path: str
    sha256: str
    notes: tuple[str, ...]
    files: tuple[str, ...] = ()
    weight: Vector | None = None


def read_table(source: Source) -> Table:
    r"""Read a whole table from CSV, TSV, Parquet or Excel, maybe gzipped.

    What the file is shows in its first bytes, not in its name. The delimiter is the
    one of comma, semicolon, tab and bar that cuts most lines into as many cells as the
    header; in a file named ``.tsv`` it is the tab. Of an Excel workbook (``.xlsx``, with
    the extra ``excel``) the first sheet is read. Of several files, the rows follow each
    other in the order of the files' names; all need the columns of the first. Text is
    UTF-8, or UTF-16 with a mark; other bytes are read as latin-1, with
    a note. Which columns hold numbers is decided by :func:`plan_columns`, so that it
    never depends on how a file is read. A file that is no table is refused with an
    ``InvalidInputError`` that says why.

    Parameters
    ----------
    source : path, "-" or binary stream
        The file, a folder of Parquet or else of CSV and TSV files, or a pattern such as
        ``"data/*.csv"``; "-" is standard input.

    Returns
    -------
    Table
        The rows as a DataFrame, the file's name and SHA-256, and notes.

    Examples
    --------
    >>> import io
    >>> from probgap.tables import read_table
    >>> table = read_table(io.BytesIO(b"size;fraud\n3,5;yes\n2;\n"))
    >>> table.frame["size"].tolist()
    ['3.5', '2']
    >>> table.notes
    ('semicolon separated', 'decimal commas read as points')
    """
    files: list[Any] = [source]
    if isinstance(source, str | os.PathLike):
        files = list(find_tables(os.fspath(source)))
    frames: list[Frame] = []
    digests: list[str] = []
    notes: dict[str, None] = {}
    for file in files:
        columns = frames[0].columns if frames else None
        with TableReader(file, columns=columns) as reader:
            frames.append(to_frame(list(reader.batches()), start=0))
            digests.append(reader.finish())
            notes |= dict.fromkeys(reader.notes)
            if others := set(reader.columns).difference(frames[0].columns):
                more = listed(sorted(others))
                notes |= {f"left out of {reader.name}, not in all files: {more}": None}
    path = path_of(source)
    if len(files) == 1:
        return Table(frames[0], reader.name, path, digests[0], tuple(notes))
    frame = pd.concat(frames, ignore_index=True)
    name, every = Path(str(source)).name or str(source), tuple(map(str, files))
    return Table(frame, name, path, join_digests(digests), tuple(notes), every)


def path_of(source: Source) -> str:
    """Return where a table is, absolute; "-" is standard input, "" a stream."""
    if not isinstance(source, str | os.PathLike):
        return ""
    return "-" if source == "-" else str(Path(source).absolute())


def ids_of(frame: Frame, column: str | None) -> Any:
    """Return the user's names of the rows; None where no column holds them."""
    if column is None:
        return np.full(len(frame), None)
    return frame[column].astype("string").fillna("").to_numpy(dtype=object)


class TableReader(OpenSource):
    """An open table: a context manager and an iterator of DataFrames, chunk by chunk.

    Memory is bounded by the chunk, whatever the size of the file: a chunk ends after
    ``chunk_rows`` rows or 64 MB of cells, whichever comes first, and a CSV file is read
    64 MB ahead at most. Cells are those of :func:`read_table`; rows are indexed from 0.

    ``columns`` has the names of all columns of the file, ``n_bytes`` its size, None where
    it is not known.
    """

    def __init__(
        self,
        source: Source,
        *,
        chunk_rows: int = 50_000,
        columns: Iterable[str] | None = None,
        groups: Sequence[int] | None = None,
    ) -> None:
        if chunk_rows < 1:
            refuse(f"chunk_rows must be at least 1. Got {chunk_rows!r}.")
        _ = pd.DataFrame  # a missing library is named before the file is opened
        self._chunk_rows, self._groups = chunk_rows, groups
        super().__init__(source)
        with ExitStack() as on_error:
            on_error.callback(self.close)
            self._rows = self._open_rows()
            self.columns = self._rows.columns
            self.select(self.columns if columns is None else columns)
            on_error.pop_all()

    def _open_rows(self) -> CsvRows | ExcelRows | ParquetRows:
        if self.begins_with(PARQUET):
            return ParquetRows(self)
        return (ExcelRows if self.begins_with(ZIP) else CsvRows)(self)

    def select(self, columns: Iterable[str]) -> None:
        """Read these columns alone, in this order, from now on."""
        self._wanted = tuple(dict.fromkeys(columns))
        check_columns(self._wanted, self.columns, self.name)

    @property
    def bytes_read(self) -> int:
        """How many bytes of the file were read so far."""
        return self.counted.bytes_read

    def groups(self, max_rows: int) -> list[list[int]] | None:
        """Return row groups that hold so many rows together; None if there are none."""
        if not isinstance(self._rows, ParquetRows):
            return None
        parts: list[list[int]] = []
        room = 0
        for group, size in enumerate(self._rows.group_sizes):
            if size > room:
                parts.append([])
                room = max_rows
            parts[-1].append(group)
            room -= size
        return parts

    def batches(self) -> Iterator[Any]:
        """Return the rows as Arrow batches, in the sizes in which they come."""
        rows: Any = self._rows
        some = () if self._groups is None else (self._groups,)
        return rows.batches(self._wanted, *some)

    def __iter__(self) -> Iterator[Frame]:
        start, waiting, rows, size = 0, [], 0, 0
        for batch in self.batches():
            at = 0
            while at < batch.num_rows:
                waiting.append(batch.slice(at, self._chunk_rows - rows))
                at += waiting[-1].num_rows
                rows += waiting[-1].num_rows
                size += waiting[-1].nbytes
                if rows >= self._chunk_rows or size >= _CHUNK_BYTES:
                    yield to_frame(waiting, start=start)
                    start, waiting, rows, size = start + rows, [], 0, 0
        if waiting:
            yield to_frame(waiting, start=start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
