"""Everything between a file and a matrix: read, plan, prepare and write tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from probgap.tables._labels import LabelColumn, read_labels
from probgap.tables._plan import ColumnPlan, ColumnUse, plan_columns
from probgap.tables._read import Table, TableReader, open_table, read_table
from probgap.tables._write import write_csv

if TYPE_CHECKING:
    from probgap.tables._steps import make_preprocessor

__all__ = [
    "ColumnPlan",
    "ColumnUse",
    "LabelColumn",
    "Table",
    "TableReader",
    "make_preprocessor",
    "open_table",
    "plan_columns",
    "read_labels",
    "read_table",
    "write_csv",
]


def __getattr__(name: str) -> Any:
    # Reading a table and refusing it needs no scikit-learn; preparing it does.
    prepares = name == "make_preprocessor" or name.startswith("to_")
    module = "probgap.tables." + ("_steps" if prepares else "engine")
    return getattr(import_module(module), name)
