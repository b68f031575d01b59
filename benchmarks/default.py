"""Is the default right without tuning? Shares, worst cells and panels, in two halves.

    PROBGAP_DATA=folder python benchmarks/default.py --reduced          # a few minutes
    PROBGAP_DATA=folder python benchmarks/default.py --half choosing    # where one may look
    PROBGAP_DATA=folder python benchmarks/default.py --half reporting   # once, at the end
    python benchmarks/default.py --rows rows.jsonl --only-summary

Each row is one method on one draw of one data set under one labelling, and is kept in
--rows; what is there is not measured again, so that a run may be stopped and resumed.
After a change of code give the default another name (--call it-so) or another file. A
Python file named by --also holds more methods: ``METHODS = {name: function of a seed}``.

Panels: "paper", the paper's 17 labellings; "few", a positive is labelled with probability
c gap^k, or 60 or 80% of them are unlabelled at random; "rare", few labels at random of a
rare class that hardly parts; "nothing", all labels there. A cell is a data set under a
labelling, averaged over seeds; recovered share is averaged over cells where the clean SVM
is at least half a point above the naive one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
import warnings
from collections import defaultdict
from functools import cache
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from default_cells import (
    FEW_RATES,
    NOTHING_HIDDEN,
    PAPER_RATES,
    RARE_RATES,
    UCI,
    draw,
)
from scipy.stats import wilcoxon
from sklearn.ensemble import BaggingClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from probgap import PGPUClassifier
from probgap.baselines import (
    ElkanNotoClassifier,
    LiuTaoClassifier,
    NatarajanClassifier,
)
from probgap.datasets import hide_labels
from probgap.metrics import recovered_share

# The default was chosen on the first half, data sets, labellings and seeds, and is
# reported on the second. A cell of a half has its data set and its labelling there.
HALVES = {
    "choosing": {
        "data": ("square", "curved", "heart", "image", "breast_cancer"),
        "rare": ("faint-a", "faint-b", "faint-c", "faint-g"),
        "paper": tuple(PAPER_RATES)[::2],
        "few": tuple(FEW_RATES)[::2],
        "hidden at random": ("random(0.7)", "random(0.9)"),
        "first seed": 0,
    },
    "reporting": {
        "data": ("triangles", "banana", "splice", "twonorm", "digits", "tcdb"),
        "rare": ("faint-d", "faint-e", "faint-f", "faint-h"),
        "paper": tuple(PAPER_RATES)[1::2],
        "few": tuple(FEW_RATES)[1::2],
        "hidden at random": ("random(0.6)", "random(0.8)"),
        "first seed": 3000,
    },
}
# Sets with few samples for test are drawn more often.
DRAWS = {"heart": 5, "breast_cancer": 3}
PANELS = ("paper", "few", "rare", "nothing")
RATES = {"paper": PAPER_RATES, "few": FEW_RATES, "rare": RARE_RATES}
NAIVE, CLEAN, NEGATIVE, DEFAULT = "naive SVM", "clean SVM", "all negative", "default"
FEWEST_FOR_RARE = 1500
WORTH_MEASURING = 0.005  # clean - naive below half a point says nothing


class AllNegative:
    """Find nothing."""

    def fit(self, X, s):
        """Fit."""
        del X, s
        return self

    def predict(self, X):
        """Give 1 or 0."""
        return np.zeros(len(X), dtype=np.int64)


class BaggedTrees:
    """PU bagging (Mordelet and Vert): trees of the labelled against as many unlabelled."""

    def __init__(self, seed, n_trees=100):
        self.seed, self.n_trees = seed, n_trees

    def fit(self, X, s):
        """Fit."""
        rng = np.random.default_rng(self.seed)
        known, other = np.flatnonzero(s == 1), np.flatnonzero(s != 1)
        self.trees_ = []
        for _ in range(self.n_trees):
            rows = np.append(known, rng.choice(other, min(known.size, other.size)))
            tree = DecisionTreeClassifier(random_state=int(rng.integers(2**31)))
            self.trees_.append(tree.fit(X[rows], s[rows]))
        return self

    def predict(self, X):
        """Give 1 or 0."""
        votes = np.mean([tree.predict(X) for tree in self.trees_], axis=0)
        return (votes > 0.5).astype(np.int64)


class PulearnTrees:
    """The same by pulearn, with as many trees, and as many unlabelled as labelled.

    Its own settings, 10 trees on as many unlabelled samples as there are, do far worse.
    """

    def __init__(self, seed, n_trees=100):
        self.seed, self.n_trees = seed, n_trees

    def fit(self, X, s):
        """Fit."""
        from pulearn import BaggingPuClassifier  # noqa: PLC0415 (not all have it)

        n_known = int(np.count_nonzero(s == 1))
        self.trees_ = BaggingPuClassifier(
            DecisionTreeClassifier(),
            n_estimators=self.n_trees,
            max_samples=min(n_known, s.size - n_known),
            random_state=self.seed,
        )
        self.trees_.fit(X, s)
        return self

    def predict(self, X):
        """Give 1 or 0."""
        return (np.asarray(self.trees_.predict(X)) == 1).astype(np.int64)


@cache
def _kind_of_bagged_trees():
    if importlib.util.find_spec("pulearn"):
        return PulearnTrees
    print("pulearn is not installed (make peers does it): bagged trees are our own")
    return BaggedTrees


def bagged_trees(seed):
    """Give PU bagging of trees, by pulearn where it is installed."""
    return _kind_of_bagged_trees()(seed)


class Spies:
    """Two steps (Liu et al.): what looks less labelled than spies do is negative."""

    def __init__(self, seed, share=0.15, lost=0.05):
        self.seed, self.share, self.lost = seed, share, lost

    def fit(self, X, s):
        """Fit."""
        rng = np.random.default_rng(self.seed)
        known = np.flatnonzero(s == 1)
        n_spies = max(1, round(self.share * known.size))
        spies = rng.choice(known, n_spies, replace=False)
        seen = s.copy()
        seen[spies] = 0
        trees = BaggingClassifier(n_estimators=50, random_state=self.seed)
        chance = trees.fit(X, seen).predict_proba(X)[:, -1]
        negative = (s != 1) & (chance <= np.quantile(chance[spies], self.lost))
        rows = (s == 1) | (negative if negative.any() else s != 1)
        self.machine_ = SVC().fit(X[rows], s[rows])
        return self

    def predict(self, X):
        """Give 1 or 0."""
        return self.machine_.predict(X)


OURS = {DEFAULT: lambda seed: PGPUClassifier(random_state=seed)}
OTHERS = {
    "Elkan-Noto": lambda seed: ElkanNotoClassifier(random_state=seed),
    "Liu-Tao": lambda seed: LiuTaoClassifier(random_state=seed),
    "Natarajan": lambda seed: NatarajanClassifier(random_state=seed),
    "bagged trees": bagged_trees,
    "spies": Spies,
    "paper": lambda seed: PGPUClassifier.paper(random_state=seed),
}


def plan(half, panels, seeds, every):
    """List (panel, data, labelling, seed), seed by seed, so that a part is a whole."""
    chosen = HALVES[half]
    cells = []
    for panel in panels:
        names = chosen["rare" if panel == "rare" else "data"]
        if panel == "nothing":
            labellings = tuple(NOTHING_HIDDEN)
        elif panel == "rare":
            labellings = chosen["hidden at random"]
        else:
            labellings = chosen[panel][::every]
        cells += [
            (panel, name, labelling) for name in names for labelling in labellings
        ]
    first = chosen["first seed"]
    cells.sort(key=lambda cell: cell[1])
    return [
        (*cell, first + DRAWS.get(cell[1], 1) * seed + draw)
        for seed in range(seeds)
        for cell in cells
        for draw in range(DRAWS.get(cell[1], 1))
    ]


def size_of(panel, n_train):
    """Give the number of training samples: of a rare class, fewer hold too few."""
    return max(n_train, FEWEST_FOR_RARE) if panel == "rare" else n_train


def observe(cell, panel, labelling, seed):
    """Hide labels, each labelling from a seed of its own."""
    rate = {**NOTHING_HIDDEN, **RATES.get(panel, {})}[labelling]
    rng = np.random.default_rng([seed, *labelling.encode()])
    s = hide_labels(cell.X, cell.y, cell.gap, rate, random_state=rng)
    if s.sum() < 2:  # nothing could learn from fewer
        s[np.flatnonzero(cell.y)[np.argsort(-cell.gap[cell.y == 1])[:2]]] = 1
    return s


def measure(model, cell, target):
    """Fit one model, and say how right it is."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = np.asarray(model.fit(cell.X, target).predict(cell.X_test))
        row = {
            "seconds": time.process_time() - started,
            "accuracy": float(np.mean(predicted == cell.y_test)),
            "balanced": float(balanced_accuracy_score(cell.y_test, predicted)),
            "called": float(np.mean(predicted == 1)),
            "positive": float(np.mean(cell.y_test)),
        }
    if hasattr(model, "boundary_"):
        gap = model.gap_estimator_
        row["boundary"] = model.boundary_.value
        for name in ("ceiling_", "separability_", "rate_slope_"):
            row[name] = getattr(gap, name, None)
    return row


