"""Deprecated since 0.2 and removed in 0.3: use :mod:`probgap.methods`."""

from __future__ import annotations

import warnings

from probgap.methods import (
    ElkanNotoClassifier,
    LiuTaoClassifier,
    NaiveClassifier,
    NatarajanClassifier,
    PUBaggingClassifier,
)

__all__ = [
    "ElkanNotoClassifier",
    "LiuTaoClassifier",
    "NaiveClassifier",
    "NatarajanClassifier",
    "PUBaggingClassifier",
]

warnings.warn(
    "probgap.baselines is deprecated and will be removed in version 0.3. Use probgap.methods.",
    DeprecationWarning,
    stacklevel=2,
)
