"""Reports of fits, as ``probgap.report`` would return them, without fitting anything."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pandas as pd

from probgap.reading import read
from probgap.reporting import Report
from probgap.reporting._evidence import headline
from probgap.reporting._rows import expect_positives

COLUMNS = [
    "radius",
    "texture",
    "perimeter",
    "smoothness",
    "concavity",
    "symmetry",
    "clinic",
    "notes",
]
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
SAG = (0.24, 0.28, 0.22, 0.19, 0.14, 0.11, 0.2, 0.16)
OTHER = dict.fromkeys(
    ["method", "hidden", "agreement", "both", "only_here", "only_there"]
)
OTHER |= dict.fromkeys(["overlap", "lee_liu", "recall", "share_positive", "error"])


def change(report, parts, ranked=None, cells=None):
    """Return a report with other parts of its tree, named as in "found.hidden"."""
    tree = copy.deepcopy(report.tree)
    for name, value in parts.items():
        *path, last = name.split(".")
        part = tree
        for key in path:
            part = part[key]
        part[last] = value
    tree["found"]["headline"] = headline(tree["found"])
    ranked = report.ranked if ranked is None else ranked
    return Report(tree, ranked, None, report._cells if cells is None else cells)


def warn(level, what, do="", code=""):
    return {"level": level, "code": code, "what": what, "do": do}


def other(method="m", **numbers):
    return OTHER | {"method": method} | numbers


def looked(*columns, levels, kept=()):
    """Who was looked at, by columns of some levels."""
    rates = np.linspace(1.0, 0.01, len(levels))
    groups = [
        {
            "column": name,
            "level": level,
            "rows": 40,
            "labelled": k % 4,
            "rate": rate,
            "rate_low": rate / 2,
            "rate_high": min(1.0, rate + 0.1),
            "hidden": 20.5 - 15.0 * rate,
            "hidden_low": 1.0,
            "hidden_high": 30.0,
        }
        for name in columns
        for k, (level, rate) in enumerate(zip(levels, rates.tolist(), strict=True))
    ]
    return {"columns": columns, "kept": kept, "groups": groups, "evidence": 30.0}


def typical():
    """Everything is there, and nothing is wrong."""
    text = Path(__file__).with_name("typical.json").read_text(encoding="utf-8")
    return Report(json.loads(text), None, None)


def doubtful():
    """Twelve labels: warnings, and much that could not be computed."""
    report = typical()
    error = "SVC needs two classes in every fold."
    few = warn("strong", "Only 12 positives are labelled.", "Label 20 more.", "few")
    held_out = {"calibration_error": 0.1, "recall": 0.58, "n_labelled": 12}
    held_out |= {"recall_interval": [0.32, 0.81], "roc_auc": 0.7}
    parts = {
        "found.labelled": 12,
        "found.unlabelled": 557,
        "found.hidden": 143.6,
        "found.hidden_interval": [31.0, 402.0],
        "found.called_positive": 131,
        "found.share_positive": 0.273,
        "belief.scar": None,
        "belief.labelling": None,
        "belief.held_out": held_out,
        "decision.reliability": [],
        "belief.scenarios.low": 60.0,
        "belief.scenarios.high": 300.0,
        "belief.others": [other("naive SVM", error=error)],
        "boundary.fallback": "the rule gave -1.00, so the 5% quantile was taken",
        "decision.weights.reweighted": False,
        "drivers": None,
        "next": [],
        "warnings": [warn("mild", "Three columns are almost empty."), few],
        "ranked": [row | {"id": None} for row in report.tree["ranked"]],
        "table.id": None,
    }
    return change(report, parts)


def unfit():
    """The assumption is violated, and the data do not settle the count."""
    report = typical()
    falling = [
        each | {"frequency": f, "fit": 0.2, "low": max(f - 0.08, 0.0), "high": f + 0.09}
        for each, f in zip(report.tree["belief"]["labelling"]["bins"], SAG, strict=True)
    ]
    curve = {"bins": falling, "rises": False, "rank_correlation": -0.2, "p_value": 0.9}
    parts = {
        "belief.labelling": curve,
        "belief.scar.verdict": "unclear",
        "belief.scenarios.low": 30.0,
        "belief.scenarios.high": 190.0,
        "found.hidden_interval": [9.0, 240.0],
        "warnings": [warn("strong", "Two scenarios fit.", "Use the ranking.")],
        "looked": looked("clinic", "year", levels=["A", "B", "C"], kept=["year"]),
    }
    return change(report, parts)


def lively(n_unlabelled=449, cells=None):
    """A page with all its rows, of which the first cells may be given."""
    rng = np.random.default_rng(1)
    positive = np.arange(n_unlabelled + 120) < 120 + n_unlabelled // 5
    scores = rng.normal(4.0 * positive - 2.0)
    labelled = np.arange(scores.size) < 120
    estimate = read(scores, labelled)
    ranked = np.sort(estimate.hidden_probability(scores[~labelled]))[::-1]
    likely = estimate.probability_range(ranked, unlabelled=True)
    ranking = pd.DataFrame(
        {
            "row": 1 + rng.permutation(n_unlabelled),
            "id": [f"P-{place:04d}" for place in range(n_unlabelled)],
            "probability": ranked,
            "probability_low": likely.low,
            "probability_high": likely.high,
            "gap": np.linspace(0.9, -0.95, n_unlabelled),
            "rank": range(1, n_unlabelled + 1),
        }
    )
    values = pd.DataFrame(
        {name: rng.gamma(9.0, 2.0, n_unlabelled).round(2) for name in COLUMNS[:6]}
        | {
            "clinic": rng.choice(["Leeds", "Dundee", "York"], n_unlabelled),
            "notes": [f"note {place % 97}" for place in range(n_unlabelled)],
        }
    )
    for name, given in (cells or {}).items():
        values[name] = values.get(name, pd.Series([""] * n_unlabelled)).astype(object)
        values.loc[: len(given) - 1, name] = given
    parts = {
        "found.rows": scores.size,
        "found.unlabelled": n_unlabelled,
        "found.hidden": estimate.n_hidden,
        "found.hidden_interval": list(estimate.n_hidden_interval),
        "expected": expect_positives(estimate, ranked),
    }
    return change(typical(), parts, ranking, values)


def lively_hostile():
    """All rows of a page, with cells made to break out of it."""
    formulas = ["=1+1", "-1.5", "+x", "@y", 'a "b", c', "\u202eevil", "\tt"]
    tags = [EVIL, "</script><script>alert(5)</script>", "<!--<script>", "\ud800"]
    cells = {"radius": tags, "=cmd|' /C calc'!A0": formulas}
    cells["</script><script>alert(6)</script>"] = ["x" * 10_000, "\u2028", "]]>"]
    return lively(60, cells)


def hostile():
    """Cells made to break a page: markup, formulas, walls of text, bidi, 2000 columns."""
    report = typical()
    names = [EVIL, "\u202eevil\u202c", "=cmd|' /C calc'!A0", "😀" * 40]
    names += ["שלום עולם", "a\x00b"]
    cells = [EVIL, "x" * 10_000, "=1+1", "🧪", "مرحبا", "\ud800"]
    values = dict(zip(names, cells, strict=True))
    ids = dict.fromkeys(range(20), '"><b onmouseover=alert(3)>')
    ids |= {1: "Z\u0301" + "\u0301" * 400, 2: "x" * 10_000}
    column, *_ = report.tree["table"]["columns"]
    columns = [
        column | {"name": f"{name} {k}", "use": "left out" if k % 3 else "number"}
        for k in range(334)
        for name in names
    ]
    loss = [
        {"column": names[k % 6], "importance": 1e9 / (k + 1), "spread": 1e308}
        for k in range(2000)
    ]
    tree = report.tree
    counts = tree["decision"]["histogram"]["unlabelled"]
    parts = {
        "found.hidden": 2e9,
        "found.hidden_interval": [0.0, 4e9],
        "decision.histogram.unlabelled": [*counts[:3], 10**12, *counts[4:]],
        "drivers.columns": loss,
        "belief.others": [other(EVIL, error=EVIL), *tree["belief"]["others"][1:]],
        "warnings": [warn("strong", EVIL, "{{ 7 * 7 }}")],
        "looked": looked(
            *names[:4],
            levels=[f"{name} {k}" for k in range(30) for name in [*names, "{best}"]],
        ),
        "table.name": EVIL,
        "table.label": "</title><script>alert(4)</script>",
        "table.sentence": f"Reading {EVIL} as labelled.",
        "table.notes": [EVIL, "\u2066note"],
        "table.columns": columns,
        "ranked": [
            row | {"id": ids[place], "values": values}
            for place, row in enumerate(tree["ranked"])
        ],
        "run.command": f"probgap fit '{EVIL}'",
        "run.settings": {EVIL: [EVIL]},
        "run.started": EVIL,
        "run.pipeline": EVIL * 2000,
    }
    return change(report, parts)


REPORTS = {
    each.__name__: each
    for each in (typical, doubtful, unfit, hostile, lively, lively_hostile)
}