def run(jobs, methods, rows_file, n_train, known):
    """Measure what is not known yet, and add it to the file."""
    fixed = {NAIVE: lambda _: SVC(), CLEAN: lambda _: SVC(), NEGATIVE: _all_negative}
    with rows_file.open("a") as file:
        for panel, data, labelling, seed in jobs:
            size = size_of(panel, n_train)
            for name, make in {**fixed, **methods}.items():
                key = "/".join(map(str, (panel, data, labelling, seed, size, name)))
                if key in known:
                    continue
                cell = draw(data, size, seed)
                s = observe(cell, panel, labelling, seed)
                row = {"key": key, "panel": panel, "data": data}
                row |= {"labelling": labelling, "seed": seed, "method": name}
                row["size"] = size
                target = cell.y if name == CLEAN else s
                row |= {"labelled": int(s.sum()), **measure(make(seed), cell, target)}
                known[key] = row
                file.write(json.dumps(row) + "\n")
                file.flush()


def _all_negative(_):
    return AllNegative()


def average(rows, panel):
    """Average over seeds: {(data, labelling): {method: {number: mean}}}."""
    grouped = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["panel"] == panel:
            grouped[row["data"], row["labelling"]][row["method"]].append(row)
    numbers = ("accuracy", "balanced", "called", "positive", "seconds")
    return {
        cell: {
            method: {k: float(np.mean([r[k] for r in found])) for k in numbers}
            for method, found in by_method.items()
        }
        for cell, by_method in grouped.items()
    }


