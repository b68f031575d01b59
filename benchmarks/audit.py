"""Measure whether intervals of an audit hold, and what answers do to a ranking.

    PROBGAP_DATA=folder python benchmarks/audit.py --quick              # some minutes
    PROBGAP_DATA=folder python benchmarks/audit.py --jobs 16 --rows audit.jsonl
    python benchmarks/audit.py --only-summary --rows audit.jsonl

Nine real tables, six labellings each (audit_cells.py), three of which the model is wrong
about. The default is fitted once to each; then rows are drawn, the truth answers, and the
interval is compared with the number of hidden positives. Beside it stands a plain random
sample of as many rows with the exact hypergeometric interval. With 100 answers the model is
corrected, and average precision compared: of all hidden positives among the unlabelled
rows, and among those that were not asked about. "Extended" is 50 rows and then 50 more, by what the first have shown.

The interval was developed on half of the tables (HALVES). Answers to 90% of what missing
labels cost are counted by active.py.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from audit_cells import HALVES, LABELLINGS, fit, make_task
from joblib import Parallel, delayed
from sklearn.metrics import average_precision_score

from probgap.audit import correct, design, estimate

BUDGETS = (30, 50, 100, 200)
CORRECTED = 100
LEVEL_WANTED = {"least": 0.88, "mean": 0.90}


def measure(asked, y, hidden):
    """Return whether the interval of an audit holds, its width and its error."""
    answers = {row: bool(y[row]) for row in asked.rows.tolist()}
    found = estimate(asked, answers)
    low, high = found.count_interval
    covers = low - 0.5 <= hidden <= high + 0.5
    return {
        "covered": bool(covers),
        "width": float(high - low),
        "error": float(abs(found.count - hidden)),
    }, answers


def ranking(model, X, y, s, answers):
    """Return average precision of hidden positives, before and after a correction.

    Both by scores of models that had not seen the rows, and with the reading's interval.
    """
    rows, held_out = np.array(list(answers), dtype=np.intp), model.posterior_
    better = correct(model, X[rows], y[rows], probability=held_out[rows])
    corrected = better.hidden_probability(X, held_out)
    low, high = better.reading.n_hidden_interval
    hidden = int((y & ~s).sum())
    rest = ~s
    rest[rows] = False
    found = {
        "reading_covered": bool(low - 0.5 <= hidden <= high + 0.5),
        "reading_width": float(high - low),
    }
    for name, part in (("hidden", ~s), ("not_asked", rest)):
        if y[part].any():
            before = average_precision_score(y[part], held_out[part])
            after = average_precision_score(y[part], corrected[part])
            found |= {f"{name}_before": before, f"{name}_after": after}
    return found


def run_cell(table, labelling, draws, compared, ranked, budgets):
    """Return the rows of one table and labelling."""
    X, y, s = make_task(table, labelling)
    model, hidden, rows = fit(X, s), int((y & ~s).sum()), []
    flat = np.full(y.size, 0.5)
    low, high = model.reading_.n_hidden_interval
    about = {"table": table, "labelling": labelling, "hidden": hidden}
    about["model_covered"] = bool(low - 0.5 <= hidden <= high + 0.5)
    about["model_width"] = float(high - low)
    for seed in range(draws):
        for budget in budgets:
            options = {"labelled": s, "random_state": seed}
            asked = design(model, budget=budget, **options)
            found, answers = measure(asked, y, hidden)
            row = about | {"draw": seed, "budget": budget, "way": "strata"} | found
            if budget == CORRECTED and seed < ranked:
                row |= ranking(model, X, y, s, answers)
            rows.append(row)
            if seed >= compared:
                continue
            # One stratum: a simple random sample.
            plain, _ = measure(one_stratum(flat, budget, options), y, hidden)
            rows.append(row_of(about, seed, budget, "plain") | plain)
        if seed >= compared:
            continue
        first = design(model, budget=50, **options)
        answers = {row: bool(y[row]) for row in first.rows.tolist()}
        found, _ = measure(first.extend(answers, 50), y, hidden)
        rows.append(row_of(about, seed, 100, "extended") | found)
    return rows


def row_of(about, seed, budget, way):
    """Return the head of a row."""
    return about | {"draw": seed, "budget": budget, "way": way}


def one_stratum(scores, budget, options):
    """Return a simple random sample as a design."""
    first = design(scores, budget=1, **options)  # a budget of 1 makes one stratum
    none = dict.fromkeys(())
    return first.extend(none, budget - 1)


def summarise(rows):
    """Print coverage, width and ranking."""
    frame = pd.DataFrame(rows)
    strata = frame[frame.way == "strata"]
    covered = strata.groupby(["table", "budget"]).covered.mean().unstack()
    print("Coverage of 90% intervals, by table and budget:")
    print(covered.round(3).to_string())
    print(strata.groupby(["labelling", "budget"]).covered.mean().unstack().round(3))
    print(
        f"least {covered.min().min():.3f} (wanted {LEVEL_WANTED['least']}), mean "
        f"{covered.mean().mean():.3f} (wanted {LEVEL_WANTED['mean']})"
    )
    for half, tables in HALVES.items():
        own = covered[covered.index.isin(tables)]
        if len(own):
            print(
                f"  {half}: least {own.min().min():.3f}, mean {own.mean().mean():.3f}"
            )
    by = ["table", "labelling", "budget"]
    width = strata.groupby(by).width.mean()
    plain = frame[frame.way == "plain"].groupby(by)[["width", "covered"]].mean()
    ratio = width / plain.width
    print("Width over that of plain random sampling, and coverage of the latter:")
    print(ratio.groupby("budget").mean().round(3).to_dict())
    print(ratio.xs(100, level="budget").groupby("table").mean().round(3).to_dict())
    print(plain.covered.groupby("budget").mean().round(3).to_dict())
    relative = strata.width / strata.hidden.clip(lower=1)
    print(
        "Width over the truth:",
        relative.groupby(strata.budget).mean().round(2).to_dict(),
    )
    model = strata.drop_duplicates(["table", "labelling"])
    print(
        f"The model's own interval: covers {model.model_covered.mean():.2f}, width over "
        f"the truth {(model.model_width / model.hidden.clip(lower=1)).mean():.2f}"
    )
    extended = frame[frame.way == "extended"]
    if len(extended):
        tables = extended.groupby("table").covered.mean()
        print(
            f"50 and then 50 more: covers {tables.mean():.3f}, least {tables.min():.3f}; "
            f"width over that of 100 at once {extended.width.mean() / strata[strata.budget == 100].width.mean():.3f}"
        )
    if "reading_covered" in strata:
        updated = strata.dropna(subset=["reading_covered"])
        print(
            f"The reading after 100 answers: covers {updated.reading_covered.mean():.2f}, "
            "width over the truth "
            f"{(updated.reading_width / updated.hidden.clip(lower=1)).mean():.2f}"
        )
    print("Corrected by 100 answers, average precision before and after:")
    for name in ("hidden", "not_asked"):
        before, after = f"{name}_before", f"{name}_after"
        if after in strata:
            ranked = strata.dropna(subset=[after])
            above = ranked[after] > ranked[before]
            ties = (ranked[after] == ranked[before]).mean()
            print(
                f"  {name}: {ranked[before].mean():.3f}, {ranked[after].mean():.3f}; above "
                f"on {above.mean():.3f} of {len(ranked)} draws, as good on {ties:.3f};",
                above.groupby(ranked.labelling).mean().round(2).to_dict(),
            )


def main():
    """Run the benchmark and print its summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument(
        "--compared", type=int, default=60, help="draws of plain and extended samples"
    )
    parser.add_argument("--ranked", type=int, default=30, help="draws to correct by")
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--rows", type=Path, default=Path("audit.jsonl"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only-summary", action="store_true")
    given = parser.parse_args()
    tables, draws = given.tables or sum(HALVES.values(), ()), given.draws
    if given.quick:
        tables, draws = given.tables or ("german", "spambase"), min(draws, 30)
    if given.only_summary:
        rows = [json.loads(line) for line in given.rows.read_text().splitlines()]
    else:
        cells = [(table, name) for table in tables for name in LABELLINGS]
        work = delayed(run_cell)
        done = Parallel(n_jobs=given.jobs)(
            work(*cell, draws, given.compared, given.ranked, BUDGETS) for cell in cells
        )
        rows = [row for cell in done for row in cell]
        given.rows.write_text("".join(json.dumps(row) + "\n" for row in rows))
    summarise(rows)


if __name__ == "__main__":
    main()
