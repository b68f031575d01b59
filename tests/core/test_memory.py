"""Memory that a process frees and keeps."""

import ctypes
from types import SimpleNamespace

from probgap._core.runtime import keep_freed_memory


def test_glibc_is_told_to_keep_freed_memory(monkeypatch):
    said = {}
    library = SimpleNamespace(mallopt=said.__setitem__)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    keep_freed_memory()
    assert said == {-4: 0, -1: 2**31 - 1}  # M_MMAP_MAX and M_TRIM_THRESHOLD


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    keep_freed_memory()
