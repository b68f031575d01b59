"""CSV files: which delimiter, which columns, and the rows in bounded memory."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from probgap.tables._base import arrow_csv, pa, pc, refuse, shorten
from probgap.tables._cells import NUMBER
from probgap.tables._source import OpenSource, TextBytes

_DELIMITERS = {",": None, ";": "semicolon", "\t": "tab", "|": "bar"}
_LINES_TO_SNIFF = 100
_HEAD = 1 << 20
_LONGEST_HEADER = 1 << 24
# Arrow reads up to 32 blocks ahead; a row must fit into one.
_BLOCK = 1 << 21
_DECIMAL_COMMA = r"^\s*[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+\s*$"


class CsvBatches:
    """The rows of a CSV file as Arrow batches of strings; an empty cell is null.

    In a file with semicolons a cell such as ``3,5`` is the number 3.5, as most of
    Europe writes it.
    """

    def __init__(self, source: OpenSource) -> None:
        self._name = source.name
        self._text = TextBytes(source)
        self._commas = False
        head = ""
        while not self._text.ended and len(head) < (
            _HEAD if "\n" in head else _LONGEST_HEADER
        ):
            head += self._text.read_text(_HEAD)
        rest = self._read_header(head, whole=self._text.ended)
        if self._text.ended and not rest.strip():
            refuse(f"{self._name} must hold rows below its header. Got a header alone.")
        self._text.unread(rest)

    def _read_header(self, text: str, *, whole: bool) -> str:
        """Find delimiter and names at the beginning of a file; return what follows."""
        blank = re.match(r"(?:[ \t]*[\r\n])*", text)
        body = text[blank.end() :] if blank else text
        if not body.strip():
            got = "an empty file" if whole else "blank lines alone"
            refuse(f"{self._name} must hold a header and rows. Got {got}.")
        announced = re.match(r"\"?sep=(.)\"?\r?\n", body)
        body = body[announced.end() :] if announced else body
        self._delimiter = announced[1] if announced else _sniff(body, whole=whole)
        cells, rest = _first_record(body, self._delimiter, whole=whole, name=self._name)
        columns, notes = tidy_names(cells, self._name)
        if len(columns) > 1 and all(re.match(NUMBER, cell.strip()) for cell in cells):
            refuse(
                f"The first line of {self._name} must hold the names of the columns. Got "
                f"numbers alone ({', '.join(cells[:4])} ...); add a line with names."
            )
        kind = _DELIMITERS.get(self._delimiter)
        self._header_notes = (*([f"{kind} separated"] if kind else []), *notes)
        self._n_lines = len(text[: len(text) - len(rest)].splitlines())
        self.columns = tuple(columns)
        return rest

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know, as far as the file was read."""
        read_as = (self._text.note,) if self._text.note else ()
        commas = ("decimal commas read as points",) if self._commas else ()
        return (*read_as, *self._header_notes, *commas)

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
            options = (reading, parsing, converting)
            for batch in arrow_csv.open_csv(self._text, *options):
                yield batch if self._delimiter != ";" else self._with_points(batch)
        except pa.ArrowInvalid as error:
            refuse(self._explain(error, bad))

    def close(self) -> None:
        """Do nothing: the rows need nothing but the source."""

    def _with_points(self, batch: Any) -> Any:
        arrays = batch.columns
        for at, column in enumerate(arrays):
            found = pc.match_substring_regex(column, _DECIMAL_COMMA)
            if pc.any(found).as_py():
                self._commas = True
                whole = pc.replace_substring(column, ".", "")
                points = pc.replace_substring(whole, ",", ".")
                arrays[at] = pc.if_else(found, points, column)
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _explain(self, error: Exception, bad: list[Any]) -> str:
        if not bad:
            what = " ".join(str(error).split()).rstrip(".")[:200]
            if "straddl" in what:
                what = f"a row of more than {_BLOCK >> 20} MB"
            rule = f"The rows of {self._name} must be CSV."
            return f"{rule} Got: {what}; is a quote left open?"
        row = bad[0]
        where = f"data row {row.number} (near line {self._n_lines + row.number})"
        several = "\n" in row.text.strip()
        if several or row.text.count('"') % 2:
            lines = ", which runs over several lines" if several else ""
            where += f"{lines}: is a quote left open?"
        return (
            f"Every row of {self._name} must have {row.expected_columns} cells, as its "
            f"header has. Got {row.actual_columns} in {where} ({shorten(row.text, 60)!r}); "
            "mend the row, or quote cells that hold the delimiter."
        )


def tidy_names(cells: Sequence[object], name: str) -> tuple[list[str], tuple[str, ...]]:
    """Return a name of one line for every column, and notes; refuse a name used twice."""
    columns, notes = [], []
    for at, cell in enumerate(cells, start=1):
        given = str(cell).removeprefix("\ufeff")
        column = " ".join(given.split()) or f"column {at}"
        if not given.strip():
            notes.append(f"column {at} has no name and is called {column!r}")
        elif column != given.strip():
            notes.append(f"column {given!r} is called {column!r}")
        columns.append(column)
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        where = [i for i, column in enumerate(columns, start=1) if column == twice[0]]
        refuse(
            f"The columns of {name} must have names of their own. Got {twice[0]!r} for "
            f"columns {', '.join(map(str, where[:5]))}; rename all but one of them."
        )
    return columns, tuple(notes)


def _sniff(text: str, *, whole: bool) -> str:
    """Return the delimiter that cuts most lines into as many cells as the first."""
    best, best_score = ",", (0.0, 0)
    for delimiter in _DELIMITERS:
        stream = io.StringIO(text, newline="")
        counts: list[int] = []
        with suppress(csv.Error):
            for row in islice(csv.reader(stream, delimiter=delimiter), _LINES_TO_SNIFF):
                # The last line of a head may be a piece of a line.
                if row and (whole or not counts or stream.tell() < len(text)):
                    counts.append(len(row))
        if counts and counts[0] > 1:
            agree = sum(count == counts[0] for count in counts) / len(counts)
            score = round(agree, 1), counts[0]
            if score > best_score:
                best, best_score = delimiter, score
    return best


def _first_record(
    text: str, delimiter: str, *, whole: bool, name: str
) -> tuple[list[str], str]:
    """Return the cells of the header, and the text that follows."""
    stream = io.StringIO(text, newline="")
    what = "no name." if whole else "a line of several megabytes; is a quote left open?"
    cells: list[str] = []
    try:
        cells = next(csv.reader(stream, delimiter=delimiter), [])
    except csv.Error as error:
        what = str(error)
        if "field limit" in what:
            what = "a name of more than 131,072 characters; is a quote left open?"
    rest = text[stream.tell() :]
    if not cells or (not rest and not whole):
        refuse(
            f"The first line of {name} must hold the names of the columns. Got {what}"
        )
    return cells, rest
