"""Measure exact kernels on a GPU: kernel mean matching, the whole fit, and bandwidth.

    PYTHONPATH=src python3 benchmarks/gpu/run.py --out DIR                  # all parts
    PYTHONPATH=src python3 benchmarks/gpu/run.py --out DIR --parts kmm,fit --sizes 10000,30000
    PYTHONPATH=src python3 benchmarks/gpu/run.py --out DIR --device cpu --parts kmm,fit --sizes 2000

Parts: "bandwidth" (what the device copies, and what products with a kernel reach of it),
"kmm" (at KKT residual 1e-4, and at the default tolerance), "fit" (the paper's algorithm:
Platt-scaled SVM and its five folds, kernel mean matching, weighted SVM), "free"
(the same fit at --free-size rows, where the kernel does not fit into memory), "cpu"
(scikit-learn's SVC and the processor's kernel mean matching at 5,000 and 10,000 rows, and
whether both sides give the same answer), "default" (PGPUClassifier() with the device and
without: its gap is estimated on the processor either way), "others" (the fit on
data of other kinds, at the second of --sizes).

Data: benchmarks/fit.py's "curved", 20 features, a curved border between overlapping classes,
half of the samples positive; labels hidden by the inverse rate (0.2, 1) of the true gap. The
boundary is the 2% quantile, as there: the mean of the three smallest gaps leaves hardly a
negative. Seconds are wall-clock, after one small fit that loads libraries. Rows are written to
DIR/gpu.jsonl as they come; a case that takes longer than --limit is given up and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC

import probgap.reweight._kmm as kmm
from probgap import PGPUClassifier
from probgap._core.kernels import median_gamma, scale_gamma
from probgap._device import estimators
from probgap._device.arrays import open_device
from probgap._device.kernel import DeviceKernel, Points, add_product
from probgap._device.plan import plan_memory
from probgap._device.svm import solve_svms
from probgap.boundary import Quantile
from probgap.datasets import hide_labels
from probgap.reweight import KMMResult, kernel_mean_matching

N_TEST = 50_000
N_FEATURES = 20
PARTS = ("bandwidth", "kmm", "fit", "default", "others", "cpu", "free")


def curved(n, seed):
    """Draw samples with a curved border between overlapping classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES))
    score = X[:, 0] + 0.7 * X[:, 1] ** 2 - 0.7 + 0.5 * X[:, 2] * X[:, 3]
    posterior = expit(3.0 * score)
    y = (rng.random(n) < posterior).astype(int)
    return X, y, 2.0 * posterior - 1.0


def clusters(n, seed):
    """Draw four clusters of each class in 30 dimensions, which overlap."""
    return with_gap(
        *make_classification(
            n, 30, n_informative=12, n_clusters_per_class=4, random_state=seed
        )
    )


def rare(n, seed):
    """Draw a class of one sample in twenty."""
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


def with_gap(X, y):
    """Take the gap by a model that knows the truth."""
    model = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    return X, y, 2.0 * model.predict_proba(X)[:, 1] - 1.0


def hidden(n, seed=0, draw=curved):
    X, y, gap = draw(n, seed)
    s = hide_labels(X, y, gap, ("inverse", 0.2, 1.0), random_state=seed + 1)
    return X, s


def biased(n, seed=0):
    """Draw n samples that lack many of those near the border, and as many of all."""
    X, _, gap = curved(3 * n, seed)
    rng = np.random.default_rng(seed + 7)
    clear = rng.random(3 * n) < 0.2 + 0.8 * np.abs(gap)
    return X[clear][:n], X[:n]


class Stages:
    """Time of each call of a solver inside a fit, and what it reports."""

    def __init__(self):
        self.rows = []

    def __enter__(self):
        self.before = estimators.solve_svms, kmm.solve_on_device
        estimators.solve_svms = self.timed(estimators.solve_svms)
        kmm.solve_on_device = self.timed(kmm.solve_on_device)
        return self

    def __exit__(self, *_):
        estimators.solve_svms, kmm.solve_on_device = self.before

    def timed(self, function):
        """Return the function, with a clock around it."""

        def call(*args, **kwargs):
            started = time.perf_counter()
            result = function(*args, **kwargs)
            row = {
                "stage": "kmm",
                "seconds": time.perf_counter() - started,
                "kkt": float(np.max(result.kkt_residual)),
                "passes": result.n_passes,
                "bytes": result.bytes_moved,
                "steps": result.n_iter,
            }
            if isinstance(result, KMMResult):
                row["n"] = int(result.weights.size)
            else:
                n, svms = result.coef.shape
                row |= {
                    "stage": "gap" if svms > 1 else "final",
                    "n": n,
                    "machines": svms,
                    "duality_gap": float(result.duality_gap.max()),
                    "plan": str(result.plan),
                }
            self.rows.append(row)
            return result

        return call


