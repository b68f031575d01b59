"""Deprecated since 0.2 and removed in 0.3: use :mod:`probgap.reproduction`."""

import warnings

from probgap import reproduction
from probgap.reproduction import *

__all__ = reproduction.__all__

warnings.warn(
    "probgap.experiments is deprecated and will be removed in version 0.3. "
    "Use probgap.reproduction.",
    DeprecationWarning,
    stacklevel=2,
)
