"""Summarise rows as plain data, from which pages and figures are made."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from probgap.exceptions import InvalidInputError
from research.paper.printed import (
    CLEAN,
    LINE,
    NAIVE,
    OURS,
    OWN,
    PAPER_METHODS,
    PLAIN,
    RIVALS,
    Facts,
    Frame,
    count_lines,
    describe_print,
    name_line,
    order_methods,
    read_printed,
)
from research.paper.variants import BOUNDARY_TABLE, VARIANTS, compare_variants

FIGURE_TABLE = "figure1"
_JOB = ["table", "data", "labelling", "method", "seed"]
_BOUNDARY_METHODS = ("PGPU", OURS)
_GRID = (-0.9, -0.6)  # the boundaries that PGPUcv tries
# With less than this between clean and naive, in points, the ratio is noise.
_SMALLEST_COST = 0.5
_LEAST_COVERAGE = 0.5
_DECIMALS = 9


def summarise(rows: Sequence[Mapping[str, Any]]) -> Facts:
    """Compute everything that the report shows: numbers and names, not formatted."""
    every = read_jobs(rows)
    jobs = every[~every["table"].isin(VARIANTS)]
    cells = make_cells(jobs)
    present = cells[cells["n"].notna()]
    blocks = [_compare_block(block) for _, block in cells.groupby("place")]
    shown = cells[cells["block"].isin(present["block"])]
    gaining = {m for b in blocks for side in ("run", "paper") for m in b[side]["gains"]}
    lines = lines_of(present).drop(columns=CLEAN, errors="ignore")
    return {
        "run": _describe_run(every, present),
        "ours": OURS,
        "share_methods": order_methods(gaining - {NAIVE}),
        "blocks": blocks,
        "verdicts": _count_verdicts(blocks),
        "tables": [_lay_out(table) for _, table in shown.groupby("table", sort=False)],
        "statistics": _test(lines.round(_DECIMALS).dropna(how="all")),
        "panels": _read_panels(jobs[(jobs["table"] == FIGURE_TABLE) & jobs["ok"]]),
        "boundaries": _compare_boundaries(jobs),
        "extremes": _find_extremes(jobs),
        "printed": describe_print(),
        "lines": {
            side: count_lines(lines_of(cells, column))
            for side, column in (("run", "mean"), ("paper", "paper_mean"))
        },
        "variants": compare_variants(every[every["table"] != FIGURE_TABLE]),
        "differences": _compare_with_print(shown[shown["difference"].notna()]),
    }


def _compare_block(cells: Frame) -> Facts:
    """Compare the methods on one data set of one table, here and in print."""
    run, paper = _gains(lines_of(cells)), _gains(lines_of(cells, "paper_mean"))
    gains, rival = run["gains"], _best(run["gains"], RIVALS)
    first = cells.iloc[0]
    return {
        "label": first["block"],
        "known": bool(first["known"]),
        "present": bool(cells["n"].notna().any()),
        "run": run,
        "paper": paper,
        "rival": rival,
        "paper_rival": _best(paper["gains"], RIVALS),
        "ahead": _is_ahead(gains, OURS, rival),
        "ahead_plain": _is_ahead(gains, PLAIN, rival),
    }


def _is_ahead(gains: Mapping[str, float], method: str, rival: Any) -> bool | None:
    """Return whether a method is ahead of the best of the paper; None if unknown."""
    if method not in gains:
        return None
    return round(gains[method] - gains[rival], _DECIMALS) > 0.0


def _gains(lines: Frame) -> Facts:
    """Return the gain of each method over the naive SVM, given accuracies in percent.

    Only lines with a naive and a clean SVM count, and with ours if there are any.
    ``share`` is the mean recovered share of lines where missing labels cost at least
    half a point, ``points`` the mean gain, and ``gains`` the one of the two that is
    used.
    """
    if OURS in lines:
        lines = lines.dropna(subset=OURS)
    lines = lines.reindex(columns=lines.columns.union([NAIVE, CLEAN], sort=False))
    lines = lines.dropna(subset=[NAIVE, CLEAN])
    cost = lines[CLEAN] - lines[NAIVE]
    costly = cost.round(6) >= _SMALLEST_COST
    points = lines.sub(lines[NAIVE], axis="index").drop(columns=CLEAN)
    shares = points.div(cost, axis="index")[costly]
    share, point = (part.mean().dropna().to_dict() for part in (shares, points))
    gains = share if costly.any() else point
    naive, clean = (
        float(lines[m].mean()) if len(lines) else None for m in (NAIVE, CLEAN)
    )
    return {
        "share": share,
        "points": point,
        "labellings": len(lines),
        "qualifying": int(costly.sum()),
        "measure": ("share" if costly.any() else "points") if len(lines) else None,
        "naive": naive,
        "clean": clean,
        "gains": gains,
        "best": _best(gains, gains),
    }


def _count_verdicts(blocks: list[Facts]) -> Facts:
    """Count the paper's blocks in which ours is ahead, and which method is best."""
    known = [block for block in blocks if block["known"]]
    ahead, plain = ([b[name] for b in known] for name in ("ahead", "ahead_plain"))
    rivals = [(b["rival"], b["paper_rival"]) for b in known if b["rival"]]
    return {
        "blocks": len(known),
        "ahead": ahead.count(True),
        "compared": len(known) - ahead.count(None),
        "ahead_plain": plain.count(True),
        "compared_plain": len(known) - plain.count(None),
        "behind": [block["label"] for block in known if block["ahead"] is False],
        "rivals": len(rivals),
        "same_rival": sum(here == printed for here, printed in rivals),
        "own_here": sum(here in OWN for here, _ in rivals),
        "own_printed": sum(printed in OWN for _, printed in rivals),
    }


