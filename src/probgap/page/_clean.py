"""Text from somebody's table, made harmless before a page shows it."""

from __future__ import annotations

import re

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# Characters that turn the direction of what follows, or that are not seen at all.
_HIDDEN = re.compile(
    "[\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# What HTML does not allow in a page, and halves of characters that no file can hold.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]"
)
# More marks upon one letter than any language has climb into the lines above.
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u20d0-\u20ff]"
_PILES = re.compile(f"({_MARK}{{4}}){_MARK}+")


def harmless(value: object) -> object:
    """Show what would be hidden, and replace what no page may hold.

    It leaves markup of our own, numbers and all else that is not text alone; escaping
    is the template's work.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    shown = _HIDDEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", value)
    return _PILES.sub(r"\1", _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", shown))


def clip(value: object, length: int = 80) -> str:
    """Cut long text, on one line, to so many characters."""
    head = str(value)[: 4 * length]
    text = " ".join(head.split())
    cut = len(text) > length or len(head) < len(str(value))
    return text[: length - 1].rstrip() + _ELLIPSIS if cut else text