def synchronize(device):
    """Wait until all is computed."""
    if not device.is_cpu:
        device.xp.cuda.synchronize(device.name)


def best_time(device, function, repeats=5):
    function()
    synchronize(device)
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        synchronize(device)
        times.append(time.perf_counter() - started)
    return min(times)


def measure_ceiling(device):
    """Give the bytes per second of a copy, and of a sum of two arrays."""
    size = int(min(2**30, device.budget() / 16))
    a, b, c = (device.empty(size, single=True).fill_(k) for k in (1.0, 2.0, 3.0))
    add = device.xp.add
    copy = 8.0 * size / best_time(device, lambda: a.copy_(b))
    return copy, 12.0 * size / best_time(device, lambda: add(b, c, alpha=2.0, out=a))


def measure_bandwidth(device, n):
    """Time copies, and products with a kernel of n rows, in bytes per second."""
    with device.computing():
        copy, triad = measure_ceiling(device)
        X, _, _ = curved(n, 0)
        plan = plan_memory(n, N_FEATURES, 12, device.budget())
        started = time.perf_counter()
        kernel = DeviceKernel(Points.of(device, X, 0.05), plan)
        synchronize(device)
        rows = {"build_s": time.perf_counter() - started}
        ceiling = max(copy, triad)
        bytes_of_kernel = 4.0 * n**2
        if plan.stored:
            v = device.empty(n, single=True).fill_(1.0)
            rows["torch_matvec"] = bytes_of_kernel / best_time(
                device, lambda: kernel._stored @ v
            )
            for columns in (2, 6, 12):
                V = device.empty(n, columns, single=True).fill_(1.0)
                rows[f"torch_matmul_{columns}"] = bytes_of_kernel / best_time(
                    device, lambda V=V: kernel._stored @ V, 3
                )
            for columns in (1, 2, 6, 12):
                V = device.empty(n, columns, single=True).fill_(1.0)
                total = device.zeros(n, columns)
                for width in (256, 4096):
                    rows[f"sums_of_{width}_x{columns}"] = bytes_of_kernel / best_time(
                        device,
                        lambda V=V, width=width, total=total: add_product(
                            total, kernel._stored, V, width
                        ),
                        2,
                    )
                    rows[f"rows_of_{width}_x{columns}"] = bytes_of_kernel / best_time(
                        device,
                        lambda V=V, width=width, total=total: add_product(
                            total, kernel._stored.T, V, width
                        ),
                        2,
                    )
        for columns in (1, 2, 6, 12):
            V = device.zeros(n, columns) + 1.0
            for careful in (False, True):
                seconds = best_time(
                    device,
                    lambda V=V, careful=careful: kernel.product(V, careful=careful),
                    3,
                )
                name = f"product_{columns}{'_careful' if careful else ''}"
                rows[name] = bytes_of_kernel / seconds
        ones = device.zeros(n, 6) + 1.0
        precondition_s = best_time(
            device, lambda: kernel.precondition(ones, ones > 0.0), 2
        )
        inverse = kernel.precondition(ones, ones > 0.0)
        apply_s = best_time(device, lambda: inverse(ones[:, :, None]), 3)
    yield {
        "part": "bandwidth",
        "n": n,
        "stored": plan.stored,
        "copy": copy,
        "triad": triad,
        "build_s": rows.pop("build_s"),
        "rank": plan.rank,
        "precondition_6_s": precondition_s,
        "apply_preconditioner_6_s": apply_s,
        "bytes_per_s": rows,
        "share_of_ceiling": {k: v / ceiling for k, v in rows.items()},
    }


def measure_kmm(device, n):
    source, target = biased(n)
    for tol in (1e-2, 1e-4):
        started = time.perf_counter()
        result = kernel_mean_matching(source, target, tol=tol, device=device.name)
        seconds = time.perf_counter() - started
        yield {
            "part": "kmm",
            "n": n,
            "tol": tol,
            "seconds": seconds,
            "kkt": result.kkt_residual,
            "duality_gap": result.duality_gap,
            "objective": result.objective,
            "converged": result.converged,
            "steps": result.n_iter,
            "passes": result.n_passes,
            "bytes_per_s": result.bytes_moved / seconds,
            "ess": result.effective_sample_size,
        }


