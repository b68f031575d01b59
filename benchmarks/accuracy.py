"""Measure recovered share and the worst cell, with defaults, on the paper's labellings.

The protocol of the paper: the true gap is estimated from true labels by a support vector
machine with Platt scaling; positives are hidden by each of its 17 mislabelled rates; 75% of
the samples are for training, and accuracy is against the true labels of the rest.

    python benchmarks/accuracy.py                          # all three data sets
    python benchmarks/accuracy.py --data triangles --seeds 2 --every 4

Recovered share is (method - naive) / (clean - naive), from accuracies averaged over seeds,
then averaged over the labellings where clean - naive is at least half a point. The pooled
share takes the mean over all labellings first. With --gap posterior the square is labelled
by its true posterior.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import probgap
from probgap import PGPUClassifier
from probgap.boundary import BoundaryWarning
from probgap.datasets import (
    hide_labels,
    make_square,
    make_triangles,
    platt_gap,
)
from probgap.exceptions import UnreliableFitWarning
from probgap.metrics import recovered_share

DATA = ("triangles", "square", "breast_cancer")
NAIVE, CLEAN = "naive SVM", "clean SVM, C=1"
# The 17 labellings of the paper's synthetic experiments.
RATES = [
    *(("inverse", a, b) for a in (0.1, 0.2, 0.3) for b in (0.5, 1.0, 1.5)),
    *(("linear", a) for a in (0.2, 0.4, 0.6, 0.8, 1.0)),
    *(("constant", a) for a in (0.1, 0.2, 0.3)),
]
WORTH_MEASURING = 0.005  # clean - naive below half a point says nothing


def draw(name, gap_by, seed):
    """Draw samples, true labels and the true gap."""
    rng = np.random.default_rng(seed)
    if name == "breast_cancer":
        X, benign = load_breast_cancer(return_X_y=True)
        y, posterior = 1 - benign, None
    else:
        make = make_triangles if name == "triangles" else make_square
        X, y, posterior = make(2000, random_state=rng)
    if gap_by == "posterior" and posterior is not None:
        return X, y, 2.0 * posterior - 1.0, rng
    return X, y, platt_gap(StandardScaler().fit_transform(X), y, random_state=rng), rng


def run(name, gap_by, seed, rates):
    """Give one row for each rate: the accuracy of each method."""
    X, y, gap, rng = draw(name, gap_by, seed)
    train, test = train_test_split(
        np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(X[train])
    X = scaler.transform(X)
    clean = {
        f"clean SVM, C={C:g}": SVC(C=C).fit(X[train], y[train]).score(X[test], y[test])
        for C in (1.0, 10.0)
    }
    rows = []
    for rate in rates:
        s = hide_labels(X, y, gap, rate, random_state=rng)[train]
        row = {"data": name, "labelling": str(rate), "seed": seed, **clean}
        for method, model in (
            (NAIVE, SVC()),
            ("PGPUClassifier()", PGPUClassifier(random_state=seed)),
            ("PGPUClassifier.paper()", PGPUClassifier.paper(random_state=seed)),
        ):
            started = time.process_time()
            with warnings.catch_warnings():
                # To the letter the boundary is often unusable, and says so each time.
                warnings.simplefilter("ignore", BoundaryWarning)
                warnings.simplefilter("ignore", UnreliableFitWarning)
                row[method] = model.fit(X[train], s).score(X[test], y[test])
            row[f"seconds of {method}"] = time.process_time() - started
        rows.append(row)
    return rows


def average_cells(rows, name):
    """Average each labelling of a data set over its seeds."""
    mine = [row for row in rows if row["data"] == name]
    numbers = [key for key in mine[0] if key not in ("data", "labelling", "seed")]
    cells = {}
    for labelling in dict.fromkeys(row["labelling"] for row in mine):
        of_cell = [row for row in mine if row["labelling"] == labelling]
        cells[labelling] = {k: np.mean([row[k] for row in of_cell]) for k in numbers}
    return cells


def mean_share(cells, method):
    """Average the recovered share over the labellings where it says something."""
    shares = [
        recovered_share(cell[method], cell[NAIVE], cell[CLEAN])
        for cell in cells.values()
        if cell[CLEAN] - cell[NAIVE] >= WORTH_MEASURING
    ]
    return float(np.mean(shares)) if shares else float("nan")


def summarise(rows, name):
    """Print one line for each method."""
    cells = average_cells(rows, name)
    overall = {
        key: np.mean([cell[key] for cell in cells.values()])
        for key in next(iter(cells.values()))
    }
    n_seeds = len({row["seed"] for row in rows})
    print(f"\n{name}: {len(cells)} labellings, {n_seeds} seeds")
    print(
        f"{'':26}{'accuracy':>9}{'share':>8}{'pooled':>8}{'worst cell':>12}{'CPU s':>8}"
    )
    methods = [key for key in overall if not key.startswith("seconds")]
    for m in sorted(methods, key=overall.get):
        pooled = recovered_share(overall[m], overall[NAIVE], overall[CLEAN])
        worst = min(100 * (cell[m] - cell[NAIVE]) for cell in cells.values())
        seconds = overall.get(f"seconds of {m}", float("nan"))
        print(
            f"{m:26}{overall[m]:9.2%}{mean_share(cells, m):8.2f}{pooled:8.2f}"
            f"{worst:+12.2f}{seconds:8.2f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--gap", default="platt", choices=("platt", "posterior"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="each n-th labelling only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write the rows here")
    options = parser.parse_args()
    started = time.perf_counter()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    results = Parallel(options.jobs)(
        delayed(run)(name, options.gap, seed, RATES[:: options.every])
        for name in options.data
        for seed in seeds
    )
    rows = [row for result in results for row in result]
    for name in options.data:
        summarise(rows, name)
    print(
        f"\nworst cell: points above (+) or below (-) the naive SVM in the labelling where "
        f"the method does worst.\nprobgap {probgap.__version__}, scikit-learn "
        f"{sklearn.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, Python "
        f"{platform.python_version()}; {time.perf_counter() - started:.0f} s."
    )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
