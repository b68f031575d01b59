"""Everything between a file and a matrix: read, plan, prepare and write tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from probgap.tables._files import find_tables
from probgap.tables._labels import (
    LabelColumn,
    count_levels,
    is_level,
    read_label_counts,
    read_labels,
)
from probgap.tables._parquet import RowGroups, list_row_groups, read_row_groups
from probgap.tables._plan import ColumnPlan, ColumnUse, plan_columns
from probgap.tables._read import Table, TableReader, open_table, read_table
from probgap.tables._steps import (
    bend,
    hold,
    to_categories,
    to_documents,
    to_numbers,
)
from probgap.tables._write import append_parquet, write_csv

if TYPE_CHECKING:
    from probgap.tables._prepare import (
        make_preprocessor,
        missing_columns,
        needed_columns,
    )

__all__ = [
    "ColumnPlan",
    "ColumnUse",
    "LabelColumn",
    "RowGroups",
    "Table",
    "TableReader",
    "append_parquet",
    "bend",
    "count_levels",
    "find_tables",
    "hold",
    "is_level",
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
    "to_documents",
    "to_numbers",
    "write_csv",
]


def __getattr__(name: str) -> Any:
    # Reading a table and refusing it needs no scikit-learn; preparing it does.
    if name in ("make_preprocessor", "missing_columns", "needed_columns"):
        return getattr(import_module("probgap.tables._prepare"), name)
    msg = f"module 'probgap.tables' has no attribute {name!r}"
    raise AttributeError(msg)
