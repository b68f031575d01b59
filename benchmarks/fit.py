"""Measure the fit: CPU seconds and memory, from 1,500 rows to a million; and predictions.

    python benchmarks/fit.py --large      # 1,500 x 10 to 1,000,000 x 20
    python benchmarks/fit.py --predict    # a million predictions, and the model file
    python benchmarks/fit.py              # both

Rows have a curved border between overlapping classes; labels are hidden by the inverse rate
(0.2, 1) of the true gap; accuracy is on true labels of 50,000 other rows. One thread. Every fit
of --large runs in a process of its own, whose peak memory is that of the fit and of the data.
"""

import tempfile
from pathlib import Path

import harness
import numpy as np
import pandas as pd
import tables

from probgap import PGPUClassifier
from probgap.datasets import hide_labels
from probgap.io import save

N_TEST = 50_000
LARGE = ((1500, 10), (10_000, 20), (100_000, 20), (1_000_000, 20))
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


def predict_by(n_fitted, n, d=20):
    """Predict n rows by a model of so many, and return what it takes, on disk as well."""
    X, s, _ = draw(n_fitted, d)
    model = PGPUClassifier(random_state=0).fit(X, s)
    rows = np.random.default_rng(1).normal(size=(n, d))
    spent, _ = harness.cpu_seconds(model.predict, rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.probgap")
        save(model, path)
        size = path.stat().st_size
    return {
        "rows of the model": n_fitted,
        "rows predicted": n,
        "CPU s": spent,
        "rows/s": round(n / spent),
        "model file, MB": size / 1e6,
    }


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--large", action="store_true", help="fits alone")
    parser.add_argument("--predict", action="store_true", help="predictions alone")
    options = harness.parse(parser)
    last = 1 if options.quick else None
    if options.large or not options.predict:
        runs = [harness.alone(fit_once, *size) for size in LARGE[:last]]
        found = pd.DataFrame([row | {"peak GB": peak} for row, peak in runs])
        harness.show(found, 2, "Fits", accuracy=".4f")
    if options.predict or not options.large:
        n = 100_000 if options.quick else PREDICTED
        with harness.quietly():
            found = [predict_by(size, n) for size in (10_000, 100_000)[:last]]
        harness.show(pd.DataFrame(found), 1, "Predictions")


if __name__ == "__main__":
    main()
