"""The first lines of a CSV file: which delimiter, which columns."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from probgap._core.errors import InvalidInputError

_DELIMITERS = {",": None, ";": "semicolon", "\t": "tab", "|": "bar"}
_LINES_TO_SNIFF = 100
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


@dataclass(frozen=True, slots=True)
class Header:
    """What the first lines of a CSV file say.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    delimiter : str
        What stands between two cells.
    rest : str
        The text after the header.
    n_lines : int
        How many lines the header took.
    notes : tuple of str
        What the reader should know.
    """

    columns: tuple[str, ...]
    delimiter: str
    rest: str
    n_lines: int
    notes: tuple[str, ...]


def read_header(text: str, *, whole: bool, name: str) -> Header:
    """Find delimiter and column names at the beginning of ``text``.

    ``whole`` says that the text is the whole file, so that its last line is no piece
    of a line.
    """
    start = _skip_blank_lines(text)
    if start == len(text):
        msg = f"{name} must hold a header and rows. Got " + (
            "an empty file." if whole else "blank lines alone."
        )
        raise InvalidInputError(msg)
    n_lines = len(text[:start].splitlines())
    body = text[start:]
    announced = re.match(r"\"?sep=(.)\"?\r?\n", body)
    if announced is not None:
        body = body[announced.end() :]
        n_lines += 1
    delimiter = announced.group(1) if announced else _sniff(body, whole=whole)
    cells, end, more = _first_record(body, delimiter, whole=whole, name=name)
    columns, notes = tidy_names(cells, name)
    if len(columns) > 1 and all(_NUMBER.fullmatch(cell) for cell in cells):
        msg = (
            f"The first line of {name} must hold the names of the columns. Got "
            f"numbers alone ({', '.join(cells[:4])} ...); add a line with names."
        )
        raise InvalidInputError(msg)
    kind = _DELIMITERS.get(delimiter)
    if kind is not None:
        notes = (f"{kind} separated", *notes)
    return Header(tuple(columns), delimiter, body[end:], n_lines + more, notes)


def tidy_names(cells: Sequence[object], name: str) -> tuple[list[str], tuple[str, ...]]:
    """Give every column one name of one line; two of the same name are refused."""
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
        msg = (
            f"The columns of {name} must have names of their own. Got {twice[0]!r} for "
            f"columns {', '.join(map(str, where[:5]))}; rename all but one of them."
        )
        raise InvalidInputError(msg)
    return columns, tuple(notes)


def _skip_blank_lines(text: str) -> int:
    blank = re.match(r"(?:[ \t]*[\r\n])*", text)
    start = blank.end() if blank else 0
    return start if text[start:].strip() else len(text)


def _sniff(text: str, *, whole: bool) -> str:
    """Take the delimiter that cuts most lines into as many cells as the first."""
    best, best_score = ",", (0.0, 0)
    for delimiter in _DELIMITERS:
        counts = _count_cells(text, delimiter, whole=whole)
        if counts and counts[0] > 1:
            agree = sum(count == counts[0] for count in counts) / len(counts)
            best, best_score = max(
                (best, best_score),
                (delimiter, (round(agree, 1), counts[0])),
                key=lambda pair: pair[1],
            )
    return best


def _count_cells(text: str, delimiter: str, *, whole: bool) -> list[int]:
    stream = io.StringIO(text, newline="")
    reader = csv.reader(stream, delimiter=delimiter)
    counts: list[int] = []
    with suppress(csv.Error):
        for row in islice(reader, _LINES_TO_SNIFF):
            # The last line of a head may be a piece of a line.
            if row and (whole or not counts or stream.tell() < len(text)):
                counts.append(len(row))
    return counts


def _first_record(
    text: str, delimiter: str, *, whole: bool, name: str
) -> tuple[list[str], int, int]:
    stream = io.StringIO(text, newline="")
    reader = csv.reader(stream, delimiter=delimiter)
    try:
        cells = next(reader)
    except csv.Error as error:
        what = str(error)
        if "field limit" in what:
            what = "a name of more than 131,072 characters; is a quote left open?"
        msg = f"The first line of {name} must hold the names of the columns. Got "
        raise InvalidInputError(msg + what) from error
    end = stream.tell()
    if end == len(text) and not whole:
        msg = (
            f"The first line of {name} must hold the names of the columns. Got a line "
            "of several megabytes; is a quote left open?"
        )
        raise InvalidInputError(msg)
    return cells, end, reader.line_num
