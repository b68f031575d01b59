"""Estimate the boundary, the posterior and the number of hidden positives from scores."""

from probgap.reading._estimate import HiddenEstimate, ProbabilityRange, read

__all__ = ["HiddenEstimate", "ProbabilityRange", "read"]
