"""Other methods for positive and unlabelled data, each with its assumption.

All have the fitted attributes of scikit-learn's classifiers (``classes_``,
``n_features_in_``, ``feature_names_in_``), and ``positive_index_``, by which
``classes_[positive_index_]`` is the positive label.
"""

from probgap.methods._closed import ElkanNotoClassifier, PGlinClassifier, PUSBClassifier
from probgap.methods._negatives import (
    NaiveClassifier,
    PUBaggingClassifier,
    SpyClassifier,
)
from probgap.methods._noise import LiuTaoClassifier, NatarajanClassifier
from probgap.methods._propensity import PropensityWeightedClassifier, SAREMClassifier
from probgap.methods._risk import NNPUClassifier

__all__ = [
    "ElkanNotoClassifier",
    "LiuTaoClassifier",
    "NNPUClassifier",
    "NaiveClassifier",
    "NatarajanClassifier",
    "PGlinClassifier",
    "PUBaggingClassifier",
    "PUSBClassifier",
    "PropensityWeightedClassifier",
    "SAREMClassifier",
    "SpyClassifier",
]
