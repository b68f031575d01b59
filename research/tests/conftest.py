"""Rows that look like those of a full run, without running anything."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from research.paper.report import build_report
from research.paper.summary import summarise

INVERSE = [(a, b) for a in (0.1, 0.2, 0.3) for b in (0.5, 1.0)]
INVERSE_UCI = [(a, b) for a in (0.1, 0.2, 0.3) for b in (0.5, 1.0, 1.5)]
LINEAR = [(a, None) for a in (0.2, 0.4, 0.6, 0.8, 1.0)]
CONSTANT = [(a, None) for a in (0.1, 0.2, 0.3)]
TABLES = [
    ("1", "triangles", "inverse", INVERSE),
    ("2", "triangles", "linear", LINEAR),
    ("3", "triangles", "constant", CONSTANT),
    ("4", "square", "inverse", INVERSE),
    ("5", "square", "linear", LINEAR),
    ("6", "square", "constant", CONSTANT),
    *(
        ("7", data, "inverse", INVERSE_UCI)
        for data in ("splice", "banana", "twonorm", "image", "heart")
    ),
    ("8", "tcdb", "real", [(None, None)]),
]
# Accuracy of the naive and of the clean SVM, and the deviation over splits.
LEVELS = {
    "triangles": (0.975, 0.992, 0.005),
    "square": (0.965, 0.982, 0.006),
    "splice": (0.865, 0.900, 0.010),
    "banana": (0.870, 0.900, 0.009),
    "twonorm": (0.970, 0.974, 0.003),
    "image": (0.925, 0.955, 0.010),
    "heart": (0.800, 0.830, 0.040),
    "tcdb": (0.845, 0.905, 0.006),
}
SHARES = {
    "SVM": 0.0,
    "Elkan": 0.2,
    "Natarajan": -0.1,
    "Liu": 0.15,
    "PGPU": 0.1,
    "PGPUcv": 0.05,
    "clean": 1.0,
    "probgap": 0.75,
}


def labelling_name(rate, alpha, beta):
    if alpha is None:
        return rate
    return f"{rate}({alpha}, {beta})" if beta is not None else f"{rate}({alpha})"


def true_boundary(rate, alpha, beta):
    if alpha is None:
        return None
    return -1.0 / (1.0 + beta) if rate == "inverse" else -alpha


def make_row(table, data, rate, alpha, beta, method, seed, **changes):
    name = labelling_name(rate, alpha, beta)
    key = f"{table}/{data}/{name}/{method}/{seed}"
    rng = np.random.default_rng(zlib.crc32(key.encode()))
    naive, clean, spread = LEVELS.get(data, (0.9, 0.95, 0.01))
    share = SHARES.get(method, 0.3) + rng.normal(0.0, 0.1) * (method not in "SVM clean")
    accuracy = naive + share * (clean - naive) + rng.normal(0.0, spread)
    details = {"n_train": 1500, "n_labelled": 600}
    if method in ("PGPU", "PGPUcv", "probgap"):
        true = true_boundary(rate, alpha, beta)
        sunk = -0.97 if method == "PGPU" else 0.6 * (true or -0.5) - 0.2
        details |= {"boundary": sunk + rng.normal(0.0, 0.02), "true_boundary": true}
    row = {
        "key": key,
        "table": table,
        "data": data,
        "labelling": name,
        "rate": rate,
        "alpha": alpha,
        "beta": beta,
        "method": method,
        "parameters": {},
        "seed": seed,
        "accuracy": float(np.clip(accuracy, 0.0, 1.0)),
        "balanced_accuracy": 0.9,
        "f1": 0.9,
        "auc": 0.95,
        "seconds": 1.25,
        "status": "ok",
        "error": None,
        "details": details,
        "versions": {"probgap": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"},
        "machine": {"processor": "x86_64", "system": "Linux", "cpus": 2},
        "finished": f"2026-11-16T03:{seed:02d}:00Z",
        "profile": "full",
        "commit": "0a1b2c3",
        "command": "make reproduce",
    }
    return row | changes


def make_figure_row(n=600):
    rng = np.random.default_rng(0)
    x1, x2 = rng.uniform(-1.0, 1.0, size=(2, n)).round(4)
    posterior = np.clip(0.5 - 2.0 * (x1 - x2), 0.0, 1.0)
    true = (rng.random(n) < posterior).astype(int)
    gap = 2.0 * posterior - 1.0
    observed = true * (rng.random(n) > 0.6 * (1.0 - gap.clip(0.0)))
    seen = (0.4 + 0.6 * gap.clip(0.0)) * (gap + 1.0) - 1.0
    relabelled = np.where(seen > 0.0, 1, np.where(seen <= -0.62, 0, -1))
    panels = {"x1": x1, "x2": x2, "true": true}
    panels |= {"observed": observed, "relabelled": relabelled}
    details = {
        "panels": {name: values.tolist() for name, values in panels.items()},
        "gap": seen.round(4).tolist(),
        "boundary": -0.62,
        "true_boundary": -0.6,
    }
    row = make_row("figure1", "square", "linear", 0.6, None, "figure", 0)
    return row | {"accuracy": None, "details": details}


def make_rows(tables=TABLES, seeds=10, methods=tuple(SHARES)):
    rows = [
        make_row(table, data, rate, alpha, beta, method, seed)
        for table, data, rate, labellings in tables
        for alpha, beta in labellings
        for method in methods
        for seed in range(seeds)
        if (data, method) != ("heart", "PGPUcv")
    ]
    return [*rows, make_figure_row()]


@pytest.fixture(name="make_row")
def fixture_make_row():
    return make_row


@pytest.fixture(name="make_rows")
def fixture_make_rows():
    return make_rows


@pytest.fixture(scope="session")
def table_specs():
    return TABLES


@pytest.fixture(scope="session")
def full_rows():
    return make_rows()


@pytest.fixture(scope="session")
def full_summary(full_rows):
    return summarise(full_rows)


@pytest.fixture(scope="session")
def full_report(full_rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return build_report(full_rows, folder)


SMALL_TABLE = """
table = "small"
title = "A table that takes seconds"
splits = 2
test_share = 0.25

[svm]
C = 1.0
gamma = "auto"

[[block]]
data = ["triangles", "square"]
rates = [["inverse", 0.3, 0.5], ["constant", 0.3]]

[block.methods]
SVM = {}
Liu = {}
PGPU = { n_smallest = 3 }
PGPUcv = { boundaries = [-0.8, -0.6], cv = 2 }
clean = {}
"""


@pytest.fixture(scope="session")
def small_table():
    """A table of experiments that takes seconds, as TOML."""
    return SMALL_TABLE


@pytest.fixture
def small_spec(small_table, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(small_table)
    return path
