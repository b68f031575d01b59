"""Rank all methods on all data sets at hand, labels hidden in seven ways.

    PROBGAP_DATA=folder python benchmarks/leaderboard.py --jobs 2 --rows leaderboard.jsonl
    python benchmarks/leaderboard.py --rows docs/design/leaderboard.jsonl.gz --only-summary \
        --page docs/design/leaderboard.md

Each cell is a data set, a labelling and a seed; every method of ``compare_methods`` is
fitted on the same folds and judged on held-out rows by the true labels. A run goes on where
it stopped, and fits only what is missing: a new method joins by one line in ``METHODS`` of
``probgap.diagnostics``. Ranks are averaged over cells; two methods whose mean ranks
differ by less than the critical difference are not told apart by Nemenyi's test. Wilcoxon's
signed-rank test compares the default with each other method, with Holm's correction. Cells
of one data set are not independent of each other: read p values with that in mind.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from default_cells import draw, observe
from joblib import Parallel, delayed
from scipy import stats

from probgap.diagnostics import METHODS, compare_methods

DATA = (
    *("german", "magic", "spambase", "waveform", "banana", "image", "splice"),
    *("twonorm", "heart", "breast_cancer", "digits", "triangles", "square"),
)
LABELLINGS = (
    *("linear(0.6)", "inverse(0.2, 1.5)", "few(0.4, 1)", "few(0.5, 2)"),
    *("random(0.8)", "forest rank, steep", "two labellers"),
)
OURS, SLOWEST = "probgap", "PGPUcv (paper)"
SCORES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "AUC",
    "hidden_average_precision": "AP of the hidden",
}
N_ROWS, N_FOLDS = 1000, 2
LEVEL = 0.05


def run_cell(data, labelling, seed, methods):
    """Return one row for each method."""
    cell = draw(data, N_ROWS, seed)
    s = observe(cell, labelling, seed) == 1
    truth = cell.y == 1
    about = {
        "data": data,
        "labelling": labelling,
        "seed": seed,
        "label_rate": float(s.sum() / truth.sum()),
        "overlap": float(1.0 - np.abs(cell.gap).mean()),
        # How much clearer the labelled positives are than the hidden ones.
        "bias": float(cell.gap[s].mean() - cell.gap[truth & ~s].mean())
        if (truth & ~s).any()
        else 0.0,
    }
    compared = compare_methods(
        cell.X,
        s,
        truth=truth,
        methods=methods,
        n_splits=N_FOLDS,
        random_state=seed,
    )
    kept = ("method", *SCORES, "seconds", "error")
    return [about | {name: row[name] for name in kept} for row in compared]


def read_rows(path):
    """Return the rows of earlier runs."""
    if not path.exists():
        return []
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    return [json.loads(line) for line in content.decode().splitlines()]


def measure(path, names, seeds, jobs):
    """Run the cells that are missing, and append their rows."""
    have = {
        (r["data"], r["labelling"], r["seed"], r["method"]) for r in read_rows(path)
    }
    cells = [(d, k, seed) for seed in range(seeds) for d in DATA for k in LABELLINGS]
    missing = [(*c, [m for m in names if (*c, m) not in have]) for c in cells]
    work = [delayed(run_cell)(*each) for each in missing if each[-1]]
    with path.open("a") as file:
        for rows in Parallel(n_jobs=jobs, return_as="generator_unordered")(work):
            file.write("".join(json.dumps(row) + "\n" for row in rows))
            file.flush()
            print(rows[0]["data"], rows[0]["labelling"], flush=True)


def wide(frame, score):
    """Return a table with a line for each cell and a column for each method."""
    index = ["data", "labelling", "seed"]
    return frame.pivot(index=index, columns="method", values=score).dropna()


def critical_difference(n_methods, n_cells):
    """Return the least difference of mean ranks that Nemenyi's test notices."""
    quantile = stats.studentized_range.ppf(1.0 - LEVEL, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_cells)))


def against_ours(table):
    """Return Holm's p value of each other method against the default."""
    others = [name for name in table.columns if name != OURS]
    raw = np.array(
        [
            stats.wilcoxon(table[OURS], table[name]).pvalue
            if (table[OURS] != table[name]).any()
            else 1.0
            for name in others
        ]
    )
    order = np.argsort(raw)
    steps = raw[order] * np.arange(len(others), 0, -1)
    adjusted = np.empty(len(others))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return dict(zip(others, adjusted, strict=True))


