"""Time the paper's search for a boundary, with its work shared and without.

    PROBGAP_DATA=folder python benchmarks/search.py                # shared, full size
    python benchmarks/search.py --data triangles --plain --share 0.3

Data are standardised, and labels hidden by the inverse rate (0.2, 1) of the gap that a
support vector machine with Platt scaling finds. "search" is PGPUClassifierCV.paper with
SVC(gamma="auto"), 31 boundaries by 5 folds; "plain" fits each candidate by itself; "single"
is PGPUClassifier.paper, "gap" its first step alone. CPU seconds on one thread, the best of
several rounds.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core.errors import ProbgapWarning
from probgap.datasets import hide_labels, load_benchmark, make_triangles, platt_gap
from probgap.gap import ObservedGapEstimator
from probgap.pgpu._cv import paper_grid
from probgap.pgpu._search import predict_with

SIZES = {
    "triangles": 1500,
    "image": 1565,
    "splice": 2243,
    "banana": 3975,
    "twonorm": 5550,
}


def draw(name, share):
    n = int(share * SIZES[name])
    if name == "triangles":
        X, y, _ = make_triangles(n, random_state=0)
    else:
        X, y = load_benchmark(name)
        rows = np.random.default_rng(0).permutation(len(X))[:n]
        X, y = X[rows], y[rows]
    X, y = StandardScaler().fit_transform(X), (y == y.max()).astype(int)
    s = hide_labels(X, y, platt_gap(X, y), ("inverse", 0.2, 1.0), random_state=0)
    return X, s


def search(X, s):
    PGPUClassifierCV.paper(estimator=SVC(gamma="auto"), random_state=0).fit(X, s)


def single(X, s):
    PGPUClassifier.paper(random_state=0).fit(X, s)


def gap(X, s):
    ObservedGapEstimator(method="in_sample", random_state=0).fit(X, s)


def plain(X, s):
    model = PGPUClassifierCV.paper(estimator=SVC(gamma="auto"))
    rng = np.random.default_rng(0)
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    for fold in splitter.split(X, s):
        train = fold[0]
        gaps = model._fit_gap(X[train], s[train] == 1, rng).observed_gap_
        for value in paper_grid():
            predict_with(model, value, gaps, X, s == 1, fold, rng)
    single(X, s)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--share", type=float, default=1.0, help="of the rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plain", action="store_true", help="the long way, too")
    arguments = parser.parse_args()
    tasks = [search, single, gap] + ([plain] if arguments.plain else [])
    print("data          n    d " + "".join(f"{t.__name__:>9s}" for t in tasks))
    for name in arguments.data:
        X, s = draw(name, arguments.share)
        seconds = dict.fromkeys(tasks, np.inf)
        for _ in range(arguments.rounds):
            for task in tasks:
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ProbgapWarning)
                    task(X, s)
                seconds[task] = min(seconds[task], time.process_time() - start)
        times = "".join(f"{seconds[task]:9.2f}" for task in tasks)
        print(f"{name:10s} {X.shape[0]:5d} {X.shape[1]:4d} {times}", flush=True)


if __name__ == "__main__":
    main()
