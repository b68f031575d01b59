"""Measure what it gains to tell what is known about the labels.

    PROBGAP_DATA=folder python benchmarks/who.py --half choosing    # for development
    PROBGAP_DATA=folder python benchmarks/who.py --half reporting --part all --jobs 16
    PROBGAP_DATA=folder python benchmarks/who.py --kinds clinic date --methods default --quick

Tables and how their labels depended on columns are those of looked.py; docs/design/who.md has
results. Parts:

- labelled_by: the columns are declared. "default" has them as features, "left out" does without
  them, "SAR-EM told" has them as the only features of its propensity, a feature for each level;
  "true labels" are the default's learners on true labels and without added columns.
- negatives: 30 checked negatives for 100 labels, from the top quarter of the unlabelled rows or
  from all; the positives that the checks found are labelled, with negatives told and without.
  "list" are all rows without a label, among which the negatives are if they are not told, and
  "rest" those that nobody checked.
- groups: each row three times with noise, all labelled or none.
- question: nothing is declared, and the column that labels go by is looked for, in tables whose
  added columns are categories or dates. "first": it comes first; "asked": it is asked about;
  "wrong": another column is; "covers" and "estimate" are of the count if it were declared, and
  "cost" is CPU seconds of the question, relative to those of the fit.
"""

from functools import partial

import harness
import looked
import numpy as np
import tables
from looked import Case
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from probgap import PGPUClassifier
from probgap._core.mixture import MixedClassifier
from probgap.diagnostics import labelling_columns
from probgap.labelling import make_factor
from probgap.methods import SAREMClassifier
from probgap.tables import TableClassifier

N_TRAIN = 1500
DEFAULT, LEFT, TOLD, CLEAN = "default", "left out", "SAR-EM told", "true labels"
DECLARED, KEPT = "labelled_by", "labelled_by + keep"
METHODS = (DEFAULT, LEFT, TOLD, DECLARED, KEPT, CLEAN)
PER_LABEL, TOP = 0.3, 0.25  # checked negatives, and the share of rows that is the top
LOOKED_AT = 0.5  # of the positives that were easy enough, in the other two parts
ENOUGH = 30  # labels, for a column to be found
COPIES, NOISE = 3, 0.2  # of a row in a group, and their standard deviation
ROUND = 0.01  # relative rates are shown as whole percent
CELL = ["kind", "data", "seed"]


# --- labelled_by


def measure_declared(cell, methods):
    case, seed = Case(cell), cell["seed"]
    for name in methods:
        if name == KEPT and cell["kind"] not in looked.BOTH_ROLES:
            continue
        seconds, model, X_test, scores = fit(name, case, seed)
        row = {"method": name, "seconds": seconds, "labelled": int(case.s.sum())}
        row |= found_hidden(case.y, case.s, scores) | on_test(
            model, X_test, case.y_test
        )
        yield row | count(model, case.y.sum() - case.s.sum()) | rates(model, case)


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


def found_hidden(y, s, scores):
    """Return the average precision of the hidden among unlabelled rows."""
    unlabelled = s != 1
    return {
        "AP": 100.0 * float(average_precision_score(y[unlabelled], scores[unlabelled]))
    }


def on_test(model, X_test, y_test):
    with harness.quietly():
        right = np.mean((model.predict(X_test) == 1) == y_test)
        score = model.decision_function(X_test)
    auc = 100.0 * float(roc_auc_score(y_test, score))
    return {"AUC": auc, "accuracy": 100.0 * float(right)}


def count(model, hidden):
    """Return whether the 90% interval of the count holds, its width and the estimate."""
    if not hasattr(model, "estimate_"):
        return {}
    found, truth = model.estimate_, max(1, int(hidden))
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
    held, groups = [], model.labelling_.groups
    names = list(dict.fromkeys(group.column for group in groups))
    for name, place in zip(names, case.declared, strict=True):
        factor = make_factor(name, case.full[0][:, place])
        truth = case.rates_of(factor.code)
        truth = {factor.levels[code]: rate for code, rate in truth.items()}
        held += [
            group.rate_low - ROUND < truth[group.level] < group.rate_high + ROUND
            for group in groups
            if group.column == name and group.level in truth
        ]
    return {"rates held": float(np.mean(held))}


# --- checked negatives


