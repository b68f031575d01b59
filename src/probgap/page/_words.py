"""The sentences of the page's first screen, and how it writes numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from probgap._core.pages import NONE, count, plural
from probgap.page._clean import clip
from probgap.page._record import RankedRow, TableRecord

if TYPE_CHECKING:
    from probgap.diagnostics.account import Account, Found

# Beyond this share of the unlabelled rows, an upper end says nothing.
_ALL = 0.95


def percent(value: float | None) -> str:
    """Write a share in percent; never as all or nothing unless it is."""
    if value is None:
        return NONE
    if 0.0 < value < 0.005:
        return "<1%" if value < 0.001 else f"{100 * value:.1f}%"
    if 0.995 < value < 1.0:
        return ">99%"
    return f"{100 * value:.0f}%"


def p_words(value: float) -> str:
    """Write a p-value to two digits that count."""
    if value < 0.0001:
        return "p\u00a0<\u00a00.0001"
    return f"p\u00a0=\u00a0{float(f'{value:.2g}'):.10g}"


def whole_number(value: float | None) -> str:
    """Write a number rounded to a whole one."""
    return NONE if value is None else count(round(value))


def between(ends: tuple[float, float]) -> str:
    """Write an interval of counts."""
    return f"between {whole_number(ends[0])} and {whole_number(ends[1])}"


def day(started: str) -> str:
    """Write the day of a time stamp; the stamp itself, cut, where it is none."""
    try:
        stamp = datetime.fromisoformat(started)
    except ValueError:
        return clip(started, 40)
    return f"{stamp.day} {stamp:%B %Y}"


def moment(started: str) -> str:
    """Write a time stamp to the minute; as it is, cut, where it is none."""
    try:
        stamp = datetime.fromisoformat(started)
    except ValueError:
        return clip(started, 40)
    zone = f" {stamp.tzname()}" if stamp.tzinfo else ""
    return f"{stamp.day} {stamp:%B %Y, %H:%M}{zone}"


def headline(found: Found, *, doubtful: bool = False) -> str:
    """Answer in one line how many there are, and no more firmly than is due."""
    among = f"among {plural(found.unlabelled, 'unlabelled row')}"
    if max(found.hidden, *found.hidden_interval) < 0.5:
        return f"No sign of hidden positives {among}"
    words = f"{_span(found.hidden_interval, found.unlabelled)} more positives {among}"
    return f"Perhaps {words[0].lower()}{words[1:]}" if doubtful else words


def _span(ends: tuple[float, float], most: int) -> str:
    """Write a range of counts by the ends that say something."""
    low, high = ends
    if low < 0.5:
        return f"Up to {whole_number(high)}"
    if high > _ALL * most:
        return f"At least {whole_number(low)}"
    if round(low) == round(high):
        return f"About {whole_number(high)}"
    return between(ends).capitalize()


def lead(found: Found) -> str:
    """Return what the count means for the table."""
    total = count(found.labelled + round(found.hidden))
    return (
        f"You labelled {count(found.labelled)} of {plural(found.rows, 'row')} as positive. "
        f"The best estimate is {whole_number(found.hidden)} more, {total} in all "
        f"({percent(found.share_positive)} of the table)."
    )


def how_sure(found: Found) -> tuple[str, str]:
    """Answer how sure the count is, and what that does and does not cover."""
    more = (
        f"A {percent(found.level)} interval. It allows for luck and for several ways in "
        "which labels come about, not for labels that went by something the columns do "
        "not show."
    )
    return f"{between(found.hidden_interval).capitalize()}.", more


def which_ones(found: Found, ranked: Sequence[RankedRow]) -> dict[str, Any]:
    """Answer which rows: how many, and the names of the first few."""
    called = found.called_positive
    return {
        "names": [clip(row.id, 24) if row.id else count(row.row) for row in ranked[:3]],
        "called": f"{plural(called, 'unlabelled row')} {'is' if called == 1 else 'are'}",
    }


def warning_list(account: Account) -> list[dict[str, Any]]:
    """List the warnings, the strong ones first."""
    found = [
        {
            "strong": w.level == "strong",
            "what": clip(w.what, 600),
            "do": clip(w.do, 600),
        }
        for w in account.warnings
    ]
    return sorted(found, key=lambda item: not item["strong"])


def source_line(table: TableRecord, started: str | None) -> list[str]:
    """Return which table this is about, and when it was read."""
    items = [clip(table.name, 60)]
    if table.label and table.positive:
        where = f"{clip(table.label, 40)} = {clip(table.positive, 40)}"
        items.append(f"labelled where {where}")
    return [*items, day(started)] if started else items
