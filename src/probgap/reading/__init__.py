"""Read the boundary, the posterior and the number of hidden positives off scores."""

from probgap.reading._reading import Reading, read

__all__ = ["Reading", "read"]
