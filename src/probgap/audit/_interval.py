"""Intervals of totals from stratified samples of a finite population.

A stratum is sampled without replacement, so that the positives found in it are
hypergeometric, whatever model the strata come from. The interval inverts a test of the
total, at the most likely numbers of positives in the strata that add up to it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln

from probgap._core.types import Array, Vector

LEVEL = 0.9
# Pseudo-answers at the overall rate added to each stratum: without them a stratum whose
# answers are all alike would seem to have no variance.
_PSEUDO = 1.0
# Points of the lattice that totals are rounded to.
_LATTICE = 2048
_STEPS = 40


@dataclass(frozen=True, slots=True, eq=False)
class StratumSample:
    """Number of rows, of answers and of positives found in each stratum.

    ``weight`` are the coefficients of the strata in the total.
    """

    size: Vector
    answered: Vector
    found: Vector
    weight: Vector

    def total(self) -> float:
        """Return the unbiased estimate of the total of strata with an answer."""
        share = self.found / np.maximum(self.answered, 1.0)
        return float(self.weight @ (self.size * share))


def interval(sample: StratumSample, level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of a total; strata without an answer may hold any number."""
    seen = sample.answered > 0
    blind = (sample.weight * sample.size)[~seen]
    parts = sample.size, sample.answered, sample.found, sample.weight
    inner = StratumSample(*(part[seen].astype(float) for part in parts))
    low, high = _invert(inner, (1.0 - level) / 2.0) if seen.any() else (0.0, 0.0)
    low += float(np.minimum(blind, 0.0).sum())
    return low, high + float(np.maximum(blind, 0.0).sum())


def possible(sample: StratumSample) -> tuple[float, float]:
    """Return the least and the greatest total that the answers leave possible."""
    least, most = sample.found, sample.size - (sample.answered - sample.found)
    ends = np.sort(np.stack([sample.weight * least, sample.weight * most]), axis=0)
    return float(ends[0].sum()), float(ends[1].sum())


def tails(sample: StratumSample, total: float) -> tuple[float, float]:
    """Return the chances of an estimate as low, and as high, if this is the total."""
    positives = np.clip(sample.size * _rates(sample, total), 0.0, sample.size)
    chances = _hypergeometric(sample, positives)
    # Every estimate is a sum of whole steps of the lattice.
    step = np.abs(sample.weight) * sample.size / sample.answered
    step = np.maximum(np.rint(step * (_LATTICE / 2 / (step @ sample.answered))), 1.0)
    step = step.astype(int)
    ups = (sample.weight > 0)[:, None]
    x = np.arange(chances.shape[1])
    places = np.where(ups, x, sample.answered[:, None].astype(int) - x) * step[:, None]
    length = int(step @ sample.answered.astype(int)) + 1
    placed = np.zeros((step.size, length))
    inside = x <= sample.answered[:, None]
    row = np.broadcast_to(np.arange(step.size)[:, None], places.shape)
    placed[row[inside], places[inside]] = chances[inside]
    n = 2 ** int(np.ceil(np.log2(length)))
    law = np.fft.irfft(np.fft.rfft(placed, n).prod(axis=0), n)[:length]
    found = np.where(ups[:, 0], sample.found, sample.answered - sample.found)
    at = int(step @ found.astype(int))
    return float(law[: at + 1].sum()), float(law[at:].sum())


def _invert(sample: StratumSample, alpha: float) -> tuple[float, float]:
    least, most = possible(sample)
    middle = float(np.clip(sample.total(), least, most))
    low = _edge(lambda t: tails(sample, t)[1] - alpha, least, middle)
    high = _edge(lambda t: tails(sample, t)[0] - alpha, most, middle)
    return low, high


def _edge(excess: Callable[[float], float], far: float, near: float) -> float:
    """Return where the test starts to accept, between a far end and the estimate."""
    if abs(far - near) < 1e-9 or excess(far) >= 0.0:
        return far
    if excess(near) <= 0.0:
        return near
    return float(brentq(excess, far, near, xtol=0.02 + 1e-4 * abs(near)))


def _rates(sample: StratumSample, total: float) -> Vector:
    """Return the most likely rates of the strata among those that give the total."""
    overall = (sample.found.sum() + 0.5) / (sample.answered.sum() + 1.0)
    found = sample.found + _PSEUDO * overall
    n, slope = sample.answered + _PSEUDO, sample.weight * sample.size
    if slope.size == 1:
        return total / slope
    scale = float(np.abs(slope).max())
    # Root of slope * lambda * p^2 - (n + slope * lambda) * p + found in [0, 1].

    def rates(multiplier: float) -> Vector:
        push = multiplier * slope / scale
        b = n + push
        root = np.sqrt(np.maximum(b * b - 4.0 * push * found, 0.0))
        small = 2.0 * found / np.where(b > 0.0, b + root, 1.0)
        return np.where(b > 0.0, small, (b - root) / (2.0 * np.minimum(push, -1e-9)))

    low, high = -1.0, 1.0
    while slope @ rates(low) < total and low > -1e9:
        low *= 4.0
    while slope @ rates(high) > total and high < 1e9:
        high *= 4.0
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if slope @ rates(middle) > total:
            low = middle
        else:
            high = middle
    return rates(0.5 * (low + high))


def _hypergeometric(sample: StratumSample, positives: Vector) -> Array:
    """Return the chances of 0, 1, ... positives among the answers of each stratum.

    A fractional number of positives mixes the distributions of the two nearest integers.
    """
    whole = np.floor(positives)
    part = (positives - whole)[:, None]
    x: Array = np.arange(sample.answered.max() + 1.0)[None, :]
    above = _pmf(sample, np.minimum(whole + 1.0, sample.size), x)
    mixed: Array = (1.0 - part) * _pmf(sample, whole, x) + part * above
    return mixed


def _log_choose(n: Array, k: Array) -> Array:
    return -betaln(1.0 + n - k, 1.0 + k) - np.log1p(n)


def _pmf(sample: StratumSample, positives: Vector, x: Array) -> Array:
    size, n, good = sample.size[:, None], sample.answered[:, None], positives[:, None]
    fits = (x <= n) & (x <= good) & (n - x <= size - good)
    k = np.where(fits, x, np.maximum(n - (size - good), 0.0))
    ways = _log_choose(good, k) + _log_choose(size - good, n - k)
    return np.where(fits, np.exp(ways - _log_choose(size, n)), 0.0)
