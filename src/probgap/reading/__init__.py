"""Read the boundary, the posterior and the number of hidden positives off scores."""

from probgap.reading._reading import ProbabilityRange, Reading, read

__all__ = ["ProbabilityRange", "Reading", "read"]
