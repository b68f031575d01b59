"""Figures in our style as SVG text: for a file of its own, and inside a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from probgap._core.pages import load

# Colours by role. In a page each becomes a CSS variable, so that the reader's light or
# dark setting reaches the figures.
INK, MUTED, RULE, CARD = "#1b1c20", "#62646d", "#d5d7de", "#fefefe"
ACCENT, WARM, AMBER, WASH = "#0067a8", "#c14a00", "#9a6a00", "#e9eef4"
BAR = "#b3b6c0"
_VARIABLES = dict(
    zip(
        (INK, MUTED, RULE, CARD, ACCENT, WARM, AMBER, WASH, BAR),
        ("ink", "muted", "rule", "card", "accent", "warm", "amber", "wash", "bar"),
        strict=True,
    )
)
_STYLE = {
    "svg.fonttype": "none",
    "path.simplify": False,
    "font.family": "DejaVu Sans",
    "text.color": INK,
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


@contextmanager
def drawing(width: float, height: float, *shape: int, **options: Any) -> Iterator[Any]:
    """Yield an empty figure in our style and its axes, whatever the user's settings."""
    matplotlib = load("matplotlib")
    figures = load("matplotlib.figure")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        figure = figures.Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots(*(shape or (1, 1)), **options)


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


def for_file(svg: str, title: str) -> str:
    """Return a standalone picture: with a title, and a light background of its own."""
    background = f'<rect width="100%" height="100%" fill="{CARD}"/>'
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + _open_tag(svg, f"<title>{title}</title>{background}", "")


def for_page(svg: str, label: str) -> str:
    """Return part of a page: labelled for screen readers, coloured by the page."""
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    size = re.search(r' width="([\d.]+)pt" height="[\d.]+pt"', svg)
    width = round(float(size[1]) * 4.0 / 3.0) if size else _NARROWEST
    svg = svg.replace(size[0], "", 1) if size else svg
    style = f"max-width: {width}px; min-width: {min(width, _NARROWEST)}px"
    return _open_tag(svg, "", f' role="img" aria-label="{label}" style="{style}"')


def _open_tag(svg: str, inside: str, attributes: str) -> str:
    opened = re.compile(r"<svg([^>]*)>")
    return opened.sub(lambda m: f"<svg{m[1]}{attributes}>{inside}", svg, count=1)
