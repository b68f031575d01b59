"""Rows of a run, cleaned, put in order, and averaged over splits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from probgap._core.errors import InvalidInputError

NAIVE, CLEAN, OURS = "SVM", "clean", "probgap"
PLAIN = "probgap C=1"  # ours, without its own choice of C
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
_RATES = {"1": "inverse", "2": "linear", "3": "constant"}
_RATES |= {"4": "inverse", "5": "linear", "6": "constant"}
_KINDS: dict[str, tuple[Any, str]] = {
    "details": (Mapping, "an object"),
    "versions": (Mapping, "an object"),
    "machine": (Mapping, "an object"),
    "parameters": (Mapping, "an object"),
    "seed": (int | str, "a number or a name"),
    "warnings": (list, "a list"),
}
_REQUIRED = ("table", "data", "labelling", "method", "seed")


class Setting(NamedTuple):
    """One line of a table: a data set and a way of hiding labels.

    Attributes
    ----------
    table, data, rate : str
        Number of the table, name of the data set, kind of labelling.
    alpha, beta : float or None
        Parameters of the labelling, where it has them.
    """

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


@dataclass(frozen=True, slots=True)
class Score:
    """Accuracy over splits, in percent.

    Attributes
    ----------
    mean : float
        Mean over splits.
    sd : float or None
        Sample standard deviation, None where there is no second split.
    n : int or None
        Number of splits, None where it is not known.
    """

    mean: float
    sd: float | None
    n: int | None


Scores = dict[Setting, dict[str, Score]]


@dataclass(frozen=True, slots=True)
class Runs:
    """What a run left behind, each job once, in an order of its own.

    Attributes
    ----------
    rows : list of dict
        Every job, figures included.
    scores : dict
        Accuracies by setting and method.
    errors : list of dict
        Jobs without a usable accuracy.
    figure : dict or None
        The row that holds the data of the figure.
    """

    rows: list[dict[str, Any]]
    scores: Scores
    errors: list[dict[str, Any]]
    figure: dict[str, Any] | None

    @property
    def methods(self) -> list[str]:
        """Methods that were run, in the order of the tables."""
        return order_methods(
            {method for line in self.scores.values() for method in line}
        )


def read_runs(rows: Sequence[Mapping[str, Any]]) -> Runs:
    """Check the rows and average them over splits, whatever order they come in."""
    if not rows:
        msg = "rows must hold at least one row. Got none."
        raise InvalidInputError(msg)
    unique = _keep_one_of_each([_checked(row) for row in rows])
    scores: dict[Setting, dict[str, list[float]]] = {}
    errors, figure = [], None
    for row in unique:
        if row["table"] == FIGURE_TABLE:
            if row.get("status", "ok") != "ok":
                errors.append(row)
            elif figure is None:
                figure = row
            continue
        if row["table"] == BOUNDARY_TABLE and has_accuracy(row):
            continue
        line = scores.setdefault(setting_of(row), {})
        if has_accuracy(row):
            line.setdefault(row["method"], []).append(100.0 * float(row["accuracy"]))
        else:
            errors.append(row)
    averaged = {
        setting: {method: _average(values) for method, values in line.items()}
        for setting, line in scores.items()
    }
    return Runs(unique, averaged, errors, figure)


def setting_of(row: Mapping[str, Any]) -> Setting:
    """Give the line of the tables that a row belongs to."""
    return Setting(
        row["table"],
        str(row["data"]),
        str(row.get("rate") or row["labelling"]),
        _as_number(row.get("alpha")),
        _as_number(row.get("beta")),
    )


def has_accuracy(row: Mapping[str, Any]) -> bool:
    """Tell whether the job ended well and left an accuracy."""
    return row.get("status", "ok") == "ok" and is_number(row.get("accuracy"))


def is_number(value: object) -> bool:
    """Tell whether a value from a row is a finite number."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def order_methods(methods: set[str]) -> list[str]:
    """Put methods in the order of the paper's columns, ours and others after them."""
    known = [*PAPER_METHODS, OURS, PLAIN]
    return [m for m in known if m in methods] + sorted(methods - set(known))


def order_settings(settings: set[Setting]) -> list[Setting]:
    """Put settings in the order of the paper's tables."""
    return sorted(
        settings,
        key=lambda s: (*_block_order(s.block), s.rate, s.alpha or 0.0, s.beta or 0.0),
    )


def order_blocks(blocks: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Put blocks in the order of the paper."""
    return sorted(blocks, key=_block_order)


def block_label(block: tuple[str, str]) -> str:
    """Name a block as a reader would."""
    table, data = block
    if table in _RATES:
        return f"Table {table}: {data}, {_RATES[table]}"
    return data if block in BLOCKS else f"Table {table}: {data}"


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
    """Of several rows of one job keep one: a good one before an error, then the last."""

    def age(row: dict[str, Any]) -> tuple[bool, str, str]:
        finished = str(row.get("finished") or "")
        return has_accuracy(row), finished, json.dumps(row, sort_keys=True, default=str)

    kept = {_job(row): row for row in sorted(rows, key=age)}
    return [kept[job] for job in sorted(kept)]


def _job(row: dict[str, Any]) -> tuple[str, ...]:
    seed = f"{row['seed']:09d}" if isinstance(row["seed"], int) else str(row["seed"])
    return (*(str(row[name]) for name in _REQUIRED[:-1]), seed)


def _as_number(value: object) -> float | None:
    return round(float(value), 6) if isinstance(value, int | float) else None


def _average(values: list[float]) -> Score:
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Score(float(np.mean(values)), sd, len(values))
