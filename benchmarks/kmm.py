"""Measure kernel mean matching: CPU time, and how good the weights are.

    python benchmarks/kmm.py                            # n = 500, 1000, 2000; d = 2, 10, 30
    python benchmarks/kmm.py --n 4000 --d 20 --without cvxopt

The source is normal and the target shifted, n samples each. "range" is the share of what
can be gained over uniform weights that is left, against the best objective any solver
found. The floor is one kernel matrix and 36 products with it. Solvers take turns, the best of several rounds counts, on one
thread.
"""

from __future__ import annotations

import argparse
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import cvxopt
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from probgap._core.kernels import median_gamma
from probgap.reweight import kernel_mean_matching
from probgap.reweight._problem import Bounds, MatchingProblem, default_slack

UPPER = 1000.0


def floor(source, target):
    gamma = median_gamma(target)
    K = rbf_kernel(source, gamma=gamma)
    w = np.ones(len(source))
    for _ in range(36):
        w = K @ w / len(w)


def by_cvxopt(source, target):
    n, gamma = len(source), median_gamma(target)
    K = rbf_kernel(source, gamma=gamma)
    kappa = rbf_kernel(source, target, gamma=gamma).mean(axis=1)
    low, high = Bounds(n, UPPER, default_slack(n)).band
    one = cvxopt.spmatrix(1.0, range(n), range(n))
    row = cvxopt.matrix(1.0, (1, n))
    rows = cvxopt.sparse([-one, one, row, -row])
    limits = np.hstack([np.zeros(n), np.full(n, UPPER), n * high, -n * low])
    solved = cvxopt.solvers.qp(
        cvxopt.matrix(K / n),
        cvxopt.matrix(-kappa),
        rows,
        cvxopt.matrix(limits),
        options={"show_progress": False},
    )
    return np.ravel(solved["x"])


def by_ours(solver):
    def solve(source, target):
        return kernel_mean_matching(source, target, upper=UPPER, solver=solver).weights

    return solve


SOLVERS = {
    "floor": floor,
    "auto": by_ours("auto"),
    "exact": by_ours("exact"),
    "cvxopt": by_cvxopt,
}


def describe(problem, weights, best):
    """Say how good weights are: range, KKT residual, violations of box and band."""
    bounds = problem.bounds
    low, high = bounds.band
    beyond = max(0.0, -weights.min(), weights.max() - UPPER)
    off = max(0.0, low - weights.mean(), weights.mean() - high)
    inside = bounds.project(weights)
    gain = value(problem, np.ones(problem.n)) - best
    return (
        f"{(value(problem, inside) - best) / gain:9.1e} "
        f"{problem.kkt_residual(inside):9.1e} {beyond:9.1e} {off:9.1e}"
    )


def value(problem, weights):
    return float(weights @ (problem.gradient(weights) - problem.kappa)) / 2.0


def measure(n, d, names, rounds):
    rng = np.random.default_rng(n + d)
    source = rng.normal(size=(n, d))
    target = rng.normal(0.5 / np.sqrt(d), 0.9, size=(n, d))
    seconds = dict.fromkeys(names, np.inf)
    weights = {}
    for _ in range(rounds):
        for name in names:
            start = time.process_time()
            weights[name] = SOLVERS[name](source, target)
            seconds[name] = min(seconds[name], time.process_time() - start)
    gamma = median_gamma(target)
    problem = MatchingProblem(
        rbf_kernel(source, gamma=gamma),
        rbf_kernel(source, target, gamma=gamma).mean(axis=1),
        UPPER,
        default_slack(n),
    )
    found = {k: problem.bounds.project(w) for k, w in weights.items() if w is not None}
    best = min(value(problem, w) for w in found.values())
    for name in names:
        line = f"{n:6d} {d:4d} {name:9s} {seconds[name]:8.3f} "
        if weights[name] is not None:
            line += describe(problem, weights[name], best)
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--d", type=int, nargs="+", default=[2, 10, 30])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], choices=list(SOLVERS))
    arguments = parser.parse_args()
    names = [name for name in SOLVERS if name not in arguments.without]
    print(
        "     n    d solver       CPU s     range       KKT  box off  band off",
        flush=True,
    )
    for n in arguments.n:
        for d in arguments.d:
            measure(n, d, names, arguments.rounds)


if __name__ == "__main__":
    main()
