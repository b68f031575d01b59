"""Random numbers and rows, threads, memory and progress of a fit."""

import numbers
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import OpenBLASController, ThreadpoolController

from probgap._core.errors import refuse
from probgap._core.types import Mask, Rows, Vector

RandomStateLike = int | np.integer | np.random.RandomState | np.random.Generator | None

_SEED_RANGE = 2**31 - 1  # what scikit-learn accepts as an integer random_state


def as_generator(random_state: RandomStateLike) -> np.random.Generator:
    """Turn ``random_state`` into a Generator without touching global state."""
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(_SEED_RANGE))
    if not isinstance(random_state, numbers.Integral) or int(random_state) < 0:
        refuse(
            "random_state must be a non-negative integer, a numpy Generator, a numpy "
            f"RandomState or None. Got {random_state!r}."
        )
    return np.random.default_rng(int(random_state))


def draw_seed(rng: np.random.Generator) -> int:
    """Draw an integer that a scikit-learn estimator accepts as random_state."""
    return int(rng.integers(_SEED_RANGE))


def spread_rows(n_rows: int, most: int) -> Rows:
    """Return all rows, or ``most`` of them, evenly spaced."""
    return np.unique(np.linspace(0, n_rows - 1, most).astype(np.intp))


def draw_rows(weight: Vector, group: Mask, most: int, seed: int) -> tuple[Rows, Vector]:
    """Draw at most ``most`` rows; return them with weights that represent all rows.

    All rows of the group are kept if they take up no more than half. Group and rest keep
    their shares of the total weight, and the mean weight does not change.
    """
    if weight.size <= most:
        return np.arange(weight.size), weight
    rng = np.random.default_rng(seed)
    groups = [np.flatnonzero(group), np.flatnonzero(~group)]
    few = min(groups[0].size, most // 2)
    sizes = [max(few, most - groups[1].size), most - few]
    drawn, weights = [], []
    for members, size in zip(groups, sizes, strict=True):
        kept = rng.choice(members, min(size, members.size), replace=False)
        drawn.append(kept)
        factor = weight[members].sum() / max(weight[kept].sum(), np.finfo(float).tiny)
        weights.append(weight[kept] * (factor * most / weight.size))
    rows = np.concatenate(drawn)
    order = np.argsort(rows)
    return rows[order], np.concatenate(weights)[order]


# A BLAS limit holds for the whole process. The first thread to enter sets it and the last
# to leave restores it: overlapping threads would otherwise restore each other's limit.
_lock = Lock()
_inside: list[int] = []
_limits: dict[int, Any] = {}


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread inside the context."""
    # Searching for thread pools takes milliseconds, so it is repeated only if a module was
    # imported since, which may have loaded another.
    n_modules = len(sys.modules)
    blas, openmp = _controllers(n_modules)
    with _lock:
        _inside.append(n_modules)
        if n_modules not in _limits:
            _limits[n_modules] = blas.limit(limits=1)
    try:
        # An OpenMP limit holds for the current thread alone.
        with openmp.limit(limits=1):
            yield
    finally:
        with _lock:
            _inside.pop()
            if not _inside:
                _let_any_thread_set_limits()
                while _limits:
                    _limits.popitem()[1].restore_original_limits()
                _let_any_thread_set_limits()


def _let_any_thread_set_limits() -> None:
    """Reset newer versions of threadpoolctl, which bind limits to the first thread."""
    forget = getattr(OpenBLASController, "clear_controlling_thread", None)
    if forget is not None:
        forget(force=True)


@lru_cache(maxsize=1)
def _controllers(n_modules: int) -> tuple[ThreadpoolController, ThreadpoolController]:
    del n_modules
    found = ThreadpoolController()
    return found.select(user_api="blas"), found.select(user_api="openmp")


# Whether the last line on standard error still lacks its duration.
_waiting: ContextVar[bool] = ContextVar("waiting", default=False)


@contextmanager
def stage(verbose: int, name: str) -> Iterator[None]:
    """Report on standard error what begins, and how long it took."""
    if not verbose:
        yield
        return
    line = f"[probgap] {name} ..."
    sys.stderr.write(line)
    sys.stderr.flush()
    _waiting.set(True)
    started = time.perf_counter()
    try:
        yield
    finally:
        # If a remark has ended the line, repeat it.
        again = "" if _waiting.get() else line
        sys.stderr.write(f"{again} {time.perf_counter() - started:.1f} s\n")
        _waiting.set(False)


def remark(text: object) -> None:
    """Write a line to standard error, below that of the current stage."""
    end = "\n" if _waiting.get() else ""
    sys.stderr.write(f"{end}[probgap] {text}\n")
    sys.stderr.flush()
    _waiting.set(False)


def free_memory() -> float | None:
    """Return the free main memory in bytes, None if it is not known."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    return None
