"""Count what fit warns of: where the default works, and where it does not.

    PROBGAP_DATA=folder python benchmarks/warnings_of_fit.py             # the page's table
    PROBGAP_DATA=folder python benchmarks/warnings_of_fit.py --size 400 --problems 20

Cells of the choosing half of default.py (the paper's labellings, few labels, all labels
there, few labels at random of a rare class), labels at random, labels by a coin that
does not look at the samples, and random problems of default_random.py. A fit has failed
if it is more than 2 points of accuracy below the naive SVM; or as far below all negative
without 10 of balanced accuracy; or 10 points below the clean SVM with a balanced accuracy
under 70%.

Below the table stands what a test for labels at random would go by: how well observed gaps
tell labelled samples among those that seem positive (AUC).
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections import Counter, defaultdict

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from default import HALVES, observe, size_of
from default_cells import draw
from default_random import draw_problem
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.exceptions import UnreliableFitWarning

SIGNS = ("indistinct", "independent", "unstable", "undecided")
PANELS = {
    "paper": ("data", "paper"),
    "few": ("data", "few"),
    "rare": ("rare", "hidden at random"),
}
AT_RANDOM = (0.3, 0.5, 0.7)  # labelled, of the positives
BY_A_COIN = (0.05, 0.2, 0.5)  # labelled, of all


def cells(size, seed):
    """Give (kind, X, y, s, test samples, test labels, seed) of data sets."""
    chosen = HALVES["choosing"]
    for panel, (data, rates) in PANELS.items():
        for name in chosen[data]:
            for rate in chosen[rates]:
                cell = draw(name, size_of(panel, size), seed)
                kind = f"{panel}, at random" if rate.startswith("random") else panel
                yield kind, cell, observe(cell, panel, rate, seed), seed
    for name in chosen["data"]:
        cell = draw(name, size, seed)
        yield "nothing hidden", cell, cell.y, seed
        rng = np.random.default_rng([seed, *name.encode()])
        for share in AT_RANDOM:
            s = (cell.y == 1) & (rng.random(cell.y.size) < share)
            yield "at random", cell, s.astype(np.int64), seed
        for share in BY_A_COIN:
            s = rng.random(cell.y.size) < share
            yield "by a coin", cell, s.astype(np.int64), seed


def failed(predicted, X, y, s, X_test, y_test):
    """Say whether a fit was no use."""
    accuracy = np.mean(predicted == y_test)
    balanced = balanced_accuracy_score(y_test, predicted)
    naive = np.mean(SVC().fit(X, s).predict(X_test) == y_test)
    clean = np.mean(SVC().fit(X, y).predict(X_test) == y_test)
    return (
        accuracy < naive - 0.02
        or (accuracy < np.mean(y_test == 0) - 0.02 and balanced < 0.6)
        or (accuracy < clean - 0.1 and balanced < 0.7)
    )


def trend(model, s):
    """Give the AUC of gaps among samples that seem positive, and its upper limit."""
    chance = 0.5 * (1.0 + model.observed_gap_)
    likely = chance > 0.5 * model.gap_estimator_.ceiling_
    known = s[likely] == 1
    n_known, n_others = np.sum(known), np.sum(~known)
    if min(n_known, n_others) < 3:
        return np.nan, np.nan
    auc = roc_auc_score(known, chance[likely])
    # Hanley and McNeil's standard error.
    above, twice = auc / (2.0 - auc), 2.0 * auc**2 / (1.0 + auc)
    variance = auc * (1.0 - auc) + (n_known - 1) * (above - auc**2)
    variance += (n_others - 1) * (twice - auc**2)
    return auc, auc + 1.645 * np.sqrt(variance / (n_known * n_others))


def measure(X, y, s, X_test, y_test, seed):
    """Give the signs that fit warned of, whether it failed, and the trend of labels."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PGPUClassifier(random_state=seed).fit(X, s)
    signs = [
        w.message.sign for w in caught if issubclass(w.category, UnreliableFitWarning)
    ]
    is_bad = failed(model.predict(X_test), X, y, s, X_test, y_test)
    return signs, is_bad, *trend(model, s)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=800, help="training samples")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--first", type=int, default=700, help="first random problem")
    parser.add_argument("--problems", type=int, default=60)
    given = parser.parse_args()
    found = defaultdict(list)
    for kind, cell, s, seed in cells(given.size, given.seed):
        row = measure(cell.X, cell.y, s, cell.X_test, cell.y_test, seed)
        found[kind].append(row)
    for number in range(given.first, given.first + given.problems):
        problem = draw_problem(number)
        if problem is not None:
            regime, X, y, s, X_test, y_test = problem[:6]
            row = measure(X, y, s, X_test, y_test, number)
            found[f"random problems, {regime}"].append(row)
    print("| data | fits | failed, of them warned of | others, of them warned of |")
    print("|---|---|---|---|")
    by_sign = defaultdict(Counter)
    for kind, rows in found.items():
        bad = [bool(signs) for signs, is_bad, *_ in rows if is_bad]
        good = [bool(signs) for signs, is_bad, *_ in rows if not is_bad]
        print(f"| {kind} | {len(rows)} | {len(bad)}, {sum(bad)} |", end="")
        print(f" {len(good)}, {sum(good)} |")
        for signs, is_bad, *_ in rows:
            by_sign["failed" if is_bad else "others"].update(signs)
    for outcome, counts in by_sign.items():
        print(outcome, *(f"{sign} {counts[sign]}" for sign in SIGNS), sep="  ")
    for kind, rows in found.items():
        aucs, limits = np.array([row[2:] for row in rows]).T
        told = np.isfinite(aucs)
        if told.any():
            print(
                f"{kind}: AUC {np.median(aucs[told]):.2f}, upper limit under 0.6 in",
                end="",
            )
            print(f" {np.mean(limits[told] < 0.6):.0%} of {np.sum(told)}")


if __name__ == "__main__":
    main()
