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
from probgap._core.types import Array, Mask, Rows, Vector

# Numbers and dates of more different values than this are cut at their quartiles.
_MOST_VALUES = 10
# A group gets about so many rows of the budget; smaller ones are merged.
ROWS_PER_GROUP = 10
MISSING, OTHER = "(missing)", "(other)"


class Group(NamedTuple):
    """A group of rows: its name, and how many rows are unlabelled and labelled.

    ``rate`` says how often its positives were labelled, by a model that knows who was
    looked at; relative to the best group.
    """

    name: str
    rows: int
    labelled: int
    rate: float | None = None


class GroupCount(NamedTuple):
    """What answers say about a group of rows.

    ``rows`` of it are unlabelled and ``labelled`` labelled; ``answered`` counts answers yes
    or no, ``positive`` yes, ``unknown`` "cannot tell". ``hidden`` is the estimated number of
    hidden positives with its 90% interval. Of the answered rows the model expects
    ``expected`` to be positive, and with 90% from ``expected_low`` to ``expected_high``;
    ``agrees`` says whether so many are; all four are None without answers, or if scores are
    no probabilities. ``rate``
    says how often positives of the group were labelled, the best group at 1, with its 90%
    interval: labelled positives over those and the hidden ones. ``model_rate`` is what a model
    fitted with ``labelled_by`` says of it, with the same group at 1, and ``rate_holds`` whether the interval has it;
    both are None without such a model.
    """

    group: str
    rows: int
    labelled: int
    answered: int
    positive: int
    unknown: int
    expected: float | None
    expected_low: int | None
    expected_high: int | None
    agrees: bool | None
    hidden: float
    hidden_low: float
    hidden_high: float
    rate: float
    rate_low: float
    rate_high: float
    model_rate: float | None
    rate_holds: bool | None

    @property
    def sentence(self) -> str:
        """What the answers about the group say of the model, in words."""
        checked = self.answered + self.unknown
        if not checked:
            return "nothing is checked yet"
        are = "is" if self.positive == 1 else "are"
        said = f"{self.positive} of {checked:,} checked {are} positive"
        if self.expected is None:
            return said
        why = "" if self.agrees else ", more than chance explains"
        said += (
            f"; expected {self.expected:.1f} ({self.expected_low:,} to "
            f"{self.expected_high:,}){why}"
        )
        if self.rate_holds is None or self.rate_low == 1.0:
            return said
        return (
            f"{said}; rate {self.rate:.2f} ({self.rate_low:.2f} to {self.rate_high:.2f}), "
            f"{'as' if self.rate_holds else 'not'} {self.model_rate:.2f} by the model"
        )


class Range(NamedTuple):
    """An estimate with the ends of its 90% interval."""

    estimate: float
    low: float
    high: float


def find_groups(
    values: Any, known: Mask, budget: int, fitted: Any = None
) -> tuple[NDArray[np.intp], tuple[Group, ...]]:
    """Return the group of each row, -1 for those of none, and the groups.

    Without values there are none. Groups with few unlabelled rows, or more than the budget
    can cover, are merged. ``fitted`` is the classifier, if rows are those of its fit.
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
    places = np.full(len(names), -1)
    places[kept] = np.arange(kept.size)
    codes = places[codes]
    negative = getattr(fitted, "negative_", None)  # checked, as labelled rows were
    positive = codes[known if negative is None else known & ~negative]
    labelled = np.bincount(positive[positive >= 0], minlength=kept.size)
    rates = _model_rates(fitted, codes, kept.size)
    groups = [
        Group(names[k], int(rows[k]), int(n), rate)
        for k, n, rate in zip(kept.tolist(), labelled, rates, strict=True)
    ]
    return codes, tuple(groups)


def _model_rates(fitted: Any, codes: Rows, n: int) -> list[float | None]:
    """Return how often a model believes positives of each group to have been labelled."""
    labelling = getattr(fitted, "labelling_", None)
    if labelling is None:
        return [None] * n
    chance = fitted.posterior_
    inside = (codes >= 0) & np.isfinite(labelling.rate)
    weights = [chance * labelling.rate, chance]
    of_group = [np.bincount(codes[inside], each[inside], n) for each in weights]
    rate = of_group[0] / of_group[1]
    return list((rate / rate.max()).tolist())


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
