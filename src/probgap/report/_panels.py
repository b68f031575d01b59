"""Figure 1: the data before and after relabelling, and their observed gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap.report._optional import load
from probgap.report._svg import (
    ACCENT,
    BAR,
    CARD,
    INK,
    MUTED,
    RULE,
    WARM,
    WASH,
    as_svg,
    drawing,
)
from probgap.report._text import fixed

_BINS = np.linspace(-1.0, 1.0, 51)


def draw_panels(data: dict[str, Any], name: str) -> str:
    """Draw the points with true, observed and relabelled labels."""
    points = np.column_stack([data["x1"], data["x2"]])
    true, observed, new = data["true"], data["observed"], data["relabelled"]
    panels = [
        (
            "Clean data",
            [
                ("negative", true != 1, "cross", ACCENT),
                ("positive", true == 1, "dot", WARM),
            ],
        ),
        (
            "PU data",
            [
                ("unlabelled", observed != 1, "cross", MUTED),
                ("labelled", observed == 1, "dot", WARM),
            ],
        ),
        (
            "Relabelled",
            [
                ("left out", new < 0, "speck", MUTED),
                ("negative", new == 0, "cross", ACCENT),
                ("positive", new == 1, "dot", WARM),
            ],
        ),
    ]
    low, high = points.min(axis=0), points.max(axis=0)
    pad = 0.04 * (high - low) + 1e-9
    with drawing(8.6, 3.6, 1, 3, sharex=True, sharey=True) as (figure, axes):
        for ax, (title, groups) in zip(axes, panels, strict=True):
            ax.set_title(title, weight="bold")
            ax.set(xlim=(low[0] - pad[0], high[0] + pad[0]))
            ax.set(ylim=(low[1] - pad[1], high[1] + pad[1]))
            ax.set(xticks=[], yticks=[], box_aspect=1)
            ax.spines[:].set(visible=True, color=RULE)
            for _, chosen, kind, colour in groups:
                _scatter(ax, points[chosen], kind, colour, (high - low).max())
            ax.set_xlabel(_key(groups), fontsize=9, color=MUTED, linespacing=1.5)
        return as_svg(figure, name)


def draw_gaps(data: dict[str, Any], name: str) -> str:
    """Draw a histogram of the observed gaps, the boundary and the undecided zone."""
    labelled = data["observed"] == 1
    gap = data["gap"]
    with drawing(7.6, 3.2) as (figure, ax):
        counts, _, _ = ax.hist(gap, _BINS, color=BAR, label="unlabelled")
        ax.hist(gap[labelled], _BINS, color=WARM, label="labelled")
        top = 1.32 * float(counts.max())
        ax.set(
            xlim=(-1.0, 1.0), ylim=(0.0, top), xlabel="observed gap", ylabel="samples"
        )
        ax.set_xticks([-1, -0.5, 0, 0.5, 1])
        ax.tick_params(axis="y", labelcolor=MUTED)
        ax.axvline(0.0, color=INK, lw=1.0)
        ax.text(0.01, top, "0", va="top", fontsize=9)
        bound, true = data["boundary"], data["true_boundary"]
        if bound is not None:
            ax.axvspan(bound, 0.0, color=WASH, zorder=0)
            ax.axvline(bound, color=ACCENT, lw=1.6)
            _note(ax, bound, top, f"estimated l = {fixed(bound)}", ACCENT)
            middle = 0.5 * bound
            ax.text(
                middle, 0.82 * top, "undecided", ha="center", color=MUTED, fontsize=9
            )
        if true is not None:
            ax.axvline(true, color=INK, lw=1.2, ls=(0, (4, 3)))
            _note(ax, true, 0.92 * top, f"true l = {fixed(true)}", INK)
        figure.legend(loc="outside upper left", ncols=2, fontsize=9)
        return as_svg(figure, name)


def _note(ax: Any, x: float, y: float, text: str, colour: str) -> None:
    side = "right" if x > -0.6 else "left"
    shift = -0.012 if side == "right" else 0.012
    ground = {"facecolor": CARD, "edgecolor": "none", "pad": 1.5}
    style = {"va": "top", "color": colour, "fontsize": 9, "bbox": ground}
    ax.text(x + shift, y, text, ha=side, **style)


def _key(groups: list[tuple[str, NDArray[np.bool_], str, str]]) -> str:
    """Say which mark is which, and how many of each there are."""
    signs = {"dot": "●", "cross": "\N{MULTIPLICATION SIGN}", "speck": "·"}
    parts = [
        f"{signs[kind]} {label} {int(chosen.sum())}"
        for label, chosen, kind, _ in groups
    ]
    return "\u2003".join(reversed(parts))


def _scatter(
    ax: Any, points: NDArray[np.float64], kind: str, colour: str, extent: float
) -> None:
    """Draw all points of a kind as one path: a hundredth of the usual size."""
    if not len(points):
        return
    path = load("matplotlib.path")
    patches = load("matplotlib.patches")
    arm = 0.011 * extent
    strokes = {
        "dot": [(0.0, 0.0, 0.0, 0.0)],
        "speck": [(0.0, 0.0, 0.0, 0.0)],
        "cross": [(-arm, -arm, arm, arm), (-arm, arm, arm, -arm)],
    }[kind]
    ends = np.concatenate(
        [
            np.stack([points + stroke[:2], points + stroke[2:]], axis=1)
            for stroke in np.asarray(strokes)
        ]
    ).reshape(-1, 2)
    codes = np.tile([path.Path.MOVETO, path.Path.LINETO], len(ends) // 2)
    ax.add_patch(
        patches.PathPatch(
            path.Path(ends, codes),
            facecolor="none",
            edgecolor=colour,
            lw={"dot": 3.2, "cross": 0.8, "speck": 2.0}[kind],
            capstyle="round",
        )
    )
