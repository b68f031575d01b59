"""What a model's answers rest on: columns, values of a row, rows that are like it."""

from probgap.inspection._importance import ColumnImportance, column_importance
from probgap.inspection._rows import (
    NearestLabelled,
    RowContributions,
    nearest_labelled,
    row_contributions,
)

__all__ = [
    "ColumnImportance",
    "NearestLabelled",
    "RowContributions",
    "column_importance",
    "nearest_labelled",
    "row_contributions",
]
