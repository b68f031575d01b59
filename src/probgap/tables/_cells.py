"""Cells of a column in one plain form, whatever library or file they came from.

A column becomes an Arrow array of integers, floating point numbers or text. From there
on three readings exist: numbers, levels (of a category) and documents (of a text).
Each reads a cell by itself, so that no reading depends on the rows around it.

Missing are empty cells, cells of blanks and, in upper or lower case, the words ``na``,
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
from probgap.tables._optional import Cells, Series, load

_MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none")
_NO_NUMBER = ("?", "-", "--", ".", "n.a.", "nil", "missing", "unknown")
# How values that stand for none call themselves.
_NOT_A_VALUE = ("nan", "snan", "nat", "<na>")
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_INFINITE = r"(?i)^[+-]?inf(inity)?$"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"
_SIGN_AND_CURRENCY = r"^([+-]?)\s*[$€£¥]\s*([+-]?)"
_PERCENT = r"\s*%$"
_LEADING_ZERO = r"^[+-]?0\d+$"
# Above this, neighbouring integers are the same floating point number.
EXACT = 2.0**53


class NestedCellsError(InvalidInputError):
    """A column holds lists, structs or the like in its cells."""


def to_cells(column: Series) -> Cells:
    """Bring a column into plain form: an Arrow array of numbers or of text."""
    pa, pc = load("pyarrow"), load("pyarrow.compute")
    try:
        array = pa.Array.from_pandas(column)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        kind = array.type
        if column.dtype == object and not _is_told_by_each_cell(kind):
            return _texts_of(column)
        if pa.types.is_integer(kind) or kind == pa.float64():
            return array
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return pc.cast(array, pa.float64(), safe=False)
        if not pa.types.is_nested(kind):
            return pc.cast(array, pa.large_string())
    except (pa.ArrowException, TypeError, OverflowError, UnicodeError):
        pass
    return _texts_of(column)


def _is_told_by_each_cell(kind: Any) -> bool:
    """Say whether Arrow reads Python objects the same whatever stands beside them."""
    types = load("pyarrow").types
    return bool(
        types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_null(kind)
    )


def _texts_of(column: Series) -> Cells:
    pa = load("pyarrow")
    return pa.array([_text_of(value) for value in column], pa.large_string())


def _text_of(value: Any) -> str | None:
    """Give one value as text, null if it stands for none."""
    if value is None or isinstance(value, str):
        return None if value is None else value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple | dict | set | frozenset | np.ndarray):
        msg = f"A cell must hold one value. Got a {type(value).__name__}."
        raise NestedCellsError(msg)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating):
        number = float(value)
        whole = number.is_integer() and abs(number) < EXACT
        value = int(number) if whole else number
    text = str(value).encode("utf-8", "replace").decode()
    return None if text.lower() in _NOT_A_VALUE else text


def is_number_typed(cells: Cells) -> bool:
    """Say whether the cells are numbers by type, not text."""
    types = load("pyarrow").types
    return bool(types.is_integer(cells.type) or types.is_floating(cells.type))


def is_exact(cells: Cells) -> bool:
    """Say whether integers, or digits, survive as floating point numbers."""
    pa, pc = load("pyarrow"), load("pyarrow.compute")
    if pa.types.is_integer(cells.type):
        ends = pc.min_max(cells).as_py().values()
        return all(abs(end or 0) <= EXACT for end in ends)
    if is_number_typed(cells):
        return True
    trimmed = pc.utf8_trim_whitespace(cells)
    coded = pc.match_substring_regex(trimmed, f"{_LEADING_ZERO}|^[+-]?\\d{{17,}}$")
    return not pc.any(coded).as_py()


def to_floats(cells: Cells) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Read cells as numbers: the numbers, NaN where missing, and where none could be.

    Returns
    -------
    values : ndarray of shape (n_rows,)
        The numbers.
    bad : ndarray of shape (n_rows,)
        True where a cell is neither a number nor missing.
    """
    pa, pc = load("pyarrow"), load("pyarrow.compute")
    if is_number_typed(cells):
        values = _to_numpy(pc.cast(cells, pa.float64(), safe=False))
        return values, np.zeros(len(values), dtype=bool)
    try:
        values = _to_numpy(pc.cast(cells, pa.float64()))
    except pa.ArrowInvalid:
        return _to_floats_with_care(cells)
    return values, np.zeros(len(values), dtype=bool)


def _to_floats_with_care(
    cells: Cells,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    pa, pc = load("pyarrow"), load("pyarrow.compute")
    text = pc.utf8_trim_whitespace(cells)
    missing = _is_one_of(text, (*_MISSING, *_NO_NUMBER))
    text = pc.replace_substring_regex(text, _SIGN_AND_CURRENCY, r"\1\2")
    text = pc.replace_substring_regex(text, _PERCENT, "")
    thousands = pc.match_substring_regex(text, _THOUSANDS)
    text = pc.if_else(thousands, pc.replace_substring(text, ",", ""), text)
    good = pc.match_substring_regex(text, f"{NUMBER}|{_INFINITE}")
    good = pc.and_(pc.fill_null(good, False), pc.invert(missing))
    bad = pc.and_(pc.invert(good), pc.invert(missing))
    nothing = pa.scalar(None, text.type)
    values = pc.cast(pc.if_else(good, text, nothing), pa.float64())
    return _to_numpy(values), np.asarray(bad)


def to_levels(cells: Cells) -> Cells:
    """Read cells as names of levels: text, null where missing.

    ``1``, ``1.0`` and the number 1 are one level, and so are ``true``, ``True`` and the
    boolean; ``01`` is another.
    """
    pa, pc = load("pyarrow"), load("pyarrow.compute")
    if is_number_typed(cells):
        return _numbers_as_text(cells)
    text = pc.utf8_trim_whitespace(cells)
    text = pc.if_else(_is_one_of(text, _MISSING), pa.scalar(None, text.type), text)
    text = pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1")
    text = pc.replace_substring_regex(text, r"^([+-]?\d+\.\d*[1-9])0+$", r"\1")
    truth = _is_one_of(text, ("true", "false"))
    return pc.if_else(truth, pc.utf8_lower(text), text)


def to_text(cells: Cells) -> Cells:
    """Give cells as text, as they stand; whole numbers without a point."""
    return _numbers_as_text(cells) if is_number_typed(cells) else cells


def _numbers_as_text(cells: Cells) -> Cells:
    pa, pc = load("pyarrow"), load("pyarrow.compute")
    if pa.types.is_integer(cells.type):
        return pc.cast(cells, pa.large_string())
    cells = pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
    whole = pc.and_(pc.equal(pc.floor(cells), cells), pc.less(pc.abs(cells), EXACT))
    nothing = pa.scalar(None, cells.type)
    whole_cells = pc.if_else(whole, cells, nothing)
    as_whole = pc.cast(pc.cast(whole_cells, pa.int64()), pa.large_string())
    return pc.coalesce(as_whole, pc.cast(cells, pa.large_string()))


def _is_one_of(text: Cells, words: tuple[str, ...]) -> Cells:
    pa, pc = load("pyarrow"), load("pyarrow.compute")
    found = pc.is_in(pc.utf8_lower(text), value_set=pa.array(words, text.type))
    return pc.or_(found, pc.is_null(text)) if "" in words else found


def _to_numpy(values: Cells) -> NDArray[np.float64]:
    # A copy: arrays of Arrow cannot be written to.
    return np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)
