"""Files that are written whole, and tables of facts for notebooks."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from secrets import token_hex
from typing import IO, Any


@contextmanager
def whole_file(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Yield a file to write to that takes its name only when it is complete."""
    partial = path.with_name(f".{path.name[:100]}.{token_hex(4)}")
    text: Any = {} if binary else {"encoding": "utf-8", "newline": ""}
    try:
        with partial.open("xb" if binary else "x", **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a crash could leave the name on an empty file
        if path.exists():
            partial.chmod(path.stat().st_mode & 0o777)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


_TABLE = "border-collapse:collapse;margin:0.5em 0;color:inherit"
_CAPTION = "text-align:left;font-weight:bold;caption-side:top;color:inherit"
_CELL = "text-align:left;padding:0.15em 1em 0.15em 0;background:none;color:inherit"


def fact_table(caption: str, facts: Mapping[str, str]) -> str:
    """Write facts as an HTML table of two columns, the first of them headings."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:normal;opacity:0.8">'
        f'{escape(name)}</th><td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return (
        f'<table style="{_TABLE}"><caption style="{_CAPTION}">{escape(caption)}'
        f"</caption><tbody>{rows}</tbody></table>"
    )


def number(value: float, digits: int = 3) -> str:
    """Write a number for people: few digits, a true minus sign, thousands apart."""
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}g}"
    return text.replace("-", "\N{MINUS SIGN}")


def share(part: int, whole: int) -> str:
    """Write a count and what share of the whole it is."""
    return f"{part:,} ({part / whole:.1%})" if whole else f"{part:,}"
