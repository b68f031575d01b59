"""Measure how good a method is that was chosen without any truth.

    PROBGAP_DATA=folder python benchmarks/worlds.py --jobs 2 --rows worlds.jsonl
    python benchmarks/worlds.py --rows worlds.jsonl --only-summary

For each cell (data set, labelling, seed) all methods are fitted and judged on held-out rows
by the true labels. Beside that, a method is chosen without them: by ``compare_worlds``, by
scores that positive and unlabelled data allow, or always the same one. A choice is *near*
if its true accuracy is within half a point of the best method's; *regret* is the mean
difference, in points. A run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from default_cells import draw, observe
from joblib import Parallel, delayed
from leaderboard import LABELLINGS, OURS, read_rows

from probgap.diagnostics import METHODS, SLOW, compare_methods, compare_worlds

DATA = ("spambase", "waveform", "heart", "splice", "twonorm", "digits")
N_ROWS = 600
NEAR = 0.005
KEPT = ("accuracy", "lee_liu", "recall", "share_positive", "labelled_auc")


def run_cell(data, labelling, seed, n_worlds):
    """Return one row for each method: what is true, and what can be seen."""
    cell = draw(data, N_ROWS, seed)
    s = observe(cell, labelling, seed) == 1
    names = [name for name in METHODS if name not in SLOW]
    options = {"methods": names, "n_splits": 2, "random_state": seed}
    true = compare_methods(cell.X, s, truth=cell.y == 1, **options)
    seen = compare_worlds(cell.X, s, n_worlds=n_worlds, **options)
    found = {row["method"]: row["accuracy"] for row in seen.methods}
    about = {
        "data": data,
        "labelling": labelling,
        "seed": seed,
        "labelled": float(s.mean()),
        "class_prior": float(np.mean([world.class_prior for world in seen.worlds])),
    }
    return [
        about
        | {"method": row["method"], "worlds": found[row["method"]]}
        | {name: row[name] for name in KEPT}
        for row in true
    ]


def choices(frame):
    """Return the method that each rule chooses, of one cell."""
    prior, recall, called = (
        frame["class_prior"],
        frame["recall"],
        frame["share_positive"],
    )
    labelled = frame["labelled"]
    scores = {
        "worlds": frame["worlds"],
        "Lee-Liu score": frame["lee_liu"],
        # As if labelled positives were a random sample of all.
        "accuracy given the prior": 1.0 - prior - called + 2.0 * prior * recall,
        "accuracy on observed labels": 1.0
        - labelled
        - called
        + 2.0 * labelled * recall,
        "AUC of labelled rows": frame["labelled_auc"],
    }
    chosen = {
        rule: frame.loc[score.idxmax(), "method"] for rule, score in scores.items()
    }
    for name in (OURS, "naive SVM", "PU bagging"):
        chosen[f"always {name}"] = name
    return chosen


def summarise(rows):
    """Print how often each rule is near the best method, and its regret."""
    frame = pd.DataFrame(rows).dropna(subset=["accuracy", "worlds"])
    regrets = []
    for cell, part in frame.groupby(["data", "labelling", "seed"]):
        accuracy = part.set_index("method")["accuracy"]
        regrets += [
            (*cell, rule, float(accuracy.max() - accuracy[name]), name)
            for rule, name in choices(part).items()
        ]
    columns = ["data", "labelling", "seed", "rule", "regret", "method"]
    table = pd.DataFrame(regrets, columns=columns)
    by_rule = table.groupby("rule").regret
    shown = pd.DataFrame(
        {
            "near": 100 * by_rule.apply(lambda r: (r <= NEAR).mean()),
            "regret": 100 * by_rule.mean(),
            "worst": 100 * by_rule.max(),
        }
    ).sort_values("regret")
    print(f"{len(table) // len(shown)} cells")
    print(shown.round(2).to_string())
    of_worlds = table[table.rule == "worlds"]
    print(of_worlds.method.value_counts().to_string())
    print(
        table.groupby(["rule", "labelling"]).regret.mean().unstack().mul(100).round(2)
    )


def main():
    """Run what is missing, then print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, default=Path("worlds.jsonl"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only-summary", action="store_true")
    given = parser.parse_args()
    if not given.only_summary:
        have = {(r["data"], r["labelling"], r["seed"]) for r in read_rows(given.rows)}
        cells = [
            (data, labelling, seed)
            for seed in range(3000, 3000 + given.seeds)
            for data in DATA
            for labelling in LABELLINGS
        ]
        work = [delayed(run_cell)(*c, given.worlds) for c in cells if c not in have]
        done = Parallel(n_jobs=given.jobs, return_as="generator_unordered")(work)
        with given.rows.open("a") as file:
            for rows in done:
                file.write("".join(json.dumps(row) + "\n" for row in rows))
                file.flush()
                print(rows[0]["data"], rows[0]["labelling"], flush=True)
    summarise(read_rows(given.rows))


if __name__ == "__main__":
    main()
