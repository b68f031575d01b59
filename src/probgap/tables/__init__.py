"""Everything between a file and a matrix: read, plan, prepare and write tables."""

from probgap.tables._labels import LabelColumn, read_labels
from probgap.tables._plan import ColumnPlan, ColumnUse, plan_columns
from probgap.tables._prepare import (
    make_preprocessor,
    missing_columns,
    needed_columns,
)
from probgap.tables._read import Table, TableReader, open_table, read_table
from probgap.tables._steps import (
    bend,
    hold,
    to_categories,
    to_documents,
    to_numbers,
)
from probgap.tables._write import write_csv

__all__ = [
    "ColumnPlan",
    "ColumnUse",
    "LabelColumn",
    "Table",
    "TableReader",
    "bend",
    "hold",
    "make_preprocessor",
    "missing_columns",
    "needed_columns",
    "open_table",
    "plan_columns",
    "read_labels",
    "read_table",
    "to_categories",
    "to_documents",
    "to_numbers",
    "write_csv",
]
