"""Share of positives among unlabelled rows, from one score per row."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from probgap._core.runtime import spread_rows
from probgap._core.types import Mask, Vector
from probgap.priors._result import FoundPrior, share_of_hidden
from probgap.reading import read

# Most scores of a group for estimates of densities; quantiles stand for more.
_MOST_SCORES = 2000
_LEAST = 1e-12

# --- Elkan and Noto ---------------------------------------------------------------------


def elkan_noto(log_odds: Vector, labelled: Mask) -> FoundPrior:
    """Estimate the share with Elkan and Noto's first estimator of the label frequency.

    c is the mean of P(s=1 | x) over labelled rows, and P(Y=1) = P(s=1) / c.
    """
    frequency = float(expit(log_odds[labelled]).mean())
    share = share_of_hidden(max(frequency, _LEAST), labelled)
    return FoundPrior(share, evidence={"frequency": frequency})


# --- DEDPUL -----------------------------------------------------------------------------

# Bandwidths of the two densities in standard deviations, the greatest ratio, half-widths
# of the running medians, and by how much a lower value weakens a remembered peak: as in
# the author's program.
_OF_LABELLED, _OF_UNLABELLED = 0.1, 0.05
_MOST_RATIO = 50.0
_NARROW, _WIDE = 5, 1 / 20
_FORGET = 0.2
_GRID = np.linspace(0.0, 1.0, 1001)[1:]
# Largest excess of the share over the mean posterior at its steepest turn.
_MOST_EXCESS = 0.05
_TOLERANCE, _MOST_STEPS = 1e-5, 1000


def dedpul(log_odds: Vector, labelled: Mask) -> FoundPrior:
    """Return the share that equals the mean of the posteriors it implies (DEDPUL).

    The posterior of an unlabelled row is min(share * ratio, 1), with the ratio of the
    densities of labelled and unlabelled scores. Fixed-point iteration starts at 1, and
    stops where no posterior is 1 any more. If it stops there although the mean stays below
    the share everywhere, the share is taken where that excess turns most steeply. If no
    ratio reaches 1, labelled scores lie where few others do: the share is the mean ratio.
    """
    ratio = density_ratio(log_odds, labelled)
    apart = ratio[-1] < 1.0
    share, step = float(ratio.mean()) if apart else 1.0, 0
    for step in range(1, _MOST_STEPS + 1):  # noqa: B007 (the last step is evidence)
        posterior = np.minimum(share * ratio, 1.0)
        change = float(posterior.mean()) - share
        if abs(change) < _TOLERANCE or posterior.max() < 1.0:
            break
        share += change
    excess = _GRID - np.minimum(_GRID[:, None] * ratio, 1.0).mean(axis=1)
    turn = np.diff(excess, 2)
    turn[excess[1:-1] >= _MOST_EXCESS] = -np.inf
    steepest = float(_GRID[1:-1][np.argmax(turn)])
    fixed = apart or ((excess < 0.0).sum() > 1 and share > _GRID[0])
    evidence = {
        "ratio": float(ratio[-1]),
        "fixed_point": share,
        "steepest_turn": steepest,
        "n_iter": float(step),
    }
    converged = step < _MOST_STEPS
    found = share if fixed or steepest <= share else steepest
    return FoundPrior(found, converged=converged, evidence=evidence)


def density_ratio(log_odds: Vector, labelled: Mask) -> Vector:
    """Return labelled over unlabelled density at unlabelled scores, smooth and rising."""
    positive = _even_quantiles(log_odds[labelled])
    unlabelled = _even_quantiles(log_odds[~labelled])
    density = _density(positive, unlabelled, _OF_LABELLED)
    below = _density(unlabelled, unlabelled, _OF_UNLABELLED)
    ratio = np.minimum(density / np.maximum(below, _LEAST), _MOST_RATIO)
    ratio = _running_median(ratio, _NARROW)
    chance = expit(unlabelled)
    above = chance >= 0.5 * (expit(positive).mean() + chance.mean())
    ratio[above] = np.maximum.accumulate(ratio[above])
    ratio = _running_median(ratio, int(_WIDE * ratio.size))
    return np.sort(_remember_peaks(ratio))


def _even_quantiles(values: Vector) -> Vector:
    """Return the sorted values, or an evenly spaced subset of many."""
    return np.sort(values)[spread_rows(values.size, _MOST_SCORES)]


def _density(values: Vector, at: Vector, bandwidth: float) -> Vector:
    """Estimate a density by a Gaussian kernel."""
    width = max(bandwidth * float(values.std(ddof=min(1, values.size - 1))), 1e-3)
    away = (at[:, None] - values) / width
    return np.exp(-0.5 * away**2).mean(axis=1) / (width * np.sqrt(2.0 * np.pi))


def _running_median(values: Vector, half: int) -> Vector:
    """Return medians in windows that shrink towards both ends."""
    reach = np.minimum(np.arange(values.size), np.arange(values.size)[::-1])
    reach = np.minimum(reach, half)
    return np.array(
        [np.median(values[at - h : at + h + 1]) for at, h in enumerate(reach)]
    )


def _remember_peaks(values: Vector) -> Vector:
    """Raise each value to the highest earlier one that is still remembered.

    A value at least as high as a peak strengthens it by 1, a lower one weakens it by 0.2;
    at 0 it is forgotten.
    """
    raised, peaks, strength = values.copy(), np.empty(0), np.empty(0)
    for at, value in enumerate(values):
        if peaks.size:
            raised[at] = max(value, peaks.max())
        strength = strength + np.where(peaks <= value, 1.0, -_FORGET)
        kept = strength > 0.0
        peaks, strength = peaks[kept], strength[kept]
        if value not in peaks:
            peaks, strength = np.append(peaks, value), np.append(strength, 1.0)
    return raised


# --- BBE --------------------------------------------------------------------------------

_DOUBT = 0.1  # the bounds hold together with probability 1 - this
_MARGIN = 0.01


def bbe(log_odds: Vector, labelled: Mask) -> FoundPrior:
    """Return the share in the top bin with the lowest upper confidence bound (BBE).

    Above a threshold, the share of unlabelled rows over that of labelled ones is at least
    the share of positives, and equal to it where there are no negatives.
    """
    groups = np.sort(log_odds[labelled]), np.sort(log_odds[~labelled])
    cuts = np.unique(log_odds[log_odds <= groups[0][-1]])
    above = [1.0 - np.searchsorted(g, cuts) / g.size for g in groups]
    deviation = sum(np.sqrt(np.log(4.0 / _DOUBT) / (2.0 * g.size)) for g in groups)
    ratio = above[1] / above[0]
    half_width = (1.0 + _MARGIN) * deviation / above[0]
    best = int(np.argmin(ratio + half_width))
    share, half = float(ratio[best]), float(half_width[best])
    evidence = {"threshold": float(cuts[best]), "labelled_above": float(above[0][best])}
    return FoundPrior(share, (share - half, share + half), evidence=evidence)


# --- AlphaMax ---------------------------------------------------------------------------

_ROWS_PER_BIN = 10


def alphamax(log_odds: Vector, labelled: Mask) -> FoundPrior:
    """Return the share above which the likelihood of labelled scores falls (AlphaMax).

    Scores are binned with equal numbers of labelled rows. Bin i has shares p_i of the
    labelled and u_i of the unlabelled rows, of which at most all are positive; the labelled
    rows are likeliest if min(u_i, t p_i) are, with t such that these add up to the share.
    The log-likelihood is constant up to the share sought, then falls.
    """
    positive = log_odds[labelled]
    n_bins = max(2, positive.size // _ROWS_PER_BIN)
    edges = np.unique(np.quantile(positive, np.linspace(0.0, 1.0, n_bins + 1)[1:-1]))
    p, u = (
        np.bincount(np.searchsorted(edges, g, "right"), minlength=edges.size + 1)
        for g in (positive, log_odds[~labelled])
    )
    p, u = p / p.sum(), (u + 0.5) / (u + 0.5).sum()
    shares = _GRID[:-1]
    curve = np.array([_likelihood_of_share(share, p, u) for share in shares])
    # The elbow is where the curve is farthest above the line between its ends.
    line = np.interp(shares, shares[[0, -1]], curve[[0, -1]])
    elbow = float(shares[np.argmax(curve - line)])
    return FoundPrior(elbow, evidence={"n_bins": float(p.size)})


def _likelihood_of_share(share: float, p: Vector, u: Vector) -> float:
    """Return the mean log-likelihood of labelled rows, given a share of positives."""

    def excess(t: float) -> float:
        return float(np.minimum(u, t * p).sum()) - share

    some = p > 0.0
    most = float((u[some] / p[some]).max())
    t = brentq(excess, 0.0, most) if excess(most) > 0.0 else most
    filled = np.minimum(u, p * t)
    return float(p[some] @ np.log(filled[some] / share))


# --- two means --------------------------------------------------------------------------

# Share of the variance of a normal distribution that a split at its mean explains.
_ONE_GROUP = 2.0 / np.pi


def two_means(log_odds: Vector, labelled: Mask) -> FoundPrior:
    """Return the share of unlabelled scores in the upper of two groups.

    The log-odds of all rows are split where the variance within both groups is least.
    ``separation`` is 0 if the split explains no more variance than that of a single normal
    distribution does, 1 if it explains all of it.
    """
    values = np.sort(log_odds)
    n, total = values.size, float(values.var())
    below = np.arange(1, n)
    sums = np.cumsum(values)
    apart = sums[:-1] / below - (sums[-1] - sums[:-1]) / (n - below)
    between = below * (n - below) / n**2 * apart**2
    best = int(between.argmax())
    explained = float(between[best]) / total if total > _LEAST else 0.0
    separation = min(max((explained - _ONE_GROUP) / (1.0 - _ONE_GROUP), 0.0), 1.0)
    cut = 0.5 * (values[best] + values[best + 1])
    share = float((log_odds[~labelled] > cut).mean())
    return FoundPrior(
        share, evidence={"threshold": float(cut), "separation": separation}
    )


# --- estimate, consensus -----------------------------------------------------------------

_NORMAL_90 = 1.645  # half the width of a 90% interval, in standard deviations
# Standard deviation of the share if the two groups are fully separated. Among values from
# 0.03 to 0.15, the one of least error on the choosing tables of benchmarks/priors.py.
_LEAST_DEVIATION = 0.04


def from_estimate(log_odds: Vector, labelled: Mask) -> FoundPrior:
    """Return the share and the interval of :func:`probgap.reading.read`."""
    estimate = read(log_odds, labelled)
    n, (low, high) = estimate.n_unlabelled, estimate.n_hidden_interval
    evidence = {"familiarity": estimate.familiarity}
    return FoundPrior(estimate.n_hidden / n, (low / n, high / n), evidence=evidence)


def consensus(log_odds: Vector, labelled: Mask) -> FoundPrior:
    """Return the mean of the estimate and of two means, each weighted by its precision.

    The deviation of the estimate is that of its interval; that of two means is inversely
    proportional to the separation of the two groups.
    """
    estimate, groups = from_estimate(log_odds, labelled), two_means(log_odds, labelled)
    assert estimate.interval is not None
    low, high = estimate.interval
    # Deviations are those of shares of all rows, not of the unlabelled ones.
    width = (1.0 - float(labelled.mean())) * (high - low)
    deviation = max(width / (2.0 * _NORMAL_90), 1e-6)
    precision = (groups.evidence["separation"] / _LEAST_DEVIATION) ** 2
    weight = precision / (precision + deviation**-2)
    share = (1.0 - weight) * estimate.share + weight * groups.share
    evidence = {
        "estimate": estimate.share,
        "two_means": groups.share,
        "weight_of_two_means": weight,
        **estimate.evidence,
        **groups.evidence,
    }
    return FoundPrior(share, (min(low, share), max(high, share)), evidence=evidence)
