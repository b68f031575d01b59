"""The paper's experiments: specification, plan, rows, and a report.

A table lists data sets, labellings, methods and the number of splits, in TOML. ``plan``
lists its jobs, ``run`` yields a row for each, ``RowFile`` stores them, and
``build_report`` compares them with the numbers that the paper prints.
"""

from probgap.reproduction._plan import (
    Block,
    Job,
    TableSpec,
    load_spec,
    paper_specs,
    pending,
    plan,
    rows_of,
)
from probgap.reproduction._report import ReportFiles, build_report
from probgap.reproduction._rows import RowFile, latest_rows, read_rows, write_rows
from probgap.reproduction._run import Labelling, check_data, run
from probgap.reproduction._summary import summarise

__all__ = [
    "Block",
    "Job",
    "Labelling",
    "ReportFiles",
    "RowFile",
    "TableSpec",
    "build_report",
    "check_data",
    "latest_rows",
    "load_spec",
    "paper_specs",
    "pending",
    "plan",
    "read_rows",
    "rows_of",
    "run",
    "summarise",
    "write_rows",
]
