"""Rows of a run, checked, put in order and averaged over splits; and the paper's print."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from probgap._core.errors import InvalidInputError

NAIVE, CLEAN, OURS = "SVM", "clean", "probgap"
PLAIN = "probgap C=1"  # ours, with the SVM of the other methods at the end
PAPER_METHODS = (NAIVE, "Elkan", "Natarajan", "Liu", "PGPU", "PGPUcv", CLEAN)
FIGURE_TABLE = "figure1"
# Labellings of the paper for which it prints no accuracies: for boundaries alone.
BOUNDARY_TABLE = "boundaries"
# The twelve blocks of the paper: six tables, five sets of Table 7, and Table 8.
BLOCKS = (
    ("1", "triangles"),
    ("2", "triangles"),
    ("3", "triangles"),
    ("4", "square"),
    ("5", "square"),
    ("6", "square"),
    ("7", "splice"),
    ("7", "banana"),
    ("7", "twonorm"),
    ("7", "image"),
    ("7", "heart"),
    ("8", "tcdb"),
)
_RATES = dict(zip("123456", ("inverse", "linear", "constant") * 2, strict=True))
_REQUIRED = ("table", "data", "labelling", "method", "seed")
_KINDS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(
        ("details", "versions", "machine", "parameters"), (Mapping, "an object")
    ),
    "seed": (int | str, "a number or a name"),
    "warnings": (list, "a list"),
}


class Setting(NamedTuple):
    """One line of a table: a data set and a labelling."""

    table: str
    data: str
    rate: str
    alpha: float | None
    beta: float | None

    @property
    def label(self) -> str:
        """The labelling as the paper's tables write it."""
        if self.alpha is None:
            return self.rate
        return f"{self.alpha}" if self.beta is None else f"({self.alpha}, {self.beta})"

    @property
    def block(self) -> tuple[str, str]:
        """The block that the line belongs to."""
        return self.table, self.data


class Score(NamedTuple):
    """Accuracy over splits in percent: mean, sample deviation and number of splits."""

    mean: float
    sd: float | None
    n: int | None


Scores = dict[Setting, dict[str, Score]]


@dataclass(frozen=True, slots=True)
class Runs:
    """Every job once, the accuracies, the failed jobs, and the row of Figure 1."""

    rows: list[dict[str, Any]]
    scores: Scores
    errors: list[dict[str, Any]]
    figure: dict[str, Any] | None


def read_runs(rows: Sequence[Mapping[str, Any]]) -> Runs:
    """Check the rows and average them over splits, whatever order they come in."""
    if not rows:
        msg = "rows must hold at least one row. Got none."
        raise InvalidInputError(msg)
    unique = _keep_one_of_each([_checked(row) for row in rows])
    figures = [row for row in unique if row["table"] == FIGURE_TABLE]
    others = [row for row in unique if row["table"] != FIGURE_TABLE]
    drawn = [row for row in figures if row.get("status", "ok") == "ok"]
    lines: dict[Setting, dict[str, list[float]]] = {}
    for row in others:
        if has_accuracy(row) and row["table"] != BOUNDARY_TABLE:
            line = lines.setdefault(setting_of(row), {})
            line.setdefault(row["method"], []).append(100.0 * float(row["accuracy"]))
        elif not has_accuracy(row):
            lines.setdefault(setting_of(row), {})
    scores = {
        setting: {method: _average(values) for method, values in line.items()}
        for setting, line in lines.items()
    }
    failed = [row for row in unique if row not in drawn and not has_accuracy(row)]
    return Runs(unique, scores, failed, drawn[0] if drawn else None)


@cache
def printed_scores() -> Scores:
    """Read the accuracies of the paper's eight tables, in percent."""
    file = files("probgap.reproduction").joinpath("printed.csv")
    scores: Scores = {}
    for line in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
        numbers = {
            name: float(line[name]) if line[name] else None
            for name in ("alpha", "beta", "accuracy", "std")
        }
        place = (line["table"], line["dataset"], line["mislabelling"])
        cells = scores.setdefault(
            Setting(*place, numbers["alpha"], numbers["beta"]), {}
        )
        if numbers["accuracy"] is not None:
            cells[line["method"]] = Score(numbers["accuracy"], numbers["std"], None)
    return scores


def setting_of(row: Mapping[str, Any]) -> Setting:
    """Return the line of the tables that a row belongs to."""
    numbers = [
        round(float(row[name]), 6) if isinstance(row.get(name), int | float) else None
        for name in ("alpha", "beta")
    ]
    rate = str(row.get("rate") or row["labelling"])
    return Setting(row["table"], str(row["data"]), rate, *numbers)


def has_accuracy(row: Mapping[str, Any]) -> bool:
    """Return whether the job ended well and left an accuracy."""
    return row.get("status", "ok") == "ok" and number(row.get("accuracy")) is not None


def number(value: Any) -> float | None:
    """Return a finite number from a row as a float, anything else as None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def order_methods(methods: Iterable[str]) -> list[str]:
    """Return methods in the order of the paper's columns, ours and others after them."""
    known = [*PAPER_METHODS, OURS, PLAIN]
    found = set(methods)
    return [m for m in known if m in found] + sorted(found - set(known))


def order_blocks(blocks: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return blocks in the order of the paper."""
    return sorted(blocks, key=_block_order)


def order_settings(settings: Iterable[Setting]) -> list[Setting]:
    """Return settings in the order of the paper's tables."""
    return sorted(
        settings,
        key=lambda s: (*_block_order(s.block), s.rate, s.alpha or 0.0, s.beta or 0.0),
    )


def block_label(block: tuple[str, str]) -> str:
    """Return the name of a block."""
    table, data = block
    if table in _RATES:
        return f"Table {table} ({data}, {_RATES[table]})"
    return data if block in BLOCKS else f"Table {table} ({data})"


def _block_order(block: tuple[str, str]) -> tuple[int, str, str]:
    return BLOCKS.index(block) if block in BLOCKS else len(BLOCKS), *block


def _checked(row: Mapping[str, Any]) -> dict[str, Any]:
    missing = [name for name in _REQUIRED if name not in row]
    if missing:
        msg = f"Each row must have the fields {_REQUIRED}. Got one without {missing}."
        raise InvalidInputError(msg)
    for name, (kind, words) in _KINDS.items():
        if row.get(name) is not None and not isinstance(row[name], kind):
            msg = f"{name} of a row must be {words}. Got {row[name]!r}."
            raise InvalidInputError(msg)
    return {**row, "table": str(row["table"]), "method": str(row["method"])}


def _keep_one_of_each(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of several rows of one job keep one: a success before a failure, then the last."""

    def age(row: dict[str, Any]) -> tuple[bool, str, str]:
        finished = str(row.get("finished") or "")
        return has_accuracy(row), finished, json.dumps(row, sort_keys=True, default=str)

    def job(row: dict[str, Any]) -> tuple[str, ...]:
        seed = row["seed"]
        split = f"{seed:09d}" if isinstance(seed, int) else str(seed)
        return (*(str(row[name]) for name in _REQUIRED[:-1]), split)

    kept = {job(row): row for row in sorted(rows, key=age)}
    return [kept[name] for name in sorted(kept)]


def _average(values: list[float]) -> Score:
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Score(float(np.mean(values)), sd, len(values))
