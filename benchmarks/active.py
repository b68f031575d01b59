"""How many rows must a person look at? suggest() against other ways to choose them.

    PROBGAP_DATA=folder python benchmarks/active.py --reduced           # about a minute
    PROBGAP_DATA=folder python benchmarks/active.py --half choosing     # where one may look
    PROBGAP_DATA=folder python benchmarks/active.py --half reporting    # once, at the end
    python benchmarks/active.py --half reporting --only-summary

It begins with few labels, a positive having one with probability c gap^k, and the default
fitted on them. Then, round by round, a way to choose names 10 rows, an oracle says what they
are, and the model is corrected by all answers so far (``probgap.audit.correct``). With --use
labels rows found positive are labelled instead, and the default is fitted again; a negative
has no place in ``fit(X, y)`` and is only not asked about again. What is counted is the rows
looked at until 90% of what the missing labels cost is won back: share = (model - naive) /
(clean - naive), accuracies on true test labels, naive an SVM on the labels of the beginning,
clean one on the truth. Draws that begin above 90% are left out.

Each row of --rows is one way to choose on one draw, with accuracies after each round; what is
there is not measured again. A Python file named by --also holds more ways to choose:
``STRATEGIES = {name: function of (model, X, known, n, rng)}``, with ``known`` True for rows
whose class is known, that gives rows.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import warnings
from collections import defaultdict
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from default_cells import FewLabels, draw
from scipy.stats import wilcoxon
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.audit import CorrectedClassifier, correct, suggest
from probgap.datasets import hide_labels
from probgap.metrics import recovered_share

# What suggest() does was chosen on the first half and is reported on the second.
HALVES = {
    "choosing": {"data": ("square", "image", "breast_cancer"), "first seed": 0},
    "reporting": {
        "data": ("triangles", "banana", "twonorm", "digits"),
        "first seed": 1000,
    },
}
RATES = (FewLabels(0.1, 1), FewLabels(0.1, 2), FewLabels(0.2, 2))
GOAL = 0.9
N_TRAIN = 600
PER_ROUND = 10
ROUNDS = 12
FEWEST = 3  # labels to begin with


def base_of(model):
    """Give the model that was fitted, without its correction."""
    return model.model if isinstance(model, CorrectedClassifier) else model


def by_suggestion(model, X, known, n, rng):
    """Ask what suggest() says."""
    return suggest(model, X, n, labelled=known, random_state=rng)


def at_random(model, X, known, n, rng):
    """Ask about any rows."""
    del model, X
    return rng.permutation(np.flatnonzero(~known))[:n]


def undecided_at_random(model, X, known, n, rng):
    """Ask about rows that the boundary leaves undecided, then about any."""
    base = base_of(model)
    gap = base.observed_gap_
    undecided = (gap > base.boundary_.value) & (gap <= 0.0)
    rows = at_random(model, X, known, known.size, rng)
    return np.append(rows[undecided[rows]], rows[~undecided[rows]])[:n]


def likeliest(model, X, known, n, rng):
    """Ask about the rows that are most likely positive."""
    del rng
    return _least(-model.predict_proba(X)[:, 1], known, n)


def closest_to_even(model, X, known, n, rng):
    """Ask about the rows whose chance is closest to 1/2."""
    del rng
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


def fit(X, labels, seed):
    """Fit the default, quietly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PGPUClassifier(random_state=seed).fit(X, labels)


def simulate(cell, s, choose, *, use, rounds, seed):
    """Ask and learn, round by round: the rows looked at, and accuracies."""
    rng = np.random.default_rng([seed, 1])
    labels, known, rows = s.copy(), s == 1, np.zeros(0, dtype=np.intp)
    model = fit(cell.X, labels, seed)
    asked, accuracy = [], []
    for turn in range(rounds + 1):
        asked.append(rows.size)
        accuracy.append(float(np.mean(model.predict(cell.X_test) == cell.y_test)))
        if turn == rounds:
            break
        rows = np.append(rows, choose(model, cell.X, known, PER_ROUND, rng))
        known[rows] = True
        if use == "labels":
            labels[rows] = cell.y[rows]
            model = fit(cell.X, labels, seed)
        else:
            model = correct(base_of(model), cell.X[rows], cell.y[rows])
    return {"asked": asked, "accuracy": accuracy}


def observe(cell, rate, seed):
    """Hide labels, and see to it that there are a few."""
    rng = np.random.default_rng([seed, *str(rate).encode()])
    s = hide_labels(cell.X, cell.y, cell.gap, rate, random_state=rng)
    clearest = np.flatnonzero(cell.y)[np.argsort(-cell.gap[cell.y == 1])]
    missing = clearest[s[clearest] == 0][: max(0, FEWEST - int(s.sum()))]
    s[missing] = 1
    return s


