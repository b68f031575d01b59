"""From rows to plain data, from which every page and figure is made."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from probgap.reproduction._comparison import (
    count_verdicts,
    summarise_blocks,
    summarise_statistics,
)
from probgap.reproduction._scores import (
    BLOCKS,
    CLEAN,
    NAIVE,
    OURS,
    PAPER_METHODS,
    Runs,
    Score,
    Scores,
    Setting,
    block_label,
    has_accuracy,
    number,
    order_blocks,
    order_methods,
    order_settings,
    printed_scores,
    read_runs,
    setting_of,
)

BOUNDARY_METHODS = ("PGPU", OURS)
_TITLES = {
    "1": "Triangles (no overlap), inverse mislabelled rate",
    "2": "Triangles (no overlap), linear mislabelled rate",
    "3": "Triangles (no overlap), constant mislabelled rate",
    "4": "Square (overlap), inverse mislabelled rate",
    "5": "Square (overlap), linear mislabelled rate",
    "6": "Square (overlap), constant mislabelled rate",
    "7": "Five UCI benchmark sets, inverse mislabelled rate",
    "8": "TCDB and SwissProt, labels as they were found",
}
_ALPHA = "\N{GREEK SMALL LETTER ALPHA}"
# The paper has no line for this one; a run has.
_UNPRINTED = Setting("7", "banana", "inverse", 0.3, 1.5)
_SUSPECT = (
    "The first seven printed lines of splice look like those of banana: clean accuracies "
    "near 67, where the last two lines have 95.79. They are shown as printed."
)
_OWN = ("PGPU", "PGPUcv")
# An estimate that cannot be used is replaced, with this warning, by one that can.
_MOVED = "BoundaryWarning"
_PANELS = ("x1", "x2", "true", "observed", "relabelled")

Facts = dict[str, Any]


def summarise(
    rows: Sequence[Mapping[str, Any]], *, command: str | None = None
) -> Facts:
    """Compute everything that the report shows.

    Parameters
    ----------
    rows : sequence of mappings
        One for each job, in any order.
    command : str, default=None
        The command line of the run.

    Returns
    -------
    dict
        Numbers, names and lists of them; nothing in it is formatted.

    Examples
    --------
    >>> from probgap.reproduction import summarise
    >>> row = {"table": "1", "data": "triangles", "labelling": "inverse(0.1, 0.5)"}
    >>> row |= {"rate": "inverse", "alpha": 0.1, "beta": 0.5, "seed": 0}
    >>> scores = {"SVM": 0.92, "clean": 0.98, "probgap": 0.96}
    >>> rows = [row | {"method": m, "accuracy": a} for m, a in scores.items()]
    >>> round(summarise(rows)["blocks"][0]["ours"]["share"], 3)
    0.667
    """
    runs = read_runs(rows)
    printed = printed_scores()
    blocks = summarise_blocks(runs.scores, printed)
    present = {setting.table for setting in runs.scores}
    missing = [table for table in _TITLES if table not in present]
    numbers = [table for table in _TITLES if table in present]
    numbers += sorted(present - set(_TITLES))
    tables = [_summarise_table(table, runs, printed) for table in numbers]
    return {
        "run": _summarise_run(runs, command),
        "ours": OURS,
        "blocks": blocks,
        "verdicts": count_verdicts(blocks),
        "tables": tables,
        "missing_tables": missing,
        "statistics": summarise_statistics(runs.scores),
        "panels": _summarise_figure(runs.figure),
        "boundaries": _summarise_boundaries(runs),
        "differences": _summarise_differences(tables, blocks),
    }


def _differs(ours: Score | None, paper: Score | None) -> bool:
    """Return whether two accuracies differ by more than two standard deviations.

    The greater of the two deviations counts; where neither is known, the answer is no.
    """
    if ours is None or paper is None:
        return False
    known = [sd for sd in (ours.sd, paper.sd) if sd is not None]
    return bool(known) and abs(ours.mean - paper.mean) > 2.0 * max(known) + 1e-9


def _summarise_table(table: str, runs: Runs, printed: Scores) -> Facts:
    """Set a table of the run beside the printed one."""
    in_run = {setting for setting in runs.scores if setting.table == table}
    settings = in_run | {setting for setting in printed if setting.table == table}
    failed = {(setting_of(row), row["method"]) for row in runs.errors}
    ran = {method for setting in in_run for method in runs.scores[setting]}
    ran |= {method for setting, method in failed if setting.table == table}
    methods = order_methods(ran | set(PAPER_METHODS if settings & set(printed) else ()))
    groups: list[Facts] = [
        {
            "data": block[1],
            "lines": [
                {
                    "setting": setting,
                    "label": setting.label,
                    "in_paper": setting in printed,
                    "cells": _cells(setting, methods, runs.scores, printed, failed),
                }
                for setting in order_settings(s for s in settings if s.block == block)
            ],
        }
        for block in order_blocks({setting.block for setting in in_run})
    ]
    cells = [cell for g in groups for line in g["lines"] for cell in line["cells"]]
    counts = [cell["ours"].n for cell in cells if cell["ours"]]
    head = "labels" if all(s.alpha is None for s in settings) else _ALPHA
    return {
        "number": table,
        "title": _TITLES.get(table, "not a table of the paper"),
        "head": f"({head}, β)" if any(s.beta is not None for s in settings) else head,
        "methods": methods,
        "groups": groups,
        # The number of runs that most cells have, the greater of two as common.
        "runs": max(counts, key=lambda n: (counts.count(n), n), default=0),
        "equal": len(set(counts)) == 1,
        "marked": sum(cell["differs"] for cell in cells),
        "compared": sum(bool(cell["ours"] and cell["paper"]) for cell in cells),
        "notes": _notes(table, in_run, {*methods, OURS} - ran),
    }


def _cells(
    setting: Setting,
    methods: list[str],
    scores: Scores,
    printed: Scores,
    failed: set[tuple[Setting, str]],
) -> list[Facts]:
    ours, paper = scores.get(setting, {}), printed.get(setting, {})
    best_ours, best_paper = _best(ours), _best(paper)
    cells = []
    for method in methods:
        mine, theirs = ours.get(method), paper.get(method)
        cells.append(
            {
                "method": method,
                "ours": mine,
                "paper": theirs,
                "best": method in best_ours,
                "paper_best": method in best_paper,
                "differs": _differs(mine, theirs),
                "difference": mine.mean - theirs.mean if mine and theirs else None,
                "why": "failed" if (setting, method) in failed else "not run",
                "printable": method in PAPER_METHODS,
            }
        )
    return cells


def _best(line: dict[str, Score]) -> set[str]:
    """Return the methods with the best mean, to two decimals."""
    means = {m: round(score.mean, 2) for m, score in line.items() if m != CLEAN}
    return {method for method, mean in means.items() if mean == max(means.values())}


def _notes(table: str, in_run: set[Setting], absent: set[str]) -> list[str]:
    notes = []
    shown = {setting.data for setting in in_run}
    if absent:
        notes.append(f"Not run here: {', '.join(order_methods(absent))}.")
    others = [data for number, data in BLOCKS if number == table and data not in shown]
    if others:
        notes.append(f"Data sets of this table that were not run: {', '.join(others)}.")
    if _UNPRINTED in in_run:
        notes.append(
            f"The paper prints no line for banana {_UNPRINTED.label}; it is run here."
        )
    if table == "7" and "splice" in shown:
        notes.append(_SUSPECT)
    if table == "7" and "heart" in shown:
        notes.append("The paper does not run PGPUcv on heart.")
    return notes


def _summarise_differences(tables: list[Facts], blocks: list[Facts]) -> Facts:
    """Count the cells that differ from the print, and who is best where."""
    found: dict[str, dict[str, list[Facts]]] = {}
    for table in tables:
        for group in table["groups"]:
            cells = found.setdefault(block_label((table["number"], group["data"])), {})
            for line in group["lines"]:
                for cell in line["cells"]:
                    if cell["difference"] is not None:
                        cells.setdefault(cell["method"], []).append(cell)
    every = [c for cells in found.values() for group in cells.values() for c in group]
    marked = [cell for cell in every if cell["differs"]]
    both = [
        (block["label"], block["best"]["method"], block["paper_best"]["method"])
        for block in blocks
        if block["known"] and block["best"] and block["paper_best"]
    ]
    return {
        "methods": list(PAPER_METHODS),
        "blocks": [
            {"label": label, "cells": [_compare(cells.get(m)) for m in PAPER_METHODS]}
            for label, cells in found.items()
            if cells
        ],
        "compared": len(every),
        "marked": len(marked),
        "higher": sum(cell["difference"] > 0 for cell in marked),
        "naive": _compare([cell for cell in every if cell["method"] == NAIVE]),
        "clean": _compare([cell for cell in every if cell["method"] == CLEAN]),
        "winners": {
            "blocks": len(both),
            "same": sum(here == there for _, here, there in both),
            "own_here": sum(here in _OWN for _, here, _ in both),
            "own_printed": sum(there in _OWN for _, _, there in both),
            "parted": [
                {"label": label, "here": here, "printed": there}
                for label, here, there in both
                if here != there
            ],
        },
    }


def _compare(cells: list[Facts] | None) -> Facts | None:
    if not cells:
        return None
    differences = [cell["difference"] for cell in cells]
    return {
        "compared": len(cells),
        "marked": sum(cell["differs"] for cell in cells),
        "difference": float(np.mean(differences)),
        "size": float(np.mean(np.abs(differences))),
    }


def _summarise_boundaries(runs: Runs) -> list[Facts]:
    """Set the estimated boundary beside the true one, by data set and method."""
    found: dict[tuple[Setting, str], list[tuple[float, float]]] = {}
    moved: Counter[tuple[str, str]] = Counter()
    for row in runs.rows:
        details = row.get("details") or {}
        estimated, true = (
            number(details.get(n)) for n in ("boundary", "true_boundary")
        )
        if not has_accuracy(row) or estimated is None or true is None:
            continue
        if any(str(text).startswith(_MOVED) for text in row.get("warnings") or []):
            moved[str(row["data"]), row["method"]] += 1
        else:
            place = setting_of(row), row["method"]
            found.setdefault(place, []).append((true, estimated))
    groups: dict[tuple[str, str], list[Facts]] = {}
    for setting in order_settings({setting for setting, _ in found}):
        for method in BOUNDARY_METHODS:
            if pairs := found.get((setting, method)):
                true, estimated = (float(mean) for mean in np.mean(pairs, axis=0))
                point = {"true": true, "estimated": estimated, "runs": len(pairs)}
                group = groups.setdefault((setting.data, method), [])
                group.append(point | {"label": setting.label})
    return [
        {
            "data": data,
            "method": method,
            "points": points,
            "labellings": len(points),
            "runs": sum(point["runs"] for point in points),
            "moved": moved[data, method],
            "bias": float(np.mean([p["estimated"] - p["true"] for p in points])),
            "error": float(np.mean([abs(p["estimated"] - p["true"]) for p in points])),
        }
        for (data, method), points in groups.items()
    ]


def _summarise_figure(row: Facts | None) -> Facts | None:
    """Take the panels of Figure 1 out of their row; None where they are incomplete."""
    details = (row or {}).get("details") or {}
    panels = details.get("panels") or {}
    columns: list[Any] = [panels.get(name) for name in _PANELS] + [details.get("gap")]
    if row is None or not all(isinstance(column, Sequence) for column in columns):
        return None
    if len({len(column) for column in columns}) != 1 or not columns[0]:
        return None
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    if not np.isfinite(arrays).all():
        return None
    _, _, true, observed, relabelled, _ = arrays
    return {
        **dict(zip([*_PANELS, "gap"], arrays, strict=True)),
        "boundary": number(details.get("boundary")),
        "true_boundary": number(details.get("true_boundary")),
        "data": str(row["data"]),
        "labelling": str(row["labelling"]),
        "counts": {
            "samples": int(relabelled.size),
            "positive": int(np.sum(true == 1)),
            "labelled": int(np.sum(observed == 1)),
            "to_positive": int(np.sum(relabelled == 1)),
            "to_negative": int(np.sum(relabelled == 0)),
            "left_out": int(np.sum(relabelled < 0)),
            "right": int(np.sum((relabelled >= 0) & (relabelled == true))),
        },
    }


def _summarise_run(runs: Runs, command: str | None) -> Facts:
    """Return what was run, by what, on what, and for how long."""
    rows = runs.rows
    scores = [score for line in runs.scores.values() for score in line.values()]
    names = ("table", "data", "labelling", "method", "seed")
    return {
        "jobs": len(rows),
        "accuracies": sum(score.n or 0 for score in scores),
        "errors": [
            {
                "job": str(
                    row.get("key") or "/".join(str(row[name]) for name in names)
                ),
                "error": str(row.get("error") or "no finite accuracy"),
            }
            for row in runs.errors
        ],
        "settings": len(runs.scores),
        "methods": order_methods(m for line in runs.scores.values() for m in line),
        "splits": len({row["seed"] for row in rows if row["table"] != "figure1"}),
        "profiles": sorted({str(row.get("profile") or "full") for row in rows}),
        "command": command,
        "versions": _distinct(row.get("versions") for row in rows),
        "machines": _distinct(row.get("machine") for row in rows),
        "settings_used": _by_method((row["method"], _settings(row)) for row in rows),
        # Without their numbers, which differ from job to job.
        "warnings": _by_method(
            (row["method"], text)
            for row in rows
            for text in {
                re.sub(r"\d+(\.\d+)?", "…", str(said))
                for said in row.get("warnings") or []
            }
        ),
        "seconds": float(sum(number(row.get("seconds")) or 0.0 for row in rows)),
        **_span(rows),
    }


def _distinct(records: Iterable[Any]) -> list[Facts]:
    """Return the different records, the most frequent first, each with its count."""
    counts = Counter(
        json.dumps(record, sort_keys=True, default=str) for record in records if record
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"jobs": n, "items": json.loads(record)} for record, n in ordered]


def _by_method(texts: Iterable[tuple[str, str]]) -> list[Facts]:
    """Count the jobs of each method that have a text, in the order of the tables."""
    counts = Counter((method, text) for method, text in texts if text)
    order = order_methods(method for method, _ in counts)
    ordered = sorted(counts, key=lambda k: (order.index(k[0]), -counts[k], k[1]))
    return [{"method": k[0], "text": k[1], "jobs": counts[k]} for k in ordered]


def _settings(row: Facts) -> str:
    """Return the settings of a job as text: C 1.0, gamma auto."""
    parts: list[str] = []
    for name, value in sorted((row.get("parameters") or {}).items()):
        if name == "svm" and row["method"] == OURS:
            continue  # it has a final classifier of its own
        if isinstance(value, Mapping):
            inner = ", ".join(f"{key} {value[key]}" for key in sorted(value))
            parts.append(f"{name} ({inner})")
        elif value is not None:
            parts.append(f"{name} {value}")
    return ", ".join(parts)


def _span(rows: list[Facts]) -> Facts:
    """Return when the first job began and the last one ended."""
    spans = []
    for row in rows:
        try:
            end = datetime.fromisoformat(str(row.get("finished")))
        except ValueError:
            continue
        end = end.astimezone(UTC) if end.tzinfo else end.replace(tzinfo=UTC)
        spans.append((end - timedelta(seconds=number(row.get("seconds")) or 0.0), end))
    if not spans:
        return {"began": None, "ended": None, "wall": None}
    began, ended = min(start for start, _ in spans), max(end for _, end in spans)
    return {
        "began": f"{began:%Y-%m-%d %H:%M:%S} UTC",
        "ended": f"{ended:%Y-%m-%d %H:%M:%S} UTC",
        "wall": (ended - began).total_seconds(),
    }
