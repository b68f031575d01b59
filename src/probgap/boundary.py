"""The boundary l: the observed gap at which the true gap is zero."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.checks import check_gap, check_labelled
from probgap._core.errors import BoundaryWarning, InvalidInputError
from probgap._core.html import fact_table, number, share
from probgap._core.overlap import CEILING_QUANTILE, separability
from probgap._core.rng import RandomStateLike, as_generator
from probgap._core.scores import lee_liu_by_counts
from probgap._core.values import HeldValues, RowValues

__all__ = ["Boundary", "BoundaryWarning", "estimate_boundary"]

Rule = Callable[[RowValues], float]

_RULES = ("auto", "mean_smallest", "quantile")
# With a smaller share of the unlabelled samples on the negative side than this, there
# is nothing to learn a negative class from.
_FEWEST_NEGATIVES = 0.02
# Of the automatic rule: the unlabelled samples that are clear negatives.
_FLOOR_QUANTILE = 0.25
_JUST_BELOW_ZERO = float(np.nextafter(0.0, -1.0))
# What the fallback takes as negative: the quarter that looks least like a labelled one.
_FALLBACK_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Boundary:
    """A boundary and how it came about.

    Attributes
    ----------
    value : float
        The boundary l: an unlabelled sample whose observed gap is at or below it is
        negative.
    rule : str
        The rule that gave it: "auto", "mean_smallest", "quantile", "fixed" or, from
        a search over a grid, "cross_validated".
    spread : float
        Standard deviation of the rule's answer over bootstrap resamples, or over
        folds for a cross-validated one. 0 for a fixed value.
    n_negative, n_undecided, n_positive : int
        How many samples have a gap at or below ``value``, between it and 0, and
        above 0 (or above ``value``, where that is greater).
    separability : float
        How well the classes seem to part: 1 where no labelled positive has a gap at
        or below ``value``, down to 0 where a tenth of them or more have.
    fallback : str or None
        Why the rule's own answer was not used, where it was not.
    candidates : tuple of float
        Boundaries that were considered: what every rule says, and ``value`` among them;
        of a search, its grid.
    scores : tuple of float
        What speaks for each candidate; higher is better. The criterion of Lee and Liu,
        by the gaps themselves: if samples above the candidate are called positive, the
        squared share of the labelled ones that are, over the share of all that are. No
        rule asks this witness, and it takes labels to have fallen at random: a value
        that it likes much less than another deserves a second look. Of a search, the
        mean score on held-out folds, which it goes by.
    names : tuple of str
        Where each candidate comes from; empty for a grid.
    """

    value: float
    rule: str
    spread: float
    n_negative: int
    n_undecided: int
    n_positive: int
    separability: float
    fallback: str | None = None
    candidates: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()
    names: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        n_samples = self.n_negative + self.n_undecided + self.n_positive
        facts = {
            "value": number(self.value),
            "rule": self.rule,
            "spread": number(self.spread, 2),
            "negative": share(self.n_negative, n_samples),
            "undecided": share(self.n_undecided, n_samples),
            "positive": share(self.n_positive, n_samples),
            "separability": number(self.separability, 2),
        }
        if self.fallback is not None:
            facts["fallback"] = self.fallback
        if self.candidates:
            facts["candidates (score)"] = self._summary_of_candidates()
        return fact_table("Boundary", facts)

    def _summary_of_candidates(self) -> str:
        if self.names:
            rows = zip(self.names, self.candidates, self.scores, strict=True)
            return "; ".join(
                f"{name} {number(value)} ({number(score)})"
                for name, value, score in rows
            )
        best, usable = max(self.scores), [s for s in self.scores if np.isfinite(s)]
        if not usable:
            return f"{len(self.candidates)}, none of any use"
        low, high = number(min(self.candidates)), number(max(self.candidates))
        return (
            f"{len(self.candidates)} from {low} to {high} "
            f"({number(min(usable))} to {number(best)})"
        )


def weigh_candidates(
    boundary: Boundary, gap: RowValues, named: Mapping[str, float]
) -> Boundary:
    """Give a boundary with the candidates that were considered, and what they score."""
    named = dict(named)
    if boundary.fallback is not None:
        named["fallback"] = boundary.value
    scores = [_score(gap, value) for value in named.values()]
    return replace(
        boundary,
        candidates=tuple(named.values()),
        scores=tuple(scores),
        names=tuple(named),
    )


def _score(gap: RowValues, value: float) -> float:
    """Give the criterion of Lee and Liu, if samples above a boundary are positive."""
    n_labelled, n_unlabelled = gap.count(labelled=True), gap.count(labelled=False)
    found = n_labelled - gap.count_at_most(value, labelled=True)
    others = n_unlabelled - gap.count_at_most(value, labelled=False)
    return lee_liu_by_counts(
        found, n_labelled, found + others, n_labelled + n_unlabelled
    )


def estimate_boundary(
    observed_gap: ArrayLike,
    labelled: ArrayLike,
    *,
    rule: str | float = "auto",
    n_smallest: int = 3,
    quantile: float = 0.02,
    n_bootstrap: int = 100,
    random_state: RandomStateLike = 0,
) -> Boundary:
    """Estimate the boundary l from the observed gaps.

    The true boundary is minus the rate at which positives on the edge of the Bayes
    classifier stay unlabelled. It cannot be identified from positive and unlabelled
    data alone; each rule rests on an assumption of its own.

    Parameters
    ----------
    observed_gap : array-like of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x), each in [-1, 1].
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    rule : {"auto", "mean_smallest", "quantile"} or float, default="auto"
        "mean_smallest"
            Mean of the ``n_smallest`` smallest gaps of labelled positives, the
            paper's choice. Right where classes do not overlap; where they do, a few
            labelled positives lie deep in negative ground and it sinks towards -1.
        "quantile"
            The ``quantile`` of the gaps of labelled positives. Robust against a few
            of them, but how many lie below l depends on the data.
        "auto"
            Between the gaps of clear negatives and those of clear positives, nearer to
            the former the fewer of the clear positives are labelled. Robust, and
            between the two others in what it assumes.
        float
            The boundary itself, in (-1, 0).
    n_smallest : int, default=3
        The paper's n'; 1 gives the infimum.
    quantile : float, default=0.02
        Which quantile to take, in [0, 1].
    n_bootstrap : int, default=100
        Resamples for ``spread``; 0 leaves it at NaN.
    random_state : int, Generator, RandomState or None, default=0
        Seeds the resamples.

    Returns
    -------
    Boundary
        The value, its spread, and how many samples fall on each side.

    Warns
    -----
    BoundaryWarning
        If the rule's answer leaves (almost) no negatives, or is not below 0. The
        value is then moved: just below 0 in the second case, and to the lower
        quartile of the unlabelled gaps in the first.

    Examples
    --------
    >>> from probgap.boundary import estimate_boundary
    >>> gap = [-0.9, -0.8, -0.7, -0.5, 0.2, 0.8]
    >>> estimate_boundary(gap, [0, 0, 0, 1, 1, 1], rule="mean_smallest", n_smallest=1).value
    -0.5
    """
    gap = check_gap(observed_gap)
    mask = check_labelled(labelled, gap.size)
    if not mask.any() or mask.all():
        kind = "labelled" if not mask.any() else "unlabelled"
        msg = f"labelled must mark some samples and leave others. Got no {kind} sample."
        raise InvalidInputError(msg)
    boundary = find_boundary(
        HeldValues(gap, mask),
        rule,
        n_smallest=n_smallest,
        quantile=quantile,
        n_bootstrap=n_bootstrap,
        rng=as_generator(random_state),
        most=gap.size,
    )
    if boundary.fallback is not None:
        warnings.warn(boundary.fallback, BoundaryWarning, stacklevel=2)
    return boundary


def find_boundary(
    gap: RowValues,
    rule: str | float,
    *,
    n_smallest: int = 3,
    quantile: float = 0.02,
    n_bootstrap: int = 100,
    rng: np.random.Generator,
    most: int,
) -> Boundary:
    """Estimate the boundary wherever gaps are; at most so many of them are resampled."""
    name, compute = _make_rule(rule, n_smallest, quantile)
    value = compute(gap)
    spread = 0.0
    if name != "fixed":
        spread = _bootstrap_spread(compute, gap, n_bootstrap, rng, most)
    boundary = settle_boundary(gap, value, name, spread)
    answers = answer_by_rules(gap, n_smallest, quantile)
    return weigh_candidates(boundary, gap, {name: value, **answers})


def answer_by_rules(
    gap: RowValues, n_smallest: int = 3, quantile: float = 0.02
) -> dict[str, float]:
    """Give what each rule says."""
    return {rule: _make_rule(rule, n_smallest, quantile)[1](gap) for rule in _RULES}


def settle_boundary(gap: RowValues, value: float, rule: str, spread: float) -> Boundary:
    """Make a boundary usable, and count the samples on either side of it."""
    usable, fallback = _make_usable(value, gap)
    return replace(count_sides(gap, usable, rule, spread), fallback=fallback)


def count_sides(gap: RowValues, value: float, rule: str, spread: float) -> Boundary:
    """Count the samples on either side of a boundary."""
    n_labelled, n_unlabelled = gap.count(labelled=True), gap.count(labelled=False)
    astray = gap.count_at_most(value, labelled=True)
    below = astray + gap.count_at_most(value, labelled=False)
    middle = max(0.0, value)
    above = n_labelled - gap.count_at_most(middle, labelled=True)
    above += n_unlabelled - gap.count_at_most(middle, labelled=False)
    return Boundary(
        value=value,
        rule=rule,
        spread=spread,
        n_negative=below,
        n_undecided=n_labelled + n_unlabelled - below - above,
        n_positive=above,
        separability=separability(astray, n_labelled, n_unlabelled),
    )


def _make_rule(rule: str | float, n_smallest: int, quantile: float) -> tuple[str, Rule]:
    if isinstance(rule, Real):
        if not -1.0 < rule < 0.0:
            msg = f"boundary must lie in (-1, 0). Got {rule!r}."
            raise InvalidInputError(msg)
        return "fixed", lambda _: float(rule)
    if not isinstance(rule, str) or rule not in _RULES:
        msg = f"boundary must be one of {_RULES} or a number in (-1, 0). Got {rule!r}."
        raise InvalidInputError(msg)
    if rule == "mean_smallest":
        if n_smallest < 1:
            msg = f"n_smallest must be at least 1. Got {n_smallest!r}."
            raise InvalidInputError(msg)
        return rule, lambda gap: float(
            np.sort(gap.least(n_smallest, labelled=True)).mean()
        )
    if rule == "quantile":
        if not 0.0 <= quantile <= 1.0:
            msg = f"quantile must lie in [0, 1]. Got {quantile!r}."
            raise InvalidInputError(msg)
        return rule, lambda gap: gap.quantile(quantile, labelled=True)
    return rule, _automatic


def _automatic(gap: RowValues) -> float:
    """Place l between the gaps of clear negatives and of clear positives.

    With c the chance that the clearest positives are labelled, P(s=1 | x) is taken to
    rise from a floor to c as ``eta ** (1 + k)``, eta being P(Y=1 | x) and k = 1 - c:
    the fewer of the clear ones are labelled, the more labelling must have gone by
    clearness. The boundary is where eta is one half.
    """
    ceiling = 0.5 * (1.0 + gap.quantile(CEILING_QUANTILE, labelled=True))
    floor = 0.5 * (1.0 + gap.quantile(_FLOOR_QUANTILE, labelled=False))
    floor = min(floor, 0.5 * ceiling)
    k = 1.0 - ceiling
    value = 2.0 * (floor + (ceiling - floor) * 0.5 ** (1.0 + k)) - 1.0
    return min(value, _JUST_BELOW_ZERO)  # a floor above 0 may lift it to even odds


def _bootstrap_spread(
    compute: Rule, gap: RowValues, n_bootstrap: int, rng: np.random.Generator, most: int
) -> float:
    """Give the standard deviation over resamples; of fewer gaps, shrunk to that of all."""
    if n_bootstrap < 1:
        return float("nan")
    counts = [gap.count(labelled=kind) for kind in (True, False)]
    share = min(1.0, most / sum(counts))
    groups = [
        gap.spread(max(1, round(share * count)), labelled=kind)
        for count, kind in zip(counts, (True, False), strict=True)
    ]
    drawn_first = np.arange(sum(group.size for group in groups)) < groups[0].size
    values = np.empty(n_bootstrap)
    for i in range(n_bootstrap):
        drawn = np.concatenate([rng.choice(group, group.size) for group in groups])
        values[i] = compute(HeldValues(drawn, drawn_first))
    return float(np.std(values) * np.sqrt(share))


def _make_usable(found: float, gap: RowValues) -> tuple[float, str | None]:
    """Move a boundary that no classifier could be learnt from, and say why."""
    value = min(found, _JUST_BELOW_ZERO)
    negative = gap.count_at_most(value, labelled=False)
    share = negative / gap.count(labelled=False)
    if share < _FEWEST_NEGATIVES:
        return gap.quantile(_FALLBACK_SHARE, labelled=False), (
            f"The boundary must leave negatives to learn from. Got {found:.3g}, with "
            f"{share:.1%} of the unlabelled samples on the negative side; the quarter "
            "of them with the smallest gaps is taken as negative. Use "
            "boundary='quantile', a fixed boundary nearer to 0, or a gap estimator "
            "that separates better."
        )
    if found >= 0.0:
        return value, (
            f"The boundary must lie below 0. Got {found:.3g}: by this rule the "
            "labelled positives stand apart and nothing looks hidden. Every unlabelled "
            "sample with a gap of 0 or less is taken as negative. Give a boundary in "
            "(-1, 0), or more unlabelled samples, if positives are known to be hidden."
        )
    return value, None
