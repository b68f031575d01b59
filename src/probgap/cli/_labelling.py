"""Questions to one person or several, and their answers: each on disk at once."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

import numpy as np

from probgap.audit import Design, estimate
from probgap.cli._terminal import refuse

JOURNAL = "answers.jsonl"
UNDO = "undo"
Answer = bool | None
SPOKEN: dict[Answer, str] = {True: "yes", False: "no", None: "unknown"}
READ = {word: answer for answer, word in SPOKEN.items()}
_LEASE = (
    300.0  # seconds for which a row that somebody looks at is offered to nobody else
)
_N_TRACED = 20


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a journal; a line that was torn is an empty one.

    A record has the row's number (from 1), the mode, and "yes", "no", "unknown" or
    "undo" as answer. What follows the last end of a line was never acknowledged.
    """
    path = folder / JOURNAL
    lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
    return [_read_record(line) for line in lines]


def _read_record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    known = (*READ, UNDO)
    match record:
        case {"row": int(row), "mode": str(), "answer": str(word), "by": str()} if (
            row > 0 and word in known
        ):
            return dict(record)
    return {}


class Journal:
    """A file of answers that only grows; one process writes to it at a time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self._file = self.path.open("a+b", buffering=0)
        if fcntl is not None:
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

    def append(self, row: int, mode: str, answer: str, by: str) -> None:
        """Write a record, and return once it is on disk."""
        record = {
            "row": row + 1,
            "answer": answer,
            "mode": mode,
            "by": by,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        line = b"\n" * self._torn + json.dumps(record).encode() + b"\n"
        self._torn = True  # until all of it is written
        if self._file.write(line) != len(line):
            msg = "the answer could not be written whole"
            raise OSError(msg)
        os.fsync(self._file.fileno())
        self._torn = False


class AnsweredError(Exception):
    """A row was answered already, perhaps in another window."""


class Session:
    """Rows to ask about, and answers so far; for several people at once.

    Parameters
    ----------
    journal : Journal
        Where answers go.
    design : Design
        The rows, and how they were drawn.
    show : callable
        Returns the cells of a row, as plain data.
    answers : mapping
        Answers so far, by row.
    history : sequence of int
        Rows whose answers can be undone, the last one last.
    extend : callable, default=None
        Draws more rows: takes the design, answers and a number, returns a design.
    """

    def __init__(
        self,
        journal: Journal,
        design: Design,
        show: Callable[[int], dict[str, Any]],
        answers: Mapping[int, Answer],
        history: Sequence[int] = (),
        extend: Callable[[Design, dict[int, Answer], int], Design] | None = None,
    ) -> None:
        self.design, self._journal, self._show = design, journal, show
        self._extend = extend
        self.answers = dict(answers)
        # Whose answer it was; of those from earlier, anybody's.
        self._history = [(row, "") for row in history if row in self.answers]
        self._leases: dict[str, tuple[int, float]] = {}
        self._lock, self._counting = threading.Lock(), threading.Lock()
        self._trace: dict[int, tuple[float, float, float]] = {}
        self._counted: tuple[Any, dict[str, Any]] | None = None
        self._version = 0

    def view(self, by: str) -> dict[str, Any]:
        """Return the row that somebody is to look at, and how far they all have come."""
        with self._lock:
            return self._view(by)

    def answer(self, by: str, row: int, word: str) -> dict[str, Any]:
        """Keep an answer, and return the next view; the first answer to a row stays."""
        with self._lock:
            if row not in self._rows():
                msg = f"Row {row + 1} was not drawn."
                raise AnsweredError(msg)
            if row in self.answers:
                # The same once more: its acknowledgement was lost on the way.
                if self.answers[row] == READ[word] and (row, by) in self._history:
                    return self._view(by)
                msg = f"Row {row + 1} was answered elsewhere: {SPOKEN[self.answers[row]]}."
                raise AnsweredError(msg)
            self._journal.append(row, self.design.kind, word, by)
            self.answers[row] = READ[word]
            self._history.append((row, by))
            self._leases.pop(by, None)
            self._version += 1
            return self._view(by)

    def undo(self, by: str) -> dict[str, Any]:
        """Take back somebody's last answer, and show them that row again."""
        with self._lock:
            last = self._last(by)
            if last is not None:
                row = self._history[last][0]
                self._journal.append(row, self.design.kind, UNDO, by)
                del self._history[last], self.answers[row]
                self._leases[by] = (row, time.monotonic())
                self._version += 1
            return self._view(by)

    def more(self, by: str, n: int) -> dict[str, Any]:
        """Draw more rows, once those drawn are answered."""
        with self._lock:
            if self._extend is not None and not self._waiting():
                self.design = self._extend(self.design, dict(self.answers), n)
                self._version += 1
            return self._view(by)

    def estimate(self) -> dict[str, Any]:
        """Return the count and its interval, and how the interval narrowed."""
        with self._lock:
            design, answers, version = self.design, dict(self.answers), self._version
            told = [row for row, _ in self._history]
            # Answers from a file came in the order of asking, for all we know.
            read = [row for row in self._rows() if row in answers and row not in told]
            history = read + told
        with self._counting:
            if self._counted is None:  # of answers from earlier
                for n in np.linspace(1, len(history), _N_TRACED, dtype=int)[:-1]:
                    later = set(history[n:])
                    self._point(
                        design, {r: a for r, a in answers.items() if r not in later}
                    )
            if self._counted is None or self._counted[0] < version:
                found = self._point(design, answers)
                n = len(answers)
                self._trace = {at: p for at, p in self._trace.items() if at <= n}
                low, high = found.count_interval
                trace = [[at, *self._trace[at]] for at in sorted(self._trace)]
                self._counted = (
                    version,
                    {
                        "answers": n,
                        "count": found.count,
                        "low": low,
                        "high": high,
                        "unlabelled": found.n_unlabelled,
                        "headline": found.headline,
                        "trace": trace,
                    },
                )
            return self._counted[1]

    def _point(self, design: Design, answers: Mapping[int, Answer]) -> Any:
        found = estimate(design, answers)
        low, high = found.count_interval
        if answers:
            self._trace[len(answers)] = (low, found.count, high)
        return found

    def _rows(self) -> list[int]:
        rows: list[int] = self.design.rows.tolist()
        return rows

    def _waiting(self) -> list[int]:
        return [row for row in self._rows() if row not in self.answers]

    def _last(self, by: str) -> int | None:
        mine = (at for at, (_, who) in enumerate(self._history) if who in ("", by))
        return max(mine, default=None)

    def _view(self, by: str) -> dict[str, Any]:
        waiting, now = self._waiting(), time.monotonic()
        mine = self._leases.get(by, (-1, 0.0))[0]
        taken = {
            row
            for who, (row, since) in self._leases.items()
            if who != by and now - since < _LEASE
        }
        free = [row for row in waiting if row not in taken] or waiting
        row = mine if mine in waiting else next(iter(free), None)
        if row is not None:
            self._leases[by] = (row, now)
        told = list(self.answers.values())
        return {
            "mode": self.design.kind,
            "row": None if row is None else self._show(row),
            "asked": self.design.rows.size,
            "answered": self.design.rows.size - len(waiting),
            **{word: told.count(answer) for answer, word in SPOKEN.items()},
            "undo": self._last(by) is not None,
            "more": self._extend is not None
            and self.design.rows.size < self.design.population.size,
        }
