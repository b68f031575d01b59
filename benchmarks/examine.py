"""Measure what the checks of a fit cost beside the fit itself.

CPU seconds of ``PGPUClassifier(random_state=0).fit`` and of ``examine``, in one run, on
Gaussian clusters of which 40% of the positives are labelled.

    python benchmarks/examine.py                        # the three sizes that count
    python benchmarks/examine.py --sizes 1500x10 --parts
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from sklearn.datasets import make_classification

from probgap import PGPUClassifier, report

SIZES = ("1500x10", "5700x20", "100000x20")


def draw(n_rows, n_columns, seed=0):
    """Draw rows, and labels at random for 40% of the positives."""
    X, y = make_classification(
        n_rows,
        n_columns,
        n_informative=n_columns // 2,
        n_redundant=0,
        class_sep=1.5,
        weights=[0.7],
        flip_y=0.02,
        random_state=seed,
    )
    return X, (y == 1) & (np.random.default_rng(seed).random(n_rows) < 0.4)


def measure(n_rows, n_columns, *, parts=False):
    """Return CPU seconds of the fit and of all checks."""
    X, labelled = draw(n_rows, n_columns)
    start = time.process_time()
    model = PGPUClassifier(random_state=0).fit(X, labelled)
    fitted = last = time.process_time()
    name = ""

    def tell(_done, _total, what):
        nonlocal last, name
        now = time.process_time()
        if name and parts:
            print(f"    {name:20} {now - last:8.2f}")
        last, name = now, what

    found = report(model, X, labelled, random_state=0, progress=tell)
    checked = time.process_time()
    failed = [w["what"] for w in found.warnings if w["code"] == "not_run"]
    assert not failed, failed
    return fitted - start, checked - fitted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="ROWSxCOLUMNS")
    parser.add_argument("--parts", action="store_true", help="time of each check")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    measure(300, 5)  # imports
    print("rows    columns     fit   checks   checks/fit")
    for size in given.sizes:
        n_rows, n_columns = map(int, size.split("x"))
        fit, checks = measure(n_rows, n_columns, parts=given.parts)
        print(
            f"{n_rows:7} {n_columns:7} {fit:7.2f} {checks:8.2f} {checks / fit:12.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
