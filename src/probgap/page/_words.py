"""The sentences of the page's first screen, and how it writes numbers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from probgap._core.pages import NONE, count, plural
from probgap.page._clean import clip
from probgap.page._read import Part, interval, number, part, parts, text, whole

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


def day(started: str | None) -> str | None:
    """Write the day of a time stamp; the stamp itself where it is none."""
    if started is None:
        return None
    try:
        moment = datetime.fromisoformat(started)
    except ValueError:
        return started
    return f"{moment.day} {moment:%B %Y}"


def moment(started: str | None) -> str | None:
    """Write a time stamp to the minute; as it is, cut, where it is none."""
    if started is None:
        return None
    try:
        stamp = datetime.fromisoformat(started)
    except ValueError:
        return clip(started, 40)
    zone = f" {stamp.tzname()}" if stamp.tzinfo else ""
    return f"{stamp.day} {stamp:%B %Y, %H:%M}{zone}"


def headline(found: Part, *, doubtful: bool = False) -> str:
    """Answer in one line how many there are, and no more firmly than is due."""
    unlabelled = whole(found, "unlabelled") or 0
    among = f"among {plural(unlabelled, 'unlabelled row')}"
    hidden, ends = number(found, "hidden"), interval(found, "hidden_interval")
    if hidden is None:
        return f"No count of the hidden positives {among}"
    if max(hidden, *(ends or (0.0,))) < 0.5:
        return f"No sign of hidden positives {among}"
    if ends is None:
        return f"Perhaps {plural(round(hidden), 'more positive')} {among}"
    words = f"{_span(ends, unlabelled)} more positives {among}"
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


def lead(found: Part) -> str:
    """Say what the count means for the table."""
    rows, labelled = whole(found, "rows") or 0, whole(found, "labelled") or 0
    words = f"You labelled {count(labelled)} of {plural(rows, 'row')} as positive."
    hidden, share = number(found, "hidden"), number(found, "share_positive")
    if hidden is None:
        return words
    of_all = f" ({percent(share)} of the table)" if share is not None else ""
    total = f"{count(labelled + round(hidden))} in all{of_all}"
    return f"{words} The best estimate is {whole_number(hidden)} more, {total}."


def how_sure(found: Part) -> tuple[str, str]:
    """Answer how sure the count is, and what that does and does not cover."""
    ends = interval(found, "hidden_interval")
    if ends is None:
        more = "No interval could be computed for this table. Trust the order of the "
        return "Not known.", f"{more}list more than the count."
    level = percent(number(found, "level"))
    more = (
        f"A {level} interval. It allows for luck and for several ways in which labels come "
        "about, not for labels that went by something the columns do not show."
    )
    return f"{between(ends).capitalize()}.", more


def which_ones(found: Part, ranked: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer which rows: how many, and the names of the first few."""
    called = whole(found, "called_positive")
    return {
        "names": [row["name"] for row in ranked[:3]],
        "called": None
        if called is None
        else f"{plural(called, 'unlabelled row')} {'is' if called == 1 else 'are'}",
    }


def row_name(row: Part) -> str:
    """Name a row by its id, or by its number where it has none."""
    name = text(row, "id")
    return clip(name, 24) if name else whole_number(number(row, "row"))


def warning_list(account: Part) -> list[dict[str, Any]]:
    """List the warnings, the strong ones first."""
    found = [
        {
            "strong": item.get("level") == "strong",
            "what": clip(item.get("what") or "", 600),
            "do": clip(item.get("do") or "", 600),
        }
        for item in parts(account, "warnings")
    ]
    return sorted(found, key=lambda item: not item["strong"])


def source_line(account: Part) -> list[str]:
    """Say which table this is about, and when it was read."""
    table = part(account, "table")
    items = [clip(text(table, "name") or "a table", 60)]
    label, positive = text(table, "label"), text(table, "positive")
    if label and positive:
        items.append(f"labelled where {clip(label, 40)} = {clip(positive, 40)}")
    when = day(text(part(account, "run"), "started"))
    return [*items, clip(when, 40)] if when else items
