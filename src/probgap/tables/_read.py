"""Read tables: whole, or a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from probgap.tables._base import Frame, check_columns, pa, pd, refuse
from probgap.tables._csv import CsvRows
from probgap.tables._parquet import ParquetRows
from probgap.tables._source import PARQUET, OpenSource, Source

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
        Name of the file.
    sha256 : str
        Of the file's bytes.
    notes : tuple of str
        How the file was read, where there was a choice.
    """

    frame: Frame
    name: str
    sha256: str
    notes: tuple[str, ...]


def read_table(source: Source) -> Table:
    r"""Read a whole table from a CSV, TSV or Parquet file, maybe gzipped.

    What the file is shows in its first bytes, not in its name. The delimiter is the
    one of comma, semicolon, tab and bar that cuts most lines into as many cells as the
    header. Text is UTF-8, or UTF-16 with a mark; other bytes are read as latin-1, with
    a note. No cell of a CSV file is interpreted here: which columns hold numbers is
    decided by :func:`plan_columns`, so that it never depends on how a file is read.
    A file that is no table is refused with an ``InvalidInputError`` that says why.

    Parameters
    ----------
    source : path, "-" or binary stream
        The file; "-" is standard input.

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
    with TableReader(source) as reader:
        frame = to_frame(list(reader.batches()), start=0)
        return Table(frame, reader.name, reader.finish(), reader.notes)


def open_table(
    source: Source, *, chunk_rows: int = 50_000, columns: Iterable[str] | None = None
) -> TableReader:
    r"""Open a table to go through it a chunk of rows at a time.

    Memory is bounded by the chunk, whatever the size of the file: a chunk ends after
    ``chunk_rows`` rows or 64 MB of cells, whichever comes first, and a CSV file is read
    64 MB ahead at most. Cells are the same as those of :func:`read_table`.

    Parameters
    ----------
    source : path, "-" or binary stream
        The file, as in :func:`read_table`.
    chunk_rows : int, default=50_000
        The most rows a chunk may have.
    columns : iterable of str, default=None
        The columns that are wanted, in this order; all by default.

    Returns
    -------
    TableReader
        A context manager and an iterator of DataFrames, indexed by row from 0 on.

    Examples
    --------
    >>> import io
    >>> from probgap.tables import open_table
    >>> with open_table(io.BytesIO(b"a,b\n1,x\n2,y\n3,z\n"), chunk_rows=2) as reader:
    ...     [len(chunk) for chunk in reader]
    [2, 1]
    """
    return TableReader(source, chunk_rows=chunk_rows, columns=columns)


class TableReader:
    """An open table: a context manager and an iterator of DataFrames, chunk by chunk.

    Made by :func:`open_table`.

    Attributes
    ----------
    columns : tuple of str
        Names of all columns of the file.
    name : str
        Name of the file.
    n_bytes : int or None
        Size of the file, where it is known.
    """

    def __init__(
        self,
        source: Source,
        *,
        chunk_rows: int = 50_000,
        columns: Iterable[str] | None = None,
    ) -> None:
        if chunk_rows < 1:
            refuse(f"chunk_rows must be at least 1. Got {chunk_rows!r}.")
        _ = pd.DataFrame  # a missing library is named before the file is opened
        self._chunk_rows = chunk_rows
        self._source = OpenSource(source)
        self.name = self._source.name
        self.n_bytes = self._source.n_bytes
        with ExitStack() as on_error:
            on_error.callback(self.close)
            is_parquet = self._source.peek(len(PARQUET)) == PARQUET
            self._rows = (ParquetRows if is_parquet else CsvRows)(self._source)
            self.columns = self._rows.columns
            self.select(self.columns if columns is None else columns)
            on_error.pop_all()

    def select(self, columns: Iterable[str]) -> None:
        """Read these columns alone, in this order, from now on."""
        self._wanted = tuple(dict.fromkeys(columns))
        check_columns(self._wanted, self.columns, self.name)

    @property
    def bytes_read(self) -> int:
        """How many bytes of the file were read so far."""
        return self._source.counted.bytes_read

    @property
    def notes(self) -> tuple[str, ...]:
        """How the file is read, where there was a choice, as far as that is known."""
        return tuple(self._source.notes)

    def batches(self) -> Iterator[Any]:
        """Return the rows as Arrow batches, in the sizes in which they come."""
        return self._rows.batches(self._wanted)

    def finish(self) -> str:
        """Read to the end and return the SHA-256 of the file."""
        return self._source.finish()

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

    def close(self) -> None:
        """Close the file and remove what was needed to read it."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def to_frame(batches: list[Any], *, start: int) -> Frame:
    """Return batches of rows as a frame, indexed by row from a given one on."""
    table = pa.Table.from_batches(batches)
    frame = table.to_pandas(date_as_object=False, integer_object_nulls=True)
    frame.index = pd.RangeIndex(start, start + len(frame))
    return frame
