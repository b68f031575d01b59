"""The rows of a fit by rank, with their probabilities, and the first of them in full."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import load_library
from probgap._core.types import Mask, Vector

if TYPE_CHECKING:
    import pandas as pd

    from probgap.reporting._fit import Fit

_DECIMALS = 8  # more would be noise
_LONGEST_CELL = 200
_LONG_FRACTION = re.compile(r"-?\d{1,15}\.\d{7,}")
_N_RANKED = 20
_N_SHOWN_COLUMNS = 4


def score_rows(
    classifier: Any, gap: Vector, probability: Vector, labelled: Mask | None = None
) -> pd.DataFrame:
    """Return each row's gap, its decision by the gap alone, probability and prediction.

    Then the 90% interval of the probability. For rows of the table of a fit (``labelled``)
    both are given whether the row is labelled; for new rows, those of any row like it.
    """
    lower, positive = classifier.boundary_.value, classifier.positive_index_
    decided = np.select(
        [gap <= lower, gap > max(0.0, lower)],
        ["negative", "positive"],
        default="undecided",
    )
    unlabelled = False if labelled is None else ~labelled
    ranges = classifier.reading_.probability_range(probability, unlabelled=unlabelled)
    low, high = ranges.low.round(_DECIMALS), ranges.high.round(_DECIMALS)
    if labelled is not None:
        decided[labelled] = "positive"
        low[labelled] = high[labelled] = 1.0
    # predict would compute the kernel once more for the same answer.
    called = np.where(probability > 0.5, positive, 1 - positive)
    return _pandas().DataFrame(
        {
            "gap": gap.round(_DECIMALS),
            "decided": decided,
            "probability": probability.round(_DECIMALS),
            "predicted_label": classifier.classes_[called],
            "probability_low": low,
            "probability_high": high,
        }
    )


def rank_hidden(probability: Vector, gap: Vector, labelled: Mask) -> NDArray[np.intp]:
    """Order unlabelled rows, the likeliest positive first; ties by gap, then by row."""
    rows = np.flatnonzero(~labelled)
    return rows[np.lexsort((rows, -gap[rows], -probability[rows]))]


def rank_rows(fit: Fit) -> pd.DataFrame:
    """Return all rows by rank, labelled ones last; indexed by their place in the fit."""
    classifier, labelled = fit.classifier, fit.labelled
    gap, chance = classifier.observed_gap_, classifier.probability_
    table = score_rows(classifier, gap, chance, labelled)
    observed = np.where(labelled, fit.table["positive"], "")
    table.insert(0, "observed_label", observed)
    if fit.ids is not None:
        table.insert(0, "id", fit.ids)
    table.insert(0, "row", fit.numbers)
    chance, gap = (table[key].to_numpy() for key in ("probability", "gap"))
    ranked = rank_hidden(chance, gap, labelled)
    place = table.columns.get_loc("predicted_label") + 1
    table.insert(place, "rank", "")
    table.loc[ranked, "rank"] = np.arange(1, ranked.size + 1).astype(str)
    return table.iloc[np.concatenate([ranked, np.flatnonzero(labelled)])]


def likeliest(
    ranked: pd.DataFrame, cells: pd.DataFrame, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the likeliest hidden positives, with the cells of the columns named."""
    top = ranked[ranked["rank"] != ""].head(_N_RANKED)
    shown = [name for name in names if name in cells][:_N_SHOWN_COLUMNS]
    return [
        {
            "rank": int(row["rank"]),
            "row": row["row"],
            "id": row.get("id"),
            "probability": row["probability"],
            "interval": [row["probability_low"], row["probability_high"]],
            "gap": row["gap"],
            "values": {name: cell_text(cells[name].iloc[at]) for name in shown},
        }
        for at, row in zip(top.index, top.to_dict("records"), strict=True)
    ]


def label_next(suggested: Sequence[dict[str, Any]], fit: Fit) -> pd.DataFrame:
    """Return rows worth labelling, whole, with an empty label column to fill in."""
    names, label = ["row", "probability", "gap", "why"], fit.table["label"]
    table = fit.cells.loc[[entry["row"] - 1 for entry in suggested]].astype(object)
    if label is not None:
        table[label] = ""
    facts = [[entry[name] for name in names] for entry in suggested]
    pandas = _pandas()
    ours = pandas.DataFrame(facts, index=table.index, columns=names)
    taken = {name: f"probgap_{name}" for name in names if name in table.columns}
    return pandas.concat([ours.rename(columns=taken), table], axis=1)


def cell_text(value: Any) -> str:
    """Return a cell as text, a missing one as nothing, a long decimal fraction rounded."""
    if _is_missing(value):
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if _LONG_FRACTION.fullmatch(text):
        text = f"{float(text):.6g}"
    return text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL] + "…"


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 (NaN and NaT)
    except TypeError:  # pandas.NA is neither equal nor unequal
        return True


def _pandas() -> Any:
    return load_library("pandas", extra="report", purpose="a report")
