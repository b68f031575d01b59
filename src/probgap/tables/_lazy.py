"""pandas and pyarrow, which only tables need, imported when something of them is used."""

from __future__ import annotations

from typing import Any, TypeAlias

from probgap._core.errors import load_library


class _Lazy:
    """A module that is imported at the first use, or the advice how to install it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        module = load_library(self._name, extra="tool", purpose="tables")
        return getattr(module, attribute)


# They ship no types that mypy may rely on.
pa: Any = _Lazy("pyarrow")
pc: Any = _Lazy("pyarrow.compute")
pd: Any = _Lazy("pandas")
pq: Any = _Lazy("pyarrow.parquet")
arrow_csv: Any = _Lazy("pyarrow.csv")
Frame: TypeAlias = Any
Series: TypeAlias = Any
Cells: TypeAlias = Any
