"""Estimate from answers how many positives are hidden, and at which scores."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from probgap._core.errors import refuse
from probgap._core.output import count_range, fact_table, plural
from probgap._core.types import Mask, Rows, Vector
from probgap.audit._design import (
    AnswerByRow,
    Design,
    group_ends,
    place_of,
    read_answers,
)
from probgap.audit._groups import Group, GroupCount, Range, count_law, update_rates
from probgap.audit._interval import LEVEL, StratumSample, interval, possible, tails

_N_CUTS = 40
_TOPS = (20, 50, 100, 200, 500)  # rows whose precision is told


class Stratum(NamedTuple):
    """Share of positives in a stratum of the score, by the model and by the answers.

    ``answered`` counts answers yes or no, ``positive`` yes, ``unknown`` "cannot tell";
    ``expected`` is the mean score, the share that the model expects if scores are
    probabilities, and ``share_estimate`` the one estimated from the answers, with its
    interval; ``agrees`` says whether that holds what the model expects. ``group`` names the
    group that the stratum is of, if the design knows groups.
    """

    group: str
    score_low: float
    score_high: float
    rows: int
    answered: int
    positive: int
    unknown: int
    expected: float
    share_estimate: float
    share_low: float
    share_high: float
    agrees: bool


@dataclass(frozen=True, slots=True, eq=False)
class AuditEstimate:
    """What answers say about the hidden positives: see :func:`estimate`.

    Attributes
    ----------
    design : Design
        How the rows were drawn.
    valid : bool
        Whether rows were drawn at random, so that count and interval are valid. If not,
        the interval is what is certain: from the positives found to all rows not answered
        by no.
    n_unlabelled, n_asked, n_yes, n_no, n_unknown : int
        Number of unlabelled rows, of rows asked about, and of answers of each kind.
    count : float
        Number of hidden positives among the unlabelled rows, those found included.
    count_interval : tuple of float
        Its 90% interval. Answers "cannot tell" count as negative for the lower end and as
        positive for the upper one.
    """

    design: Design
    valid: bool
    n_unlabelled: int
    n_asked: int
    n_yes: int
    n_no: int
    n_unknown: int
    count: float
    count_interval: tuple[float, float]
    _cells: tuple[Rows, Vector]  # places in the population, and answers

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """Calibration of the scores by stratum, the highest scores of a group first."""
        ends = pairwise(self.design.edges.tolist()) if self.valid else ()
        return tuple(_stratum(self.design, *each, *self._cells) for each in ends)

    @property
    def groups(self) -> tuple[GroupCount, ...]:
        """Count and rate of each group; empty if the design knows none.

        A rate takes positives of all groups for equally clear: that they were labelled less
        often is then because fewer of the group were looked at.
        """
        known = self.design.groups
        if not known:
            return ()
        ends = list(pairwise(group_ends(self.design).tolist()))
        counts = [_count(*_part(self.design, *each, *self._cells)) for each in ends]
        rates = update_rates([group.labelled for group in known], counts)
        best = known[[rate.low for rate in rates].index(1.0)].rate
        return tuple(
            _group(self.design, *each, best, *self._cells)
            for each in zip(known, ends, counts, rates, strict=True)
        )

    @property
    def model_verdict(self) -> Literal["holds", "too low", "too high"] | None:
        """Whether the model's own interval overlaps that of the answers.

        "too low" if all of it lies below, "too high" if above; None without a model or
        a valid count.
        """
        if self.design.expected is None or not self.valid:
            return None
        (least, most), (low, high) = self.design.expected, self.count_interval
        return "too low" if most < low else "too high" if least > high else "holds"

    @property
    def headline(self) -> str:
        """The count in words."""
        among = f"among {plural(self.n_unlabelled, 'unlabelled row')}"
        if not self.valid:
            return (
                f"{plural(self.n_yes, 'positive')} found {among}; rows were not drawn at "
                "random, so that they cannot be counted from these answers"
            )
        words = count_range(*self.count_interval, self.n_unlabelled)
        words = {"none": "no", "any number": "any number of"}.get(words, words)
        return f"{words[0].upper()}{words[1:]} hidden positives {among}"

    def precision_at(self, k: int) -> Range:
        """Return the share of positives among the k unlabelled rows of greatest score.

        Parameters
        ----------
        k : int
            From 1 to ``n_unlabelled``, chosen without looking at the answers.

        Returns
        -------
        Range
            The share and its 90% interval, in which strata without an answer may hold
            anything.
        """
        if not 1 <= k <= self.n_unlabelled:
            refuse(f"k must be from 1 to {self.n_unlabelled}. Got {k!r}.")
        lowest, highest = self._samples(k, 1.0, 0.0)
        low, high = _both_ways(lowest, highest)
        return Range(
            _middle(lowest, highest) / k, max(low / k, 0.0), min(high / k, 1.0)
        )

    def rows_to_find(self, share: float = 0.8) -> Range:
        """Return how many rows of greatest score hold a share of the hidden positives.

        Parameters
        ----------
        share : float, default=0.8
            The share, between 0 and 1.

        Returns
        -------
        Range
            The number of rows and its 90% interval.
        """
        if not 0.0 < share < 1.0:
            refuse(f"share must be between 0 and 1. Got {share!r}.")
        cuts = np.linspace(0, self.n_unlabelled, _N_CUTS + 1).round().astype(int)
        if not self.design.groups:
            cuts = np.append(cuts, self.design.edges)
        cuts = np.unique(cuts)[1:-1]
        alpha = (1.0 - LEVEL) / 2.0
        estimates, few, many = [0.0 - share], [0], [self.n_unlabelled]
        for k in cuts.tolist():
            samples = self._samples(k, 1.0 - share, -share)
            estimates.append(_middle(*samples))
            enough, short = _reaches(*samples)
            if short < alpha:
                many.append(k)  # surely enough
            if enough < alpha:
                few.append(k)  # surely too few
        rising = np.maximum.accumulate([*estimates, max(estimates[-1], 0.0)])
        middle = float(np.interp(0.0, rising, [0, *cuts, self.n_unlabelled]))
        low, high = max(few), min(many)
        return Range(min(max(middle, low), high), low, high)

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain data: the part ``estimate`` of ``audit.json``.

        Returns
        -------
        dict
            Ready for JSON.
        """
        names = ("valid", "n_unlabelled", "n_asked", "n_yes", "n_no", "n_unknown")
        plain: dict[str, Any] = {"headline": self.headline, "kind": self.design.kind}
        plain |= {name: getattr(self, name) for name in (*names, "count")}
        plain |= {"count_interval": list(self.count_interval), "level": LEVEL}
        told = ({**each._asdict(), "sentence": each.sentence} for each in self.groups)
        plain |= {"by": self.design.by, "groups": list(told)}
        if self.valid:
            tops = sorted({min(k, self.n_unlabelled) for k in _TOPS})
            at = [{"k": k, **self.precision_at(k)._asdict()} for k in tops]
            plain |= {
                "precision": at,
                "rows_to_find_80_percent": self.rows_to_find(0.8)._asdict(),
                "calibration": [each._asdict() for each in self.strata],
                "model_interval": self.design.expected,
                "model_verdict": self.model_verdict,
            }
        return plain

    def _samples(
        self, k: int, above: float, below: float
    ) -> tuple[StratumSample, StratumSample]:
        """Return strata, cut below the top k rows, with weights above and below it."""
        edges, ends = _edges(self.design, self._cells[0]), group_ends(self.design)
        cuts = _top(self.design, k)
        edges = np.unique(np.concatenate([edges, cuts]))
        group = np.searchsorted(ends, edges[:-1], side="right") - 1
        weight = np.where(edges[:-1] < cuts[group], above, below)
        return _low_and_high(edges, *self._cells, weight)

    def _repr_html_(self) -> str:
        low, high = self.count_interval
        facts = {"hidden positives": f"{low:,.0f} to {high:,.0f} (90% interval)"}
        facts["answers"] = f"{self.n_yes} yes, {self.n_no} no, {self.n_unknown} unknown"
        return fact_table("Audit", facts)


