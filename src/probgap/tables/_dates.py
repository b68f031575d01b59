"""Dates in cells: which day each is.

pandas reads 3/4/2020 in the order of the first cell of a chunk, and 1/1/70 as 1970 or
2070, by today's date. Here a cell means the same everywhere.
"""

from __future__ import annotations

import re
from datetime import date

import numpy as np

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
# Half of the first cells, and this share of all cells, must look like a date.
_FEW, _DATE_SHARE = 20, 0.9


def to_days(cells: Cells, *, day_first: bool = False) -> tuple[Vector, Mask]:
    """Return days since 1970, NaN where missing, and a mask of cells that are neither.

    A time of day is cut off. With ``day_first``, 3/4/2020 is in April. Years of two digits
    lie between 1969 and 2068.
    """
    levels, codes = encode_levels(cells)
    without = pc.replace_substring_regex(levels, rf"(?i)[ t,]+{_TIME}$", "")
    encoded = pc.dictionary_encode(without)
    days = np.array(
        [_to_day(text, day_first) for text in encoded.dictionary.to_pylist()]
    )
    of_level = np.append(days[np.asarray(encoded.indices, dtype=np.intp)], np.nan)
    found = of_level[codes]
    return found, np.isnan(found) & (codes >= 0)


def judge_dates(levels: Cells) -> tuple[str, str, bool] | None:
    """Return the use of a column, why, and whether days come first; None if no dates.

    ``levels`` are its cells that are not missing.
    """
    # The first cells are enough to rule out most columns.
    for cells, share in ((levels.slice(0, _FEW), 0.5), (levels, _DATE_SHARE)):
        month_first, day_first = (
            to_days(cells, day_first=order)[0] for order in (False, True)
        )
        n_times = pc.sum(pc.match_substring_regex(cells, f"(?i)^{_TIME}$")).as_py()
        n_month, n_day = (np.isfinite(d).sum() for d in (month_first, day_first))
        if max(n_month, n_day) + n_times < share * len(cells):
            return None
    if n_times >= _DATE_SHARE * len(levels):
        return "left out", "times of day, without a date", False
    # Dates with points usually begin with the day.
    dotted = pc.all(pc.match_substring_regex(levels, r"^[^:]*\.")).as_py()
    same = np.array_equal(day_first, month_first, equal_nan=True)
    is_day_first = not same and bool(n_day > n_month or (n_day == n_month and dotted))
    bad = np.isnan(day_first if is_day_first else month_first)
    if bad.any():
        example = levels[int(np.argmax(bad))].as_py()[:40]
        why = f"dates, but not in {bad.sum()} of {bad.size} cells, such as {example!r}"
        return "left out", why, False
    order = "" if same else ", day first" if is_day_first else ", month first"
    return "date", f"dates{order}", is_day_first


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
