"""Measure kernel mean matching: CPU time, and how good the weights are.

    python benchmarks/kmm.py                     # n = 1000, 2000, 5000; d = 2, 10, 32
    python benchmarks/kmm.py --n 2000 --slow     # adapt's exact solver, too
    python benchmarks/kmm.py --growth            # n = 5k to 80k, d = 2, and the exponent
    python benchmarks/kmm.py --large             # n = 20,000: time, and peak memory

The source is normal and the target shifted, n samples each. "range" is the share of what
can be gained over uniform weights that is left, against the best objective any solver
found, with weights put inside the bounds first; "box" is how far they were outside. The
floor is one kernel matrix by scikit-learn and 36 products with it. Solvers take turns,
the best of several rounds counts, on one thread.

Peers are used where they are installed: ``pip install 'probgap[bench]'``. adapt imports
tensorflow, which is most of what that installs; the peers may be left out.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from functools import partial

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from probgap._core.kernels import median_gamma
from probgap.reweight import kernel_mean_matching

UPPER = 1000.0
SLOW = ("adapt",)


def floor(source, target):
    gamma = median_gamma(target)
    K = rbf_kernel(source, gamma=gamma)
    w = np.ones(len(source))
    for _ in range(36):
        w = K @ w / len(w)


def by_ours(source, target, solver="auto"):
    return kernel_mean_matching(source, target, upper=UPPER, solver=solver).weights


def by_cvxopt(source, target):
    import cvxopt  # noqa: PLC0415 (a peer that may be missing)

    n, gamma = len(source), median_gamma(target)
    K = rbf_kernel(source, gamma=gamma)
    kappa = rbf_kernel(source, target, gamma=gamma).mean(axis=1)
    low, high = band(n)
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


def by_skada(source, target):
    from skada import KMMReweightAdapter  # noqa: PLC0415 (a peer that may be missing)

    domain = np.repeat([1, -2], [len(source), len(target)])
    adapter = KMMReweightAdapter(gamma=median_gamma(target), B=UPPER)
    adapter.fit(np.vstack([source, target]), sample_domain=domain)
    return np.ravel(adapter.source_weights_)


def by_adapt(source, target, max_size=10**9):
    from adapt.instance_based import KMM  # noqa: PLC0415 (a peer that may be missing)

    gamma = median_gamma(target)
    matching = KMM(gamma=gamma, B=UPPER, max_size=max_size, verbose=0, random_state=0)
    return np.ravel(matching.fit_weights(source, target))


SOLVERS = {
    "floor": floor,
    "ours": by_ours,
    "cvxopt": by_cvxopt,
    "skada": by_skada,
    "adapt, blocks": partial(by_adapt, max_size=1000),
    "adapt": by_adapt,
}


def make(n, d):
    rng = np.random.default_rng(n + d)
    return rng.normal(size=(n, d)), rng.normal(0.5 / np.sqrt(d), 0.9, size=(n, d))


def band(n):
    slack = 1.0 - 1.0 / np.sqrt(n)
    return 1.0 - slack, 1.0 + slack


def put_inside(weights):
    """Put weights into the box, and into the band by a factor."""
    low, high = band(len(weights))
    weights = np.clip(weights, 0.0, UPPER)
    mean = weights.mean()
    return weights * (np.clip(mean, low, high) / mean)


def seconds_of(solve, source, target):
    start = time.process_time()
    weights = solve(source, target)
    return time.process_time() - start, weights


def measure(n, d, names, rounds):
    source, target = make(n, d)
    seconds = dict.fromkeys(names, np.inf)
    weights = {}
    for turn in range(rounds):
        for name in names:
            if turn == 0 or name not in SLOW:
                spent, weights[name] = seconds_of(SOLVERS[name], source, target)
                seconds[name] = min(seconds[name], spent)
    gamma = median_gamma(target)
    K = rbf_kernel(source, gamma=gamma)
    kappa = rbf_kernel(source, target, gamma=gamma).mean(axis=1)

    def value(w):
        return float(w @ (K @ w / n - 2.0 * kappa)) / 2.0

    values = {k: value(put_inside(w)) for k, w in weights.items() if w is not None}
    best = min(values.values())
    gain = value(np.ones(n)) - best
    for name in names:
        line = f"{n:6d} {d:4d} {name:14s} {seconds[name]:8.3f} "
        line += f"{seconds[name] / seconds['ours']:8.1f} "
        if name in values:
            w = weights[name]
            outside = max(0.0, -w.min(), w.max() - UPPER)
            line += f"{(values[name] - best) / gain:9.1e} {outside:9.1e}"
        print(line, flush=True)


def grow(rounds, d):
    sizes = [5000, 10_000, 20_000, 40_000, 80_000]
    data = [make(n, d) for n in sizes]
    best = np.full(len(sizes), np.inf)
    for _ in range(rounds):
        for k, (source, target) in enumerate(data):
            best[k] = min(best[k], seconds_of(by_ours, source, target)[0])
    for n, seconds in zip(sizes, best, strict=True):
        print(f"{n:6d} {d:4d} {seconds:8.3f}", flush=True)
    slope = np.polyfit(np.log(sizes), np.log(best), 1)[0]
    print(f"time grows as n to the power {slope:.2f}")


def one_run(n, d):
    """Solve once and say how; a process of its own, so that its peak is its own."""
    source, target = make(n, d)
    start = time.process_time()
    result = kernel_mean_matching(source, target, upper=UPPER)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{n:6d} {d:4d} {result.solver:10s} {seconds:8.3f} s {peak:6.2f} GiB "
        f"converged={result.converged} gap={result.duality_gap:.1e}",
        flush=True,
    )


def installed(name):
    try:
        SOLVERS[name](*make(60, 2))
    except ImportError as error:
        print(f"{name} is left out: {error}")
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, nargs="+", default=[1000, 2000, 5000])
    parser.add_argument("--d", type=int, nargs="+", default=[2, 10, 32])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], choices=list(SOLVERS))
    parser.add_argument("--slow", action="store_true", help="adapt's exact solver, too")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--one-run", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one_run:
        one_run(*arguments.one_run)
    elif arguments.growth:
        grow(arguments.rounds, 2)
    elif arguments.large:
        for d in (2, 10):
            command = [sys.executable, __file__, "--one-run", "20000", str(d)]
            subprocess.run(command, check=True)
    else:
        left_out = [*arguments.without, *(() if arguments.slow else SLOW)]
        names = [k for k in SOLVERS if k not in left_out and installed(k)]
        print("     n    d solver            CPU s  / ours     range       box")
        for n in arguments.n:
            for d in arguments.d:
                measure(n, d, names, arguments.rounds)


if __name__ == "__main__":
    main()
