"""Axes to draw on, the colours of things, and the words that go with a boundary."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from probgap._core.errors import load_library

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that people with colour blindness can tell apart, on light ground and on dark.
POSITIVE, NEGATIVE, UNLABELLED = "#d55e00", "#0072b2", "#9a9a9a"
_SHADE = 0.12
_MINUS = "\N{MINUS SIGN}"


def library(name: str) -> ModuleType:
    """Import a module of matplotlib or pandas, or say how to get it."""
    return load_library(name, extra="report", purpose="plots")


def axes(ax: Axes | None) -> Axes:
    """Give the axes to draw on: those given, or new ones."""
    if ax is not None:
        return ax
    _, new = library("matplotlib.pyplot").subplots(layout="constrained")
    return new


def ink() -> Any:
    """Give the colour of text, whatever the style."""
    return library("matplotlib").rcParams["text.color"]


def signed(value: float, digits: int = 2) -> str:
    """Write a number with a minus sign that is as wide as a plus."""
    return f"{value:.{digits}f}".replace("-", _MINUS)


def draw_boundary(ax: Axes, boundary: float | None) -> None:
    """Draw 0, the boundary, and the zone between them that decides nothing."""
    ax.axvline(0.0, color=ink(), lw=0.8, zorder=1.5)
    if boundary is None:
        return
    if boundary < 0.0:
        ax.axvspan(
            boundary,
            0.0,
            color=ink(),
            alpha=_SHADE,
            lw=0,
            zorder=0.5,
            label="undecided",
        )
    ax.axvline(
        boundary,
        color=ink(),
        lw=1.5,
        ls="--",
        zorder=2.5,
        label=f"boundary {signed(boundary)}",
    )


def label_gap_axis(ax: Axes) -> None:
    """Name the axis of gaps, and say which way is which."""
    ax.set_xlim(-1.02, 1.02)
    ax.set_xlabel("observed gap, P(labelled | x) \N{MINUS SIGN} P(unlabelled | x)")


def legend(ax: Axes, *first: str) -> None:
    """Name things in the order in which one looks for them."""
    handles, labels = ax.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    order = [*first, *(label for label in labels if label not in first)]
    shown = [label for label in order if label in named]
    ax.legend([named[label] for label in shown], shown)
