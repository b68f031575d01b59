"""The observed gaps of labelled and unlabelled samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probgap._core.checks import check_gap, check_labelled
from probgap._core.errors import InvalidInputError
from probgap._core.types import Mask, Vector
from probgap.plotting._base import (
    POSITIVE,
    UNLABELLED,
    Display,
    draw_zones,
    label_gap_axis,
    legend,
    library,
    look_at,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# At most so many bars are cut, and only those so much higher than the next.
_MOST_CUT = 2
_DWARFING = 3.0

_ZONES = np.array(["negative", "undecided", "positive"], dtype=object)


@dataclass(kw_only=True, eq=False, repr=False)
class GapDisplay(Display):
    """Histogram of observed gaps, with the boundary, 0 and what lies between.

    A sample to the left of the boundary looks negative, one to the right of 0 is more
    likely labelled than not and so positive, and between the two the gap alone decides
    nothing. Grey bars to the right of the boundary are where hidden positives are.

    Make one by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    observed_gap : ndarray of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x).
    labelled : ndarray of shape (n_samples,)
        True for labelled positives.
    boundary : float or None
        The boundary l, where it is known.

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

    observed_gap: Vector
    labelled: Mask
    boundary: float | None = None
    bars_: tuple[Any, Any] = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        n_bins: int = 40,
    ) -> Self:
        """Draw the gaps of a fitted classifier.

        Parameters
        ----------
        estimator : estimator
            A fitted :class:`~probgap.PGPUClassifier` or
            :class:`~probgap.PGPUClassifierCV`, or a pipeline that ends in one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None
            Samples. ``None`` stands for those it was fitted on, with the gaps that
            placed the boundary: by default of models that had not seen the sample.
        y : array-like of shape (n_samples,)
            Their observed labels.
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.
        n_bins : int, default=40
            Number of bars from -1 to 1.

        Returns
        -------
        GapDisplay
            The picture, and what it shows.

        Examples
        --------
        >>> from probgap.plotting import GapDisplay
        >>> GapDisplay.from_estimator(model, None, y)  # doctest: +SKIP
        """
        classifier, gap, labelled = look_at(estimator, X, y)
        value = classifier.boundary_.value
        return cls.from_predictions(gap, labelled, boundary=value, ax=ax, n_bins=n_bins)

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
        """Draw gaps that are at hand.

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

        Examples
        --------
        >>> from probgap.plotting import GapDisplay
        >>> GapDisplay.from_predictions([-0.5, 0.5], [0, 1]).labelled
        array([False,  True])
        """
        gap = check_gap(observed_gap)
        mask = check_labelled(labelled, gap.size)
        display = cls(observed_gap=gap, labelled=mask, boundary=boundary)
        return display.plot(ax, n_bins=n_bins)

    def plot(self, ax: Axes | None = None, *, n_bins: int = 40) -> Self:
        """Draw.

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
        ax = self._start(ax)
        table = self._count(n_bins)
        left, unlabelled, labelled = (
            table[name] for name in ("gap_low", "unlabelled", "labelled")
        )
        style: dict[str, Any] = {"width": 2.0 / n_bins, "align": "edge", "zorder": 2}
        below = ax.bar(left, unlabelled, color=UNLABELLED, label="unlabelled", **style)
        style |= {"bottom": unlabelled, "color": POSITIVE, "label": "labelled"}
        above = ax.bar(left, labelled, **style)
        self.bars_ = (below, above)
        draw_zones(ax, self.boundary)
        label_gap_axis(ax)
        ax.set_ylabel("samples")
        heights = unlabelled + labelled
        # Bars that dwarf all others are cut, and say how high they are.
        top = _room_for(heights)
        ax.set_ylim(0.0, 1.08 * top)
        for bar in np.flatnonzero(heights > top):
            ax.annotate(
                f"\N{UPWARDS ARROW} {heights[bar]:,}",
                (table["gap_high"][bar], 1.08 * top),
                xytext=(3, -4),
                textcoords="offset points",
                va="top",
            )
        legend(ax, "labelled", "unlabelled")
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
        return library("pandas").DataFrame(self._count(n_bins))

    def _count(self, n_bins: int) -> dict[str, NDArray[Any]]:
        if n_bins < 1:
            msg = f"n_bins must be at least 1. Got {n_bins!r}."
            raise InvalidInputError(msg)
        edges = np.linspace(-1.0, 1.0, n_bins + 1)
        gap = np.clip(self.observed_gap, -1.0, 1.0)
        table: dict[str, NDArray[Any]] = {
            "gap_low": edges[:-1],
            "gap_high": edges[1:],
            "unlabelled": np.histogram(gap[~self.labelled], edges)[0],
            "labelled": np.histogram(gap[self.labelled], edges)[0],
        }
        if self.boundary is not None:
            middle = 0.5 * (edges[:-1] + edges[1:])
            ends = [self.boundary, max(0.0, self.boundary)]
            table["zone"] = _ZONES[np.searchsorted(ends, middle)]
        return table


def _room_for(heights: NDArray[Any]) -> float:
    """Return the height that the axis shows: that of the bars that can be compared."""
    ordered = np.sort(heights)[::-1]
    for cut in range(1, min(_MOST_CUT, ordered.size - 1) + 1):
        if ordered[cut] > 0 and ordered[cut - 1] > _DWARFING * ordered[cut]:
            return 1.15 * float(ordered[cut])
    return float(max(ordered[0], 1.0))
