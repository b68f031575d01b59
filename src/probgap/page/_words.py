"""Numbers and times as the page formats them, and its headline."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from probgap._core.output import NONE, count, plural
from probgap.page._clean import clip

if TYPE_CHECKING:
    from probgap.diagnostics.account import Found

# An upper end beyond this share of the unlabelled rows says nothing.
_ALL = 0.95


def percent(value: float | None) -> str:
    """Format a share in percent; as 0% or 100% only if it is exactly that."""
    if value is None:
        return NONE
    if 0.0 < value < 0.005:
        return "<1%" if value < 0.001 else f"{100 * value:.1f}%"
    if 0.995 < value < 1.0:
        return ">99%"
    return f"{100 * value:.0f}%"


def p_words(value: float) -> str:
    """Format a p-value to two significant digits."""
    if value < 0.0001:
        return "p\u00a0<\u00a00.0001"
    return f"p\u00a0=\u00a0{float(f'{value:.2g}'):.10g}"


def whole_number(value: float | None) -> str:
    """Format a number, rounded to an integer."""
    return NONE if value is None else count(round(value))


def moment(started: str, *, day_only: bool = False) -> str:
    """Format a time stamp to the minute or day; other text is returned, shortened."""
    try:
        stamp = datetime.fromisoformat(started)
    except ValueError:
        return clip(started, 40)
    day = f"{stamp.day} {stamp:%B %Y}"
    return day if day_only else f"{day}, {stamp:%H:%M %Z}".rstrip()


def headline(found: Found, *, doubtful: bool = False) -> str:
    """Return one line on how many there are, as firm as the interval allows."""
    among = f"among {plural(found.unlabelled, 'unlabelled row')}"
    low, high = found.hidden_interval
    if max(found.hidden, high) < 0.5:
        return f"No sign of hidden positives {among}"
    if low < 0.5:
        span = f"up to {whole_number(high)}"
    elif high > _ALL * found.unlabelled:
        span = f"at least {whole_number(low)}"
    elif round(low) == round(high):
        span = f"about {whole_number(high)}"
    else:
        span = f"between {whole_number(low)} and {whole_number(high)}"
    span = f"perhaps {span}" if doubtful else span
    return f"{span[0].upper()}{span[1:]} more positives {among}"
