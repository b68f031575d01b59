"""Classifiers from positive and unlabelled data, when labels are biased.

Some positives are labelled, the easy ones first; nothing is labelled negative.
"""

from probgap.pgpu import PGPUClassifier, PGPUClassifierCV

__all__ = ["PGPUClassifier", "PGPUClassifierCV", "__version__"]

__version__ = "0.1.0"
