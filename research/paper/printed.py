"""The numbers that the paper prints, and what they show by themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

_PRINTED = Path(__file__).parent / "printed.csv"

NAIVE, CLEAN, OURS = "SVM", "clean", "probgap"
PLAIN = "probgap C=1"  # ours, with the SVM of the other methods at the end
PAPER_METHODS = (NAIVE, "Elkan", "Natarajan", "Liu", "PGPU", "PGPUcv", CLEAN)
RIVALS = PAPER_METHODS[:-1]
OWN = ("PGPU", "PGPUcv")
LINE = ["table", "data", "line"]  # what identifies a line of the tables
_SYNTHETIC = ("1", "2", "3", "4", "5", "6")

Frame = Any
Facts = dict[str, Any]


def read_printed() -> Frame:
    """Read the accuracies of the paper's eight tables, in percent."""
    printed = pd.read_csv(_PRINTED, dtype={"table": str})
    rates = printed[["mislabelling", "alpha", "beta"]].itertuples(index=False)
    printed["line"] = [name_line(*rate) for rate in rates]
    printed["bold"] = printed["bold"] == "yes"
    names = {"dataset": "data", "accuracy": "paper_mean", "std": "paper_sd"}
    printed = printed.rename(columns=names).dropna(subset="paper_mean")
    return printed[[*LINE, "method", "paper_mean", "paper_sd", "bold"]]


def name_line(rate: str, alpha: float, beta: float) -> str:
    """Return the name of a labelling, without what its rate does not have."""
    numbers = ", ".join(f"{x:g}" for x in (alpha, beta) if not math.isnan(x))
    return f"{rate}({numbers})" if numbers else rate


def describe_print() -> Facts:
    """Return what the printed tables show by themselves, counted from their numbers."""
    printed = read_printed()
    heart = printed[printed["data"] == "heart"]
    clean = printed[printed["method"] == CLEAN].set_index("table")["paper_mean"]
    rates = printed[printed["line"].str.startswith("inverse")]
    small, large = clean.loc["1":"3"], clean.loc["4":"6"]
    return {
        "shared_sds": count_shared_sds(printed, "heart", "twonorm"),
        "thirds": (count_multiples(heart["paper_mean"], 204), len(heart)),
        "rows_250": (count_multiples(small, 250), len(small)),
        "rows_500": (count_multiples(large, 500), len(large)),
        "equal": find_equal(printed),
        "misplaced": find_misplaced_bold(printed),
        "splice": compare_ranges(printed, "splice", "banana"),
        "narrow": count_narrow(printed),
        "inverse": (
            rates[rates["table"] == "1"]["line"].nunique(),
            rates["line"].nunique(),
        ),
    }


def order_methods(methods: Iterable[str]) -> list[str]:
    """Return methods in the order of the paper's columns, then ours and others."""
    known = [*PAPER_METHODS, OURS, PLAIN]
    found = set(methods)
    return [m for m in known if m in found] + sorted(found - set(known))


def count_shared_sds(printed: Frame, one: str, other: str) -> tuple[int, int]:
    """Count the standard deviations of a data set that another has in the same place."""
    place = ["line", "method"]
    known = printed.dropna(subset="paper_sd").set_index("data")
    pairs = known.loc[one].merge(known.loc[other], on=place, how="left")
    return int((pairs["paper_sd_x"] == pairs["paper_sd_y"]).sum()), len(pairs)


def count_multiples(means: Frame, n: int) -> int:
    """Count the percentages that are some of n cases, printed with two decimals."""
    nearest = 100.0 * np.round(means * n / 100.0) / n
    return int(((means - nearest).abs() <= 0.005 + 1e-9).sum())


def find_equal(printed: Frame) -> list[str]:
    """Name cells of a line, or of a method in a table, with equal mean and deviation."""
    known = printed.dropna(subset="paper_sd")
    return [
        f"Table {', '.join(place[:-2])}: {' = '.join(equal[varies])}"
        for shared, varies in ((LINE, "method"), (["table", "data", "method"], "line"))
        for place, equal in known.groupby(
            [*shared, "paper_mean", "paper_sd"], sort=False
        )
        if len(equal) > 1
    ]


def find_misplaced_bold(printed: Frame) -> list[str]:
    """Name the lines in which no cell in bold has the best mean, clean apart."""
    rivals = printed[printed["method"] != CLEAN]
    return [
        f"Table {', '.join(place)}: {' and '.join(line['method'][line['bold']])}"
        for place, line in rivals.groupby(LINE, sort=False)
        if line["paper_mean"][line["bold"]].max() < line["paper_mean"].max()
    ]


def count_lines(lines: Frame) -> dict[str, tuple[int, int]]:
    """Count lines of accuracies: in how many of them what the paper claims is so.

    ``best``: PGPU or PGPUcv is best of the six methods, alone or level with another;
    ``PGPU`` and ``PGPUcv``: it is above the SVM; ``Natarajan``: it is below the SVM.
    """
    rivals = lines.reindex(columns=RIVALS).round(2).dropna(how="all")
    best = rivals.eq(rivals.max(axis="columns"), axis="index")
    own = best[list(OWN)].any(axis="columns")
    gains = rivals.sub(rivals[NAIVE], axis="index")
    gains["Natarajan"] *= -1.0
    counted = {m: (gains[m] > 0.0, gains[m].count()) for m in (*OWN, "Natarajan")}
    counted["best"] = own, len(rivals)
    return {name: (int(is_so.sum()), int(n)) for name, (is_so, n) in counted.items()}


def compare_ranges(printed: Frame, one: str, other: str) -> Facts:
    """Compare the clean accuracies of a data set with the range of another one's."""
    clean = printed[printed["method"] == CLEAN].set_index("data")["paper_mean"]
    mine, theirs = clean.loc[[one]], clean.loc[[other]]
    within = mine.between(theirs.min(), theirs.max())
    return {
        "within": (int(within.sum()), len(mine)),
        "above": float(mine[~within].min() - theirs.max()),
    }


def count_narrow(printed: Frame) -> tuple[int, int]:
    """Count the deviations of the SVM in Tables 1 to 6 below that of a drawn test set.

    It would be binomial, with 250 test rows in Tables 1 to 3 and 500 in the others.
    """
    svm = printed[(printed["method"] == NAIVE) & printed["table"].isin(_SYNTHETIC)]
    rows = np.where(svm["table"] <= "3", 250, 500)
    share = svm["paper_mean"] / 100.0
    binomial = 100.0 * np.sqrt(share * (1.0 - share) / rows)
    return int((svm["paper_sd"] < binomial).sum()), len(svm)
