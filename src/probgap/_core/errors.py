"""The exceptions and warnings that probgap raises on its own account."""

from __future__ import annotations


class ProbgapError(Exception):
    """Base of all errors that probgap raises."""


class InvalidInputError(ProbgapError, ValueError):
    """An argument breaks a rule: the message names it, the rule and the value."""


class ProbgapWarning(UserWarning):
    """Base of all warnings that probgap issues."""


class BoundaryWarning(ProbgapWarning):
    """The boundary rule gave an answer that cannot be used as it stands."""
