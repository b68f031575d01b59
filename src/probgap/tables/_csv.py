"""Batches of text cells from a CSV file, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from probgap._core.errors import InvalidInputError
from probgap.tables._decode import TextBytes
from probgap.tables._header import read_header
from probgap.tables._optional import load
from probgap.tables._source import OpenSource

_HEAD = 1 << 20
_LONGEST_HEADER = 1 << 24
# Arrow reads up to 32 blocks ahead; a row must fit into one.
_BLOCK = 1 << 21
_DECIMAL_COMMA = r"^\s*[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+\s*$"


class CsvBatches:
    """The rows of a CSV file as Arrow batches of strings; an empty cell is null.

    In a file with semicolons a cell such as ``3,5`` is the number 3.5, as most of
    Europe writes it.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns, as in the file.
    """

    def __init__(self, source: OpenSource) -> None:
        self._name = source.name
        self._bytes = TextBytes(source)
        size, head = _HEAD, self._bytes.head(_HEAD)
        while not self._bytes.ended and size < _LONGEST_HEADER and b"\n" not in head:
            size *= 4
            head = self._bytes.head(size)
        header = read_header(head.decode(), whole=self._bytes.ended, name=self._name)
        self.columns = header.columns
        self._delimiter = header.delimiter
        self._n_lines = header.n_lines
        self._notes = header.notes
        self._commas = False
        self._bytes.replace(header.rest.encode("utf-8"))
        if self._bytes.ended and not header.rest.strip():
            msg = f"{self._name} must hold rows below its header. Got a header alone."
            raise InvalidInputError(msg)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know, as far as the file was read."""
        read_as = (self._bytes.note,) if self._bytes.note else ()
        commas = ("decimal commas read as points",) if self._commas else ()
        return (*read_as, *self._notes, *commas)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Give the rows, some megabytes at a time."""
        pa, csv = load("pyarrow"), load("pyarrow.csv")
        bad: list[Any] = []

        def note_bad_row(row: Any) -> str:
            bad.append(row)
            return "error"

        try:
            reader = csv.open_csv(
                self._bytes,
                read_options=csv.ReadOptions(
                    use_threads=False,
                    block_size=_BLOCK,
                    column_names=self.columns,
                ),
                parse_options=csv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=note_bad_row,
                ),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(self.columns, pa.string()),
                    include_columns=list(columns),
                    strings_can_be_null=True,
                    null_values=[""],
                    check_utf8=False,
                ),
            )
            for batch in reader:
                yield self._with_points(batch)
        except pa.ArrowInvalid as error:
            raise self._explain(error, bad) from error

    def close(self) -> None:
        """Do nothing: the rows need nothing but the source."""

    def _with_points(self, batch: Any) -> Any:
        if self._delimiter != ";":
            return batch
        pa, pc = load("pyarrow"), load("pyarrow.compute")
        arrays = []
        for column in batch.columns:
            found = pc.match_substring_regex(column, _DECIMAL_COMMA)
            if pc.any(found).as_py():
                self._commas = True
                whole = pc.replace_substring(column, ".", "")
                points = pc.replace_substring(whole, ",", ".")
                arrays.append(pc.if_else(found, points, column))
            else:
                arrays.append(column)
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _explain(self, error: Exception, bad: list[Any]) -> InvalidInputError:
        if not bad:
            what = " ".join(str(error).split()).rstrip(".")[:200]
            if "straddl" in what:
                what = f"a row of more than {_BLOCK >> 20} MB"
            msg = (
                f"The rows of {self._name} must be CSV. Got: {what}; is a quote left "
                "open?"
            )
            return InvalidInputError(msg)
        row = bad[0]
        where = f"data row {row.number} (near line {self._n_lines + row.number})"
        several = "\n" in row.text.strip()
        if several or row.text.count('"') % 2:
            lines = ", which runs over several lines" if several else ""
            where += f"{lines}: is a quote left open?"
        text = " ".join(row.text.split())
        text = text if len(text) <= 60 else text[:57] + "..."
        msg = (
            f"Every row of {self._name} must have {row.expected_columns} cells, as its "
            f"header has. Got {row.actual_columns} in {where} ({text!r}); mend the row, "
            "or quote cells that hold the delimiter."
        )
        return InvalidInputError(msg)
