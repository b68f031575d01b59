"""Draw the rows to ask about, with known probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.checks import check_labelled, check_scores
from probgap._core.errors import refuse
from probgap._core.estimators import classifier_of
from probgap._core.runtime import RandomStateLike, as_generator
from probgap._core.types import Mask, Rows, Vector
from probgap.audit._groups import Group, find_groups
from probgap.audit._teach import CorrectedClassifier, suggest

Kind = Literal["audit", "find", "teach"]
# True, False, or None for "cannot tell", by row.
AnswerByRow = Mapping[int, bool | None]

# A stratum gets about ten rows, and there are at most ten strata.
_ROWS_PER_STRATUM, _MOST_STRATA = 10, 10
_FEWEST = 2
# Added to the variance p (1 - p) that the model expects of an answer, so that rows that
# it is sure about are drawn too: at p = 0 or 1, two sevenths as often as at 1/2.
_DOUBT = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Rows to ask a person about, and how they were drawn: see :func:`design`.

    Attributes
    ----------
    kind : {"audit", "find", "teach"}
        How rows were chosen. Only "audit" allows a valid count.
    rows : ndarray of shape (n_asked,)
        Indices of the rows to ask about, in the order to ask.
    population : ndarray of shape (n_unlabelled,)
        Indices of all unlabelled rows, the highest score first, group by group; ties in
        random order.
    score : ndarray of shape (n_unlabelled,)
        Their scores.
    edges : ndarray of shape (n_strata + 1,)
        Stratum h is ``population[edges[h]:edges[h + 1]]``.
    permutation : ndarray of shape (n_unlabelled,)
        ``population`` with each stratum in random order: the order in which it is drawn.
    expected : tuple of float or None
        The model's own 90% interval of the number of hidden positives; None without a model,
        or if it was fitted with another number of unlabelled rows.
    seed : int
        Seeds the order of asking.
    by : str
        What groups are called, such as the name of their column; "" if they have no name.
    groups : tuple
        Name, number of unlabelled and of labelled rows, and relative rate by the model of
        each group, in the order of ``population``; empty if the design knows no groups.
    """

    kind: Kind
    rows: Rows
    population: Rows
    score: Vector
    edges: Rows
    permutation: Rows
    expected: tuple[float, float] | None
    seed: int
    by: str = ""
    groups: tuple[Group, ...] = ()

    @property
    def drawn(self) -> Rows:
        """Number of rows asked about in each stratum."""
        return count_rows(self, self.rows)

    @property
    def probability(self) -> Vector:
        """Inclusion probability of each of ``rows``; 1 if they were not drawn at random."""
        if self.kind != "audit":
            return np.ones(self.rows.size)
        share = self.drawn / np.diff(self.edges)
        return share[stratum_of(self, self.rows)]

    def extend(self, answers: AnswerByRow, budget: int = 50) -> Design:
        """Return a design with further rows, after those asked about so far.

        Strata and their random orders stay as they are. Strata whose answers differ most get
        most of the rows. That makes the count slightly biased, since the number of rows of
        a stratum then depends on its answers; with groups it goes by the scores, as at
        first.

        Parameters
        ----------
        answers : mapping of int to bool, str or None
            The answers so far, as for :func:`estimate`.
        budget : int, default=50
            The number of further rows.

        Returns
        -------
        Design
            Its ``rows`` begin with those of this one.
        """
        if self.kind == "teach":
            refuse(
                "A design of kind 'teach' must be extended by a corrected model: "
                "design(correct(model, X[rows], y), X, labelled=known, kind='teach')."
            )
        _check_budget(budget)
        if self.kind == "find":
            first = self.rows.size + budget
            return replace(self, rows=self.permutation[:first])
        rows, told = read_answers(self, answers)
        yes, no = (count_rows(self, rows[told == answer]) for answer in (1.0, 0.0))
        rate = (yes + 0.5) / (yes + no + 1.0)
        asked, size = self.drawn, np.diff(self.edges)
        deviation = np.sqrt(rate * (1.0 - rate))
        if self.groups:
            deviation = _mean_deviation(self)
        more = _allocate(size, deviation, asked, budget)
        return replace(
            self, rows=np.append(self.rows, _draw_rows_of(self, asked, more))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the design as plain data.

        Returns
        -------
        dict
            Ready for JSON.
        """
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Design:
        """Return the design that ``to_dict`` described.

        Parameters
        ----------
        plain : dict
            What ``to_dict`` returned.

        Returns
        -------
        Design
            The design.
        """
        whole = ("rows", "population", "edges", "permutation")
        arrays = {name: np.asarray(plain[name], dtype=np.intp) for name in whole}
        score = np.asarray(plain["score"], dtype=np.float64)
        groups = tuple(Group(*each) for each in plain.get("groups", ()))
        return cls(**{**plain, **arrays, "score": score, "groups": groups})


def design(
    scores: Any,
    X: Any = None,
    labelled: ArrayLike | None = None,
    *,
    budget: int = 100,
    kind: Kind = "audit",
    groups: ArrayLike | None = None,
    random_state: RandomStateLike = 0,
) -> Design:
    """Choose rows to ask a person about.

    With kind "audit", rows are drawn at random in strata of the score, more where the
    model is unsure and some where it is sure, so that :func:`estimate` can count the hidden
    positives whatever the model believes. With "find" the likeliest come first, with
    "teach" those that :func:`suggest` chooses; these two give no valid count.

    It assumes that answers do not depend on the score or the order: show rows in the order
    of ``rows`` and without their scores.

    Parameters
    ----------
    scores : PGPUClassifier, Pipeline, CorrectedClassifier or array of shape (n_rows,)
        A fitted model, or a score for each row that is greater for likelier positives.
        Scores from 0 to 1 are taken as probabilities.
    X : {array-like, sparse matrix, frame} of shape (n_rows, n_features), default=None
        Rows for the model to score; "teach" requires them. ``None`` takes the rows that it
        was fitted on, with their out-of-fold scores.
    labelled : array-like of shape (n_rows,), default=None
        True for rows that need no answer: labelled positives. ``None`` if there are none.
    budget : int, default=100
        The number of rows to ask about.
    kind : {"audit", "find", "teach"}, default="audit"
        What the answers are for.
    groups : array-like of shape (n_rows,), default=None
        What is to be counted one by one, such as the clinic of each row: then every group
        gets rows of its own. Numbers and dates of more than ten values are cut at their
        quartiles, missing values are a group, and groups with fewer than ten unlabelled
        rows, or beyond one for ten rows of the budget, are merged. For kind "audit" alone.
    random_state : int, Generator, RandomState or None, default=0
        Seeds the draw.

    Returns
    -------
    Design
        The rows, and how they were drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.audit import design, estimate
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(2000) < 0.2
    >>> scores = np.clip(0.3 * positive + rng.uniform(0.0, 0.7, 2000), 0, 1)
    >>> asked = design(scores, budget=100)
    >>> answers = {row: bool(positive[row]) for row in asked.rows.tolist()}
    >>> low, high = estimate(asked, answers).count_interval
    >>> bool(low < positive.sum() < high)
    True
    """
    _check_budget(budget)
    if kind not in get_args(Kind):
        refuse(
            f"kind must be one of {', '.join(map(repr, get_args(Kind)))}. Got {kind!r}."
        )
    rng = as_generator(random_state)
    seed = int(rng.integers(2**31))
    is_model = hasattr(scores, "predict")
    values = _score_model(scores, X) if is_model else check_scores(scores)
    known = np.zeros(values.size, dtype=bool)
    if labelled is not None:
        known = check_labelled(labelled, values.size)
    elif is_model and X is None:
        rule = "labelled must be given with the rows that a model was fitted on"
        refuse(f"{rule}. Got None.")
    expected = None
    if is_model:
        values, expected = _given_unlabelled(scores, values, known, X)
    rows = np.flatnonzero(~known)
    if rows.size == 0:
        refuse("labelled must leave rows to ask about. Got none.")
    if groups is not None and kind != "audit":
        refuse(f"groups must be None for kind {kind!r}. Got values.")
    fitted = _classifier_in(scores) if is_model and X is None else None
    code, found = find_groups(groups, known, budget, fitted)
    mixed = rng.permutation(rows)
    population = mixed[np.lexsort((-values[mixed], code[mixed]))]
    score = values[population]
    whole = np.array([0, rows.size])
    made = Design(
        kind,
        population[:0],
        population,
        score,
        whole,
        population,
        expected,
        seed,
        str(getattr(groups, "name", None) or ""),
        found,
    )
    if kind == "find":
        return replace(made, rows=population[:budget])
    if kind == "teach":
        if not is_model or X is None:
            refuse("A design of kind 'teach' needs a model and X.")
        chosen = suggest(scores, X, budget, labelled=known, random_state=rng)
        return replace(made, rows=chosen)
    return _draw_strata(made, budget, rng)


def _draw_strata(made: Design, budget: int, rng: np.random.Generator) -> Design:
    """Cut the population, or each group of it, into strata, and draw rows of each."""
    deviation, ends = _deviations(made.score), group_ends(made)
    total = np.add.reduceat(deviation, ends[:-1])
    balance = _balance(made, ends, total)
    budgets = total * balance / (total @ balance) * budget
    cuts = [
        start + _cut(deviation[start:end], int(each // _ROWS_PER_STRATUM))
        for (start, end), each in zip(pairwise(ends), budgets, strict=True)
    ]
    edges = np.unique(np.concatenate([ends, *cuts]))
    parts = [np.arange(a, b) for a, b in pairwise(edges)]
    order = np.concatenate([rng.permutation(part) for part in parts])
    made = replace(made, edges=edges, permutation=made.population[order])
    none = np.zeros(len(parts), dtype=np.intp)
    more = _allocate(np.diff(edges), _mean_deviation(made), none, budget)
    return replace(made, rows=_draw_rows_of(made, none, more))


def _deviations(score: Vector) -> Vector:
    """Return the standard deviation that the model expects of each row's answer."""
    probable = score.min() >= 0.0 and score.max() <= 1.0
    chance = score if probable else np.full(score.size, 0.5)
    return np.sqrt(chance * (1.0 - chance) + _DOUBT)


def _mean_deviation(made: Design) -> Vector:
    """Return the mean deviation of strata, with groups balanced."""
    deviation, size = _deviations(made.score), np.diff(made.edges)
    mean = np.array([deviation[a:b].mean() for a, b in pairwise(made.edges)])
    return mean * _balance(made, made.edges, size * mean)


def _cut(deviation: Vector, n_strata: int) -> Rows:
    """Return where strata of equal sums of deviations end."""
    n_strata = int(np.clip(n_strata, 1, _MOST_STRATA))
    below = np.cumsum(deviation) / deviation.sum()
    return np.searchsorted(below, np.arange(1, n_strata) / n_strata)


def _balance(made: Design, edges: Rows, weight: Vector) -> Vector:
    """Return factors of the strata by which groups differ less in how often they are asked.

    Without them a group gets rows in proportion to its summed deviations (``weight``); with
    them, to their square root, between what is best for the total and equal shares.
    """
    group = np.searchsorted(group_ends(made), edges[:-1], side="right") - 1
    total = np.bincount(group, weights=weight)
    return np.sqrt(total.mean() / total)[group]


def group_ends(made: Design) -> Rows:
    """Return where groups begin and end in the population; without groups it is one."""
    sizes = [group.rows for group in made.groups] or [made.population.size]
    return np.cumsum([0, *sizes])


def _allocate(size: Rows, deviation: Vector, asked: Rows, budget: int) -> Rows:
    """Return how many more rows to draw from each stratum to reduce the variance most."""
    # Two rows of each stratum come first: without an answer it may hold anything.
    drawn = np.maximum(asked, 1).astype(float)
    weight = (size * np.maximum(deviation, 1e-3)) ** 2
    more = np.zeros(size.size, dtype=np.intp)
    for _ in range(min(budget, int((size - asked).sum()))):
        gain = weight / (drawn * (drawn + 1.0))
        few = asked + more < np.minimum(_FEWEST, size)
        gain[few] += weight.sum()
        gain[asked + more >= size] = -1.0
        best = int(np.argmax(gain))
        more[best] += 1
        drawn[best] = max(asked[best] + more[best], 1)
    return more


def _draw_rows_of(made: Design, asked: Rows, more: Rows) -> Rows:
    """Take the next rows in each stratum's random order, strata evenly mixed."""
    rng = np.random.default_rng([made.seed, int(asked.sum())])
    rows, turns = [], []
    for start, first, n in zip(made.edges[:-1], asked, more, strict=True):
        rows.append(made.permutation[start + first : start + first + n])
        turns.append((np.arange(n) + rng.random(n)) / max(n, 1))
    return np.concatenate(rows)[np.argsort(np.concatenate(turns), kind="stable")]


def stratum_of(made: Design, rows: Rows) -> Rows:
    """Return the stratum of each row of the population."""
    return np.searchsorted(made.edges, place_of(made, rows), side="right") - 1


def place_of(made: Design, rows: Rows) -> Rows:
    """Return the place of rows in the population, from 0."""
    order = np.argsort(made.population)
    at = np.searchsorted(made.population, rows, sorter=order)
    return order[np.minimum(at, order.size - 1)]


def count_rows(made: Design, rows: Rows) -> Rows:
    """Count rows by stratum."""
    return np.bincount(stratum_of(made, rows), minlength=made.edges.size - 1)


def read_answers(made: Design, answers: AnswerByRow) -> tuple[Rows, Vector]:
    """Return the answered rows, and 1 for yes, 0 for no and NaN for "cannot tell"."""
    asked, told = set(made.rows.tolist()), []
    for row, answer in answers.items():
        if int(row) not in asked:
            refuse(
                f"answers must be about rows that were asked about. Got row {row!r}."
            )
        if answer is not None and answer not in (True, False):
            refuse(f"answers must be True, False or None. Got {answer!r}.")
        told.append(np.nan if answer is None else float(answer))
    return np.array(list(answers), dtype=np.intp), np.array(told)


def _check_budget(budget: Any) -> None:
    whole = isinstance(budget, int | np.integer) and not isinstance(budget, bool)
    if not whole or budget < 1:
        refuse(f"budget must be a whole number above 0. Got {budget!r}.")


def _score_model(model: Any, X: Any) -> Vector:
    """Return the probabilities of rows; of training rows, the out-of-fold ones."""
    classifier = _classifier_in(model)
    if X is not None:
        return np.asarray(model.predict_proba(X)[:, classifier.positive_index_])
    held_out = getattr(classifier, "probability_", None)
    if held_out is None or isinstance(model, CorrectedClassifier):
        refuse("X must be given with this model. Got None.")
    return np.asarray(held_out, dtype=np.float64)


def _classifier_in(model: Any) -> Any:
    corrected = isinstance(model, CorrectedClassifier)
    return classifier_of(model.model if corrected else model)


def _given_unlabelled(
    model: Any, values: Vector, known: Mask, X: Any
) -> tuple[Vector, tuple[float, float] | None]:
    """Return probabilities given that rows are unlabelled, and the model's interval.

    They come from the estimate of the fit, if that had as many unlabelled rows.
    """
    estimate = getattr(_classifier_in(model), "estimate_", None)
    if estimate is None or round(estimate.n_unlabelled) != (~known).sum():
        return values, None
    if X is not None and not isinstance(model, CorrectedClassifier):
        values = estimate.hidden_probability(estimate.find_scores(values))
    low, high = estimate.n_hidden_interval
    return values, (float(low), float(high))
