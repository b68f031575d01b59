"""The observed gaps of labelled and unlabelled samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.errors import InvalidInputError
from probgap._core.output import comparable_height
from probgap.plotting._base import POSITIVE, UNLABELLED, Display, library

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

_ZONES = np.array(["negative", "undecided", "positive"], dtype=object)


class GapDisplay(Display):
    """Histogram of observed gaps, with the boundary, 0 and what lies between.

    A sample to the left of the boundary looks negative, one to the right of 0 is more
    likely labelled than not and so positive, and between the two the gap alone decides
    nothing. Grey bars to the right of the boundary are where hidden positives are.

    Make one by :meth:`from_estimator` or :meth:`from_predictions`; it keeps the gaps,
    labels and boundary that it shows.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around it.
    bars_ : tuple of BarContainer
        The bars of unlabelled samples, and those of labelled ones on top of them.

    Examples
    --------
    >>> from probgap.plotting import GapDisplay
    >>> gap, labelled = [-0.9, -0.8, -0.3, 0.6, 0.7], [0, 0, 0, 0, 1]
    >>> display = GapDisplay.from_predictions(gap, labelled, boundary=-0.5)
    >>> display.frame(n_bins=4)[["gap_low", "gap_high", "unlabelled", "labelled"]]
       gap_low  gap_high  unlabelled  labelled
    0     -1.0      -0.5           2         0
    1     -0.5       0.0           1         0
    2      0.0       0.5           0         0
    3      0.5       1.0           1         1
    """

    bars_: tuple[BarContainer, BarContainer]

    @classmethod
    def from_predictions(
        cls,
        observed_gap: ArrayLike,
        labelled: ArrayLike,
        *,
        boundary: float | None = None,
        ax: Axes | None = None,
        n_bins: int = 40,
    ) -> Self:
        """Draw given gaps.

        Parameters
        ----------
        observed_gap : array-like of shape (n_samples,)
            P(s=1 | x) - P(s=0 | x), each in [-1, 1].
        labelled : array-like of shape (n_samples,)
            True for labelled positives.
        boundary : float, default=None
            The boundary l, to be drawn where it is known.
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.
        n_bins : int, default=40
            Number of bars from -1 to 1.

        Returns
        -------
        GapDisplay
            The picture, and what it shows.
        """
        shown = cls(observed_gap=observed_gap, labelled=labelled, boundary=boundary)
        return shown.plot(ax, n_bins=n_bins)

    def plot(self, ax: Axes | None = None, *, n_bins: int = 40) -> Self:
        """Draw a bar for each range of gaps; bars that dwarf all others are cut.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.
        n_bins : int, default=40
            Number of bars from -1 to 1.

        Returns
        -------
        GapDisplay
            Itself.
        """
        table = self.frame(n_bins=n_bins)
        ax = self._start(ax)
        left, unlabelled, labelled = (
            table[name].to_numpy() for name in ("gap_low", "unlabelled", "labelled")
        )
        style: dict[str, Any] = {"width": 2.0 / n_bins, "align": "edge", "zorder": 2}
        below = ax.bar(left, unlabelled, color=UNLABELLED, label="unlabelled", **style)
        style |= {"bottom": unlabelled, "color": POSITIVE, "label": "labelled"}
        above = ax.bar(left, labelled, **style)
        self.bars_ = (below, above)
        heights = unlabelled + labelled
        top = 1.08 * comparable_height(heights.tolist())
        for bar in np.flatnonzero(heights > top):
            beside, shift, ha = (
                ("gap_low", -3, "right") if left[bar] > 0.0 else ("gap_high", 3, "left")
            )
            ax.annotate(
                f"\N{UPWARDS ARROW} {heights[bar]:,}",
                (table[beside][bar], top),
                xytext=(shift, -4),
                textcoords="offset points",
                va="top",
                ha=ha,
            )
        zones: list[Any] = self._draw_zones()
        self._label_gap_axis()
        ax.set(ylabel="samples", ylim=(0.0, top))
        ax.legend(handles=[above, below, *zones])
        return self

    def frame(self, *, n_bins: int = 40) -> Any:
        """Return what is drawn as a table, one row for each bar.

        Parameters
        ----------
        n_bins : int, default=40
            Number of bars from -1 to 1.

        Returns
        -------
        DataFrame
            Edges of the bar, samples of each kind in it, and in which zone its middle
            lies (no such column without a boundary).
        """
        if n_bins < 1:
            msg = f"n_bins must be at least 1. Got {n_bins!r}."
            raise InvalidInputError(msg)
        edges = np.linspace(-1.0, 1.0, n_bins + 1)
        gap = np.clip(self.observed_gap, -1.0, 1.0)
        table = {
            "gap_low": edges[:-1],
            "gap_high": edges[1:],
            "unlabelled": np.histogram(gap[~self.labelled], edges)[0],
            "labelled": np.histogram(gap[self.labelled], edges)[0],
        }
        if self.boundary is not None:
            middle = 0.5 * (edges[:-1] + edges[1:])
            ends = [self.boundary, max(0.0, self.boundary)]
            table["zone"] = _ZONES[np.searchsorted(ends, middle)]
        return library("pandas").DataFrame(table)
