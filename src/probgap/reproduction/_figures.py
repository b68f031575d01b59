"""The figures of the report as SVG, for files of their own and inside a page."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

import numpy as np

from probgap._core.output import MINUS, fixed, load
from probgap._core.types import Array
from probgap.reproduction._summary import NAIVE, OURS, PLAIN, Facts

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
_, _MUTED, _RULE, _CARD, _ACCENT, _WARM, _AMBER = _COLOURS.values()
_FAMILY = "system-ui, -apple-system, Roboto, Helvetica, Arial, sans-serif"
# Ours stands out, the paper's own methods come next, the others stay grey; the shape of
# a mark distinguishes as its colour does.
_MARKS: dict[str, tuple[str, str, bool]] = {
    OURS: (_ACCENT, "o", True),
    PLAIN: (_ACCENT, "o", False),
    "PGPU": (_WARM, "D", True),
    "PGPUcv": (_WARM, "D", False),
    "Elkan": (_MUTED, "s", False),
    "Natarajan": (_MUTED, "v", False),
    "Liu": (_MUTED, "^", False),
}
_OTHER_MARK = (_AMBER, "P", True)
_DASHED = (0, (4, 3))
_LEAST, _MOST = -0.75, 1.75  # shares beyond these are drawn there, with an arrow
_GROUND = {"facecolor": _CARD, "edgecolor": "none", "pad": 1.5}  # of text across lines
_DOT, _CROSS, _SPECK = "●", "\N{MULTIPLICATION SIGN}", "·"
_STROKES = {_DOT: 3.2, _CROSS: 0.8, _SPECK: 2.0}  # width in points
_ARM = 0.011  # of a cross, as a share of the picture


def draw_all(summary: Facts) -> dict[str, str]:
    """Draw every figure for which there are data; return SVG by name of its file."""
    figures = {"shares": _draw_shares, "panels": _draw_panels}
    figures["boundaries"] = _draw_boundaries
    style = "probgap.reproduction.figures"  # whatever the user's settings
    with load("matplotlib.style").context(style, after_reset=True):
        drawn = {name: draw(summary) for name, draw in figures.items()}
        return {name: _as_svg(figure, name) for name, figure in drawn.items() if figure}


def for_file(svg: str) -> str:
    """Return a standalone picture, with a light background of its own."""
    ground = f'<rect width="100%" height="100%" fill="{_CARD}"/>'
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + re.sub("<svg[^>]*>", lambda tag: tag[0] + ground, svg, count=1)


def for_page(svg: str, label: str) -> str:
    """Return an element of a page, labelled for screen readers, in its colours."""
    for name, colour in _COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


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


def _mark(method: str) -> Facts:
    """Return the mark of a method, as keywords for matplotlib."""
    colour, shape, filled = _MARKS.get(method, _OTHER_MARK)
    ours = method == OURS
    return {
        "marker": shape,
        "markersize": 9.0 if ours else 6.0,
        "color": colour,
        "markerfacecolor": colour if filled else _CARD,
        "markeredgecolor": _CARD if ours else colour,
        "linestyle": "none",
        "zorder": 4 if ours else 3,
        "clip_on": False,
    }


def _add_legend(figure: Any, methods: list[str]) -> None:
    """Add a legend of lines that are on no axes, so that it takes no room there."""
    line = load("matplotlib.lines").Line2D
    methods = sorted(methods, key=lambda method: method != OURS)
    handles = [line([], [], label=method, **_mark(method)) for method in methods]
    options = {"ncols": 7, "handletextpad": 0.1, "columnspacing": 1.2}
    figure.legend(handles=handles, loc="outside upper left", **options)


def _draw_shares(summary: Facts) -> Any:
    blocks = summary["blocks"]
    if not any(block["run"]["measure"] for block in blocks):
        return None
    figure = load("matplotlib.figure").Figure((8.6, 1.5 + 0.36 * len(blocks)))
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    titles = {"run": "This run", "paper": "The paper, as printed"}
    for ax, (side, title) in zip(axes, titles.items(), strict=True):
        ax.set_title(title, weight="bold", pad=10)
        ax.axvline(0.0, color=_MUTED, lw=1.0, zorder=1)
        ax.axvline(1.0, color=_MUTED, lw=1.0, ls=_DASHED, zorder=1)
        for position, block in enumerate(blocks):
            ax.axhline(position, color=_RULE, lw=0.6, zorder=0)
            _draw_block(ax, position, block[side])
        ax.spines[["left", "bottom"]].set_visible(False)
        ax.tick_params(length=0)
        ax.set(xlim=(_LEAST - 0.2, _MOST + 0.2), ylim=(len(blocks) - 0.5, -0.7))
        ticks = {-0.5: fixed(-0.5, 1), 0: "0\nnaive", 0.5: "0.5", 1: "1\nclean"}
        ax.set_xticks([*ticks, 1.5], [*ticks.values(), "1.5"])
    axes[0].set_yticks(range(len(blocks)), [block["label"] for block in blocks])
    _add_legend(figure, summary["share_methods"])
    return figure


def _draw_block(ax: Any, position: int, side: Facts) -> None:
    if side["measure"] != "share":
        cost = f"clean {MINUS} naive under half a point"
        why = cost if side["measure"] else "not run"
        style = {"color": _MUTED, "fontsize": 8.5, "va": "center", "bbox": _GROUND}
        ax.text(0.05, position, why, **style)
        return
    for method, share in side["share"].items():
        if method == NAIVE:
            continue
        at = float(np.clip(share, _LEAST, _MOST))
        ax.plot(at, position, **_mark(method))
        if at != share:
            style = {"ha": "center", "va": "center", "fontsize": 9, "color": _MUTED}
            sign, shift = ("←", -11) if at < 0 else ("→", 11)
            offset = {"xytext": (shift, 0), "textcoords": "offset points"}
            ax.annotate(sign, (at, position), **offset, **style)


def _draw_boundaries(summary: Facts) -> Any:
    groups = summary["boundaries"]
    data_sets = list(dict.fromkeys(group["data"] for group in groups))
    if not data_sets:
        return None
    columns = min(4, len(data_sets))
    lines = -(-len(data_sets) // columns)
    size = max(3.6, 0.5 + 2.1 * columns), 0.7 + 2.2 * lines
    figure = load("matplotlib.figure").Figure(size)
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for ax, data in zip(axes.flat, data_sets, strict=False):
        ax.plot([-1, 0], [-1, 0], color=_MUTED, lw=0.8, ls=_DASHED, zorder=1)
        ax.set(xlim=(-1.05, 0.05), ylim=(-1.05, 0.05), box_aspect=1)
        ax.set(xticks=[-1, -0.5, 0], yticks=[-1, -0.5, 0], title=data, xlabel="true l")
        ax.tick_params(labelbottom=True, labelcolor=_MUTED)
        for group in groups:
            if group["data"] == data:
                ax.plot(group["true"], group["estimated"], **_mark(group["method"]))
    for ax in axes.flat[len(data_sets) :]:
        ax.set_axis_off()
    for ax in axes[:, 0]:
        ax.set_ylabel("estimated l")
    _add_legend(figure, list(dict.fromkeys(group["method"] for group in groups)))
    return figure


def _draw_panels(summary: Facts) -> Any:
    """Draw the points with true, observed and relabelled labels."""
    data = summary["panels"]
    if data is None:
        return None
    points = np.column_stack([data["x1"], data["x2"]])
    true, observed, new = data["true"], data["observed"], data["relabelled"]
    panels = {
        "Clean data": [
            (_DOT, "positive", true == 1, _WARM),
            (_CROSS, "negative", true != 1, _ACCENT),
        ],
        "PU data": [
            (_DOT, "labelled", observed == 1, _WARM),
            (_CROSS, "unlabelled", observed != 1, _MUTED),
        ],
        "Relabelled": [
            (_DOT, "positive", new == 1, _WARM),
            (_CROSS, "negative", new == 0, _ACCENT),
            (_SPECK, "left out", new < 0, _MUTED),
        ],
    }
    extent = np.ptp(points, axis=0)
    margin = 0.04 * extent + 1e-9
    (left, bottom), (right, top) = (
        points.min(axis=0) - margin,
        points.max(axis=0) + margin,
    )
    figure = load("matplotlib.figure").Figure((8.6, 3.6))
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    for ax, (title, groups) in zip(axes, panels.items(), strict=True):
        ax.set_title(title, weight="bold")
        ax.set(xlim=(left, right), ylim=(bottom, top))
        ax.set(xticks=[], yticks=[], box_aspect=1)
        ax.spines[:].set(visible=True, color=_RULE)
        for sign, _, chosen, colour in reversed(groups):
            _scatter(ax, points[chosen], sign, colour, _ARM * extent.max())
        key = [f"{sign} {name} {chosen.sum()}" for sign, name, chosen, _ in groups]
        ax.set_xlabel("\u2003".join(key), fontsize=9, color=_MUTED, linespacing=1.5)
    return figure


def _scatter(ax: Any, points: Array, sign: str, colour: str, arm: float) -> None:
    """Draw all points of a kind as one line with breaks, which keeps the file small."""
    strokes = [(arm, arm), (arm, -arm)] if sign == _CROSS else [(0.0, 0.0)]
    gap = np.full_like(points, np.nan)
    ends = [np.stack([points - end, points + end, gap], axis=1) for end in strokes]
    x, y = np.concatenate(ends).reshape(-1, 2).T
    style = {"lw": _STROKES[sign], "solid_capstyle": "round", "zorder": 1}
    ax.plot(x, y, color=colour, **style)
