"""Result rows on disk: one JSON line for each job, appended in a single write."""

from __future__ import annotations

import gzip
import json
import os
import warnings
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from probgap._core.errors import InvalidInputError, ProbgapWarning
from probgap._core.output import whole_file

Row = dict[str, Any]


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    r"""Read result rows from a file of JSON lines, plain or compressed with gzip.

    A last line without a line end, left by a writer that was killed, is skipped. Any
    other line that is not a JSON object with a ``key`` is skipped with a warning.

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
    >>> from probgap.reproduction import read_rows
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
            msg = f"{path} is not a complete gzip file: {error}."
            raise InvalidInputError(msg) from None
    whole, _, _ = content.rpartition(b"\n")
    lines = [line for line in whole.split(b"\n") if line.strip()]
    rows = [row for line in lines if (row := _parse(line)) is not None]
    if len(rows) < len(lines):
        warnings.warn(
            f"Skipped {len(lines) - len(rows)} lines of {path} that are not a JSON "
            "object with a key.",
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
    >>> from probgap.reproduction import read_rows, write_rows
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.jsonl.gz"
    >>> write_rows(file, [{"key": "a", "accuracy": 0.9}])
    >>> read_rows(file)
    [{'key': 'a', 'accuracy': 0.9}]
    """
    content = b"".join(_line(row) for row in rows)
    if Path(path).suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    with whole_file(Path(path), binary=True) as file:
        file.write(content)


def latest_rows(rows: Iterable[Row]) -> list[Row]:
    """Return one row of each key: the last success, or else the last failure.

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
    >>> from probgap.reproduction import latest_rows
    >>> latest_rows([{"key": "a", "status": "error"}, {"key": "a", "status": "ok"}])
    [{'key': 'a', 'status': 'ok'}]
    """
    kept: dict[str, Row] = {}
    for row in rows:
        earlier = kept.get(row["key"], row)
        if earlier.get("status") != "ok" or row.get("status") != "error":
            kept[row["key"]] = row
    return list(kept.values())


class RowFile:
    """A file to which one process at a time appends rows.

    Each row is one write, so that a process killed at any moment leaves at most one
    incomplete line, the last; it is removed when the file is opened again. ``rows``
    holds the rows found in the file.

    Parameters
    ----------
    path : path-like
        The file; it and its folder are created if they do not exist.
    fresh : bool, default=False
        Whether to delete the rows in the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from probgap.reproduction import RowFile, read_rows
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.jsonl"
    >>> with RowFile(path) as file:
    ...     file.append({"key": "a", "accuracy": 0.9})
    >>> read_rows(path)
    [{'key': 'a', 'accuracy': 0.9}]
    """

    def __init__(self, path: str | os.PathLike[str], *, fresh: bool = False) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered: the operating system has the row when append returns.
        self._file = self.path.open("ab", buffering=0)
        try:
            # Lock first: another run that is writing keeps its rows.
            _lock(self._file.fileno(), self.path)
            if fresh:
                os.truncate(self.path, 0)
            content = self.path.read_bytes()
            os.truncate(self.path, content.rfind(b"\n") + 1)  # an incomplete line
            self.rows = read_rows(self.path)
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Mapping[str, Any]) -> None:
        """Append one row.

        Parameters
        ----------
        row : mapping
            Values that JSON can hold; a number that is not finite is written as null.
        """
        self._file.write(_line(row))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()


def _parse(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("key"), str) else None


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
