"""Time every method with its defaults, and show where each is right.

    python benchmarks/methods.py                # 1,500 x 10, 3 seeds, a minute

Labellings are described in docs/which_method.md. Accuracy, in percent, is on true labels of
20,000 other rows. CPU seconds of the fit: the mean over labellings, of the best over the seeds.
"""

import harness
import numpy as np
from scipy.special import expit

from probgap import PGPUClassifier, methods
from probgap.gap import MixedGapEstimator

N_TEST = 20_000
LABELLINGS = ("at random", "clear first", "by a column")
KNOWING = {  # methods that are told the truth
    "NNPUClassifier, prior": lambda known: methods.NNPUClassifier(known["prior"]),
    "PUSBClassifier, prior": lambda known: methods.PUSBClassifier(known["prior"]),
    "SAREMClassifier, column": lambda _: methods.SAREMClassifier(
        propensity_features=[-1]
    ),
    "PropensityWeightedClassifier, propensity": lambda known: (
        methods.PropensityWeightedClassifier(known["propensity"])
    ),
}
METHODS = {
    "PGPUClassifier": lambda _: PGPUClassifier(),
    **{name: lambda _, name=name: getattr(methods, name)() for name in methods.__all__},
    "PGlinClassifier, mixed gap": lambda _: methods.PGlinClassifier(
        gap_estimator=MixedGapEstimator()
    ),
    **KNOWING,
}


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    posterior = expit(3.0 * (X[:, 0] + 0.7 * X[:, 1] ** 2 - 0.7))
    return X, rng.random(n) < posterior, posterior, rng


def propensity_of(labelling, X, posterior):
    """Return the probability that each row, if positive, is labelled."""
    return {
        "at random": np.full(len(X), 0.5),
        "clear first": 0.7 * posterior,
        "by a column": 0.5 + 0.3 * np.sign(X[:, -1]),
    }[labelling]


def measure_cell(cell, names):
    seed = cell["seed"]
    X, y, posterior, rng = draw(cell["rows"], seed)
    propensity = propensity_of(cell["labelling"], X, posterior)
    s = y & (rng.random(y.size) < propensity)
    known = {
        "prior": float(max(y.mean(), s.mean())),
        "propensity": lambda _: propensity,
    }
    test, truth, *_ = draw(N_TEST, seed + 1000)
    with harness.quietly():
        for name in names:
            model = METHODS[name](known).set_params(random_state=seed)
            seconds, _ = harness.cpu_seconds(model.fit, X, s)
            accuracy = 100.0 * model.score(test, truth)
            yield {"method": name, "accuracy": accuracy, "seconds": seconds}


def main():
    parser = harness.parser(__doc__, out="methods", seeds=3)
    options = harness.parse(parser)
    seeds, n_rows = range(options.seeds), 1500
    if options.quick:
        seeds, n_rows = [0], 300
    cells = harness.grid(seed=seeds, labelling=LABELLINGS, rows=[n_rows])
    rows = harness.run_cells(cells, measure_cell, options, list(METHODS))
    by = {"index": "method", "columns": "labelling", "sort": False}
    best = rows.pivot_table("seconds", aggfunc="min", **by)
    table = rows.pivot_table("accuracy", **by)
    table["CPU s"] = best.mean(axis=1)
    harness.show(table, 1, "", **{"CPU s": ".2f"})


if __name__ == "__main__":
    main()
