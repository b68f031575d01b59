"""Rank all methods on all data sets at hand, labels hidden in seven ways.

    PROBGAP_DATA=folder python benchmarks/leaderboard.py --jobs 2 --out leaderboard.jsonl
    python benchmarks/leaderboard.py --out docs/design/leaderboard.jsonl.gz --only-summary \
        --page docs/design/leaderboard.md

Each cell is a data set, a labelling and a seed; every method of ``compare_methods`` is
fitted on the same folds and judged on held-out rows by the true labels. With --resume, a new
method joins by one line in ``METHODS`` of ``probgap.diagnostics``. SAR-EM, with all columns for
both of its models, is LBE-LF of Gong et al. (TPAMI 2022).
"""

from pathlib import Path

import harness
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import tables
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
CELL = ["data", "labelling", "seed"]
N_ROWS, N_FOLDS = 1000, 2
LEVEL = 0.05


def measure_cell(cell, methods):
    drawn = tables.draw(cell["data"], N_ROWS, cell["seed"])
    s = tables.observe(drawn, cell["labelling"], cell["seed"]) == 1
    truth = drawn.y == 1
    hidden = truth & ~s
    # "bias" is how much clearer the labelled positives are than the hidden ones.
    bias = drawn.gap[s].mean() - drawn.gap[hidden].mean() if hidden.any() else 0.0
    traits = {
        "label_rate": float(s.sum() / truth.sum()),
        "overlap": float(1.0 - np.abs(drawn.gap).mean()),
        "bias": float(bias),
    }
    how = {"methods": methods, "n_splits": N_FOLDS, "random_state": cell["seed"]}
    compared = compare_methods(drawn.X, s, truth=truth, **how)
    kept = ("method", *SCORES, "seconds", "error")
    return [traits | {name: row[name] for name in kept} for row in compared]


def wide(rows, score):
    return harness.wide(rows, score, CELL).dropna()


def ranks_of(rows, score):
    """Return the rank of each method in each cell, 1 being the best."""
    return wide(rows, score).rank(axis=1, ascending=False)


def critical_difference(ranks):
    """Return the least difference of mean ranks that Nemenyi's test notices."""
    n, k = ranks.shape
    quantile = stats.studentized_range.ppf(1.0 - LEVEL, k, np.inf)
    return float(quantile * np.sqrt(k * (k + 1) / (12.0 * n)))


def against_ours(scores):
    """Return Holm's p value of each other method against the default."""
    others = scores.columns.drop(OURS)
    raw = pd.Series(
        {name: harness.compare(scores[OURS], scores[name])[1] for name in others}
    ).fillna(1.0)
    steps = raw.sort_values() * np.arange(len(raw), 0, -1)
    return steps.cummax().clip(upper=1.0)


def summarise(rows):
    """Return a line for each method: mean scores, ranks, p values and time."""
    lines = pd.DataFrame(index=sorted(rows["method"].unique())).rename_axis("method")
    for score, name in SCORES.items():
        lines[name] = 100.0 * wide(rows, score).mean()
        lines[f"rank, {name}"] = ranks_of(rows, score).mean()
        lines[f"p, {name}"] = against_ours(wide(rows, score))
    lines["CPU s"] = rows.groupby("method")["seconds"].median()
    lines["failed"] = rows.groupby("method")["error"].count()
    return lines.sort_values(f"rank, {SCORES['accuracy']}")


def by_regime(rows):
    """Return mean ranks for accuracy, in halves of the cells by what they are like."""
    ranks = ranks_of(rows, "accuracy")
    traits = rows.groupby(CELL)[["label_rate", "overlap", "bias"]].first()
    traits = traits.loc[ranks.index]
    halves = {}
    for trait in traits:
        high = traits[trait] > traits[trait].median()
        for name, half in (("low", ~high), ("high", high)):
            halves[f"{trait.replace('_', ' ')}, {name}"] = ranks[half].mean()
    return pd.DataFrame(halves).sort_values("label rate, low")


def draw_ranks(rows, path):
    """Draw mean ranks with the critical difference, one panel for each score."""
    figure, axes = plt.subplots(
        1, 4, figsize=(13, 5), sharex=True, layout="constrained"
    )
    for axis, (score, name) in zip(axes, SCORES.items(), strict=True):
        every = ranks_of(rows, score)
        ranks = every.mean().sort_values(ascending=False)
        colours = ["#c44e52" if m == OURS else "#55708a" for m in ranks.index]
        axis.scatter(ranks, range(len(ranks)), c=colours, zorder=3)
        far = ranks.min() + critical_difference(every)
        axis.axvspan(ranks.min(), far, color="#55708a", alpha=0.12)
        axis.set_yticks(range(len(ranks)), ranks.index, fontsize=8)
        axis.set(title=name, xlabel="mean rank")
        axis.grid(axis="x", alpha=0.3)
    figure.savefig(path)


def tables_of(rows):
    lines = summarise(rows).rename(index={OURS: f"**{OURS}**"})
    p_values = {name: ".1g" for name in lines if name.startswith("p, ")}
    ranks = [f"rank, {name}" for name in SCORES.values()]
    regimes = by_regime(rows).rename(index={OURS: f"**{OURS}**"})
    return [
        harness.markdown(lines[[*SCORES.values(), "CPU s"]], 1, **{"CPU s": ".2f"}),
        harness.markdown(lines[[*ranks, *p_values]], 1, **p_values),
        harness.markdown(regimes, 1),
    ]


def write_page(rows, path):
    chart = path.with_suffix(".svg")
    draw_ranks(rows, chart)
    ranks = ranks_of(rows, "accuracy")
    size = f"{len(ranks)} cells, {ranks.shape[1]} methods"
    parts = [
        f"{size}; critical difference of mean ranks {critical_difference(ranks):.2f}.",
        f"![Mean ranks of all methods for four scores]({chart.name})",
        *tables_of(rows),
    ]
    marker = "<!-- made by benchmarks/leaderboard.py -->\n"
    before = path.read_text().partition(marker)[0] if path.exists() else ""
    path.write_text(before + marker + "\n" + "\n\n".join(parts) + "\n")


def main():
    parser = harness.parser(__doc__, out="leaderboard")
    parser.add_argument("--page", type=Path, help="a Markdown file to write into")
    options = harness.parse(parser)
    names = [name for name in METHODS if name != SLOWEST]
    seeds = range(options.seeds)
    cells = harness.grid(seed=seeds, data=DATA, labelling=LABELLINGS)
    if options.quick:
        cells, names = cells[-2:], ["naive SVM", "nnPU", OURS]
    rows = harness.run_cells(cells, measure_cell, options, names)
    print("\n\n".join(tables_of(rows)))
    print("failed:", int(rows["error"].count()))
    if options.page is not None:
        write_page(rows, options.page)


if __name__ == "__main__":
    main()
