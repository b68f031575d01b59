"""The network: from a summary of the scores, of fixed length, to weighted curves."""

from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logit

from probgap._core.newton import fit_few
from probgap._core.types import Array, Mask, Vector

# Log-odds are clipped here, beyond what a finite sample can tell.
MOST_LOG_ODDS = 9.0

# Scores count as outliers so many times as far off as most of them spread.
_FAR = 20.0

# fmt: off
_LEVELS = np.array([
    0.01, 0.03, 0.08, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.92, 0.96,
    0.985, 0.995,
])
# fmt: on


def platt_scaling(
    scores: Vector, labelled: Mask, weight: Vector
) -> tuple[float, float]:
    """Return slope and offset that turn scores into log-odds of being labelled."""
    scores = _without_outliers(scores, labelled)
    centre, deviation = float(scores.mean()), float(scores.std()) or 1.0
    standard = (scores - centre) / deviation
    # Platt's targets, which keep probabilities from 0 and 1 if groups are separable.
    n_labelled, n_others = weight[labelled].sum(), weight[~labelled].sum()
    ends = (n_labelled + 1.0) / (n_labelled + 2.0), 1.0 / (n_others + 2.0)
    target = np.where(labelled, *ends)

    start = np.array([1.0, logit(n_labelled / (n_labelled + n_others))])
    coef, intercept = fit_few(standard[:, None], target, weight, start=start)
    slope = float(coef[0] / deviation)
    return slope, float(intercept - slope * centre)


def _without_outliers(scores: Vector, labelled: Mask) -> Vector:
    """Clip what is so far off that a single score would decide the slope."""
    low, high = np.quantile(scores, [0.05, 0.95])
    apart = abs(np.median(scores[labelled]) - np.median(scores[~labelled]))
    far = _FAR * max(high - low, apart)
    return np.clip(scores, low - far, high + far) if far > 0.0 else scores


def calibrated_log_odds(scores: Vector, labelled: Mask, weight: Vector) -> Vector:
    """Return the log-odds of being labelled, by Platt scaling."""
    slope, offset = platt_scaling(scores, labelled, weight)
    return np.clip(slope * scores + offset, -MOST_LOG_ODDS, MOST_LOG_ODDS)


def summarise(log_odds: Vector, labelled: Mask, weight: Vector) -> Vector:
    """Describe how the log-odds of labelled and of unlabelled rows are distributed.

    Quantiles of both groups, the rank of each quantile in the other group, means,
    standard deviations and counts: 67 numbers.
    """
    groups = [_Group(log_odds[mask], weight[mask]) for mask in (labelled, ~labelled)]
    quantiles = [group.quantile(_LEVELS) for group in groups]
    ranks = [groups[1 - i].log_odds_below(quantiles[i]) for i in range(2)]
    moments = [number for group in groups for number in (group.mean, group.deviation)]
    counts = [np.log(group.count) for group in groups]
    chance = expit(log_odds)
    # Elkan and Noto's estimate of the labelling rate.
    level = np.average(chance[labelled], weights=weight[labelled])
    return np.concatenate([*quantiles, *ranks, moments, counts, [logit(level)]])


class _Group:
    """Weighted values, sorted."""

    def __init__(self, values: Vector, weight: Vector) -> None:
        order = np.argsort(values, kind="stable")
        self.values, self.weight = values, weight = values[order], weight[order]
        self.count = float(weight.sum())
        self.mean = float(np.average(values, weights=weight))
        squares = (values - self.mean) ** 2
        self.deviation = float(np.sqrt(np.average(squares, weights=weight)))
        # The share below the middle of each value.
        self.position = (np.cumsum(weight) - 0.5 * weight) / self.count

    def quantile(self, levels: Vector) -> Vector:
        return np.interp(levels, self.position, self.values)

    def log_odds_below(self, values: Vector) -> Vector:
        """Return finite log-odds of the share below each value."""
        left = np.searchsorted(self.values, values, side="left")
        right = np.searchsorted(self.values, values, side="right")
        total = np.append(0.0, np.cumsum(self.weight))
        share = 0.5 * (total[left] + total[right]) / self.count
        return logit((share * self.count + 0.5) / (self.count + 1.0))