def _lay_out(cells: Frame) -> Facts:
    """Lay out a table of the run beside the printed one."""
    methods = order_methods(cells["method"])
    ran = set(cells["method"][cells["n"].notna()])
    counts = cells["n"][cells["n"] > 0]
    return {
        "number": cells["table"].iloc[0],
        "data_sets": list(cells["data"].unique()),
        "methods": methods,
        "groups": [
            {
                "data": data,
                "lines": [
                    {"label": line, "cells": _records(part, methods)}
                    for line, part in group.groupby("line")
                ],
            }
            for data, group in cells.groupby("data", sort=False)
        ],
        # The number of runs that most cells have, the greater of two as common.
        "runs": int(counts.mode().max()) if len(counts) else 0,
        "equal": counts.nunique() == 1,
        "marked": int(cells["differs"].sum()),
        "compared": int(cells["difference"].notna().sum()),
        "absent": order_methods({*methods, OURS} - ran),
    }


def _records(cells: Frame, methods: list[str]) -> list[Facts]:
    """Return a line as a list of cells, with None for what is unknown."""
    line = cells.set_index("method").reindex(methods).reset_index().astype(object)
    return line.where(line.notna(), None).to_dict("records")


def _compare_with_print(cells: Frame) -> Facts:
    """Count the cells that differ from the printed ones, in total and by block."""
    marked = cells[cells["differs"]]
    columns = {
        "difference": ("difference", "mean"),
        "marked": ("differs", "sum"),
        "compared": ("differs", "size"),
    }
    return {
        "methods": list(PAPER_METHODS),
        "blocks": [
            {
                "label": label,
                "cells": group.groupby("method").agg(**columns).T.to_dict(),
            }
            for label, group in cells.groupby("block", sort=False)
        ],
        "compared": len(cells),
        "marked": len(marked),
        "higher": int((marked["difference"] > 0).sum()),
    }


def _test(lines: Frame) -> Facts:
    """Rank the methods over labellings, and test ours against each other one."""
    # A method that ran on few labellings does not shrink the ranking of the others.
    ranked = lines[lines.columns[lines.notna().mean() >= _LEAST_COVERAGE]].dropna()
    pairs = [
        _compare_pair(other, (lines[OURS] - lines[other]).dropna().round(_DECIMALS))
        for other in lines
        if OURS in lines and other != OURS
    ]
    pairs = [pair for pair in pairs if pair["settings"]]
    # Holm's step-down method, which scipy does not have.
    adjusted = 0.0
    for place, pair in enumerate(sorted(pairs, key=lambda pair: pair["p"])):
        adjusted = max(adjusted, min(1.0, (len(pairs) - place) * pair["p"]))
        pair["p_holm"] = adjusted
    return {
        "ranks": ranked.rank(axis="columns", ascending=False).mean().dropna().to_dict(),
        "ranked": len(ranked),
        "pairs": pairs,
        "settings": len(lines),
        "data_sets": lines.index.get_level_values("data").nunique(),
    }


