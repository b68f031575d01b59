"""Choose a model by scores of observed labels: how much true accuracy that regains.

    PROBGAP_DATA=folder python benchmarks/selection.py --size 400 --jobs 2

Three choices, each among candidates that are scored on the same three folds by the labels that
were observed: C of a naive SVC, C of the final SVC of PGPUClassifier, one of six methods. A
candidate is chosen by its mean score, then fitted to all training rows; its accuracy on test
rows with true labels is what counts. Regained is (chosen - chosen by observed accuracy) / (best
- chosen by observed accuracy), of means over cells; "best" is the best candidate by the test
rows; "worse" counts cells more than a point below the choice by observed accuracy.
"""

import harness
import numpy as np
import pandas as pd
import tables
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.diagnostics import METHODS
from probgap.model_selection import PUStratifiedKFold, make_pu_scorer

OBSERVED = "observed accuracy"
WITHOUT_PRIOR = ("recall", "lee_liu")
WITH_PRIOR = ("accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision")
ESTIMATORS = (
    *("naive SVM", "Elkan-Noto", "Liu-Tao", "PU bagging", "PGPU (paper)", "probgap"),
)
VALUES_OF_C = (0.01, 0.1, 1.0, 10.0, 100.0)
CHOICES = {
    "C, naive": [str(C) for C in VALUES_OF_C],
    "C, PGPU": [str(C) for C in VALUES_OF_C],
    "estimator": list(ESTIMATORS),
}
CANDIDATES = [
    f"{choice}: {name}" for choice, names in CHOICES.items() for name in names
]


def make(candidate, seed):
    choice, name = candidate.split(": ")
    if choice == "C, naive":
        return SVC(C=float(name), class_weight="balanced")
    if choice == "C, PGPU":
        return PGPUClassifier(estimator=SVC(C=float(name)), random_state=seed)
    model = clone(METHODS[name])
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return model


def scorers(true_prior, estimated_prior):
    """Return scores of observed labels by their names."""
    found = {OBSERVED: "accuracy"}
    found |= {name: make_pu_scorer(name) for name in WITHOUT_PRIOR}
    for kind, prior in (("true", true_prior), ("estimated", estimated_prior)):
        for name in WITH_PRIOR:
            found[f"{name}, {kind} prior"] = make_pu_scorer(name, class_prior=prior)
    return found


def measure_cell(cell, candidates):
    seed = cell["seed"]
    drawn, s = tables.draw_cell(cell)
    folds = PUStratifiedKFold(3, shuffle=True, random_state=seed)
    with harness.quietly():
        estimate = PGPUClassifier(random_state=seed).fit(drawn.X, s).estimate_
        scoring = scorers(float(drawn.y.mean()), estimate.class_prior)
        for candidate in candidates:
            model = make(candidate, seed)
            found = cross_validate(model, drawn.X, s, scoring=scoring, cv=folds)
            row = {"method": candidate, "choice": candidate.split(": ")[0]}
            fitted = model.fit(drawn.X, s)
            row["accuracy"] = float(fitted.score(drawn.X_test, drawn.y_test))
            yield row | {key: float(found[f"test_{key}"].mean()) for key in scoring}


def summarise(rows):
    """Print a table for each choice: means over cells, in points."""
    scores = list(scorers(0.5, 0.5))
    for choice, found in rows.groupby("choice", sort=False):
        accuracy = harness.wide(found, "accuracy", tables.CELL)
        chosen = {score: choose(found, score, accuracy) for score in scores}
        chosen["best"] = accuracy.max(axis=1)
        chosen |= {f"always {name}": accuracy[name] for name in accuracy}
        naive = chosen[OBSERVED]
        gap = (chosen["best"] - naive).mean() or np.nan
        table = 100.0 * pd.DataFrame(chosen).groupby("panel", sort=False).mean().T
        table.insert(0, "all", {k: 100.0 * v.mean() for k, v in chosen.items()})
        table["regained"] = {k: (v - naive).mean() / gap for k, v in chosen.items()}
        table["worse"] = {k: (v < naive - 0.01).sum() for k, v in chosen.items()}
        title = f"{choice}: {len(accuracy)} cells, true accuracy on test rows"
        harness.show(table.rename_axis("chosen by"), 2, title)


def choose(rows, score, accuracy):
    """Return the accuracy of the candidate with the best score; it may have failed."""
    scores = harness.wide(rows, score, tables.CELL).fillna(-1e9).to_numpy()
    values = accuracy.to_numpy()[range(len(accuracy)), scores.argmax(axis=1)]
    return pd.Series(values, index=accuracy.index)


def main():
    parser = harness.parser(__doc__, out="selection")
    tables.add_options(parser, ("high", "low"))
    options = harness.parse(parser)
    cells = tables.chosen_cells(options)[: 1 if options.quick else None]
    summarise(harness.run_cells(cells, measure_cell, options, CANDIDATES))


if __name__ == "__main__":
    main()
