"""What rows say beyond accuracy: boundaries, the figure, and how the run went."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from probgap.report._rows import (
    OURS,
    Runs,
    Setting,
    has_accuracy,
    is_number,
    order_methods,
    order_settings,
    setting_of,
)

BOUNDARY_METHODS = ("PGPU", OURS)
# An estimate that cannot be used is replaced, with a warning, by one that can.
_MOVED = "BoundaryWarning"
_PANELS = ("x1", "x2", "true", "observed", "relabelled")


def summarise_boundaries(runs: Runs) -> list[dict[str, Any]]:
    """Set the estimated boundary beside the true one, by data set and method."""
    found: dict[tuple[Setting, str], list[tuple[float, float]]] = {}
    moved: Counter[tuple[str, str]] = Counter()
    for row in runs.rows:
        details = row.get("details") or {}
        pair: Any = details.get("boundary"), details.get("true_boundary")
        if not (has_accuracy(row) and all(is_number(value) for value in pair)):
            continue
        if any(str(text).startswith(_MOVED) for text in row.get("warnings") or []):
            moved[str(row["data"]), row["method"]] += 1
        else:
            found.setdefault((setting_of(row), row["method"]), []).append(pair)
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for setting in order_settings({setting for setting, _ in found}):
        for method in BOUNDARY_METHODS:
            pairs = found.get((setting, method))
            if pairs is None:
                continue
            estimated, true = np.mean(pairs, axis=0)
            point = {"true": float(true), "estimated": float(estimated)}
            groups.setdefault((setting.data, method), []).append(
                point | {"runs": len(pairs), "label": setting.label}
            )
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


def summarise_figure(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """Take the panels of Figure 1 out of their row; None where they are not whole."""
    details = (row or {}).get("details") or {}
    panels = details.get("panels") or {}
    columns: list[Any] = [panels.get(name) for name in _PANELS] + [details.get("gap")]
    if not all(isinstance(column, Sequence) for column in columns):
        return None
    if len({len(column) for column in columns}) != 1 or not columns[0]:
        return None
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    if row is None or not all(np.isfinite(array).all() for array in arrays):
        return None
    relabelled = arrays[4]
    return {
        **dict(zip([*_PANELS, "gap"], arrays, strict=True)),
        "boundary": _number_or_none(details.get("boundary")),
        "true_boundary": _number_or_none(details.get("true_boundary")),
        "data": str(row["data"]),
        "labelling": str(row["labelling"]),
        "counts": {
            "samples": int(relabelled.size),
            "positive": int(np.sum(arrays[2] == 1)),
            "labelled": int(np.sum(arrays[3] == 1)),
            "to_positive": int(np.sum(relabelled == 1)),
            "to_negative": int(np.sum(relabelled == 0)),
            "left_out": int(np.sum(relabelled < 0)),
            "right": int(np.sum((relabelled >= 0) & (relabelled == arrays[2]))),
        },
    }


def summarise_run(runs: Runs, command: str | None) -> dict[str, Any]:
    """Say what was run, by what, on what, and for how long."""
    rows = runs.rows
    seeds = {row["seed"] for row in rows if row["table"] != "figure1"}
    return {
        "jobs": len(rows),
        "accuracies": sum(
            score.n or 0 for line in runs.scores.values() for score in line.values()
        ),
        "errors": [
            {
                "job": str(row.get("key") or _job_name(row)),
                "error": str(row.get("error") or "no finite accuracy"),
            }
            for row in runs.errors
        ],
        "settings": len(runs.scores),
        "methods": runs.methods,
        "splits": len(seeds),
        "profiles": sorted({str(row.get("profile") or "full") for row in rows}),
        "command": command,
        "versions": _distinct([row.get("versions") for row in rows]),
        "machines": _distinct([row.get("machine") for row in rows]),
        "settings_used": _by_method(rows, lambda row: [_spelt(row)]),
        "warnings": _by_method(rows, _warned),
        "seconds": float(
            sum(_number_or_none(row.get("seconds")) or 0.0 for row in rows)
        ),
        **_span(rows),
    }


def _number_or_none(value: Any) -> float | None:
    return float(value) if is_number(value) else None


def _job_name(row: dict[str, Any]) -> str:
    names = ("table", "data", "labelling", "method", "seed")
    return "/".join(str(row[name]) for name in names)


def _distinct(records: Sequence[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """Give the different records, the most frequent first, each with its count."""
    counts = Counter(
        json.dumps(record, sort_keys=True, default=str) for record in records if record
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"jobs": n, "items": json.loads(record)} for record, n in ordered]


def _by_method(
    rows: list[dict[str, Any]], texts: Callable[[dict[str, Any]], list[str]]
) -> list[dict[str, Any]]:
    """Count the jobs of each method that have a text, in the order of the tables."""
    counts = Counter((row["method"], str(t)) for row in rows for t in texts(row) if t)
    methods = order_methods({method for method, _ in counts})
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        {"method": method, "text": text, "jobs": n}
        for name in methods
        for (method, text), n in ordered
        if method == name
    ]


def _spelt(row: dict[str, Any]) -> str:
    """Spell the settings of a job: C 1.0, gamma auto."""
    parts: list[str] = []
    settings = dict(row.get("parameters") or {})
    if row["method"] == OURS:
        settings.pop("svm", None)  # it has a machine of its own
    for name, value in sorted(settings.items()):
        if isinstance(value, Mapping):
            inner = ", ".join(f"{key} {value[key]}" for key in sorted(value))
            parts.append(f"{name} ({inner})")
        elif value is not None:
            parts.append(f"{name} {value}")
    return ", ".join(parts)


def _warned(row: dict[str, Any]) -> list[str]:
    """Give the warnings of a job without their numbers, which differ from job to job."""
    texts = {
        re.sub(r"\d+(\.\d+)?", "…", str(text)) for text in row.get("warnings") or []
    }
    return sorted(texts)


def _span(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Find when the first job began and the last one ended."""
    ends, begins = [], []
    for row in rows:
        try:
            end = datetime.fromisoformat(str(row.get("finished")))
        except ValueError:
            continue
        end = end if end.tzinfo else end.replace(tzinfo=UTC)
        ends.append(end)
        begins.append(
            end - timedelta(seconds=_number_or_none(row.get("seconds")) or 0.0)
        )
    if not ends:
        return {"began": None, "ended": None, "wall": None}
    began, ended = min(begins), max(ends)
    return {
        "began": f"{began.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "ended": f"{ended.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "wall": (ended - began).total_seconds(),
    }
