"""Tables of experiments: TOML specification, plan, rows.

A table says which data sets, labellings, methods and how many splits. ``plan`` lists its
jobs, ``run`` gives a row for each; :mod:`probgap.results` keeps rows and
:mod:`probgap.report` makes pages of them.
"""

from probgap.experiments._plan import Job, pending, plan, rows_of
from probgap.experiments._problem import check_data
from probgap.experiments._run import run
from probgap.experiments._spec import (
    Block,
    Labelling,
    TableSpec,
    load_spec,
    paper_specs,
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
