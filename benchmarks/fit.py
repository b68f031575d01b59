"""Measure the fit: CPU seconds and memory, from 1,500 rows to a million; predictions; checks.

    python benchmarks/fit.py --large      # 1,500 x 10 to 1,000,000 x 20
    python benchmarks/fit.py --predict    # a million predictions, and the model file
    python benchmarks/fit.py --checks     # what the checks of a report cost beside the fit
    python benchmarks/fit.py              # all of them

Rows have a curved border between overlapping classes; labels are hidden by the inverse rate
(0.2, 1) of the true gap; accuracy is on true labels of 50,000 other rows. One thread. Every fit
of --large runs in a process of its own, whose peak memory is that of the fit and of the data.
Checks are those of a report on Gaussian clusters of which 40% of the positives are labelled.
"""

from __future__ import annotations

import tempfile
import tracemalloc
from pathlib import Path

import harness
import numpy as np
import pandas as pd
import tables
from sklearn.datasets import make_classification

from probgap import PGPUClassifier, report
from probgap.datasets import hide_labels
from probgap.io import save

N_TEST = 50_000
LARGE = ((1500, 10), (10_000, 20), (100_000, 20), (1_000_000, 20))
CHECKED = ((1500, 10), (5700, 20), (100_000, 20))
PREDICTED = 1_000_000


def draw(n, d):
    """Draw rows, observed labels, and other rows with true labels."""
    X, y, gap = tables.curved(n + N_TEST, d, 0)
    s = hide_labels(X[:n], y[:n], gap[:n], ("inverse", 0.2, 1.0), random_state=0)
    return X[:n], s, (X[n:], y[n:])


def fit_once(n, d):
    X, s, test = draw(n, d)
    with harness.quietly():
        seconds, model = harness.cpu_seconds(PGPUClassifier(random_state=0).fit, X, s)
    return {"rows": n, "columns": d, "CPU s": seconds, "accuracy": model.score(*test)}


def measure_large(sizes):
    runs = [harness.alone(fit_once, n, d) for n, d in sizes]
    lines = [row | {"peak GB": peak} for row, peak in runs]
    harness.show(pd.DataFrame(lines), 2, "Fits", accuracy=".4f")


def predict_by(n_fitted, n, d=20):
    """Predict n rows by a model of so many, and return what it takes, on disk as well."""
    X, s, _ = draw(n_fitted, d)
    model = PGPUClassifier(random_state=0).fit(X, s)
    rows = np.random.default_rng(1).normal(size=(n, d))
    spent, _ = harness.cpu_seconds(model.predict, rows)
    tracemalloc.start()
    model.predict(rows[: n // 10])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.probgap")
        save(model, path)
        size = path.stat().st_size
    return {
        "rows of the model": n_fitted,
        "rows predicted": n,
        "CPU s": spent,
        "rows/s": round(n / spent),
        "MB beside the samples": peak / 1e6,
        "model file, MB": size / 1e6,
    }


def check_once(n, d):
    """Return CPU seconds of a fit and of all checks of its report."""
    X, y = make_classification(
        n,
        d,
        n_informative=d // 2,
        n_redundant=0,
        class_sep=1.5,
        weights=[0.7],
        flip_y=0.02,
        random_state=0,
    )
    s = (y == 1) & (np.random.default_rng(0).random(n) < 0.4)
    fit, model = harness.cpu_seconds(PGPUClassifier(random_state=0).fit, X, s)
    checks, _ = harness.cpu_seconds(lambda: report(model, X, s, random_state=0))
    return {
        "rows": n,
        "columns": d,
        "fit": fit,
        "checks": checks,
        "ratio": checks / fit,
    }


def main():
    parser = harness.parser(__doc__)
    for name in ("large", "predict", "checks"):
        parser.add_argument(f"--{name}", action="store_true")
    options = harness.parse(parser)
    every = not (options.large or options.predict or options.checks)
    last = 1 if options.quick else None
    if options.large or every:
        measure_large(LARGE[:last])
    with harness.quietly():
        if options.predict or every:
            n = 100_000 if options.quick else PREDICTED
            lines = [predict_by(size, n) for size in (10_000, 100_000)[:last]]
            harness.show(pd.DataFrame(lines), 1, "Predictions")
        if options.checks or every:
            check_once(300, 6)  # loads libraries
            lines = [check_once(*size) for size in CHECKED[:last]]
            harness.show(pd.DataFrame(lines), 2, "Checks, CPU seconds")


if __name__ == "__main__":
    main()
