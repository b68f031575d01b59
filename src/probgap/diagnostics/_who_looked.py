"""Find the columns that labels may go by because they say who was looked at."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import inv
from scipy.sparse import issparse
from scipy.special import expit, logit

from probgap._core.defaults import DEFAULTS
from probgap._core.errors import InvalidInputError
from probgap._core.estimators import (
    check_rows,
    classifier_of,
    input_columns,
    log_odds,
    sample_rows,
    samples_of,
    take_rows,
)
from probgap._core.learners import LearnerTask, fit_forest, stratified_folds
from probgap._core.mixture import choose_view
from probgap._core.newton import fit_few
from probgap._core.runtime import (
    RandomStateLike,
    as_generator,
    draw_seed,
    one_thread,
)
from probgap._core.types import Mask, Rows, Vector
from probgap.labelling import (
    Declared,
    Factor,
    GroupRate,
    LabellingFit,
    fit_rates,
    make_factor,
)
from probgap.pgpu.steps import TrainingRows, read_gap
from probgap.reading.network import platt_scaling
from probgap.tables import TOO_RARE, plain_values

# Fewest rows of either kind, and fewest labelled rows to ask about a column.
_FEWEST = 5
# Evidence that a column must have to be asked about, in all and for each labelled row; and
# for each labelled row if it is a measured number. What makes a positive is more often one
# of these: then it is not asked about if it tells more of the labels than all other columns
# together, or is not so many times stronger than the next (benchmarks/who.py).
_LEAST_EVIDENCE, _LEAST_PER_LABEL, _LEAST_MEASURED, _STANDS_OUT = 8.0, 0.1, 0.15, 2.0
# Columns to try by a forest; of so many that a linear model knows; by as many rows.
_N_TRIED, _MOST_COLUMNS, _MOST_ROWS = 3, 100, 5000
_N_FOLDS = 5
_USES = ("number", "date", "category")


@dataclass(frozen=True, slots=True, eq=False)
class LabellingColumn:
    """A column whose values change how often rows are labelled.

    Attributes
    ----------
    name : str
        The column.
    evidence : float
        Log-likelihood of the labels with a rate for each group of the column, less that
        with equal rates, given what all other columns say; penalised for the number of
        groups.
    strong : bool
        Whether to ask somebody who knows why that is so.
    groups : tuple of GroupRate
        How often rows of each group are labelled that are alike otherwise, and how many
        positives it hides, if the column says who was looked at.
    n_hidden, n_hidden_interval : float, tuple of float
        Expected number of all hidden positives in that case, and its 90% interval; in the
        other case it is that of the model, ``estimate_``.
    """

    name: str
    evidence: float
    strong: bool
    groups: tuple[GroupRate, ...]
    n_hidden: float
    n_hidden_interval: tuple[float, float]


def labelling_columns(
    model: Any,
    X: Any,
    labelled: ArrayLike,
    *,
    max_columns: int = _N_TRIED,
    max_rows: int = _MOST_ROWS,
    random_state: RandomStateLike = None,
) -> tuple[LabellingColumn, ...]:
    """Find the columns that labels go by, beyond what all other columns explain.

    More labels in clinic A than in clinic C, among rows that are alike otherwise, have one
    of two reasons: more of these rows are positive, or more of them were looked at. Data
    cannot tell which; somebody who knows the clinics can. If they were looked at, fit again
    with ``labelled_by``.

    A linear model of the labels chooses the columns to try. Of each of these, a forest that
    has not seen it predicts who is labelled, out of bag, and a rate is fitted to each of its
    groups: its values, or ranges of numbers and dates.

    Parameters
    ----------
    model : PGPUClassifier, TableClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, frame} of shape (n_samples, n_features)
        The rows that it was fitted on. Of a table columns with many values are tried, too,
        that were too rare to learn from. A sparse matrix has no column to ask about.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    max_columns : int, default=3
        How many columns to try.
    max_rows : int, default=5000
        Larger data are sampled down to so many rows, stratified by label.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the sample and the forests.

    Returns
    -------
    tuple of LabellingColumn
        Columns with evidence for unequal rates, those to ask about first (measured numbers
        last of these: they more often say who is positive), then by their
        evidence. Columns that the model was told of (``labelled_by``), ids and texts are
        not among them.

    Notes
    -----
    It finds a column by its groups alone: not two columns that only together decide who is
    looked at. A column that makes a positive is found as well, most of all a number that
    nothing else stands for. ``benchmarks/who.py --part question`` has how often each
    happens.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap import PGPUClassifier
    >>> from probgap.diagnostics import labelling_columns
    >>> rng = np.random.default_rng(0)
    >>> clinic, signs = rng.integers(3, size=600), rng.normal(size=(600, 4))
    >>> X, sick = np.column_stack([clinic, signs]), signs.sum(axis=1) > 1.0
    >>> s = sick & (rng.random(600) < np.array([0.8, 0.3, 0.05])[clinic])
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> first = labelling_columns(model, X, s, random_state=0)[0]
    >>> first.name, first.strong, [f"{group.rate:.1f}" for group in first.groups]
    ('0', True, ['1.0', '0.3', '0.1'])
    >>> low, high = first.n_hidden_interval
    >>> bool(low < (sick & ~s).sum() < high)
    True
    """
    mask, rng = check_rows(X, labelled), as_generator(random_state)
    known = _know(model, X, mask, max_rows, rng)
    if min(np.bincount(known.labelled, minlength=2)) < _FEWEST:
        return ()
    factors = known.read_factors()
    with one_thread():
        found = [
            known.judge(factors[name], known.chance_without(name))
            for name in known.choose(factors, max_columns)
        ]
    unequal = [one for one in _tell_apart(found, factors) if one.evidence > 0.0]
    # A number more often says who is positive than who was looked at.
    measured = {factor.name for factor in factors.values() if factor.measured}

    def place(one: LabellingColumn) -> tuple[bool, bool, float]:
        return not one.strong, one.strong and one.name in measured, -one.evidence

    return tuple(sorted(unequal, key=place))


def _tell_apart(
    found: list[LabellingColumn], factors: dict[Any, Factor]
) -> Iterator[LabellingColumn]:
    """Yield columns; of measured numbers, none is strong beside another that nearly is."""
    measured = {factor.name for factor in factors.values() if factor.measured}
    for one in found:
        others = [each for each in found if each is not one and each.name in measured]
        next_best = max((each.evidence for each in others), default=0.0)
        alike = one.name in measured and one.evidence < _STANDS_OUT * next_best
        yield replace(one, strong=one.strong and not alike)


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """The rows to judge by, and what is known of them."""

    model: Any
    X: Any
    labelled: Mask
    weight: Vector
    scale: float  # how many rows of the fit each one stands for
    negative: Mask | None
    group: Rows | None
    rate: Vector  # at which each was looked at, by columns that were declared
    seed: int

    def read_factors(self) -> dict[Any, Factor]:
        """Return the groups of each column that may be asked about."""
        told = classifier_of(self.model).labelling_
        declared = () if told is None else told.columns
        factors = {}
        for name, cells in _read_cells(self.model, self.X):
            with suppress(InvalidInputError):  # names of rows
                factor = make_factor(str(name), cells, codes=False)
                if len(factor.levels) > 1 and factor.name not in declared:
                    factors[name] = factor
        return factors

    def choose(self, factors: dict[Any, Factor], most: int) -> list[Any]:
        """Return columns whose groups differ most from what other columns predict.

        That is a linear model of the labels by how often groups are labelled. Each column
        leaves it by a Newton step, which costs nothing.
        """
        if not factors:
            return []
        names, weight = list(factors), self.weight
        odds = np.column_stack([self._group_odds(each) for each in factors.values()])
        used = np.argsort(-odds.std(axis=0), kind="stable")[:_MOST_COLUMNS]
        odds = (odds - odds.mean(axis=0))[:, used]
        target, start = self.labelled.astype(np.float64), np.zeros(used.size + 1)
        coef, intercept = fit_few(odds, target, weight, start=start, ridge=(1.0, 0.0))
        chance = expit(odds @ coef + intercept)
        columns = np.column_stack([odds, np.ones(target.size)])
        curved = columns * (weight * chance * (1.0 - chance))[:, None]
        spread = inv(curved.T @ columns + np.eye(used.size + 1))
        solution = np.append(coef, intercept)
        tells = []
        for k, at in enumerate(used):
            others = solution - spread[:, k] * solution[k] / spread[k, k]
            tells.append(self._surprise(factors[names[at]], expit(columns @ others)))
        first = used[np.argsort(tells, kind="stable")[::-1][:most]]
        return [names[at] for at in first]

    def _group_odds(self, factor: Factor) -> Vector:
        """Return log-odds of a label in the group of each row, shrunk to those of all."""
        share = np.average(self.labelled, weights=self.weight)
        n_levels = len(factor.levels)
        hits = np.bincount(factor.code, self.weight * self.labelled, n_levels)
        rows = np.bincount(factor.code, self.weight, n_levels)
        return logit((hits + share) / (rows + 1.0))[factor.code]

    def _surprise(self, factor: Factor, chance: Vector) -> float:
        """Return how far groups are from what is expected: chi-squared, less its mean."""
        expected = self.weight * chance
        off = np.bincount(factor.code, self.weight * self.labelled - expected)
        variance = np.bincount(factor.code, expected * (1.0 - chance))
        return float(np.sum(off**2 / variance) - off.size)

    def chance_without(self, name: Any) -> Vector:
        """Return the chance of a label by all columns but one, held out."""
        tables = self.X, _without(self.X, name)
        seen, unseen = (samples_of(self.model, table) for table in tables)
        view = choose_view(seen, self.seed, DEFAULTS)
        fold = stratified_folds(self.labelled, _N_FOLDS, self.seed, self.group)
        task = LearnerTask(
            np.column_stack([view(unseen), self.rate]),
            self.labelled.astype(np.float64),
            self.weight,
            fold,
            self.seed,
            grouped=self.group is not None,
        )
        odds = fit_forest(task).held_out
        slope, offset = platt_scaling(odds, self.labelled, self.weight)
        return expit(slope * odds + offset)

    def judge(self, factor: Factor, chance: Vector) -> LabellingColumn:
        """Fit a rate to each group, and count as if they said who was looked at."""
        declared, rows = Declared((factor,), {}), (self.labelled, self.weight)
        rates = fit_rates(declared, chance, *rows, self.seed)
        least = _LEAST_MEASURED if factor.measured else _LEAST_PER_LABEL
        least = max(_LEAST_EVIDENCE, least * float(self.weight @ self.labelled))
        most = self._told_by(chance) if factor.measured else np.inf
        chance = rates.first_chance(chance, declared)
        weight = self.scale * self.weight
        looked = LabellingFit(rates, chance, declared, self.labelled, weight)
        scores = log_odds(chance)
        known = TrainingRows(scores[:, None], self.labelled, weight, self.negative)
        prior = getattr(classifier_of(self.model), "class_prior", None)
        estimate = read_gap(scores, looked, known, prior)
        hidden = looked.missed
        hidden = hidden + (1.0 - hidden) * estimate.hidden_probability(scores)
        ends = estimate.n_hidden_interval
        return LabellingColumn(
            name=factor.name,
            evidence=float(rates.evidence),
            strong=bool(least <= rates.evidence <= most),
            groups=looked.describe(hidden, *ends).groups,
            n_hidden=estimate.n_hidden,
            n_hidden_interval=ends,
        )

    def _told_by(self, chance: Vector) -> float:
        """Return how much more likely labels are by a chance than by their frequency."""
        share = np.average(self.labelled, weights=self.weight)
        odds = np.where(self.labelled, chance / share, (1 - chance) / (1 - share))
        return float(self.weight @ np.log(odds))


def _know(
    model: Any, X: Any, labelled: Mask, most: int, rng: np.random.Generator
) -> _Known:
    """Draw rows, and gather what the model was told of them."""
    classifier = classifier_of(model)
    weight, told = classifier.row_weight_, classifier.labelling_
    weight = np.ones(labelled.size) if weight is None else weight
    rate = np.ones(labelled.size) if told is None else np.nan_to_num(told.rate)
    present = np.flatnonzero(weight > 0.0)
    rows = present[sample_rows(labelled[present], most, rng)]
    negative, group = (
        None if each is None else each[rows]
        for each in (classifier.negative_, classifier.group_)
    )
    if hasattr(model, "plan_"):
        X = model._as_frame(X)
    elif not hasattr(X, "shape"):
        X = np.asarray(X)
    return _Known(
        model=model,
        X=take_rows(X, rows),
        labelled=labelled[rows],
        weight=weight[rows],
        scale=float(weight.sum() / weight[rows].sum()),
        negative=negative,
        group=None if group is None else np.unique(group, return_inverse=True)[1],
        rate=rate[rows],
        seed=draw_seed(rng),
    )


def _read_cells(model: Any, X: Any) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Yield the columns that may be asked about, and their cells."""
    if hasattr(model, "plan_"):
        for use in model.plan_.columns:
            if use.name in X and (use.use in _USES or use.why == TOO_RARE):
                yield use.name, plain_values(X[use.name])
    elif not issparse(X):
        for name in input_columns(model, X):
            yield name, np.asarray(X[name] if hasattr(X, "columns") else X[:, name])


def _without(X: Any, name: Any) -> Any:
    """Return rows that do not differ in a column: the first has what all of them get."""
    if hasattr(X, "columns"):
        first = np.zeros(len(X), dtype=np.intp)
        return X.assign(**{name: X[name].take(first).array}) if name in X else X
    changed = X.copy()
    changed[:, name] = X[0, name]
    return changed
