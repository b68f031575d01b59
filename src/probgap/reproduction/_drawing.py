"""Figures in our style as SVG text: for a file of its own, and inside a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, NamedTuple

from probgap._core.pages import load

# Colours by role. In a page each becomes a CSS variable, so that the reader's light or
# dark setting reaches the figures.
INK, MUTED, RULE, CARD = "#1b1c20", "#62646d", "#d5d7de", "#fefefe"
ACCENT, WARM, AMBER = "#0067a8", "#c14a00", "#9a6a00"
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    CARD: "card",
    ACCENT: "accent",
    WARM: "warm",
    AMBER: "amber",
}
_STYLE = {
    "svg.fonttype": "none",
    "path.simplify": False,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "text.parse_math": False,
    "axes.labelcolor": INK,
    "axes.edgecolor": RULE,
    "axes.facecolor": "none",
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}
# On a narrow screen a figure scrolls rather than shrink below this width, in pixels.
_NARROWEST = 540
_FAMILY = "system-ui, -apple-system, Roboto, Helvetica, Arial, sans-serif"


class Picture(NamedTuple):
    """A figure: what it shows, as SVG inside a page, and as SVG for a file."""

    label: str
    page: str
    file: str


@contextmanager
def our_style() -> Iterator[None]:
    """Draw in our style, whatever the user's settings."""
    matplotlib = load("matplotlib")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of a size in inches."""
    figures = load("matplotlib.figure")
    return figures.Figure(figsize=(width, height), layout="constrained")


def as_picture(figure: Any, name: str, label: str) -> Picture:
    """Return the figure as SVG: coloured by its page, and light in a file of its own."""
    svg, text = _as_svg(figure, name), escape(label)
    ground = f'<title>{text}</title><rect width="100%" height="100%" fill="{CARD}"/>'
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    file = head + re.sub("<svg[^>]*>", lambda m: m[0] + ground, svg, count=1)
    width = round(figure.get_figwidth() * 96)
    style = f"max-width: {width}px; min-width: {min(width, _NARROWEST)}px"
    attributes = f'<svg role="img" aria-label="{text}" style="{style}"'
    page = re.sub(r'(<svg.*?) width="[\d.]+pt" height="[\d.]+pt"', r"\1", svg, count=1)
    page = page.replace("<svg", attributes, 1)
    for colour, variable in _VARIABLES.items():
        page = page.replace(colour, f"var(--{variable})")
    return Picture(label, page, file)


def _as_svg(figure: Any, name: str) -> str:
    """Return the figure as SVG that is the same whenever it is written."""
    load("matplotlib").rcParams["svg.hashsalt"] = name
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", _FAMILY, svg)
    svg = re.sub(r"\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}", svg)
    # Several figures share a page, where an id must be unique.
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
