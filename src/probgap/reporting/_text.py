"""Text, numbers and times as the page shows them, and its headline."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from scipy.stats import binomtest

from probgap._core.errors import load_library
from probgap._core.output import (
    count,
    count_range,
    duration,
    fixed,
    percent,
    plural,
    signed,
    whole,
)

_MOST_VALUES = 6
_N_CHECKED = 50  # rows for a person to check
_NUMERAL = re.compile(r"[+-]?[\d,.\s]*\d[\d,.]*(e[+-]?\d+)?%?", re.IGNORECASE)
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


def headline(found: dict[str, Any], *, doubtful: bool = False) -> str:
    """Return the headline of what was found, doubtful where checks speak against it."""
    words: str = found["headline"]
    if not doubtful or words.startswith("No"):
        return words
    return f"Perhaps {words[0].lower()}{words[1:]}"


def sample_to_check(found: dict[str, Any]) -> dict[str, Any]:
    """Return how many rows to check by hand, and what the answers would tell.

    One row in ``step`` is drawn, all of them where they are few. ``positive`` is how many
    of these the best estimate expects, at least one, and ``range`` the count if so.
    """
    n_rows = found["unlabelled"]
    step = max(1, n_rows // _N_CHECKED)
    n = n_rows if step == 1 else _N_CHECKED
    expected = round(n * found["hidden"] / max(1, n_rows))
    positive = min(max(expected, 1), n)
    words = ""
    if step > 1:
        share = binomtest(positive, n).proportion_ci(found["level"], method="wilson")
        words = count_range(share.low * n_rows, share.high * n_rows, n_rows)
    return {
        "n": n,
        "step": step,
        "positive": positive,
        "expected": positive == expected,
        "range": words,
    }


def value_columns(rows: Sequence[dict[str, Any]]) -> list[tuple[str, bool]]:
    """Return the columns to show beside ranked rows, and whether each is numeric."""
    names = list(dict.fromkeys(name for row in rows for name in row["values"]))
    cells = {
        name: [row["values"].get(name, "").strip() for row in rows] for name in names
    }
    return [
        (name, all(_NUMERAL.fullmatch(cell) for cell in cells[name] if cell))
        for name in names[:_MOST_VALUES]
    ]


@cache
def sentences() -> dict[str, dict[str, Any]]:
    """Return what the report says of checks, and its warnings."""
    text = files("probgap.reporting").joinpath("sentences.toml").read_text("utf-8")
    return tomllib.loads(text)


def page_environment() -> Any:
    """Return the templates and filters of our pages."""
    return _make_environment(load_library("jinja2", extra="report", purpose="a report"))


@cache
def _make_environment(jinja2: Any) -> Any:
    """Return the environment, made once: compiling templates takes longest."""
    # The latter has the styles that others share.
    places = ("probgap.reporting", "templates"), ("probgap._core", "")
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(*place) for place in places]),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    writers = (clip, count, duration, fixed, moment, p_words, percent, plural)
    for write in (*writers, signed, whole):
        environment.filters[write.__name__] = write
    environment.filters["svg"] = jinja2.filters.Markup
    return environment
