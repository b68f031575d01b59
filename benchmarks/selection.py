"""Choose a model by scores of observed labels: how much true accuracy that regains.

    PROBGAP_DATA=folder python benchmarks/selection.py --reduced --size 400    # minutes
    PROBGAP_DATA=folder python benchmarks/selection.py --size 400 --jobs 2
    PROBGAP_DATA=folder python benchmarks/selection.py --half reporting --jobs 8

Data and labellings are those of default_cells.py. Three choices are made, each among
candidates that are scored on the same three folds, by labels that were observed:

- "C, naive": C of SVC(class_weight="balanced"), unlabelled taken for negative;
- "C, PGPU": C of the final SVC of PGPUClassifier;
- "estimator": one of the methods of probgap.diagnostics.compare_methods.

A candidate is chosen by its mean score over the folds (the first of equals), then fitted
to all training rows; its accuracy on test rows with true labels is what counts. "observed
accuracy" is the naive score. Scores that need a class prior are given the true share of
positives ("true prior") or the one that PGPUClassifier() reads off the training rows
("read prior"). Regained is (chosen - chosen by observed accuracy) / (best - chosen by
observed accuracy), of means over cells; "best" is the best candidate by the test rows,
which no score of training rows can be expected to reach; "always" takes the same
candidate for every cell.

Each row of --rows is one candidate on one cell; rows that exist are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections import defaultdict
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from default_cells import HALVES, PANELS, cells, draw, observe, size_of
from joblib import Parallel, delayed
from sklearn.model_selection import cross_validate
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.diagnostics import METHODS
from probgap.model_selection import PUStratifiedKFold, make_pu_scorer

OBSERVED = "observed accuracy"
WITHOUT_PRIOR = ("recall", "lee_liu")
WITH_PRIOR = ("accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision")
ESTIMATORS = ("naive SVM", "Elkan-Noto", "Liu-Tao", "PU bagging", "PGPU (paper)")
VALUES_OF_C = (0.01, 0.1, 1.0, 10.0, 100.0)


def candidates(seed):
    """Return {(choice, name): model}."""
    found = {}
    for C in VALUES_OF_C:
        naive = SVC(C=C, class_weight="balanced")
        found["C, naive", str(C)] = naive
        final = PGPUClassifier(estimator=SVC(C=C), random_state=seed)
        found["C, PGPU", str(C)] = final
    for name in (*ESTIMATORS, "probgap"):
        model = METHODS[name]()
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        found["estimator", name] = model
    return found


def scorers(true_prior, read_prior):
    found = {OBSERVED: "accuracy"}
    found |= {name: make_pu_scorer(name) for name in WITHOUT_PRIOR}
    for kind, prior in (("true", true_prior), ("read", read_prior)):
        for name in WITH_PRIOR:
            scorer = make_pu_scorer(name, class_prior=prior)
            found[f"{name}, {kind} prior"] = scorer
    return found


def measure_cell(task, size, known):
    """Return the rows of a cell that are not known yet."""
    panel, data, labelling, seed = task
    todo = {
        key: model
        for key, model in candidates(seed).items()
        if (*task, size, *key) not in known
    }
    if not todo:
        return []
    cell = draw(data, size_of(panel, size), seed)
    s = observe(cell, labelling, seed)
    folds = PUStratifiedKFold(3, shuffle=True, random_state=seed)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reading = PGPUClassifier(random_state=seed).fit(cell.X, s).reading_
        scoring = scorers(float(cell.y.mean()), reading.class_prior)
        for (choice, name), model in todo.items():
            found = cross_validate(model, cell.X, s, scoring=scoring, cv=folds)
            means = {key: float(found[f"test_{key}"].mean()) for key in scoring}
            row = {"panel": panel, "data": data, "labelling": labelling, "seed": seed}
            row |= {"size": size, "choice": choice, "candidate": name}
            accuracy = float(model.fit(cell.X, s).score(cell.X_test, cell.y_test))
            rows.append(row | {"accuracy": accuracy, "scores": means})
    return rows


def key_of(row):
    names = ("panel", "data", "labelling", "seed", "size", "choice", "candidate")
    return tuple(row[name] for name in names)


def choose(rows, score):
    """Return the accuracy of the candidate with the best score; it may have failed."""
    values = np.nan_to_num([row["scores"][score] for row in rows], nan=-np.inf)
    return rows[int(values.argmax())]["accuracy"]


def summarise(rows):
    """Print a table for each choice: means over cells, in points."""
    groups = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row["choice"]][key_of(row)[:5]].append(row)
    for choice, found in groups.items():
        of_cell = list(found.values())
        best = np.array([max(row["accuracy"] for row in cell) for cell in of_cell])
        panels = np.array([cell[0]["panel"] for cell in of_cell])
        naive = np.array([choose(cell, OBSERVED) for cell in of_cell])
        names = sorted(set(panels), key=PANELS.index)
        print(f"\n{choice}: {len(of_cell)} cells, true accuracy on test rows")
        head = [f"{name} ({(panels == name).sum()})" for name in names]
        print(f"{'chosen by':34}{'all':>8}{'regained':>10}{'worse':>7}", end="")
        print("".join(f"{name:>12}" for name in head))
        rows_of = {"best": best}
        for row in of_cell[0]:
            name = row["candidate"]
            same = [r["accuracy"] for c in of_cell for r in c if r["candidate"] == name]
            rows_of[f"always {name}"] = np.array(same)
        for score in (*of_cell[0][0]["scores"], *rows_of):
            chosen = rows_of.get(score)
            if chosen is None:
                chosen = np.array([choose(cell, score) for cell in of_cell])
            share = (chosen - naive).mean() / max((best - naive).mean(), 1e-12)
            worse = (chosen < naive - 0.01).sum()
            line = f"{score:34}{100 * chosen.mean():8.2f}{share:10.2f}{worse:7}"
            means = (100 * chosen[panels == name].mean() for name in names)
            print(line + "".join(f"{mean:12.2f}" for mean in means))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--half", choices=HALVES, default="choosing")
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=["high", "low"])
    parser.add_argument("--reduced", action="store_true", help="few data sets")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--size", type=int, default=1500, help="training rows")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", type=Path, default=Path("selection.jsonl"))
    options = parser.parse_args()
    rows = []
    if options.rows.exists():
        rows = [json.loads(line) for line in options.rows.read_text().splitlines()]
    known = {key_of(row) for row in rows}
    tasks = [
        task
        for panel in options.panels
        for task in cells(options.half, panel, options.seeds, reduced=options.reduced)
    ]
    measured = Parallel(options.jobs, return_as="generator")(
        delayed(measure_cell)(task, options.size, known) for task in tasks
    )
    with options.rows.open("a") as file:
        for new in measured:
            rows += new
            file.writelines(json.dumps(row) + "\n" for row in new)
            file.flush()
    asked = {(*task, options.size) for task in tasks}
    summarise([row for row in rows if key_of(row)[:5] in asked])


if __name__ == "__main__":
    main()
