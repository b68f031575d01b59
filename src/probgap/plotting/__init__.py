"""Pictures of a fit, in scikit-learn's Display convention: each also returns its table."""

from probgap.plotting._boundary import BoundaryDisplay
from probgap.plotting._gap import GapDisplay
from probgap.plotting._relabelling import RelabellingDisplay

__all__ = ["BoundaryDisplay", "GapDisplay", "RelabellingDisplay"]
