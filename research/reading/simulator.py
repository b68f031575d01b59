"""The prior over positive and unlabelled tasks, as a simulator.

A task is drawn in three steps, each from a named family: features, the true posterior
P(Y=1 | x), and the rate at which positives are labelled. ``simulate(seed)`` draws one;
``families`` restricts it, so that a family can be held out of training.

Finer models of the rate than its own are what the paper (arXiv:1808.02180v2) proposes as
future work. Here the rate is a function of what a labeller sees: the log-odds of the true posterior, often
flattened, and perturbed by a smooth function of x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import rankdata

from probgap._core.types import Array, Mask, Vector

Generator = np.random.Generator

FEWEST_LABELLED = 8
FEWEST_UNLABELLED = 20
# Slope of the log-odds below which classes overlap so much that positives are mostly rare.
FAINT = 1.3


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedTask:
    """Samples, true labels, which positives are labelled, and the families drawn from."""

    X: Array
    positive: Mask
    labelled: Mask
    posterior: Vector
    families: dict[str, str]


def simulate(
    seed: int, families: Mapping[str, tuple[str, ...]] | None = None
) -> SimulatedTask:
    """Draw a task; ``families`` restricts the families of features, truth and rate."""
    rng = np.random.default_rng(seed)
    while True:
        drawn = {kind: _draw_family(kind, families, rng) for kind in FAMILIES}
        n_rows = _draw_size(rng)
        X = FEATURES[drawn["features"]](n_rows, int(_log_uniform(2, 60, rng)), rng)
        used = _used_columns(X, rng)
        score = _standardised(TRUTHS[drawn["truth"]](used, rng))
        log_odds = _draw_log_odds(score, rng)
        posterior = _with_noise(expit(log_odds), rng)
        positive = rng.random(n_rows) < posterior
        if positive.sum() < FEWEST_LABELLED:
            continue
        seen = _seen_by_labeller(score, log_odds, used, rng)
        rate = RATES[drawn["rate"]](Ease.of(seen, positive, used), rng)
        labelled = positive & (rng.random(n_rows) < rate)
        n_labelled = labelled.sum()
        if n_labelled >= FEWEST_LABELLED and n_rows - n_labelled >= FEWEST_UNLABELLED:
            return SimulatedTask(X, positive, labelled, posterior, drawn)


def _draw_family(
    kind: str, families: Mapping[str, tuple[str, ...]] | None, rng: Generator
) -> str:
    names = list((families or {}).get(kind, FAMILIES[kind]))
    weight = np.array([BELIEF.get(name, 1.0) for name in names])
    return str(rng.choice(names, p=weight / weight.sum()))


def _draw_size(rng: Generator) -> int:
    """Draw a number of rows from 100 to 10,000, most of them below 3,000."""
    low, high = (100, 3000) if rng.random() < 0.95 else (3000, 10_000)
    return int(_log_uniform(low, high, rng))


def _log_uniform(low: float, high: float, rng: Generator) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


# --- features ---------------------------------------------------------------------------


def _clustered(n: int, d: int, rng: Generator) -> Array:
    centres = rng.normal(size=(rng.integers(2, 9), d)) * rng.uniform(1.0, 3.0)
    return centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, d))


def _heavy_tailed(n: int, d: int, rng: Generator) -> Array:
    if rng.random() < 0.5:
        return rng.standard_t(rng.uniform(2.5, 6.0), size=(n, d))
    return rng.lognormal(sigma=rng.uniform(0.5, 1.2), size=(n, d))


def _binary(n: int, d: int, rng: Generator) -> Array:
    """Return columns of few levels that share latent factors."""
    cause = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) * rng.uniform(0.0, 1.0)
    levels = rng.integers(1, 4, size=d)
    shares = expit(cause + rng.normal(size=d))
    return rng.binomial(levels, shares).astype(np.float64)


def _correlated(n: int, d: int, rng: Generator) -> Array:
    rank = int(rng.integers(1, max(2, d // 2) + 1))
    common = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    return common + _log_uniform(0.05, 1.0, rng) * rng.normal(size=(n, d))


FEATURES: dict[str, Callable[[int, int, Generator], Array]] = {
    "gaussian": lambda n, d, rng: rng.normal(size=(n, d)),
    "uniform": lambda n, d, rng: rng.uniform(-1.7, 1.7, size=(n, d)),
    "clustered": _clustered,
    "heavy_tailed": _heavy_tailed,
    "binary": _binary,
    "correlated": _correlated,
}


def _used_columns(X: Array, rng: Generator) -> Array:
    """Choose the columns that the truth depends on, and standardise them."""
    d = X.shape[1]
    n_used = max(min(d, 2), round(d * rng.uniform(0.15, 1.0)))
    used = X[:, rng.choice(d, n_used, replace=False)]
    return _standardised(used)


# --- truths -----------------------------------------------------------------------------


def _linear(X: Array, rng: Generator) -> Vector:
    return X @ (rng.normal(size=X.shape[1]) * rng.exponential(size=X.shape[1]))


def _smooth(X: Array, rng: Generator) -> Vector:
    """Sum cosines of random frequency."""
    scale = rng.uniform(0.4, 1.6) / np.sqrt(X.shape[1])
    waves = rng.normal(size=(X.shape[1], 25)) * scale
    shift = rng.uniform(0.0, 2.0 * np.pi, 25)
    return np.cos(X @ waves + shift) @ rng.normal(size=25)


def _quadratic(X: Array, rng: Generator) -> Vector:
    """Return a quadratic score, as for two Gaussian classes of different covariance."""
    square = (X**2) @ rng.normal(size=X.shape[1]) * rng.uniform(0.0, 0.7)
    return square + X @ rng.normal(size=X.shape[1])


def _rules(X: Array, rng: Generator) -> Vector:
    """Sum small trees with random splits."""
    total = np.zeros(len(X))
    for _ in range(rng.integers(1, 9)):
        leaf = np.zeros(len(X), dtype=np.intp)
        depth = int(rng.integers(1, 5))
        for _ in range(depth):
            column = X[:, rng.integers(X.shape[1])]
            leaf = 2 * leaf + (column > np.quantile(column, rng.uniform(0.1, 0.9)))
        total += rng.normal(size=2**depth)[leaf]
    # A small linear term, so that rows of a leaf are not tied.
    return total + rng.uniform(0.0, 0.3) * (X @ rng.normal(size=X.shape[1]))


def _islands(X: Array, rng: Generator) -> Vector:
    """Return how near a row lies to the nearest of some centres."""
    centres = X[rng.integers(len(X), size=rng.integers(1, 9))]
    squares = ((X[:, None, :] - centres) ** 2).mean(axis=2)
    return -np.sqrt(squares.min(axis=1))


def _additive(X: Array, rng: Generator) -> Vector:
    """Sum a nonlinear function of each column."""
    bends: tuple[Callable[[Vector], Vector], ...] = (
        np.sin,
        np.abs,
        np.tanh,
        np.sign,
        lambda x: np.maximum(x, 0.0),
        lambda x: np.minimum(x**2, 9.0),
    )
    total = np.zeros(len(X))
    for column in X.T:
        bend = bends[rng.integers(len(bends))]
        slope = _log_uniform(0.5, 2.0, rng)
        total += rng.normal() * bend(slope * column + rng.normal())
    return total


TRUTHS: dict[str, Callable[[Array, Generator], Vector]] = {
    "linear": _linear,
    "smooth": _smooth,
    "quadratic": _quadratic,
    "rules": _rules,
    "islands": _islands,
    "additive": _additive,
}


def _standardised(values: Array) -> Array:
    deviation = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)


def _draw_log_odds(score: Vector, rng: Generator) -> Vector:
    """Draw how well classes are separated, and the share of positives.

    Positives are usually the smaller class. Where classes overlap most, they are rare.
    """
    sharpness = _log_uniform(0.55, 60.0, rng)
    rare = 0.9 if sharpness < FAINT else 0.4
    share = rng.beta(1.0, 6.0) if rng.random() < rare else rng.beta(1.3, 2.4)
    prior = float(np.clip(share, 0.01, 0.9))

    def excess(shift: float) -> float:
        return float(expit(sharpness * (score - shift)).mean() - prior)

    # Brackets: at these shifts the share of positives is nearly 1 and 0.
    wide = np.abs(score).max() + 12.0 / sharpness
    return sharpness * (score - brentq(excess, -wide, wide))


def _with_noise(posterior: Vector, rng: Generator) -> Vector:
    """Keep the posterior of some tasks away from 0 and 1."""
    if rng.random() < 0.85:
        return posterior
    low, high = rng.uniform(0.0, 0.12, size=2)
    # A rare class stays rare.
    low *= posterior.mean()
    return low + (1.0 - low - high) * posterior


# --- labelling rates --------------------------------------------------------------------


class Ease(NamedTuple):
    """What labelling depends on: how clearly positive each row seems, and its features."""

    log_odds: Vector
    chance: Vector  # the posterior as the labeller sees it
    gap: Vector  # from -1 to 1
    rank: Vector  # from 0, the least clear positive, to 1, the clearest
    positive: Mask
    X: Array

    @classmethod
    def of(cls, log_odds: Vector, positive: Mask, X: Array) -> Ease:
        """Rank rows by the log-odds that a labeller sees."""
        chance = expit(log_odds)
        clear = rankdata(log_odds[positive])
        rank = np.zeros(log_odds.size)
        rank[positive] = clear / clear.size
        return cls(log_odds, chance, 2.0 * chance - 1.0, rank, positive, X)


def _seen_by_labeller(
    score: Vector, log_odds: Vector, X: Array, rng: Generator
) -> Vector:
    """Distort the log-odds: a labeller may see less of them, or other things as well."""
    seen = log_odds
    if rng.random() < 0.6:
        order = np.argsort(log_odds)
        zero = np.interp(0.0, log_odds[order], score[order])
        seen = _log_uniform(0.8, 8.0, rng) * (score - zero)
    if rng.random() < 0.5:
        seen = seen + _log_uniform(0.1, 1.5, rng) * _standardised(_smooth(X, rng))
    return seen


def _draw_height(rng: Generator) -> float:
    """Draw the labelling rate of the clearest positives, seldom below one in eight."""
    kind = rng.random()
    if kind < 0.55:
        return float(rng.uniform(0.5, 1.0))
    low, high = (0.12, 0.7) if kind < 0.95 else (0.02, 0.12)
    return _log_uniform(low, high, rng)


def _constant(ease: Ease, rng: Generator) -> Vector:
    height = 1.0 if rng.random() < 0.4 else _draw_height(rng)
    return np.full(ease.gap.size, height)


def _inverse(ease: Ease, rng: Generator) -> Vector:
    alpha, beta = _log_uniform(0.05, 0.5, rng), rng.uniform(0.2, 2.0)
    hidden = alpha / (alpha + np.maximum(ease.gap, 0.0)) / (1.0 + beta)
    return 1.0 - hidden


def _linear_rate(ease: Ease, rng: Generator) -> Vector:
    height = 1.0 if rng.random() < 0.6 else _draw_height(rng)
    return height * np.maximum(1.0 - rng.uniform(0.1, 1.0) * (1.0 - ease.gap), 0.0)


def _gap_power(ease: Ease, rng: Generator) -> Vector:
    power = _log_uniform(0.5, 4.0, rng)
    return _draw_height(rng) * np.maximum(ease.gap, 0.0) ** power


def _posterior_power(ease: Ease, rng: Generator) -> Vector:
    return _draw_height(rng) * ease.chance ** _log_uniform(0.3, 5.0, rng)


def _rank_sigmoid(ease: Ease, rng: Generator) -> Vector:
    middle, width = rng.uniform(0.0, 1.0), _log_uniform(0.03, 0.5, rng)
    return _draw_height(rng) * expit((ease.rank - middle) / width)


def _log_odds_sigmoid(ease: Ease, rng: Generator) -> Vector:
    middle, slope = rng.uniform(-2.0, 3.0), _log_uniform(0.3, 3.0, rng)
    return _draw_height(rng) * expit(slope * (ease.log_odds - middle))


def _rank_weight(ease: Ease, rng: Generator) -> Vector:
    """Label in proportion to an exponential of the rank, cut at 1."""
    weight = np.exp(rng.uniform(1.0, 7.0) * ease.rank)
    mean = weight[ease.positive].mean()
    return np.minimum(rng.uniform(0.05, 0.6) * weight / mean, 1.0)


def _step(ease: Ease, rng: Generator) -> Vector:
    high = _draw_height(rng)
    low = high * rng.uniform(0.0, 0.7)
    return np.where(ease.rank > rng.uniform(0.1, 0.9), high, low)


def _top_share(ease: Ease, rng: Generator) -> Vector:
    height = float(rng.uniform(0.4, 1.0))
    return np.where(ease.rank > rng.uniform(0.2, 0.9), height, 0.0)


def _two_labellers(ease: Ease, rng: Generator) -> Vector:
    """Split the rows between two labellers, at random or by a hyperplane."""
    kinds = [name for name in RATES if name != "two_labellers"]
    first, second = (RATES[str(rng.choice(kinds))](ease, rng) for _ in range(2))
    share = rng.uniform(0.2, 0.8)
    if rng.random() < 0.5:
        return np.where(rng.random(first.size) < share, first, second)
    side = ease.X @ rng.normal(size=ease.X.shape[1])
    return np.where(side > np.quantile(side, share), first, second)


RATES: dict[str, Callable[[Ease, Generator], Vector]] = {
    "constant": _constant,
    "inverse": _inverse,
    "linear": _linear_rate,
    "gap_power": _gap_power,
    "posterior_power": _posterior_power,
    "rank_sigmoid": _rank_sigmoid,
    "log_odds_sigmoid": _log_odds_sigmoid,
    "rank_weight": _rank_weight,
    "step": _step,
    "top_share": _top_share,
    "two_labellers": _two_labellers,
}

# Relative frequencies of the rates; simple ones are drawn more often.
BELIEF = {
    "constant": 3.2,
    "inverse": 2.0,
    "linear": 2.0,
    "gap_power": 2.4,
    "posterior_power": 0.8,
    "log_odds_sigmoid": 0.5,
    "rank_sigmoid": 0.3,
    "rank_weight": 0.3,
    "step": 0.2,
    "top_share": 0.2,
    "two_labellers": 0.3,
}

FAMILIES: dict[str, Mapping[str, Callable[..., Any]]] = {
    "features": FEATURES,
    "truth": TRUTHS,
    "rate": RATES,
}
