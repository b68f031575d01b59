"""Parquet files: columns in plain form, in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from probgap._core.errors import InvalidInputError
from probgap.tables._base import Frame, pa, pc, pd, pq, refuse
from probgap.tables._csv import tidy_names
from probgap.tables._source import PARQUET, OpenSource

_BATCH_ROWS = 8_192
_INDEX_PREFIX = "__index_level_"


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Rows of a Parquet file that are read at once.

    Attributes
    ----------
    file : str
        The file.
    groups : tuple of int
        Its row groups.
    first : int
        The first row, counted from 0.
    n_rows : int
        Number of rows.
    """

    file: str
    groups: tuple[int, ...]
    first: int
    n_rows: int


def list_row_groups(
    file: str, *, max_rows: int = 250_000
) -> tuple[list[RowGroups], tuple[str, ...]]:
    """Cut a Parquet file into pieces of moderate size.

    Parameters
    ----------
    file : str
        A Parquet file.
    max_rows : int, default=250_000
        Row groups are put together up to so many rows.

    Returns
    -------
    pieces : list of RowGroups
        Row groups, put together.
    columns : tuple of str
        Names of the columns.

    Examples
    --------
    >>> from probgap.tables import list_row_groups
    >>> pieces, columns = list_row_groups("cases.parquet")  # doctest: +SKIP
    """
    with closing(_open(file)) as rows:
        stored, columns = rows.metadata, rows.columns
    sizes = [stored.row_group(at).num_rows for at in range(stored.num_row_groups)]
    pieces = [RowGroups(file, (), 0, 0)]
    for group, size in enumerate(sizes):
        last = pieces[-1]
        if last.groups and last.n_rows + size > max_rows:
            last = RowGroups(file, (), last.first + last.n_rows, 0)
            pieces.append(last)
        groups, n_rows = (*last.groups, group), last.n_rows + size
        pieces[-1] = replace(last, groups=groups, n_rows=n_rows)
    return pieces, columns


def read_row_groups(piece: RowGroups, columns: Sequence[str]) -> Frame:
    """Read a piece of a Parquet file as :func:`read_table` would read all of it.

    Parameters
    ----------
    piece : RowGroups
        The rows.
    columns : sequence of str
        The columns.

    Returns
    -------
    DataFrame
        The rows, indexed by their place in the file.

    Examples
    --------
    >>> from probgap.tables import list_row_groups, read_row_groups
    >>> pieces, columns = list_row_groups("cases.parquet")  # doctest: +SKIP
    >>> read_row_groups(pieces[0], columns)  # doctest: +SKIP
    """
    with closing(_open(piece.file)) as rows:
        missing = [name for name in columns if name not in rows.columns]
        if missing:
            refuse(
                f"Every file must have the same columns. Got none named {missing[0]!r} "
                f"in {piece.file}."
            )
        batches = list(rows.batches(columns, piece.groups))
    return to_frame(batches, start=piece.first)


def to_frame(batches: list[Any], *, start: int) -> Frame:
    """Return batches of rows as a frame, indexed by row from a given one on."""
    table = pa.Table.from_batches(batches)
    frame = table.to_pandas(date_as_object=False, integer_object_nulls=True)
    frame.index = pd.RangeIndex(start, start + len(frame))
    return frame


def _open(file: str) -> ParquetBatches:
    with closing(OpenSource(file)) as source:
        if source.peek(len(PARQUET)) != PARQUET:
            refuse(f"{file} must be a Parquet file, not gzipped. Got another kind.")
        return ParquetBatches(source)


class ParquetBatches:
    """The rows of a Parquet file as Arrow batches of numbers, booleans and strings.

    Dates and times come as text, decimals as floating point numbers, dictionaries as
    what they stand for. A column of lists, structs, maps or raw bytes is refused when
    it is read. A file from a pipe or from gzip is first copied to a temporary file, as
    Parquet is read from its end. ``share_read`` is the part of the rows read so far.
    """

    def __init__(self, source: OpenSource) -> None:
        self._name = source.name
        self.share_read = 0.0
        self._copy: BinaryIO | None = None
        try:
            self._open(source)
        except BaseException:
            self.close()
            raise

    def _open(self, source: OpenSource) -> None:
        file: Any = source.path
        with self._explained():
            if file is None or source.unzipped:
                file = self._copy = tempfile.TemporaryFile()  # noqa: SIM115 - see close
                while part := source.read(1 << 20):
                    file.write(part)
                file.seek(0)
            self._file = pq.ParquetFile(file, pre_buffer=False)
        self.metadata = self._file.metadata
        schema = self._file.schema_arrow
        # An index that pandas stored is no column of the table.
        fields = [f for f in schema if not f.name.startswith(_INDEX_PREFIX)]
        columns, self.notes = tidy_names([f.name for f in fields], self._name)
        if len(fields) < len(schema):
            self.notes = (*self.notes, "the index that pandas stored is left out")
        self._fields = dict(zip(columns, fields, strict=True))
        self.columns = tuple(columns)
        if self.metadata.num_rows == 0 or not columns:
            refuse(f"{self._name} must hold rows and columns. Got an empty table.")

    def batches(
        self, columns: Sequence[str], row_groups: Sequence[int] | None = None
    ) -> Iterator[Any]:
        """Yield the rows, some thousands at a time; of some row groups alone, if asked."""
        stored = [self._fields[column].name for column in columns]
        n_read, n_rows = 0, self.metadata.num_rows
        with self._explained():
            for batch in self._file.iter_batches(
                _BATCH_ROWS, row_groups=row_groups, columns=stored
            ):
                arrays = [
                    self._to_plain(batch.column(name), column)
                    for column, name in zip(columns, stored, strict=True)
                ]
                n_read += batch.num_rows
                self.share_read = n_read / n_rows
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def close(self) -> None:
        """Remove the temporary copy, if one was made."""
        if self._copy is not None:
            self._copy.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except InvalidInputError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            what = " ".join(str(error).split()).rstrip(".")[:160]
            refuse(
                f"{self._name} must be a whole Parquet file. Got a damaged one: {what}."
            )

    def _to_plain(self, array: Any, column: str) -> Any:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        kind, types = array.type, pa.types
        if types.is_nested(kind):
            refuse(
                f"Column {column!r} of {self._name} must hold one value per cell. Got "
                f"the nested type {str(kind)[:60]}; unpack it into columns of its own, "
                "or leave it out of the file."
            )
        if types.is_boolean(kind) or types.is_integer(kind):
            return array
        if types.is_floating(kind) or types.is_decimal(kind):
            return pc.cast(array, pa.float64(), safe=False)
        try:
            return pc.cast(array, pa.string())
        except pa.ArrowException:
            refuse(
                f"Column {column!r} of {self._name} must hold numbers, text, dates or "
                f"booleans. Got the type {kind}; leave it out of the file."
            )
