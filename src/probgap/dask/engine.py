"""The interface to dask: delayed calls on one thread, computed here or on workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from probgap._core.errors import load_library
from probgap._core.runtime import one_thread

dask = load_library("dask", extra="dask", purpose="a fit on blocks")

Lazy = Any  # dask's Delayed, which has no types


def lazily(function: Callable[..., Any], *arguments: Any) -> Lazy:
    """Return a delayed call; the function must be pure, as dask may repeat it."""
    return dask.delayed(_on_one_thread, pure=False)(function, *arguments)


def _on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    # So that results do not depend on how many threads a worker has.
    with one_thread():
        return function(*arguments)


def gather(parts: Iterable[Lazy]) -> list[Any]:
    """Compute parts and return their values."""
    return list(dask.compute(*parts))
