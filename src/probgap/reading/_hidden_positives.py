"""Estimate how many positives are hidden, and which, from scores of all rows."""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, ndtri

from probgap._core.checks import check_labelled, check_scores
from probgap._core.errors import refuse
from probgap._core.output import count_range, fact_table, number
from probgap._core.types import Mask, Vector
from probgap.reading.network import (
    MOST_LOG_ODDS,
    Curves,
    load_network,
    platt_scaling,
    summarise,
)

INTERVAL = (0.05, 0.95)
_NORMAL = float(ndtri(INTERVAL[1]))
# Most unlabelled scores kept for counting; more would not change the count.
_MOST_KEPT = 4096
_GRID = np.linspace(-MOST_LOG_ODDS, MOST_LOG_ODDS, 4001)
# Relative uncertainty of a class prior that the user gives.
_PRIOR_DOUBT = 0.05
# Shares of hidden positives are clipped to this distance from 0 and 1.
_LEAST_SHARE = 1e-4
# Probabilities are clipped to this distance from 0 and 1 before their odds are shifted.
_LEAST_CHANCE = 1e-6
# Most of the unlabelled rows can be positive, and log-odds of one that cannot be.
_MOST_SHARE = 0.98
_SURELY_NOT = -40.0
# Ranges of a probability at most this wide count as one probability.
_NARROW = 0.1
# A task less familiar than this is unlike all simulated ones.
_LEAST_FAMILIAR = 0.002


@dataclass(frozen=True, slots=True, eq=False)
class ProbabilityRange:
    """How likely each row is to be positive, by all curves that are plausible.

    Attributes
    ----------
    low, high : ndarray of shape (n_rows,)
        Ends of the 90% range of the probability over the curves.
    agreed : ndarray of shape (n_rows,)
        True where the curves agree: the range is at most 0.1 wide, and the task resembles
        the simulated ones. Elsewhere the scores do not determine a probability.
    """

    low: Vector
    high: Vector
    agreed: Mask