def measure_others(device, n):
    for draw in (clusters, rare, coarse, wide):
        yield from measure_fit(device, n, f"others: {draw.__name__}", draw)


def measure_default(device, n):
    X, s = hidden(n)
    X_test, y_test, _ = curved(N_TEST, 99)
    for name in (device.name, None):
        model = PGPUClassifier(random_state=0, device=name)
        with Stages() as stages:
            started = time.perf_counter()
            model.fit(X, s)
            seconds = time.perf_counter() - started
        yield {
            "part": f"default on {name or 'the processor'}",
            "n": n,
            "seconds": seconds,
            "stages": stages.rows,
            "C": model.estimator_.C,
            "kkt_kmm": float("nan"),
            "accuracy": model.score(X_test, y_test),
        }


def measure_fit(device, n, part="fit", draw=curved):
    X, s = hidden(n, draw=draw)
    model = PGPUClassifier.paper(
        boundary=Quantile(), random_state=0, device=device.name, verbose=1
    )
    with Stages() as stages:
        started = time.perf_counter()
        model.fit(X, s)
        seconds = time.perf_counter() - started
    # Other samples of the same kind, where the seed leaves the kind alone.
    X_test, y_test, _ = curved(N_TEST, 99) if draw is curved else draw(n, 0)
    started = time.perf_counter()
    accuracy = model.score(X_test, y_test)
    yield {
        "part": part,
        "n": n,
        "seconds": seconds,
        "stages": stages.rows,
        "converged": model.estimator_.converged_ and model.kmm_.converged,
        "duality_gap": max(r.get("duality_gap", 0.0) for r in stages.rows),
        "kkt_kmm": model.kmm_.kkt_residual,
        "n_support": int(model.estimator_.support_.size),
        "accuracy": accuracy,
        "predict_s_per_50k": time.perf_counter() - started,
    }


def measure_cpu(device, n):
    """Measure the same on the processor, and how far the answers are apart."""
    X, s = hidden(n)
    labelled = s == 1
    gamma = scale_gamma(X)
    started = time.perf_counter()
    svc = SVC(gamma=gamma, cache_size=2000).fit(X, labelled)
    seconds_svc = time.perf_counter() - started
    solved = solve_svms(device, X, labelled, np.ones((n, 1)), gamma=gamma, tol=1e-4)
    decision, ours = svc.decision_function(X), solved.decision[:, 0]
    coef = svc.dual_coef_[0]
    dual = np.abs(coef).sum() - 0.5 * coef @ (
        decision[svc.support_] - svc.intercept_[0]
    )
    away = np.abs(decision) > 1e-3
    source, target = biased(n)
    gamma_kmm = median_gamma(target)
    started = time.perf_counter()
    here = kernel_mean_matching(source, target, gamma=gamma_kmm)
    seconds_kmm = time.perf_counter() - started
    there = kernel_mean_matching(source, target, gamma=gamma_kmm, device=device.name)
    started = time.perf_counter()
    # Classifiers and a width of one's own are taken as they are: exact kernels.
    platt_svm = CalibratedClassifierCV(SVC(), method="sigmoid", ensemble=False)
    model = PGPUClassifier.paper(
        boundary=Quantile(),
        gap_estimator__estimator=platt_svm,
        estimator=SVC(),
        reweight__gamma=median_gamma(X),
        random_state=0,
    ).fit(X, s)
    seconds = time.perf_counter() - started
    X_test, y_test, _ = curved(N_TEST, 99)
    yield {
        "part": "cpu",
        "n": n,
        "seconds": seconds,
        "seconds_svc": seconds_svc,
        "seconds_kmm": seconds_kmm,
        "kmm_solver": here.solver,
        "kkt_kmm": here.kkt_residual,
        "kmm_objective_difference": float(there.objective - here.objective),
        "kmm_gap": here.duality_gap,
        "dual_relative_difference": float(
            (solved.dual_objective[0] - dual) / abs(dual)
        ),
        "decisions_agree": float(((decision > 0) == (ours > 0))[away].mean()),
        "largest_decision_difference": float(np.abs(decision - ours).max()),
        "accuracy": model.score(X_test, y_test),
    }


