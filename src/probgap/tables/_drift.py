"""Which columns of new rows left the range of those that a model was fitted to.

A model file notes for every column what was usual. Of new rows, cells are counted that lie
outside: numbers and dates beyond the outer hundredths of the old ones, or beyond all of
them; levels that were not there; empty cells. A notice is given if their share exceeds
that in the fit by at least 20 percentage points, and chance alone would give such a share
with a probability below 0.001.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import bdtrc

from probgap._core.types import Rows, Vector
from probgap.tables._cells import (
    NUMBER,
    Frame,
    Series,
    encode_levels,
    pc,
    shorten,
    to_cells,
    to_days,
    to_floats,
    to_levels,
)
from probgap.tables._plan import ColumnPlan, ColumnUse

_SHARE, _CHANCE = 0.2, 0.001
_OUTER = 0.01
_MOST_LEVELS = 1_000


def describe_ranges(frame: Frame, plan: ColumnPlan) -> dict[str, dict[str, Any]]:
    """Return what is usual in the columns that a model learns from, as plain data."""
    inputs = (column for column in plan.columns if column.name in plan.inputs)
    return {each.name: _describe_column(frame[each.name], each) for each in inputs}


def _describe_column(column: Series, planned: ColumnUse) -> dict[str, Any]:
    use, day_first = planned.use, planned.day_first
    range_: dict[str, Any] = {"use": use, "rows": len(column)}
    if use in ("number", "date"):
        present = _present(column, use, day_first=day_first)
        n_missing = len(column) - len(present)
        present = present[np.isfinite(present)]
        if present.size:
            ends = np.quantile(present, [0.0, _OUTER, 1.0 - _OUTER, 1.0])
            range_ |= {"ends": ends.tolist(), "day_first": day_first}
    elif use == "category":
        levels, counts, n_missing = _count_levels(column)
        common = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
        # Levels that came up once tell how likely a cell has one that never did.
        rare = int(counts.sum() - counts[common].sum() + (counts == 1).sum())
        range_ |= {"levels": [levels[at] for at in common.tolist()], "rare": rare}
    else:
        n_missing = _count_empty(column)
    return range_ | {"missing": n_missing}


def _present(column: Series, use: str, *, day_first: bool) -> Vector:
    cells = to_cells(column)
    date = use == "date"
    values, _ = to_days(cells, day_first=day_first) if date else to_floats(cells)
    return values[~np.isnan(values)]


def _count_levels(column: Series) -> tuple[list[str], Rows, int]:
    """Return the levels, how often each occurs, and how many cells are empty."""
    levels, codes = encode_levels(to_cells(column))
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    return levels.to_pylist(), counts, int((codes < 0).sum())


def _count_empty(column: Series) -> int:
    return int(pc.sum(pc.is_null(to_levels(to_cells(column)))).as_py() or 0)


class DriftWatch:
    """Counts cells of new rows that lie outside the ranges of a fit, chunk by chunk."""

    def __init__(self, ranges: Mapping[str, Mapping[str, Any]]) -> None:
        self._watched = [_Watched(name, range_) for name, range_ in ranges.items()]

    def update(self, frame: Frame) -> None:
        """Count the cells of some rows."""
        for watched in self._watched:
            watched.update(frame[watched.name])

    def notices(self) -> list[dict[str, Any]]:
        """Return column, share of cells and a sentence for each column that left."""
        found = (watched.notice() for watched in self._watched)
        return [notice for notice in found if notice is not None]


class _Watched:
    """One column: its range in the fit, and counts of new cells."""

    def __init__(self, name: str, range_: Mapping[str, Any]) -> None:
        self.name, self._range = name, range_
        self._levels = frozenset(range_.get("levels", ()))
        self._rows, self._empty = 0, 0
        self._below, self._above = np.zeros(2, dtype=int), np.zeros(2, dtype=int)
        self._seen: tuple[float, float] = (np.inf, -np.inf)
        self._unseen, self._example = 0, ""

    def update(self, column: Series) -> None:
        self._rows += len(column)
        use, ends = self._range["use"], self._range.get("ends")
        if use == "text":
            self._empty += _count_empty(column)
        elif use == "category":
            levels, counts, n_empty = _count_levels(column)
            self._empty += n_empty
            strange = [at for at, one in enumerate(levels) if one not in self._levels]
            if strange:
                self._unseen += int(counts[strange].sum())
                self._example = levels[strange[0]]
        else:
            day_first = bool(self._range.get("day_first"))
            values = _present(column, use, day_first=day_first)
            self._empty += len(column) - len(values)
            if values.size and ends:
                least, low, high, most = ends
                self._below += [(values < low).sum(), (values < least).sum()]
                self._above += [(values > high).sum(), (values > most).sum()]
                before = self._seen
                self._seen = min(before[0], values.min()), max(before[1], values.max())

    def notice(self) -> dict[str, Any] | None:
        """Return what left the range, None if nothing did."""
        old, filled = self._range, self._rows - self._empty
        n_old = old["rows"] - old["missing"]
        outside = self._below + self._above
        # A count, of how many cells, and how many of how many were so in the fit; beyond
        # all values of the fit, one more at either end.
        checks = (
            (self._empty, self._rows, old["missing"], old["rows"], self._tell_empty),
            (self._unseen, filled, old.get("rare", 0), n_old, self._tell_levels),
            (outside[0], filled, 2.0 * _OUTER * n_old, n_old, self._tell_range),
            (outside[1], filled, 1.0, n_old, self._tell_range),
        )
        for count, total, expected, of, tell in checks:
            if _is_unusual(int(count), total, expected, of):
                return {
                    "column": self.name,
                    "share": round(int(count) / total, 4),
                    "notice": f"Column {self.name!r} left its training range: "
                    f"{count / total:.0%} of its cells are {tell()}.",
                }
        return None

    def _tell_empty(self) -> str:
        before = self._range["missing"] / max(1, self._range["rows"])
        return f"empty, where {before:.0%} were in the fit"

    def _tell_levels(self) -> str:
        example = repr(shorten(self._example, 40))
        numbers = any(re.match(NUMBER, level) for level in self._levels)
        if re.match(NUMBER, self._example) and not numbers:
            return f"numbers, such as {example}, where the fit had categories"
        return f"of a category that the fit did not have, such as {example}"

    def _tell_range(self) -> str:
        least, _, _, most = self._range["ends"]
        old, new = (self._show(least, most), self._show(*self._seen))
        side = "outside" if self._below[0] and self._above[0] else "above"
        side = "below" if not self._above[0] else side
        return f"{side} what was usual in the fit: {new}, where it had {old}"

    def _show(self, low: float, high: float) -> str:
        if self._range["use"] == "date":
            days = np.array([low, high]).astype("int64").astype("datetime64[D]")
            return f"{days[0]} to {days[1]}"
        return f"{low:,.6g} to {high:,.6g}"


def _is_unusual(count: int, total: int, expected: float, of: float) -> bool:
    """Return whether a count is much larger than at the rate of the fit, and not by chance.

    The rate is ``expected`` of so many cells, with one more of either kind.
    """
    rate = (expected + 1.0) / (of + 2.0)
    if total == 0 or count < (rate + _SHARE) * total:
        return False
    return bool(bdtrc(count - 1, total, rate) < _CHANCE)
