"""Libraries that only the report needs, imported when it is built."""

from __future__ import annotations

from types import ModuleType

from probgap._core.errors import load_library


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
    return load_library(name, extra="report", purpose="a report")
