"""How a command ends when something is wrong: one sentence, and a code for machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from probgap._core.errors import ProbgapError

BAD_INPUT = 1
INTERRUPTED = 130


@contextmanager
def plain_errors(*, debug: bool) -> Iterator[None]:
    """Turn what a user can mend into a sentence on stderr and exit code 1."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read has gone; click ends quietly
    except (ProbgapError, OSError) as error:
        if debug:
            raise
        typer.echo(f"Error: {_sentence(error)}", err=True)
        raise typer.Exit(BAD_INPUT) from None


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} must be usable. Got: {error.strerror}."
    return str(error)
