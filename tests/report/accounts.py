"""Accounts of fits, as the commands would hand them over, without fitting anything."""

from __future__ import annotations

import numpy as np

COLUMNS = (
    "radius",
    "texture",
    "perimeter",
    "smoothness",
    "concavity",
    "symmetry",
    "clinic",
    "notes",
)


def typical():
    """Everything is there, and nothing is wrong."""
    rng = np.random.default_rng(0)
    edges = np.linspace(-1.0, 1.0, 41)
    unlabelled = np.concatenate(
        [rng.beta(1.0, 9.0, 340) * 1.5 - 1.0, rng.beta(4.0, 3.0, 109) * 1.4 - 0.7]
    )
    labelled = rng.beta(5.0, 2.0, 120) * 1.7 - 0.75
    return {
        "table": table(),
        "found": {
            "rows": 569,
            "labelled": 120,
            "unlabelled": 449,
            "hidden": 80.3,
            "hidden_interval": [55.0, 110.0],
            "level": 0.9,
            "share_positive": 0.352,
            "share_interval": [0.31, 0.40],
            "called_positive": 78,
        },
        "ranked": [ranked_row(rank, rng) for rank in range(1, 21)],
        "boundary": {
            "value": -0.41,
            "rule": "auto",
            "spread": 0.05,
            "separability": 0.8,
            "fallback": None,
        },
        "decision": {
            "n_negative": 364,
            "n_undecided": 47,
            "n_positive": 158,
            "undecided_share": 0.083,
            "histogram": {
                "edges": edges.tolist(),
                "unlabelled": np.histogram(unlabelled, edges)[0].tolist(),
                "labelled": np.histogram(labelled, edges)[0].tolist(),
            },
            "reliability": reliability(),
            "weights": {
                "reweighted": True,
                "effective_sample_size": 412.3,
                "n_weighted": 522,
                "largest": 3.1,
                "kkt_residual": 1e-8,
                "converged": True,
            },
        },
        "belief": {
            "scar": {
                "statistic": 0.12,
                "p_value": 0.005,
                "n_resamples": 199,
                "verdict": "biased",
            },
            "labelling": {"bins": bins(), "rises": True, "rank_correlation": 0.96},
            "held_out": {
                "recall": 0.93,
                "recall_interval": [0.87, 0.97],
                "n_labelled": 120,
                "calibration_error": 0.021,
            },
            "worlds": {"low": 71.0, "high": 92.0, "familiarity": 0.6},
            "others": others(),
        },
        "drivers": drivers(),
        "next": [next_row(place, rng) for place in range(50)],
        "warnings": [],
        "run": run(),
    }


def doubtful():
    """Twelve labels: warnings, and much that could not be computed."""
    account = typical()
    account["found"] |= {
        "labelled": 12,
        "unlabelled": 557,
        "hidden": 143.6,
        "hidden_interval": None,
        "share_interval": None,
        "called_positive": 131,
        "share_positive": 0.273,
    }
    account["belief"] = {
        "scar": None,
        "labelling": None,
        "held_out": {
            "recall": 0.58,
            "recall_interval": [0.32, 0.81],
            "n_labelled": 12,
            "calibration_error": None,
        },
        "worlds": None,
        "others": [
            {"method": "naive SVM", "error": "SVC needs two classes in every fold."}
        ],
    }
    fallback = "the rule gave -1.00, so the 5% quantile was taken"
    account["boundary"] |= {"fallback": fallback}
    account["decision"] |= {"reliability": [], "weights": {"reweighted": False}}
    account |= {"drivers": None, "next": []}
    account["table"]["id"] = None
    for row in account["ranked"]:
        row["id"] = None
    account["warnings"] = [
        {
            "level": "mild",
            "what": "Three columns are almost empty.",
            "do": "Leave them out with --drop if they mean nothing.",
        },
        {
            "level": "strong",
            "what": "Only 12 positives are labelled.",
            "do": "Label 20 more before you trust the count; the order of the list is "
            "worth more than the number.",
        },
    ]
    return account