def _compare_pair(other: str, gains: Frame) -> Facts:
    """Compare ours with another method, given its gains by line."""
    by_block = gains.groupby(level=LINE[:2]).mean()
    return {
        "method": other,
        "settings": len(gains),
        "median": float(gains.median()),
        "wins": int((gains > 0).sum()),
        "ties": int((gains == 0).sum()),
        "losses": int((gains < 0).sum()),
        "p": float(stats.wilcoxon(gains[gains != 0]).pvalue) if gains.any() else 1.0,
        "blocks": len(by_block),
        "block_wins": int((by_block > 0).sum()),
    }


def _compare_boundaries(jobs: Frame) -> list[Facts]:
    """Compare estimated and true boundaries, by data set and method."""
    found = jobs[jobs["ok"] & jobs["method"].isin(_BOUNDARY_METHODS)]
    found = found.dropna(subset=["boundary", "true_boundary"])
    points = found.groupby([*LINE, "method"], as_index=False).agg(
        true=("true_boundary", "mean"),
        estimated=("boundary", "mean"),
        runs=("boundary", "size"),
    )
    points["error"] = points["estimated"] - points["true"]
    return [
        {
            "data": data,
            "method": method,
            "true": group["true"].tolist(),
            "estimated": group["estimated"].tolist(),
            "runs": int(group["runs"].sum()),
            "bias": float(group["error"].mean()),
            "error": float(group["error"].abs().mean()),
        }
        for (data, method), group in points.groupby(["data", "method"], sort=False)
    ]


def _find_extremes(jobs: Frame) -> Facts:
    """Return PGPU's highest boundary, and which true ones PGPUcv's grid does not hold."""
    found = jobs[jobs["ok"] & (jobs["method"] == "PGPU")]["boundary"].dropna()
    true = jobs.dropna(subset="true_boundary").groupby("line")["true_boundary"].first()
    return {
        "boundaries": len(found),
        "highest": float(found.max()) if len(found) else None,
        "labellings": len(true),
        "outside": int((~true.round(_DECIMALS).between(*_GRID)).sum()),
    }


def _read_panels(jobs: Frame) -> Facts | None:
    """Return the points of Figure 1 from their row; None if they are incomplete."""
    names = ("x1", "x2", "true", "observed", "relabelled")
    try:
        job = jobs.iloc[0]
        points = np.array([job["details"]["panels"][n] for n in names], np.float64)
    except (IndexError, KeyError, TypeError, ValueError):
        return None
    if points.ndim != 2 or not points.size or not np.isfinite(points).all():
        return None
    panels = dict(zip(names, points, strict=True))
    true, new = panels["true"], panels["relabelled"]
    return panels | {
        **job[["data", "labelling"]],
        "samples": new.size,
        "positive": int(np.sum(true == 1)),
        "labelled": int(np.sum(panels["observed"] == 1)),
        "decided": int(np.sum(new >= 0)),
        "right": int(np.sum((new >= 0) & (new == true))),
        "left_out": int(np.sum(new < 0)),
    }


def _describe_run(jobs: Frame, cells: Frame) -> Facts:
    """Describe the run: its size, duration, versions, settings and warnings."""
    failed = jobs[~jobs["ok"]]
    return {
        "jobs": len(jobs),
        "errors": list(zip(failed["name"], failed["error"], strict=True)),
        "settings": len(cells[LINE].drop_duplicates()),
        "data_sets": cells["data"].nunique(),
        "methods": cells["method"][cells["n"] > 0].nunique(),
        "splits": jobs["seed"][jobs["table"] != FIGURE_TABLE].nunique(),
        "profiles": sorted(jobs["profile"].unique()),
        "seconds": float(jobs["seconds"].sum()),
        "versions": _distinct(jobs["versions"]),
        "machines": _distinct(jobs["machine"]),
        "made_by": _distinct(jobs["made_by"]),
        "settings_used": _by_method(
            (job.method, _settings(job.method, job.parameters))
            for job in jobs.itertuples()
        ),
        # Without their numbers, which differ from job to job.
        "warnings": _by_method(
            (job.method, text)
            for job in jobs.itertuples()
            for text in {re.sub(r"\d+(\.\d+)?", "…", said) for said in job.warnings}
        ),
    }


