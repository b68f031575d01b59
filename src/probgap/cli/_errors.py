"""How a command ends when something is wrong: one sentence, and a code for machines."""

from __future__ import annotations

import errno
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer

from probgap._core.errors import ProbgapError

BAD_INPUT = 1
INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def plain_errors(*, debug: bool, kept: str = "Nothing was written.") -> Iterator[None]:
    """Turn what ends a command into a sentence on stderr and an exit code.

    Parameters
    ----------
    debug : bool
        Whether to let the traceback through.
    kept : str
        What an interrupted command leaves behind.
    """
    try:
        with _orderly_termination():
            yield
    except BrokenPipeError:
        raise  # whoever read has gone; click ends quietly
    except KeyboardInterrupt:
        _end(f"Stopped. {kept}", INTERRUPTED)
    except (ProbgapError, OSError) as error:
        if debug:
            raise
        _end(f"Error: {_sentence(error)}", BAD_INPUT)
    except MemoryError:
        if debug:
            raise
        _end(
            "Error: the table must fit into memory. Got too little of it; use fewer "
            "rows or columns (--drop).",
            BAD_INPUT,
        )
    except typer.Exit:
        raise
    except Exception as error:
        if debug:
            raise
        _end(
            f"Error: probgap must not fail here. Got {type(error).__name__}: {error}. "
            "This is a fault of probgap: run it again with --debug and report what "
            "that prints.",
            BAD_INPUT,
        )


def _end(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code) from None


def _sentence(error: Exception) -> str:
    for each in (error, error.__cause__):
        if isinstance(each, OSError) and each.errno in _NO_ROOM:
            return f"The disk must have room for the results. Got: {each.strerror}."
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} must be usable. Got: {error.strerror}."
    if isinstance(error, OSError) and error.strerror is not None:
        return f"The files must be usable. Got: {error.strerror}."
    return str(error)


@contextmanager
def _orderly_termination() -> Iterator[None]:
    """Unwind when asked to terminate, so that nothing half-written stays behind."""

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
