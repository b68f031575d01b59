"""What a column holds: numbers, a category, text, dates, names of rows."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError
from probgap.tables._cells import (
    is_exact,
    is_number_typed,
    to_cells,
    to_floats,
    to_levels,
    to_text,
)
from probgap.tables._optional import Cells, Series, load

# Of the cells that are there, this share must look like a date.
_DATE_SHARE = 0.9
# A column whose cells are numbers but for this share at most was meant as numbers ...
_STRAY_SHARE = 0.1
# ... if it has more values than this; with fewer, they are codes.
_CODES = 20
_MOSTLY_MISSING = 0.98
_MOSTLY_DISTINCT = 0.9
_MANY_ROWS = 10
_WORDS, _LENGTH = 4.0, 40.0
_FEW, _SAMPLE = 20, 1_000
# Words of two letters or more; of scripts without blanks, each sign by itself.
TOKEN = r"(?u)[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\b\w\w+\b"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*([ap]m)?\s*(z|utc|[+-]\d{2}:?\d{2})?"
_DATE = (
    r"(?i)^("
    rf"\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}([ t]+{_TIME})?"
    rf"|\d{{1,2}}[-/.]\d{{1,2}}[-/.](\d{{2}}|\d{{4}})([ t,]+{_TIME})?"
    rf"|\d{{1,2}}[-. ]+{_MONTH}[-, ]+(\d{{2}}|\d{{4}})([ t,]+{_TIME})?"
    rf"|{_MONTH}[- ]+\d{{1,2}}(st|nd|rd|th)?[-, ]+\d{{4}}([ t,]+{_TIME})?"
    rf"|{_TIME}"
    r")$"
)
_ID_NAME = re.compile(
    r"(?:^|[\W_])(?:id|ids|uid|uuid|guid|index|idx|key|rowid|rownum)$"
    r"|^id(?:[\W_]|$)|[a-z](?:Id|ID|UUID|Key)$"
    r"|^row(?:[\W_]*(?:number|nr|no|num|id))?$|^(?:unnamed|column 1$)",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a column holds, and what shows it.

    Attributes
    ----------
    use : str
        "number", "category", "text" or "left out".
    why : str
        The reason, in words.
    n_missing, n_distinct : int
        Cells without a value, and values that differ.
    example : str
        A cell.
    codes : ndarray of shape (n_rows,)
        Which value each row has, numbered by first appearance; -1 for none.
    key : bytes
        The same for two columns that tell the same.
    """

    use: str
    why: str
    n_missing: int
    n_distinct: int
    example: str
    codes: NDArray[np.int64]
    key: bytes


def find_kind(column: Series, *, min_frequency: int) -> Kind:
    """Find out what a column holds."""
    cells = to_cells(column)
    values, bad = to_floats(cells)
    numeric = not bad.any() and is_exact(cells) and not _all_words(cells, values)
    if numeric:
        codes, n_distinct = _number_codes(values)
    else:
        codes, n_distinct = _level_codes(cells)
    present = codes >= 0
    n_present = int(present.sum())
    example = _example(cells, present)
    if numeric and n_present:
        use, why = _kind_of_numbers(column.name, values[present], n_distinct)
    elif n_present:
        _refuse_strays(column, cells, values, bad, n_distinct)
        use, why = _kind_of_text(column.name, cells, codes, n_distinct, min_frequency)
    else:
        use, why = "left out", "all cells are empty"
    n_missing = len(codes) - n_present
    if n_present and n_missing > _MOSTLY_MISSING * len(codes):
        use, why = "left out", f"{n_missing} of {len(codes)} cells are empty"
    elif n_distinct == 1 and not n_missing:
        use, why = "left out", "constant"
    told = values if numeric else codes
    key = hashlib.sha256(told.tobytes()).digest()
    return Kind(use, why, n_missing, n_distinct, example, codes, key)


def describe(column: Series) -> tuple[int, int, str]:
    """Count missing cells and values that differ, and give a cell, of any column."""
    cells = to_cells(column)
    codes, n_distinct = _level_codes(cells)
    present = codes >= 0
    return int((~present).sum()), n_distinct, _example(cells, present)


def check_finite(column: Series) -> None:
    """Raise if a column of numbers has an infinite one, or one beyond all bounds."""
    values, _ = to_floats(to_cells(column))
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        at = int(infinite[0])
        msg = (
            f"Column {column.name!r} must hold finite numbers. Got "
            f"{str(column.iloc[at])!r} in row {row_number(column, at)}; mend or empty "
            "the cell, or leave the column out (--drop)."
        )
        raise InvalidInputError(msg)


def row_number(frame: Series, at: int) -> int:
    """Give the number, from 1, of a row in the table that a frame is a part of."""
    label = frame.index[at]
    return int(label) + 1 if isinstance(label, int | np.integer) else at + 1


def _all_words(cells: Cells, values: NDArray[np.float64]) -> bool:
    """Say whether text of words for missing alone would pass as numbers."""
    pc = load("pyarrow.compute")
    return (
        not is_number_typed(cells)
        and bool(np.isnan(values).all())
        and to_levels(cells).null_count < len(cells)
        and pc.count_distinct(to_levels(cells)).as_py() > 1
    )