def measure_negatives(cell, methods):
    half, seed = looked.HALVES[cell["half"]], cell["seed"]
    drawn = tables.draw(cell["data"], cell["size"], seed)
    rng = np.random.default_rng([seed, *cell["kind"].encode()])
    s = looked.label(drawn, half, seed, rng, LOOKED_AT)
    with harness.quietly():
        first = PGPUClassifier(random_state=seed).fit(drawn.X, s)
    unlabelled = np.flatnonzero(s == 0)
    pool = unlabelled[np.argsort(-first.probability_[unlabelled], kind="stable")]
    if cell["kind"] == "top":
        pool = pool[: round(TOP * pool.size)]
    pool = rng.permutation(pool)
    checked = pool[np.cumsum(1 - drawn.y[pool]) <= round(PER_LABEL * s.sum())]
    s[checked[drawn.y[checked] == 1]] = 1
    told = s.copy()
    told[checked[drawn.y[checked] == 0]] = -1
    for name in methods:
        known, negative = (told, -1) if name == "negatives" else (s, None)
        model = PGPUClassifier(random_state=seed, pos_label=1, neg_label=negative)
        with harness.quietly():
            seconds, _ = harness.cpu_seconds(model.fit, drawn.X, known)
            chance = model.predict_proba(drawn.X_test)[:, -1]
        row = {"method": name, "seconds": seconds, "checked": int((told < 0).sum())}
        row |= on_test(model, drawn.X_test, drawn.y_test)
        row["Brier, test"] = 100.0 * float(brier_score_loss(drawn.y_test, chance))
        for where, rows in (("list", s == 0), ("rest", told == 0)):
            truth, given = drawn.y[rows], model.probability_[rows]
            row[f"AP, {where}"] = 100.0 * float(average_precision_score(truth, given))
            row[f"Brier, {where}"] = 100.0 * float(np.mean((given - truth) ** 2))
        row["AP"] = row["AP, rest"]
        yield row | count(model, drawn.y.sum() - s.sum())


# --- rows that belong together


