"""What a long fit is doing, for those who want to know."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Whether the last line still waits for how long it took.
_waiting: ContextVar[bool] = ContextVar("waiting", default=False)


@contextmanager
def stage(verbose: int, name: str) -> Iterator[None]:
    """Say on standard error what begins, and how long it took."""
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
        # Remarks in between have ended the line: it is said again.
        again = "" if _waiting.get() else line
        sys.stderr.write(f"{again} {time.perf_counter() - started:.1f} s\n")
        _waiting.set(False)


def remark(text: object) -> None:
    """Say something on standard error, on a line below what is being done."""
    end = "\n" if _waiting.get() else ""
    sys.stderr.write(f"{end}[probgap] {text}\n")
    sys.stderr.flush()
    _waiting.set(False)
