"""Everything between a file and a matrix: read, plan, prepare and write tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from probgap.tables._kinds import ColumnUse
from probgap.tables._labels import (
    LabelColumn,
    count_levels,
    read_label_counts,
    read_labels,
)
from probgap.tables._parquet import RowGroups, list_row_groups, read_row_groups
from probgap.tables._plan import ColumnPlan, plan_columns
from probgap.tables._read import Table, TableReader, find_tables, open_table, read_table
from probgap.tables._write import append_parquet, write_csv

if TYPE_CHECKING:
    from probgap.tables._steps import (
        make_preprocessor,
        missing_columns,
        needed_columns,
        to_categories,
        to_dates,
        to_documents,
        to_numbers,
    )

__all__ = [
    "ColumnPlan",
    "ColumnUse",
    "LabelColumn",
    "RowGroups",
    "Table",
    "TableReader",
    "append_parquet",
    "count_levels",
    "find_tables",
    "list_row_groups",
    "make_preprocessor",
    "missing_columns",
    "needed_columns",
    "open_table",
    "plan_columns",
    "read_label_counts",
    "read_labels",
    "read_row_groups",
    "read_table",
    "to_categories",
    "to_dates",
    "to_documents",
    "to_numbers",
    "write_csv",
]


def __getattr__(name: str) -> Any:
    # Reading a table and refusing it needs no scikit-learn; preparing it does.
    if name in __all__:
        return getattr(import_module("probgap.tables._steps"), name)
    msg = f"module 'probgap.tables' has no attribute {name!r}"
    raise AttributeError(msg)
