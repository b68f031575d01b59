"""Cells of a column in one plain form, whatever library or file they came from.

A column becomes an Arrow array of integers, floating point numbers or text. From there
on it can be read as numbers, levels of a category, text or dates. Each cell is read by
itself, whatever the rows around it.

Missing are empty and blank cells and, in upper or lower case, the words ``na``,
``n/a``, ``#n/a``, ``<na>``, ``nan``, ``nat``, ``null`` and ``none``; in a column of
numbers also ``?``, ``-``, ``--``, ``.``, ``n.a.``, ``nil``, ``missing`` and
``unknown``, which cannot be numbers. Codes such as -999 are numbers.

A number may have blanks around it, a currency sign in front, commas between thousands
or a percent sign behind: ``$1,234.50`` is 1234.5, and ``12%`` is 12.

Dates are not left to pandas, which reads 3/4/2020 in the order of the first cell of a
chunk, and 1/1/70 as 1970 or 2070, by today's date. Here a cell means the same everywhere.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import date
from difflib import get_close_matches
from itertools import islice
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError, load_library, refuse
from probgap._core.types import Mask, Vector


class _Lazy:
    """A module that is imported when something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        module = load_library(self._name, extra="tool", purpose="tables")
        return getattr(module, attribute)


# They ship no types that mypy may rely on.
pa: Any = _Lazy("pyarrow")
pc: Any = _Lazy("pyarrow.compute")
pd: Any = _Lazy("pandas")
pq: Any = _Lazy("pyarrow.parquet")
arrow_csv: Any = _Lazy("pyarrow.csv")
Frame: TypeAlias = Any
Series: TypeAlias = Any
Cells: TypeAlias = Any

_MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none")
_NO_NUMBER = ("?", "-", "--", ".", "n.a.", "nil", "missing", "unknown")
# Objects that mean a missing value, as text.
_NOT_A_VALUE = ("none", "nan", "snan", "nat", "<na>")
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_INFINITE = r"(?i)^[+-]?inf(inity)?$"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"
_SIGN_AND_CURRENCY = r"^([+-]?)\s*[$€£¥]\s*([+-]?)"
_PERCENT = r"\s*%$"
_CODE = r"^[+-]?0\d+$|^[+-]?\d{17,}$"
# Arrow's conversion of other Python objects depends on the other cells of the column.
_SAME_ANYWHERE = ("int", "uint", "bool", "null", "string", "large_string")
# Above this, neighbouring integers are the same floating point number.
_EXACT = 2.0**53
# Sums and squares of numbers up to this stay finite.
LARGEST = 1e100
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun"]
_MONTHS += ["jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"((?:{'|'.join(_MONTHS)})[a-z]*\.?)"
TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*([ap]m)?\s*(z|utc|[+-]\d{2}:?\d{2})?"
# What the parts of a date are: year, month, day, or either of month and day.
_FORMS = {
    r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})": "ymd",
    r"((?:19|20)\d{2})(\d{2})(\d{2})": "ymd",
    r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})": "??y",
    rf"(\d{{1,2}})[-. ]+{_MONTH}[-, ]+(\d{{4}}|\d{{2}})": "dmy",
    rf"{_MONTH}[- ]+(\d{{1,2}})(?:st|nd|rd|th)?[-, ]+(\d{{4}})": "mdy",
}
_COMPILED = [(re.compile(f"(?ai){form}"), order) for form, order in _FORMS.items()]
_EPOCH = date(1970, 1, 1).toordinal()


class EmptyTableError(InvalidInputError):
    """A table holds no rows."""


class NestedCellsError(InvalidInputError):
    """A column holds lists, structs or the like in its cells."""


def to_plain(array: Any) -> Cells:
    """Return an Arrow array as integers, floating point numbers, booleans or text."""
    types = pa.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_nested(array.type):
        msg = f"Cells of the type {array.type} hold more than one value."
        raise NestedCellsError(msg)
    if types.is_integer(array.type) or types.is_boolean(array.type):
        return array
    if types.is_floating(array.type) or types.is_decimal(array.type):
        return pc.cast(array, pa.float64(), safe=False)
    return pc.cast(array, pa.large_string())


