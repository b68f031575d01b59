"""The rows of a fit by rank, and how many positives to expect of the first of them."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from probgap._core.errors import load_library
from probgap._core.output import clip, harmless
from probgap._core.types import Mask, Vector
from probgap.reading._hidden_positives import mixture_interval

if TYPE_CHECKING:
    import pandas as pd

    from probgap.reading import HiddenEstimate
    from probgap.reporting._evidence import Fit

_DECIMALS = 8  # more would be noise
_LONGEST_CELL = 200
_LONG_FRACTION = re.compile(r"-?\d{1,15}\.\d{7,}")
_N_RANKED = 20
_N_SHOWN_COLUMNS = 4
MOST_ROWS = 50_000
_OWN = ("id", "row", "probability", "probability_low", "probability_high", "gap")
_MOST_COLUMNS = 20
_MOST_CHARACTERS = 12_000_000  # of all columns; what matters least is left out
_N_STEPS = 80  # numbers of rows for which the expected positives are computed
_LEAST_SHARE = 1e-12
_N_POINTS = 50  # rows that stand for those between two steps


def score_rows(
    classifier: Any,
    gap: Vector,
    probability: Vector,
    labelled: Mask | None = None,
    negative: Mask | None = None,
) -> pd.DataFrame:
    """Return each row's gap, its decision by the gap alone, probability and prediction.

    Then the 90% interval of the probability. For rows of the table of a fit (``labelled``)
    both are given whether the row is labelled, or was checked and is ``negative``; for new
    rows, those of any row like it.
    """
    lower, positive = classifier.boundary_.value, classifier.positive_index_
    decided = np.select(
        [gap <= lower, gap > max(0.0, lower)],
        ["negative", "positive"],
        default="undecided",
    )
    unlabelled = False if labelled is None else ~labelled
    ranges = classifier.estimate_.probability_range(probability, unlabelled=unlabelled)
    low, high = ranges.low.round(_DECIMALS), ranges.high.round(_DECIMALS)
    if labelled is not None:
        negative = np.zeros_like(labelled) if negative is None else negative
        decided[labelled] = "positive"
        low[labelled] = high[labelled] = 1.0
        decided[negative] = "negative"
        low[negative] = high[negative] = 0.0
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


def rank_hidden(probability: Vector, gap: Vector, known: Mask) -> NDArray[np.intp]:
    """Order unlabelled rows, the likeliest positive first; ties by gap, then by row."""
    rows = np.flatnonzero(~known)
    return rows[np.lexsort((rows, -gap[rows], -probability[rows]))]


def rank_rows(fit: Fit, kind: NDArray[Any] | None = None) -> pd.DataFrame:
    """Return all rows by rank, those that are known last; indexed by their place."""
    classifier, labelled, negative = fit.classifier, fit.labelled, fit.negative
    gap, chance = classifier.observed_gap_, classifier.probability_
    table = score_rows(classifier, gap, chance, labelled, negative)
    if kind is not None:
        table.insert(0, "kind", kind)
    table.insert(0, "observed_label", np.where(negative, "negative", fit.kinds))
    if fit.ids is not None:
        table.insert(0, "id", fit.ids)
    table.insert(0, "row", fit.cells.index.to_numpy() + 1)  # as in the whole table
    chance, gap = (table[key].to_numpy() for key in ("probability", "gap"))
    ranked = rank_hidden(chance, gap, labelled | negative)
    place = table.columns.get_loc("predicted_label") + 1
    table.insert(place, "rank", "")
    table.loc[ranked, "rank"] = np.arange(1, ranked.size + 1).astype(str)
    known = np.flatnonzero(negative), np.flatnonzero(labelled)
    return table.iloc[np.concatenate([ranked, *known])]


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


def expect_positives(
    estimate: HiddenEstimate,
    posterior: ArrayLike,
    probability: Vector | None = None,
) -> dict[str, list[float]]:
    """Return how many positives to expect among the top rows, by the curves of a fit.

    ``posterior`` is P(Y=1 | x) of the unlabelled rows, in the order of their rank, and
    ``probability`` the same given that nobody labelled them, where not everybody was looked
    at alike: beyond what the curves explain, a row may have been overlooked. For each
    number ``k`` of rows from the top, from 1 to all, there are the ends ``low`` and ``high``
    of the 90% interval of the positives among them, and the ``mean``. Each curve gives such
    a number; the interval is that of all curves by weight, each with its spread and luck.
    Numbers never fall with k, nor exceed those of all rows, which are in the headline.
    """
    chances = np.asarray(posterior, dtype=np.float64)
    n_rows = chances.size
    steps = np.unique(np.geomspace(1, n_rows, _N_STEPS).round().astype(int))
    edges = np.append(0, steps)
    sizes = np.diff(edges)
    points = [
        start + (np.arange(m := min(size, _N_POINTS)) + 0.5) * size // m
        for start, size in zip(edges[:-1], sizes, strict=True)
    ]
    chosen = np.concatenate(points).astype(int)
    odds = estimate.log_odds(estimate.find_scores(chances[chosen]))
    curves = estimate.curves.unfolded(estimate.scores)
    first = np.cumsum([0, *(len(part) for part in points[:-1])])
    share = np.repeat(sizes / [len(part) for part in points], [len(p) for p in points])
    hidden, by_rates = curves.each(odds), np.zeros(steps.size)
    if probability is not None:
        mean = curves.weights @ hidden
        missed = np.clip((probability[chosen] - mean) / (1.0 - mean), 0.0, 1.0)
        hidden = missed + (1.0 - missed) * hidden
        missed = np.add.reduceat(missed * share, first).cumsum()
        by_rates = estimate.overlooked_deviation * missed / max(missed[-1], 1.0)
    sums = np.add.reduceat(hidden * share, first, axis=1).cumsum(axis=1)
    shares = np.clip(sums / steps, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
    by_luck = 1.0 / (steps * shares * (1.0 - shares) + 1.0)
    by_rates = by_rates / (steps * shares * (1.0 - shares))
    deviations = np.sqrt(curves.spread[:, None] ** 2 + by_luck + by_rates**2)
    columns = zip(logit(shares).T, deviations.T, strict=True)
    ends = [mixture_interval(curves.weights, *column) for column in columns]
    low, high = steps * np.transpose(ends)
    mean = curves.weights @ sums
    least, most = estimate.n_hidden_interval
    counts = ((low, least), (mean, estimate.n_hidden), (high, most))
    low, mean, high = (_up_to(values, last) for values, last in counts)
    low, high = np.minimum(low, mean), np.maximum(high, mean)
    found = {"k": steps, "low": low, "mean": mean, "high": high}
    return {name: part.tolist() for name, part in found.items()}


def _up_to(values: Vector, last: float) -> Vector:
    """Return counts that rise to ``last``."""
    rising = np.minimum(np.maximum.accumulate(values), last)
    return np.append(rising[:-1], last)


def page_data(ranked: pd.DataFrame, cells: pd.DataFrame, tree: dict[str, Any]) -> str:
    """Return the unlabelled rows as JSON that no cell can end: for a block not run.

    ``cells`` are the columns that matter, the most telling first, of all rows of the fit.
    """
    scores = ranked[ranked["rank"] != ""][:MOST_ROWS].round(4)
    cells = cells.iloc[scores.index]
    own = [name for name in _OWN if name in scores]
    columns = [_column("rank", np.arange(1, len(scores) + 1))]
    columns += [_column(name, scores[name]) for name in own]
    used, names = sum(map(len, columns)), list(cells.columns)
    n_own = len(columns)
    for at in range(min(len(names), _MOST_COLUMNS)):
        column = _column(names[at], cells.iloc[:, at])
        used += len(column)
        if used > _MOST_CHARACTERS:
            break
        columns.append(column)
    about = {
        "n_rows": tree["found"]["unlabelled"],
        "own": n_own,
        "left": len(names) - (len(columns) - n_own),
        **{
            name: [round(value, 3) for value in values]
            for name, values in tree["expected"].items()
        },
        "why": {e["row"]: str(harmless(e["why"])) for e in tree["next"]},
    }
    text = _dump(about)[:-1] + f',"columns":[{",".join(columns)}]}}'
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _column(name: object, values: Any) -> str:
    """Return a column as JSON: numbers, or distinct texts and the place of each cell's."""
    head = f'{{"name":{_dump(str(harmless(clip(name, 60))))},'
    if values.dtype.kind in "biuf":
        return f'{head}"values":[{",".join(map(_number, values.tolist()))}]}}'
    texts = [cell_text(value) for value in values.tolist()]
    places = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    words = _dump([str(harmless(word)) for word in places])
    codes = [] if len(places) == len(texts) else [places[text] for text in texts]
    return f'{head}"words":{words},"codes":{_dump(codes)}}}'


def _number(value: float) -> str:
    """Return a number with six digits, integers whole."""
    if not math.isfinite(value):
        return "null"
    whole = abs(value) < 1e15 and value == int(value)
    return f"{int(value)}" if whole else f"{value:.6g}"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def hash_source(script: str) -> str:
    """Return the source of a content security policy that allows this script alone."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