def measure_groups(cell, methods):
    half, seed = looked.HALVES[cell["half"]], cell["seed"]
    drawn = tables.draw(cell["data"], cell["size"] // COPIES, seed)
    rng = np.random.default_rng([seed, COPIES])
    s = np.repeat(looked.label(drawn, half, seed, rng, LOOKED_AT), COPIES)
    y, group = np.repeat(drawn.y, COPIES), np.repeat(np.arange(drawn.y.size), COPIES)
    X = np.repeat(drawn.X, COPIES, axis=0)
    X = X + NOISE * rng.normal(size=X.shape)
    X_test = drawn.X_test + NOISE * rng.normal(size=drawn.X_test.shape)
    for name in methods:
        model = PGPUClassifier(random_state=seed)
        train = partial(model.fit, groups=group) if name == "groups" else model.fit
        with harness.quietly():
            seconds, _ = harness.cpu_seconds(train, X, s)
        row = {"method": name, "seconds": seconds}
        row |= found_hidden(y, s, model.probability_)
        row |= on_test(model, X_test, drawn.y_test) | count(model, y.sum() - s.sum())
        row["held-out AUC"] = 100.0 * float(roc_auc_score(y, model.posterior_))
        yield row | {"optimism": row["held-out AUC"] - row["AUC"]}


# --- the question


def measure_question(cell, methods):
    del methods
    case, seed = Case(cell), cell["seed"]
    X, labelled = case.frame, case.s == 1
    model = TableClassifier(random_state=seed)
    with harness.quietly():
        plain, _ = harness.cpu_seconds(model.fit, X, labelled)
        ask = partial(labelling_columns, random_state=seed)
        seconds, found = harness.cpu_seconds(ask, model, X, labelled)
    depends = cell["kind"] != "nothing"
    deciding = {str(X.columns[at]) for at in case.declared} if depends else set()
    row = {"method": "question", "seconds": plain + seconds, "cost": seconds / plain}
    row |= {"labelled": int(labelled.sum()), "first": False, "asked": False}
    row |= {"wrong": bool(found) and found[0].strong}
    if found and found[0].name in deciding:
        row |= {"first": True, "asked": found[0].strong, "wrong": False}
        hidden = int(case.y.sum() - case.s.sum())
        low, high = found[0].n_hidden_interval
        row["covers"] = bool(low - 0.5 <= hidden <= high + 0.5)
        row["estimate"] = found[0].n_hidden / max(1, hidden)
    yield row | {"evidence": found[0].evidence if found else 0.0}


def summarise_question(rows):
    for title, part in (
        ("all cells", rows),
        (f"{ENOUGH} labels or more", rows[rows["labelled"] >= ENOUGH]),
    ):
        shown = part.groupby("kind", sort=False)
        table = shown[["first", "asked", "wrong", "covers"]].mean(numeric_only=False)
        table["tables"] = shown.size()
        table = table.join(shown[["estimate", "evidence", "cost"]].median())
        harness.show(table.astype(float), 2, f"The question, {title}")
        depends = part[part["kind"] != "nothing"]
        print(depends[["first", "asked", "wrong"]].mean().round(2).to_dict())


# --- summaries


def by_kind(rows, value, how="mean"):
    """Return a line for each kind, and one for each part of them."""
    wide = rows.pivot(index=CELL, columns="method", values=value).astype(float)
    wide = wide[rows["method"].unique()].dropna(axis=1, how="all")
    kinds = rows["kind"].unique()
    found = wide.groupby("kind").agg(how).reindex(kinds)
    for name, part in looked.PARTS.items():
        some = wide[wide.index.get_level_values("kind").isin(list(part))]
        if len(some) and len(kinds) > 1:
            found.loc[name] = some.dropna(axis=1).agg(how)
    return found


def differences(rows, pairs, value="AP"):
    """Return mean differences of methods, and Wilcoxon's p, by kind."""
    wide, found = harness.wide(rows, value, CELL), {}
    parts = {kind: [kind] for kind in rows["kind"].unique()} | looked.PARTS
    for title, kinds in parts.items():
        some = wide[wide.index.get_level_values("kind").isin(list(kinds))]
        for one, other in pairs:
            if len(some) and one in some and other in some:
                mean, p = harness.compare(some[one], some[other])
                shown = "" if np.isnan(p) else f"{mean:+.1f} ({p:.0e})"
                found.setdefault(title, {})[f"{one} - {other}"] = shown
    return harness.lines(found, f"{value}, p")


def summarise(rows, pairs, means):
    for value in means:
        harness.show(by_kind(rows, value), 1, f"Mean {value}")
    harness.show(differences(rows, pairs), 1, "Mean paired differences in AP, and p")
    counted = rows[~rows["method"].isin([TOLD, CLEAN])]
    harness.show(by_kind(counted, "covers"), 2, "Share of ranges that cover the count")
    for value in ("width", "estimate"):
        table = by_kind(counted, value, "median")
        harness.show(table, 2, f"The count's {value} / the truth, median")
    if "rates held" in rows:
        harness.show(by_kind(rows, "rates held"), 2, "Intervals of rates that hold")
    seconds = rows.pivot(index=CELL, columns="method", values="seconds")
    ratio = seconds.div(seconds[rows["method"].iloc[0]], axis=0).median()
    print("\nCPU seconds, ratio to the first method:", ratio.round(2).to_dict())


# --- parts: measure, kinds, methods, pairs to compare, and what to show means of


PARTS = {
    "labelled_by": (
        measure_declared,
        looked.KINDS,
        METHODS,
        [
            *((DECLARED, LEFT), (DECLARED, DEFAULT), (CLEAN, DECLARED)),
            *((DECLARED, TOLD), (KEPT, DEFAULT), (KEPT, LEFT)),
        ],
        ("AP", "AUC", "accuracy"),
    ),
    "negatives": (
        measure_negatives,
        ("top", "random"),
        ("labels alone", "negatives"),
        [("negatives", "labels alone")],
        (
            *("AP, list", "Brier, list", "AP, rest", "Brier, rest"),
            *("Brier, test", "AUC", "accuracy", "checked"),
        ),
    ),
    "groups": (
        measure_groups,
        ("copies",),
        ("no groups", "groups"),
        [("groups", "no groups")],
        ("AP", "AUC", "held-out AUC", "optimism", "accuracy"),
    ),
    "question": (measure_question, looked.KINDS, ("question",), (), ()),
}


def chosen_cells(options, kinds):
    names, _, first = looked.HALVES[options.half]
    quick = options.quick
    return harness.grid(
        half=[options.half],
        size=[600 if quick else N_TRAIN],
        kind=options.kinds or list(kinds)[: 2 if quick else None],
        data=options.tables or names[: 2 if quick else None],
        seed=range(first, first + (1 if quick else options.seeds)),
    )


def main():
    parser = harness.parser(__doc__, out="who", seeds=2)
    parser.add_argument("--half", default="choosing", choices=looked.HALVES)
    parser.add_argument("--part", nargs="+", default=["labelled_by"])
    parser.add_argument("--kinds", nargs="+", help="those of the part, if not told")
    parser.add_argument("--methods", nargs="+", help="likewise")
    parser.add_argument("--tables", nargs="+", help="those of the half, if not told")
    options = harness.parse(parser)
    for part in PARTS if options.part == ["all"] else options.part:
        measure, kinds, methods, pairs, means = PARTS[part]
        cells = chosen_cells(options, kinds)
        rows = harness.run_cells(cells, measure, options, options.methods or methods)
        options.resume = True
        print(f"\n== {part}, {rows['seconds'].sum() / 60.0:.0f} CPU minutes in fits")
        if part == "question":
            summarise_question(rows)
        else:
            summarise(rows, pairs, means)


if __name__ == "__main__":
    main()
