"""Libraries that only tables need, imported when one is read."""

from __future__ import annotations

from typing import Any, TypeAlias

from probgap._core.errors import load_library

# pandas and pyarrow ship no types that mypy may rely on.
Frame: TypeAlias = Any
Series: TypeAlias = Any
Cells: TypeAlias = Any


def load(name: str) -> Any:
    """Import a module of pandas or pyarrow, or say how to get it."""
    return load_library(name, extra="tool", purpose="tables")
