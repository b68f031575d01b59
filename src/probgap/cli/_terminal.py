"""How a command talks and ends: one-sentence errors, progress, text in any locale."""

from __future__ import annotations

import errno
import io
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any, NoReturn, Self

import typer

from probgap._core.errors import ProbgapError

BAD_INPUT = 1
INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def plain_errors(*, debug: bool) -> Iterator[None]:
    """Turn what ends a command into a sentence on stderr and an exit code."""
    try:
        with _orderly_termination():
            yield
    except (BrokenPipeError, typer.Exit):
        raise  # of a closed pipe click makes a quiet end
    except KeyboardInterrupt:
        _end("Stopped. Nothing was written.", INTERRUPTED)
    except Exception as error:
        if debug:
            raise
        _end(_sentence(error), BAD_INPUT)


def _end(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code) from None


def _sentence(error: Exception) -> str:
    for each in (error, error.__cause__, error.__context__):
        if isinstance(each, OSError) and each.errno in _NO_ROOM:
            return f"Error: no room for the results: {each.strerror}."
    if isinstance(error, OSError) and error.filename is not None:
        return f"Error: cannot use {error.filename}: {error.strerror}."
    if isinstance(error, OSError) and error.strerror is not None:
        return f"Error: cannot read or write: {error.strerror}."
    if isinstance(error, ProbgapError | OSError):
        return f"Error: {error}"
    if isinstance(error, MemoryError):
        return "Error: not enough memory for this table. Use fewer rows or columns (--drop)."
    return (
        f"Internal error ({type(error).__name__}: {error}). Please report it with the "
        "output of --debug."
    )


@contextmanager
def _orderly_termination() -> Iterator[None]:
    """Unwind on SIGTERM, so that nothing half-written stays behind."""

    def unwind(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, unwind)
    except ValueError:  # not the main thread: whoever called looks after signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Progress:
    """Progress on stderr: a bar with the time left, or a line for each step.

    ``costs`` has the steps in order, and how long each takes relative to the others;
    ``seconds`` how long each took.
    """

    def __init__(self, costs: dict[str, float], *, shown: bool) -> None:
        self.seconds: dict[str, float] = {}
        self._costs = costs
        self._shown = shown
        self._step: str | None = None
        self._begun = 0.0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._shown and sys.stderr.isatty():
            self._bar = _make_bar()
            self._bar.start()
            self._task = self._bar.add_task("", total=sum(self._costs.values()))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:  # else the step is not done, and the bar must not show it so
            self._end_step()
        if self._bar is not None:
            self._bar.stop()

    def begin(self, step: str) -> None:
        """End the current step and begin the next."""
        self._end_step()
        self._step, self._begun = step, time.perf_counter()
        if self._bar is not None:
            self._bar.update(self._task, description=step, refresh=True)
        elif self._shown:
            sys.stderr.write(f"{step} ...\n")
            sys.stderr.flush()

    def advance(self, done: float, total: float, what: str = "") -> None:
        """Show how far the current step has come."""
        if self._bar is None or self._step is None or total <= 0:
            return
        share = min(done / total, 1.0) * self._costs[self._step]
        text = f"{self._step}: {what}" if what else self._step
        self._bar.update(self._task, completed=self._before + share, description=text)

    @property
    def _before(self) -> float:
        return sum(cost for step, cost in self._costs.items() if step in self.seconds)

    def _end_step(self) -> None:
        if self._step is None:
            return
        self.seconds[self._step] = time.perf_counter() - self._begun
        self._step = None
        if self._bar is not None:
            self._bar.update(self._task, completed=self._before)


def _make_bar() -> Any:
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.BarColumn(bar_width=24),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left:"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=600,
    )


def can_print(text: str) -> bool:
    """Return whether standard output can encode a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def print_json(value: Any) -> None:
    """Print JSON, in ASCII if standard output cannot encode more."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    sys.stdout.write((text if can_print(text) else json.dumps(value)) + "\n")
    sys.stdout.flush()


def data_stream() -> IO[str]:
    """Return standard output set to UTF-8, as files are written, so that no data is lost."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")
    return sys.stdout


def one_line(text: str, longest: int = 24) -> str:
    """Shorten a cell to a line without control characters."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def plain_table(*headings: str) -> Any:
    """Return a rich table without lines; ``>`` in front of a heading aligns it right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.show_header = any(headings)
    for heading in headings:
        justify: Any = "right" if heading.startswith(">") else "left"
        table.add_column(Text(heading.removeprefix(">")), justify=justify)
    return table
