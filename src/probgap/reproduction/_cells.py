"""Rows of a run as data frames: one row for each job, and one for each table cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from probgap._core.errors import InvalidInputError
from probgap._core.output import load

NAIVE, CLEAN, OURS = "SVM", "clean", "probgap"
PLAIN = "probgap C=1"  # ours, with the SVM of the other methods at the end
PAPER_METHODS = (NAIVE, "Elkan", "Natarajan", "Liu", "PGPU", "PGPUcv", CLEAN)
RIVALS = PAPER_METHODS[:-1]
FIGURE_TABLE = "figure1"
# Labellings of the paper for which it prints no accuracies: for boundaries alone.
BOUNDARY_TABLE = "boundaries"
LINE = ["table", "data", "line"]  # what identifies a line of the tables
_JOB = ["table", "data", "labelling", "method", "seed"]
_KINDS = {
    **dict.fromkeys(("details", "versions", "machine", "parameters"), dict),
    "warnings": list,
}

Frame = Any  # pandas is imported when it is used


def read_jobs(rows: Sequence[Mapping[str, Any]]) -> Frame:
    """Return one row for each job: the last success, or else the last failure."""
    if not rows:
        msg = "rows must hold at least one row. Got none."
        raise InvalidInputError(msg)
    jobs = load("pandas").DataFrame([_read_job(row) for row in rows])
    jobs = jobs.sort_values(["ok", "finished", "accuracy"])
    return jobs.drop_duplicates(_JOB, keep="last").sort_values(_JOB, ignore_index=True)


def make_cells(jobs: Frame) -> Frame:
    """Return the accuracies in percent, averaged over splits, beside the printed ones.

    Every cell that was run or printed is a row, in the order of the paper. ``n`` is the
    number of splits: missing where the method was not run, 0 where all its jobs failed.
    """
    scored = jobs[~jobs["table"].isin([FIGURE_TABLE, BOUNDARY_TABLE])]
    run = scored.groupby([*LINE, "method"])["accuracy"]
    run = run.agg(mean="mean", sd="std", n="count").reset_index()
    printed = _read_printed()
    cells = run.merge(printed, how="outer", on=[*LINE, "method"])
    names = {
        (table, data): f"Table {table} ({data}, {line.partition('(')[0]})"
        if table < "7"
        else data
        for table, data, line in printed[LINE].itertuples(index=False)
    }
    blocks = list(zip(cells["table"], cells["data"], strict=True))
    order = [*names, *sorted(set(blocks) - set(names))]
    cells["block"] = [names.get(b, f"Table {b[0]} ({b[1]})") for b in blocks]
    cells["known"] = [block in names for block in blocks]
    cells["place"] = [order.index(block) for block in blocks]
    cells = cells.sort_values(["place", "line", "method"], ignore_index=True)
    cells["difference"] = cells["mean"] - cells["paper_mean"]
    deviation = cells[["sd", "paper_sd"]].max(axis="columns")
    cells["differs"] = cells["difference"].abs() > 2.0 * deviation + 1e-9
    for side in ("", "paper_"):
        mean = cells[f"{side}mean"].where(cells["method"] != CLEAN).round(2)
        best = mean.groupby([cells[name] for name in LINE]).transform("max")
        cells[f"{side}best"] = mean == best
    return cells


def lines_of(cells: Frame, column: str = "mean") -> Frame:
    """Return a column of the cells with a row for each line and a column a method."""
    known = cells.dropna(subset=column)
    lines = known.pivot(index=LINE, columns="method", values=column)
    return lines[order_methods(lines.columns)]


def order_methods(methods: Iterable[str]) -> list[str]:
    """Return methods in the order of the paper's columns, ours and others after them."""
    known = [*PAPER_METHODS, OURS, PLAIN]
    found = set(methods)
    return [m for m in known if m in found] + sorted(found - set(known))


def _read_printed() -> Frame:
    """Read the accuracies of the paper's eight tables, in percent."""
    with files("probgap.reproduction").joinpath("printed.csv").open() as file:
        printed = load("pandas").read_csv(file, dtype={"table": str})
    rates = printed[["mislabelling", "alpha", "beta"]].itertuples(index=False)
    printed["line"] = [_name_line(*rate) for rate in rates]
    names = {"dataset": "data", "accuracy": "paper_mean", "std": "paper_sd"}
    printed = printed.rename(columns=names).dropna(subset="paper_mean")
    return printed[[*LINE, "method", "paper_mean", "paper_sd"]]


def _read_job(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the report needs of a row, each value of a known type."""
    missing = [name for name in _JOB if name not in row]
    if missing:
        msg = f"Each row must have the fields {_JOB}. Got one without {missing}."
        raise InvalidInputError(msg)
    for name, kind in _KINDS.items():
        if row.get(name) is not None and not isinstance(row[name], kind):
            msg = f"{name} of a row must be a {kind.__name__}. Got {row[name]!r}."
            raise InvalidInputError(msg)
    details = row.get("details") or {}
    accuracy = 100.0 * _number(row.get("accuracy"))
    ended_well = row.get("status", "ok") == "ok"
    rate = str(row.get("rate") or row["labelling"])
    return {
        **{name: str(row[name]) for name in _JOB},
        "name": "/".join(str(row[name]) for name in _JOB),
        "line": _name_line(rate, _number(row.get("alpha")), _number(row.get("beta"))),
        "ok": ended_well and (str(row["table"]) == FIGURE_TABLE or accuracy >= 0.0),
        "accuracy": accuracy if ended_well else math.nan,
        "error": str(row.get("error") or "no finite accuracy"),
        "seconds": np.nan_to_num(_number(row.get("seconds"))),
        "finished": str(row.get("finished") or ""),
        "profile": str(row.get("profile") or "full"),
        "parameters": row.get("parameters") or {},
        "versions": row.get("versions") or {},
        "machine": row.get("machine") or {},
        "warnings": [str(text) for text in row.get("warnings") or []],
        "details": details,
        "boundary": _number(details.get("boundary")),
        "true_boundary": _number(details.get("true_boundary")),
    }


def _name_line(rate: str, alpha: float, beta: float) -> str:
    numbers = ", ".join(f"{x:g}" for x in (alpha, beta) if not math.isnan(x))
    return f"{rate}({numbers})" if numbers else rate


def _number(value: Any) -> float:
    """Return a finite number as a float, anything else as NaN."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and math.isfinite(value) else math.nan
