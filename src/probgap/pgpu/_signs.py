"""Signs in a fit that the method cannot work on these data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import UnreliableFitWarning
from probgap._core.losses import in_standard_errors, log_likelihoods
from probgap.boundary import Boundary
from probgap.gap import LabellingModel, ObservedGapEstimator
from probgap.pgpu._prior import ClassPrior

Mask = NDArray[np.bool_]
GapEstimator = LabellingModel | ObservedGapEstimator

# docs/research/default.md has what these find, and how often they cry wolf.
_MOST_UNDECIDED = 0.8
_LARGEST_SPREAD = 0.2
_FEWEST_ERRORS = 2.0
# Labels that even the clearest seldom have, while the boundary had to be moved up by this
# much: few labels that fell on a faint class regardless of the gap look like that.
_SELDOM_LABELLED = 0.15
_MOST_DOUBT = 0.6


def warn_of_signs(
    gap: GapEstimator, labelled: Mask, boundary: Boundary, prior: ClassPrior
) -> None:
    """Warn of each sign that the method cannot work, from within ``fit``."""
    for sign in _signs(gap, labelled, boundary, prior):
        # The caller of fit, which scikit-learn wraps.
        warnings.warn(sign, stacklevel=4)


def _signs(
    gap: GapEstimator, labelled: Mask, boundary: Boundary, prior: ClassPrior
) -> Iterator[UnreliableFitWarning]:
    errors = _evidence(gap, labelled)
    if errors < _FEWEST_ERRORS:
        yield UnreliableFitWarning(
            "Labelled samples look like all the others: held-out labels are predicted "
            f"{errors:.1f} standard errors better than by their frequency, where "
            f"{_FEWEST_ERRORS:.0f} is the least to ask for; check the labels, and add "
            "features that could tell a positive from the rest.",
            sign="indistinct",
        )
    elif _looks_independent(gap):
        yield UnreliableFitWarning(
            "Labels look independent of the gap: even the clearest samples have one "
            f"with a chance of {gap.ceiling_:.0%} only, and labelled ones stand out "
            "little; if labels fell at random there are fewer positives than the "
            f"{prior.value:.0%} estimated, so have some of those called positive checked.",
            sign="independent",
        )
    if prior.spread > _LARGEST_SPREAD:
        yield UnreliableFitWarning(
            "The boundary is unstable: over resamples the share of positives moves by "
            f"{prior.spread:.0%} of itself; label more positives, and until then go by "
            "the order of the samples, not by the class or the count.",
            sign="unstable",
        )
    undecided = boundary.n_undecided / labelled.size
    if undecided > _MOST_UNDECIDED:
        yield UnreliableFitWarning(
            "Almost everything is undecided by the gap alone, "
            f"{undecided:.0%} of the samples; label more positives, or give a boundary "
            "nearer to 0.",
            sign="undecided",
        )


def _evidence(gap: GapEstimator, labelled: Mask) -> float:
    """Say by how many standard errors chances predict labels better than a frequency."""
    if isinstance(gap, LabellingModel):
        return gap.evidence_
    chance = 0.5 * (1.0 + gap.observed_gap_)
    often = np.full(labelled.size, labelled.mean())
    return in_standard_errors(
        log_likelihoods(chance, labelled) - log_likelihoods(often, labelled)
    )


def _looks_independent(gap: GapEstimator) -> bool:
    return (
        isinstance(gap, LabellingModel)
        and gap.ceiling_ < _SELDOM_LABELLED
        and gap.doubt_ > _MOST_DOUBT
    )
