"""Who was looked at: how often positives of each group were labelled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import issparse

from probgap._core._sklearn import safe_indexing
from probgap._core.checks import is_missing
from probgap._core.errors import InvalidInputError, refuse
from probgap._core.types import Array, Mask, Rows, Vector

__all__ = ["GroupRate", "Labelling"]

MISSING, OTHER = "(missing)", "(other)"
# Numbers with more distinct values than this, and dates, are cut at quantiles.
_MOST_LEVELS = 100
_N_BINS = 10
# And numbers with fewer rows for each value than this: of more values than bins, and of few.
_ROWS_OF_CODE, _ROWS_OF_LEVEL = 20, 5
# Of most categories, rarer ones are one group; interactions have at most this many cells,
# with so many rows for each on average: what more would tell takes longer than all the rest.
_MOST_GROUPS = 300
_ROWS_OF_CELL = 10
# Standard deviations of log-rates to choose from, and the evidence in natural units that a
# column must have for its rates to be taken for unequal at all.
_DEVIATIONS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
_LEAST_EVIDENCE = 3.0
_MOST_CHANCE = 0.999
# Rows are clear if they are as clear as these shares of the labelled ones; labels are as
# likely as can be at this quantile of the labelled rows, and in groups whose log-rate is this
# near to the greatest.
_CLEAR, _SURELY, _NEARLY = (0.75, 0.5, 0.25), 0.9, 0.3
# What share of impure clear rows could explain, in squares of its logarithm.
_DOUBT, _MEANINGLESS = 2.0, 1e-9
# Beyond this chance of a label a model that knows of no rates is not believed.
_MOST_FIRST = 0.99
# Log-rates are less sure than the labels say by this factor: chances are estimates, too.
_UNSURE = 1.3
_N_DRAWS, _INTERVAL, _NORMAL = 100, (0.05, 0.95), 1.645


@dataclass(frozen=True, slots=True)
class GroupRate:
    """How often positives of one group were labelled, against those of the best group.

    Attributes
    ----------
    column, level : str
        The declared column, and its value or range of values.
    rows, labelled : int
        Rows of the group, and labelled ones among them.
    rate, rate_low, rate_high : float
        Chance of a clear positive to be labelled, relative to the group where it is
        greatest, and its 90% interval.
    hidden, hidden_low, hidden_high : float
        Expected number of hidden positives, and its 90% interval.
    """

    column: str
    level: str
    rows: int
    labelled: int
    rate: float
    rate_low: float
    rate_high: float
    hidden: float = float("nan")
    hidden_low: float = float("nan")
    hidden_high: float = float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class Labelling:
    """Who was looked at, by the columns that were declared to say so.

    It assumes that the clearest positives are alike in all groups and, of a column that was
    not kept among the features, that the truth does not depend on it once the other columns
    are known. Labels alone test that only where the truth cannot be told without the
    column (the warning "declared"); an audit by group tests it everywhere.

    Attributes
    ----------
    columns, kept : tuple of str
        The declared columns, and those that the truth depends on as well.
    groups : tuple of GroupRate
        The groups of each column.
    rate : ndarray of shape (n_rows,)
        Relative rate of each training row: 1 in the group looked at most.
    evidence : float
        Log-likelihood of the labels less that with equal rates, penalised for the number of
        groups. 0 where rates were taken for equal.
    hidden_as_features : tuple of float or None
        90% interval of the number of hidden positives if the columns were features and
        nothing else, where that explains held-out labels much better; else None.
    """

    columns: tuple[str, ...]
    kept: tuple[str, ...]
    groups: tuple[GroupRate, ...]
    rate: Vector
    evidence: float
    hidden_as_features: tuple[float, float] | None = None


# --- groups ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """The groups of a column: the level of each row, and the names of the levels."""

    name: str
    code: Rows
    levels: tuple[str, ...]
    ordered: bool = False  # neighbouring levels are alike
    measured: bool = False  # levels are ranges of numbers

    @property
    def precision(self) -> Array:
        """Return the prior precision of the levels' log-rates, but for a factor."""
        n = len(self.levels)
        if not self.ordered:
            return np.eye(n)
        steps = np.diff(np.eye(n), axis=0)
        return steps.T @ steps * n + np.eye(n) / n