@dataclass(frozen=True, slots=True, eq=False)
class HiddenEstimate:
    """What the scores say about hidden positives, and what they cannot say.

    Attributes
    ----------
    boundary : float
        The paper's l: the observed gap at which a row is as likely positive as not. -1
        if every row is more likely positive, 1 if none is.
    class_prior, class_prior_interval : float, tuple of float
        Share of all rows that are positive, labelled or not, and its 90% interval.
    labelling_rate, labelling_rate_interval : float, tuple of float
        Share of the positives that are labelled, and its 90% interval.
    n_hidden, n_hidden_interval : float, tuple of float
        Expected number of positives among the unlabelled rows, and its 90% interval.
    n_labelled, n_unlabelled, n_negative : float
        Number of rows of each kind; negative are those that were checked and are not
        positive, which are no unlabelled ones.
    familiarity : float
        Share of the simulated tasks that look at least as unusual as this one. Near 0, the
        estimate extrapolates.
    curves : Curves
        Weighted curves of P(Y=1 | score, unlabelled), each compatible with the scores.
    slope, offset : float
        Log-odds of being labelled are ``slope * score + offset``.
    scores : ndarray
        Log-odds of unlabelled rows, at most 4096, evenly spread.
    overlooked, overlooked_deviation : float
        Expected number of unlabelled rows that would be labelled, had everybody been looked
        at alike, and its standard deviation: hidden positives, too. 0 unless columns say who
        was looked at; curves and scores are then about the other unlabelled rows.
    """

    boundary: float
    class_prior: float
    class_prior_interval: tuple[float, float]
    n_hidden: float
    n_hidden_interval: tuple[float, float]
    n_labelled: float
    n_unlabelled: float
    familiarity: float
    curves: Curves
    slope: float
    offset: float
    scores: Vector
    overlooked: float = 0.0
    overlooked_deviation: float = 0.0
    n_negative: float = 0.0

    @property
    def extrapolates(self) -> bool:
        """Whether the task is unlike all simulated ones."""
        return self.familiarity < _LEAST_FAMILIAR

    @property
    def n_rows(self) -> float:
        """Number of all rows."""
        return self.n_labelled + self.n_unlabelled + self.n_negative

    @property
    def labelling_rate(self) -> float:
        """Share of the positives that are labelled."""
        return self.n_labelled / (self.n_labelled + self.n_hidden)

    @property
    def labelling_rate_interval(self) -> tuple[float, float]:
        """90% interval of it."""
        known, (low, high) = self.n_labelled, self.n_hidden_interval
        return known / (known + high), known / (known + low)

    @property
    def hidden_range(self) -> str:
        """``n_hidden_interval`` in words, such as "between 280 and 1,400"."""
        return count_range(*self.n_hidden_interval, self.n_unlabelled)

    @property
    def boundary_spread(self) -> float:
        """Standard deviation of the boundary over the curves."""
        each = _find_boundary(self.curves.each(_GRID))
        mean = self.curves.weights @ each
        return float(np.sqrt(self.curves.weights @ (each - mean) ** 2))

    def log_odds(self, scores: ArrayLike) -> Vector:
        """Return calibrated log-odds of being labelled."""
        odds = self.slope * np.asarray(scores, dtype=np.float64) + self.offset
        return np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS)

    def hidden_probability(self, scores: ArrayLike) -> Vector:
        """Return P(Y=1 | score, unlabelled), for scores on the scale given to ``read``."""
        return self.curves.mean(self.log_odds(scores))

    def posterior(self, scores: ArrayLike) -> Vector:
        """Return P(Y=1 | score), for rows that may be labelled or not."""
        odds = self.log_odds(scores)
        labelled = expit(odds)
        return labelled + (1.0 - labelled) * self.curves.mean(odds)

    def find_scores(self, posterior: ArrayLike) -> Vector:
        """Return the scores at which ``posterior`` has given values: its inverse."""
        labelled = expit(_GRID)
        rising = labelled + (1.0 - labelled) * self.curves.mean(_GRID)
        odds = np.interp(np.asarray(posterior, dtype=np.float64), rising, _GRID)
        return (odds - self.offset) / (self.slope or 1.0)

    def share_out(
        self,
        posterior: Vector,
        labelled: Mask,
        weight: Vector | None = None,
        negative: Mask | None = None,
    ) -> Vector:
        """Return how likely each row is to be positive, given whether it is labelled.

        1 for labelled rows, 0 for those known to be ``negative``. The log-odds of the
        others' ``posterior`` are shifted, all by the same number, so that the weighted sum
        of their probabilities is ``n_hidden``.
        """
        free = ~labelled if negative is None else ~(labelled | negative)
        probability = labelled.astype(np.float64)
        if not free.any():
            return probability
        given = posterior[free]
        counts = np.ones(given.size) if weight is None else weight[free]
        odds = logit(np.clip(given, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE))
        shift = brentq(lambda c: counts @ expit(odds + c) - self.n_hidden, -60.0, 60.0)
        probability[free] = expit(odds + shift)
        return probability

    def probability_range(
        self, probability: ArrayLike, *, unlabelled: ArrayLike = False
    ) -> ProbabilityRange:
        """Return the 90% range over the curves that belongs to each probability.

        The range holds the probability: it says how far other curves that are compatible
        with the scores are from the mean where the mean is the probability.

        Parameters
        ----------
        probability : array-like of shape (n_rows,)
            P(Y=1 | x) of rows that may be labelled or not, such as ``predict_proba``
            returns; of rows that are known to be unlabelled P(Y=1 | x, unlabelled), such
            as ``probability_`` of a fitted classifier.
        unlabelled : array-like of shape (n_rows,) or bool, default=False
            True for rows that are known to be unlabelled.

        Returns
        -------
        ProbabilityRange
            Ends of the range, and where the probability can be given alone.
        """
        grid, curves = _GRID[::20], self.curves.unfolded(self.scores)
        hidden, labelled = curves.each(grid), expit(grid)
        order = np.argsort(hidden, axis=0)
        below = np.cumsum(curves.weights[order], axis=0)
        sorted_hidden = np.take_along_axis(hidden, order, axis=0)
        ends = [(below < level).sum(axis=0) for level in INTERVAL]
        last = curves.weights.size - 1
        low, high = (
            sorted_hidden[np.minimum(end, last), np.arange(grid.size)] for end in ends
        )
        chance = np.asarray(probability, dtype=np.float64)
        # The score at which the mean over the curves is the probability.
        mean = self.curves.mean(grid)
        at_any = np.interp(chance, labelled + (1.0 - labelled) * mean, grid)
        at_unlabelled = np.interp(chance, mean, grid)
        odds = np.where(unlabelled, at_unlabelled, at_any)
        share = np.where(unlabelled, 0.0, expit(odds))
        low, high = (
            share + (1.0 - share) * np.interp(odds, grid, curve)
            for curve in (low, high)
        )
        low, high = np.minimum(low, chance), np.maximum(high, chance)
        narrow = high - low <= _NARROW
        return ProbabilityRange(low, high, narrow & (not self.extrapolates))

    def scenarios(self) -> tuple[float, float]:
        """Return the numbers of hidden positives in two scenarios that are both possible.

        The weighted means over the curves below, and over those above, the median number.
        """
        counts = self._n_rest * self.curves.each(self.scores).mean(axis=1)
        counts += self.overlooked
        order, weights = np.argsort(counts), self.curves.weights
        below = np.cumsum(weights[order]) - 0.5 * weights[order]
        low, high = (
            float(np.average(counts[half], weights=weights[half] + 1e-300))
            if half.size
            else self.n_hidden
            for half in (order[below <= 0.5], order[below > 0.5])
        )
        return low, high

    def update(
        self,
        *,
        class_prior: float | tuple[float, float] | None = None,
        scores: ArrayLike | None = None,
        positive: ArrayLike | None = None,
    ) -> Self:
        """Return the estimate after weighting the curves by further evidence.

        Parameters
        ----------
        class_prior : float or tuple of float, default=None
            Share of all rows that are positive, or a range that it lies in.
        scores, positive : array-like of shape (n_checked,), default=None
            Scores of unlabelled rows that were checked, and which of them are positive.

        Returns
        -------
        HiddenEstimate
            The estimate given the evidence.
        """
        if (scores is None) != (positive is None):
            refuse("scores and positive must be given together. Got one of them.")
        curves = self.curves
        if scores is not None:
            odds = self.log_odds(np.atleast_1d(np.asarray(scores, dtype=np.float64)))
            found = np.atleast_1d(np.asarray(positive, dtype=bool))
            curves = curves.unfolded(self.scores)
            each = curves.each(odds)
            likelihood = np.where(found, np.log(each), np.log1p(-each))
            curves = curves.reweighted(likelihood.sum(axis=1))
        within = (0.0, self.n_unlabelled)
        if class_prior is not None:
            least, most = self._hidden_range(class_prior)
            curves = self._given_count(curves, least, most)
            doubt = _PRIOR_DOUBT * (self.n_labelled + most)
            within = (max(least - doubt, 0.0), min(most + doubt, self.n_unlabelled))
        return replace(self, curves=curves)._counted(within)

    def _with_overlooked(
        self, n_labelled: float, count: float, deviation: float
    ) -> Self:
        """Return the estimate where rows that would be labelled were read as labelled.

        ``count`` of these are not, with that standard deviation.
        """
        n_rows = self.n_labelled + self.n_unlabelled
        return replace(
            self,
            n_labelled=n_labelled,
            n_unlabelled=n_rows - n_labelled,
            overlooked=count,
            overlooked_deviation=deviation,
        )._counted()

    @property
    def _n_rest(self) -> float:
        """Number of unlabelled rows that would be unlabelled in any case."""
        return self.n_unlabelled - self.overlooked

    def _counted(self, within: tuple[float, float] = (-np.inf, np.inf)) -> Self:
        """Return the estimate with boundary and counts by its curves.

        ``within`` are known bounds of the number of hidden positives.
        """
        curves, scores, rest = self.curves, self.scores, self._n_rest
        n_hidden = self.overlooked + rest * float(curves.mean(scores).mean())
        ends = self.overlooked + rest * interval_of_share(curves, scores, rest)
        if self.overlooked_deviation:
            by_rates = _NORMAL * self.overlooked_deviation
            ends = n_hidden + np.hypot(ends - n_hidden, by_rates) * [-1.0, 1.0]
            ends = np.clip(ends, 0.0, self.n_unlabelled)
        low, high = np.clip(ends, *within).tolist()
        low, high = min(low, n_hidden), max(high, n_hidden)
        prior, least, most = (
            (self.n_labelled + n) / self.n_rows for n in (n_hidden, low, high)
        )
        return replace(
            self,
            boundary=float(_find_boundary(curves.mean(_GRID)[None])[0]),
            class_prior=prior,
            class_prior_interval=(least, most),
            n_hidden=n_hidden,
            n_hidden_interval=(low, high),
        )

    def _without_negatives(self, scores: Vector, rest: Vector, negative: Mask) -> Self:
        """Return the estimate of the same rows, of which some are known to be negative.

        ``rest`` is how many rows each one counts for as unlabelled. The curves say how many
        of them are positive: those that are known not to be leave the number to the others.
        The more of them were checked, the less it is the curves that tell, and with all
        of them nothing is hidden.
        """
        free, odds = ~negative & (rest > 0.0), self.log_odds(scores)
        n_free, n_negative = (float(rest[part].sum()) for part in (free, negative))
        shift, kept = _SURELY_NOT, np.sort(odds[negative])
        if free.any():
            kept = _thin_out(odds[free], rest[free])
            mean = self.curves.mean(odds)
            own, others = (float(rest[k] @ mean[k]) for k in (free, negative))
            more = (1.0 + others / own) ** (n_free / (n_free + n_negative))
            shift = self._shift_for(kept, min(more * own / n_free, _MOST_SHARE))
        return replace(
            self,
            curves=replace(self.curves, shift=self.curves.shift + shift),
            scores=kept,
            n_unlabelled=n_free,
            n_negative=n_negative,
        )._counted()

    def _shift_for(self, scores: Vector, share: float) -> float:
        """Return the shift of all curves by which this share of some rows is positive."""

        def excess(shift: float) -> float:
            moved = replace(self.curves, shift=self.curves.shift + shift)
            return float(moved.mean(scores).mean()) - share

        return float(brentq(excess, -40.0, 40.0))

    def _hidden_range(self, class_prior: Any) -> tuple[float, float]:
        """Return the range of hidden positives that follows from a class prior."""
        shares = (class_prior,) if isinstance(class_prior, Real) else tuple(class_prior)
        low, high = (float(shares[0]), float(shares[-1])) if shares else (0.0, 0.0)
        if len(shares) > 2 or not 0.0 < low <= high < 1.0:
            refuse(
                "class_prior must be a share above 0 and below 1, or a range of such "
                f"shares, the lower first. Got {class_prior!r}."
            )
        least, most = (share * self.n_rows - self.n_labelled for share in (low, high))
        if most < 0.0:
            refuse(
                "class_prior must be at least the share of labelled rows, "
                f"{self.n_labelled / self.n_rows:.3g}. Got {high:.3g}."
            )
        return max(least, 0.0), most

    def _given_count(self, curves: Curves, least: float, most: float) -> Curves:
        """Weight curves by a known count, and shift them if none agrees with it."""
        curves = curves.unfolded(self.scores)
        bounds = (np.array([least, most]) - self.overlooked) / self._n_rest
        bounds = np.clip(bounds, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        low, high = logit(bounds)
        shares, deviations = curves.shares(self.scores, self._n_rest)
        away = np.maximum(np.maximum(low - shares, shares - high), 0.0)
        curves = curves.reweighted(-0.5 * (away / np.hypot(deviations, 0.1)) ** 2)
        share = float(curves.mean(self.scores).mean())
        target = float(np.clip(share, *bounds))
        if abs(target - share) < 1e-6:
            return curves

        def excess(shift: float) -> float:
            moved = replace(curves, shift=curves.shift + shift)
            return float(moved.mean(self.scores).mean()) - target

        return replace(curves, shift=curves.shift + brentq(excess, -40.0, 40.0))

    def _repr_html_(self) -> str:
        facts = {
            "hidden positives": f"{self.hidden_range} (90% interval), best estimate "
            f"{self.n_hidden:,.0f}",
            "class prior": number(self.class_prior),
            "boundary": number(self.boundary),
            "familiarity": number(self.familiarity, 2),
        }
        return fact_table("Estimate", facts)


def read(
    scores: ArrayLike,
    labelled: ArrayLike,
    *,
    class_prior: float | tuple[float, float] | None = None,
    sample_weight: ArrayLike | None = None,
) -> HiddenEstimate:
    """Estimate boundary, posterior and number of hidden positives from any scores.

    Positive and unlabelled data do not identify how many positives are hidden: steep
    labelling and overlapping classes look alike. The estimate is the Bayesian answer under a
    stated prior, learnt by a small neural network from simulated tasks: labels are missing
    at random, or easy positives are labelled first, mildly or steeply. It fails where
    labelling depends on something that scores cannot show (a region nobody looked at), and
    on tasks unlike all simulated ones (``familiarity``).

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        Any score that rises with the probability of being labelled. Scores of training
        rows must come from models that have not seen them.
    labelled : array-like of shape (n_rows,)
        True for labelled positives.
    class_prior : float or tuple of float, default=None
        The share of all rows that are positive, or a range that it lies in, if known.
    sample_weight : array-like of shape (n_rows,), default=None
        How many rows each row represents.

    Returns
    -------
    HiddenEstimate
        Boundary, posterior of any score, class prior, count and 90% interval.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.reading import read
    >>> rng = np.random.default_rng(0)
    >>> positive = np.arange(1000) < 400
    >>> scores = rng.normal(4.0 * positive)
    >>> labelled = positive & (rng.random(1000) < 0.5)
    >>> estimate = read(scores, labelled)
    >>> low, high = estimate.n_hidden_interval
    >>> bool(low < 200 < high)
    True
    """
    values = check_scores(scores)
    mask = check_labelled(labelled, values.size, both=True)
    weight = np.ones(values.size)
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
    slope, offset = platt_scaling(values, mask, weight)
    odds = np.clip(slope * values + offset, -MOST_LOG_ODDS, MOST_LOG_ODDS)
    summary, network = summarise(odds, mask, weight), load_network()
    curves, kept = network.curves(summary), _thin_out(odds[~mask], weight[~mask])
    n_labelled, n_unlabelled = (float(weight[group].sum()) for group in (mask, ~mask))
    estimate = HiddenEstimate(
        boundary=np.nan,
        class_prior=np.nan,
        class_prior_interval=(np.nan, np.nan),
        n_hidden=np.nan,
        n_hidden_interval=(np.nan, np.nan),
        n_labelled=n_labelled,
        n_unlabelled=n_unlabelled,
        familiarity=network.familiarity(summary),
        curves=curves,
        slope=slope,
        offset=offset,
        scores=kept,
    )._counted()
    return estimate if class_prior is None else estimate.update(class_prior=class_prior)


def _thin_out(values: Vector, weight: Vector) -> Vector:
    """Return the sorted values; quantiles, if they are many or weighted."""
    order = np.argsort(values, kind="stable")
    if values.size <= _MOST_KEPT and (weight == weight[0]).all():
        return values[order]
    position = np.cumsum(weight[order]) - 0.5 * weight[order]
    levels = (np.arange(_MOST_KEPT) + 0.5) / _MOST_KEPT * weight.sum()
    return np.interp(levels, position, values[order])


def interval_of_share(curves: Curves, scores: Vector, n_rows: float) -> Vector:
    """Return the 90% interval of the share of positives among unlabelled rows."""
    return mixture_interval(curves.weights, *curves.shares(scores, n_rows))


def mixture_interval(weights: Vector, centres: Vector, deviations: Vector) -> Vector:
    """Return the 90% interval of a share whose log-odds are a mixture of normals."""
    wide = 10.0 * float(deviations.max())
    ends = float(centres.min()) - wide, float(centres.max()) + wide

    def excess(odds: float, level: float) -> float:
        return float(weights @ ndtr((odds - centres) / deviations)) - level

    found = [brentq(excess, *ends, args=(level,)) for level in INTERVAL]
    return expit(found)


def _find_boundary(hidden: NDArray[np.float64]) -> Vector:
    """Return for each curve the gap at which the posterior passes 1/2; 1 if it never does.

    ``hidden`` is P(Y=1 | score, unlabelled) on the grid of log-odds, one row per curve.
    """
    labelled = expit(_GRID)
    above = labelled + (1.0 - labelled) * hidden > 0.5
    first = np.where(above.any(axis=1), above.argmax(axis=1), _GRID.size - 1)
    gap = 2.0 * expit(_GRID[first]) - 1.0
    return np.where(first == 0, -1.0, np.where(above.any(axis=1), gap, 1.0))
