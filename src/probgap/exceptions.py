"""The errors and warnings of probgap, for code that wants to catch or silence them."""

from probgap._core.errors import (
    BoundaryWarning,
    InvalidInputError,
    MissingLibraryError,
    ProbgapError,
    ProbgapWarning,
)

__all__ = [
    "BoundaryWarning",
    "InvalidInputError",
    "MissingLibraryError",
    "ProbgapError",
    "ProbgapWarning",
]
