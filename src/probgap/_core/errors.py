"""Errors and warnings, and what to install where a library is missing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType


class ProbgapError(Exception):
    """Base of all errors that probgap raises."""


class InvalidInputError(ProbgapError, ValueError):
    """An argument breaks a rule: the message names it, the rule and the value."""


class ModelFileError(InvalidInputError):
    """A model cannot be written to a file, or not be read from one: see why."""


class MissingLibraryError(ProbgapError, ImportError):
    """A library that only some parts need is not installed."""

    def __init__(self, *, library: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{library} must be installed for {purpose}. Got no such library; run "
            f"pip install 'probgap[{extra}]'."
        )
        self._made_of = {"library": library, "extra": extra, "purpose": purpose}

    def __reduce__(self) -> tuple[Callable[[], MissingLibraryError], tuple[()]]:
        # Errors of other processes come back pickled, and are made of args otherwise.
        return partial(type(self), **self._made_of), ()


class ProbgapWarning(UserWarning):
    """Base of all warnings that probgap issues."""


class BoundaryWarning(ProbgapWarning):
    """The boundary rule gave an answer that cannot be used as it stands."""


class UnreliableFitWarning(ProbgapWarning):
    """The data look as if the method cannot work on them.

    ``sign`` says by what: "undecided", "unstable", "indistinct", "independent", "few" or
    "unfamiliar".
    """

    def __init__(self, message: str, sign: str = "") -> None:
        super().__init__(message)
        self.sign = sign


class ModelVersionWarning(ProbgapWarning):
    """A model was saved with another version of scikit-learn than the one here."""


def load_library(name: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a module of a library, or say which extra brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibraryError(
            library=name.partition(".")[0], extra=extra, purpose=purpose
        ) from error
