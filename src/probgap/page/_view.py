"""From the account of a fit to what the page prints, section by section."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from probgap.page import _checks as checks
from probgap.page import _drawn as drawn
from probgap.page import _words as words
from probgap.page._clean import clip
from probgap.page._read import (
    Part,
    interval,
    listed,
    number,
    numbers,
    part,
    parts,
    text,
    truth,
    whole,
)

# Longer lists are cut there, and the page says so.
MOST_COLUMNS, MOST_DRIVERS, MOST_VALUES, MOST_NEXT = 300, 12, 6, 50
_SHOWN_NEXT = 10
_NUMERAL = re.compile(r"[+-]?[\d,.\s]*\d[\d,.]*(e[+-]?\d+)?%?", re.IGNORECASE)


def make_view(account: Part) -> dict[str, Any]:
    """Gather all that the page prints."""
    found = part(account, "found")
    warnings = words.warning_list(account)
    tested = checks.all_checks(account)
    verdict = checks.overall(tested, warnings)
    doubtful = any(w["strong"] for w in warnings) or verdict["state"] == checks.AGAINST
    ranked = _ranked(account)
    return {
        "source": words.source_line(account),
        "headline": words.headline(found, doubtful=doubtful),
        "lead": words.lead(found),
        "warnings": warnings,
        "count_line": drawn.draw_count(found),
        "sure": words.how_sure(found),
        "which": words.which_ones(found, ranked["rows"]),
        "overall": verdict,
        "found": _found(found),
        "ranked": ranked,
        "checks": {check.key: check for check in tested},
        "belief": _belief(account),
        "decision": _decision(account),
        "drivers": _drivers(part(account, "drivers")),
        "next": _next(account),
        "table_": _table(part(account, "table")),
        "run": _run(part(account, "run")),
    }


def _found(found: Part) -> dict[str, Any]:
    return {
        "rows": whole(found, "rows"),
        "labelled": whole(found, "labelled"),
        "unlabelled": whole(found, "unlabelled"),
        "hidden": number(found, "hidden"),
        "interval": interval(found, "hidden_interval"),
        "level": number(found, "level"),
        "share": number(found, "share_positive"),
        "share_interval": interval(found, "share_interval"),
        "called": whole(found, "called_positive"),
    }


def _ranked(account: Part) -> dict[str, Any]:
    rows = parts(account, "ranked")
    names = list(dict.fromkeys(name for row in rows for name in part(row, "values")))
    shown = names[:MOST_VALUES]
    return {
        "columns": [(clip(name, 40), _all_numbers(rows, name)) for name in shown],
        "has_id": any(text(row, "id") for row in rows),
        "rows": [
            {
                "rank": whole(row, "rank"),
                "row": whole(row, "row"),
                "id": clip(row["id"], 40) if text(row, "id") else None,
                "name": words.row_name(row),
                "probability": number(row, "probability"),
                "gap": number(row, "gap"),
                "values": [_cell(part(row, "values").get(name)) for name in shown],
            }
            for row in rows
        ],
    }


def _belief(account: Part) -> dict[str, Any]:
    belief, found = part(account, "belief"), part(account, "found")
    scar, labelling = part(belief, "scar"), part(belief, "labelling")
    held_out = part(belief, "held_out")
    others = [_other(item) for item in parts(belief, "others")]
    called = _called_when_compared(others, whole(found, "called_positive"))
    most = max([called or 0, *(item["hidden"] or 0 for item in others), 1])
    return {
        "scar": {
            "p": words.p_words(p)
            if (p := number(scar, "p_value")) is not None
            else None,
            "statistic": number(scar, "statistic"),
            "resamples": whole(scar, "n_resamples"),
        },
        "labelling": drawn.draw_labelling(labelling),
        "labelling_bins": _numbers_of(labelling, "bins", _BINS),
        "rank_correlation": number(labelling, "rank_correlation"),
        "recall": drawn.draw_recall(held_out, checks.chance_of(found)),
        "recall_ends": interval(held_out, "recall_interval"),
        "calibration_error": number(held_out, "calibration_error"),
        "worlds": _worlds(part(belief, "worlds"), found),
        "others": others,
        "called": called,
        "apart": called != whole(found, "called_positive"),
        "most": most,
    }


def _worlds(worlds: Part, found: Part) -> list[dict[str, Any]]:
    """List what is possible: how many are hidden, and what that would mean."""
    rows, labelled = number(found, "rows"), number(found, "labelled")
    listed_worlds = []
    for name, meaning in _MEANINGS.items():
        hidden = number(worlds, name)
        if hidden is None:
            return []
        positives = hidden + (labelled or 0.0)
        listed_worlds.append(
            {
                "meaning": meaning,
                "hidden": hidden,
                "share": positives / rows if rows else None,
                "labelled": (labelled or 0.0) / positives if positives else None,
            }
        )
    return listed_worlds


_MEANINGS = {
    "low": "Most positives are labelled, and the classes overlap",
    "high": "Only the clear ones are labelled",
}
_BINS = ("gap_low", "gap_high", "n", "labelled", "frequency", "low", "high", "fit")


def _numbers_of(holder: Part, name: str, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{key: number(item, key) for key in keys} for item in parts(holder, name)]


def _other(item: Part) -> dict[str, Any]:
    return {
        "method": clip(item.get("method") or "unnamed", 40),
        "hidden": whole(item, "hidden"),
        "agreement": number(item, "agreement"),
        "overlap": checks.overlap(item),
        "both": whole(item, "both"),
        "only_here": whole(item, "only_here"),
        "only_there": whole(item, "only_there"),
        "recall": number(item, "recall"),
        "lee_liu": number(item, "lee_liu"),
        "error": clip(item["error"], 300) if text(item, "error") else None,
    }


def _called_when_compared(
    others: list[dict[str, Any]], called: int | None
) -> int | None:
    """Count our positives as the comparison does, which goes by rows held out."""
    for item in others:
        if item["both"] is not None and item["only_here"] is not None:
            return int(item["both"] + item["only_here"])
    return called


def _decision(account: Part) -> dict[str, Any]:
    decision, boundary = part(account, "decision"), part(account, "boundary")
    weights, histogram = part(decision, "weights"), part(decision, "histogram")
    edges = numbers(histogram, "edges")
    counts = [numbers(histogram, name) for name in ("unlabelled", "labelled")]
    keys = ("predicted", "observed", "n", "low", "high")
    return {
        "zones": [
            whole(decision, name)
            for name in ("n_negative", "n_undecided", "n_positive")
        ],
        "undecided_share": number(decision, "undecided_share"),
        "boundary": number(boundary, "value"),
        "rule": text(boundary, "rule"),
        "spread": number(boundary, "spread"),
        "fallback": clip(boundary["fallback"], 300)
        if text(boundary, "fallback")
        else None,
        "gaps": drawn.draw_gaps(decision, boundary),
        "bars": list(zip(edges, edges[1:], *counts, strict=False)),
        "reliability": drawn.draw_reliability(decision),
        "reliability_bins": _numbers_of(decision, "reliability", keys),
        "reweighted": truth(weights, "reweighted"),
        "effective": number(weights, "effective_sample_size"),
        "weighted": whole(weights, "n_weighted"),
        "largest": number(weights, "largest"),
        "residual": number(weights, "kkt_residual"),
        "converged": truth(weights, "converged"),
    }


def _drivers(drivers: Part) -> dict[str, Any]:
    columns: list[dict[str, Any]] = [
        {
            "column": clip(item.get("column") or "", 60),
            "importance": number(item, "importance") or 0.0,
            "spread": number(item, "spread"),
        }
        for item in parts(drivers, "columns")
    ]
    most = max([item["importance"] for item in columns], default=0.0)
    return {
        "scored_by": text(drivers, "scored_by"),
        "score": number(drivers, "score"),
        "columns": columns[:MOST_DRIVERS],
        "rest": len(columns[MOST_DRIVERS:]),
        "most": most if most > 0.0 else 1.0,
    }


def _next(account: Part) -> dict[str, Any]:
    rows = [
        {
            "name": words.row_name(item),
            "row": whole(item, "row"),
            "id": clip(item["id"], 40) if text(item, "id") else None,
            "gap": number(item, "gap"),
            "probability": number(item, "probability"),
            "why": clip(item.get("why") or "", 200),
        }
        for item in parts(account, "next")[:MOST_NEXT]
    ]
    return {
        "first": rows[:_SHOWN_NEXT],
        "more": rows[_SHOWN_NEXT:],
        "has_id": any(row["id"] for row in rows),
    }


def _table(table: Part) -> dict[str, Any]:
    columns = [
        {
            "name": clip(item.get("name", ""), 60),
            "use": clip(item.get("use") or "", 20),
            "why": clip(item.get("why") or "", 160),
            "missing": whole(item, "n_missing"),
            "distinct": whole(item, "n_distinct"),
            "example": _cell(item.get("example")),
        }
        for item in parts(table, "columns")
    ]
    uses = Counter(item["use"] for item in columns)
    left_out = [item for item in columns if item["use"] == "left out"]
    return {
        "name": clip(text(table, "name") or "the table", 80),
        "rows": whole(table, "rows"),
        "sha256": text(table, "sha256"),
        "sentence": clip(table.get("sentence") or "", 600),
        "id": clip(table["id"], 60) if text(table, "id") else None,
        "notes": [clip(note, 300) for note in listed(table, "notes")],
        "columns": columns[:MOST_COLUMNS],
        "n_columns": len(columns),
        "uses": [(use, uses[use]) for use in uses],
        "left_out": left_out[:MOST_COLUMNS],
        "n_left_out": len(left_out),
    }


def _run(run: Part) -> dict[str, Any]:
    timings = part(run, "timings")
    times = {clip(k, 40): t for k in timings if (t := number(timings, k)) is not None}
    return {
        "version": text(run, "probgap"),
        "started": words.moment(text(run, "started")),
        "command": clip(run["command"], 2000) if text(run, "command") else None,
        "seed": whole(run, "seed"),
        "settings": _flat(part(run, "settings")),
        "versions": _flat(part(run, "versions")),
        "timings": times,
        "total": sum(times.values()) if times else None,
        "pipeline": str(run.get("pipeline") or "")[:20_000],
        "files": [clip(name, 80) for name in listed(run, "files")],
    }


def _flat(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Write settings as names and values, one line each."""
    return [
        (
            clip(name, 60),
            clip(
                value if isinstance(value, str) else json.dumps(value, default=str), 300
            ),
        )
        for name, value in settings.items()
    ]


def _all_numbers(rows: list[Part], name: str) -> bool:
    """Tell whether a column reads as numbers, which line up on the right."""
    cells = [str(part(row, "values").get(name) or "").strip() for row in rows]
    return all(_NUMERAL.fullmatch(cell) for cell in cells if cell)


def _cell(value: object) -> str:
    return "" if value is None else clip(value, 60)
