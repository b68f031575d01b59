"""Questions to one person or several at once, in the browser."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from probgap.audit import AuditEstimate, Design, estimate
from probgap.cli._journal import ANSWERS, FROM_FILE, UNDO, Answer, Journal, Record

# Seconds for which a row that somebody looks at is offered to nobody else.
_LEASE = 300.0
_N_TRACED = 20
_MOST_MORE = 1000  # rows that one request may draw


class AnsweredError(Exception):
    """A row was answered already, perhaps in another window."""


class LabelSession:
    """Rows to ask about, and answers so far; for several people at once.

    ``show`` returns the cells of a row, as plain data; ``extend`` draws so many more rows,
    and returns the longer design. Anybody may undo ``earlier`` answers, unless they are
    from a file.
    """

    def __init__(
        self,
        journal: Journal,
        design: Design,
        show: Callable[[int], dict[str, Any]],
        earlier: Mapping[int, Record],
        extend: Callable[[int], Design] | None = None,
    ) -> None:
        self._journal, self._design, self._show = journal, design, show
        self._extend = extend
        self._given = {
            row: record if record.by == FROM_FILE else record._replace(by="")
            for row, record in earlier.items()
        }
        self._leases: dict[str, tuple[int, float]] = {}
        self._lock, self._counting = threading.RLock(), threading.Lock()
        self._trace: dict[int, AuditEstimate] = {}  # by the number of answers

    @property
    def answers(self) -> dict[int, Answer]:
        """The answers so far, in their order."""
        return {row: ANSWERS[given.word] for row, given in self._given.items()}

    def view(self, by: str) -> dict[str, Any]:
        """Return the row that somebody is to look at, and how far they all have come."""
        with self._lock:
            waiting, now = self._waiting(), time.monotonic()
            taken = {
                row
                for who, (row, since) in self._leases.items()
                if who != by and now - since < _LEASE
            }
            free = [row for row in waiting if row not in taken] or waiting
            mine = self._leases.get(by, (-1, 0.0))[0]
            row = mine if mine in waiting else next(iter(free), None)
            if row is not None:
                self._leases[by] = (row, now)
            words = Counter(given.word for given in self._given.values())
            n_drawn = self._design.rows.size
            return {
                "mode": self._design.kind,
                "row": None if row is None else self._show(row),
                "asked": n_drawn,
                "answered": n_drawn - len(waiting),
                **{word: words[word] for word in ANSWERS},
                "undo": self._last(by) is not None,
                "more": self._extend is not None
                and n_drawn < self._design.population.size,
            }

    def answer(self, by: str, row: int, word: str) -> dict[str, Any]:
        """Keep an answer, and return the next view; the first answer to a row stays."""
        if word not in ANSWERS:
            raise ValueError(word)
        with self._lock:
            if row not in self._design.rows:
                msg = f"Row {row + 1} was not drawn."
                raise AnsweredError(msg)
            record = Record(row, word, self._design.kind, by)
            given = self._given.get(row, record)
            if given != record:
                msg = f"Row {row + 1} was answered elsewhere: {given.word}."
                raise AnsweredError(msg)
            # The same once more, if its acknowledgement was lost on the way.
            if row not in self._given:
                self._journal.append(record)
                self._given[row] = record
                self._leases.pop(by, None)
            return self.view(by)

    def undo(self, by: str) -> dict[str, Any]:
        """Take back somebody's last answer, and show them that row again."""
        with self._counting, self._lock:
            if (row := self._last(by)) is not None:
                self._journal.append(Record(row, UNDO, self._design.kind, by))
                del self._given[row]
                self._leases[by] = (row, time.monotonic())
                n = len(self._given)
                self._trace = {at: e for at, e in self._trace.items() if at < n}
            return self.view(by)

    def more(self, by: str, n: int) -> dict[str, Any]:
        """Draw more rows, up to a thousand, once those drawn are answered."""
        if not 1 <= n <= _MOST_MORE:
            raise ValueError(n)
        with self._lock:
            if self._extend is not None and not self._waiting():
                self._design = self._extend(n)
            return self.view(by)

    def estimate(self) -> dict[str, Any]:
        """Return the count and its interval, and how the interval narrowed."""
        with self._counting:
            with self._lock:
                design, answers = self._design, list(self.answers.items())
            n, past = len(answers), []
            if n and not self._trace:
                past = np.linspace(1, n, _N_TRACED, dtype=int).tolist()
            for at in {*past, n}.difference(self._trace):
                self._trace[at] = estimate(design, dict(answers[:at]))
            found = self._trace[n]
            low, high = found.count_interval
            return {
                "answers": n,
                "count": found.count,
                "low": low,
                "high": high,
                "unlabelled": found.n_unlabelled,
                "headline": found.headline,
                "trace": [
                    [at, then.count_interval[0], then.count, then.count_interval[1]]
                    for at, then in sorted(self._trace.items())
                    if at
                ],
            }

    def _waiting(self) -> list[int]:
        return [row for row in self._design.rows.tolist() if row not in self._given]

    def _last(self, by: str) -> int | None:
        given = reversed(self._given.values())
        return next((each.row for each in given if each.by in ("", by)), None)