def make_factor(name: str, cells: NDArray[Any], *, codes: bool = True) -> Factor:
    """Cut numbers and dates into ranges, and take other values for levels.

    So are whole numbers that repeat, if they may be ``codes``.
    """
    missing = is_missing(cells) | (
        np.isnat(cells) if cells.dtype.kind in "mM" else False
    )
    present = cells[~missing]
    values, numeric = _as_numbers(present)
    code = np.empty(cells.size, dtype=np.intp)
    cut = False
    if numeric is not None and (cut := _is_continuous(numeric, codes)):
        code[~missing], levels = _cut(numeric, values)
    else:
        code[~missing], levels = _take_levels(present)
        if len(levels) > _MOST_LEVELS and 2 * len(np.unique(present)) > present.size:
            refuse(
                "labelled_by must name columns whose values repeat, such as who labelled. "
                f"Got {name!r}, which has {len(np.unique(present)):,} values in "
                f"{cells.size:,} rows."
            )
    if missing.any():
        code[missing] = len(levels)
        levels = [*levels, MISSING]
    ordered = numeric is not None and not missing.any() and OTHER not in levels
    measured = cut and values.dtype.kind != "M"
    return Factor(name, code, tuple(levels), ordered, measured)


def _as_numbers(values: NDArray[Any]) -> tuple[NDArray[Any], Vector | None]:
    """Return dates as such, and numbers or dates as floats; None if they are neither."""
    if values.dtype.kind == "O" and values.size:
        if all(hasattr(value, "isoformat") for value in values):
            values = np.array([v.isoformat()[:10] for v in values], dtype="M8[D]")
        elif all(isinstance(v, int | float | np.number) for v in values):
            values = values.astype(np.float64)
    if values.dtype.kind == "M":
        return values, values.astype("M8[s]").astype(np.float64)
    if values.dtype.kind in "fiu":
        return values, values.astype(np.float64)
    return values, None


def _is_continuous(numeric: Vector, codes: bool) -> bool:
    distinct = np.unique(numeric).size
    whole = bool((numeric == np.round(numeric)).all())
    most = _MOST_LEVELS if whole and codes else _N_BINS
    fewest = _ROWS_OF_CODE if distinct > _N_BINS else _ROWS_OF_LEVEL
    return distinct > most or distinct > max(2.0, numeric.size / fewest)


def _cut(numeric: Vector, values: NDArray[Any]) -> tuple[Rows, list[str]]:
    """Cut numbers at quantiles, and name the ranges by the values at their ends."""
    edges = np.quantile(numeric, np.arange(1, _N_BINS) / _N_BINS, method="inverted_cdf")
    edges = np.unique(edges)
    code = np.searchsorted(edges, numeric, side="left")
    used, code = np.unique(code, return_inverse=True)
    ends = [values[code == k] for k in range(used.size)]
    return code, [f"{_shown(end.min())} to {_shown(end.max())}" for end in ends]


