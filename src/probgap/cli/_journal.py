"""The file of all answers about the rows of a fit: it only grows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from probgap.cli._terminal import refuse

JOURNAL = "answers.jsonl"
UNDO = "undo"
FROM_FILE = "file"  # stands for the person where answers came in a file
Answer = bool | None
ANSWERS: dict[str, Answer] = {"yes": True, "no": False, "unknown": None}


class Record(NamedTuple):
    """An answer about a row (counted from 0), or its undoing; the kind of audit; by whom."""

    row: int
    word: str
    mode: str
    by: str


def read_journal(folder: Path) -> list[Record | None]:
    """Return the records of a journal; a line that was torn is None.

    What follows the last end of a line was never acknowledged.
    """
    path = folder / JOURNAL
    lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
    return [_read_record(line) for line in lines]


def _read_record(line: bytes) -> Record | None:
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match plain:
        case {
            "row": int(row),
            "answer": str(word),
            "mode": str(mode),
            "by": str(by),
        } if row > 0 and word in (*ANSWERS, UNDO):
            return Record(row - 1, word, mode, by)
    return None


def last_answers(records: Iterable[Record | None]) -> dict[int, Record]:
    """Return the answers that stand, by row, in the order in which they came."""
    found: dict[int, Record] = {}
    for record in filter(None, records):
        found.pop(record.row, None)
        if record.word != UNDO:
            found[record.row] = record
    return found


class Journal:
    """A journal to append to; with ``alone``, by one process at a time."""

    def __init__(self, folder: Path, *, alone: bool = False) -> None:
        self.path = folder / JOURNAL
        self._file = self.path.open("a+b", buffering=0)
        if alone and fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.close()
                refuse(
                    f"Another probgap label is at work in {folder}; open its address, or "
                    "stop it first."
                )
        end = self._file.seek(0, os.SEEK_END)
        # A process that was killed may have left half a line.
        self._torn = end > 0 and self.path.read_bytes()[-1:] != b"\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, *records: Record) -> None:
        """Write records, and return once they are on disk."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        lines = b"\n" * self._torn
        for row, word, mode, by in records:
            plain = {"row": row + 1, "answer": word, "mode": mode, "by": by}
            lines += json.dumps(plain | {"time": now}).encode() + b"\n"
        self._torn = True  # until all of it is written
        if self._file.write(lines) != len(lines):
            msg = "the answer could not be written whole"
            raise OSError(msg)
        os.fsync(self._file.fileno())
        self._torn = False
