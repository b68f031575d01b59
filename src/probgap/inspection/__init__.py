"""What a model's answers rest on: columns, values of a row, rows that are like it."""

from probgap.inspection._contributions import RowContributions, row_contributions
from probgap.inspection._importance import ColumnImportance, column_importance
from probgap.inspection._nearest import NearestLabelled, nearest_labelled

__all__ = [
    "ColumnImportance",
    "NearestLabelled",
    "RowContributions",
    "column_importance",
    "nearest_labelled",
    "row_contributions",
]
