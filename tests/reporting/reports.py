"""Reports of fits, as ``probgap.report`` would return them, without fitting anything."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd

from probgap.reading import read
from probgap.reporting import Report
from probgap.reporting._evidence import headline
from probgap.reporting._rows import AllRows, expect_positives

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
OTHER |= dict.fromkeys(["lee_liu", "recall", "share_positive", "error"])


def change(report, parts, rows=None):
    """Return a report with other parts of its tree, named as in "found.hidden"."""
    tree = copy.deepcopy(report.tree)
    for name, value in parts.items():
        *path, last = name.split(".")
        part = tree
        for key in path:
            part = part[key]
        part[last] = value
    tree["found"]["headline"] = headline(tree["found"])
    return Report(tree, None, None, report._all_rows if rows is None else rows)


def warn(level, what, do="", code=""):
    return {"level": level, "code": code, "what": what, "do": do}


def other(method="m", **numbers):
    return OTHER | {"method": method} | numbers


def typical():
    """Everything is there, and nothing is wrong."""
    rng = np.random.default_rng(0)
    edges = np.linspace(-1.0, 1.0, 41)
    unlabelled = np.concatenate(
        [rng.beta(1.0, 9.0, 340) * 1.5 - 1.0, rng.beta(4.0, 3.0, 109) * 1.4 - 0.7]
    )
    labelled = rng.beta(5.0, 2.0, 120) * 1.7 - 0.75
    counts = [np.histogram(gap, edges)[0].tolist() for gap in (unlabelled, labelled)]
    found = {"rows": 569, "labelled": 120, "unlabelled": 449, "hidden": 80.3}
    found |= {"hidden_interval": [55.0, 110.0], "level": 0.9, "share_positive": 0.352}
    found |= {"share_interval": [0.31, 0.40], "called_positive": 78}
    weights = {"reweighted": True, "effective_sample_size": 412.3, "n_weighted": 522}
    weights |= {"largest": 3.1, "kkt_residual": 1e-8, "converged": True}
    weights["bound"] = {"share_selected": 0.92, "share_left_out": 0.08}
    weights["bound"] |= {"risk_selected": 0.01}
    decision = {"n_negative": 364, "n_undecided": 47, "n_positive": 158}
    decision |= {"undecided_share": 47 / 569, "weights": weights}
    decision["histogram"] = {"edges": edges.tolist(), "unlabelled": counts[0]}
    decision["histogram"]["labelled"] = counts[1]
    decision["reliability"] = reliability()
    scar = {"statistic": 0.81, "p_value": 0.005, "n_resamples": 199, "n_rows": 569}
    held_out = {"calibration_error": 0.021, "recall": 0.93, "n_labelled": 120}
    held_out |= {"recall_interval": [0.87, 0.97], "roc_auc": 0.934}
    curve = {"bins": bins(), "rises": True, "rank_correlation": 0.96, "p_value": 0.001}
    tree = {
        "table": table(),
        "found": found | {"headline": headline(found)},
        "ranked": [ranked_row(rank, rng) for rank in range(1, 21)],
        "boundary": {"value": -0.41, "rule": "auto", "spread": 0.05, "fallback": None},
        "decision": decision,
        "belief": {
            "scar": scar | {"verdict": "biased"},
            "labelling": curve,
            "held_out": held_out,
            "scenarios": {"low": 71.0, "high": 92.0, "familiarity": 0.6},
            "others": others(),
            "n_compared": 284,
        },
        "drivers": drivers(),
        "next": [next_row(place, rng) for place in range(50)],
        "warnings": [],
        "run": run(),
    }
    return Report(tree, None, None)


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
    falling = [
        each | {"frequency": f, "fit": 0.2, "low": max(f - 0.08, 0.0), "high": f + 0.09}
        for each, f in zip(bins(), SAG, strict=True)
    ]
    curve = {"bins": falling, "rises": False, "rank_correlation": -0.2, "p_value": 0.9}
    parts = {
        "belief.labelling": curve,
        "belief.scar.verdict": "unclear",
        "belief.scenarios.low": 30.0,
        "belief.scenarios.high": 190.0,
        "found.hidden_interval": [9.0, 240.0],
        "warnings": [warn("strong", "Two scenarios fit.", "Use the ranking.")],
    }
    return change(typical(), parts)


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
    }
    rows = AllRows(ranking, values, expect_positives(estimate, ranked))
    return change(typical(), parts, rows)


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
    columns = [
        column(f"{name} {place}", "left out" if place % 3 else "number")
        for place in range(334)
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


def table():
    columns = [column(name, "number") for name in COLUMNS[:6]]
    columns += [column("clinic", "category", example="Leeds"), column("notes", "text")]
    columns += [column("malignant", "label"), column("patient", "id")]
    columns += [column("seen", "left out", "date", "2024-03-01")]
    columns += [column("country", "left out", "the same in every row", "UK")]
    return {
        "name": "tumours.csv",
        "path": "/data/tumours.csv",
        "rows": 569,
        "sha256": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
        "label": "malignant",
        "positive": "yes",
        "unlabelled": {"no": 446, "": 3},
        "sentence": "Reading 'yes' as labelled positive (120 rows), 'no' as unlabelled.",
        "id": "patient",
        "notes": ["Read as UTF-8, separated by semicolons."],
        "columns": columns,
        "files": None,
    }


def column(name, use, why="", example="17.99"):
    about = {"name": name, "use": use, "why": why, "example": example}
    return about | {"n_missing": 4, "n_distinct": 456}


def ranked_row(rank, rng):
    values = {name: f"{rng.gamma(9.0, 2.0):.2f}" for name in COLUMNS[:4]}
    values["clinic"] = "Leeds" if rank % 2 else "Dundee"
    row = {"rank": rank, "row": int(rng.integers(1, 570)), "values": values}
    row |= {"id": f"P-{rng.integers(1, 9999):04d}", "gap": 0.45 - 0.03 * rank}
    ends = [0.91 - 0.03 * rank, 0.99 - 0.01 * rank]
    return row | {"probability": 0.985 - 0.012 * rank, "interval": ends}


def next_row(place, rng):
    row = {"row": int(rng.integers(1, 570)), "id": f"P-{rng.integers(1, 9999):04d}"}
    row |= {"gap": -0.4 + 0.007 * place, "probability": 0.5 + 0.004 * place}
    return row | {"why": "near the boundary, unlike the others"}


def bins():
    frequencies = (0.0, 0.01, 0.03, 0.10, 0.22, 0.47, 0.66, 0.81)
    return [
        {
            "gap_low": -1.0 + 0.25 * place,
            "gap_high": -0.75 + 0.25 * place,
            "gap": -0.875 + 0.25 * place,
            "n": 71,
            "labelled": round(71 * frequency),
            "frequency": frequency,
            "low": max(frequency - 0.06, 0.0),
            "high": min(frequency + 0.08, 1.0),
            "fit": frequency,
        }
        for place, frequency in enumerate(frequencies)
    ]


def reliability():
    pairs = [(0.01, 0.0), (0.06, 0.04), (0.15, 0.19), (0.31, 0.28), (0.48, 0.52)]
    pairs += [(0.67, 0.64), (0.82, 0.86)]
    names = ("predicted", "observed", "n", "low", "high")
    rows = [(p, o, 81, max(o - 0.08, 0.0), min(o + 0.09, 1.0)) for p, o in pairs]
    return [dict(zip(names, row, strict=True)) for row in rows]


def others():
    names = [
        "hidden",
        "agreement",
        "both",
        "only_here",
        "only_there",
        "lee_liu",
        "recall",
    ]
    rows = {
        "naive": (12, 0.87, 10, 68, 2, 1.93, 0.71),
        "Elkan-Noto": (61, 0.95, 57, 21, 4, 2.41, 0.89),
        "Natarajan": (70, 0.96, 66, 12, 4, 2.44, 0.9),
        "Liu-Tao": (57, 0.94, 54, 24, 3, 2.38, 0.88),
        "PGPU, as in the paper": (149, 0.84, 78, 0, 71, 1.7, 0.97),
    }
    found = [
        other(method, **dict(zip(names, row, strict=True)))
        for method, row in rows.items()
    ]
    return [*found, other("PGPUcv", error="only 2 labelled rows in a fold")]


def drivers():
    losses = (0.081, 0.064, 0.033, 0.021, 0.012, 0.004, 0.002, -0.001)
    columns = [
        {"column": name, "importance": loss, "spread": 0.004}
        for name, loss in zip(COLUMNS, losses, strict=True)
    ]
    about = {"scored_by": "ROC AUC of held-out labelled rows against unlabelled ones"}
    about |= {"score": 0.934, "n_left_out": 0, "n_rows": 228}
    return about | {"columns": columns}


def run():
    return {
        "probgap": "0.1.0",
        "started": "2026-11-16T08:00:00Z",
        "command": "probgap fit tumours.csv --label malignant --id patient --out found",
        "seed": 0,
        "settings": {"jobs": 1, "drop": [], "positive": None},
        "versions": {"python": "3.11.7", "numpy": "2.4.6", "scikit-learn": "1.9.0"},
        "timings": {"read": 0.1, "fit": 2.8, "check": 14.2, "write": 0.9},
        "pipeline": "Pipeline(steps=[('columns', ColumnTransformer(...)),\n"
        "                ('classifier', PGPUClassifier(random_state=0))])",
        "files": ["model.skops", "scores.csv", "report.html", "run.json"],
        "engine": None,
    }
