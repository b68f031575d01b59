"""Labels asked for: which rows would teach most, and a model corrected by the answers."""

from probgap.active._correct import CorrectedClassifier, correct
from probgap.active._suggest import suggest

__all__ = ["CorrectedClassifier", "correct", "suggest"]
