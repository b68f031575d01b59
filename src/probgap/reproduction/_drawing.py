"""Figures in our style as SVG text: for a file of its own, and inside a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from probgap._core.pages import load

# By role. In a page each becomes a CSS variable, so that the reader's light or dark
# setting reaches the figures.
_COLOURS = {
    "ink": "#1b1c20",
    "muted": "#62646d",
    "rule": "#d5d7de",
    "card": "#fefefe",
    "accent": "#0067a8",
    "warm": "#c14a00",
    "amber": "#9a6a00",
}
INK, MUTED, RULE, CARD, ACCENT, WARM, AMBER = _COLOURS.values()
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
_FAMILY = "system-ui, -apple-system, Roboto, Helvetica, Arial, sans-serif"


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


def as_svg(figure: Any, name: str) -> str:
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


def for_file(svg: str) -> str:
    """Return a standalone picture, with a light background of its own."""
    ground = f'<rect width="100%" height="100%" fill="{CARD}"/>'
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + re.sub("<svg[^>]*>", lambda tag: tag[0] + ground, svg, count=1)


def for_page(svg: str, label: str) -> str:
    """Return part of a page: labelled for screen readers, coloured by the page."""
    for name, colour in _COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
