"""Which columns of new rows left the range of those that a model was fitted to.

A model file notes for every column what was usual. Of new rows, cells are counted that lie
outside: numbers and dates beyond the outer hundredths of the old ones, or beyond all of
them; levels that were not there; empty cells. A notice is given if their share exceeds
that in the fit by at least 20 percentage points, and chance alone would give such a share
with a probability below 0.001.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import bdtrc

from probgap._core.types import Vector
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
from probgap.tables._plan import ColumnPlan

_SHARE, _CHANCE = 0.2, 0.001
_OUTER = 0.01
_MOST_LEVELS = 1_000


def describe_ranges(frame: Frame, plan: ColumnPlan) -> dict[str, dict[str, Any]]:
    """Return what is usual in the columns that a model learns from, fit for JSON."""
    uses = {column.name: column for column in plan.columns}
    return {
        name: _describe(frame[name], uses[name].use, day_first=uses[name].day_first)
        for name in plan.inputs
    }


def _describe(column: Series, use: str, *, day_first: bool) -> dict[str, Any]:
    range_: dict[str, Any] = {"use": use, "rows": len(column)}
    if use == "category":
        levels, codes = encode_levels(to_cells(column))
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        common = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
        # Levels that came up once tell how likely a cell has one that never did.
        rare = int(counts.sum() - counts[common].sum() + (counts == 1).sum())
        n_missing = int((codes < 0).sum())
        range_ |= {"levels": [levels[int(at)].as_py() for at in common], "rare": rare}
    elif use == "text":
        n_missing = int(pc.sum(pc.is_null(to_levels(to_cells(column)))).as_py())
    else:
        values = _to_values(column, use, day_first=day_first)
        present = values[np.isfinite(values)]
        n_missing = len(values) - len(present)
        if present.size:
            ends = np.quantile(present, [0.0, _OUTER, 1.0 - _OUTER, 1.0])
            range_ |= {"ends": ends.tolist(), "day_first": day_first}
    return range_ | {"missing": n_missing}


def _to_values(column: Series, use: str, *, day_first: bool) -> Vector:
    """Return numbers, or days since 1970, NaN where a cell is neither."""
    cells = to_cells(column)
    if use == "date":
        return to_days(cells, day_first=day_first)[0]
    return to_floats(cells)[0]


class DriftWatch:
    """Counts cells of new rows that lie outside the ranges of a fit, chunk by chunk."""

    def __init__(self, ranges: Mapping[str, Mapping[str, Any]]) -> None:
        self._watched = {
            name: _Watched(name, range_) for name, range_ in ranges.items()
        }

    def update(self, frame: Frame) -> None:
        """Count the cells of some rows."""
        for name, watched in self._watched.items():
            watched.update(frame[name])

    def notices(self) -> list[dict[str, Any]]:
        """Return column, share of cells and a sentence for each column that left."""
        found = (watched.notice() for watched in self._watched.values())
        return [notice for notice in found if notice is not None]


class _Watched:
    """One column: its range in the fit, and counts of new cells."""

    def __init__(self, name: str, range_: Mapping[str, Any]) -> None:
        self._name, self._range = name, range_
        self._levels = frozenset(range_.get("levels", ()))
        self._rows, self._empty = 0, 0
        self._below, self._above = np.zeros(2, dtype=int), np.zeros(2, dtype=int)
        self._seen: tuple[float, float] = (np.inf, -np.inf)
        self._unseen, self._example = 0, ""

    def update(self, column: Series) -> None:
        self._rows += len(column)
        use = self._range["use"]
        if use in ("number", "date"):
            day_first = bool(self._range.get("day_first"))
            values = _to_values(column, use, day_first=day_first)
            values = values[~np.isnan(values)]
            self._empty += len(column) - len(values)
            if values.size and "ends" in self._range:
                least, low, high, most = self._range["ends"]
                self._below += [(values < low).sum(), (values < least).sum()]
                self._above += [(values > high).sum(), (values > most).sum()]
                before = self._seen
                self._seen = min(before[0], values.min()), max(before[1], values.max())
            return
        cells = to_cells(column)
        if use == "text":
            self._empty += int(pc.sum(pc.is_null(to_levels(cells))).as_py())
            return
        levels, codes = encode_levels(cells)
        self._empty += int((codes < 0).sum())
        strange = [level not in self._levels for level in levels.to_pylist()]
        is_strange = np.array([*strange, False])[codes]
        if is_strange.any():
            self._unseen += int(is_strange.sum())
            self._example = levels[int(codes[np.argmax(is_strange)])].as_py()

    def notice(self) -> dict[str, Any] | None:
        """Return what left the range, None if nothing did."""
        old, filled = self._range, self._rows - self._empty
        n_old = old["rows"] - old["missing"]
        if _is_unusual(self._empty, self._rows, old["missing"], old["rows"]):
            before = old["missing"] / max(1, old["rows"])
            what = f"empty, where {before:.0%} were in the fit"
            return self._say(self._empty, self._rows, what)
        if _is_unusual(self._unseen, filled, old.get("rare", 0), n_old):
            example = repr(shorten(self._example, 40))
            what = f"of a category that the fit did not have, such as {example}"
            if re.match(NUMBER, self._example) and not any(
                re.match(NUMBER, level) for level in self._levels
            ):
                what = f"numbers, such as {example}, where the fit had categories"
            return self._say(self._unseen, filled, what)
        outside = self._below + self._above
        usual = (2.0 * _OUTER * n_old, 1.0)  # one more at either end
        for count, expected in zip(outside, usual, strict=True):
            if _is_unusual(int(count), filled, expected, n_old):
                return self._say(int(count), filled, self._tell_range())
        return None

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

    def _say(self, count: int, total: int, what: str) -> dict[str, Any]:
        share = count / total
        said = (
            f"Column {self._name!r} left its training range: {share:.0%} of its cells "
        )
        return {
            "column": self._name,
            "share": round(share, 4),
            "notice": f"{said}are {what}.",
        }


def _is_unusual(count: int, total: int, expected: float, of: float) -> bool:
    """Return whether a count is much larger than at the rate of the fit, and not by chance.

    The rate is ``expected`` of so many cells, with one more of either kind.
    """
    rate = (expected + 1.0) / (of + 2.0)
    if total == 0 or count < (rate + _SHARE) * total:
        return False
    return bool(bdtrc(count - 1, total, rate) < _CHANCE)
