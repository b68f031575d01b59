"""Time every method with its defaults, and show where each is right.

    python benchmarks/methods.py                # 1,500 x 10, 3 seeds, a minute
    python benchmarks/methods.py --seeds 10

Rows are normal, the border between the overlapping classes is curved. Labels are hidden in
three ways, half of the positives or so in each: at random; the clear ones first, with a
probability proportional to P(Y=1 | x); and by the sign of the last column, on which the
class does not depend. Accuracy, in percent, is on true labels of 20,000 other rows; "prior" and
"propensity" are told the truth, as some users know it. CPU seconds of the fit on one
thread: the mean over labellings, of the best over the seeds.
"""

from __future__ import annotations

import harness
import numpy as np
from scipy.special import expit

from probgap import PGPUClassifier, methods
from probgap.gap import MixedGapEstimator

N_TEST = 20_000
LABELLINGS = ("at random", "clear first", "by a column")
METHODS = {
    "PGPUClassifier": lambda **_: PGPUClassifier(),
    **{
        name: lambda name=name, **_: getattr(methods, name)()
        for name in methods.__all__
    },
    "NNPUClassifier, prior": lambda prior, **_: methods.NNPUClassifier(prior),
    "PUSBClassifier, prior": lambda prior, **_: methods.PUSBClassifier(prior),
    "PGlinClassifier, mixed gap": lambda **_: methods.PGlinClassifier(
        gap_estimator=MixedGapEstimator()
    ),
    "SAREMClassifier, column": lambda **_: methods.SAREMClassifier(
        propensity_features=[-1]
    ),
    "PropensityWeightedClassifier, propensity": lambda propensity, **_: (
        methods.PropensityWeightedClassifier(propensity)
    ),
}


def draw(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    posterior = expit(3.0 * (X[:, 0] + 0.7 * X[:, 1] ** 2 - 0.7))
    return X, rng.random(n) < posterior, posterior, rng


def propensity_of(labelling, X, posterior):
    """Return the probability that each row, if positive, is labelled."""
    if labelling == "at random":
        return np.full(len(X), 0.5)
    return (
        0.7 * posterior if labelling == "clear first" else 0.5 + 0.3 * np.sign(X[:, -1])
    )


def measure_cell(cell, names):
    n, d, seed = cell["rows"], cell["columns"], cell["seed"]
    X, y, posterior, rng = draw(n, d, seed)
    propensity = propensity_of(cell["labelling"], X, posterior)
    s = y & (rng.random(n) < propensity)
    known = {
        "prior": float(max(y.mean(), s.mean())),
        "propensity": lambda _: propensity,
    }
    test, truth, *_ = draw(N_TEST, d, seed + 1000)
    with harness.quietly():
        for name in names:
            model = METHODS[name](**known).set_params(random_state=seed)
            seconds, _ = harness.cpu_seconds(model.fit, X, s)
            accuracy = 100.0 * model.score(test, truth)
            yield {"method": name, "accuracy": accuracy, "seconds": seconds}


def main():
    parser = harness.parser(__doc__, out="methods", seeds=3)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--columns", type=int, default=10)
    options = harness.parse(parser)
    if options.quick:
        options.rows, options.seeds = 300, 1
    cells = [
        {"labelling": labelling, "rows": options.rows, "columns": options.columns}
        | {"seed": seed}
        for seed in range(options.seeds)
        for labelling in LABELLINGS
    ]
    rows = harness.run_cells(cells, measure_cell, options, list(METHODS))
    by = {"index": "method", "columns": "labelling", "sort": False}
    table = rows.pivot_table(values="accuracy", **by)
    best = rows.pivot_table(values="seconds", aggfunc="min", **by)
    harness.show(
        table.assign(**{"CPU s": best.mean(axis=1)}), 1, "", **{"CPU s": ".2f"}
    )


if __name__ == "__main__":
    main()
