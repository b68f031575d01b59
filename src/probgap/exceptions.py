"""The errors and warnings of probgap, for code that wants to catch or silence them."""

from probgap._core.errors import (
    BoundaryWarning,
    InvalidInputError,
    MissingLibraryError,
    ModelFileError,
    ModelVersionWarning,
    ProbgapError,
    ProbgapWarning,
    UnreliableFitWarning,
)

__all__ = [
    "BoundaryWarning",
    "InvalidInputError",
    "MissingLibraryError",
    "ModelFileError",
    "ModelVersionWarning",
    "ProbgapError",
    "ProbgapWarning",
    "UnreliableFitWarning",
]