def unfit():
    """The assumption is violated, and the data do not settle the count."""
    account = typical()
    for bin_, frequency in zip(
        account["belief"]["labelling"]["bins"], SAG, strict=True
    ):
        bin_ |= {"frequency": frequency, "fit": 0.2}
        bin_ |= {"low": max(frequency - 0.08, 0.0), "high": frequency + 0.09}
    account["belief"]["labelling"] |= {"rises": False, "rank_correlation": -0.2}
    account["belief"]["scar"] |= {"p_value": 0.07, "verdict": "unclear"}
    account["belief"]["worlds"] |= {"low": 30.0, "high": 190.0}
    account["found"]["hidden_interval"] = [9.0, 240.0]
    account["warnings"] = [
        {
            "level": "strong",
            "what": "Two worlds fit these data.",
            "do": "Trust the ranking, not the count.",
        }
    ]
    return account


SAG = (0.24, 0.28, 0.22, 0.19, 0.14, 0.11, 0.2, 0.16)
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def hostile():
    """Cells made to break a page: markup, formulas, walls of text, bidi, 2000 columns."""
    account = typical()
    names = [
        EVIL,
        "\u202eevil\u202c",
        "=cmd|' /C calc'!A0",
        "😀" * 40,
        "שלום עולם",
        "a\x00b",
    ]
    values = dict(
        zip(names, [EVIL, "x" * 10_000, "=1+1", "🧪", "مرحبا", "\ud800"], strict=True)
    )
    for row in account["ranked"]:
        row |= {"id": '"><b onmouseover=alert(3)>', "values": values}
    account["ranked"][1] |= {"id": "Z\u0301" + "\u0301" * 400, "probability": 1.0}
    account["ranked"][2] |= {"id": "x" * 10_000, "probability": float("nan")}
    account["table"] |= {
        "name": EVIL,
        "label": "</title><script>alert(4)</script>",
        "sentence": f"Took {EVIL} as labelled.",
        "notes": [EVIL, "\u2066note"],
        "columns": [
            column(f"{name} {place}", "left out" if place % 3 else "number")
            for place in range(334)
            for name in names
        ],
    }
    account["drivers"]["columns"] = [
        {"column": names[place % 6], "importance": 1e9 / (place + 1), "spread": 1e308}
        for place in range(2000)
    ]
    account["belief"]["others"][0] |= {"method": EVIL, "error": EVIL}
    account["decision"]["histogram"]["unlabelled"][3] = 1e12
    account["found"] |= {"hidden": 2e9, "hidden_interval": [0.0, 4e9]}
    account["warnings"] = [{"level": "strong", "what": EVIL, "do": "{{ 7 * 7 }}"}]
    account["run"] |= {"command": f"probgap fit '{EVIL}'", "settings": {EVIL: [EVIL]}}
    account["run"] |= {"started": EVIL, "pipeline": EVIL * 2000}
    return account


ACCOUNTS = {
    "typical": typical,
    "doubtful": doubtful,
    "unfit": unfit,
    "hostile": hostile,
}


def table():
    columns = [column(name, "number") for name in COLUMNS[:6]]
    columns += [column("clinic", "category", example="Leeds"), column("notes", "text")]
    columns += [column("malignant", "label"), column("patient", "id")]
    columns += [column("seen", "left out", "date", "2024-03-01")]
    columns += [column("country", "left out", "the same in every row", "UK")]
    return {
        "name": "tumours.csv",
        "rows": 569,
        "sha256": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
        "label": "malignant",
        "positive": "yes",
        "unlabelled": {"no": 446, "": 3},
        "sentence": "Reading 'yes' as labelled positive (120 rows), 'no', empty cells "
        "as unlabelled.",
        "id": "patient",
        "notes": ["Read as UTF-8, separated by semicolons."],
        "columns": columns,
    }


