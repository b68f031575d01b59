"""The file of all answers about the rows of a fit: it only grows."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

from probgap._core.errors import refuse
from probgap.cli._output import lock_file

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


class Journal:
    """A journal to append to; with ``alone``, by one process at a time."""

    def __init__(self, folder: Path, *, alone: bool = False) -> None:
        self.path = folder / JOURNAL
        self._file = self.path.open("a+b", buffering=0)
        if alone and not lock_file(self._file):
            self._file.close()
            refuse(
                f"Another probgap label is at work in {folder}; open its address, or "
                "stop it first."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, *records: Record) -> None:
        """Write records, and return once they are on disk."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        # A process that was killed, or a full disk, may have left half a line.
        self._file.seek(max(self._file.seek(0, os.SEEK_END) - 1, 0))
        lines = b"" if self._file.read(1) in (b"", b"\n") else b"\n"
        for row, word, mode, by in records:
            plain = {"row": row + 1, "answer": word, "mode": mode, "by": by}
            lines += json.dumps(plain | {"time": now}).encode() + b"\n"
        if self._file.write(lines) != len(lines):
            msg = "the answer could not be written whole"
            raise OSError(msg)
        os.fsync(self._file.fileno())