def to_cells(column: Series) -> Cells:
    """Return a column as an Arrow array of integers, floating point numbers or text."""
    try:
        array = pa.Array.from_pandas(column)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if column.dtype != object or str(array.type).startswith(_SAME_ANYWHERE):
            plain = to_plain(array)
            return to_text(plain) if pa.types.is_boolean(plain.type) else plain
    except (pa.ArrowException, TypeError, OverflowError, UnicodeError):
        pass
    return pa.array([text_of(value) for value in column], pa.large_string())


def text_of(value: Any) -> str | None:
    """Return one value as text, None if it means a missing value."""
    if isinstance(value, list | tuple | dict | set | frozenset | np.ndarray):
        msg = f"A cell holds a {type(value).__name__}, not a single value."
        raise NestedCellsError(msg)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and value.is_integer():
        value = int(value) if abs(float(value)) < _EXACT else value
    text = str(value).encode("utf-8", "replace").decode()
    if isinstance(value, date):
        text = text.removesuffix(" 00:00:00")
    absent = not isinstance(value, str) and text.lower() in _NOT_A_VALUE
    return None if absent else text


def is_number_typed(cells: Cells) -> bool:
    """Return whether the cells are numbers by type, not text."""
    return bool(pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type))


def is_exact(cells: Cells) -> bool:
    """Return whether the cells lose no digit as floating point numbers."""
    if pa.types.is_integer(cells.type):
        ends = pc.min_max(cells).as_py().values()
        return all(abs(end or 0) <= _EXACT for end in ends)
    if is_number_typed(cells):
        return True
    text = pc.utf8_trim_whitespace(cells)
    if pc.any(pc.match_substring_regex(text, _CODE)).as_py():
        return False
    long = pc.filter(text, pc.match_substring_regex(text, r"^[+-]?\d{16}$"))
    values = pc.cast(pc.utf8_ltrim(long, "+"), pa.int64())
    return is_exact(values)


def to_floats(cells: Cells) -> tuple[Vector, Mask]:
    """Return cells as numbers, NaN where missing, and a mask of cells that are neither."""
    bad: Any = np.zeros(len(cells), dtype=bool)
    try:
        values = pc.cast(cells, pa.float64(), safe=not is_number_typed(cells))
    except pa.ArrowInvalid:
        text = pc.utf8_trim_whitespace(cells)
        missing = _is_one_of(text, (*_MISSING, *_NO_NUMBER))
        text = pc.replace_substring_regex(text, _SIGN_AND_CURRENCY, r"\1\2")
        text = pc.replace_substring_regex(text, _PERCENT, "")
        thousands = pc.match_substring_regex(text, _THOUSANDS)
        text = pc.if_else(thousands, pc.replace_substring(text, ",", ""), text)
        good = pc.match_substring_regex(text, f"{NUMBER}|{_INFINITE}")
        good = pc.and_(pc.fill_null(good, False), pc.invert(missing))
        bad = np.asarray(pc.and_(pc.invert(good), pc.invert(missing)))
        values = pc.cast(pc.if_else(good, text, None), pa.float64())
    # A copy: Arrow's arrays are read-only.
    return np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64), bad


def to_text(cells: Cells) -> Cells:
    """Return cells as text, as they stand; whole numbers without a point."""
    return pc.cast(cells, pa.large_string())


def to_levels(cells: Cells) -> Cells:
    """Return cells as names of levels: text, null where missing.

    ``1``, ``1.0`` and the number 1 are one level, and so are ``true``, ``True`` and the
    boolean; ``01`` is another.
    """
    text = pc.utf8_trim_whitespace(to_text(cells))
    text = pc.if_else(_is_one_of(text, _MISSING), None, text)
    text = pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1")
    text = pc.replace_substring_regex(text, r"^([+-]?\d+\.\d*[1-9])0+$", r"\1")
    truth = _is_one_of(text, ("true", "false"))
    return pc.if_else(truth, pc.utf8_lower(text), text)