def share_of(methods, method):
    """Give the recovered share of a cell, or NaN where it would say nothing."""
    naive, clean = methods[NAIVE]["accuracy"], methods[CLEAN]["accuracy"]
    if clean - naive < WORTH_MEASURING:
        return np.nan
    return recovered_share(methods[method]["accuracy"], naive, clean)


def summarise(rows, methods):
    """Print each panel: a line a method, shares by data set, cells below naive."""
    for panel in PANELS:
        cells = average(rows, panel)
        if cells:
            print(f"\n== {panel}: {len(cells)} cells")
            for method in methods:
                having = {c: m for c, m in cells.items() if method in m}
                if having:
                    print_panel(panel, method, having)
    compare(average(rows, "few"), methods)


def print_panel(panel, method, cells):
    """Print one method on one panel."""
    mean = {
        k: np.mean([m[method][k] for m in cells.values()])
        for k in ("accuracy", "balanced", "called", "positive", "seconds")
    }
    shares = {cell: share_of(m, method) for cell, m in cells.items()}
    line = (
        f"{method:18} accuracy {mean['accuracy']:.2%}  balanced {mean['balanced']:.2%}  "
        f"called {mean['called']:.3f} of {mean['positive']:.3f}  {mean['seconds']:.2f} s"
    )
    if panel in ("paper", "few"):
        line += f"  share {np.nanmean(list(shares.values())):.3f}"
    print(line)
    if method in (NAIVE, CLEAN, NEGATIVE):
        return
    if panel == "rare":
        _print_below(cells, method, NEGATIVE, points=2.0, unless_balanced=0.1)
    elif panel == "nothing":
        _print_below(cells, method, CLEAN, points=0.5)
    else:
        by_data = defaultdict(list)
        for (data, _), share in shares.items():
            by_data[data].append(share)
        sets = {d: np.nanmean(v) for d, v in by_data.items() if np.isfinite(v).any()}
        uci = [share for d, share in sets.items() if d in UCI]
        print("    share:", *(f"{d} {v:.2f}" for d, v in sets.items()), end="")
        print(f"; UCI {np.mean(uci):.2f}" if uci else "")
        _print_below(cells, method, NAIVE, points=1.0)


