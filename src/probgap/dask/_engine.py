"""What is asked of dask: lazy calls, sums over blocks in a fixed order, and keeping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from probgap._core.optional import load_library
from probgap._core.threads import one_thread

dask = load_library("dask", extra="dask", purpose="a fit on blocks")

Lazy = Any  # dask's Delayed, which has no types

# Blocks that are added up by one task.
_AT_ONCE = 8
# Of the workers' memory, what kept rows may take; and the memory of one process without
# workers.
_KEPT_SHARE = 0.25
_MEMORY_OF_A_PROCESS = 4 * 2**30


def lazily(function: Callable[..., Any], *arguments: Any) -> Lazy:
    """Give a call that a worker makes later; it must be pure, as it may be repeated."""
    return dask.delayed(_on_one_thread, pure=False)(function, *arguments)


def constant(value: Any) -> Lazy:
    """Give a value that many calls share, so that it travels once."""
    return dask.delayed(value, traverse=False, pure=False)


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


def add_up(parts: Sequence[Lazy]) -> tuple[Any, ...]:
    """Add up tuples of numbers or arrays.

    The order is fixed by the number of parts, not by which comes first: so are the bits.
    """
    level = list(parts)
    while len(level) > 1:
        level = [
            lazily(_add, level[at : at + _AT_ONCE])
            for at in range(0, len(level), _AT_ONCE)
        ]
    total: tuple[Any, ...] = gather(level)[0]
    return total


def _add(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    total = list(parts[0])
    for part in parts[1:]:
        total = [one + other for one, other in zip(total, part, strict=True)]
    return tuple(total)


def memory_for_keeping() -> float:
    """Say how many bytes of rows may be kept between passes."""
    client = find_client()
    if client is None:
        return _KEPT_SHARE * _MEMORY_OF_A_PROCESS
    try:
        known = client.scheduler_info(n_workers=-1)
    except TypeError:  # older versions tell of all workers unasked
        known = client.scheduler_info()
    limits = [worker["memory_limit"] for worker in known["workers"].values()]
    # A limit of 0 is none.
    return _KEPT_SHARE * sum(limit or _MEMORY_OF_A_PROCESS for limit in limits)


def find_client() -> Any:
    """Give the client of the cluster that computes, or None without one."""
    try:
        from distributed import get_client  # noqa: PLC0415 (slow to load)

        return get_client()
    except (ImportError, ValueError):
        return None
