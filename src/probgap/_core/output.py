"""Output for people: files, numbers, tables for notebooks."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from html import escape
from pathlib import Path
from secrets import token_hex
from typing import IO, Any


@contextmanager
def whole_file(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Yield a temporary file that replaces ``path`` once it is written completely."""
    partial = path.with_name(f".{path.name[:100]}.{token_hex(4)}")
    text: Any = {} if binary else {"encoding": "utf-8", "newline": ""}
    try:
        with partial.open("xb" if binary else "x", **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # otherwise a crash could leave an empty file
        if path.exists():
            partial.chmod(path.stat().st_mode & 0o777)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


_TABLE = "border-collapse:collapse;margin:0.5em 0;color:inherit"
_CAPTION = "text-align:left;font-weight:bold;caption-side:top;color:inherit"
_CELL = "text-align:left;padding:0.15em 1em 0.15em 0;background:none;color:inherit"


def fact_table(caption: str, facts: Mapping[str, str]) -> str:
    """Return facts as an HTML table of two columns: names and values."""
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
    """Format a number with few digits, a true minus sign and thousands separators."""
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}g}"
    return text.replace("-", "\N{MINUS SIGN}")


def share(part: int, whole: int) -> str:
    """Format a count with its share of the whole."""
    return f"{part:,} ({part / whole:.1%})" if whole else f"{part:,}"


NONE, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def fixed(value: float | None, digits: int = 2) -> str:
    """Format a number with a fixed number of decimals and a true minus sign."""
    if value is None:
        return NONE
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def signed(value: float | None, digits: int = 2) -> str:
    """Format a difference with its sign."""
    text = fixed(value, digits)
    return text if value is None or text.startswith(MINUS) else f"+{text}"


def plural(value: int, noun: str) -> str:
    """Format a count with its noun."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


# An upper end beyond this share of all that there are says nothing.
_ALL = 0.95


def is_open(high: float, most: float) -> bool:
    """Return whether a range of counts that may be up to ``most`` has no upper end."""
    return high > _ALL * most


def count_range(low: float, high: float, most: float) -> str:
    """Return a range of counts in words, only as much as it says.

    Examples
    --------
    >>> from probgap._core.output import count_range
    >>> count_range(280, 1400, 2000), count_range(280, 1990, 2000)
    ('between 280 and 1,400', 'at least 280')
    >>> count_range(0.2, 31, 2000), count_range(12.1, 12.3, 2000)
    ('up to 31', 'about 12')
    """
    if high < 0.5:
        return "none"
    if low < max(0.5, 0.01 * high):
        return "any number" if is_open(high, most) else f"up to {high:,.0f}"
    if is_open(high, most):
        return f"at least {low:,.0f}"
    if round(low) == round(high):
        return f"about {high:,.0f}"
    return f"between {low:,.0f} and {high:,.0f}"


def percent(value: float | None) -> str:
    """Format a share in percent; as 0% or 100% only if it is exactly that."""
    if value is None:
        return NONE
    if 0.0 < value < 0.005:
        return "<1%" if value < 0.001 else f"{100 * value:.1f}%"
    if 0.995 < value < 1.0:
        return ">99%"
    return f"{100 * value:.0f}%"


def whole(value: float | None) -> str:
    """Format a number, rounded to an integer, with thousands separated."""
    return NONE if value is None else f"{round(value):,}"


def duration(seconds: float | None) -> str:
    """Format a duration in suitable units."""
    if seconds is None:
        return NONE
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def joined(names: list[str]) -> str:
    """Join names as in a sentence."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def p_words(value: float) -> str:
    """Format a p-value to two significant digits."""
    if value < 0.0001:
        return "p\u00a0<\u00a00.0001"
    return f"p\u00a0=\u00a0{float(f'{value:.2g}'):.10g}"


def moment(started: str, *, day_only: bool = False) -> str:
    """Format a time stamp to the minute or day; other text is returned, shortened."""
    try:
        stamp = datetime.fromisoformat(started)
    except ValueError:
        return clip(started, 40)
    day = f"{stamp.day} {stamp:%B %Y}"
    return day if day_only else f"{day}, {stamp:%H:%M %Z}".rstrip()


# Characters that change the direction of writing, or that are invisible.
_HIDDEN = re.compile(
    "[\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Characters that HTML does not allow, and lone surrogates, which no file can hold.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]"
)
# More combining marks on one letter than any language has cover the lines above.
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u20d0-\u20ff]"
_PILES = re.compile(f"({_MARK}{{4}}){_MARK}+")


def harmless(value: object) -> object:
    """Show invisible characters, and replace those that HTML does not allow.

    Markup of our own and values other than text are left as they are; the template
    escapes the rest.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    shown = _HIDDEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", value)
    return _PILES.sub(r"\1", _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", shown))


def clip(value: object, length: int = 80) -> str:
    """Return text on one line, cut to at most ``length`` characters."""
    head = str(value)[: 4 * length]
    text = " ".join(head.split())
    cut = len(text) > length or len(head) < len(str(value))
    return text[: length - 1].rstrip() + "…" if cut else text