def _shown(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return str(value.astype("M8[D]"))
    return f"{value:.10g}" if float(value).is_integer() else f"{value:.4g}"


def _take_levels(present: NDArray[Any]) -> tuple[Rows, list[str]]:
    """Take each value for a level; of very many, the rarer ones are one."""
    if present.dtype.kind in "fiubM":
        values, code = np.unique(present, return_inverse=True)
        names = [_shown(v) if v.dtype.kind in "fM" else str(v) for v in values]
    else:
        values, code = np.unique([str(value) for value in present], return_inverse=True)
        names = values.tolist()
    if len(names) <= _MOST_GROUPS:
        return code.astype(np.intp), names
    counts = np.bincount(code)
    kept = np.sort(np.argsort(-counts, kind="stable")[: _MOST_GROUPS - 1])
    place = np.full(counts.size, kept.size)
    place[kept] = np.arange(kept.size)
    return place[code], [*(names[k] for k in kept), OTHER]


def declare(
    X: Any, labelled_by: Iterable[str | int], keep: Iterable[str | int]
) -> tuple[Any, Declared, Rows]:
    """Take the declared columns out of X, but for those that are kept.

    Returns the other columns, the declared ones, and the positions that were taken out.
    """
    names = list(getattr(X, "columns", ()))
    n_columns = len(names) or X.shape[1]
    at = {
        _place(given, names, n_columns, "labelled_by"): given for given in labelled_by
    }
    kept = {_place(given, names, n_columns, "keep"): given for given in keep}
    if not at:
        refuse("labelled_by must name a column, or be None. Got none.")
    if odd := [given for place, given in kept.items() if place not in at]:
        refuse(f"keep must hold columns of labelled_by. Got {odd[0]!r}.")
    out = np.array(sorted(set(at) - set(kept)), dtype=np.intp)
    rest = np.setdiff1d(np.arange(n_columns), out)
    if rest.size == len(kept):
        refuse(
            "labelled_by must leave a column to learn from. Got "
            f"{', '.join(map(str, at.values()))}, which are all."
        )
    factors = tuple(
        make_factor(str(given), _cells(X, place)) for place, given in at.items()
    )
    places = np.searchsorted(rest, list(kept))
    where = {str(given): places[[k]] for k, given in enumerate(kept.values())}
    return take_columns(X, rest), Declared(factors, where), out


def _place(given: Any, names: list[Any], n_columns: int, what: str) -> int:
    """Return the position of a column given by name or position."""
    place = names.index(given) if given in names else given
    whole = isinstance(place, int | np.integer) and not isinstance(place, bool)
    if whole and -n_columns <= place < n_columns and names.count(given) < 2:
        return int(place) % n_columns
    has = f"has {', '.join(map(str, names[:8]))}" if names else f"has {n_columns}"
    if given in names:
        has += ", some of one name"
    msg = f"{what} must hold columns of X, which {has}. Got {given!r}."
    raise InvalidInputError(msg)


def _cells(X: Any, place: int) -> NDArray[Any]:
    column = safe_indexing(X, place, axis=1)
    column = column.toarray() if issparse(column) else np.asarray(column)
    return column.ravel()


def take_columns(X: Any, places: Rows) -> Any:
    """Return some columns of an array, a sparse matrix or a frame."""
    return safe_indexing(X, places, axis=1)


# --- rates -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """The declared columns: their groups, and where kept ones stand among the samples."""

    factors: tuple[Factor, ...]
    kept: Mapping[str, Rows]

    def take(self, rows: Any) -> Declared:
        """Return the groups of some rows."""
        factors = []
        for factor in self.factors:
            used, code = np.unique(factor.code[rows], return_inverse=True)
            levels = tuple(factor.levels[k] for k in used)
            factors.append(replace(factor, code=code, levels=levels))
        return replace(self, factors=tuple(factors))

    def as_features(self, most: int) -> Array | None:
        """Return a column of 0 and 1 for each level, or the place of ordered ones.

        None if that would be more columns than ``most``.
        """
        parts = [
            factor.code[:, None] / len(factor.levels)
            if factor.ordered
            else factor.code[:, None] == np.arange(len(factor.levels))
            for factor in self.factors
        ]
        width = sum(part.shape[1] for part in parts)
        return None if width > most else np.hstack(parts).astype(np.float64)

    def rate_of(self, rows: Rows, known: Rows, rate: Vector) -> Vector:
        """Return rates of rows by those of other rows of the same groups; 1 without any."""
        codes = np.stack([factor.code for factor in self.factors], axis=1)
        group = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
        found = np.ones(group.max() + 1)
        found[group[known]] = rate
        return found[group[rows]]

    @property
    def kept_at(self) -> Rows:
        """Positions of the kept columns among the samples."""
        return np.concatenate([*self.kept.values(), np.empty(0, dtype=np.intp)])


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Log-rates of all levels, and what the labels say of them."""

    factors: tuple[Factor, ...]  # those of columns, and of each two of them
    effects: Vector  # an intercept, then the levels of each factor
    drawn: Array  # the same from their posterior, with unequal rates; one row for each draw
    evidence: float

    def log_rate(self, effects: Vector | None = None) -> Vector:
        """Return the log-rate of each row; all are relative, and the greatest is 0."""
        total = self.total(effects)
        return total - total.max()

    def total(
        self, effects: Vector | None = None, names: Sequence[str] | None = None
    ) -> Vector:
        """Return the sum of intercept and effects of each row, of some columns or all."""
        effects = self.effects if effects is None else effects
        total = np.full(self.factors[0].code.size, effects[0])
        for start, factor in _places(self.factors):
            if names is None or factor.name in names:
                total += effects[start + factor.code]
        return total

    def first_chance(self, observed: Vector, declared: Declared) -> Vector:
        """Return the chance of a label had everybody been looked at, given that which is.

        A model of labels that has seen the kept columns has learnt their rates: it is
        divided by them. One that has not has learnt the mean rate: its level is raised.
        """
        if declared.kept:
            total = self.total(names=list(declared.kept))
            raised = observed * np.exp(total.max() - total)
        else:
            raised = observed * np.exp(self.total().max())
        return np.clip(raised, 0.0, _MOST_FIRST)


def _places(factors: Sequence[Factor]) -> Iterator[tuple[int, Factor]]:
    start = 1
    for factor in factors:
        yield start, factor
        start += len(factor.levels)


def fit_rates(
    declared: Declared, chance: Vector, labelled: Mask, weight: Vector, seed: int
) -> Rates:
    """Estimate how often rows of each group are labelled, given their chance otherwise.

    A row is labelled with ``chance`` times the rate of its groups. Log-rates are sums over
    columns and pairs of columns, with normal priors of which the evidence chooses the
    widths.
    """
    everywhere = np.ones(labelled.size, dtype=bool)
    return _fit_rates(declared, chance, labelled, weight, everywhere, seed)


def fit_clear_rates(
    declared: Declared,
    others: Vector,
    observed: Vector,
    labelled: Mask,
    weight: Vector,
    seed: int,
) -> Rates:
    """Estimate rates of groups from the rows that the other columns find clearest.

    As if these were all positive, so that they are labelled at the rates of their groups.
    Where fewer of them are labelled in the best group than the chance of a label,
    ``observed`` by all columns, rises to, some are not positive, perhaps more in one group
    than in another: rates that this could explain are taken for equal. The mean is taken
    over smaller and larger sets of clear rows.
    """
    most = float(np.quantile(observed[labelled], _SURELY))
    found = []
    for k, share in enumerate(_CLEAR):
        clear = others >= np.quantile(others[labelled], 1.0 - share)
        alike = np.full(
            labelled.size, np.average(labelled[clear], weights=weight[clear])
        )
        rates = _fit_rates(declared, alike, labelled, weight, clear, seed + k)
        total = rates.total()
        best = clear & (total >= total[clear].max() - _NEARLY)
        pure = float(np.average(labelled[best], weights=weight[best])) / most
        spread = max(float(total[clear].var()), _MEANINGLESS)
        doubt = _DOUBT * np.log(np.clip(pure, _MEANINGLESS, 1.0)) ** 2 / spread
        part = max(0.0, 1.0 - doubt) if rates.evidence > 0.0 else 0.0
        found.append((rates, part))
    effects = np.mean([part * rates.effects for rates, part in found], axis=0)
    drawn = [rates.drawn[k :: len(found)] for k, (rates, _) in enumerate(found)]
    evidence = float(np.mean([part * rates.evidence for rates, part in found]))
    return Rates(found[0][0].factors, effects, np.concatenate(drawn), evidence)


def _fit_rates(
    declared: Declared,
    chance: Vector,
    labelled: Mask,
    weight: Vector,
    used: Mask,
    seed: int,
) -> Rates:
    """Estimate rates from some of the rows."""
    factors = _with_pairs(declared.factors)
    problem = _Problem(
        [replace(factor, code=factor.code[used]) for factor in factors],
        chance[used],
        labelled[used].astype(np.float64),
        weight[used],
    )
    equal = problem.fit(np.zeros(len(factors)))
    best, deviations = equal, np.zeros(len(factors))
    for _ in range(2):  # twice, as factors explain the same in part
        for k in range(len(factors)):
            for deviation in (0.0, *_DEVIATIONS):
                tried = _replaced(deviations, k, deviation)
                if (tried == deviations).all():
                    continue
                found = problem.fit(tried, start=best.effects)
                more = np.count_nonzero(tried) - np.count_nonzero(deviations)
                if found.evidence > best.evidence + more * _LEAST_EVIDENCE:
                    best, deviations = found, tried
    # Where rates of a column were taken for equal, intervals say how unequal they may be.
    widest = deviations.copy()
    for k in np.flatnonzero(deviations[: len(declared.factors)] == 0.0).tolist():
        for deviation in _DEVIATIONS:
            found = problem.fit(_replaced(widest, k, deviation), start=best.effects)
            if found.evidence > best.evidence - _LEAST_EVIDENCE:
                widest[k] = deviation
    unsure = problem.fit(widest, start=best.effects)
    rng, covariance = np.random.default_rng(seed), _UNSURE**2 * unsure.covariance
    drawn = rng.multivariate_normal(
        unsure.effects, covariance, size=_N_DRAWS, method="eigh"
    )
    evidence = best.evidence - equal.evidence
    return Rates(tuple(factors), best.effects, drawn, evidence)


def _replaced(values: Vector, k: int, value: float) -> Vector:
    return np.where(np.arange(values.size) == k, value, values)


def equal_rates(rates: Rates) -> Rates:
    """Return rates taken for equal, with the same doubt about them."""
    return replace(rates, effects=np.zeros(rates.effects.size), evidence=0.0)


def _with_pairs(factors: Sequence[Factor]) -> list[Factor]:
    """Return the factors, and a factor of each two of them that are not too many cells."""
    pairs, left = [], min(_MOST_GROUPS, factors[0].code.size // _ROWS_OF_CELL)
    for one, other in combinations(factors, 2):
        both = one.code * len(other.levels) + other.code
        used, code = np.unique(both, return_inverse=True)
        if used.size <= left:
            left -= used.size
            levels = tuple(map(str, used))
            pairs.append(Factor(f"{one.name} and {other.name}", code, levels))
    return [*factors, *pairs]


class _Solution(NamedTuple):
    effects: Vector
    covariance: Array
    evidence: float


class _Problem:
    """The penalised likelihood of log-rates."""

    def __init__(
        self,
        factors: Sequence[Factor],
        chance: Vector,
        observed: Vector,
        weight: Vector,
    ) -> None:
        self.observed, self.weight = observed, weight
        self.log_chance = np.log(np.clip(chance, 1e-12, _MOST_CHANCE))
        places = list(_places(factors))
        self.size = places[-1][0] + len(factors[-1].levels)
        self.columns = [np.zeros(observed.size, dtype=np.intp)]
        self.columns += [start + factor.code for start, factor in places]
        self.places = places

    def fit(self, deviations: Vector, start: Vector | None = None) -> _Solution:
        prior, log_det = self._prior(deviations)
        effects = np.zeros(self.size) if start is None else start.copy()
        value, gradient, hessian = self._at(effects, prior)
        for _ in range(50):
            step = cho_solve(cho_factor(hessian), gradient)
            size = 1.0
            while True:
                tried = effects - size * step
                found = self._at(tried, prior)
                if found[0] <= value + 1e-10 or size < 1e-6:
                    break
                size *= 0.5
            fell = value - found[0]
            effects, (value, gradient, hessian) = tried, found
            if fell < 1e-8:
                break
        factor = cho_factor(hessian)
        log_det -= 2.0 * np.log(np.diag(factor[0])).sum()
        covariance = cho_solve(factor, np.eye(self.size))
        return _Solution(effects, covariance, -value + 0.5 * log_det)

    def _prior(self, deviations: Vector) -> tuple[Array, float]:
        prior, log_det = np.zeros((self.size, self.size)), 0.0
        prior[0, 0] = 1e-4
        for (start, factor), deviation in zip(self.places, deviations, strict=True):
            scale = 1.0 / max(deviation, 1e-3) ** 2
            block = slice(start, start + len(factor.levels))
            prior[block, block] = scale * factor.precision
            log_det += np.linalg.slogdet(prior[block, block])[1]
        return prior, log_det

    def _at(self, effects: Vector, prior: Array) -> tuple[float, Vector, Array]:
        log_rate = np.sum([effects[column] for column in self.columns], axis=0)
        # Beyond a certain label the rate no longer matters.
        log_label = np.minimum(self.log_chance + log_rate, np.log(_MOST_CHANCE))
        free = self.log_chance + log_rate < np.log(_MOST_CHANCE)
        label = np.exp(log_label)
        s, w = self.observed, self.weight
        value = -w @ np.where(s > 0.0, log_label, np.log1p(-label))
        odds = label / (1.0 - label)
        slope = w * free * np.where(s > 0.0, -1.0, odds)
        curvature = w * free * np.where(s > 0.0, 0.0, odds / (1.0 - label))
        # The loss of a labelled row is linear in its log-rate, and has no curvature.
        gradient, hessian = np.zeros(self.size), np.zeros((self.size, self.size))
        for i, one in enumerate(self.columns):
            gradient += np.bincount(one, slope, self.size)
            for other in self.columns[: i + 1]:
                block = np.bincount(one * self.size + other, curvature, self.size**2)
                block = block.reshape(self.size, self.size)
                hessian += block if one is other else block + block.T
        pulled = prior @ effects
        return float(value + 0.5 * effects @ pulled), gradient + pulled, hessian + prior


# --- what follows ----------------------------------------------------------------------


def missed(chance: Vector, log_rate: Vector, labelled: Mask) -> Vector:
    """Return how likely each row would be labelled, had everybody been looked at alike.

    ``chance`` is that before it is known whether the row is labelled.
    """
    rate = np.exp(log_rate)
    left = chance * (1.0 - rate) / (1.0 - chance * rate)
    return np.where(labelled, 1.0, left)


@dataclass(frozen=True, slots=True, eq=False)
class LabellingFit:
    """Rates, and what they say of each row."""

    rates: Rates
    chance: Vector  # of a label, had everybody been looked at alike
    declared: Declared
    labelled: Mask
    weight: Vector
    as_features: tuple[float, float] | None = None  # see Labelling.hidden_as_features

    @property
    def missed(self) -> Vector:
        """How likely each row would be labelled, had everybody been looked at alike."""
        return missed(self.chance, self.rates.log_rate(), self.labelled)

    def count_missed(self) -> tuple[float, float]:
        """Return how many unlabelled rows would be labelled, and its standard deviation."""
        each = [self._missed_by(effects) for effects in self.rates.drawn]
        unseen = self.weight * ~self.labelled
        counts = [float(unseen @ left) for left in each]
        return float(unseen @ self.missed), float(np.std(counts))

    def _missed_by(self, effects: Vector) -> Vector:
        return missed(self.chance, self.rates.log_rate(effects), self.labelled)

    def describe(self, probability: Vector, low: float, high: float) -> Labelling:
        """Return rates and hidden positives of each group, with their intervals.

        ``probability`` is that of each row to be positive; ``low`` and ``high`` are the ends
        of the interval of the number of all hidden positives.
        """
        n_hidden = float(self.weight[~self.labelled] @ probability[~self.labelled])
        spread = (high - low) / (2.0 * _NORMAL * max(n_hidden, 1.0))
        factors, unseen = self.declared.factors, self.weight * ~self.labelled
        chance = self.weight * self.chance

        def relative(factor: Factor, rate: Vector) -> Vector:
            means = _sums(factor, chance * rate) / _sums(factor, chance)
            return means / means.max()

        rate, groups = np.exp(self.rates.log_rate()), []
        drawn: list[list[tuple[Vector, Vector]]] = [[] for _ in factors]
        for effects in self.rates.drawn:
            other, left = np.exp(self.rates.log_rate(effects)), self._missed_by(effects)
            for factor, each in zip(factors, drawn, strict=True):
                count = _sums(factor, unseen * left)
                each.append((relative(factor, other), count))
        for factor, each in zip(factors, drawn, strict=True):
            middle = relative(factor, rate)
            rates = np.array([drawn_rates for drawn_rates, _ in each])
            least, most = np.quantile(rates, _INTERVAL, axis=0)
            known = _sums(factor, self.weight * self.labelled)
            least = np.where(known == 0.0, 0.0, least)  # perhaps nobody was looked at
            hidden = _sums(factor, unseen * probability)
            by_rates = np.std([count for _, count in each], axis=0)
            wide = _NORMAL * np.sqrt(by_rates**2 + (spread * hidden) ** 2 + hidden)
            unlabelled = _sums(factor, unseen)
            columns = {
                "rows": np.rint(_sums(factor, self.weight)).astype(int),
                "labelled": np.rint(known).astype(int),
                "rate": middle,
                "rate_low": np.minimum(least, middle),
                "rate_high": np.maximum(most, middle),
                "hidden": hidden,
                "hidden_low": np.maximum(hidden - wide, 0.0),
                "hidden_high": np.clip(hidden + wide, hidden, unlabelled),
            }
            rows = zip(*(column.tolist() for column in columns.values()), strict=True)
            groups += [
                GroupRate(factor.name, level, *row)
                for level, row in zip(factor.levels, rows, strict=True)
            ]
        return Labelling(
            columns=tuple(factor.name for factor in factors),
            kept=tuple(self.declared.kept),
            groups=tuple(groups),
            rate=rate,
            evidence=self.rates.evidence,
            hidden_as_features=self.as_features,
        )


def _sums(factor: Factor, values: Vector) -> Vector:
    """Return the sum of values in each group."""
    return np.bincount(factor.code, values, len(factor.levels)).astype(np.float64)
