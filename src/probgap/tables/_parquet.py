"""Batches of plain columns from a Parquet file, in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, BinaryIO

from probgap._core.errors import InvalidInputError
from probgap.tables._header import tidy_names
from probgap.tables._optional import Frame, load
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
        sizes, columns = rows.row_group_sizes(), rows.columns
    pieces: list[RowGroups] = []
    groups: list[int] = []
    first = n_rows = 0
    for group, size in enumerate(sizes):
        if groups and n_rows + size > max_rows:
            pieces.append(RowGroups(file, tuple(groups), first, n_rows))
            first, n_rows, groups = first + n_rows, 0, []
        groups.append(group)
        n_rows += size
    pieces.append(RowGroups(file, tuple(groups), first, n_rows))
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
            msg = (
                f"Every file must have the same columns. Got none named {missing[0]!r} "
                f"in {piece.file}."
            )
            raise InvalidInputError(msg)
        batches = list(rows.batches(columns, piece.groups))
    return to_frame(batches, start=piece.first)


def to_frame(batches: list[Any], *, start: int) -> Frame:
    """Put batches of rows together, indexed by row from a given one on."""
    pa, pd = load("pyarrow"), load("pandas")
    table = pa.Table.from_batches(batches)
    frame = table.to_pandas(date_as_object=False, integer_object_nulls=True)
    frame.index = pd.RangeIndex(start, start + len(frame))
    return frame


def _open(file: str) -> ParquetBatches:
    with closing(OpenSource(file)) as source:
        if source.peek(len(PARQUET)) != PARQUET:
            msg = f"{file} must be a Parquet file, not gzipped. Got another kind."
            raise InvalidInputError(msg)
        return ParquetBatches(source)


class ParquetBatches:
    """The rows of a Parquet file as Arrow batches of numbers, booleans and strings.

    Dates and times come as text, decimals as floating point numbers, dictionaries as
    what they stand for. A column of lists, structs, maps or raw bytes is refused when
    it is read. A file from a pipe or from gzip is first copied to a temporary file, as
    Parquet is read from its end.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns, as in the file.
    notes : tuple of str
        What the reader should know.
    share_read : float
        Which part of the rows was read.
    """

    def __init__(self, source: OpenSource) -> None:
        pa, pq = load("pyarrow"), load("pyarrow.parquet")
        self._name = source.name
        self.share_read = 0.0
        self._copy: BinaryIO | None = None
        file: Any = source.path
        if file is None or source.unzipped:
            file = self._copy = tempfile.TemporaryFile()  # noqa: SIM115 - see close
        try:
            if self._copy is not None:
                while part := source.read(1 << 20):
                    self._copy.write(part)
                self._copy.seek(0)
            self._file = pq.ParquetFile(file, pre_buffer=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            self.close()
            if isinstance(error, InvalidInputError):
                raise
            raise self._damaged(error) from error
        schema = self._file.schema_arrow
        # An index that pandas stored is no column of the table.
        self._fields = [f for f in schema if not f.name.startswith(_INDEX_PREFIX)]
        columns, notes = tidy_names([f.name for f in self._fields], self._name)
        self.columns = tuple(columns)
        dropped = len(schema) - len(self._fields)
        index = ("the index that pandas stored is left out",) if dropped else ()
        self.notes = (*notes, *index)
        if self._file.metadata.num_rows == 0 or not columns:
            self.close()
            msg = f"{self._name} must hold rows and columns. Got an empty table."
            raise InvalidInputError(msg)

    def batches(
        self, columns: Sequence[str], row_groups: Sequence[int] | None = None
    ) -> Iterator[Any]:
        """Give the rows, some thousands at a time; of some row groups alone, if asked."""
        pa = load("pyarrow")
        fields = dict(zip(self.columns, self._fields, strict=True))
        pairs = [(column, fields[column]) for column in columns]
        for column, field in pairs:
            self._refuse_nested(column, field.type)
        stored = [field.name for _, field in pairs]
        n_read, n_rows = 0, self._file.metadata.num_rows
        try:
            for batch in self._file.iter_batches(
                _BATCH_ROWS, row_groups=row_groups, columns=stored
            ):
                arrays = [
                    self._plain(batch.column(name), column)
                    for (column, _), name in zip(pairs, stored, strict=True)
                ]
                n_read += batch.num_rows
                self.share_read = n_read / n_rows
                yield pa.RecordBatch.from_arrays(arrays, names=[c for c, _ in pairs])
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error

    def row_group_sizes(self) -> list[int]:
        """Give the number of rows of each row group."""
        metadata = self._file.metadata
        return [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]

    def close(self) -> None:
        """Remove the temporary copy, if one was made."""
        if self._copy is not None:
            self._copy.close()

    def _refuse_nested(self, column: str, kind: Any) -> None:
        types = load("pyarrow").types
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_nested(kind) or types.is_union(kind):
            msg = (
                f"Column {column!r} of {self._name} must hold one value per cell. Got "
                f"the nested type {str(kind)[:60]}; unpack it into columns of its own, "
                "or leave it out of the file."
            )
            raise InvalidInputError(msg)

    def _plain(self, array: Any, column: str) -> Any:
        pa, pc = load("pyarrow"), load("pyarrow.compute")
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        kind = array.type
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
            return array
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return pc.cast(array, pa.float64(), safe=False)
        try:
            return pc.cast(array, pa.string())
        except pa.ArrowException as error:
            msg = (
                f"Column {column!r} of {self._name} must hold numbers, text, dates or "
                f"booleans. Got the type {kind}; leave it out of the file."
            )
            raise InvalidInputError(msg) from error

    def _damaged(self, error: Exception) -> InvalidInputError:
        what = " ".join(str(error).split()).rstrip(".")[:160]
        msg = f"{self._name} must be a whole Parquet file. Got a damaged one: {what}."
        return InvalidInputError(msg)
