"""From rows to plain data, from which every page and figure is made."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from probgap._core.output import load
from probgap.reproduction._cells import (
    CLEAN,
    FIGURE_TABLE,
    LINE,
    NAIVE,
    OURS,
    PAPER_METHODS,
    PLAIN,
    RIVALS,
    Frame,
    lines_of,
    make_cells,
    order_methods,
    read_jobs,
)

_BOUNDARY_METHODS = ("PGPU", OURS)
_OWN = ("PGPU", "PGPUcv")
# A share is a ratio: with less than this between clean and naive, in points, it is noise.
_SMALLEST_COST = 0.5
_LEAST_COVERAGE = 0.5
_DECIMALS = 9

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
    >>> round(summarise(rows)["blocks"][0]["run"]["share"]["probgap"], 3)
    0.667
    """
    jobs = read_jobs(rows)
    cells = make_cells(jobs)
    present = cells[cells["n"].notna()]
    blocks = [_compare_block(block) for _, block in cells.groupby("place")]
    shown = cells[cells["block"].isin(present["block"])]
    gaining = {m for b in blocks for side in ("run", "paper") for m in b[side]["gains"]}
    lines = lines_of(present).drop(columns=CLEAN, errors="ignore")
    return {
        "run": _describe_run(jobs, present) | {"command": command},
        "ours": OURS,
        "share_methods": order_methods(gaining - {NAIVE}),
        "blocks": blocks,
        "verdicts": _count_verdicts(blocks),
        "tables": [_lay_out(table) for _, table in shown.groupby("table", sort=False)],
        "statistics": _test(lines.round(_DECIMALS).dropna(how="all")),
        "panels": _read_panels(jobs[(jobs["table"] == FIGURE_TABLE) & jobs["ok"]]),
        "boundaries": _compare_boundaries(jobs),
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
        # Whether each is ahead of all methods of the paper; None if that is unknown.
        **{
            name: round(gains[method] - gains[rival], _DECIMALS) > 0.0
            if method in gains
            else None
            for name, method in (("ahead", OURS), ("ahead_plain", PLAIN))
        },
    }


def _gains(lines: Frame) -> Facts:
    """Return what each method gains on the naive SVM, given accuracies in percent.

    Only lines with a naive and a clean SVM count, and with ours where there are any.
    ``share`` is the mean of the lines' recovered shares where labels cost at least half
    a point, ``points`` the mean gain, and ``gains`` the one of them to go by.
    """
    if OURS in lines:
        lines = lines.dropna(subset=OURS)
    lines = lines.reindex(columns=lines.columns.union([NAIVE, CLEAN], sort=False))
    lines = lines.dropna(subset=[NAIVE, CLEAN])
    cost = lines[CLEAN] - lines[NAIVE]
    costly = cost.round(6) >= _SMALLEST_COST
    points = lines.sub(lines[NAIVE], axis="index").drop(columns=CLEAN)
    shares = points.div(cost, axis="index")[costly]
    found = {
        "share": shares.mean().dropna().to_dict(),
        "points": points.mean().dropna().to_dict(),
    }
    measure = "share" if costly.any() else "points"
    return found | {
        "labellings": len(lines),
        "qualifying": int(costly.sum()),
        "measure": measure if len(lines) else None,
        "naive": _value(lines[NAIVE].mean()),
        "clean": _value(lines[CLEAN].mean()),
        "gains": found[measure],
        "best": _best(found[measure], found[measure]),
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
        "own_here": sum(here in _OWN for here, _ in rivals),
        "own_printed": sum(printed in _OWN for _, printed in rivals),
    }


def _lay_out(cells: Frame) -> Facts:
    """Set a table of the run beside the printed one."""
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
    """Return a line as a list of cells; None stands for what is not known."""
    line = cells.set_index("method").reindex(methods).reset_index()
    is_missing = load("pandas").isna
    return [
        {name: None if is_missing(value) else value for name, value in cell.items()}
        for cell in line.to_dict("records")
    ]


def _compare_with_print(cells: Frame) -> Facts:
    """Count the cells that differ from the print, in all and by block and method."""
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
    """Set the estimated boundary beside the true one, by data set and method."""
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


def _read_panels(jobs: Frame) -> Facts | None:
    """Take the points of Figure 1 out of their row; None where they are incomplete."""
    if jobs.empty:
        return None
    job = jobs.iloc[0]
    names = ("x1", "x2", "true", "observed", "relabelled")
    try:
        points = np.array([job["details"]["panels"][n] for n in names], np.float64)
    except (KeyError, TypeError, ValueError):
        return None
    if points.ndim != 2 or not points.size or not np.isfinite(points).all():
        return None
    panels = dict(zip(names, points, strict=True))
    true, new = panels["true"], panels["relabelled"]
    return panels | {
        "data": job["data"],
        "labelling": job["labelling"],
        "samples": new.size,
        "positive": int(np.sum(true == 1)),
        "labelled": int(np.sum(panels["observed"] == 1)),
        "decided": int(np.sum(new >= 0)),
        "right": int(np.sum((new >= 0) & (new == true))),
        "left_out": int(np.sum(new < 0)),
    }


def _describe_run(jobs: Frame, cells: Frame) -> Facts:
    """Return what was run, by what, on what, and for how long."""
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
    """Return the settings of a job as text; ours has a final classifier of its own."""
    unused = ("svm",) if method == OURS else ()
    used = {k: v for k, v in parameters.items() if v is not None and k not in unused}
    return json.dumps(used, sort_keys=True)[1:-1].replace('"', "")


def _best(values: Mapping[str, float], methods: Iterable[str]) -> str | None:
    """Return the best of the methods; the earlier column of two that are equal."""
    found = [method for method in methods if method in values]
    return max(found, key=lambda method: values[method], default=None)


def _value(number: float) -> float | None:
    return None if np.isnan(number) else float(number)
