"""Numbers as a reader likes them."""

from __future__ import annotations

from typing import Any

from probgap.report._rows import Score

NONE, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def fixed(value: float | None, digits: int = 2) -> str:
    """Write a number with so many decimals and a true minus sign."""
    if value is None:
        return NONE
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def signed(value: float | None, digits: int = 2) -> str:
    """Write a difference with its sign."""
    text = fixed(value, digits)
    return text if value is None or text.startswith(MINUS) else f"+{text}"


def score(value: Score | None) -> str:
    """Write an accuracy in percent with its standard deviation."""
    if value is None:
        return NONE
    spread = "" if value.sd is None else f" ± {fixed(value.sd)}"
    return fixed(value.mean) + spread


def p_value(value: float | None) -> str:
    """Write a p-value; a very small one as a bound."""
    if value is None:
        return NONE
    return "<\u00a00.0001" if value < 0.0001 else fixed(value, 4)


def verdict(value: bool | None) -> str:
    """Write a yes or a no, with a sign that does not need colour."""
    return NONE if value is None else "✓ yes" if value else "✗ no"


def gain(shares: dict[str, Any] | None, measure: str | None) -> str:
    """Write what a method gains, by share or in points."""
    if shares is None or measure is None:
        return NONE
    value = shares[measure]
    if measure == "share" or value is None:
        return fixed(value)
    return f"{signed(value)} pts"


def duration(seconds: float | None) -> str:
    """Write a time in the units that fit it."""
    if seconds is None:
        return NONE
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s"


def count(value: int) -> str:
    """Write a count with thousands set apart."""
    return f"{value:,}"


def plural(value: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def listed(names: list[str]) -> str:
    """Join names as in a sentence."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


FILTERS = {
    "fixed": fixed,
    "signed": signed,
    "score": score,
    "p_value": p_value,
    "verdict": verdict,
    "gain": gain,
    "duration": duration,
    "count": count,
    "plural": plural,
    "listed": listed,
}
