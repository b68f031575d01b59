"""The figures of the report, each drawn from plain data."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any, NamedTuple

import numpy as np

from probgap.report._details import BOUNDARY_METHODS
from probgap.report._optional import load
from probgap.report._panels import draw_gaps, draw_panels
from probgap.report._rows import CLEAN, NAIVE, OURS
from probgap.report._svg import (
    ACCENT,
    CARD,
    INK,
    MARKS,
    MUTED,
    OTHER_MARK,
    RULE,
    as_svg,
    drawing,
    for_file,
    for_page,
)
from probgap.report._text import MINUS, fixed

_LEAST, _MOST = -0.75, 1.75  # shares beyond these are drawn there, with an arrow


class Picture(NamedTuple):
    """A figure in its two forms, and what to say of it.

    Attributes
    ----------
    name : str
        Name of the file, without its ending.
    label : str
        What it shows, for those who do not see it.
    page, file : str
        SVG to put into a page, and SVG for a file of its own.
    """

    name: str
    label: str
    page: str
    file: str


def draw_all(summary: dict[str, Any]) -> dict[str, Picture]:
    """Draw every figure that the data suffice for, by name."""
    pictures = {}
    if any(block["run"]["measure"] for block in summary["blocks"]):
        pictures["shares"] = _picture("shares", _SHARES_LABEL, _draw_shares, summary)
    for number, ranking in enumerate(summary["statistics"]["rankings"], start=1):
        name = f"ranks-{number}"
        order = ", ".join(
            f"{method} {rank:.2f}"
            for method, rank in zip(ranking["methods"], ranking["ranks"], strict=True)
        )
        label = f"Average ranks, best first: {order}."
        pictures[name] = _picture(name, label, _draw_ranks, ranking)
    if summary["panels"]:
        label = "Three panels: true labels, observed labels, labels after relabelling."
        pictures["panels"] = _picture("panels", label, draw_panels, summary["panels"])
        label = "Histogram of observed gaps, with the boundary and the undecided zone."
        pictures["gaps"] = _picture("gaps", label, draw_gaps, summary["panels"])
    if summary["boundaries"]:
        label = "Estimated against true boundary, one small panel for each data set."
        data = summary["boundaries"]
        pictures["boundaries"] = _picture("boundaries", label, _draw_boundaries, data)
    return pictures


_SHARES_LABEL = (
    "Recovered share of each method in each block: left in this run, right as the "
    "paper prints. The numbers are in the tables below."
)


def _picture(
    name: str, label: str, draw: Callable[[Any, str], str], data: Any
) -> Picture:
    svg = draw(data, name)
    text = escape(label)
    return Picture(name, label, for_page(svg, text), for_file(svg, text))


def mark_of(method: str) -> dict[str, Any]:
    """Give the mark of a method, as keywords for matplotlib."""
    colour, shape, filled = MARKS.get(method, OTHER_MARK)
    size = 9.0 if method == OURS else 6.0
    return {
        "marker": shape,
        "markersize": size,
        "color": colour,
        "markerfacecolor": colour if filled else CARD,
        "markeredgecolor": colour if method != OURS else CARD,
        "linestyle": "none",
        "zorder": 4 if method == OURS else 3,
        "clip_on": False,
    }


def _key(method: str) -> Any:
    """Make an entry of a legend; drawn on no axes, so that it takes no room there."""
    return load("matplotlib.lines").Line2D([], [], label=method, **mark_of(method))


def _draw_shares(summary: dict[str, Any], name: str) -> str:
    blocks = summary["blocks"]
    methods = [m for m in summary["run"]["methods"] if m not in (NAIVE, CLEAN)]
    height = 1.5 + 0.36 * len(blocks)
    with drawing(8.6, height, 1, 2, sharex=True, sharey=True) as (figure, axes):
        sides = [
            ("run", "This run", OURS),
            ("paper", "The paper, as printed", "PGPU"),
        ]
        for ax, (side, title, own) in zip(axes, sides, strict=True):
            ax.set_title(title, weight="bold", pad=10)
            ax.axvline(0.0, color=MUTED, lw=1.0, zorder=1)
            ax.axvline(1.0, color=MUTED, lw=1.0, ls=(0, (4, 3)), zorder=1)
            for position, block in enumerate(blocks):
                ax.axhline(position, color=RULE, lw=0.6, zorder=0)
                _draw_block(ax, position, block[side])
                _write_share(ax, position, block[side]["methods"].get(own))
            _write_at_edge(ax, -0.8, own, MARKS[own][0])
            ax.spines[["left", "bottom"]].set_visible(False)
            ax.tick_params(length=0)
            ax.set(xlim=(_LEAST - 0.2, _MOST + 0.75), ylim=(len(blocks) - 0.5, -0.7))
            ax.set_xticks([-0.5, 0.0, 0.5, 1.0, 1.5])
            ax.set_xticklabels([fixed(-0.5, 1), "0\nnaive", "0.5", "1\nclean", "1.5"])
        axes[0].set_yticks(range(len(blocks)), [block["label"] for block in blocks])
        for label in axes[0].get_yticklabels():
            label.set_parse_math(False)
        printed = [m for b in blocks for m in b["paper"]["methods"]]
        shown = [*methods, *(m for m in MARKS if m in printed and m not in methods)]
        handles = [_key(method) for method in sorted(shown, key=lambda m: m != OURS)]
        legend = figure.legend(
            handles=handles,
            loc="outside upper left",
            ncols=7,
            handletextpad=0.1,
            columnspacing=1.2,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        return as_svg(figure, name)


def _draw_block(ax: Any, position: int, side: dict[str, Any]) -> None:
    if side["measure"] != "share":
        cost = f"clean {MINUS} naive under half a point"
        why = cost if side["measure"] else "not run"
        ground = {"facecolor": CARD, "edgecolor": "none", "pad": 1.5}
        style = {"color": MUTED, "fontsize": 8.5, "bbox": ground}
        ax.text(0.05, position, why, va="center", **style)
        return
    for method, shares in side["methods"].items():
        share = shares["share"]
        if method in (NAIVE, CLEAN) or share is None:
            continue
        at = float(np.clip(share, _LEAST, _MOST))
        ax.plot(at, position, **mark_of(method))
        if at != share:
            ax.annotate(
                "←" if at < 0 else "→",
                (at, position),
                xytext=(-11 if at < 0 else 11, 0),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=9,
                color=MUTED,
            )


def _write_share(ax: Any, position: int, shares: dict[str, Any] | None) -> None:
    """Write a share in the column to the right of the marks."""
    if shares and shares["share"] is not None:
        colour = MARKS[shares["method"]][0]
        _write_at_edge(ax, position, fixed(shares["share"]), colour)


def _write_at_edge(ax: Any, position: float, text: str, colour: str) -> None:
    ax.annotate(
        text,
        (1.0, position),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="center",
        fontsize=9,
        weight="bold",
        color=colour,
        bbox={"facecolor": CARD, "edgecolor": "none", "pad": 1.0},
        annotation_clip=False,
    )


def _draw_ranks(ranking: dict[str, Any], name: str) -> str:
    """Draw methods on a line of ranks; bars join those too close to tell apart."""
    methods, ranks = ranking["methods"], ranking["ranks"]
    gap = ranking["critical_difference"]
    half = (len(methods) + 1) // 2
    bars = _cliques(ranks, gap)
    depth = 1.0 + 0.32 * len(bars)
    with drawing(7.6, 0.7 + 0.27 * (half + 0.4 * len(bars)) + 0.25) as (figure, ax):
        ax.set(xlim=(0.2, len(methods) + 0.8), ylim=(depth + half - 0.6, -1.1))
        ax.set_axis_off()
        ax.plot([1, len(methods)], [0, 0], color=INK, lw=1.0)
        for tick in range(1, len(methods) + 1):
            ax.plot([tick, tick], [0, -0.15], color=INK, lw=1.0)
            ax.text(tick, -0.3, str(tick), ha="center", va="bottom", color=MUTED)
        for level, (first, last) in enumerate(bars):
            y = 0.45 + 0.32 * level
            ends = [ranks[first] - 0.05, ranks[last] + 0.05]
            ax.plot(ends, [y, y], color=INK, lw=3.5, solid_capstyle="round")
        for place, (method, rank) in enumerate(zip(methods, ranks, strict=True)):
            left = place < half
            y = depth + (place if left else len(methods) - 1 - place)
            edge = 0.9 if left else len(methods) + 0.1
            colour = ACCENT if method == OURS else MUTED
            width = 1.6 if method == OURS else 0.9
            ax.plot([rank, rank, edge], [0, y, y], color=colour, lw=width)
            text = f"{method} {rank:.2f}" if left else f"{rank:.2f} {method}"
            ax.text(
                edge + (-0.05 if left else 0.05),
                y,
                text,
                ha="right" if left else "left",
                va="center",
                color=colour if method == OURS else INK,
                weight="bold" if method == OURS else "normal",
                parse_math=False,
            )
        _draw_ruler(ax, len(methods), gap)
        return as_svg(figure, name)


def _draw_ruler(ax: Any, n_methods: int, gap: float) -> None:
    end = min(1.0 + gap, n_methods + 0.6)
    ax.plot([1.0, end], [-0.95, -0.95], color=MUTED, lw=1.5)
    text = f"critical difference {gap:.2f}"
    ax.text(end + 0.08, -0.95, text, va="center", color=MUTED, fontsize=9)


def _cliques(ranks: list[float], gap: float) -> list[tuple[int, int]]:
    """Find the longest runs of ranks within the critical difference."""
    spans = [
        (i, max(j for j, rank in enumerate(ranks) if rank - ranks[i] < gap))
        for i in range(len(ranks))
    ]
    return [
        (first, last)
        for place, (first, last) in enumerate(spans)
        if last > first and all(last > other for _, other in spans[:place])
    ]


def _draw_boundaries(groups: list[dict[str, Any]], name: str) -> str:
    data_sets = list(dict.fromkeys(group["data"] for group in groups))
    columns = min(4, len(data_sets))
    lines = -(-len(data_sets) // columns)
    size = (0.5 + 2.1 * columns if columns > 1 else 3.6, 0.7 + 2.2 * lines)
    options = {"squeeze": False, "sharex": True, "sharey": True}
    with drawing(*size, lines, columns, **options) as (figure, axes):
        for ax, data in zip(axes.flat, data_sets, strict=False):
            ax.plot([-1, 0], [-1, 0], color=MUTED, lw=0.8, ls=(0, (4, 3)), zorder=1)
            ax.set_title(data, parse_math=False)
            ax.set_xlabel("true l")
            ax.tick_params(labelbottom=True)
            ax.set(xlim=(-1.05, 0.05), ylim=(-1.05, 0.05), box_aspect=1)
            ax.set(xticks=[-1, -0.5, 0], yticks=[-1, -0.5, 0])
            ax.tick_params(labelcolor=MUTED)
            for group in groups:
                if group["data"] == data:
                    true = [point["true"] for point in group["points"]]
                    found = [point["estimated"] for point in group["points"]]
                    ax.plot(true, found, **mark_of(group["method"]))
        for ax in axes.flat[len(data_sets) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            ax.set_ylabel("estimated l")
        shown = {group["method"] for group in groups}
        handles = [_key(method) for method in BOUNDARY_METHODS[::-1] if method in shown]
        figure.legend(handles=handles, loc="outside upper left", ncols=2)
        return as_svg(figure, name)
