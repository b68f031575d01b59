"""Measure kernel mean matching: CPU time, and how good the weights are.

    python benchmarks/kmm.py                     # n = 1000, 2000, 5000; d = 2, 10, 32
    python benchmarks/kmm.py --large             # n = 20,000: time, and peak memory
    python benchmarks/kmm.py --cases             # 88 cases that are harder

The source is normal and the target shifted, n samples each. "range" is the share of what
can be gained over uniform weights that is left, against the best objective any solver
found, with weights put inside the bounds first. The
floor is one kernel matrix by scikit-learn and 36 products with it. Solvers take turns,
the best of several rounds counts, on one thread.

Peers are used where they are installed: ``pip install 'probgap[bench]'``. adapt imports
tensorflow, which is most of what that installs; the peers may be left out.

--cases has targets in one corner, heavy tails, copies of rows, one dimension, and selections of
real sets that are to stand for the whole, as in PU learning. Of each: which solver "auto" came
to, whether the tolerance is met, and the certified share of the possible gain that may be left.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import harness
import numpy as np
import pandas as pd
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from probgap._core.kernels import median_gamma
from probgap.datasets import load_benchmark
from probgap.reweight import kernel_mean_matching

UPPER = 1000.0
N, D = (1000, 2000, 5000), (2, 10, 32)
LARGE = ((20_000, 2), (20_000, 10))


def floor(source, target):
    """Take no weights, but as many products as some solver does."""
    gamma = median_gamma(target)
    K = rbf_kernel(source, gamma=gamma)
    w = np.ones(len(source))
    for _ in range(36):
        w = K @ w / len(w)


def by_ours(source, target):
    return kernel_mean_matching(source, target, upper=UPPER).weights


def by_cvxopt(source, target):
    """Return weights by an interior point method, on the problem as it is stated."""
    import cvxopt  # noqa: PLC0415 (a peer that may be missing)

    n, gamma = len(source), median_gamma(target)
    K = rbf_kernel(source, gamma=gamma)
    kappa = rbf_kernel(source, target, gamma=gamma).mean(axis=1)
    low, high = band(n)
    one = cvxopt.spmatrix(1.0, range(n), range(n))
    row = cvxopt.matrix(1.0, (1, n))
    limits = np.hstack([np.zeros(n), np.full(n, UPPER), n * high, -n * low])
    solved = cvxopt.solvers.qp(
        cvxopt.matrix(K / n),
        cvxopt.matrix(-kappa),
        cvxopt.sparse([-one, one, row, -row]),
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


def by_adapt(source, target):
    from adapt.instance_based import KMM  # noqa: PLC0415 (a peer that may be missing)

    gamma = median_gamma(target)
    matching = KMM(gamma=gamma, B=UPPER, max_size=1000, verbose=0, random_state=0)
    return np.ravel(matching.fit_weights(source, target))


SOLVERS = {
    "floor": floor,
    "ours": by_ours,
    "cvxopt": by_cvxopt,
    "skada": by_skada,
    "adapt, blocks": by_adapt,
}


def is_installed(name):
    try:
        SOLVERS[name](*make(60, 2))
    except ImportError as error:
        print(f"{name} is left out: {error}")
        return False
    return True


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


def measure(n, d, names, rounds):
    source, target = make(n, d)
    tasks = {name: lambda name=name: SOLVERS[name](source, target) for name in names}
    seconds, weights = harness.best_of(tasks, rounds)
    gamma = median_gamma(target)
    K = rbf_kernel(source, gamma=gamma)
    kappa = rbf_kernel(source, target, gamma=gamma).mean(axis=1)

    def value(w):
        return float(w @ (K @ w / n - 2.0 * kappa)) / 2.0

    values = {k: value(put_inside(w)) for k, w in weights.items() if w is not None}
    best = min(values.values())
    gain = value(np.ones(n)) - best
    lines = []
    for name in names:
        line = {"n": n, "d": d, "solver": name, "CPU s": seconds[name]}
        line["/ ours"] = seconds[name] / seconds["ours"]
        if name in values:
            line["range"] = (values[name] - best) / gain
        lines.append(line)
    return lines


def solve_once(n, d):
    """Return what one solution takes: for a process of its own."""
    return {"n": n, "d": d} | describe(*make(n, d), UPPER)


def describe(source, target, upper):
    with harness.quietly():
        seconds, result = harness.cpu_seconds(
            lambda: kernel_mean_matching(source, target, upper=upper)
        )
    return {
        "solver": result.solver,
        "CPU s": seconds,
        "converged": bool(result.converged),
        "KKT": float(result.kkt_residual),
        "gap": float(result.duality_gap),
        "ESS": float(result.effective_sample_size),
    }


def synthetic(n):
    """Yield (name, source, target) of cases that are meant to break a solver."""
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
    """Yield (name, selection, whole): the samples that a score is sure about."""
    for name in ("banana", "twonorm", "image", "splice"):
        X = StandardScaler().fit_transform(load_benchmark(name)[0])
        score = X @ np.random.default_rng(3).normal(size=X.shape[1])
        for share in (0.3, 0.7):
            far = np.abs(score) >= np.quantile(np.abs(score), 1.0 - share)
            yield f"{name}, {share:.0%} selected", X[far], X


def measure_cases(cases):
    lines = [
        {"case": name, "source": len(source), "target": len(target), "upper": upper}
        | describe(source, target, upper)
        for name, source, target in cases
        for upper in (UPPER, 5.0)
    ]
    show(pd.DataFrame(lines), upper=".0f", ESS=".0f")


def show(table, **formats):
    small = dict.fromkeys(("range", "KKT", "gap"), ".1e")
    harness.show(table, 3, **small, **formats)


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--n", type=int, nargs="+", default=N)
    parser.add_argument("--d", type=int, nargs="+", default=D)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], choices=list(SOLVERS))
    for name in ("large", "cases"):
        parser.add_argument(f"--{name}", action="store_true")
    options = harness.parse(parser)
    quick, last = options.quick, 1 if options.quick else None
    if quick:
        options.n, options.rounds = [1000], 1
    if options.cases:
        measure_cases(synthetic(300) if quick else [*synthetic(2000), *real()])
    elif options.large:
        runs = [harness.alone(solve_once, *size) for size in LARGE[:last]]
        show(pd.DataFrame([line | {"peak GB": peak} for line, peak in runs]))
    else:
        names = [k for k in SOLVERS if k not in options.without and is_installed(k)]
        sizes = [(n, d) for n in options.n for d in options.d]
        for size in sizes[:last]:
            show(pd.DataFrame(measure(*size, names, options.rounds)))


if __name__ == "__main__":
    main()
