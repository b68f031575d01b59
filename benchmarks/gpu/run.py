"""Measure exact kernels on a GPU: kernel mean matching, and the whole fit.

    PYTHONPATH=src python3 benchmarks/gpu/run.py                                    # all parts
    PYTHONPATH=src python3 benchmarks/gpu/run.py --parts kmm fit --sizes 10000 30000
    PYTHONPATH=src python3 benchmarks/gpu/run.py --parts fit --sizes 300000         # too large to keep
    PYTHONPATH=src python3 benchmarks/gpu/run.py --out benchmarks/gpu/h200.jsonl --only-summary

Parts: "kmm" (matching at the default tolerance, and at KKT residual 1e-4), "fit" (the paper's
algorithm: Platt-scaled SVM and its five folds, kernel mean matching, weighted SVM), "others" (the
fit on data of other kinds), "cpu" (scikit-learn's SVC and the processor's matching at 5,000 and
10,000 rows, and whether both sides give the same answer).

Rows have 20 features and a curved border between overlapping classes; labels are hidden by the
inverse rate (0.2, 1) of the true gap. The boundary is the 2% quantile: the mean of the three
smallest gaps leaves hardly a negative. Seconds are wall-clock, after one small fit that loads
libraries. A case that fails says so in its row.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import harness
import numpy as np
import pandas as pd
import tables
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC

import probgap.reweight._kmm as kmm
from probgap import PGPUClassifier
from probgap._core.kernels import median_gamma, scale_gamma
from probgap._device import estimators
from probgap._device.arrays import open_device
from probgap._device.svm import solve_svms
from probgap.boundary import Quantile
from probgap.datasets import hide_labels
from probgap.reweight import KMMResult, kernel_mean_matching

N_TEST, N_FEATURES = 50_000, 20
SIZES, CPU_SIZES, OTHERS_SIZE = (10_000, 30_000, 100_000), (5000, 10_000), 30_000


def curved(n, seed):
    return tables.curved(n, N_FEATURES, seed)


def clusters(n, seed):
    """Draw four clusters of each class in 30 dimensions; the gap is that of boosted trees."""
    X, y = make_classification(
        n, 30, n_informative=12, n_clusters_per_class=4, random_state=seed
    )
    model = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    return X, y, 2.0 * model.predict_proba(X)[:, 1] - 1.0


def rare(n, seed):
    X, y, gap = curved(n, seed)
    keep = (y == 0) | (np.random.default_rng(seed).random(n) < 0.05)
    return X[keep], y[keep], gap[keep]


def coarse(n, seed):
    """Draw few distinct values: many samples are copies of each other."""
    X, y, gap = curved(n, seed)
    return np.round(X[:, :4]), y, gap


def wide(n, seed):
    """Draw columns of very unlike scales."""
    X, y, gap = curved(n, seed)
    return X * np.logspace(-2, 2, N_FEATURES), y, gap


DRAWS = {f.__name__: f for f in (curved, clusters, rare, coarse, wide)}


def hidden(n, draw=curved):
    X, y, gap = draw(n, 0)
    return X, hide_labels(X, y, gap, ("inverse", 0.2, 1.0), random_state=1)


def biased(n):
    """Draw n samples that lack many of those near the border, and as many of all."""
    X, _, gap = curved(3 * n, 0)
    rng = np.random.default_rng(7)
    clear = rng.random(3 * n) < 0.2 + 0.8 * np.abs(gap)
    return X[clear][:n], X[:n]


@contextmanager
def stages():
    """Collect the time of each call of a solver inside a fit, and what it reports."""
    rows, before = [], (estimators.solve_svms, kmm.solve_on_device)

    def timed(function, *args, **kwargs):
        seconds, result = wall(lambda: function(*args, **kwargs))
        rows.append({"seconds": seconds} | describe(result))
        return result

    estimators.solve_svms, kmm.solve_on_device = (partial(timed, f) for f in before)
    try:
        yield rows
    finally:
        estimators.solve_svms, kmm.solve_on_device = before


def describe(result):
    row = {
        "kkt": float(np.max(result.kkt_residual)),
        "passes": result.n_passes,
        "bytes": result.bytes_moved,
    }
    if isinstance(result, KMMResult):
        return row | {"stage": "kmm", "n": int(result.weights.size)}
    n, svms = result.coef.shape
    gap = float(result.duality_gap.max())
    return row | {"stage": "gap" if svms > 1 else "final", "n": n, "duality_gap": gap}


def wall(task):
    started = time.perf_counter()
    result = task()
    return time.perf_counter() - started, result


def measure_kmm(device, n):
    for tol in (1e-2, 1e-4):
        match = partial(kernel_mean_matching, *biased(n), tol=tol, device=device)
        seconds, result = wall(match)
        yield {
            "part": f"kmm tol {tol:g}",
            "n": n,
            "seconds": seconds,
            "kkt": result.kkt_residual,
            "duality_gap": result.duality_gap,
            "converged": result.converged,
            "passes": result.n_passes,
            "bytes": result.bytes_moved,
        }


def measure_fit(device, n, name="curved"):
    X, s = hidden(n, DRAWS[name])
    model = PGPUClassifier.paper(boundary=Quantile(), random_state=0, device=device)
    with stages() as found:
        seconds, _ = wall(lambda: model.fit(X, s))
    # Other samples of the same kind, where the seed leaves the kind alone.
    X_test, y_test, _ = curved(N_TEST, 99) if name == "curved" else DRAWS[name](n, 0)
    yield {
        "part": "fit" if name == "curved" else f"others: {name}",
        "n": n,
        "seconds": seconds,
        "stages": found,
        "converged": model.estimator_.converged_ and model.kmm_.converged,
        "duality_gap": max(row.get("duality_gap", 0.0) for row in found),
        "kkt": model.kmm_.kkt_residual,
        "accuracy": model.score(X_test, y_test),
    }


def measure_others(device, n):
    for name in list(DRAWS)[1:]:
        yield from measure_fit(device, n, name)


def measure_cpu(device, n):
    """Yield the same on the processor, and how far the answers are apart."""
    X, s = hidden(n)
    labelled, gamma = s == 1, scale_gamma(X)
    svc = SVC(gamma=gamma, cache_size=2000)
    seconds_svc, _ = wall(lambda: svc.fit(X, labelled))
    opened = open_device(device)
    solved = solve_svms(opened, X, labelled, np.ones((n, 1)), gamma=gamma, tol=1e-4)
    decision, ours = svc.decision_function(X), solved.decision[:, 0]
    coef = svc.dual_coef_[0]
    inner = coef @ (decision[svc.support_] - svc.intercept_[0])
    dual = np.abs(coef).sum() - 0.5 * inner
    away = np.abs(decision) > 1e-3
    source, target = biased(n)
    match = partial(kernel_mean_matching, source, target, gamma=median_gamma(target))
    seconds_kmm, here = wall(match)
    # Classifiers and a width of one's own are taken as they are: exact kernels.
    model = PGPUClassifier.paper(
        boundary=Quantile(),
        gap_estimator__estimator=CalibratedClassifierCV(
            SVC(), method="sigmoid", ensemble=False
        ),
        estimator=SVC(),
        reweight__gamma=median_gamma(X),
        random_state=0,
    )
    seconds, _ = wall(lambda: model.fit(X, s))
    yield {
        "part": "cpu",
        "n": n,
        "seconds": seconds,
        "seconds_svc": seconds_svc,
        "seconds_kmm": seconds_kmm,
        "kkt": here.kkt_residual,
        "kmm_objective_difference": match(device=device).objective - here.objective,
        "dual_relative_difference": (solved.dual_objective[0] - dual) / abs(dual),
        "decisions_agree": ((decision > 0) == (ours > 0))[away].mean(),
        "largest_decision_difference": np.abs(decision - ours).max(),
    }


PARTS = {
    "kmm": measure_kmm,
    "fit": measure_fit,
    "others": measure_others,
    "cpu": measure_cpu,
}


def measure_cell(cell, _):
    """Return the rows of a part at one size, or why there are none."""
    started = time.perf_counter()
    try:
        rows = list(PARTS[cell["asked"]](cell["device"], cell["size"]))
    except Exception as error:  # noqa: BLE001 (the other cases are to run)
        failed = f"{type(error).__name__}: {error}"
        rows = [{"failed": failed, "after_s": time.perf_counter() - started}]
    # Numbers of torch and numpy become Python's.
    return [pd.Series(row, dtype=object).map(plain).to_dict() for row in rows]


def plain(value):
    return value.item() if hasattr(value, "item") else value


def summarise(rows):
    """Print a line for each part, and below it one for each of its stages."""
    lines = []
    for row in rows:
        if "seconds" not in row:
            print({k: row[k] for k in ("part", "asked", "size", "failed") if k in row})
            continue
        found = row.get("stages", [])
        name = row["part"]
        if "tol" in row and "tol" not in name:  # rows of older runs
            name += f" tol {row['tol']:g}"
        passes = row.get("passes") or sum(stage["passes"] for stage in found)
        line = {"part": name, "kkt": row.get("kkt_kmm"), "passes": passes}
        lines.append(row | {k: v for k, v in line.items() if v is not None})
        lines += [stage | {"part": f". {stage['stage']}"} for stage in found]
    table = pd.DataFrame(lines)
    table["TB/s"] = table["bytes"] / table["seconds"] / 1e12
    names = [
        "part",
        "n",
        "seconds",
        "kkt",
        "duality_gap",
        "passes",
        "TB/s",
        "converged",
    ]
    formats = dict.fromkeys(("kkt", "duality_gap"), ".1e")
    harness.show(table[names].fillna({"converged": ""}), 2, passes=".0f", **formats)


def main():
    parser = harness.parser(__doc__, out="gpu")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    options = harness.parse(parser)
    sizes = {"cpu": CPU_SIZES, "others": (OTHERS_SIZE,)}
    if options.quick:
        options.parts, options.sizes = ["kmm", "fit"], (1000,)
    if options.only_summary:
        summarise(harness.read_rows(options.out))
        return
    list(measure_fit(options.device, 1500))  # loads libraries
    cells = [
        {"asked": part, "size": n, "device": options.device}
        for part in options.parts
        for n in sizes.get(part, options.sizes)
    ]
    rows = harness.run_cells(cells, measure_cell, options)
    summarise([row.dropna().to_dict() for _, row in rows.iterrows()])


if __name__ == "__main__":
    main()
