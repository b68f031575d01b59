"""Try kernel mean matching on cases that are harder than a mild shift.

    python benchmarks/kmm_cases.py                 # solver="auto", a few minutes
    python benchmarks/kmm_cases.py --n 1000

For each case: which solver "auto" came to, CPU seconds, whether the tolerance is met,
and the certified share of the possible gain that may be left. The last lines are real
sets, a selection of which is to stand for the whole, as in PU learning.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from sklearn.preprocessing import StandardScaler

from probgap.datasets import load_benchmark
from probgap.reweight import kernel_mean_matching


def synthetic(n):
    """Give (name, source, target) of cases that are meant to break a solver."""
    rng = np.random.default_rng(7)
    for d in (1, 2, 3, 5, 10, 32):
        source = rng.normal(size=(n, d))
        yield f"shift, d={d}", source, rng.normal(1.5 / np.sqrt(d), 0.8, (n, d))
        yield f"corner, d={d}", source, rng.normal(2.0, 0.3, (n, d))
        yield f"wider, d={d}", source, rng.normal(0.0, 2.0, (n, d))
        yield f"same, d={d}", source, rng.normal(size=(n, d))
    for d in (2, 10):
        tails = rng.standard_t(1.5, (n, d)), rng.standard_t(1.5, (n, d)) + 0.5
        yield f"heavy tails, d={d}", *tails
        twins = np.repeat(rng.normal(size=(n // 5, d)), 5, axis=0)
        yield f"each row five times, d={d}", twins, rng.normal(0.5, 0.9, (n, d))
        coarse = np.round(rng.normal(size=(n, d)))
        yield f"whole numbers, d={d}", coarse, np.round(rng.normal(0.5, 1.0, (n, d)))
        few, many = rng.normal(size=(n // 4, d)), rng.normal(0.4, 0.9, (4 * n, d))
        yield f"few to many, d={d}", few, many
        yield f"many to few, d={d}", many, few
        clusters = rng.normal(size=(n, d)) + 6.0 * rng.integers(0, 3, (n, 1))
        yield f"clusters, d={d}", clusters, clusters[rng.random(n) < 0.5] * 1.02


def real():
    """Give (name, selection, whole): the samples that a score is sure about."""
    for name in ("banana", "twonorm", "image", "splice"):
        X = StandardScaler().fit_transform(load_benchmark(name).X)
        score = X @ np.random.default_rng(3).normal(size=X.shape[1])
        for share in (0.3, 0.7):
            far = np.abs(score) >= np.quantile(np.abs(score), 1.0 - share)
            yield f"{name}, {share:.0%} selected", X[far], X


def measure(name, source, target, upper, solver):
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = kernel_mean_matching(source, target, upper=upper, solver=solver)
    seconds = time.process_time() - start
    print(
        f"{name:30s} {len(source):6d} {len(target):6d} {upper:6g} {result.solver:10s} "
        f"{seconds:7.3f} {result.n_iter:4d} {'yes' if result.converged else 'NO':4s} "
        f"{result.kkt_residual:8.1e} {result.duality_gap:8.1e} "
        f"{result.effective_sample_size:8.1f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--upper", type=float, nargs="+", default=[1000.0, 5.0])
    arguments = parser.parse_args()
    print(
        "case                           source target  upper solver       CPU s "
        "iter met     KKT      gap      ESS"
    )
    for cases in (synthetic(arguments.n), real()):
        for name, source, target in cases:
            for upper in arguments.upper:
                measure(name, source, target, upper, arguments.solver)


if __name__ == "__main__":
    main()
