"""Shared by all files here: pandas and pyarrow, imported when used, and errors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, NoReturn, TypeAlias

import numpy as np

from probgap._core.errors import InvalidInputError, load_library


class _Lazy:
    """A module that is imported when something of it is used."""

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


def refuse(message: str) -> NoReturn:
    """Raise an error about the input."""
    raise InvalidInputError(message)


def refuse_cell(column: Series, at: int, expected: str, advice: str = "") -> NoReturn:
    """Raise an error that names a cell by its column and its row in the table."""
    label = column.index[at]
    row = int(label) if isinstance(label, int | np.integer) else at
    refuse(
        f"Column {str(column.name)!r} has {str(column.iloc[at])[:60]!r} in row {row + 1}, "
        f"which is not {expected}; correct the cell, or empty it if the value is unknown{advice}."
    )


def shorten(text: str, length: int) -> str:
    """Return text in one line, cut to a length."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 3] + "..."


def listed(values: Collection[str], more: str = "more") -> str:
    """Return values in quotes, the first six if there are more."""
    first = islice(values, 6)
    shown = [repr(shorten(value, 40)) if value else "empty cells" for value in first]
    n_more = len(values) - len(shown)
    return ", ".join(shown) + (f" and {n_more} {more}" if n_more else "")


def check_columns(wanted: Iterable[str], have: Sequence[str], table: str) -> None:
    """Raise if a table lacks a wanted column, and suggest columns of similar names."""
    known = set(have)
    lacking = [column for column in wanted if column not in known]
    if lacking:
        close = get_close_matches(lacking[0], have, n=3, cutoff=0.6)
        which = "column" if len(lacking) == 1 else "columns"
        hint = f"did you mean {listed(close)}?" if close else f"it has {listed(have)}."
        refuse(f"{table} has no {which} {listed(lacking)}; {hint}")
