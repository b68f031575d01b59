"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import IO, Any


@contextmanager
def whole_file(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Give a file to write to that takes its name only when it is complete.

    Text is UTF-8, and line ends stay as they are written. A file that is replaced
    leaves its permissions to the new one.
    """
    partial = path.with_name(f".{path.name[:100]}.{token_hex(4)}")
    mode, encoding, newline = ("xb", None, None) if binary else ("x", "utf-8", "")
    try:
        with partial.open(mode, encoding=encoding, newline=newline) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a crash could leave the name on an empty file
        if path.exists():
            partial.chmod(path.stat().st_mode & 0o777)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
