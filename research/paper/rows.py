"""Result rows on disk: one JSON line for each job, appended in a single write."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from probgap.exceptions import InvalidInputError

Row = dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """Read rows from a file of JSON lines, plain or compressed with gzip (``.gz``).

    A last line without a line end, left by a writer that was killed, is skipped.
    """
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return [json.loads(line) for line in content.split(b"\n")[:-1] if line.strip()]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows to a compressed file: the same bytes for the same rows."""
    content = b"".join(_line(row) for row in rows)
    path.write_bytes(gzip.compress(content, mtime=0))


def latest_rows(rows: Iterable[Row]) -> list[Row]:
    """Return one row of each key: the last success, or else the last failure."""
    kept: dict[str, Row] = {}
    for row in rows:
        earlier = kept.get(row["key"], row)
        if earlier.get("status") != "ok" or row.get("status") != "error":
            kept[row["key"]] = row
    return list(kept.values())


class RowFile:
    """A file to which one process at a time appends rows; ``rows`` are those found in it.

    Each row is one write, so that a process killed at any moment leaves at most one
    incomplete line, the last; it is removed when the file is opened again.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self.path = path
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered: the operating system has the row when append returns.
        self._file = self.path.open("ab", buffering=0)
        try:
            # Lock first: another run that is writing keeps its rows.
            _lock(self._file.fileno(), self.path)
            content = b"" if fresh else self.path.read_bytes()
            os.truncate(self.path, content.rfind(b"\n") + 1)  # an incomplete line
            self.rows = read_rows(self.path)
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Mapping[str, Any]) -> None:
        """Append one row; a number that is not finite is written as null."""
        self._file.write(_line(row))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()


def _line(row: Mapping[str, Any]) -> bytes:
    # JSON has no number that is not finite: null takes its place.
    finite = json.loads(json.dumps(dict(row)), parse_constant=lambda _: None)
    return json.dumps(finite).encode() + b"\n"


def _lock(descriptor: int, path: Path) -> None:
    try:
        import fcntl  # noqa: PLC0415 (not on Windows, where nothing is locked)
    except ImportError:  # pragma: no cover
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        msg = f"Another run has {path} open; a file has one writer at a time."
        raise InvalidInputError(msg) from None
