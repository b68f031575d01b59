"""What a long fit is doing, for those who want to know."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stage(verbose: int, name: str) -> Iterator[None]:
    """Say on standard error what begins, and how long it took."""
    if not verbose:
        yield
        return
    sys.stderr.write(f"[probgap] {name} ...")
    sys.stderr.flush()
    started = time.perf_counter()
    try:
        yield
    finally:
        sys.stderr.write(f" {time.perf_counter() - started:.1f} s\n")
