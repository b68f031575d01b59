"""Deprecated since 0.2 and removed in 0.3: use :mod:`probgap.reproduction`."""

import warnings

from probgap.reproduction import RowFile, latest_rows, read_rows, write_rows

__all__ = ["RowFile", "latest_rows", "read_rows", "write_rows"]

warnings.warn(
    "probgap.results is deprecated and will be removed in version 0.3. "
    "Use probgap.reproduction.",
    DeprecationWarning,
    stacklevel=2,
)