def estimate(design: Design, answers: AnswerByRow) -> AuditEstimate:
    """Estimate the number of hidden positives from answers about drawn rows.

    The interval rests on the random draw alone and assumes nothing about model or
    labelling: with bad scores it is wide, not wrong. It assumes that answers are right, and
    that rows were answered in the order of the design: rows that are hard to tell must be
    answered by None, not skipped.

    Parameters
    ----------
    design : Design
        What :func:`design` returned.
    answers : mapping of int to bool or None
        Answers by row: True for positive, False for negative, None for "cannot tell".

    Returns
    -------
    AuditEstimate
        The count with its interval, precision of the top rows, calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.audit import design, estimate
    >>> positive = np.arange(1000) < 150
    >>> scores = np.linspace(0.99, 0.01, 1000)
    >>> asked = design(scores, budget=80)
    >>> found = estimate(asked, {r: bool(positive[r]) for r in asked.rows.tolist()})
    >>> low, high = found.count_interval
    >>> bool(low < 150 < high)
    True
    >>> found.precision_at(100).estimate
    1.0
    """
    rows, told = read_answers(design, answers)
    n_yes, n_no = int(np.sum(told == 1.0)), int(np.sum(told == 0.0))
    place, valid = place_of(design, rows), design.kind == "audit"
    edges = _edges(design, place)
    count = _count(edges, place, told)
    return AuditEstimate(
        design=design,
        valid=valid,
        n_unlabelled=design.population.size,
        n_asked=design.rows.size,
        n_yes=n_yes,
        n_no=n_no,
        n_unknown=told.size - n_yes - n_no,
        count=count.estimate if valid else float(n_yes),
        count_interval=(count.low, count.high),
        _cells=(place, told),
    )


def _edges(design: Design, place: Rows) -> Rows:
    """Return the ends of strata; without a random draw each answered row is its own."""
    if design.kind == "audit":
        return design.edges
    ends = np.array([0, design.population.size])
    return np.unique(np.concatenate([ends, place, place + 1]))


