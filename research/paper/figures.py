"""The figures of the report: recovered shares, Figure 1, and boundaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from research.paper.printed import NAIVE, OURS, PLAIN, Facts

_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "svg.hashsalt": "probgap",  # the same file each time
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}
# Ours stands out, the paper's own methods come next, the others stay grey; the shape of
# a mark distinguishes as its colour does.
_MARKS: dict[str, dict[str, Any]] = {
    OURS: {"marker": "o", "color": "C0", "markersize": 9.0, "zorder": 4},
    PLAIN: {"marker": "o", "color": "C0", "markerfacecolor": "white"},
    "PGPU": {"marker": "D", "color": "C1"},
    "PGPUcv": {"marker": "D", "color": "C1", "markerfacecolor": "white"},
    "Elkan": {"marker": "s", "color": "grey", "markerfacecolor": "white"},
    "Natarajan": {"marker": "v", "color": "grey", "markerfacecolor": "white"},
    "Liu": {"marker": "^", "color": "grey", "markerfacecolor": "white"},
}
_OTHER_MARK: dict[str, Any] = {"marker": "P", "color": "C2"}
_LEAST, _MOST = -0.75, 1.75  # shares beyond these are drawn there, with an arrow


def draw_figures(summary: Facts, folder: Path) -> dict[str, Path]:
    """Draw every figure for which there are data into a folder; return them by name."""
    draw = {"shares": _shares, "panels": _panels, "boundaries": _boundaries}
    with rc_context(_STYLE):
        drawn = {name: make(summary) for name, make in draw.items()}
        found = {name: figure for name, figure in drawn.items() if figure is not None}
        paths = {name: folder / f"{name}.svg" for name in found}
        for name, path in paths.items():
            folder.mkdir(parents=True, exist_ok=True)
            found[name].savefig(path, metadata={"Date": None})
    return paths


def _add_legend(figure: Figure, ax: Any, methods: list[str]) -> None:
    for method in sorted(methods, key=lambda method: method != OURS):
        ax.plot([], [], label=method, ls="none", **_MARKS.get(method, _OTHER_MARK))
    figure.legend(loc="outside upper left", ncols=7, handletextpad=0.1)


def _shares(summary: Facts) -> Figure | None:
    blocks = summary["blocks"]
    if not any(block["run"]["measure"] for block in blocks):
        return None
    figure = Figure((8.6, 1.5 + 0.36 * len(blocks)))
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    titles = {"run": "This run", "paper": "The paper, as printed"}
    for ax, (side, title) in zip(axes, titles.items(), strict=True):
        ax.set_title(title)
        ax.axvline(0.0, color="grey", lw=1.0)
        ax.axvline(1.0, color="grey", lw=1.0, ls="--")
        ax.grid(axis="y", lw=0.6)
        for position, block in enumerate(blocks):
            _draw_block(ax, position, block[side])
        ax.set(xlim=(_LEAST - 0.2, _MOST + 0.2), ylim=(len(blocks) - 0.5, -0.7))
        ax.set_xticks(
            [-0.5, 0, 0.5, 1, 1.5], ["-0.5", "0\nnaive", "0.5", "1\nclean", "1.5"]
        )
    axes[0].set_yticks(range(len(blocks)), [block["label"] for block in blocks])
    _add_legend(figure, axes[0], summary["share_methods"])
    return figure


def _draw_block(ax: Any, position: int, side: Facts) -> None:
    if side["measure"] != "share":
        why = "clean - naive under half a point" if side["measure"] else "not run"
        ground = {"facecolor": "white", "edgecolor": "none"}
        ax.text(0.05, position, why, color="grey", va="center", bbox=ground)
        return
    for method, share in side["share"].items():
        if method == NAIVE:
            continue
        at = float(np.clip(share, _LEAST, _MOST))
        ax.plot(at, position, **_MARKS.get(method, _OTHER_MARK))
        if at != share:
            sign, beside = ("←", at - 0.12) if at < 0 else ("→", at + 0.12)
            ax.text(beside, position, sign, ha="center", va="center", color="grey")


def _boundaries(summary: Facts) -> Figure | None:
    groups = summary["boundaries"]
    data_sets = list(dict.fromkeys(group["data"] for group in groups))
    if not data_sets:
        return None
    columns = min(4, len(data_sets))
    lines = -(-len(data_sets) // columns)
    figure = Figure((max(3.6, 0.5 + 2.1 * columns), 0.7 + 2.2 * lines))
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for ax, data in zip(axes.flat, data_sets, strict=False):
        ax.plot([-1, 0], [-1, 0], color="grey", lw=0.8, ls="--")
        ax.set(xlim=(-1.05, 0.05), ylim=(-1.05, 0.05), box_aspect=1)
        ax.set(title=data, xlabel="true l", ylabel="estimated l")
        for group in groups:
            if group["data"] == data:
                mark = _MARKS.get(group["method"], _OTHER_MARK) | {"markersize": 5.0}
                ax.plot(group["true"], group["estimated"], ls="none", **mark)
    for empty in range(len(data_sets), axes.size):
        axes.flat[empty].set_axis_off()
        axes.flat[empty - columns].tick_params(labelbottom=True)  # nothing is below it
    methods = list(dict.fromkeys(group["method"] for group in groups))
    _add_legend(figure, axes[0, 0], methods)
    return figure


def _panels(summary: Facts) -> Figure | None:
    """Draw the points with true, observed and relabelled labels."""
    data = summary["panels"]
    if data is None:
        return None
    true, observed, new = data["true"], data["observed"], data["relabelled"]
    panels = {
        "Clean data": {"positive": true == 1, "negative": true != 1},
        "PU data": {"labelled": observed == 1, "unlabelled": observed != 1},
        "Relabelled": {"positive": new == 1, "negative": new == 0, "left out": new < 0},
    }
    styles = {"positive": "C1.", "labelled": "C1.", "negative": "C0x"}
    figure = Figure((8.6, 3.6))
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    for ax, (title, groups) in zip(axes, panels.items(), strict=True):
        ax.set(title=title, xticks=[], yticks=[], box_aspect=1)
        for name, chosen in groups.items():
            x1, x2 = data["x1"][chosen], data["x2"][chosen]
            style, label = styles.get(name, "k,"), f"{name} {chosen.sum()}"
            ax.plot(x1, x2, style, markersize=3.0, label=label, rasterized=True)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), fontsize=8)
    return figure
