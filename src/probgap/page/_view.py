"""From the account of a fit to what the page prints, section by section."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from probgap.page import _checks as checks
from probgap.page import _drawn as drawn
from probgap.page import _words as words
from probgap.page._clean import clip
from probgap.page._record import RankedRow, RunRecord, TableRecord

if TYPE_CHECKING:
    from probgap.diagnostics import Account

# Longer lists are cut there, and the page says so.
MOST_COLUMNS, MOST_DRIVERS, MOST_VALUES, MOST_NEXT = 300, 12, 6, 50
_SHOWN_NEXT = 10
_NUMERAL = re.compile(r"[+-]?[\d,.\s]*\d[\d,.]*(e[+-]?\d+)?%?", re.IGNORECASE)
_MEANINGS = {
    "low": "Most positives are labelled, and the classes overlap",
    "high": "Only the clear ones are labelled",
}


def make_view(
    account: Account, table: TableRecord, ranked: Sequence[RankedRow], run: RunRecord
) -> dict[str, Any]:
    """Return all that the page prints."""
    tested = checks.all_checks(account)
    verdict = checks.overall(tested, account)
    strong = any(item.level == "strong" for item in account.warnings)
    doubtful = strong or verdict["state"] == checks.AGAINST
    found = account.found
    return {
        "source": words.source_line(table, run.started),
        "headline": words.headline(found, doubtful=doubtful),
        "lead": words.lead(found),
        "warnings": words.warning_list(account),
        "count_line": drawn.draw_count(account),
        "sure": words.how_sure(found),
        "which": words.which_ones(found, ranked),
        "overall": verdict,
        "found": {
            **asdict(found),
            "interval": found.hidden_interval,
            "called": found.called_positive,
        },
        "ranked": _ranked(ranked),
        "checks": {check.key: check for check in tested},
        "belief": _belief(account),
        "decision": _decision(account),
        "drivers": _drivers(account),
        "next": _next(account),
        "table_": _table(table),
        "run": _run(run),
    }


def _ranked(rows: Sequence[RankedRow]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for row in rows for name in row.values))
    shown = names[:MOST_VALUES]
    return {
        "columns": [(clip(name, 40), _all_numbers(rows, name)) for name in shown],
        "has_id": any(row.id for row in rows),
        "rows": [
            {
                "rank": row.rank,
                "row": row.row,
                "id": clip(row.id, 40) if row.id else None,
                "probability": row.probability,
                "gap": row.gap,
                "values": [clip(row.values.get(name, ""), 60) for name in shown],
            }
            for row in rows
        ],
    }


def _belief(account: Account) -> dict[str, Any]:
    found, scar, curve = account.found, account.scar, account.labelling
    held_out = account.held_out
    others = [
        {
            **asdict(other),
            "method": clip(other.method, 40),
            "overlap": checks.overlap(other),
            "error": clip(other.error, 300) if other.error else None,
        }
        for other in account.others
    ]
    called = found.called_positive
    for other in account.others:  # as the comparison counts, on its rows
        if other.both is not None and other.only_here is not None:
            called = other.both + other.only_here
    return {
        "scar": {
            "p": None if scar is None else words.p_words(scar.p_value),
            "statistic": None if scar is None else scar.statistic,
            "resamples": None if scar is None else scar.n_resamples,
            "rows": None if scar is None else scar.n_rows,
        },
        "labelling": drawn.draw_labelling(account),
        "labelling_bins": [] if curve is None else [asdict(b) for b in curve.bins],
        "rank_correlation": None if curve is None else curve.rank_correlation,
        "recall": drawn.draw_recall(account),
        "recall_ends": None if held_out is None else held_out.recall_interval,
        "calibration_error": None if held_out is None else held_out.error,
        "worlds": [_world(account, name) for name in _MEANINGS],
        "others": others,
        "compared": account.n_compared,
        "called": called,
        "most": max([called, *(other.hidden or 0 for other in account.others), 1]),
    }


def _world(account: Account, name: str) -> dict[str, Any]:
    """Return how many are hidden in a possible world, and what that would mean."""
    hidden: float = getattr(account.worlds, name)
    positives = hidden + account.found.labelled
    return {
        "meaning": _MEANINGS[name],
        "hidden": hidden,
        "share": positives / account.found.rows,
        "labelled": account.found.labelled / positives,
    }


def _decision(account: Account) -> dict[str, Any]:
    boundary, weights, histogram = account.boundary, account.weights, account.histogram
    held_out, edges = account.held_out, histogram.edges
    return {
        "zones": [boundary.n_negative, boundary.n_undecided, boundary.n_positive],
        "undecided_share": account.undecided_share,
        "boundary": boundary.value,
        "rule": boundary.rule,
        "spread": boundary.spread,
        "fallback": clip(boundary.fallback, 300) if boundary.fallback else None,
        "gaps": drawn.draw_gaps(account),
        "bars": list(
            zip(
                edges[:-1],
                edges[1:],
                histogram.unlabelled,
                histogram.labelled,
                strict=True,
            )
        ),
        "reliability": drawn.draw_reliability(account),
        "reliability_bins": []
        if held_out is None
        else [asdict(b) for b in held_out.bins],
        "reweighted": weights.reweighted,
        "effective": weights.effective_sample_size,
        "weighted": weights.n_weighted,
        "largest": weights.largest,
        "residual": weights.kkt_residual,
        "converged": weights.converged,
    }


def _drivers(account: Account) -> dict[str, Any]:
    found = account.drivers
    if found is None:
        return {"columns": []}
    rows = zip(found.columns, found.importance, found.spread, strict=True)
    columns = [
        {"column": clip(name, 60), "importance": float(mean), "spread": float(spread)}
        for name, mean, spread in rows
    ]
    most = max(float(value) for value in found.importance)
    return {
        "scored_by": found.scored_by,
        "score": found.score,
        "n_rows": found.n_rows,
        "columns": columns[:MOST_DRIVERS],
        "rest": len(columns[MOST_DRIVERS:]) + found.n_left_out,
        "most": most if most > 0.0 else 1.0,
    }


def _next(account: Account) -> dict[str, Any]:
    rows = [
        {**asdict(row), "id": clip(row.id, 40) if row.id else None}
        for row in account.next[:MOST_NEXT]
    ]
    return {
        "first": rows[:_SHOWN_NEXT],
        "more": rows[_SHOWN_NEXT:],
        "has_id": any(row["id"] for row in rows),
    }


def _table(table: TableRecord) -> dict[str, Any]:
    columns = [
        {
            "name": clip(item["name"], 60),
            "use": clip(item["use"], 20),
            "why": clip(item["why"] or "", 160),
            "missing": item["n_missing"],
            "distinct": item["n_distinct"],
            "example": clip(item["example"] or "", 60),
        }
        for item in table.columns
    ]
    uses = Counter(item["use"] for item in columns)
    left_out = [item for item in columns if item["use"] == "left out"]
    return {
        "name": clip(table.name, 80),
        "rows": table.rows,
        "sha256": table.sha256,
        "sentence": clip(table.sentence, 600),
        "id": clip(table.id, 60) if table.id else None,
        "notes": [clip(note, 300) for note in table.notes],
        "columns": columns[:MOST_COLUMNS],
        "n_columns": len(columns),
        "uses": list(uses.items()),
        "left_out": left_out[:MOST_COLUMNS],
        "n_left_out": len(left_out),
    }


def _run(run: RunRecord) -> dict[str, Any]:
    return {
        "version": run.probgap,
        "started": None if run.started is None else words.moment(run.started),
        "command": clip(run.command, 2000) if run.command else None,
        "seed": run.seed,
        "settings": _flat(run.settings),
        "versions": _flat(run.versions),
        "timings": run.timings,
        "total": sum(run.timings.values()) if run.timings else None,
        "pipeline": run.pipeline[:20_000],
        "files": run.files,
    }


def _flat(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return settings as names and values, one line each."""
    shown = {
        name: value if isinstance(value, str) else json.dumps(value, default=str)
        for name, value in settings.items()
    }
    return [(clip(name, 60), clip(value, 300)) for name, value in shown.items()]


def _all_numbers(rows: Sequence[RankedRow], name: str) -> bool:
    """Tell whether a column reads as numbers, which line up on the right."""
    cells = [row.values.get(name, "").strip() for row in rows]
    return all(_NUMERAL.fullmatch(cell) for cell in cells if cell)
