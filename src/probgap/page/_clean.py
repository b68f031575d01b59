"""Text from somebody's table, made harmless before a page shows it."""

from __future__ import annotations

import re

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
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
    return text[: length - 1].rstrip() + _ELLIPSIS if cut else text