def _distinct(records: Iterable[Facts]) -> list[tuple[int, Facts]]:
    """Return the different records, the most frequent first, each with its count."""
    texts = [json.dumps(record, sort_keys=True) for record in records if record]
    ordered = sorted(Counter(texts).items(), key=lambda item: (-item[1], item[0]))
    return [(n, json.loads(text)) for text, n in ordered]


def _by_method(texts: Iterable[tuple[str, str]]) -> list[tuple[str, int, str]]:
    """Count the jobs of each method that have a text, in the order of the tables."""
    counts = Counter((method, text) for method, text in texts if text)
    order = order_methods(method for method, _ in counts)
    ordered = sorted(counts, key=lambda k: (order.index(k[0]), -counts[k], k[1]))
    return [(method, counts[method, text], text) for method, text in ordered]


def _settings(method: str, parameters: Mapping[str, Any]) -> str:
    """Return the settings of a job as text; ours does not use the shared SVM."""
    unused = ("svm",) if method == OURS else ()
    used = {k: v for k, v in parameters.items() if v is not None and k not in unused}
    return json.dumps(used, sort_keys=True)[1:-1].replace('"', "")


def _best(values: Mapping[str, float], methods: Iterable[str]) -> str | None:
    """Return the best of the methods; the earlier column of two that are equal."""
    found = [method for method in methods if method in values]
    return max(found, key=lambda method: values[method], default=None)


def read_jobs(rows: Sequence[Mapping[str, Any]]) -> Frame:
    """Return one row for each job: the last success, or else the last failure."""
    if not rows:
        msg = "rows must hold at least one row. Got none."
        raise InvalidInputError(msg)
    jobs = pd.DataFrame([_read_job(row) for row in rows])
    jobs = jobs.sort_values(["ok", "finished", "accuracy"])
    return jobs.drop_duplicates(_JOB, keep="last").sort_values(_JOB, ignore_index=True)


def make_cells(jobs: Frame) -> Frame:
    """Return mean accuracies over splits, in percent, beside the printed ones.

    Every cell that was run or printed is a row, in the order of the paper. ``n`` is the
    number of splits: missing if the method was not run, 0 if all its jobs failed.
    """
    scored = jobs[~jobs["table"].isin([FIGURE_TABLE, BOUNDARY_TABLE])]
    run = scored.groupby([*LINE, "method"])["accuracy"]
    run = run.agg(mean="mean", sd="std", n="count").reset_index()
    printed = read_printed()
    cells = run.merge(printed, how="outer", on=[*LINE, "method"])
    names = {}
    for table, data, line in printed[LINE].itertuples(index=False):
        long = f"Table {table} ({data}, {line.partition('(')[0]})"
        names[table, data] = long if table < "7" else data
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
    """Pivot a column of the cells: a row for each line, a column for each method."""
    known = cells.dropna(subset=column)
    lines = known.pivot(index=LINE, columns="method", values=column)
    return lines[order_methods(lines.columns)]


def _read_job(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row that the report uses, each of a known type."""
    details = row.get("details") or {}
    accuracy = 100.0 * _number(row.get("accuracy"))
    ended_well = row.get("status", "ok") == "ok"
    rate = str(row.get("rate") or row["labelling"])
    return {
        **{name: str(row[name]) for name in _JOB},
        "name": "/".join(str(row[name]) for name in _JOB),
        "line": name_line(rate, _number(row.get("alpha")), _number(row.get("beta"))),
        "ok": ended_well and (str(row["table"]) == FIGURE_TABLE or accuracy >= 0.0),
        "accuracy": accuracy if ended_well else math.nan,
        "error": str(row.get("error") or "no finite accuracy"),
        "seconds": np.nan_to_num(_number(row.get("seconds"))),
        "finished": str(row.get("finished") or ""),
        "profile": str(row.get("profile") or "full"),
        "parameters": row.get("parameters") or {},
        "versions": row.get("versions") or {},
        "machine": row.get("machine") or {},
        "made_by": {name: row[name] for name in ("commit", "command") if row.get(name)},
        "warnings": [str(text) for text in row.get("warnings") or []],
        "details": details,
        "boundary": _number(details.get("boundary")),
        "true_boundary": _number(details.get("true_boundary")),
    }


def _number(value: Any) -> float:
    """Return a finite number as a float, anything else as NaN."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and math.isfinite(value) else math.nan
