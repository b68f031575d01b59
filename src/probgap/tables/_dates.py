"""Dates in cells: which day each is.

pandas reads a date by its neighbours and by today: 3/4/2020 in the order that the first
cell of a chunk has, and 1/1/70 as 1970 or 2070. Here a cell means the same everywhere.
"""

from __future__ import annotations

import re
from datetime import date

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Mask, Vector
from probgap.tables._base import Cells, pc
from probgap.tables._cells import encode_levels

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun"]
_MONTHS += ["jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"((?:{'|'.join(_MONTHS)})[a-z]*\.?)"
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*([ap]m)?\s*(z|utc|[+-]\d{2}:?\d{2})?"
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
# Of the first cells half, and of all cells this share, must look like a date.
_FEW, _DATE_SHARE = 20, 0.9


def to_days(cells: Cells, *, day_first: bool = False) -> tuple[Vector, Mask]:
    """Return dates as days since 1970, NaN where missing, and where a cell is neither.

    A time of day is cut off. With ``day_first``, 3/4/2020 is in April. Years of two digits
    lie between 1969 and 2068.
    """
    levels, codes = _encode_days(cells)
    days = np.array([_to_day(text, day_first) for text in levels] + [np.nan])[codes]
    return days, np.isnan(days) & (codes >= 0)


def judge_dates(levels: Cells) -> tuple[str, str, bool] | None:
    """Return the use of a column, why, and if days come first; None if no dates.

    ``levels`` are its cells without the missing ones.
    """
    first = levels.slice(0, _FEW).to_pylist()
    if 2 * sum(_is_date_or_time(text) for text in first) < len(first):
        return None
    order = _find_order(levels)
    days, bad = to_days(levels, day_first=order == "day first")
    n_times = pc.sum(pc.match_substring_regex(levels, f"(?i)^{_TIME}$")).as_py()
    if days.size - bad.sum() + n_times < _DATE_SHARE * days.size:
        return None
    if n_times >= _DATE_SHARE * days.size:
        return "left out", "times of day, without a date", False
    if bad.any():
        example = levels[int(np.argmax(bad))].as_py()[:40]
        why = f"dates, but not in {bad.sum()} of {bad.size} cells, first {example!r}"
        return "left out", why, False
    return "date", f"dates, {order}" if order else "dates", order == "day first"


def _is_date_or_time(text: str) -> bool:
    text = re.sub(rf"(?ai)(?:^|[ t,]+){_TIME}$", "", text)
    return not text or any(form.fullmatch(text) for form, _ in _COMPILED)


def _find_order(cells: Cells) -> str:
    """Return "day first" or "month first" for dates such as 3/4/2020, else ""."""
    texts, _ = _encode_days(cells)
    day_first, month_first = (
        np.array([_to_day(text, order) for text in texts]) for order in (True, False)
    )
    if np.array_equal(day_first, month_first, equal_nan=True):
        return ""
    more = np.isfinite(day_first).sum() - np.isfinite(month_first).sum()
    # Points are how those write that begin with the day.
    if more > 0 or (more == 0 and all("." in text for text in texts)):
        return "day first"
    return "month first"


def _encode_days(cells: Cells) -> tuple[list[str], NDArray[np.int64]]:
    """Return the dates that occur, without their times, and which of them each cell is."""
    levels, codes = encode_levels(cells)
    without = pc.replace_substring_regex(levels, rf"(?i)[ t,]+{_TIME}$", "")
    encoded = pc.dictionary_encode(without)
    at = np.append(np.asarray(encoded.indices, dtype=np.int64), -1)
    return encoded.dictionary.to_pylist(), at[codes]


def _to_day(text: str, day_first: bool) -> float:
    """Return the days since 1970, NaN if there is no such day."""
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
