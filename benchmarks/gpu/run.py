"""Measure exact kernels on a GPU: kernel mean matching, and the whole fit.

    PYTHONPATH=src python3 benchmarks/gpu/run.py                                    # all parts
    PYTHONPATH=src python3 benchmarks/gpu/run.py --parts kmm fit --sizes 10000 30000
    PYTHONPATH=src python3 benchmarks/gpu/run.py --out benchmarks/gpu/h200.jsonl --only-summary

Parts: "kmm" (matching at the default tolerance, and at a hundredth of it), "fit" (the paper's
algorithm: Platt-scaled SVM and its five folds, kernel mean matching, weighted SVM), "cpu"
(scikit-learn's SVC and the processor's matching, and whether both sides give the same answer).

Rows have 20 features and a curved border between overlapping classes; labels are hidden by the
inverse rate (0.2, 1) of the true gap. The boundary is the 2% quantile: the mean of the three
smallest gaps leaves hardly a negative. Seconds are wall-clock, after one small fit that loads
libraries. A case that fails says so in its row.
"""

import sys
import time
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import harness
import numpy as np
import pandas as pd
import tables
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap._core.kernel_svm import solve_svms
from probgap._core.kernels import scale_gamma
from probgap.boundary import Quantile
from probgap.datasets import hide_labels
from probgap.reweight import kernel_mean_matching

N_TEST, N_FEATURES = 50_000, 20
SIZES, CPU_SIZES = (10_000, 30_000, 100_000), (5000, 10_000)


def hidden(n):
    X, y, gap = tables.curved(n, N_FEATURES, 0)
    return X, hide_labels(X, y, gap, ("inverse", 0.2, 1.0), random_state=1)


def biased(n):
    """Draw n samples that lack many of those near the border, and as many of all."""
    X, _, gap = tables.curved(3 * n, N_FEATURES, 0)
    rng = np.random.default_rng(7)
    clear = rng.random(3 * n) < 0.2 + 0.8 * np.abs(gap)
    return X[clear][:n], X[:n]


def wall(task):
    started = time.perf_counter()
    result = task()
    return time.perf_counter() - started, result


def measure_kmm(device, n):
    for tol in (1e-4, 1e-6):
        match = partial(kernel_mean_matching, *biased(n), tol=tol, device=device)
        seconds, result = wall(match)
        yield {
            "part": f"kmm tol {tol:g}",
            "n": n,
            "seconds": seconds,
            "kkt": result.kkt_residual,
            "duality_gap": result.duality_gap,
            "steps": result.n_iter,
            "converged": result.converged,
        }


def measure_fit(device, n):
    X, s = hidden(n)
    model = PGPUClassifier.paper(boundary=Quantile(), random_state=0, device=device)
    seconds, _ = wall(lambda: model.fit(X, s))
    X_test, y_test, _ = tables.curved(N_TEST, N_FEATURES, 99)
    yield {
        "part": "fit",
        "n": n,
        "seconds": seconds,
        "kkt": model.kmm_.kkt_residual,
        "duality_gap": model.estimator_.duality_gap_,
        "steps": model.estimator_.n_iter_,
        "converged": model.estimator_.converged_ and model.kmm_.converged,
        "accuracy": model.score(X_test, y_test),
    }


def measure_cpu(device, n):
    """Yield the same on the processor, and how far the answers are apart."""
    X, s = hidden(n)
    labelled, gamma = s == 1, scale_gamma(X)
    svc = SVC(gamma=gamma, cache_size=2000)
    seconds, _ = wall(lambda: svc.fit(X, labelled))
    solved = solve_svms(X, labelled, np.ones((n, 1)), gamma=gamma, device=device)
    decision, ours = svc.decision_function(X), solved.decision[:, 0]
    away = np.abs(decision) > 1e-3
    match = partial(kernel_mean_matching, *biased(n))
    seconds_kmm, here = wall(match)
    there = match(device=device)
    yield {
        "part": "SVC and matching on the processor",
        "n": n,
        "seconds": seconds + seconds_kmm,
        "kkt": here.kkt_residual,
        "duality_gap": here.duality_gap,
        "objective_difference": there.objective - here.objective,
        "decisions_agree": ((decision > 0) == (ours > 0))[away].mean(),
    }


PARTS = {"kmm": measure_kmm, "fit": measure_fit, "cpu": measure_cpu}


def measure_cell(cell, _):
    """Return the rows of a part at one size, or why there are none."""
    try:
        rows = list(PARTS[cell["asked"]](cell["device"], cell["size"]))
    except Exception as error:  # noqa: BLE001 (the other cases are to run)
        rows = [{"failed": f"{type(error).__name__}: {error}"}]
    # Numbers of torch and numpy become Python's.
    return [pd.Series(row, dtype=object).map(plain).to_dict() for row in rows]


def plain(value):
    return value.item() if hasattr(value, "item") else value


def summarise(rows):
    table = pd.DataFrame(rows)
    names = ["part", "n", "seconds", "kkt", "duality_gap", "steps", "converged"]
    shown = [name for name in (*names, "accuracy", "failed") if name in table]
    formats = dict.fromkeys(("kkt", "duality_gap"), ".1e")
    harness.show(table[shown].fillna(""), 2, **formats)


def main():
    parser = harness.parser(__doc__, out="gpu")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    options = harness.parse(parser)
    if options.quick:
        options.parts, options.sizes = ["kmm", "fit"], (1000,)
    if options.only_summary:
        summarise(harness.read_rows(options.out))
        return
    list(measure_fit(options.device, 1500))  # loads libraries
    cells = [
        {"asked": part, "size": n, "device": options.device}
        for part in options.parts
        for n in (CPU_SIZES if part == "cpu" else options.sizes)
    ]
    rows = harness.run_cells(cells, measure_cell, options)
    summarise([row.dropna().to_dict() for _, row in rows.iterrows()])


if __name__ == "__main__":
    main()
