"""Deprecated since 0.2 and removed in 0.3: use :mod:`probgap.audit`."""

from __future__ import annotations

import warnings

from probgap.audit import CorrectedClassifier, correct, suggest

__all__ = ["CorrectedClassifier", "correct", "suggest"]

warnings.warn(
    "probgap.active is deprecated and will be removed in version 0.3. Use probgap.audit.",
    DeprecationWarning,
    stacklevel=2,
)
