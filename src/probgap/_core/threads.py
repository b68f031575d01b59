"""One thread for the numerics, so that the bits do not depend on how many there are."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """Keep BLAS and OpenMP to one thread for a while.

    Looking for the libraries to tell takes milliseconds, so it is done again only when
    something was imported since, which may have brought another.
    """
    limits: AbstractContextManager[object] = _controller(len(sys.modules)).limit(
        limits=1
    )
    return limits


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    del n_modules
    return ThreadpoolController()
