"""Errors and warnings, and the loading of optional libraries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra, from an index or from a clone."""
    return f"pip install 'probgap[{extra}]', or pip install '.[{extra}]' in a clone"


class ProbgapError(Exception):
    """Base of all errors that probgap raises."""


class InvalidInputError(ProbgapError, ValueError):
    """An argument breaks a rule: the message names it, the rule and the value."""


class ModelFileError(InvalidInputError):
    """A model cannot be written to a file, or cannot be read from one."""


class MissingLibraryError(ProbgapError, ImportError):
    """A library that only some parts need is not installed."""

    def __init__(self, *, library: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{library} must be installed for {purpose}; run {how_to_install(extra)}."
        )
        self._fields = {"library": library, "extra": extra, "purpose": purpose}

    def __reduce__(self) -> tuple[Callable[[], MissingLibraryError], tuple[()]]:
        # Worker processes send errors pickled; by default pickle passes args, not these.
        return partial(type(self), **self._fields), ()


class ProbgapWarning(UserWarning):
    """Base of all warnings that probgap issues."""


class BoundaryWarning(ProbgapWarning):
    """The answer of the boundary rule could not be used and was moved."""


class UnreliableFitWarning(ProbgapWarning):
    """The method may not work on these data.

    ``sign`` names the symptom: "undecided", "unstable", "indistinct", "independent",
    "few" or "unfamiliar".
    """

    def __init__(self, message: str, sign: str = "") -> None:
        super().__init__(message)
        self.sign = sign


class ModelVersionWarning(ProbgapWarning):
    """A model was saved with another version of scikit-learn than the installed one."""


def load_library(name: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a module of an optional library, or name the extra that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibraryError(
            library=name.partition(".")[0], extra=extra, purpose=purpose
        ) from error
