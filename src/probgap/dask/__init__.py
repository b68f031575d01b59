"""Fits to tables larger than memory: a sample of their rows is fitted, all are predicted."""

from probgap.dask._classifier import DaskPGPUClassifier

__all__ = ["DaskPGPUClassifier"]
