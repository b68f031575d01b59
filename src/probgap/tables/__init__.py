"""Everything between a file and a matrix: read, plan, prepare and write tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from probgap.tables._kinds import TOO_RARE as TOO_RARE
from probgap.tables._kinds import plain_values as plain_values
from probgap.tables._labels import LabelColumn, read_labels
from probgap.tables._labels import count_levels as count_levels
from probgap.tables._labels import read_label_counts as read_label_counts
from probgap.tables._labels import require_labels as require_labels
from probgap.tables._plan import ColumnPlan, ColumnUse, plan_columns
from probgap.tables._read import Table, read_table
from probgap.tables._read import TableReader as TableReader
from probgap.tables._read import find_tables as find_tables
from probgap.tables._read import ids_of as ids_of
from probgap.tables._read import path_of as path_of
from probgap.tables._write import append_parquet as append_parquet
from probgap.tables._write import write_csv as write_csv

if TYPE_CHECKING:
    from probgap.tables._classifier import TableClassifier
    from probgap.tables._drift import DriftWatch as DriftWatch
    from probgap.tables._drift import describe_ranges as describe_ranges
    from probgap.tables._steps import make_preprocessor
    from probgap.tables._steps import read_inputs as read_inputs

# Names that are not listed are there for other modules.
__all__ = [
    "ColumnPlan",
    "ColumnUse",
    "LabelColumn",
    "Table",
    "TableClassifier",
    "make_preprocessor",
    "plan_columns",
    "read_labels",
    "read_table",
]


def __getattr__(name: str) -> Any:
    # Reading a table and refusing it needs no scikit-learn; preparing it does.
    files = {"DriftWatch": "_drift", "describe_ranges": "_drift"}  # else the steps
    file = files.get(name, "_classifier" if name == "TableClassifier" else "_steps")
    return getattr(import_module(f"probgap.tables.{file}"), name)
