"""Parquet files: columns in plain form, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from probgap._core.errors import refuse
from probgap.tables._cells import (
    EmptyTableError,
    NestedCellsError,
    pa,
    pq,
    to_plain,
)
from probgap.tables._csv import tidy_names

if TYPE_CHECKING:
    from probgap.tables._read import TableReader

_BATCH_ROWS = 8_192
_INDEX_PREFIX = "__index_level_"


class ParquetRows:
    """The rows of a Parquet file as Arrow batches of numbers, booleans and text.

    A column of lists, structs, maps or raw bytes is refused when it is read.
    """

    def __init__(self, source: TableReader) -> None:
        self._source, self._name = source, source.name
        with self._explaining():
            self._file = pq.ParquetFile(source.as_file(), pre_buffer=False)
            about = self._file.metadata
            groups = range(about.num_row_groups)
            self.group_sizes = [about.row_group(at).num_rows for at in groups]
            self._n_rows = about.num_rows
        schema = self._file.schema_arrow
        # An index that pandas stored is no column of the table.
        stored = [name for name in schema.names if not name.startswith(_INDEX_PREFIX)]
        self.columns = tidy_names(stored, source)
        if len(stored) < len(schema):
            source.note("the index that pandas stored is left out")
        self._stored = dict(zip(self.columns, stored, strict=True))
        if self._n_rows == 0 or not stored:
            msg = f"{self._name} is empty: it has no rows or no columns."
            raise EmptyTableError(msg)

    def batches(
        self, columns: Sequence[str], row_groups: Sequence[int] | None = None
    ) -> Iterator[Any]:
        """Yield the rows in batches: all of them, or those of some row groups."""
        stored = [self._stored[column] for column in columns]
        n_read, n_bytes = 0, self._source.n_bytes or 0
        with self._explaining():
            for batch in self._file.iter_batches(
                _BATCH_ROWS, row_groups=row_groups, columns=stored
            ):
                n_read += batch.num_rows
                share = n_read / self._n_rows
                self._source.counted.bytes_read = int(share * n_bytes)
                arrays = [
                    self._plain(batch.column(name), column)
                    for name, column in zip(stored, columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _explaining(self) -> AbstractContextManager[None]:
        damaged = "truncated or damaged Parquet file"
        return self._source.explaining(damaged, pa.ArrowException, OSError, ValueError)

    def _plain(self, array: Any, column: str) -> Any:
        column = f"Column {column!r} of {self._name}"
        try:
            return to_plain(array)
        except NestedCellsError:
            refuse(
                f"{column} has the nested type {str(array.type)[:60]}, not one value per "
                "cell; unpack it into separate columns, or leave it out of the file."
            )
        except pa.ArrowException:
            refuse(
                f"{column} has the type {array.type}, not numbers, text, dates or "
                "booleans; leave it out of the file."
            )