def run(jobs, strategies, rows_file, known, *, use, rounds):
    """Simulate what is not known yet, and add it to the file."""
    with rows_file.open("a") as file:
        for data, rate, seed in jobs:
            for name, choose in strategies.items():
                key = key_of(data, rate, seed, rounds, use, name)
                if key in known:
                    continue
                cell = draw(data, N_TRAIN, seed)
                s = observe(cell, rate, seed)
                naive, clean = (
                    float(
                        np.mean(
                            SVC().fit(cell.X, t).predict(cell.X_test) == cell.y_test
                        )
                    )
                    for t in (s, cell.y)
                )
                row = {"key": key, "data": data, "rate": str(rate), "seed": seed}
                row |= {"strategy": name, "naive": naive, "clean": clean}
                row |= simulate(cell, s, choose, use=use, rounds=rounds, seed=seed)
                known[key] = row
                file.write(json.dumps(row) + "\n")
                file.flush()


def key_of(*parts):
    """Name a row."""
    return "/".join(map(str, parts))


def shares(row):
    """Give the recovered share after each round."""
    return [recovered_share(a, row["naive"], row["clean"]) for a in row["accuracy"]]


def answers_needed(row):
    """Give the rows looked at until the goal is reached, or infinity."""
    reached = [a for a, v in zip(row["asked"], shares(row), strict=True) if v >= GOAL]
    return reached[0] if reached else np.inf


def summarise(rows):
    """Print a line a strategy: answers needed, and shares on the way."""
    by_draw = defaultdict(dict)
    for row in rows:
        by_draw[row["data"], row["rate"], row["seed"]][row["strategy"]] = row
    names = list(dict.fromkeys(row["strategy"] for row in rows))
    draws = {d: found for d, found in by_draw.items() if len(found) == len(names)}
    below = {d: f for d, f in draws.items() if shares(f[names[0]])[0] < GOAL}
    print(f"{len(below)} of {len(draws)} draws begin below a share of {GOAL:.0%}")
    needed = {n: [answers_needed(f[n]) for f in below.values()] for n in names}
    for name in names:
        print_strategy(name, [f[name] for f in below.values()], needed[name])
    for name in names[1:]:
        pairs = list(zip(needed[names[0]], needed[name], strict=True))
        print(
            f"{names[0]} against {name}: fewer answers in {sum(a < b for a, b in pairs)},",
            f"as many in {sum(a == b for a, b in pairs)},",
            f"more in {sum(a > b for a, b in pairs)}, p = {p_value(pairs):.1g}",
        )


def p_value(pairs):
    """Give Wilcoxon's paired p-value, with one round more for the goal not reached."""
    cut = np.minimum(pairs, (ROUNDS + 1) * PER_ROUND)
    return wilcoxon(*cut.T).pvalue if (cut[:, 0] != cut[:, 1]).any() else 1.0


def print_strategy(name, rows, needed):
    """Print the line of one strategy, and one with its data sets."""
    curves = np.array([shares(row) for row in rows])
    turns = sorted({*range(0, curves.shape[1], 2), curves.shape[1] - 1})
    print(
        f"{name:18} answers needed: median {middle(needed)}, never in",
        f"{rows[0]['asked'][-1]}: {np.isinf(needed).sum()} of {len(needed)}; share after",
        ", ".join(f"{PER_ROUND * t}: {curves[:, t].mean():.3f}" for t in turns),
    )
    by_data = defaultdict(list)
    for row, count in zip(rows, needed, strict=True):
        by_data[row["data"]].append(count)
    print("    median of", *(f"{d} {middle(v)}," for d, v in by_data.items()))


def middle(counts):
    """Give the median, the greater of two in the middle."""
    return f"{np.quantile(counts, 0.5, method='higher'):.0f}"


def read_rows(path):
    """Read rows by their keys."""
    if not path.exists():
        return {}
    lines = path.read_text().splitlines()
    return {row["key"]: row for row in map(json.loads, lines)}


def load_strategies(path):
    """Read STRATEGIES from a Python file."""
    spec = importlib.util.spec_from_file_location("also", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.STRATEGIES


def main():
    """Run the simulation and print its summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=HALVES, default="choosing")
    parser.add_argument("--use", choices=("correct", "labels"), default="correct")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--reduced", action="store_true")
    parser.add_argument("--rows", type=Path, default=Path("active.jsonl"))
    parser.add_argument("--also", type=Path)
    parser.add_argument("--only", nargs="+", help="strategies by their names")
    parser.add_argument("--only-summary", action="store_true")
    given = parser.parse_args()
    strategies = STRATEGIES | (load_strategies(given.also) if given.also else {})
    strategies = {
        n: f for n, f in strategies.items() if not given.only or n in given.only
    }
    half = HALVES[given.half]
    rates, seeds, rounds = RATES, given.seeds, ROUNDS
    if given.reduced:
        rates, seeds, rounds = RATES[1:2], 2, 6
    jobs = [
        (name, rate, half["first seed"] + seed)
        for seed in range(seeds)
        for name in half["data"]
        for rate in rates
    ]
    known = read_rows(given.rows)
    if not given.only_summary:
        run(jobs, strategies, given.rows, known, use=given.use, rounds=rounds)
    wanted = {key_of(*job, rounds, given.use, n) for job in jobs for n in strategies}
    summarise([row for key, row in known.items() if key in wanted])


if __name__ == "__main__":
    main()
