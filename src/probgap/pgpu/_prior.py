"""How many are positive, and how many of those are labelled; with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from probgap._core.overlap import HIGH_QUANTILE
from probgap._core.values import RowValues
from probgap.boundary import Boundary
from probgap.gap import LabellingModel, ObservedGapEstimator
from probgap.pgpu._posterior import posterior_from_gap
from probgap.reading import Reading

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]

LEVEL = 0.9
_N_RESAMPLES = 50
# Of more samples, so many of each kind are drawn again: their luck is luck enough.
_MOST_OF_EACH = 5000
_EDGE = 1e-6


@dataclass(frozen=True, slots=True)
class ClassPrior:
    """Share of the training samples that are positive.

    Attributes
    ----------
    value : float
        The estimate.
    interval : tuple of float
        From where to where it may well be.
    labelled : float
        Share of the training samples that are labelled.
    spread : float
        Standard deviation of the log of the estimate over resamples.
    """

    value: float
    interval: tuple[float, float]
    labelled: float
    spread: float

    @property
    def labelling_rate(self) -> float:
        """Share of the positives that are labelled."""
        return self.labelled / self.value

    @property
    def labelling_rate_interval(self) -> tuple[float, float]:
        """From where to where that may well be."""
        low, high = self.interval
        return self.labelled / high, self.labelled / low


def prior_of_reading(reading: Reading) -> ClassPrior:
    """Return the share of positives as the reading counts them."""
    low, high = reading.n_hidden_interval
    n_rows = reading.n_labelled + reading.n_unlabelled
    return ClassPrior(
        value=reading.class_prior,
        interval=reading.class_prior_interval,
        labelled=reading.n_labelled / n_rows,
        spread=0.5 * (high - low) / (reading.n_labelled + reading.n_hidden),
    )


def estimate_prior(
    observed_gap: RowValues,
    posterior: RowValues,
    called: float,
    *,
    frequencies: tuple[float, float],
    spread: float,
) -> ClassPrior:
    """Estimate the share of positives from what a fit made of its samples.

    Two counts make the estimate, their geometric mean: samples that are labelled or
    called positive (``called``, a share), too few where positives are faint; and what
    posteriors add up to, a labelled one being sure, too many where positives are rare.
    Others say how far off it may be: what posteriors add up to if it speaks against a
    sample that nobody labelled it, and what Elkan and Noto would say, by
    ``frequencies``, two readings of the chance that a positive has of being labelled.
    The interval reaches from the least count to the greatest, and beyond by luck:
    ``spread``, of the log of the share over resamples, and that of true labels given
    their chances.
    """
    hidden = posterior.map(_hidden, observed_gap)
    n = posterior.count(labelled=True) + posterior.count(labelled=False)
    known = posterior.frequency()
    by_posterior = known + posterior.total(labelled=False) / n
    value = float(np.sqrt(called * by_posterior))
    counts = [called, by_posterior, known + hidden.total(labelled=False) / n]
    counts += [min(1.0, known / often) for often in frequencies]
    luck = float(np.sqrt(hidden.map(_variance).total(labelled=False))) / n
    beyond = float(ndtri(0.5 + 0.5 * LEVEL) * np.hypot(spread, luck / value))
    interval = (
        max(known, min(counts) * float(np.exp(-beyond))),
        min(1.0, max(counts) * float(np.exp(beyond))),
    )
    return ClassPrior(value, interval, known, spread)


def _hidden(posterior: Vector, labelled: Mask, observed_gap: Vector) -> Vector:
    """Give the chance to be positive of a sample that nobody labelled."""
    chance = chance_of_gap(observed_gap, labelled)
    left = np.maximum(1.0 - chance, np.finfo(np.float64).eps)
    return np.clip((posterior - chance) / left, 0.0, 1.0)


def _variance(chance: Vector, labelled: Mask) -> Vector:
    del labelled
    return chance * (1.0 - chance)


def chance_of_gap(observed_gap: Vector, labelled: Mask) -> Vector:
    """Give P(s=1 | x)."""
    del labelled
    return 0.5 * (1.0 + observed_gap)


def share_called(called: Mask, posterior: RowValues) -> float:
    """Give the share of samples labelled or called positive.

    ``called`` says who is, of unlabelled samples that were asked about. If there were
    none, their posteriors say it.
    """
    known, n_unlabelled = posterior.frequency(), posterior.count(labelled=False)
    if called.size:
        hidden = float(called.mean())
    else:
        above = n_unlabelled - posterior.count_at_most(0.5, labelled=False)
        hidden = above / n_unlabelled
    return known + (1.0 - known) * hidden


def store_prior(estimator: Any, prior: ClassPrior) -> None:
    """Keep how many seem positive, and how many of those are labelled."""
    estimator.estimated_class_prior_ = prior.value
    estimator.estimated_class_prior_interval_ = prior.interval
    estimator.estimated_labelling_rate_ = prior.labelling_rate
    estimator.estimated_labelling_rate_interval_ = prior.labelling_rate_interval


def count_hidden(
    model: Any, n_samples: int | None = None
) -> tuple[float, tuple[float, float]]:
    """Return the number of positives among the unlabelled samples, and its interval.

    The one count of a fit, wherever it is shown: what the class prior leaves beside the
    labelled samples. It is that of the reading where the fit has one.
    """
    n = model.observed_gap_.size if n_samples is None else n_samples
    shares = (model.estimated_class_prior_, *model.estimated_class_prior_interval_)
    counts = np.array(shares, dtype=np.float64) * n - model.n_labelled_
    count, low, high = np.clip(counts, 0.0, n - model.n_labelled_).tolist()
    return count, (low, high)


def label_frequencies(
    gap: LabellingModel | ObservedGapEstimator, observed_gap: RowValues
) -> tuple[float, float]:
    """Give the chance of labelled positives to be labelled, on average and at best."""
    if isinstance(gap, LabellingModel):
        return gap.mean_labelled_chance_, gap.high_labelled_chance_
    chance = observed_gap.map(chance_of_gap)
    high = chance.quantile(HIGH_QUANTILE, labelled=True)
    readings = chance.mean(labelled=True), high
    least, most = (max(reading, _EDGE) for reading in readings)
    return least, most


def spread_of_share(
    gap: LabellingModel | ObservedGapEstimator,
    observed_gap: RowValues,
    boundary: Boundary,
    seed: int,
) -> float:
    """Give the standard deviation of the log of the share of positives over resamples.

    A labelling model knows its own. With another boundary than its own, or gaps from
    elsewhere, samples are drawn again and the boundary moves as far as its spread says;
    gaps from elsewhere are taken as they are.
    """
    own = gap.class_prior_spread_ if isinstance(gap, LabellingModel) else 0.0
    if isinstance(gap, LabellingModel) and boundary.rule == "auto":
        return own
    return float(np.hypot(own, _spread_by_gap(observed_gap, boundary, seed)))


def _spread_by_gap(observed_gap: RowValues, boundary: Boundary, seed: int) -> float:
    rng = np.random.default_rng(seed)
    kinds = (True, False)
    groups = [observed_gap.spread(_MOST_OF_EACH, labelled=kind) for kind in kinds]
    known = np.arange(sum(group.size for group in groups)) < groups[0].size
    counts = [observed_gap.count(labelled=kind) for kind in kinds]
    shares = [count / sum(counts) for count in counts]
    logs = np.empty(_N_RESAMPLES)
    for i in range(_N_RESAMPLES):
        drawn = np.concatenate([rng.choice(group, group.size) for group in groups])
        moved = boundary.value + boundary.spread * rng.normal()
        moved = float(np.clip(moved, _EDGE - 1.0, -_EDGE))
        hidden = posterior_from_gap(drawn, known, moved)[~known]
        counted = shares[0] + shares[1] * hidden.mean()
        called = shares[0] + shares[1] * np.mean(hidden > 0.5)
        logs[i] = 0.5 * np.log(counted * called)
    return float(logs.std())