def summarise(frame):
    """Return a line for each method: mean scores, ranks, p values and time."""
    lines = pd.DataFrame(index=sorted(frame["method"].unique()))
    for score, name in SCORES.items():
        table = wide(frame, score)
        lines[name] = 100.0 * table.mean()
        lines[f"rank, {name}"] = table.rank(axis=1, ascending=False).mean()
        lines[f"p, {name}"] = pd.Series(against_ours(table))
    lines["CPU s"] = frame.groupby("method")["seconds"].median()
    lines["failed"] = frame[frame["error"].notna()].groupby("method").size()
    return lines.sort_values(f"rank, {SCORES['accuracy']}")


def by_regime(frame):
    """Return mean ranks for accuracy, in halves of the cells by what they are like."""
    ranks = wide(frame, "accuracy").rank(axis=1, ascending=False)
    traits = frame.groupby(["data", "labelling", "seed"])[
        ["label_rate", "overlap", "bias"]
    ].first()
    traits = traits.loc[ranks.index]
    halves = {}
    for trait in traits:
        high = traits[trait] > traits[trait].median()
        halves[f"{trait.replace('_', ' ')}, low"] = ranks[~high].mean()
        halves[f"{trait.replace('_', ' ')}, high"] = ranks[high].mean()
    return pd.DataFrame(halves).sort_values("label rate, low")


def as_markdown(table, digits):
    """Return a table of numbers as Markdown; numbers of ours are bold."""
    head = ["method", *table.columns]
    lines = [head, ["---"] * len(head)]
    for name, row in table.iterrows():
        cells = [
            ""
            if pd.isna(v)
            else f"{v:.{digits.get(c, 1)}g}"
            if c[:2] == "p,"
            else f"{v:.{digits.get(c, 1)}f}"
            for c, v in row.items()
        ]
        lines.append([f"**{name}**" if name == OURS else name, *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def draw_ranks(frame, path):
    """Draw mean ranks with the critical difference, one panel for each score."""
    figure, axes = plt.subplots(
        1, 4, figsize=(13, 5), sharex=True, layout="constrained"
    )
    for axis, (score, name) in zip(axes, SCORES.items(), strict=True):
        table = wide(frame, score)
        ranks = table.rank(axis=1, ascending=False).mean().sort_values(ascending=False)
        far = critical_difference(len(ranks), len(table))
        colours = ["#c44e52" if m == OURS else "#55708a" for m in ranks.index]
        axis.scatter(ranks, range(len(ranks)), c=colours, zorder=3)
        axis.axvspan(ranks.min(), ranks.min() + far, color="#55708a", alpha=0.12)
        axis.set_yticks(range(len(ranks)), ranks.index, fontsize=8)
        axis.set(title=name, xlabel="mean rank")
        axis.grid(axis="x", alpha=0.3)
    figure.savefig(path)


def write_page(frame, path):
    """Write the tables and the chart."""
    lines, n_cells = summarise(frame), len(wide(frame, "accuracy"))
    far = critical_difference(len(lines), n_cells)
    ranks = [f"rank, {name}" for name in SCORES.values()]
    chart = path.with_suffix(".svg")
    draw_ranks(frame, chart)
    parts = [
        f"{n_cells} cells, {len(lines)} methods; critical difference of mean ranks {far:.2f}.",
        f"![Mean ranks of all methods for four scores]({chart.name})",
        as_markdown(lines[[*SCORES.values(), "CPU s"]], {"CPU s": 2}),
        as_markdown(lines[[*ranks, *(f"p, {n}" for n in SCORES.values())]], {}),
        as_markdown(by_regime(frame), {}),
    ]
    marker = "<!-- made by benchmarks/leaderboard.py -->\n"
    before = path.read_text().partition(marker)[0] if path.exists() else ""
    path.write_text(before + marker + "\n" + "\n\n".join(parts) + "\n")


def main():
    """Run what is missing, then print or write the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, default=Path("leaderboard.jsonl"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="methods; all but PGPUcv by default")
    parser.add_argument("--only-summary", action="store_true")
    parser.add_argument("--page", type=Path, help="a Markdown file to write into")
    given = parser.parse_args()
    names = given.only or [name for name in METHODS if name != SLOWEST]
    if not given.only_summary:
        measure(given.rows, names, given.seeds, given.jobs)
    frame = pd.DataFrame(read_rows(given.rows))
    print(summarise(frame).round(3).to_string())
    print(by_regime(frame).round(2).to_string())
    if given.page is not None:
        write_page(frame, given.page)


if __name__ == "__main__":
    main()