def encode_levels(cells: Cells) -> tuple[Cells, NDArray[np.int64]]:
    """Return the levels that occur, and which of them each cell is; -1 where missing."""
    encoded = pc.dictionary_encode(to_levels(cells))
    codes = np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)
    return encoded.dictionary, codes


def to_days(cells: Cells, *, day_first: bool = False) -> tuple[Vector, Mask]:
    """Return days since 1970, NaN where missing, and a mask of cells that are neither.

    A time of day is cut off. With ``day_first``, 3/4/2020 is in April. Years of two digits
    lie between 1969 and 2068.
    """
    levels, codes = encode_levels(cells)
    without = pc.replace_substring_regex(levels, rf"(?i)[ t,]+{TIME}$", "")
    encoded = pc.dictionary_encode(without)
    days = np.array(
        [_to_day(text, day_first) for text in encoded.dictionary.to_pylist()]
    )
    of_level = np.append(days[np.asarray(encoded.indices, dtype=np.intp)], np.nan)
    found = of_level[codes]
    return found, np.isnan(found) & (codes >= 0)


def _to_day(text: str, day_first: bool) -> float:
    for form, order in _COMPILED:
        if found := form.fullmatch(text):
            named = order.replace("??", "dm" if day_first else "md")
            part = dict(zip(named, found.groups(), strict=True))
            year, month = int(part["y"]), part["m"].lower()
            if len(part["y"]) == 2:
                year += 2000 if year < 69 else 1900
            number = int(month) if month.isdigit() else _MONTHS.index(month[:3]) + 1
            try:
                return float(date(year, number, int(part["d"])).toordinal() - _EPOCH)
            except ValueError:
                break
    return np.nan


def to_frame(batches: list[Any], *, start: int) -> Frame:
    """Return batches of rows as a frame, indexed by row from a given one on."""
    table = pa.Table.from_batches(batches)
    frame = table.to_pandas(date_as_object=False, integer_object_nulls=True)
    frame.index = pd.RangeIndex(start, start + len(frame))
    return frame


def _is_one_of(text: Cells, words: tuple[str, ...]) -> Cells:
    found = pc.is_in(pc.utf8_lower(text), value_set=pa.array(words, text.type))
    return pc.or_(found, pc.is_null(text)) if "" in words else found


# What is said of a table that will not do.


def refuse_cell(column: Series, at: int, expected: str, advice: str = "") -> NoReturn:
    """Raise an error that names a cell by its column and its row in the table."""
    label = column.index[at]
    row = int(label) if isinstance(label, int | np.integer) else at
    refuse(
        f"Column {str(column.name)!r} has {str(column.iloc[at])[:60]!r} in row {row + 1}, "
        f"which is not {expected}; correct the cell, or empty it if the value is unknown{advice}."
    )


def shorten(text: str, length: int) -> str:
    """Return text in one line, cut to a length."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 3] + "..."


def listed(values: Collection[str], more: str = "more") -> str:
    """Return values in quotes, the first six if there are more."""
    first = islice(values, 6)
    shown = [
        "empty cells"
        if value == ""
        else repr(shorten(value, 40) if isinstance(value, str) else value)
        for value in first
    ]
    n_more = len(values) - len(shown)
    return ", ".join(shown) + (f" and {n_more} {more}" if n_more else "")


def check_columns(wanted: Iterable[str], have: Sequence[str], table: str) -> None:
    """Raise if a table lacks a wanted column, and suggest columns of similar names."""
    known = set(have)
    lacking = [column for column in wanted if column not in known]
    if lacking:
        close = get_close_matches(str(lacking[0]), have, n=3, cutoff=0.6)
        which = "column" if len(lacking) == 1 else "columns"
        hint = f"did you mean {listed(close)}?" if close else f"it has {listed(have)}."
        refuse(f"{table} has no {which} {listed(lacking)}; {hint}")