def _number_codes(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    present = ~np.isnan(values)
    # Zero has two signs, which are one number.
    found, inverse = np.unique(values[present] + 0.0, return_inverse=True)
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[present] = inverse
    return codes, len(found)


def _level_codes(cells: Cells) -> tuple[NDArray[np.int64], int]:
    pc = load("pyarrow.compute")
    encoded = pc.dictionary_encode(to_levels(cells))
    indices = pc.fill_null(encoded.indices, -1)
    return np.asarray(indices).astype(np.int64), len(encoded.dictionary)


def _example(cells: Cells, present: NDArray[np.bool_]) -> str:
    if not present.any():
        return ""
    text = to_text(cells)[int(np.argmax(present))].as_py() or ""
    text = " ".join(text.split())
    return text if len(text) <= 40 else text[:37] + "..."


def _kind_of_numbers(
    name: object, values: NDArray[np.float64], n_distinct: int
) -> tuple[str, str]:
    whole = bool(np.all(np.isfinite(values) & (values == np.floor(values))))
    if whole and _are_dates(name, values):
        return "left out", "dates, written as numbers"
    if whole and n_distinct > 1:
        with np.errstate(over="ignore"):
            steps = np.diff(values)
        many = len(values) >= _MANY_ROWS
        if many and (np.all(steps == 1.0) or np.all(steps == -1.0)):
            return "left out", "numbers the rows"
        if _number_some_rows(steps):
            return "left out", "numbers the rows, some left out"
        named = _ID_NAME.search(str(name)) is not None
        if named and n_distinct > 0.5 * len(values):
            return "left out", "id-like: by its name, and nearly all values differ"
    return "number", "numbers"


def _number_some_rows(steps: NDArray[np.float64]) -> bool:
    """Say whether numbers only rise or only fall, too densely for a sorted measurement.

    Of n whole numbers at random from n times the mean step, n / (2 * step) pairs would be
    alike; where five are expected, none is no accident.
    """
    one_way = bool(np.all(steps > 0.0) or np.all(steps < 0.0))
    return one_way and 10.0 * float(np.mean(np.abs(steps))) <= len(steps)


def _are_dates(name: object, values: NDArray[np.float64]) -> bool:
    named = re.search(r"(?i)date|day|datum", str(name)) is not None
    if not named and len(values) < _MANY_ROWS:
        return False
    month, day = values // 100 % 100, values % 100
    inside = (values >= 19000101) & (values <= 21001231)
    return bool(
        np.all(inside & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31))
    )


def _refuse_strays(
    column: Series,
    cells: Cells,
    values: NDArray[np.float64],
    bad: NDArray[np.bool_],
    n_distinct: int,
) -> None:
    n_bad, n_good = int(bad.sum()), int((~np.isnan(values)).sum())
    if not n_bad or n_bad > _STRAY_SHARE * (n_bad + n_good) or n_distinct <= _CODES:
        return
    at = int(np.argmax(bad))
    msg = (
        f"Column {column.name!r} must hold numbers or words, not both. Got {n_good} "
        f"numbers and {n_bad} other cell{'s' if n_bad > 1 else ''}, first "
        f"{str(cells[at].as_py())[:40]!r} in row {row_number(column, at)}; mend or "
        "empty these cells, or leave the column out (--drop)."
    )
    raise InvalidInputError(msg)


def _kind_of_text(
    name: object,
    cells: Cells,
    codes: NDArray[np.int64],
    n_distinct: int,
    min_frequency: int,
) -> tuple[str, str]:
    pc = load("pyarrow.compute")
    levels = pc.drop_null(to_levels(to_text(cells)))
    n_present = len(levels)
    if _are_written_dates(levels):
        return "left out", "dates or times"
    words = pc.mean(pc.count_substring_regex(levels, r"\S+")).as_py()
    length = pc.mean(pc.utf8_length(levels)).as_py()
    wordy = words >= _WORDS or (length >= _LENGTH and words > 2.0)
    if not wordy and not pc.all(pc.string_is_ascii(levels)).as_py():
        foreign = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]{4}"
        share = pc.mean(pc.match_substring_regex(levels, foreign)).as_py()
        wordy = share > 0.5 and length >= _LENGTH / 4
    if wordy and n_distinct > min(30, 0.5 * n_present) and _has_words(levels):
        return "text", f"about {words:.0f} words per cell"
    if n_distinct > 2 and n_distinct >= _MOSTLY_DISTINCT * n_present:
        return "left out", "id-like: nearly all values differ"
    commonest = int(np.bincount(codes[codes >= 0]).max())
    if commonest < min_frequency:
        return "left out", "no value comes back often enough to learn from"
    if _ID_NAME.search(str(name)) and n_distinct > 0.5 * n_present:
        return "left out", "id-like: by its name, and most values differ"
    return "category", f"{n_distinct} value{'s' if n_distinct > 1 else ''}"


def _are_written_dates(levels: Cells) -> bool:
    pc = load("pyarrow.compute")
    first = levels.slice(0, _FEW).to_pylist()
    if sum(re.match(_DATE, text) is not None for text in first) < len(first) / 2:
        return False
    n_dates: int = pc.sum(pc.match_substring_regex(levels, _DATE)).as_py()
    return n_dates >= _DATE_SHARE * len(levels)


def _has_words(levels: Cells) -> bool:
    """Say whether cells differ in their words, not in signs or order alone."""
    documents = levels.slice(0, _SAMPLE).to_pylist()
    bags = {frozenset(re.findall(TOKEN, text.lower())) for text in documents}
    return len(bags - {frozenset()}) > 2
