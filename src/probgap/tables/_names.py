"""Columns asked for by name: which are not there, and what may have been meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from probgap._core.errors import InvalidInputError


def check_columns(
    wanted: Iterable[str], columns: Sequence[str], *, name: str = "The table"
) -> None:
    """Raise, with names alike, if a wanted column is not among ``columns``."""
    have = set(columns)
    lacking = [column for column in wanted if column not in have]
    if not lacking:
        return
    close = get_close_matches(lacking[0], columns, n=3, cutoff=0.6)
    shown = ", ".join(map(repr, close or columns[:8]))
    more = "" if close or len(columns) <= 8 else f" and {len(columns) - 8} more"
    what = f"columns {', '.join(map(repr, lacking[:8]))}"
    if len(lacking) == 1:
        what = f"a column {lacking[0]!r}"
    elif len(lacking) > 8:
        what += f" and {len(lacking) - 8} more"
    did = "Did you mean" if close else "It has"
    msg = f"{name} must have {what}. Got none; {did.lower()} {shown}{more}"
    raise InvalidInputError(msg + ("?" if close else "."))
