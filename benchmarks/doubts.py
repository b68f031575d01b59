"""Whether the warnings of ``fit`` tell fits that cannot be believed from others.

    python benchmarks/doubts.py        # five CPU minutes

Four data sets, few labels: of clear positives, of positives at random, or by a coin whatever
the sample is. By the number of labels: how often each warning is issued, how often the
interval of the count holds, and by which factor the count is typically off.
"""

import warnings
from functools import cache

import harness
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from probgap import PGPUClassifier
from probgap.datasets import make_square, platt_gap

DATA = ("breast_cancer", "digits", "square", "linear")
HOW = ("clear", "random", "coin")
N_LABELLED = (6, 9, 15, 30, 60)


@cache
def draw(name):
    """Return rows, which are positive, and their gaps."""
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True)
        X, positive = StandardScaler().fit_transform(X), y == 0
    elif name == "digits":
        X, y = load_digits(return_X_y=True)
        X, positive = X[:900] / 16.0, y[:900] % 3 == 0
    elif name == "square":
        X, y, _ = make_square(600, random_state=3)
        positive = y == 1
    else:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(700, 8))
        chance = 1.0 / (1.0 + np.exp(1.5 - 1.2 * X[:, 0] - X[:, 1]))
        positive = rng.random(700) < chance
    return X, positive, platt_gap(X, positive.astype(int), random_state=0)


def measure_cell(cell, _):
    """Fit to some labels; yield warnings, whether the interval holds, and the factor."""
    X, positive, gap = draw(cell["data"])
    weight = {
        "clear": (gap.clip(0.0) ** 2 + 1e-3) * positive,
        "random": positive.astype(float),
        "coin": np.ones(len(X)),
    }[cell["how"]]
    rng = np.random.default_rng([cell["seed"], cell["labels"]])
    rows = rng.choice(len(X), cell["labels"], replace=False, p=weight / weight.sum())
    labelled = np.isin(np.arange(len(X)), rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = PGPUClassifier(random_state=0).fit(X, labelled).estimate_
    codes = {getattr(each.message, "code", "") for each in caught}
    hidden = int((positive & ~labelled).sum())
    low, high = found.n_hidden_interval
    row = {code: code in codes for code in ("few", "indistinct")}
    row["holds"] = bool(low <= hidden <= high)
    yield row | {"off": float(abs(np.log(found.n_hidden / hidden)))}


def main():
    options = harness.parse(harness.parser(__doc__, out="doubts", seeds=3))
    seeds = range(options.seeds)
    cells = harness.grid(how=HOW, labels=N_LABELLED, data=DATA, seed=seeds)
    rows = harness.run_cells(
        cells[:4] if options.quick else cells, measure_cell, options
    )
    table = harness.summarise(
        rows,
        ["how", "labels"],
        fits=len,
        few=lambda g: g["few"].sum(),
        indistinct=lambda g: g["indistinct"].sum(),
        holds=lambda g: g["holds"].sum(),
        off_by=lambda g: np.exp(g["off"].median()),
    )
    harness.show(table, 1)


if __name__ == "__main__":
    main()
