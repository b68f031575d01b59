"""A walk through everything that a model consists of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def name_of(kind: type) -> str:
    """Return the full name of a type, as files have it."""
    return f"{kind.__module__}.{kind.__name__}"


def walk(model: object) -> Iterator[object]:
    """Give everything that a model consists of, once each, the outer before the inner."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, str | bytes | int | float | type):
            continue
        seen.add(id(thing))
        yield thing
        waiting.extend(inner_of(thing))


def inner_of(thing: Any) -> list[object]:
    """List what a thing holds; nothing where it is compiled, or an array of numbers."""
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    if isinstance(thing, np.ndarray):
        return list(thing.ravel()) if thing.dtype == object else []
    if is_dataclass(thing) and not isinstance(thing, type):
        return [getattr(thing, f.name, None) for f in fields(thing)]
    return list(vars(thing).values()) if hasattr(thing, "__dict__") else []