# Parameters of a curve: ceiling, share, middle and width of each of two sigmoids, weight
# and spread.
CURVE_SIZE = 8
LEAST_CHANCE = 1e-5
# Lower bound of the spread: curves are estimates.
LEAST_SPREAD = 0.03
MOST_STANDARD = 5.0
# Curves that each is unfolded into; those below this weight are dropped.
_N_UNFOLDED = 9
_LEAST_WEIGHT = 1e-6
_FARTHEST_SHIFT = 20.0
_ROWS_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Weighted monotone curves, each a ceiling times a mixture of two sigmoids.

    A curve w(z) is compatible with the scores: it is the probability that an unlabelled row
    with log-odds z of being labelled is positive. ``shift`` moves it, in log-odds.
    ``spread`` is the standard deviation of the log-odds of the share of hidden positives
    around that of the curve.
    """

    weights: Vector
    ceiling: Vector
    share: Vector
    middle: Array
    width: Array
    spread: Vector
    shift: Vector

    def each(self, log_odds: Vector) -> Array:
        """Return the probability by each curve, one row per curve."""
        value = np.zeros((self.weights.size, log_odds.size))
        for k, share in enumerate((self.share, 1.0 - self.share)):
            away = log_odds - self.middle[k][:, None]
            value += share[:, None] * expit(away / self.width[k][:, None])
        value = np.clip(self.ceiling[:, None] * value, LEAST_CHANCE, 1.0 - LEAST_CHANCE)
        if not self.shift.any():
            return value
        odds = np.exp(self.shift)[:, None] * value / (1.0 - value)
        return odds / (1.0 + odds)

    def mean(self, log_odds: Vector) -> Vector:
        """Return the probability averaged over the curves."""
        # In parts: of a million rows, all curves at once would take a gigabyte.
        starts = range(0, max(1, log_odds.size), _ROWS_AT_ONCE)
        parts = (log_odds[start : start + _ROWS_AT_ONCE] for start in starts)
        return np.concatenate([self.weights @ self.each(part) for part in parts])

    def shares(self, log_odds: Vector, n_rows: float) -> tuple[Vector, Vector]:
        """Return log-odds of the share of positives by each curve, and their deviation.

        ``log_odds`` are those of unlabelled rows, which represent ``n_rows``.
        """
        share = self.each(log_odds).mean(axis=1)
        by_luck = 1.0 / (n_rows * share * (1.0 - share) + 1.0)
        return logit(share), np.sqrt(self.spread**2 + by_luck)

    def reweighted(self, log_likelihood: Vector) -> Self:
        """Weight the curves by evidence."""
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights) + log_likelihood
        return replace(self, weights=np.exp(log_softmax(log_weights)))

    def unfolded(self, log_odds: Vector) -> Self:
        """Replace each curve by several shifted over its spread, each with a small one.

        Evidence can then select among them. Curves of negligible weight are dropped.
        """
        each = self.each(log_odds)
        share = each.mean(axis=1)
        # Derivative of the log-odds of the share by a shift of all rows.
        pull = (each * (1.0 - each)).mean(axis=1) / (share * (1.0 - share))
        steps = np.linspace(-2.0, 2.0, _N_UNFOLDED)
        wide = self.spread > 2.0 * LEAST_SPREAD
        parts = np.where(wide[:, None], np.exp(-0.5 * steps**2), steps == 0.0)
        parts = parts / parts.sum(axis=1, keepdims=True)
        weights = parts * self.weights[:, None]
        kept = weights > _LEAST_WEIGHT
        curve, step = np.nonzero(kept)
        # The remaining spread is that of a uniform distribution between two steps.
        left = (steps[1] - steps[0]) / np.sqrt(12.0)
        narrow = np.where(wide, self.spread * left, self.spread)
        moved = self.shift[curve] + steps[step] * (self.spread / pull)[curve]
        return replace(
            self,
            weights=weights[kept] / weights[kept].sum(),
            ceiling=self.ceiling[curve],
            share=self.share[curve],
            middle=self.middle[:, curve],
            width=self.width[:, curve],
            spread=narrow[curve],
            shift=np.clip(moved, -_FARTHEST_SHIFT, _FARTHEST_SHIFT),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """An ensemble of fitted networks, and statistics of the tasks they were fitted on."""

    layers: tuple[tuple[Array, Array], ...]  # weights, biases; the first axis: network
    mean: Vector  # of the summaries of the simulated tasks
    deviation: Vector
    axes: Array  # main axes of the standardised summaries
    places: Array  # where some tasks lie on them
    distances: Vector  # quantiles of the distance of a new task to the nearest of those

    def standardise(self, summary: Vector) -> Vector:
        """Standardise a summary by those of the simulated tasks."""
        standard = (summary - self.mean) / self.deviation
        return np.clip(standard, -MOST_STANDARD, MOST_STANDARD)

    def curves(self, summary: Vector) -> Curves:
        """Return the curves of a task."""
        n_networks = self.layers[0][0].shape[0]
        hidden = np.repeat(self.standardise(summary)[None], n_networks, axis=0)
        for weight, bias in self.layers[:-1]:
            hidden = np.einsum("ki,kij->kj", hidden, weight) + bias
            hidden = hidden * expit(hidden)
        weight, bias = self.layers[-1]
        output = np.einsum("ki,kij->kj", hidden, weight) + bias
        numbers = output.reshape(n_networks, -1, CURVE_SIZE)
        weights = np.exp(log_softmax(numbers[..., 6], axis=1)) / n_networks
        part = numbers.reshape(-1, CURVE_SIZE).T
        return Curves(
            weights=weights.ravel(),
            ceiling=expit(part[0] + 1.0),
            share=expit(part[1]),
            middle=np.stack([3.0 * part[2], 3.0 * part[4] - 1.0]),
            width=np.logaddexp(0.0, part[[3, 5]] + 0.5) + 0.05,
            spread=np.hypot(np.logaddexp(0.0, part[7] - 1.0), LEAST_SPREAD),
            shift=np.zeros(weights.size),
        )

    def familiarity(self, summary: Vector) -> float:
        """Return the share of simulated tasks no nearer to others than this one is."""
        place = self.axes @ self.standardise(summary)
        nearest = np.sqrt(((self.places - place) ** 2).sum(axis=1).min())
        nearer = np.searchsorted(self.distances, nearest)
        return 1.0 - float(nearer / self.distances.size)


@cache
def load_network() -> Network:
    """Load the network that comes with the package."""
    with files("probgap.reading").joinpath("weights.npz").open("rb") as file:
        return as_network(dict(np.load(file, allow_pickle=False)))


def as_network(arrays: dict[str, NDArray[Any]]) -> Network:
    """Make a network from its arrays."""
    double = {k: v.astype(float) for k, v in arrays.items() if v.dtype.kind == "f"}
    n_layers = sum(name.startswith("weight_") for name in arrays)
    layers = tuple(
        (double.pop(f"weight_{i}"), double.pop(f"bias_{i}")) for i in range(n_layers)
    )
    return Network(layers, **double)