def _print_below(cells, method, against, *, points, unless_balanced=np.inf):
    """List the cells where a method is too far below another."""
    worst = []
    for (data, labelling), methods in cells.items():
        mine, other = methods[method], methods[against]
        lost = 100.0 * (other["accuracy"] - mine["accuracy"])
        gained = mine["balanced"] - other["balanced"]
        if lost > points and gained < unless_balanced:
            worst.append(
                (lost, f"{data} {labelling} -{lost:.1f} ({100 * gained:+.1f})")
            )
    listed = "; ".join(text for _, text in sorted(worst, reverse=True))
    print(
        f"    {len(worst)} of {len(cells)} cells more than {points:g} below {against}"
    )
    if worst:
        print(f"      (accuracy lost, balanced accuracy gained): {listed}")


def compare(cells, methods):
    """Compare balanced accuracy with few labels, cell by cell."""
    ours = next((m for m in methods if m not in (NAIVE, CLEAN, NEGATIVE)), None)
    for other in OTHERS:
        pairs = [
            (m[ours]["balanced"], m[other]["balanced"])
            for m in cells.values()
            if ours in m and other in m
        ]
        if len(pairs) >= 6:
            mine, theirs = np.transpose(pairs)
            p = wilcoxon(mine, theirs, alternative="greater").pvalue
            gain = np.mean(mine - theirs)
            print(f"few labels, {ours} - {other}: balanced {gain:+.2%}, p {p:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", default="choosing", choices=tuple(HALVES))
    parser.add_argument("--panels", nargs="+", default=PANELS, choices=PANELS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--size", type=int, default=1500, help="training samples")
    parser.add_argument("--reduced", action="store_true", help="1 seed, 600 samples")
    parser.add_argument("--every", type=int, default=1, help="each n-th labelling only")
    parser.add_argument("--others", action="store_true", help="other methods, too")
    parser.add_argument("--call", default=DEFAULT, help="another name for the default")
    parser.add_argument("--also", type=Path, help="a Python file with more METHODS")
    parser.add_argument("--only", nargs="+", help="measure only these methods")
    parser.add_argument("--rows", type=Path, default=Path("default-rows.jsonl"))
    parser.add_argument("--only-summary", action="store_true")
    options = parser.parse_args()
    if options.reduced:
        options.seeds, options.size, options.every = 1, 600, 2
    methods = {options.call: OURS[DEFAULT]}
    if options.also:
        spec = importlib.util.spec_from_file_location("also", options.also)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        methods |= module.METHODS
    if options.others:
        methods |= OTHERS
    if options.only:
        methods = {name: methods[name] for name in options.only}
    known = {}
    if options.rows.exists():
        lines = options.rows.read_text().splitlines()
        known = {row["key"]: row for row in map(json.loads, lines)}
    jobs = plan(options.half, options.panels, options.seeds, options.every)
    started = time.perf_counter()
    if not options.only_summary:
        run(jobs, methods, options.rows, options.size, known)
    asked = set(jobs)
    rows = [
        row
        for row in known.values()
        if (row["panel"], row["data"], row["labelling"], row["seed"]) in asked
        and row["size"] == size_of(row["panel"], options.size)
    ]
    names = [name for name in {r["method"]: 0 for r in rows} if name != CLEAN]
    summarise(rows, [CLEAN, *names])
    print(f"\n{len(rows)} rows, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
