"""Errors and warnings, and the loading of optional libraries."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import NoReturn


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra, from an index or from a clone."""
    return f"pip install 'probgap[{extra}]', or pip install '.[{extra}]' in a clone"


class ProbgapError(Exception):
    """Base of all errors that probgap raises."""


class InvalidInputError(ProbgapError, ValueError):
    """An argument breaks a rule: the message names it, the rule and the value."""


def refuse(message: str) -> NoReturn:
    """Raise an error about an argument or the input."""
    raise InvalidInputError(message)


def require(right: bool, rule: str, value: object) -> None:
    """Refuse a value that breaks a rule."""
    if not right:
        refuse(f"{rule}. Got {value!r}.")


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

    ``code`` says why: "indistinct" if labels look random, "few" if too few positives are
    labelled for a count, "declared" if columns say who is positive rather than who was
    looked at. The design notes of the default have the evidence for each.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class ModelVersionWarning(ProbgapWarning):
    """A model was saved with another version of scikit-learn or of probgap."""


# A warning is no use to somebody who reads it at a line of these packages.
_PASSED_ON = frozenset(("probgap", "sklearn"))


def warn(message: str | Warning, category: type[Warning] = ProbgapWarning) -> None:
    """Issue a warning at the line of the user's code that led to it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals["__name__"].split(".")[0] in _PASSED_ON:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def load_library(name: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a module of an optional library, or name the extra that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibraryError(
            library=name.partition(".")[0], extra=extra, purpose=purpose
        ) from error