def column(name, use, why=None, example="17.99"):
    return {
        "name": name,
        "use": use,
        "why": why,
        "n_missing": 4,
        "n_distinct": 456,
        "example": example,
    }


def ranked_row(rank, rng):
    values = {name: f"{rng.gamma(9.0, 2.0):.2f}" for name in COLUMNS[:4]}
    return {
        "rank": rank,
        "row": int(rng.integers(1, 570)),
        "id": f"P-{rng.integers(1, 9999):04d}",
        "probability": 0.985 - 0.012 * rank,
        "gap": 0.45 - 0.03 * rank,
        "values": values | {"clinic": "Leeds" if rank % 2 else "Dundee"},
    }


def next_row(place, rng):
    return {
        "row": int(rng.integers(1, 570)),
        "id": f"P-{rng.integers(1, 9999):04d}",
        "gap": -0.4 + 0.007 * place,
        "probability": 0.5 + 0.004 * place,
        "why": "near the boundary, unlike the others",
    }


def bins():
    frequencies = (0.0, 0.01, 0.03, 0.10, 0.22, 0.47, 0.66, 0.81)
    fits = (0.0, 0.01, 0.03, 0.10, 0.22, 0.47, 0.66, 0.81)
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
            "fit": fit,
        }
        for place, (frequency, fit) in enumerate(zip(frequencies, fits, strict=True))
    ]


def reliability():
    pairs = [(0.01, 0.0), (0.06, 0.04), (0.15, 0.19), (0.31, 0.28), (0.48, 0.52)]
    pairs += [(0.67, 0.64), (0.82, 0.86)]
    return [
        {
            "predicted": predicted,
            "observed": observed,
            "n": 81,
            "low": max(observed - 0.08, 0.0),
            "high": min(observed + 0.09, 1.0),
        }
        for predicted, observed in pairs
    ]


def others():
    rows = [
        ("naive", 12, 0.87, 10, 68, 2, 0.71, 1.93),
        ("Elkan-Noto", 61, 0.95, 57, 21, 4, 0.89, 2.41),
        ("Natarajan", 70, 0.96, 66, 12, 4, 0.9, 2.44),
        ("Liu-Tao", 57, 0.94, 54, 24, 3, 0.88, 2.38),
        ("PGPU, as in the paper", 149, 0.84, 78, 0, 71, 0.97, 1.7),
    ]
    names = ("method", "hidden", "agreement", "both", "only_here", "only_there")
    names += ("recall", "lee_liu")
    found = [dict(zip(names, row, strict=True)) | {"error": None} for row in rows]
    return [*found, {"method": "PGPUcv", "error": "only 2 labelled rows in a fold"}]


def drivers():
    losses = (0.081, 0.064, 0.033, 0.021, 0.012, 0.004, 0.002, -0.001)
    return {
        "scored_by": "ROC AUC of held-out labelled rows against unlabelled ones",
        "score": 0.934,
        "columns": [
            {"column": name, "importance": loss, "spread": 0.004}
            for name, loss in zip(COLUMNS, losses, strict=True)
        ],
    }


def run():
    return {
        "probgap": "0.1.0",
        "started": "2026-11-16T08:00:00Z",
        "command": "probgap fit tumours.csv --label malignant --id patient --out found",
        "seed": 0,
        "settings": {"jobs": 1, "drop": [], "positive": None},
        "versions": {"python": "3.11.7", "numpy": "2.4.6", "scikit-learn": "1.9.0"},
        "timings": {"read": 0.1, "fit": 2.8, "examine": 14.2, "write": 0.9},
        "pipeline": "Pipeline(steps=[('columns', ColumnTransformer(...)),\n"
        "                ('classifier', PGPUClassifier(random_state=0))])",
        "files": [
            "model.skops",
            "scores.csv",
            "report.html",
            "run.json",
            "label_next.csv",
        ],
    }
