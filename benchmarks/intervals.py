"""Measure how often the interval for the number of hidden positives holds the truth.

Data and labellings are those of benchmarks/scar_test.py. The nominal level is 90%.

    python benchmarks/intervals.py                       # the numbers in the docstring
    python benchmarks/intervals.py --data square --draws 3 --resamples 5
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from joblib import Parallel, delayed
from scar_test import DATA, RATES, draw

from probgap import PGPUClassifier
from probgap.datasets import hide_labels
from probgap.diagnostics import boundary_stability
from probgap.exceptions import ProbgapWarning


def measure_once(name, rate, n_samples, n_resamples, seed):
    """Give the truth, the count, and the interval."""
    rng = np.random.default_rng(seed)
    X, y, gap = draw(name, n_samples, rng)
    labelled = hide_labels(X, y, gap, rate, random_state=rng) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbgapWarning)
        model = PGPUClassifier(random_state=seed).fit(X, labelled)
    found = boundary_stability(
        model, X, labelled, n_resamples=n_resamples, random_state=rng
    )
    return np.sum((y == 1) & ~labelled), found.count, *found.hidden_interval


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    print("data            labels                     covered   truth   count   width")
    for name in given.data:
        for label, rate in RATES.items():
            started = time.perf_counter()
            found = Parallel(n_jobs=given.jobs)(
                delayed(measure_once)(name, rate, given.samples, given.resamples, seed)
                for seed in range(given.draws)
            )
            truth, count, low, high = np.array(found).T
            covered = np.mean((low <= truth) & (truth <= high))
            print(
                f"{name:15} {label:26} {covered:7.0%} {truth.mean():7.1f}",
                f"{count.mean():7.1f} {(high - low).mean():7.1f}",
                f"  {(time.perf_counter() - started) / len(found):.1f} s each",
                flush=True,
            )


if __name__ == "__main__":
    main()