def _middle(lowest: StratumSample, highest: StratumSample) -> float:
    """Return the estimate; of strata without an answer half of the rows are positive."""
    blind = np.where(lowest.answered > 0, 0.0, lowest.weight * lowest.size)
    return 0.5 * (lowest.total() + highest.total() + float(blind.sum()))


def _reaches(lowest: StratumSample, highest: StratumSample) -> tuple[float, float]:
    """Return p-values of the hypotheses that a total is at least 0, and that it is less."""
    if (highest.answered == 0).any():  # strata that may hold anything
        least, most = possible(lowest)[0], possible(highest)[1]
        return float(most >= 0.0), float(least < 0.0)
    return tails(highest, 0.0)[0], tails(lowest, 0.0)[1]


def _both_ways(lowest: StratumSample, highest: StratumSample) -> tuple[float, float]:
    """Return the interval, with answers "cannot tell" counted both ways."""
    low, high = interval(lowest)
    if (lowest.found == highest.found).all():
        return low, high
    return low, interval(highest)[1]


def _low_and_high(
    edges: Rows, place: Rows, told: Vector, weight: Vector
) -> tuple[StratumSample, StratumSample]:
    """Return the strata, "cannot tell" counted for a low total, and for a high one."""
    at = np.searchsorted(edges, place, side="right") - 1
    n = edges.size - 1
    size, answered = np.diff(edges), np.bincount(at, minlength=n)

    def sample(as_yes: Mask) -> StratumSample:
        found = np.where(np.isnan(told), as_yes, told)
        parts = size, answered, np.bincount(at, weights=found, minlength=n), weight
        return StratumSample(*(np.asarray(part, dtype=float) for part in parts))

    # Which answer makes the total low depends on the sign of the weight.
    return sample(weight[at] < 0), sample(weight[at] > 0)


def _count(edges: Rows, place: Rows, told: Vector) -> Range:
    low, high = _low_and_high(edges, place, told, np.ones(edges.size - 1))
    return Range(_middle(low, high), *_both_ways(low, high))


def _part(
    design: Design, start: int, end: int, place: Rows, told: Vector
) -> tuple[Rows, Rows, Vector]:
    """Return the edges, places and answers of a part of the population."""
    edges, inside = design.edges, (place >= start) & (place < end)
    within = edges[(edges >= start) & (edges <= end)]
    return within, place[inside], told[inside]


def _top(design: Design, k: int) -> Rows:
    """Return where in each group those of the k rows of greatest score end."""
    ends = group_ends(design)
    size = np.diff(ends)
    group = np.repeat(np.arange(size.size), size)
    # Of equal scores each group has its share.
    along = (np.arange(group.size) - ends[group]) / size[group]
    top = np.lexsort((along, -design.score))[:k]
    return ends[:-1] + np.bincount(group[top], minlength=size.size)


def _stratum(
    design: Design, start: int, end: int, place: Rows, told: Vector
) -> Stratum:
    edges, _, mine = part = _part(design, start, end, place, told)
    score, size = design.score[start:end], end - start
    yes, unknown = int(np.nansum(mine)), int(np.isnan(mine).sum())
    share, low, high = (each / size for each in _count(*part))
    expected = float(score.mean())
    group = np.searchsorted(group_ends(design), edges[0], side="right") - 1
    return Stratum(
        group=design.groups[group].name if design.groups else "",
        score_low=float(score[-1]),
        score_high=float(score[0]),
        rows=size,
        answered=mine.size - unknown,
        positive=yes,
        unknown=unknown,
        expected=expected,
        share_estimate=share,
        share_low=low,
        share_high=high,
        agrees=low <= expected <= high,
    )


def _group(
    design: Design,
    known: Group,
    ends: tuple[int, int],
    count: Range,
    rate: Range,
    best: float | None,
    place: Rows,
    told: Vector,
) -> GroupCount:
    _, at, mine = _part(design, *ends, place, told)
    score = design.score[at]
    yes, unknown = int(np.nansum(mine)), int(np.isnan(mine).sum())
    model_rate = None
    if known.rate is not None and best is not None:  # relative to the same group
        model_rate = min(known.rate / max(best, 1e-9), 1.0)
    expected, least, most, agrees = None, None, None, None
    if mine.size and design.score.min() >= 0.0 and design.score.max() <= 1.0:
        expected, (least, most) = float(score.sum()), count_law(score)
        agrees = yes <= most and yes + unknown >= least
    return GroupCount(
        group=known.name,
        rows=known.rows,
        labelled=known.labelled,
        answered=mine.size - unknown,
        positive=yes,
        unknown=unknown,
        expected=expected,
        expected_low=least,
        expected_high=most,
        agrees=agrees,
        **_named("hidden", count),
        **_named("rate", rate),
        model_rate=model_rate,
        rate_holds=None if model_rate is None else rate.low <= model_rate <= rate.high,
    )


def _named(name: str, found: Range) -> dict[str, Any]:
    return {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}
