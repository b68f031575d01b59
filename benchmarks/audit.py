"""Measure whether intervals of an audit hold, and what answers do to a ranking.

    PROBGAP_DATA=folder python benchmarks/audit.py --jobs 16
    PROBGAP_DATA=folder python benchmarks/audit.py --draws 4 --compared 1 --ranked 4

The default is fitted once to each table and labelling (docs/design/audit.md); then rows are
drawn, the truth answers, and the interval is compared with the number of hidden positives.
"plain" is a random sample of as many rows, "extended" 50 rows and then 50 more, by what the
first have shown.
"""

from functools import partial

import harness
import numpy as np
import tables
from sklearn.metrics import average_precision_score

from probgap import PGPUClassifier
from probgap.audit import correct, design, estimate

# The interval was chosen on the first four.
TABLES = ("german", "spambase", "banana", "breast_cancer")
TABLES += ("magic", "waveform", "splice", "image", "twonorm")
BUDGETS = (30, 50, 100, 200)
CORRECTED = 100
N_ROWS = 1500
FEWEST_LABELS = 8
RARE = 0.01


def corner(X, _, rng):
    """Label no positive on one side, and half of the others."""
    side = X @ rng.normal(size=X.shape[1])
    return 0.5 * (side < np.median(side))


# The chance that a positive is labelled.
LABELLINGS = {
    "easy first": lambda _, gap, __: 0.8 * gap,
    "steep": lambda _, gap, __: 0.5 * gap.clip(0.0) ** 4,
    "at random": lambda *_: 0.3,
    "corner": corner,
    "hard first": lambda _, gap, __: 0.6 * (1.0 - gap.clip(0.0)) + 0.05,
    "rare": lambda *_: 0.3,
}


def make_task(name, labelling, seed=0):
    """Return rows, their true classes and which are labelled."""
    n_rows = 5 * N_ROWS if labelling == "rare" else N_ROWS
    drawn = tables.draw(name, n_rows, seed)
    rng = np.random.default_rng([seed, *f"{name} {labelling}".encode()])
    X, y, gap = drawn.X, drawn.y == 1, drawn.gap
    if labelling == "rare":
        # As few positives as make 1% of the rows that stay, but at least 16.
        negative = np.flatnonzero(~y)[: N_ROWS - 20]
        n = max(round(RARE * negative.size), 2 * FEWEST_LABELS)
        kept = rng.permutation(np.append(negative, np.flatnonzero(y)[:n]))
        X, y, gap = X[kept], y[kept], gap[kept]
    rows = np.flatnonzero(y)
    s = np.zeros(y.size, dtype=bool)
    chance = LABELLINGS[labelling](X[rows], gap[rows], rng)
    s[rows] = rng.random(rows.size) < chance
    return X, y, tables.top_up(s, y, gap, FEWEST_LABELS)


def measure_cell(cell, _):
    X, y, s = make_task(cell["table"], cell["labelling"])
    hidden = int((y & ~s).sum())
    with harness.quietly():
        model = PGPUClassifier(random_state=0).fit(X, s)
        own = interval(model.estimate_.n_hidden_interval, hidden)
        yield {"hidden": hidden, "way": "the model's own", "budget": 0} | own
        for draw in range(cell["draws"]):
            for row in measure_draw(cell, draw, model, X, y, s):
                yield {"hidden": hidden, "draw": draw} | row


def measure_draw(cell, draw, model, X, y, s):
    """Yield a row for each budget and way to draw."""
    hidden = int((y & ~s).sum())
    options = {"labelled": s, "random_state": draw}
    for budget in BUDGETS:
        asked = design(model, budget=budget, **options)
        yield {"budget": budget, "way": "strata"} | count(asked, y, hidden)
        if budget == CORRECTED and draw < cell["ranked"]:
            found = ranking(model, X, y, s, asked)
            yield {"budget": budget, "way": "the model's own, weighted"} | found
        if draw < cell["compared"]:
            # A budget of 1 makes one stratum: a simple random sample.
            plain = design(np.full(y.size, 0.5), budget=1, **options)
            plain = plain.extend({}, budget - 1)
            yield {"budget": budget, "way": "plain"} | count(plain, y, hidden)
    if draw < cell["compared"]:
        first = design(model, budget=50, **options)
        extended = first.extend(answers_to(first, y), 50)
        yield {"budget": 100, "way": "extended"} | count(extended, y, hidden)


