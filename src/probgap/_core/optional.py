"""Libraries that only some parts need, imported when they do."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from probgap._core.errors import MissingLibraryError


def load_library(name: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a module of a library, or say which extra brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibraryError(
            library=name.partition(".")[0], extra=extra, purpose=purpose
        ) from error
