"""Time the search for a boundary beside the same by plain refits.

    python benchmarks/search.py --data triangles curved            # n = 1500, minutes
    python benchmarks/search.py --data triangles --share 0.2       # a quick look

"search" is PGPUClassifierCV.paper(), 31 boundaries by 5 folds and the final fit. "plain" is
the same as one writes it with scikit-learn and cvxopt: for each pair of fold and boundary a
Platt-scaled SVM for the gap, relabelling, kernel mean matching as a quadratic programme, and a
weighted SVC. "once" is what that would take with one gap for each fold. Data are standardised,
labels hidden by the inverse rate (0.2, 1) of the gap that an SVM with Platt scaling finds;
"curved" has ten features and a curved boundary. CPU seconds, the best of several rounds, in
turn. That both choose the same boundary is tested in tests/pgpu/test_plain_refits.py.
"""

from __future__ import annotations

import harness
import numpy as np
import pandas as pd
from kmm import by_cvxopt
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from probgap import PGPUClassifierCV
from probgap.datasets import hide_labels, make_triangles, platt_gap

N, N_FOLDS = 1500, 5
GRID = np.linspace(-0.9, -0.6, 31)


def curved(n, seed):
    """Draw rows of ten features with a curved boundary, and their classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    score = X[:, 0] + 0.5 * (X[:, 1] ** 2 - 1.0) + 0.5 * np.sin(2.0 * X[:, 2])
    return X, (rng.random(n) < expit(4.0 * score)).astype(int)


DATA = {
    "triangles": lambda n, seed: make_triangles(n, random_state=seed)[:2],
    "curved": curved,
}


def draw(name, n, seed):
    """Return standardised rows and observed labels."""
    X, y = DATA[name](n, seed)
    X, y = StandardScaler().fit_transform(X), (y == y.max()).astype(int)
    truth = platt_gap(X, y, random_state=seed)
    return X, hide_labels(X, y, truth, ("inverse", 0.2, 1.0), random_state=seed)


def fit_plainly(X, s, boundary):
    """Fit the paper's algorithm; return the seconds that the gap took, and the model."""
    platt = CalibratedClassifierCV(SVC(), method="sigmoid", ensemble=False)
    spent, chance = harness.cpu_seconds(lambda: platt.fit(X, s).predict_proba(X))
    gap = 2.0 * chance[:, 1] - 1.0
    rows = np.flatnonzero((gap <= boundary) | (gap > 0.0))
    if not (gap <= boundary).any():
        return spent, None
    weight = np.maximum(by_cvxopt(X[rows], X), 0.0)
    return spent, SVC().fit(X[rows], gap[rows] > 0.0, sample_weight=weight)


def search_plainly(X, s):
    """Return the seconds that gaps took."""
    spent, scores = 0.0, np.full((N_FOLDS, len(GRID)), -np.inf)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    for k, (train, test) in enumerate(folds.split(X, s)):
        for i, boundary in enumerate(GRID):
            for_gap, model = fit_plainly(X[train], s[train], boundary)
            spent += for_gap
            if model is not None:
                scores[k, i] = model.score(X[test], s[test] == 1)
    fit_plainly(X, s, GRID[scores.mean(axis=0).argmax()])
    return spent


def measure(name, n, seed, rounds):
    """Return times and ratios."""
    X, s = draw(name, n, seed)
    tasks = {
        "search": lambda: PGPUClassifierCV.paper(random_state=0).fit(X, s),
        "plain": lambda: search_plainly(X, s),
    }
    seconds, results = harness.best_of(tasks, rounds)
    once = seconds["plain"] - results["plain"] * (1.0 - 1.0 / len(GRID))
    return {
        "data": f"{name}, {n} rows",
        **seconds,
        "once": once,
        "plain / search": seconds["plain"] / seconds["search"],
        "once / search": once / seconds["search"],
    }


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--share", type=float, default=1.0, help="of the 1500 rows")
    parser.add_argument("--rounds", type=int, default=3)
    options = harness.parse(parser)
    if options.quick:
        options.data, options.share, options.rounds = ["triangles"], 0.1, 1
    n = int(options.share * N)
    lines = [measure(name, n, 0, options.rounds) for name in options.data]
    harness.show(pd.DataFrame(lines), 2)


if __name__ == "__main__":
    main()
