"""What is asked of dask: lazy calls on one thread, their results, and keeping them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from probgap._core.errors import load_library
from probgap._core.runtime import one_thread

dask = load_library("dask", extra="dask", purpose="a fit on blocks")

Lazy = Any  # dask's Delayed, which has no types


def lazily(function: Callable[..., Any], *arguments: Any) -> Lazy:
    """Return a call that a worker makes later; it must be pure, as it may be repeated."""
    return dask.delayed(_on_one_thread, pure=False)(function, *arguments)


def _on_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    # The bits do not depend on how many threads a worker has.
    with one_thread():
        return function(*arguments)


def gather(parts: Sequence[Lazy]) -> list[Any]:
    """Compute parts and bring them here."""
    return list(dask.compute(*parts))


def keep(parts: Sequence[Lazy]) -> list[Lazy]:
    """Compute parts and leave them where they are; lost ones are computed again."""
    return list(dask.persist(*parts))
