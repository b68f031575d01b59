"""One thread for the numerics, so that the bits do not depend on how many there are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

# A limit of BLAS is one for the whole process: who comes first sets it, who leaves last
# lifts it, or threads that overlap would take each other's limit for what was before.
_lock = Lock()
_inside = 0
_limits: list[tuple[int, Any]] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread for a while.

    Looking for the libraries to tell takes milliseconds, so it is done again only when
    something was imported since, which may have brought another.
    """
    n_modules = len(sys.modules)
    blas, openmp = _controllers(n_modules)
    _enter(n_modules, blas)
    try:
        # A limit of OpenMP is one for the thread that sets it.
        with openmp.limit(limits=1):
            yield
    finally:
        _leave()


def _enter(n_modules: int, blas: ThreadpoolController) -> None:
    global _inside  # noqa: PLW0603 (as the limit itself, one for the process)
    with _lock:
        _inside += 1
        if not _limits or _limits[-1][0] != n_modules:
            _limits.append((n_modules, blas.limit(limits=1)))


def _leave() -> None:
    global _inside  # noqa: PLW0603
    with _lock:
        _inside -= 1
        if _inside == 0:
            _let_any_thread_set_limits()
            while _limits:
                _limits.pop()[1].restore_original_limits()
            _let_any_thread_set_limits()


def _let_any_thread_set_limits() -> None:
    """Newer versions of threadpoolctl heed only the thread that set a limit first."""
    forget = getattr(OpenBLASController, "clear_controlling_thread", None)
    if forget is not None:
        forget(force=True)


@lru_cache(maxsize=1)
def _controllers(n_modules: int) -> tuple[ThreadpoolController, ThreadpoolController]:
    del n_modules
    found = ThreadpoolController()
    return found.select(user_api="blas"), found.select(user_api="openmp")
