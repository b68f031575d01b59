"""Other methods for positive and unlabelled data, each with its assumption."""

from probgap.methods._closed import (
    ElkanNotoClassifier,
    PGlinClassifier,
    PUSBClassifier,
)
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
