"""Time the search for a boundary, and hold it against plain refits.

    PROBGAP_DATA=folder python benchmarks/search.py                   # every data set
    python benchmarks/search.py --data triangles curved --plain       # n = 1500, minutes
    python benchmarks/search.py --data triangles curved --plain --only-search --seeds 5 --rounds 1
    python benchmarks/search.py --data triangles --plain --share 0.2  # a quick look

Data are standardised, and labels hidden by the inverse rate (0.2, 1) of the gap that a
support vector machine with Platt scaling finds. "curved" has ten features and a curved
boundary. "search" is PGPUClassifierCV.paper() as it is, 31 boundaries by 5 folds and the
final fit, "auto" the same with SVC(gamma="auto"), "default" PGPUClassifierCV(); "single" is
PGPUClassifier.paper, "gap" its first step alone. CPU seconds on one thread, the best of
several rounds, tasks in turn.

"plain" is the search as one writes it with scikit-learn and cvxopt: for each of 155 pairs
of fold and boundary a Platt-scaled SVM for the gap, relabelling, kernel mean matching as
a quadratic programme, a weighted SVC; and the final fit. "once" is what that would take with
one gap for each fold. It shares no code with the search but the median heuristic and the
seeds of the folds. The ratios are "plain" and, in brackets, "once" to "search".

Then the scores are compared: the largest difference between two means of a boundary, and
between two scores on one fold; the boundary that each search chooses, and in brackets how
many boundaries share its score. "as is" has cvxopt at its own tolerance, where weights are
still off by whole units; "exact" has it at 1e-12, on the problem that probgap states (of
weights that match equally well, those nearest to 1), and leaves out samples of less than a
thousandth of the largest weight, as probgap does, which SVC's gamma="scale" takes note of.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core.kernels import median_gamma
from probgap._core.runtime import as_generator, draw_seed
from probgap.datasets import hide_labels, load_benchmark, make_triangles, platt_gap
from probgap.gap import ObservedGapEstimator

SIZES = {
    "triangles": 1500,
    "curved": 1500,
    "image": 1565,
    "splice": 2243,
    "banana": 3975,
    "twonorm": 5550,
}
GRID = [round(-0.90 + 0.01 * i, 2) for i in range(31)]
UPPER = 1000.0


def make_curved(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    score = X[:, 0] + 0.5 * (X[:, 1] ** 2 - 1.0) + 0.5 * np.sin(2.0 * X[:, 2])
    return X, (rng.random(n) < expit(4.0 * score)).astype(int)


def draw(name, share, seed):
    n = int(share * SIZES[name])
    if name == "triangles":
        X, y, _ = make_triangles(n, random_state=seed)
    elif name == "curved":
        X, y = make_curved(n, seed)
    else:
        X, y = load_benchmark(name)
        rows = np.random.default_rng(seed).permutation(len(X))[:n]
        X, y = X[rows], y[rows]
    X, y = StandardScaler().fit_transform(X), (y == y.max()).astype(int)
    truth = platt_gap(X, y, random_state=seed)
    return X, hide_labels(X, y, truth, ("inverse", 0.2, 1.0), random_state=seed)


def search(X, s):
    return PGPUClassifierCV.paper(random_state=0).fit(X, s)


def auto(X, s):
    PGPUClassifierCV.paper(estimator=SVC(gamma="auto"), random_state=0).fit(X, s)


def default(X, s):
    PGPUClassifierCV(random_state=0).fit(X, s)


def single(X, s):
    PGPUClassifier.paper(random_state=0).fit(X, s)


def gap(X, s):
    ObservedGapEstimator(method="in_sample", random_state=0).fit(X, s)


def folds_of_the_search(X, s):
    """Give the folds that ``search`` takes, and the seed of the gap on each."""
    rng = as_generator(0)
    splitter = StratifiedKFold(5, shuffle=True, random_state=draw_seed(rng))
    folds = list(splitter.split(X, s))
    return [(*fold, draw_seed(rng)) for fold in folds]


def gap_by_platt(X, s, seed):
    inner = draw_seed(as_generator(draw_seed(np.random.default_rng(seed))))
    model = CalibratedClassifierCV(
        SVC(),
        method="sigmoid",
        ensemble=False,
        cv=StratifiedKFold(5, shuffle=True, random_state=inner),
    )
    return 2.0 * model.fit(X, s).predict_proba(X)[:, 1] - 1.0


def weights_by_cvxopt(source, target, ridge=0.0, **options):
    import cvxopt  # noqa: PLC0415 (needed by --plain alone)

    n, gamma = len(source), median_gamma(target)
    kernel = rbf_kernel(source, gamma=gamma) + ridge * np.eye(n)
    kappa = n * rbf_kernel(source, target, gamma=gamma).mean(axis=1) + ridge
    slack = 1.0 - 1.0 / np.sqrt(n)
    one = cvxopt.spmatrix(1.0, range(n), range(n))
    row = cvxopt.matrix(1.0, (1, n))
    band = [n * (1.0 + slack), -n * (1.0 - slack)]
    solved = cvxopt.solvers.qp(
        cvxopt.matrix(kernel),
        cvxopt.matrix(-kappa),
        cvxopt.sparse([-one, one, row, -row]),
        cvxopt.matrix(np.hstack([np.zeros(n), np.full(n, UPPER), band])),
        options={"show_progress": False, **options},
    )
    return np.maximum(np.ravel(solved["x"]), 0.0)


def exact_weights(source, target):
    tight = dict.fromkeys(("abstol", "reltol", "feastol"), 1e-12)
    return weights_by_cvxopt(source, target, ridge=1e-9 * len(target), **tight)


def fit_plainly(X, gaps, boundary, weigh):
    rows = np.flatnonzero((gaps <= boundary) | (gaps > 0.0))
    positive = gaps[rows] > 0.0
    weights = weigh(X[rows], X)
    if weigh is exact_weights:
        # What counts for next to nothing is no sample: gamma="scale" goes by the rest.
        most = np.where(positive, weights[positive].max(), weights[~positive].max())
        used = weights > 1e-3 * most
        rows, positive, weights = rows[used], positive[used], weights[used]
    return SVC().fit(X[rows], positive, sample_weight=weights)


def search_plainly(X, s, weigh=weights_by_cvxopt):
    """Give the score on each fold and boundary, and the time that gaps took."""
    scores, spent = np.empty((5, len(GRID))), 0.0
    for k, (train, test, seed) in enumerate(folds_of_the_search(X, s)):
        for i, boundary in enumerate(GRID):
            start = time.process_time()
            gaps = gap_by_platt(X[train], s[train], seed)
            spent += time.process_time() - start
            if not (gaps <= boundary).any():
                scores[k, i] = -np.inf
                continue
            predicted = fit_plainly(X[train], gaps, boundary, weigh).predict(X[test])
            scores[k, i] = np.mean(predicted == (s[test] == 1))
    best = GRID[middle_of(ties(scores.mean(axis=0)))]
    fit_plainly(X, gap_by_platt(X, s, 0), best, weigh)
    return scores, spent


def ties(means):
    return np.flatnonzero(means >= means.max() - 1e-12)


def middle_of(tied):
    return tied[(len(tied) - 1) // 2]


def difference(a, b):
    """Give the largest difference; boundaries that are no use to either are equal."""
    return np.abs(np.subtract(a, b, out=np.zeros_like(a), where=a != b)).max()


def compare(model, scores):
    table = model.cv_results_
    ours = np.array([table[f"split{k}_test_score"] for k in range(5)])
    means = ours.mean(axis=0), scores.mean(axis=0)
    mine, theirs = (ties(mean) for mean in means)
    return (
        f"means {difference(*means):7.1e}  folds {difference(ours, scores):7.1e}  "
        f"l {model.boundary_.value:5.2f} ({len(mine)}) and "
        f"{GRID[middle_of(theirs)]:5.2f} ({len(theirs)})"
    )


def timed(task, X, s):
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = task(X, s)
    return time.process_time() - start, outcome


def measure(X, s, tasks, *, rounds, plain):
    """Give the seconds of each task and, if asked for, how plain refits compare."""
    seconds = dict.fromkeys([task.__name__ for task in tasks], np.inf)
    if plain:
        seconds |= {"plain": np.inf, "once": np.inf}
    for _ in range(rounds):
        for task in tasks:
            spent, _ = timed(task, X, s)
            seconds[task.__name__] = min(seconds[task.__name__], spent)
        if plain:
            spent, (as_is, for_gaps) = timed(search_plainly, X, s)
            once = spent - for_gaps * (1.0 - 5.0 / 155.0)
            seconds["plain"] = min(seconds["plain"], spent)
            seconds["once"] = min(seconds["once"], once)
    if not plain:
        return seconds, []
    _, model = timed(search, X, s)
    _, (exact, _) = timed(lambda X, s: search_plainly(X, s, exact_weights), X, s)
    plain, once = (seconds[key] / seconds["search"] for key in ("plain", "once"))
    return seconds, [
        f"{plain:.1f} x ({once:.1f} x)",
        f"as is: {compare(model, as_is)}",
        f"exact: {compare(model, exact)}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--share", type=float, default=1.0, help="of the rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=1, help="draws of the data")
    parser.add_argument("--plain", action="store_true", help="the long way, too")
    parser.add_argument("--only-search", action="store_true", help="no other task")
    arguments = parser.parse_args()
    tasks = [search] if arguments.only_search else [search, auto, default, single, gap]
    for name in arguments.data:
        for seed in range(arguments.seeds):
            X, s = draw(name, arguments.share, seed)
            seconds, lines = measure(
                X, s, tasks, rounds=arguments.rounds, plain=arguments.plain
            )
            times = "  ".join(f"{task} {spent:.2f}" for task, spent in seconds.items())
            print(f"{name} {X.shape[0]} x {X.shape[1]} seed {seed}: {times}")
            for line in lines:
                print(f"    {line}", flush=True)


if __name__ == "__main__":
    main()
