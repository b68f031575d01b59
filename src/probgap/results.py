"""Result rows: one JSON line for each job, appended as it ends, whole or not at all."""

from __future__ import annotations

import gzip
import json
import math
import os
import warnings
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from probgap._core.errors import InvalidInputError, ProbgapWarning

__all__ = ["RowFile", "latest_rows", "read_rows", "write_rows"]

Row = dict[str, Any]


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    r"""Read result rows from a file of JSON lines, plain or compressed with gzip.

    A last line without its end was cut off when its writer was killed, and is left out.
    Another line that is no JSON object with a ``key`` is left out with a warning.

    Parameters
    ----------
    path : path-like
        The file; compressed if its name ends in ``.gz``.

    Returns
    -------
    list of dict
        The rows, in the order of the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from probgap.results import read_rows
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.jsonl"
    >>> _ = file.write_text('{"key": "a", "accuracy": 0.9}\n{"key": "b", "accu')
    >>> read_rows(file)
    [{'key': 'a', 'accuracy': 0.9}]
    """
    content = Path(path).read_bytes()
    if Path(path).suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            msg = f"{path} must be a whole gzip file. Got: {error}."
            raise InvalidInputError(msg) from None
    whole, _, _ = content.rpartition(b"\n")
    lines = [line for line in whole.split(b"\n") if line.strip()]
    rows = [row for line in lines if (row := _parse(line)) is not None]
    if len(rows) < len(lines):
        warnings.warn(
            f"{path} must hold one JSON object with a key on each line. Got "
            f"{len(lines) - len(rows)} that are none; they are left out.",
            ProbgapWarning,
            stacklevel=2,
        )
    return rows


def write_rows(path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows to a new file, compressed with gzip if its name ends in ``.gz``.

    The same rows give the same bytes.

    Parameters
    ----------
    path : path-like
        The file; one that exists is replaced, in one step.
    rows : iterable of mapping
        The rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from probgap.results import read_rows, write_rows
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.jsonl.gz"
    >>> write_rows(file, [{"key": "a", "accuracy": 0.9}])
    >>> read_rows(file)
    [{'key': 'a', 'accuracy': 0.9}]
    """
    target = Path(path)
    content = b"".join(_line(row) for row in rows)
    if target.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    unfinished = target.with_name(f"{target.name}.part")
    unfinished.write_bytes(content)
    unfinished.replace(target)


def latest_rows(rows: Iterable[Row]) -> list[Row]:
    """Keep one row of each key: the last that is no failure, or else the last.

    So a job that was run again replaces its failure, and a failure no success.

    Parameters
    ----------
    rows : iterable of dict
        Rows with a ``key``.

    Returns
    -------
    list of dict
        One row for each key.

    Examples
    --------
    >>> from probgap.results import latest_rows
    >>> latest_rows([{"key": "a", "status": "error"}, {"key": "a", "status": "ok"}])
    [{'key': 'a', 'status': 'ok'}]
    """
    kept: dict[str, Row] = {}
    for row in rows:
        before = kept.get(row["key"], row)
        if before.get("status") != "ok" or row.get("status") != "error":
            kept[row["key"]] = row
    return list(kept.values())


class RowFile:
    """A file that rows are appended to, by one process at a time.

    Each row goes out in one write, so that a process killed at any moment leaves at most
    one torn line, the last; the next to open the file removes it. ``rows`` holds what was
    there.

    Parameters
    ----------
    path : path-like
        The file; it and its folder are made if they are not there.
    fresh : bool, default=False
        Whether to throw away what is in the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from probgap.results import RowFile, read_rows
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.jsonl"
    >>> with RowFile(path) as file:
    ...     file.append({"key": "a", "accuracy": 0.9})
    >>> read_rows(path)
    [{'key': 'a', 'accuracy': 0.9}]
    """

    def __init__(self, path: str | os.PathLike[str], *, fresh: bool = False) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered: a row is with the operating system when append returns.
        self._file = self.path.open("ab", buffering=0)
        try:
            # First the lock: another run that is writing keeps its rows.
            _lock(self._file.fileno(), self.path)
            if fresh:
                os.truncate(self.path, 0)
            _remove_torn_line(self.path)
            self.rows = read_rows(self.path)
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Mapping[str, Any]) -> None:
        """Append one row.

        Parameters
        ----------
        row : mapping
            What JSON can say; a number that is not finite is written as null.
        """
        self._file.write(_line(row))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def _parse(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("key"), str) else None


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(_finite(row), allow_nan=False).encode() + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _remove_torn_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


def _lock(descriptor: int, path: Path) -> None:
    try:
        import fcntl  # noqa: PLC0415 (not on Windows, where a second writer is not seen)
    except ImportError:  # pragma: no cover
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        msg = (
            f"{path} must have one writer at a time. Got another run that has it open."
        )
        raise InvalidInputError(msg) from None
