"""The classifiers: the paper's Algorithm 1, with the boundary estimated or searched for."""

from probgap.pgpu._classifier import PGPUClassifier
from probgap.pgpu._cv import PGPUClassifierCV

__all__ = ["PGPUClassifier", "PGPUClassifierCV"]
