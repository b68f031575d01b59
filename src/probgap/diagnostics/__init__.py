"""Whether to believe a fit: checks of its assumptions, on rows held out."""

from probgap.diagnostics._compare import METHODS as METHODS
from probgap.diagnostics._compare import SLOW as SLOW
from probgap.diagnostics._compare import compare_methods
from probgap.diagnostics._held_out import held_out_calibration
from probgap.diagnostics._scar import scar_test
from probgap.diagnostics._who_looked import LabellingColumn, labelling_columns

# Names that are not listed are there for other modules.
__all__ = [
    "LabellingColumn",
    "compare_methods",
    "held_out_calibration",
    "labelling_columns",
    "scar_test",
]
