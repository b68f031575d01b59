"""How many rows must a person look at? suggest() against other ways to choose them.

    PROBGAP_DATA=folder python benchmarks/active.py --half choosing     # where one may look
    PROBGAP_DATA=folder python benchmarks/active.py --half reporting    # once, at the end

It begins with few labels, a positive having one with probability c gap^k, and the default
fitted on them. Then, round by round, a way to choose names 10 rows, an oracle says what they
are, and the model is corrected by all answers so far (``probgap.audit.correct``). With --use
labels rows found positive are labelled instead, and the default is fitted again; a negative
has no place in ``fit(X, y)`` and is only not asked about again. What is counted is the rows
looked at until 90% of what the missing labels cost is won back: share = (model - naive) /
(clean - naive), accuracies on true test labels, naive an SVM on the labels of the beginning,
clean one on the truth. Draws that begin above 90% are left out.
"""

from __future__ import annotations

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
    f"FewLabels(c={c}, k={k})": tables.FewLabels(c, k)
    for c, k in ((0.1, 1), (0.1, 2), (0.2, 2))
}
GOAL = 0.9
N_TRAIN = 600
PER_ROUND, ROUNDS = 10, 12
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


def likeliest(model, X, known, n, _):
    return _least(-model.predict_proba(X)[:, 1], known, n)


def closest_to_even(model, X, known, n, _):
    """Ask about the rows whose chance is closest to 1/2."""
    return _least(abs(model.predict_proba(X)[:, 1] - 0.5), known, n)


def _least(value, known, n):
    order = np.argsort(np.where(known, np.inf, value), kind="stable")
    return order[: min(n, np.count_nonzero(~known))]


STRATEGIES = {
    "suggest": by_suggestion,
    "random": at_random,
    "random, undecided": undecided_at_random,
    "likeliest": likeliest,
    "closest to 1/2": closest_to_even,
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
    shares = curves.sub(rows["naive"], axis=0).div(
        rows["clean"] - rows["naive"], axis=0
    )
    reached = (shares >= GOAL).to_numpy()
    first = np.where(reached.any(axis=1), PER_ROUND * reached.argmax(axis=1), np.inf)
    rows = rows.assign(needed=first, start=shares[0]).join(shares)
    draw = ["data", "rate", "seed"]
    n_draws = len(rows.groupby(draw))
    ours = rows["method"].iloc[0]
    begins = rows[rows["method"] == ours].set_index(draw)["start"]
    rows = rows[rows.set_index(draw).index.map(begins) < GOAL]
    needed = rows.pivot(index=draw, columns="method", values="needed")
    print(f"{len(needed)} of {n_draws} draws begin below a share of {GOAL:.0%}")
    by_data = {
        name: lambda g, name=name: middle(g[g["data"] == name]["needed"])
        for name in rows["data"].unique()
    }
    table = harness.summarise(
        rows,
        "method",
        needed=lambda g: middle(g["needed"]),
        never=lambda g: int(np.isinf(g["needed"]).sum()),
        **by_data,
        **{
            f"share after {n}": lambda g, n=n: g[n].mean()
            for n in (*list(curves)[::2], list(curves)[-1])
        },
    )
    harness.show(
        table, 3, "Answers needed (median), draws that never get there", needed=".0f"
    )
    lines = {m: against(needed[ours], needed[m]) for m in needed if m != ours}
    if lines:
        table = pd.DataFrame.from_dict(lines, orient="index").rename_axis(
            f"{ours} against"
        )
        harness.show(table, 3)


def against(ours, other):
    """Return on how many draws ours needs fewer answers, as many and more."""
    most = (ROUNDS + 1) * PER_ROUND  # one round more for the goal not reached
    return {
        "fewer": int((ours < other).sum()),
        "as many": int((ours == other).sum()),
        "more": int((ours > other).sum()),
        "p": harness.compare(ours.clip(upper=most), other.clip(upper=most))[1],
    }


def middle(counts):
    """Return the median, the greater of two in the middle."""
    return float(np.quantile(counts, 0.5, method="higher")) if len(counts) else np.nan


def main():
    parser = harness.parser(__doc__, out="active", seeds=3)
    parser.add_argument("--half", choices=HALVES, default="choosing")
    parser.add_argument("--use", choices=("correct", "labels"), default="correct")
    parser.add_argument("--only", nargs="+", choices=STRATEGIES, default=[*STRATEGIES])
    options = harness.parse(parser)
    names, first = HALVES[options.half]
    cells = [
        {"data": name, "rate": rate, "seed": first + seed}
        | {"use": options.use, "rounds": 3 if options.quick else ROUNDS}
        for seed in range(options.seeds)
        for name in names
        for rate in RATES
    ]
    if options.quick:
        cells, options.only = cells[:2], options.only[:2]
    summarise(harness.run_cells(cells, measure_cell, options, options.only))


if __name__ == "__main__":
    main()