def answers_to(asked, y):
    return {row: bool(y[row]) for row in asked.rows.tolist()}


def count(asked, y, hidden):
    """Return whether the interval of an audit holds, and its width."""
    return interval(estimate(asked, answers_to(asked, y)).count_interval, hidden)


def interval(ends, hidden):
    low, high = ends
    holds = bool(low - 0.5 <= hidden <= high + 0.5)
    return {"covered": holds, "width": float(high - low)}


def ranking(model, X, y, s, asked):
    """Return average precision of hidden positives, before and after a correction."""
    rows, held_out = asked.rows, model.posterior_
    better = correct(model, X[rows], y[rows], probability=held_out[rows])
    corrected = better.hidden_probability(X, held_out)
    found = interval(better.estimate.n_hidden_interval, int((y & ~s).sum()))
    rest = ~s
    rest[rows] = False
    for name, part in (("hidden", ~s), ("not_asked", rest)):
        if y[part].any():
            found[f"{name}_before"] = average_precision_score(y[part], held_out[part])
            found[f"{name}_after"] = average_precision_score(y[part], corrected[part])
    return found


def summarise(rows):
    rows["over truth"] = rows["width"] / rows["hidden"].clip(lower=1)
    by = ["table", "labelling", "budget"]
    plain = rows[rows["way"] == "plain"].groupby(by)["width"].mean()
    rows = rows.join(plain.rename("plain width"), on=by)
    columns = {
        "covers": "covered",
        "least table": partial(least, by="table"),
        "least labelling": partial(least, by="labelling"),
        "width over the truth": "over truth",
        "over plain": over_plain,
    }
    table = harness.summarise(rows, ["way", "budget"], **columns)
    harness.show(table, 3, "90% intervals of the number of hidden positives")
    at_100 = rows[(rows["way"] == "strata") & (rows["budget"] == CORRECTED)]
    table = harness.summarise(at_100, "table", **columns)
    harness.show(table, 3, "By table, 100 answers")
    ranked = rows[rows["way"] == "the model's own, weighted"]
    for name in ("hidden", "not_asked") if len(ranked) else ():
        before, after = ranked[f"{name}_before"], ranked[f"{name}_after"]
        found = ranked.assign(
            before=before, after=after, higher=after > before, level=after == before
        )
        means = {key: key for key in ("before", "after", "higher", "level")}
        table = harness.summarise(found, "labelling", total="all", **means)
        harness.show(table, 3, f"Average precision of the {name}, 100 answers")


def least(rows, by):
    """Return the least coverage of some tables or labellings."""
    return rows.groupby(by)["covered"].mean().min()


def over_plain(rows):
    """Return the mean over cells of the width as a share of that of plain sampling."""
    means = rows.groupby(["table", "labelling"])[["width", "plain width"]].mean()
    return (means["width"] / means["plain width"]).mean()


def main():
    parser = harness.parser(__doc__, out="audit")
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument(
        "--compared", type=int, default=60, help="draws of plain and extended samples"
    )
    parser.add_argument("--ranked", type=int, default=30, help="draws to correct by")
    options = harness.parse(parser)
    if options.quick:
        options.draws = options.compared = options.ranked = 3
    cells = harness.grid(
        table=TABLES,
        labelling=LABELLINGS,
        **{name: [getattr(options, name)] for name in ("draws", "compared", "ranked")},
    )
    cells = cells[:2] if options.quick else cells
    summarise(harness.run_cells(cells, measure_cell, options))


if __name__ == "__main__":
    main()