def given_up(*_):
    msg = "took longer than --limit"
    raise TimeoutError(msg)


def run_case(measure, out, limit, label):
    print(f"-- {label}", flush=True)
    signal.signal(signal.SIGALRM, given_up)
    signal.alarm(int(limit))
    started = time.perf_counter()
    try:
        for row in measure():
            print(json.dumps(row, default=float), flush=True)
            with out.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row, default=float) + "\n")
    except Exception as error:  # noqa: BLE001 (the other cases are to run)
        row = {
            "part": label,
            "failed": f"{type(error).__name__}: {error}",
            "after_s": time.perf_counter() - started,
        }
        print(json.dumps(row), flush=True)
        with out.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
    finally:
        signal.alarm(0)


def print_table(out):
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    print("\n| part | rows | seconds | KKT of KMM | duality gap | passes | converged |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for row in rows:
        if "failed" in row or row["part"] in ("bandwidth", "machine"):
            continue
        name = row["part"] + (f" tol {row['tol']:g}" if "tol" in row else "")
        passes = row.get("passes") or sum(r["passes"] for r in row.get("stages", []))
        kkt = row.get("kkt", row.get("kkt_kmm"))
        gap = row.get("duality_gap", float("nan"))
        print(
            f"| {name} | {row['n']:,} | {row['seconds']:.2f} | {kkt:.1e} | {gap:.1e} | "
            f"{passes:.0f} | {row.get('converged', '')} |"
        )
        for stage in row.get("stages", []):
            share = stage["bytes"] / stage["seconds"] / 1e12
            print(
                f"| . {stage['stage']} | {stage['n']:,} | {stage['seconds']:.2f} | "
                f"{stage['kkt']:.1e} | {stage.get('duality_gap', float('nan')):.1e} | "
                f"{stage['passes']:.0f} | {share:.2f} TB/s |"
            )
    for row in rows:
        if row["part"] == "bandwidth":
            print(
                f"\ncopy {row['copy'] / 1e12:.2f} TB/s, triad {row['triad'] / 1e12:.2f} TB/s"
            )
            for name, share in row["share_of_ceiling"].items():
                speed = row["bytes_per_s"][name] / 1e12
                print(f"  {name}: {speed:.2f} TB/s, {share:.0%} of the ceiling")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/gpu"))
    parser.add_argument("--table", type=Path, help="only print the table of such rows")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--sizes", default="10000,30000,100000")
    parser.add_argument("--cpu-sizes", default="5000,10000")
    parser.add_argument("--free-size", type=int, default=300_000)
    parser.add_argument("--limit", type=float, default=240.0, help="seconds a case")
    options = parser.parse_args()
    if options.table is not None:
        print_table(options.table)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    out = options.out / "gpu.jsonl"
    out.write_text("", encoding="utf-8")
    device = open_device(options.device)
    sizes = [int(n) for n in options.sizes.split(",")]
    parts = options.parts.split(",")

    def describe():
        name = "processor"
        if not device.is_cpu:
            name = device.xp.cuda.get_device_name(device.name)
        started = time.perf_counter()
        list(measure_fit(device, 1500))
        yield {
            "part": "machine",
            "device": name,
            "torch": device.xp.__version__,
            "python": platform.python_version(),
            "budget_gib": device.budget() / 2**30,
            "first_fit_s": time.perf_counter() - started,
        }

    run_case(describe, out, options.limit, "machine")
    if "bandwidth" in parts:
        n = max(sizes)
        run_case(lambda: measure_bandwidth(device, n), out, options.limit, "bandwidth")
    measures = {"kmm": measure_kmm, "fit": measure_fit, "default": measure_default}
    for part, measure in measures.items():
        for n in sizes if part in parts else ():
            run_case(
                lambda measure=measure, n=n: measure(device, n),
                out,
                options.limit,
                f"{part} {n}",
            )
    if "others" in parts:
        n = sizes[min(1, len(sizes) - 1)]
        run_case(lambda: measure_others(device, n), out, options.limit, f"others {n}")
    for n in [int(n) for n in options.cpu_sizes.split(",")] if "cpu" in parts else ():
        run_case(lambda n=n: measure_cpu(device, n), out, options.limit, f"cpu {n}")
    if "free" in parts:
        n = options.free_size
        run_case(
            lambda: measure_fit(device, n, "free"), out, options.limit, f"free {n}"
        )
    print_table(out)


if __name__ == "__main__":
    sys.exit(main())
