"""Take values out of an account that may lack them, or hold something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from probgap._core.errors import InvalidInputError

Part = Mapping[str, Any]
_MOST = 1e15  # beyond it nothing that a page shows makes sense


def check_account(account: object) -> Part:
    """Refuse what cannot be the account of a fit."""
    if not isinstance(account, Mapping):
        msg = f"account must be a mapping. Got {type(account).__name__}."
        raise InvalidInputError(msg)
    for name in ("table", "found"):
        if not isinstance(account.get(name), Mapping):
            got = type(account.get(name)).__name__
            msg = f"account must hold a mapping under {name!r}. Got {got}."
            raise InvalidInputError(msg)
    return account


def part(holder: Part, name: str) -> Part:
    """Give a mapping inside another; an empty one where there is none."""
    value = holder.get(name)
    return value if isinstance(value, Mapping) else {}


def parts(holder: Part, name: str) -> list[Part]:
    """Give the mappings of a list."""
    return [item for item in listed(holder, name) if isinstance(item, Mapping)]


def listed(holder: Part, name: str) -> list[Any]:
    """Give a list; an empty one where there is none."""
    value = holder.get(name)
    plain = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return list(value) if plain and value is not None else []


def number(holder: Part, name: str) -> float | None:
    """Give a number of a size that makes sense, or None."""
    return _sensible(holder.get(name))


def whole(holder: Part, name: str) -> int | None:
    """Give a number rounded to a whole one, or None."""
    value = number(holder, name)
    return None if value is None else round(value)


def numbers(holder: Part, name: str) -> list[float]:
    """Give those numbers of a list whose size makes sense."""
    values = map(_sensible, listed(holder, name))
    return [value for value in values if value is not None]


def interval(holder: Part, name: str) -> tuple[float, float] | None:
    """Give both ends of an interval, or None."""
    ends = numbers(holder, name)
    return (min(ends), max(ends)) if len(ends) == 2 else None


def text(holder: Part, name: str) -> str | None:
    """Give text that is not empty, or None."""
    value = holder.get(name)
    return None if value is None or str(value) == "" else str(value)


def truth(holder: Part, name: str) -> bool | None:
    """Give a yes or a no, or None."""
    value = holder.get(name)
    return value if isinstance(value, bool) else None


def _sensible(value: Any) -> float | None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and abs(value) <= _MOST else None
