"""Deprecated since 0.2 and removed in 0.3: use :mod:`probgap.reproduction` or :mod:`probgap.page`."""

import warnings

from probgap.page import check_libraries, render_page
from probgap.reproduction import ReportFiles, build_report, summarise

__all__ = ["ReportFiles", "build_report", "check_libraries", "render_page", "summarise"]

warnings.warn(
    "probgap.report is deprecated and will be removed in version 0.3. "
    "Use probgap.reproduction or probgap.page.",
    DeprecationWarning,
    stacklevel=2,
)
