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
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError
from probgap._core.types import Mask, Vector
from probgap.tables._base import Cells, Series, pa, pc

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
    return pa.array([_to_text(value) for value in column], pa.large_string())


def _to_text(value: Any) -> str | None:
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
    coded = pc.match_substring_regex(pc.utf8_trim_whitespace(cells), _CODE)
    return not pc.any(coded).as_py()


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
        values = pc.cast(_null_unless(good, text), pa.float64())
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
    text = _null_unless(pc.invert(_is_one_of(text, _MISSING)), text)
    text = pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1")
    text = pc.replace_substring_regex(text, r"^([+-]?\d+\.\d*[1-9])0+$", r"\1")
    truth = _is_one_of(text, ("true", "false"))
    return pc.if_else(truth, pc.utf8_lower(text), text)


def encode_levels(cells: Cells) -> tuple[Cells, NDArray[np.int64]]:
    """Return the levels that occur, and which of them each cell is; -1 where missing."""
    encoded = pc.dictionary_encode(to_levels(cells))
    codes = np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)
    return encoded.dictionary, codes


def _is_one_of(text: Cells, words: tuple[str, ...]) -> Cells:
    found = pc.is_in(pc.utf8_lower(text), value_set=pa.array(words, text.type))
    return pc.or_(found, pc.is_null(text)) if "" in words else found


def _null_unless(keep: Cells, cells: Cells) -> Cells:
    return pc.if_else(keep, cells, pa.scalar(None, cells.type))
