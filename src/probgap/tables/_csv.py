"""CSV files: encoding, delimiter, column names and rows."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from probgap._core.errors import refuse
from probgap._core.output import plural
from probgap.tables._cells import NUMBER, EmptyTableError, arrow_csv, pa, pc, shorten

if TYPE_CHECKING:
    from probgap.tables._read import TableReader

# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Surrogate escapes of bytes that are not UTF-8, read as Windows-1252, or as latin-1 where
# that is undefined.
_LATIN1 = {
    0xDC00 + byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte)
    for byte in range(128, 256)
}
_DELIMITERS = {",": None, ";": "semicolon", "\t": "tab", "|": "bar"}
_LINES_TO_SNIFF = 100
_HEAD = 1 << 20
_LONGEST_HEADER = 1 << 24
# Arrow reads up to 32 blocks ahead; a row must fit into one.
_BLOCK = 1 << 21
_DECIMAL_COMMA = r"^\s*[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+\s*$"


class CsvRows:
    """The rows of a CSV file as Arrow batches of strings; an empty cell is null.

    In a file with semicolons a cell such as ``3,5`` is the number 3.5, as most of
    Europe writes it.
    """

    closed = False

    def __init__(self, source: TableReader) -> None:
        self._source = source
        self._text = _decode(source)
        head, whole = "", False
        while not whole and len(head) < (_HEAD if "\n" in head else _LONGEST_HEADER):
            text = self._read_text(_HEAD)
            head, whole = head + text, len(text) < _HEAD
        body = re.sub(r"\A(?:[ \t]*[\r\n])*", "", head)
        if not body.strip():
            what = "is empty" if whole else "begins with many blank lines"
            msg = f"{source.name} {what}; expected a header and rows."
            raise EmptyTableError(msg)
        if announced := re.match(r"\"?sep=([\x01-\x7f])\"?\r?\n", body):
            body = body[announced.end() :]
        # A header may begin with #, as may lines of comments above it.
        below = re.sub(r"\A(?:#[^\r\n]*[\r\n]+)*", "", body)
        if announced:
            self._delimiter = announced[1]
        elif source.name.lower().endswith((".tsv", ".tsv.gz")):
            self._delimiter = "\t"
        else:
            self._delimiter = _sniff(below or body, whole=whole)
        self._refuse_comments(body, below)
        if kind := _DELIMITERS.get(self._delimiter):
            source.note(f"{kind} separated")
        cells, rest = self._read_header(body, whole=whole)
        self.columns = tidy_names(cells, source)
        self._n_lines = len(head[: len(head) - len(rest)].splitlines())
        if whole and not rest.strip():
            msg = f"{source.name} has a header but no rows."
            raise EmptyTableError(msg)
        self._ready = rest.encode()

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes as UTF-8, fewer only at the end, for Arrow."""
        while len(self._ready) < size and (text := self._read_text(size)):
            self._ready += text.encode()
        part, self._ready = self._ready[:size], self._ready[size:]
        return part

    def _read_text(self, size: int) -> str:
        """Return ``size`` characters, fewer only at the end."""
        try:
            text = self._text.read(size)
        except UnicodeDecodeError as error:
            refuse(
                f"{self._source.name} has the byte order mark of {error.encoding}, but "
                "other bytes that do not decode as such; save it as UTF-8."
            )
        if "\0" in text:
            self._source.refuse_format("binary data")
        try:
            text.encode()
        except UnicodeEncodeError:
            self._source.note("read as latin-1 where it is not UTF-8")
            return text.translate(_LATIN1)
        return text

    def _refuse_comments(self, body: str, below: str) -> None:
        """Refuse lines above the header, which have another number of cells."""
        if not below.strip() or below == body:
            return
        first, next_line = (text.splitlines()[0] for text in (body, below))
        counts = [
            len(next(csv.reader([line], delimiter=self._delimiter), []))
            for line in (first, next_line)
        ]
        if counts[0] != counts[1] or (counts[0] == 1 and re.match("##|# ", first)):
            refuse(
                f"{self._source.name} begins with lines of comments, such as "
                f"{shorten(first, 60)!r}; remove the lines above the column names, for "
                "example with grep -v '^#'."
            )

    def _read_header(self, text: str, *, whole: bool) -> tuple[list[str], str]:
        """Return the cells of the first line, and the text that follows."""
        stream = io.StringIO(text, newline="")
        line = f"The first line of {self._source.name}"
        try:
            cells = next(csv.reader(stream, delimiter=self._delimiter), [])
        except csv.Error:
            refuse(
                f"{line} has a name of more than 131,072 characters; is a quote left open?"
            )
        rest = text[stream.tell() :]
        if not rest and not whole:
            refuse(f"{line} is several megabytes long; is a quote left open?")
        if not cells:
            refuse(f"{line} has no column names.")
        refuse_numbers(cells, line)
        return cells, rest

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows, some megabytes at a time."""
        bad: list[Any] = []

        def note_bad_row(row: Any) -> str:
            bad.append(row)
            return "error"

        reading = arrow_csv.ReadOptions(
            use_threads=False, block_size=_BLOCK, column_names=self.columns
        )
        parsing = arrow_csv.ParseOptions(
            delimiter=self._delimiter,
            newlines_in_values=True,
            invalid_row_handler=note_bad_row,
        )
        converting = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(self.columns, pa.string()),
            include_columns=list(columns),
            strings_can_be_null=True,
            null_values=[""],
            check_utf8=False,
        )
        try:
            for batch in arrow_csv.open_csv(self, reading, parsing, converting):
                yield batch if self._delimiter != ";" else self._read_commas(batch)
        except pa.ArrowInvalid as error:
            refuse(self._explain(error, bad))

    def _read_commas(self, batch: Any) -> Any:
        arrays = batch.columns
        for at, column in enumerate(arrays):
            found = pc.match_substring_regex(column, _DECIMAL_COMMA)
            if pc.any(found).as_py():
                self._source.note("decimal commas read as points")
                whole = pc.replace_substring(column, ".", "")
                points = pc.replace_substring(whole, ",", ".")
                arrays[at] = pc.if_else(found, points, column)
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _explain(self, error: Exception, bad: list[Any]) -> str:
        if not bad:
            what = " ".join(str(error).split()).rstrip(".")[:200]
            if "straddl" in what:
                what = f"a row of more than {_BLOCK >> 20} MB"
            return f"Cannot read {self._source.name}: {what}; is a quote left open?"
        row = bad[0]
        several = "\n" in row.text.strip()
        hint = "correct the row, or quote cells that contain the delimiter."
        if several or row.text.count('"') % 2:
            hint = "is a quote left open?"
        return (
            f"{self._source.name} has {plural(row.actual_columns, 'cell')} in data row "
            f"{row.number} (near line {self._n_lines + row.number}), but "
            f"{row.expected_columns} in its header: {shorten(row.text, 60)!r}"
            f"{', over several lines' * several}; {hint}"
        )


def _decode(source: TableReader) -> io.TextIOWrapper:
    """Return the text of a source, in UTF-8 unless a byte order mark says otherwise.

    Bytes that are not UTF-8 are escaped one at a time, so that their meaning does not
    depend on the size of a read.
    """
    found = (code for mark, code in _MARKS.items() if source.begins_with(mark))
    encoding, errors = next(found, "utf-8"), "surrogateescape"
    if not encoding.startswith("utf-8"):
        errors = "strict"
        source.note(f"read as {encoding.upper()}")
    return io.TextIOWrapper(source.stream, encoding, errors, newline="\n")


def refuse_numbers(cells: Sequence[str], line: str) -> None:
    """Refuse a first line of numbers, where names of columns are expected."""
    if len(cells) > 1 and all(re.match(NUMBER, cell.strip()) for cell in cells):
        shown = ", ".join(cells[:4])
        refuse(f"{line} has only numbers ({shown} ...); add column names.")


def tidy_names(cells: Sequence[str], source: TableReader) -> tuple[str, ...]:
    """Return a name of one line for every column; refuse a name that is used twice."""
    columns: dict[str, int] = {}
    for at, cell in enumerate(cells, start=1):
        given = cell.removeprefix("\ufeff").strip()
        column = " ".join(given.split()) or f"column {at}"
        if column in columns:
            refuse(
                f"Columns {columns[column]} and {at} of {source.name} are both named "
                f"{column!r}; rename one of them."
            )
        columns[column] = at
        if not given:
            source.note(f"column {at} has no name and is called {column!r}")
        elif column != given:
            source.note(f"column {given!r} is called {column!r}")
    return tuple(columns)


def _sniff(text: str, *, whole: bool) -> str:
    """Return the delimiter that cuts most lines into as many cells as the first."""
    # The last line may be cut off.
    lines = text if whole else text[: text.rfind("\n") + 1] or text
    scores = {}
    for delimiter in _DELIMITERS:
        counts: list[int] = []
        rows = csv.reader(io.StringIO(lines, newline=""), delimiter=delimiter)
        with suppress(csv.Error):
            counts.extend(len(row) for row in islice(rows, _LINES_TO_SNIFF) if row)
        n_cells = counts[0] if counts else 0
        agree = sum(count == n_cells for count in counts) / max(1, len(counts))
        scores[delimiter] = (round(agree, 1), n_cells) if n_cells > 1 else (0.0, 0)
    return max(scores, key=scores.__getitem__)
