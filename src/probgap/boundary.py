"""The boundary l: the observed gap at which the true gap is zero."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta
from sklearn.base import BaseEstimator

from probgap._core.checks import check_gap, check_labelled
from probgap._core.defaults import DEFAULTS
from probgap._core.errors import BoundaryWarning, refuse, require, warn
from probgap._core.output import fact_table, number, share
from probgap._core.runtime import RandomStateLike, as_generator
from probgap._core.types import Array, Mask, Vector

__all__ = [
    "Boundary",
    "BoundaryRule",
    "MeanSmallest",
    "Quantile",
    "estimate_boundary",
    "share_below",
]


_JUST_BELOW_ZERO = float(np.nextafter(0.0, -1.0))


@dataclass(frozen=True, slots=True)
class Boundary:
    """A boundary and how it came about.

    Attributes
    ----------
    value : float
        The boundary l: an unlabelled sample with an observed gap at or below it is negative.
    rule : str
        What gave it: "auto", "mean_smallest", "quantile", "fixed" or "cross_validated".
    spread : float
        Standard deviation of the value: over bootstrap resamples for a rule, over folds
        for a search, over the possible curves for "auto". 0 for a fixed value.
    n_negative, n_undecided, n_positive : int
        How many samples have a gap at or below ``value``, between it and 0, and
        above 0 (or above ``value``, where that is greater).
    fallback : str or None
        Why the rule's own answer was replaced; None if it was not.
    candidates, names : tuple of float, tuple of str
        Boundaries that were considered, and where each comes from: the answer of every
        rule, and ``value``. For a search, its grid, without names.
    scores : tuple of float
        Score of each candidate; higher is better. For a search, the mean score on held-out
        folds. Otherwise the criterion of Lee and Liu if samples above the candidate are
        predicted positive. It assumes that labels are missing at random; no rule uses it.
    share_below : float
        With 95% confidence, at most this share of all positives that would be labelled
        lies below ``value``, whatever the data, if the gaps are held out: see
        :func:`share_below`. NaN for "auto", a search, or a boundary that was moved.
    """

    value: float
    rule: str
    spread: float
    n_negative: int
    n_undecided: int
    n_positive: int
    fallback: str | None = None
    candidates: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    share_below: float = float("nan")

    def _repr_html_(self) -> str:
        n_samples = self.n_negative + self.n_undecided + self.n_positive
        facts = {
            "value": number(self.value),
            "rule": self.rule,
            "spread": number(self.spread, 2),
            "negative": share(self.n_negative, n_samples),
            "undecided": share(self.n_undecided, n_samples),
            "positive": share(self.n_positive, n_samples),
        }
        if np.isfinite(self.share_below):
            facts["labelled below"] = f"at most {self.share_below:.1%} (95%)"
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
        usable = [score for score in self.scores if np.isfinite(score)]
        if not usable:
            return f"{len(self.candidates)}, none usable"
        ends = (self.candidates, usable)
        values, scores = (f"{number(min(v))} to {number(max(v))}" for v in ends)
        return f"{len(self.candidates)} from {values} ({scores})"


class BoundaryRule(BaseEstimator):
    """A rule that computes the boundary from the gaps of labelled positives."""

    name: ClassVar[str]

    @abstractmethod
    def place(self, gap: Vector) -> float:
        """Return the boundary.

        Parameters
        ----------
        gap : ndarray of shape (n_labelled,)
            Observed gaps of labelled positives.

        Returns
        -------
        float
            The boundary.
        """

    @abstractmethod
    def rank(self, n_labelled: int) -> int:
        """Return k, such that the boundary is at most the k-th smallest of the gaps.

        Parameters
        ----------
        n_labelled : int
            Number of gaps.

        Returns
        -------
        int
            The rank, from 1.
        """

    @abstractmethod
    def check(self) -> None:
        """Refuse parameters that are out of range."""


@dataclass(eq=False, repr=False)
class MeanSmallest(BoundaryRule):
    """The mean of the smallest gaps of labelled positives, as in the paper.

    Correct where classes do not overlap. Where they do, a few labelled positives lie deep
    among the negatives and pull it towards -1.

    What ``n_smallest`` means whatever the data: with held-out gaps of m labelled positives,
    the share of such positives below the boundary is at most a Beta(n', m - n' + 1)
    variable, with mean n' / (m + 1); :func:`share_below` gives its quantiles.

    Parameters
    ----------
    n_smallest : int, default=3
        How many gaps to average, the paper's n'. 1 gives the infimum.

    Examples
    --------
    >>> from probgap.boundary import MeanSmallest, estimate_boundary
    >>> gap = [-0.9, -0.8, -0.7, -0.5, 0.2, 0.8]
    >>> estimate_boundary(gap, [0, 0, 0, 1, 1, 1], rule=MeanSmallest(1)).value
    -0.5
    """

    name: ClassVar = "mean_smallest"

    n_smallest: int = 3

    def check(self) -> None:
        """Refuse parameters that are out of range."""
        right = isinstance(self.n_smallest, Integral) and self.n_smallest >= 1
        require(right, "n_smallest must be an integer of at least 1", self.n_smallest)

    def place(self, gap: Vector) -> float:
        """Return the boundary, given the observed gaps of labelled positives."""
        few = min(int(self.n_smallest), gap.size)
        return float(np.sort(np.partition(gap, few - 1)[:few]).mean())

    def rank(self, n_labelled: int) -> int:
        """Return k, such that the boundary is at most the k-th smallest of the gaps."""
        return min(int(self.n_smallest), n_labelled)


@dataclass(eq=False, repr=False)
class Quantile(BoundaryRule):
    """A quantile of the gaps of labelled positives.

    A few labelled positives among the negatives do not move it, but no quantile suits all
    data. With held-out gaps, about this share of the labelled positives yet to come lies
    below it; :func:`share_below` gives the bound.

    Parameters
    ----------
    quantile : float, default=0.02
        Which quantile, from 0 to 1.

    Examples
    --------
    >>> from probgap.boundary import Quantile, estimate_boundary
    >>> gap = [-0.9, -0.8, -0.7, -0.5, 0.2, 0.8]
    >>> estimate_boundary(gap, [0, 0, 0, 1, 1, 1], rule=Quantile(0.0)).value
    -0.5
    """

    name: ClassVar = "quantile"

    quantile: float = 0.02

    def check(self) -> None:
        """Refuse parameters that are out of range."""
        right = isinstance(self.quantile, Real) and 0.0 <= self.quantile <= 1.0
        require(right, "quantile must lie in [0, 1]", self.quantile)

    def place(self, gap: Vector) -> float:
        """Return the boundary, given the observed gaps of labelled positives."""
        return float(np.quantile(gap, self.quantile))

    def rank(self, n_labelled: int) -> int:
        """Return k, such that the boundary is at most the k-th smallest of the gaps."""
        return ceil(self.quantile * (n_labelled - 1)) + 1


def share_below(
    rank: int, n_labelled: int, *, level: float = 0.95, largest_rate: float = 0.0
) -> float:
    r"""Bound the share of positives whose observed gap lies below the boundary.

    Of the gaps of m labelled positives, let the boundary be the k-th smallest. The share of
    the *labelled* positives of the population that lies below it, and would be called
    negative, has a Beta(k, m - k + 1) distribution if the gap is continuous, and a smaller
    one otherwise. This assumes nothing about overlap or labelling, but gaps by a model that
    has not seen the m rows; out-of-fold gaps approximate that, in-sample ones do not.

    Hidden positives may lie below more often. If positives there stay unlabelled with
    probability :math:`\rho_{max}` at most, there are at most
    :math:`\rho_{max} / (1 - \rho_{max})` hidden ones for each labelled one.

    Parameters
    ----------
    rank : int
        k, from 1. For a boundary fixed beforehand, one more than the gaps below it: then
        the result is the bound of Clopper and Pearson.
    n_labelled : int
        m. If it is less than ``rank``, the result says nothing.
    level : float, default=0.95
        Confidence.
    largest_rate : float, default=0.0
        :math:`\rho_{max}`, below 1. Above 0, the result bounds the number of hidden
        positives below the boundary for each labelled positive of the population.

    Returns
    -------
    float
        Upper bound of the share of labelled positives below the boundary, or of the
        number of hidden positives there per labelled positive.

    Examples
    --------
    >>> from probgap.boundary import share_below
    >>> round(share_below(1, 300), 4), round(share_below(3, 300), 4)
    (0.0099, 0.0208)
    >>> round(share_below(3, 300, largest_rate=0.8), 4)
    0.0833
    """
    require(rank >= 1, "rank must be at least 1", rank)
    require(0.0 < level < 1.0, "level must lie in (0, 1)", level)
    allowed = 0.0 <= largest_rate < 1.0
    require(allowed, "largest_rate must lie in [0, 1)", largest_rate)
    found = 1.0
    if rank <= n_labelled:
        found = float(beta.ppf(level, rank, n_labelled - rank + 1))
    return found * (largest_rate / (1.0 - largest_rate) if largest_rate else 1.0)


def estimate_boundary(
    observed_gap: ArrayLike,
    labelled: ArrayLike,
    *,
    rule: BoundaryRule | float | None = None,
    n_bootstrap: int = 100,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    strict: bool = False,
) -> Boundary:
    """Estimate the boundary l from the observed gaps by a rule.

    The true boundary is minus the rate at which positives on the edge of the Bayes
    classifier stay unlabelled. It cannot be identified from positive and unlabelled
    data alone; each rule rests on an assumption of its own.
    :func:`probgap.reading.read`, the default of :class:`~probgap.PGPUClassifier`, uses
    none of them.

    Parameters
    ----------
    observed_gap : array-like of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x), each in [-1, 1].
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    rule : MeanSmallest, Quantile, float or None, default=None
        A rule, or the boundary itself, in (-1, 0). ``None`` takes ``MeanSmallest(3)``.
    n_bootstrap : int, default=100
        Resamples for ``spread``; 0 leaves it at NaN.
    random_state : int, Generator, RandomState or None, default=0
        Seeds the resamples.
    sample_weight : array-like of shape (n_samples,), default=None
        How many samples each one represents, for the counts of the result.
    strict : bool, default=False
        Whether to keep what the rule says even if it leaves (almost) no negatives or is
        not below 0, as the paper's algorithm does. Otherwise the boundary is moved.

    Returns
    -------
    Boundary
        The value, its spread, and how many samples fall on each side.

    Warns
    -----
    BoundaryWarning
        If the rule's answer leaves (almost) no negatives and is moved to the lower quartile
        of the unlabelled gaps, or is not below 0 and is moved there; not if ``strict``.

    Examples
    --------
    >>> from probgap.boundary import estimate_boundary
    >>> gap = [-0.9, -0.8, -0.7, -0.5, 0.2, 0.8]
    >>> estimate_boundary(gap, [0, 0, 0, 1, 1, 1], rule=-0.6).n_negative
    3
    """
    gap = check_gap(observed_gap)
    mask = check_labelled(labelled, gap.size, both=True)
    weight = None
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
    rule, known = check_rule(MeanSmallest() if rule is None else rule), gap[mask]
    if isinstance(rule, BoundaryRule):
        name, found, k = rule.name, rule.place(known), rule.rank(known.size)
        rng = as_generator(random_state)
        each = [rule.place(rng.choice(known, known.size)) for _ in range(n_bootstrap)]
        spread = float(np.std(each)) if each else float("nan")
    else:
        name, found, spread = "fixed", rule, 0.0
        k = 1 + int(np.count_nonzero(known < rule))
    value, fallback = (found, None) if strict else _make_usable(found, gap[~mask])
    if fallback is not None:
        warn(fallback, BoundaryWarning)
    named = {name: found} if fallback is None else {name: found, "fallback": value}
    given = describe_boundary(gap, mask, value, name, spread, weight, named, fallback)
    return given if fallback else replace(given, share_below=share_below(k, known.size))


def check_rule(rule: object) -> BoundaryRule | float:
    """Return a rule, or a boundary as a float; refuse anything else."""
    if isinstance(rule, BoundaryRule):
        rule.check()
        return rule
    if not isinstance(rule, Real):
        refuse(
            "boundary must be 'auto', a number in (-1, 0), MeanSmallest() or Quantile(). "
            f"Got {rule!r}."
        )
    require(-1.0 < float(rule) < 0.0, "boundary must lie in (-1, 0)", rule)
    return float(rule)


def describe_boundary(
    gap: Vector,
    labelled: Mask,
    value: float,
    rule: str,
    spread: float,
    weight: Vector | None,
    named: Mapping[str, float],
    fallback: str | None = None,
) -> Boundary:
    """Return a boundary with the samples on each side, and the scores of candidates.

    Candidates are the ``named`` ones and the answers of the paper's rules.
    """
    rules = {
        rule.name: rule.place(gap[labelled]) for rule in (MeanSmallest(), Quantile())
    }
    named = {rule: named[rule], **rules, **named}
    counts = np.ones(gap.size) if weight is None else weight
    total = round(float(counts.sum()))
    below = round(float(counts[gap < value].sum()))
    above = round(float(counts[gap > max(0.0, value)].sum()))
    return Boundary(
        value,
        rule,
        spread,
        n_negative=below,
        n_undecided=total - below - above,
        n_positive=above,
        fallback=fallback,
        candidates=tuple(named.values()),
        scores=tuple(lee_liu(labelled, gap > each, weight) for each in named.values()),
        names=tuple(named),
    )


def _make_usable(found: float, unlabelled: Vector) -> tuple[float, str | None]:
    """Move a boundary that leaves too few negatives to fit on, and return the reason."""
    value = min(found, _JUST_BELOW_ZERO)
    negative = np.count_nonzero(unlabelled < value) / unlabelled.size
    if negative < DEFAULTS.fewest_negatives:
        # Just above the quantile: gaps that equal it count as below, if all gaps are equal.
        quantile = np.quantile(unlabelled, DEFAULTS.fallback_share)
        return float(np.nextafter(quantile, 1.0)), (
            f"A boundary must leave negatives to learn from; {found:.3g} leaves "
            f"{negative:.1%} of the unlabelled samples. The quarter of them with the "
            "smallest gaps is taken as negative. Use boundary=Quantile(), a fixed boundary "
            "nearer to 0, or a gap estimator that separates better."
        )
    if found >= 0.0:
        return value, (
            f"The boundary found, {found:.3g}, is not below 0: labelled positives are well "
            "separated, and nothing looks hidden. Every unlabelled sample with a gap of 0 "
            "or less is taken as negative. Pass a boundary in (-1, 0), or more unlabelled "
            "samples, if positives are known to be hidden."
        )
    return value, None


def lee_liu(labelled: Mask, predicted: Mask, weight: Array | None = None) -> float:
    """Return the squared recall on labelled positives over the share predicted positive.

    It ranks classifiers as precision times recall does when labels are missing at
    random, without needing a negative.
    """
    counts = np.ones(labelled.size) if weight is None else weight
    found, known = counts[predicted & labelled].sum(), counts[labelled].sum()
    if found == 0.0:
        return 0.0
    return float((found / known) ** 2 / (counts[predicted].sum() / counts.sum()))
