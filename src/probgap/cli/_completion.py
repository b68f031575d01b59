"""Shell completion of column names, from the head of the table on the command line."""

from __future__ import annotations

import csv

import typer

_HEAD = 65_536  # bytes: a completion must not wait for a file


def complete_column(context: typer.Context, incomplete: str) -> list[str]:
    """List the columns of the table whose names begin with what was typed."""
    source = context.params.get("table") or _positional(context)
    if not source or source == "-":
        return []
    try:
        with open(source, encoding="utf-8-sig") as file:  # noqa: PTH123 (a name as typed)
            line = file.readline(_HEAD)
    except (OSError, UnicodeDecodeError):  # Parquet, gzip, not there: nothing to offer
        return []
    separator = max(",;\t|", key=line.count)
    names = next(csv.reader([line], delimiter=separator), [])
    return [name for name in names if name.startswith(incomplete)]


def _positional(context: typer.Context) -> str | None:
    """Find the table among words that the parser, at an unfinished option, left alone."""
    arguments = [
        parameter.name
        for parameter in context.command.params
        if parameter.param_type_name == "argument"
    ]
    words = [word for word in context.args if not word.startswith("--")]
    at = arguments.index("table")
    return words[at] if at < len(words) else None
