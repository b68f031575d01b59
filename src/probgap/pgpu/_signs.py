"""Signs in a fit that the method cannot work on these data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from probgap._core.errors import UnreliableFitWarning
from probgap._core.values import RowValues
from probgap.boundary import Boundary
from probgap.gap import LabellingModel, ObservedGapEstimator
from probgap.gap._doubt import evidence
from probgap.pgpu._prior import ClassPrior, chance_of_gap
from probgap.reading import Reading

GapEstimator = LabellingModel | ObservedGapEstimator

# Signs of a fit by rules on gaps, or by a labelling model.
_MOST_UNDECIDED = 0.8
_LARGEST_SPREAD = 0.2
_FEWEST_ERRORS = 2.0
# Labels that even the clearest seldom have, while the boundary had to be moved up by this
# much: few labels that fell on a faint class regardless of the gap look like that.
_SELDOM_LABELLED = 0.15
_MOST_DOUBT = 0.6
# Signs of a reading: see benchmarks/default.py for how often they are right.
_FEWEST_LABELLED = 12
_STRANGEST = 0.998
_FARTHEST_WORLDS = 0.35


def warn_of_signs(
    gap: GapEstimator,
    observed_gap: RowValues,
    boundary: Boundary,
    prior: ClassPrior,
    *,
    wrapped: bool = True,
) -> None:
    """Warn of each sign that the method cannot work, from within ``fit``.

    The warning points at the caller of ``fit``, which scikit-learn may have wrapped.
    """
    for sign in _signs(gap, observed_gap, boundary, prior):
        warnings.warn(sign, stacklevel=4 if wrapped else 3)


def warn_of_reading(
    reading: Reading, observed_gap: RowValues, *, wrapped: bool = True
) -> None:
    """Warn of each sign that the reading cannot be relied on, from within ``fit``."""
    for sign in _signs_of_reading(reading, observed_gap):
        warnings.warn(sign, stacklevel=4 if wrapped else 3)


def _signs_of_reading(
    reading: Reading, observed_gap: RowValues
) -> Iterator[UnreliableFitWarning]:
    errors = evidence(observed_gap.map(chance_of_gap))
    if errors < _FEWEST_ERRORS:
        yield UnreliableFitWarning(
            "Labels look random: held-out labels are predicted "
            f"{errors:.1f} standard errors better than by their frequency, where "
            f"{_FEWEST_ERRORS:.0f} is the least to ask for. Check the label column, and "
            "add features that could tell a positive from the rest.",
            sign="indistinct",
        )
    if reading.n_labelled < _FEWEST_LABELLED:
        yield UnreliableFitWarning(
            f"Only {reading.n_labelled:.0f} positives are labelled: the count rests on "
            f"the simulated tasks more than on these data. Label at least "
            f"{_FEWEST_LABELLED}, or pass class_prior.",
            sign="few",
        )
    if reading.strangeness > _STRANGEST:
        yield UnreliableFitWarning(
            "The scores look like those of no simulated task (more unusual than "
            f"{reading.strangeness:.1%} of them): boundary and count are "
            "extrapolated. Have a sample of rows checked, or pass class_prior.",
            sign="unfamiliar",
        )
    low, high = reading.worlds()
    if high - low > _FARTHEST_WORLDS * reading.n_unlabelled:
        yield UnreliableFitWarning(
            f"Two worlds fit these data: about {low:,.0f} hidden positives, if most "
            f"are labelled and classes overlap, or about {high:,.0f}, if only the clear "
            "ones are labelled. Trust the ranking, not the count; pass class_prior or "
            "have a sample of rows checked to know.",
            sign="unstable",
        )


def _signs(
    gap: GapEstimator, observed_gap: RowValues, boundary: Boundary, prior: ClassPrior
) -> Iterator[UnreliableFitWarning]:
    errors = _evidence(gap, observed_gap)
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
    n_samples = observed_gap.count(labelled=True) + observed_gap.count(labelled=False)
    undecided = boundary.n_undecided / n_samples
    if undecided > _MOST_UNDECIDED:
        yield UnreliableFitWarning(
            "Almost everything is undecided by the gap alone, "
            f"{undecided:.0%} of the samples; label more positives, or give a boundary "
            "nearer to 0.",
            sign="undecided",
        )


def _evidence(gap: GapEstimator, observed_gap: RowValues) -> float:
    """Say by how many standard errors chances predict labels better than a frequency."""
    if isinstance(gap, LabellingModel):
        return gap.evidence_
    return evidence(observed_gap.map(chance_of_gap))


def _looks_independent(gap: GapEstimator) -> bool:
    return (
        isinstance(gap, LabellingModel)
        and gap.ceiling_ < _SELDOM_LABELLED
        and gap.doubt_ > _MOST_DOUBT
    )
