"""Estimate the boundary, the posterior and the number of hidden positives from scores."""

from probgap.reading._hidden_positives import HiddenEstimate, ProbabilityRange, read

__all__ = ["HiddenEstimate", "ProbabilityRange", "read"]
