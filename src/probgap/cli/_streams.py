"""Standard output, whatever the locale: words that a reader can bear, data that are whole."""

from __future__ import annotations

import io
import json
import sys
from typing import IO, Any


def tolerate_any_text() -> None:
    """Print a question mark in place of a sign that the locale does not have.

    Only words for people go this way; data are printed by :func:`print_json` and into
    :func:`data_stream`.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def can_print(text: str, stream: IO[str] | None = None) -> bool:
    """Say whether a stream has the signs of a text."""
    encoding = getattr(stream or sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def print_json(value: Any) -> None:
    """Print JSON, in ASCII if the locale has no more."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not can_print(text):
        text = json.dumps(value, allow_nan=False)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def data_stream() -> IO[str]:
    """Give standard output in UTF-8, as files are written, so that no sign is lost."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")
    return sys.stdout
