"""All rows of a page as data for its script, and how many positives to expect of them."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtr

from probgap._core.types import Array, Vector
from probgap.reporting._ranking import cell_text
from probgap.reporting._text import clip, harmless

if TYPE_CHECKING:
    import pandas as pd

    from probgap.reading import Reading
    from probgap.reporting._fit import Fit

MOST_ROWS = 50_000
_MOST_COLUMNS = 20
_MOST_CHARACTERS = 12_000_000  # of all columns; what matters least is left out
_N_STEPS = 80  # numbers of rows for which the expected positives are computed
_N_POINTS = 50  # rows that stand for those between two steps
_LEVELS = np.array([0.05, 0.95])


@dataclass(frozen=True, slots=True, eq=False)
class AllRows:
    """The unlabelled rows by rank, for a page whose reader can search and sort them.

    ``ranked`` has the columns ``row``, ``probability``, ``probability_low``,
    ``probability_high``, ``gap`` and perhaps ``id``; ``cells`` the columns that matter,
    the most telling first, with numbers as floats.
    """

    ranked: pd.DataFrame
    cells: pd.DataFrame
    expected: dict[str, list[float]]

    @classmethod
    def of(cls, fit: Fit, ranked: pd.DataFrame, names: list[str]) -> Self | None:
        """Return the rows of a fit; none if they are a sample of more."""
        if fit.classifier.row_weight_ is not None:
            return None
        rows = ranked.index[~fit.labelled[ranked.index]]
        cells = fit.inputs[[name for name in names if name in fit.inputs]]
        estimate, posterior = fit.classifier.reading_, fit.classifier.posterior_[rows]
        expected = expect_positives(estimate, posterior)
        return cls(ranked.loc[rows], cells.iloc[rows], expected)


def expect_positives(reading: Reading, posterior: ArrayLike) -> dict[str, list[float]]:
    """Return how many positives to expect among the top rows, by the curves of a fit.

    Each curve gives a number of positives among the first k rows; the interval is that of
    all curves by weight, each with its spread and luck. Numbers never fall with k, and
    never exceed those of all rows, which are those of the headline.

    Parameters
    ----------
    reading : Reading
        ``reading_`` of a classifier.
    posterior : array-like of shape (n_unlabelled,)
        P(Y=1 | x) of the unlabelled rows, in the order of their rank.

    Returns
    -------
    dict of list
        For each number ``k`` of rows from the top, from 1 to all, the ends ``low`` and
        ``high`` of the 90% interval of the positives among them, and the ``mean``.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.reporting._rows import expect_positives
    >>> from probgap.reading import read
    >>> rng = np.random.default_rng(0)
    >>> positive = np.arange(1000) < 400
    >>> scores = rng.normal(4.0 * positive)
    >>> labelled = positive & (rng.random(1000) < 0.5)
    >>> reading = read(scores, labelled)
    >>> ranked = np.sort(reading.posterior(scores[~labelled]))[::-1]
    >>> expected = expect_positives(reading, ranked)
    >>> (expected["low"][-1], expected["high"][-1]) == reading.n_hidden_interval
    True
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
    odds = reading.log_odds(reading.find_scores(chances[chosen]))
    curves = reading.curves.unfolded(reading.scores)
    first = np.cumsum([0, *(len(part) for part in points[:-1])])
    share = np.repeat(sizes / [len(part) for part in points], [len(p) for p in points])
    sums = np.add.reduceat(curves.each(odds) * share, first, axis=1).cumsum(axis=1)
    low, high = _quantiles(sums / steps, curves.weights, curves.spread, steps) * steps
    mean = curves.weights @ sums
    least, most = reading.n_hidden_interval
    ends = ((low, least), (mean, reading.n_hidden), (high, most))
    low, mean, high = (_up_to(values, last) for values, last in ends)
    low, high = np.minimum(low, mean), np.maximum(high, mean)
    parts = (steps, low, mean, high)
    return {
        name: part.tolist()
        for name, part in zip(("k", "low", "mean", "high"), parts, strict=True)
    }


def _up_to(values: Vector, last: float) -> Vector:
    """Return counts that rise to ``last``."""
    rising = np.minimum(np.maximum.accumulate(values), last)
    return np.append(rising[:-1], last)


def _quantiles(shares: Array, weights: Vector, spread: Vector, sizes: Vector) -> Array:
    """Return the 90% interval of shares whose log-odds are a mixture of normals.

    ``shares`` has a row for each curve, and a column for each number of rows.
    """
    by_luck = 1.0 / (sizes * shares * (1.0 - shares) + 1.0)
    centre, deviation = logit(shares), np.sqrt(spread[:, None] ** 2 + by_luck)
    low = np.tile((centre - 6.0 * deviation).min(axis=0), (2, 1))
    high = np.tile((centre + 6.0 * deviation).max(axis=0), (2, 1))
    for _ in range(40):  # bisection
        middle = 0.5 * (low + high)
        below = ndtr((middle[:, None] - centre) / deviation)
        short = np.einsum("c,ecs->es", weights, below) < _LEVELS[:, None]
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return expit(low)


def page_data(rows: AllRows, tree: dict[str, Any]) -> str:
    """Return the rows as JSON that no cell can end: for a block that is not run."""
    scores, cells = rows.ranked[:MOST_ROWS], rows.cells[:MOST_ROWS]
    columns = [
        _column("rank", range(1, len(scores) + 1)),
        *([_column("id", scores["id"])] if "id" in scores else []),
        _column("row", scores["row"]),
        _column("probability", scores["probability"].round(4)),
        _column("probability_low", scores["probability_low"].round(4)),
        _column("probability_high", scores["probability_high"].round(4)),
        _column("gap", scores["gap"].round(4)),
    ]
    used, names = sum(map(len, columns)), list(cells.columns)
    n_own = len(columns)
    for at in range(min(len(names), _MOST_COLUMNS)):
        column = _column(names[at], cells.iloc[:, at])
        used += len(column)
        if used > _MOST_CHARACTERS:
            break
        columns.append(column)
    expected = rows.expected
    about = {
        "n_rows": tree["found"]["unlabelled"],
        "own": n_own,
        "left": len(names) - (len(columns) - n_own),
        "k": expected["k"],
        **{
            name: [round(value, 3) for value in expected[name]]
            for name in ("low", "mean", "high")
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
    kind = getattr(getattr(values, "dtype", None), "kind", "i")
    if kind in "biuf":
        cells = values if isinstance(values, range) else values.tolist()
        return f'{head}"values":[{",".join(map(_number, cells))}]}}'
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
