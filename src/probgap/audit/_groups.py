"""Groups of rows, such as clinics: which there are, and how often each was labelled."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from probgap._core._sklearn import num_samples
from probgap._core.checks import is_missing
from probgap._core.errors import refuse
from probgap._core.types import Array, Mask, Vector

# Numbers and dates of more different values than this are cut at their quartiles.
_MOST_VALUES = 10
# A group gets about so many rows of the budget; smaller ones are merged.
ROWS_PER_GROUP = 10
MISSING, OTHER = "(missing)", "(other)"


class Group(NamedTuple):
    """A group of rows: its name, and how many rows are unlabelled and labelled."""

    name: str
    rows: int
    labelled: int


class Range(NamedTuple):
    """An estimate with the ends of its 90% interval."""

    estimate: float
    low: float
    high: float


def find_groups(
    values: Any, known: Mask, budget: int
) -> tuple[NDArray[np.intp], tuple[Group, ...]]:
    """Return the group of each row, -1 for those of none, and the groups.

    Without values there are none. Groups with few unlabelled rows, or more than the budget can cover, are merged.
    """
    if values is None:
        return np.zeros(known.size, dtype=np.intp), ()
    n_rows = num_samples(values)
    if n_rows != known.size:
        refuse(f"groups must have a value for each of {known.size} rows. Got {n_rows}.")
    codes, names = _name_levels(values)
    rows = np.bincount(codes[~known], minlength=len(names))
    n_groups, largest_one = np.count_nonzero(rows), rows.max()
    if n_groups < 2 or largest_one < ROWS_PER_GROUP:
        refuse(
            "groups must be two or more, one of them of at least "
            f"{ROWS_PER_GROUP} unlabelled rows. Got {n_groups:,}, the largest of "
            f"{largest_one:,}."
        )
    largest = np.argsort(-rows, kind="stable")
    large = largest[: max(2, budget // ROWS_PER_GROUP)]
    large = large[rows[large] >= ROWS_PER_GROUP]
    others = np.setdiff1d(np.flatnonzero(rows), large)
    if others.size > 1:
        last = len(names)  # the place of the merged ones
        names = [*names, f"{OTHER[:-1]}: {others.size} groups)"]
        codes = np.where(np.isin(codes, large), codes, last)
        rows = np.bincount(codes[~known], minlength=last + 1)
    kept = np.flatnonzero(rows)
    labelled = np.bincount(codes[known], minlength=len(names))
    places = np.full(len(names), -1)
    places[kept] = np.arange(kept.size)
    groups = [Group(names[k], int(rows[k]), int(labelled[k])) for k in kept.tolist()]
    return places[codes], tuple(groups)


def _name_levels(values: Any) -> tuple[NDArray[np.intp], list[str]]:
    """Return the level of each value, and the names of levels in their order."""
    array = np.asarray(values)
    if array.dtype.kind in "iufM":
        return _cut_numbers(array)
    missing = is_missing(array)
    names, found = np.unique(array[~missing].astype(str), return_inverse=True)
    codes = np.full(array.size, names.size)
    codes[~missing] = found
    return codes, [*names.tolist(), MISSING]


def _cut_numbers(array: Array) -> tuple[NDArray[np.intp], list[str]]:
    """Return the place of each value among those that occur, or its quarter, with names."""
    missing = np.isnat(array) if array.dtype.kind == "M" else np.isnan(array)
    present = array[~missing]
    values = np.unique(present)
    names = [_brief(each) for each in values]
    codes = np.searchsorted(values, array)
    if values.size > _MOST_VALUES:
        cuts = np.unique(np.sort(present)[present.size * np.arange(1, 4) // 4])
        codes = np.searchsorted(cuts, array)
        ends = [_brief(each) for each in cuts]
        inner = [f"{low} to {high}" for low, high in pairwise(ends)]
        names = [f"up to {ends[0]}", *inner, f"above {ends[-1]}"]
    return np.where(missing, len(names), codes), [*names, MISSING]


def _brief(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[D]"))
    return f"{value:.10g}" if float(value).is_integer() else f"{value:.4g}"


def update_rates(labelled: Sequence[int], hidden: Sequence[Range]) -> list[Range]:
    """Return how often positives of each group were labelled, the best group at 1.

    ``labelled`` counts labelled positives by group, and ``hidden`` the others, as answers
    tell them. The share of labelled ones has the binomial's interval (Jeffreys); it, the
    count's and those of the best group add up on the scale of logarithms.
    """
    n, h = np.array(labelled, dtype=float), np.array(hidden)
    log, most, least = np.log((n + 0.5) / (n + h.T + 1.0))
    by_chance = np.log(beta.ppf([[0.05], [0.95]], n + 0.5, h[:, 0] + 0.5))
    down = np.hypot(log - least, log - by_chance[0])
    up = np.hypot(most - log, by_chance[1] - log)
    # The best of those that are surely good: a few rows may all be labelled by chance.
    best = int(np.argmax(log - down))
    middle = np.minimum(log - log[best], 0.0)
    down, up = np.hypot(down, up[best]), np.hypot(up, down[best])
    down[best] = up[best] = 0.0
    ends = np.exp([middle, middle - down, np.minimum(middle + up, 0.0)])
    return [Range(*each) for each in ends.T.tolist()]


def count_law(chance: Vector) -> tuple[int, int]:
    """Return the 90% range of how many of some rows are positive, given their chances."""
    law = np.ones(1)
    for each in chance.tolist():
        law = np.convolve(law, [1.0 - each, each])
    below = np.cumsum(law)
    low, high = np.searchsorted(below, [0.05, 0.95 - 1e-12])
    return int(low), int(min(high, chance.size))
