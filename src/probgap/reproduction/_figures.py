"""The figures of the report, each drawn from plain data."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any, NamedTuple

import numpy as np

from probgap._core.pages import MINUS, fixed, load
from probgap._core.types import Array, Mask
from probgap.reproduction._drawing import (
    ACCENT,
    AMBER,
    BAR,
    CARD,
    INK,
    MUTED,
    RULE,
    WARM,
    WASH,
    as_svg,
    drawing,
    for_file,
    for_page,
)
from probgap.reproduction._scores import CLEAN, NAIVE, OURS
from probgap.reproduction._summary import BOUNDARY_METHODS

# Ours stands out, the paper's own methods come next, the others stay grey; the shape of
# a mark distinguishes as its colour does.
_MARKS: dict[str, tuple[str, str, bool]] = {
    "probgap": (ACCENT, "o", True),
    "probgap C=1": (ACCENT, "o", False),
    "PGPU": (WARM, "D", True),
    "PGPUcv": (WARM, "D", False),
    "Elkan": (MUTED, "s", False),
    "Natarajan": (MUTED, "v", False),
    "Liu": (MUTED, "^", False),
}
_OTHER_MARK = (AMBER, "P", True)
_DASHED = (0, (4, 3))
_LEAST, _MOST = -0.75, 1.75  # shares beyond these are drawn there, with an arrow
_BINS = np.linspace(-1.0, 1.0, 51)


class Picture(NamedTuple):
    """A figure: what it shows, as SVG inside a page, and as SVG for a file."""

    label: str
    page: str
    file: str


def draw_all(summary: dict[str, Any]) -> dict[str, Picture]:
    """Draw every figure that the data suffice for, by name of its file."""
    pictures = {}

    def add(name: str, draw: Callable[[Any, str], str], data: Any, label: str) -> None:
        svg, text = draw(data, name), escape(label)
        pictures[name] = Picture(label, for_page(svg, text), for_file(svg, text))

    if any(block["run"]["measure"] for block in summary["blocks"]):
        label = (
            "Recovered share of each method in each block: left in this run, right as "
            "the paper prints. The numbers are in the tables below."
        )
        add("shares", _draw_shares, summary, label)
    for place, ranking in enumerate(summary["statistics"]["rankings"], start=1):
        ranks = zip(ranking["methods"], ranking["ranks"], strict=True)
        order = ", ".join(f"{method} {rank:.2f}" for method, rank in ranks)
        label = f"Average ranks, best first: {order}."
        add(f"ranks-{place}", _draw_ranks, ranking, label)
    if panels := summary["panels"]:
        label = "Three panels: true labels, observed labels, labels after relabelling."
        add("panels", _draw_panels, panels, label)
        label = "Histogram of observed gaps, with the boundary and the undecided zone."
        add("gaps", _draw_gaps, panels, label)
    if groups := summary["boundaries"]:
        label = "Estimated against true boundary, one small panel for each data set."
        add("boundaries", _draw_boundaries, groups, label)
    return pictures


def _mark(method: str) -> dict[str, Any]:
    """Return the mark of a method, as keywords for matplotlib."""
    colour, shape, filled = _MARKS.get(method, _OTHER_MARK)
    ours = method == OURS
    return {
        "marker": shape,
        "markersize": 9.0 if ours else 6.0,
        "color": colour,
        "markerfacecolor": colour if filled else CARD,
        "markeredgecolor": CARD if ours else colour,
        "linestyle": "none",
        "zorder": 4 if ours else 3,
        "clip_on": False,
    }


def _add_legend(figure: Any, methods: list[str], **options: Any) -> None:
    """Add a legend of lines that are on no axes, so that it takes no room there."""
    line = load("matplotlib.lines").Line2D
    handles = [line([], [], label=method, **_mark(method)) for method in methods]
    legend = figure.legend(handles=handles, loc="outside upper left", **options)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _draw_shares(summary: dict[str, Any], name: str) -> str:
    blocks = summary["blocks"]
    height = 1.5 + 0.36 * len(blocks)
    with drawing(8.6, height, 1, 2, sharex=True, sharey=True) as (figure, axes):
        sides = [("run", "This run", OURS), ("paper", "The paper, as printed", "PGPU")]
        for ax, (side, title, own) in zip(axes, sides, strict=True):
            ax.set_title(title, weight="bold", pad=10)
            ax.axvline(0.0, color=MUTED, lw=1.0, zorder=1)
            ax.axvline(1.0, color=MUTED, lw=1.0, ls=_DASHED, zorder=1)
            for position, block in enumerate(blocks):
                ax.axhline(position, color=RULE, lw=0.6, zorder=0)
                _draw_block(ax, position, block[side])
                shares = block[side]["methods"].get(own)
                if shares and shares["share"] is not None:
                    _write_at_edge(ax, position, fixed(shares["share"]), own)
            _write_at_edge(ax, -0.8, own, own)
            ax.spines[["left", "bottom"]].set_visible(False)
            ax.tick_params(length=0)
            ax.set(xlim=(_LEAST - 0.2, _MOST + 0.75), ylim=(len(blocks) - 0.5, -0.7))
            ticks = {-0.5: fixed(-0.5, 1), 0: "0\nnaive", 0.5: "0.5", 1: "1\nclean"}
            ticks[1.5] = "1.5"
            ax.set_xticks(list(ticks), list(ticks.values()))
        labels = [block["label"] for block in blocks]
        axes[0].set_yticks(range(len(blocks)), labels, parse_math=False)
        printed = {m for block in blocks for m in block["paper"]["methods"]}
        run = [m for m in summary["run"]["methods"] if m not in (NAIVE, CLEAN)]
        shown = [*run, *(m for m in _MARKS if m in printed and m not in run)]
        shown.sort(key=lambda m: m != OURS)
        _add_legend(figure, shown, ncols=7, handletextpad=0.1, columnspacing=1.2)
        return as_svg(figure, name)


def _draw_block(ax: Any, position: int, side: dict[str, Any]) -> None:
    if side["measure"] != "share":
        cost = f"clean {MINUS} naive under half a point"
        why = cost if side["measure"] else "not run"
        _write(ax, 0.05, position, why, MUTED, fontsize=8.5, va="center")
        return
    for method, shares in side["methods"].items():
        share = shares["share"]
        if method in (NAIVE, CLEAN) or share is None:
            continue
        at = float(np.clip(share, _LEAST, _MOST))
        ax.plot(at, position, **_mark(method))
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


def _write(ax: Any, x: float, y: float, text: str, colour: str, **style: Any) -> None:
    """Write on a background of its own, so that lines do not cross the text."""
    background = {"facecolor": CARD, "edgecolor": "none", "pad": 1.5}
    ax.text(x, y, text, color=colour, bbox=background, **style)


def _write_at_edge(ax: Any, position: float, text: str, method: str) -> None:
    """Write in the column to the right of the marks."""
    ax.annotate(
        text,
        (1.0, position),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="center",
        fontsize=9,
        weight="bold",
        color=_MARKS[method][0],
        bbox={"facecolor": CARD, "edgecolor": "none", "pad": 1.0},
        annotation_clip=False,
    )


def _draw_ranks(ranking: dict[str, Any], name: str) -> str:
    """Draw methods on a line of ranks; bars join those too close to tell apart."""
    methods, ranks = ranking["methods"], ranking["ranks"]
    critical = ranking["critical_difference"]
    half = (len(methods) + 1) // 2
    bars = _cliques(ranks, critical)
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
            left, ours = place < half, method == OURS
            y = depth + (place if left else len(methods) - 1 - place)
            edge = 0.9 if left else len(methods) + 0.1
            colour, width = (ACCENT, 1.6) if ours else (MUTED, 0.9)
            ax.plot([rank, rank, edge], [0, y, y], color=colour, lw=width)
            ax.text(
                edge + (-0.05 if left else 0.05),
                y,
                f"{method} {rank:.2f}" if left else f"{rank:.2f} {method}",
                ha="right" if left else "left",
                va="center",
                color=ACCENT if ours else INK,
                weight="bold" if ours else "normal",
                parse_math=False,
            )
        end = min(1.0 + critical, len(methods) + 0.6)
        ax.plot([1.0, end], [-0.95, -0.95], color=MUTED, lw=1.5)
        text = f"critical difference {critical:.2f}"
        ax.text(end + 0.08, -0.95, text, va="center", color=MUTED, fontsize=9)
        return as_svg(figure, name)


def _cliques(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """Return the longest runs of ranks within the critical difference."""
    spans = [
        (i, max(j for j, rank in enumerate(ranks) if rank - ranks[i] < critical))
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
            ax.plot([-1, 0], [-1, 0], color=MUTED, lw=0.8, ls=_DASHED, zorder=1)
            ax.set_title(data, parse_math=False)
            ax.set_xlabel("true l")
            ax.set(xlim=(-1.05, 0.05), ylim=(-1.05, 0.05), box_aspect=1)
            ax.set(xticks=[-1, -0.5, 0], yticks=[-1, -0.5, 0])
            ax.tick_params(labelbottom=True, labelcolor=MUTED)
            for group in groups:
                if group["data"] == data:
                    true = [point["true"] for point in group["points"]]
                    found = [point["estimated"] for point in group["points"]]
                    ax.plot(true, found, **_mark(group["method"]))
        for ax in axes.flat[len(data_sets) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            ax.set_ylabel("estimated l")
        shown = {group["method"] for group in groups}
        _add_legend(figure, [m for m in BOUNDARY_METHODS[::-1] if m in shown], ncols=2)
        return as_svg(figure, name)


def _draw_panels(data: dict[str, Any], name: str) -> str:
    """Draw the points with true, observed and relabelled labels."""
    points = np.column_stack([data["x1"], data["x2"]])
    true, observed, new = data["true"], data["observed"], data["relabelled"]
    panels = {
        "Clean data": [
            ("negative", true != 1, "cross", ACCENT),
            ("positive", true == 1, "dot", WARM),
        ],
        "PU data": [
            ("unlabelled", observed != 1, "cross", MUTED),
            ("labelled", observed == 1, "dot", WARM),
        ],
        "Relabelled": [
            ("left out", new < 0, "speck", MUTED),
            ("negative", new == 0, "cross", ACCENT),
            ("positive", new == 1, "dot", WARM),
        ],
    }
    low, high = points.min(axis=0), points.max(axis=0)
    pad = 0.04 * (high - low) + 1e-9
    with drawing(8.6, 3.6, 1, 3, sharex=True, sharey=True) as (figure, axes):
        for ax, (title, groups) in zip(axes, panels.items(), strict=True):
            ax.set_title(title, weight="bold")
            (left, bottom), (right, top) = low - pad, high + pad
            ax.set(xlim=(left, right), ylim=(bottom, top))
            ax.set(xticks=[], yticks=[], box_aspect=1)
            ax.spines[:].set(visible=True, color=RULE)
            for _, chosen, kind, colour in groups:
                _scatter(ax, points[chosen], kind, colour, (high - low).max())
            ax.set_xlabel(_key(groups), fontsize=9, color=MUTED, linespacing=1.5)
        return as_svg(figure, name)


def _key(groups: list[tuple[str, Mask, str, str]]) -> str:
    """Return which mark is which, and how many of each there are."""
    signs = {"dot": "●", "cross": "\N{MULTIPLICATION SIGN}", "speck": "·"}
    parts = [
        f"{signs[kind]} {label} {chosen.sum()}" for label, chosen, kind, _ in groups
    ]
    return "\u2003".join(reversed(parts))


def _scatter(ax: Any, points: Array, kind: str, colour: str, extent: float) -> None:
    """Draw all points of a kind as one line with breaks: a hundredth of the usual size."""
    arm = 0.011 * extent if kind == "cross" else 0.0
    strokes = [(arm, arm), (arm, -arm)] if arm else [(0.0, 0.0)]
    gap = np.full_like(points, np.nan)
    ends = [
        np.stack([points - stroke, points + stroke, gap], axis=1) for stroke in strokes
    ]
    x, y = np.concatenate(ends).reshape(-1, 2).T
    width = {"dot": 3.2, "cross": 0.8, "speck": 2.0}[kind]
    ax.plot(x, y, color=colour, lw=width, solid_capstyle="round", zorder=1)


def _draw_gaps(data: dict[str, Any], name: str) -> str:
    """Draw a histogram of the observed gaps, the boundary and the undecided zone."""
    gap = data["gap"]
    with drawing(7.6, 3.2) as (figure, ax):
        counts, _, _ = ax.hist(gap, _BINS, color=BAR, label="unlabelled")
        ax.hist(gap[data["observed"] == 1], _BINS, color=WARM, label="labelled")
        top = 1.32 * float(counts.max())
        ax.set(xlim=(-1.0, 1.0), ylim=(0.0, top))
        ax.set(xlabel="observed gap", ylabel="samples", xticks=[-1, -0.5, 0, 0.5, 1])
        ax.tick_params(axis="y", labelcolor=MUTED)
        ax.axvline(0.0, color=INK, lw=1.0)
        ax.text(0.01, top, "0", va="top", fontsize=9)
        bound, true = data["boundary"], data["true_boundary"]
        if bound is not None:
            ax.axvspan(bound, 0.0, color=WASH, zorder=0)
            ax.axvline(bound, color=ACCENT, lw=1.6)
            _note(ax, bound, top, f"estimated l = {fixed(bound)}", ACCENT)
            style = {"ha": "center", "color": MUTED, "fontsize": 9}
            ax.text(0.5 * bound, 0.82 * top, "undecided", **style)
        if true is not None:
            ax.axvline(true, color=INK, lw=1.2, ls=_DASHED)
            _note(ax, true, 0.92 * top, f"true l = {fixed(true)}", INK)
        figure.legend(loc="outside upper left", ncols=2, fontsize=9)
        return as_svg(figure, name)


def _note(ax: Any, x: float, y: float, text: str, colour: str) -> None:
    side, shift = ("right", -0.012) if x > -0.6 else ("left", 0.012)
    _write(ax, x + shift, y, text, colour, ha=side, va="top", fontsize=9)
