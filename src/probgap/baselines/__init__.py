"""The methods that the paper compares with, each with its assumption."""

from probgap.baselines._elkan_noto import ElkanNotoClassifier
from probgap.baselines._liu_tao import LiuTaoClassifier
from probgap.baselines._naive import NaiveClassifier
from probgap.baselines._natarajan import NatarajanClassifier

__all__ = [
    "ElkanNotoClassifier",
    "LiuTaoClassifier",
    "NaiveClassifier",
    "NatarajanClassifier",
]
