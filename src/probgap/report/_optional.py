"""Libraries that only the report needs, imported when it is built."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from probgap._core.errors import MissingLibraryError


def check_libraries() -> None:
    """Find out before a long run whether its report can be built.

    Raises
    ------
    MissingLibraryError
        If matplotlib or jinja2 is not installed.

    Examples
    --------
    >>> from probgap.report import check_libraries
    >>> check_libraries()  # doctest: +SKIP
    """
    for name in ("jinja2", "matplotlib"):
        load(name)


def load(name: str) -> ModuleType:
    """Import a module of matplotlib or jinja2, or say how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise MissingLibraryError(
            library=library, extra="report", purpose="a report"
        ) from error
