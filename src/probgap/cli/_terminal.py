"""What a command prints: errors in one sentence, progress, text in any locale."""

import errno
import io
import json
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NoReturn, Self

import typer

from probgap._core.errors import ProbgapError, ProbgapWarning
from probgap.cli import stop_early

BAD_INPUT = 1
INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def plain_errors(*, debug: bool) -> Iterator[None]:
    """Turn an exception into a sentence on stderr and an exit code."""
    try:
        if signal.getsignal(signal.SIGINT) is stop_early:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with signal_handler(signal.SIGTERM, _unwind):
            yield
    except (BrokenPipeError, typer.Exit):
        raise  # click ends quietly when a pipe is closed
    except KeyboardInterrupt:
        message, code = "Stopped. Nothing was written.", INTERRUPTED
    except Exception as error:
        if debug:
            raise
        message, code = _sentence(error), BAD_INPUT
    else:
        return
    typer.echo(message, err=True)
    raise typer.Exit(code)


def _sentence(error: Exception) -> str:
    for each in (error, error.__cause__, error.__context__):
        if isinstance(each, OSError) and each.errno in _NO_ROOM:
            return f"Error: no room for the results: {each.strerror}."
    if isinstance(error, OSError) and error.strerror is not None:
        to = "read or write" if error.filename is None else f"use {error.filename}"
        return f"Error: cannot {to}: {error.strerror}."
    if isinstance(error, ProbgapError | OSError):
        return f"Error: {error}"
    if isinstance(error, MemoryError):
        return (
            "Error: not enough memory for this table. Use fewer rows or columns (--drop), "
            "or fit --engine dask."
        )
    return (
        f"Internal error ({type(error).__name__}: {error}). Please report it with the "
        "output of --debug."
    )


@contextmanager
def signal_handler(number: int, handler: Any) -> Iterator[None]:
    """Handle a signal, which only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def _unwind(number: int, _: object) -> NoReturn:
    """End by an exception, so that nothing half-written stays behind."""
    raise SystemExit(128 + number)


class Progress:
    """Progress on stderr: a bar with the time left, or a line for each step.

    ``costs`` has the steps in order, and how long each takes relative to the others;
    ``seconds`` how long each took.
    """

    def __init__(self, costs: dict[str, float], *, shown: bool) -> None:
        self.seconds: dict[str, float] = {}
        self._costs = costs
        self._shown = shown
        self._step = ""
        self._begun = 0.0
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._shown and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.BarColumn(bar_width=24),
                progress.TimeElapsedColumn(),
                progress.TextColumn("left:"),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.description}", markup=False),
                console=Console(stderr=True),
                transient=True,
                speed_estimate_period=600,
            )
            self._task = self._bar.add_task("", total=sum(self._costs.values()))
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, step: str) -> None:
        """End the current step and begin the next."""
        now = time.perf_counter()
        if self._step:
            self.seconds[self._step] = now - self._begun
        self._step, self._begun = step, now
        self.advance(0, 1)
        if self._shown and self._bar is None:
            sys.stderr.write(f"{step} ...\n")
            sys.stderr.flush()

    def advance(self, done: float, total: float, what: str = "") -> None:
        """Show how far the current step has come."""
        if self._bar is None:
            return
        before = sum(self._costs[step] for step in self.seconds)
        self._bar.update(
            self._task,
            completed=before + self._costs[self._step] * done / total,
            description=f"{self._step}: {what}" if what else self._step,
            refresh=True,
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


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["probgap", *sys.argv[1:]])


def first_few(names: Sequence[str], most: int) -> str:
    """Join the first of some names, and say how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def one_line(text: str, longest: int = 24) -> str:
    """Shorten a cell to a line without control characters."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def make_console() -> Any:
    """Return a console that prints the user's names and numbers as they are."""
    from rich.console import Console

    return Console(highlight=False, markup=False, soft_wrap=True)


def plain_table(
    headings: Iterable[str], rows: Iterable[Iterable[Any]], right: Collection[str] = ()
) -> Any:
    """Return a rich table without lines, with numbers on the right of their columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.show_header = bool(headings)
    lines = [
        [cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows
    ]
    for place, heading in enumerate(headings):
        if heading in right:
            # Lines are broken between words; numbers are never shortened.
            cells = [heading, *(line[place].plain for line in lines)]
            longest = max(len(word) for cell in cells for word in cell.split())
            table.add_column(Text(heading), justify="right", min_width=longest)
        else:
            table.add_column(Text(heading), no_wrap=True)
    for line in lines:
        table.add_row(*line)
    return table


@contextmanager
def caught_warnings() -> Iterator[list[Warning]]:
    """Collect the warnings of this library and of solvers, each once; drop all others."""
    from sklearn.exceptions import ConvergenceWarning

    raised: list[Warning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield raised
    first: dict[str, Any] = {}
    for warning in caught:
        if issubclass(warning.category, ProbgapWarning | ConvergenceWarning):
            first.setdefault(str(warning.message), warning.message)
    raised += first.values()
