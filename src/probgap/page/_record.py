"""What the page shows of the table and the run, besides the account of the fit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_MOST_VALUES = 6
_NUMERAL = re.compile(r"[+-]?[\d,.\s]*\d[\d,.]*(e[+-]?\d+)?%?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One of the likeliest hidden positives: its place in the list and in the table.

    ``values`` holds cells of the columns that matter most, as text.
    """

    rank: int
    row: int
    id: str | None
    probability: float
    gap: float
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TableRecord:
    """The table that was read.

    ``sentence`` tells how the label column was read, ``columns`` how each column is used:
    ``name``, ``use``, ``why``, ``n_missing``, ``n_distinct`` and ``example``.
    """

    name: str = "the table"
    path: str | None = None
    rows: int | None = None
    sha256: str | None = None
    label: str | None = None
    positive: str | None = None
    unlabelled: Mapping[str, int] = field(default_factory=dict)
    sentence: str = ""
    id: str | None = None
    notes: tuple[str, ...] = ()
    columns: tuple[Mapping[str, Any], ...] = ()
    files: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """When, how and with what a fit was made; ``started`` is in ISO 8601."""

    probgap: str | None = None
    started: str | None = None
    command: str | None = None
    seed: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    pipeline: str = ""
    files: tuple[str, ...] = ()
    engine: str | None = None


def value_columns(rows: Sequence[RankedRow]) -> list[tuple[str, bool]]:
    """Return the columns to show beside ranked rows, and whether each is numeric."""
    names = list(dict.fromkeys(name for row in rows for name in row.values))
    cells = {name: [row.values.get(name, "").strip() for row in rows] for name in names}
    return [
        (name, all(_NUMERAL.fullmatch(cell) for cell in cells[name] if cell))
        for name in names[:_MOST_VALUES]
    ]
