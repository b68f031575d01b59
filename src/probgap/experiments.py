"""Deprecated since 0.2 and removed in 0.3: use :mod:`probgap.reproduction`."""

import warnings

from probgap.reproduction import (
    Block,
    Job,
    Labelling,
    TableSpec,
    check_data,
    load_spec,
    paper_specs,
    pending,
    plan,
    rows_of,
    run,
)

__all__ = [
    "Block",
    "Job",
    "Labelling",
    "TableSpec",
    "check_data",
    "load_spec",
    "paper_specs",
    "pending",
    "plan",
    "rows_of",
    "run",
]

warnings.warn(
    "probgap.experiments is deprecated and will be removed in version 0.3. "
    "Use probgap.reproduction.",
    DeprecationWarning,
    stacklevel=2,
)
