"""The observed gap: how much likelier than not a sample is to be labelled."""

from probgap.gap._mixed import MixedGapEstimator
from probgap.gap._observed import ObservedGapEstimator

__all__ = ["MixedGapEstimator", "ObservedGapEstimator"]
