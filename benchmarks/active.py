"""How many rows must a person look at? suggest() against other ways to choose them.

    PROBGAP_DATA=folder python benchmarks/active.py --half choosing     # where one may look
    PROBGAP_DATA=folder python benchmarks/active.py --half reporting    # once, at the end

What is counted, and what --use labels does instead of ``probgap.audit.correct``, is told in
docs/design/audit.md.
"""

from functools import partial

import harness
import numpy as np
import pandas as pd
import tables
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.audit import CorrectedClassifier, correct, suggest
from probgap.datasets import hide_labels

# What suggest() does was chosen on the first half and is reported on the second.
HALVES = {
    "choosing": (("square", "image", "breast_cancer"), 0),
    "reporting": (("triangles", "banana", "twonorm", "digits"), 1000),
}
# By names that seed the labelling.
RATES = {
    f"FewLabels(c={c}, k={k})": partial(tables.few_labels, c=c, k=k)
    for c, k in ((0.1, 1), (0.1, 2), (0.2, 2))
}
GOAL = 0.9
N_TRAIN = 600
PER_ROUND, ROUNDS = 10, 12
CELL = ["data", "rate", "seed"]
FEWEST = 3  # labels to begin with


def base_of(model):
    """Return the model that was fitted, without its correction."""
    return model.model if isinstance(model, CorrectedClassifier) else model


def by_suggestion(model, X, known, n, rng):
    return suggest(model, X, n, labelled=known, random_state=rng)


def at_random(_, __, known, n, rng):
    return rng.permutation(np.flatnonzero(~known))[:n]


def undecided_at_random(model, X, known, n, rng):
    """Ask about rows that the boundary leaves undecided, then about any."""
    base = base_of(model)
    gap = base.observed_gap_
    undecided = (gap > base.boundary_.value) & (gap <= 0.0)
    rows = at_random(model, X, known, known.size, rng)
    return np.append(rows[undecided[rows]], rows[~undecided[rows]])[:n]


def least(value, model, X, known, n, _):
    """Ask about the rows with the least value of their chance."""
    chance = value(model.predict_proba(X)[:, 1])
    order = np.argsort(np.where(known, np.inf, chance), kind="stable")
    return order[: min(n, np.count_nonzero(~known))]


STRATEGIES = {
    "suggest": by_suggestion,
    "random": at_random,
    "random, undecided": undecided_at_random,
    "likeliest": partial(least, np.negative),
    "closest to 1/2": partial(least, lambda chance: abs(chance - 0.5)),
}


def measure_cell(cell, strategies):
    seed, rate = cell["seed"], cell["rate"]
    drawn = tables.draw(cell["data"], N_TRAIN, seed)
    rng = np.random.default_rng([seed, *rate.encode()])
    s = hide_labels(drawn.X, drawn.y, drawn.gap, RATES[rate], random_state=rng)
    s = tables.top_up(s, drawn.y, drawn.gap, FEWEST)
    naive, clean = (accuracy_of(SVC().fit(drawn.X, t), drawn) for t in (s, drawn.y))
    with harness.quietly():
        for name in strategies:
            row = {"method": name, "naive": naive, "clean": clean}
            yield row | {"accuracy": simulate(drawn, s, STRATEGIES[name], cell)}


def accuracy_of(model, drawn):
    return float(np.mean(model.predict(drawn.X_test) == drawn.y_test))


def simulate(drawn, s, choose, cell):
    """Ask and learn, round by round: the accuracy after each."""
    seed = cell["seed"]
    rng = np.random.default_rng([seed, 1])
    labels, known, rows = s.copy(), s == 1, np.zeros(0, dtype=np.intp)
    model = PGPUClassifier(random_state=seed).fit(drawn.X, labels)
    accuracy = [accuracy_of(model, drawn)]
    for _ in range(cell["rounds"]):
        rows = np.append(rows, choose(model, drawn.X, known, PER_ROUND, rng))
        known[rows] = True
        if cell["use"] == "labels":
            labels[rows] = drawn.y[rows]
            model = PGPUClassifier(random_state=seed).fit(drawn.X, labels)
        else:
            model = correct(base_of(model), drawn.X[rows], drawn.y[rows])
        accuracy.append(accuracy_of(model, drawn))
    return accuracy


def summarise(rows):
    curves = pd.DataFrame(rows["accuracy"].tolist(), index=rows.index)
    curves.columns = [PER_ROUND * turn for turn in curves]
    possible = rows["clean"] - rows["naive"]
    shares = curves.sub(rows["naive"], axis=0).div(possible, axis=0)
    reached = (shares >= GOAL).to_numpy()
    first = np.where(reached.any(axis=1), PER_ROUND * reached.argmax(axis=1), np.inf)
    rows = rows.assign(needed=first)
    # All methods of a draw begin with the same model.
    rows = rows.join(shares)[shares[0] < GOAL]
    needed = harness.wide(rows, "needed", CELL)
    print(f"{len(needed)} draws begin below a share of {GOAL:.0%}")
    kept = [*list(curves)[::2], list(curves)[-1]]
    table = harness.summarise(
        rows,
        "method",
        needed=lambda g: middle(g["needed"]),
        never=lambda g: int(np.isinf(g["needed"]).sum()),
    )
    by_data = rows.pivot_table("needed", "method", "data", aggfunc=middle, sort=False)
    table = table.join(by_data).join(rows.groupby("method")[kept].mean())
    title = "Answers needed (median), draws that never get there, shares after answers"
    harness.show(table, 3, title, needed=".0f", **dict.fromkeys(by_data, ".0f"))
    # One round more for the goal not reached.
    needed = needed.clip(upper=(ROUNDS + 1) * PER_ROUND)
    pairs = {m: harness.compare(needed.iloc[:, 0], needed[m]) for m in needed}
    found = {m: {"mean": mean, "p": p} for m, (mean, p) in pairs.items()}
    harness.show(harness.lines(found, f"{needed.columns[0]} less"), 3)


def middle(counts):
    """Return the median, the greater of two in the middle."""
    return float(np.quantile(counts, 0.5, method="higher"))


def main():
    parser = harness.parser(__doc__, out="active", seeds=3)
    parser.add_argument("--half", choices=HALVES, default="choosing")
    parser.add_argument("--use", choices=("correct", "labels"), default="correct")
    parser.add_argument("--only", nargs="+", choices=STRATEGIES, default=[*STRATEGIES])
    options = harness.parse(parser)
    names, first = HALVES[options.half]
    cells = harness.grid(
        seed=range(first, first + options.seeds),
        data=names,
        rate=RATES,
        use=[options.use],
        rounds=[3 if options.quick else ROUNDS],
    )
    if options.quick:
        cells, options.only = cells[:2], options.only[:2]
    summarise(harness.run_cells(cells, measure_cell, options, options.only))


if __name__ == "__main__":
    main()
