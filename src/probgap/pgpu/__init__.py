"""The classifiers: the paper's Algorithm 1, with the boundary estimated or searched for."""

from probgap.pgpu._cv import PGPUClassifierCV
from probgap.pgpu.classifier import PGPUClassifier

__all__ = ["PGPUClassifier", "PGPUClassifierCV"]
