"""What every other boundary would have decided."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.errors import InvalidInputError
from probgap.boundary import Boundary
from probgap.plotting._base import POSITIVE, UNLABELLED, Display, library

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


class BoundaryDisplay(Display):
    """What the boundary decides, and what any other boundary would.

    For each place where the boundary could lie: the share of the unlabelled samples that
    it would call negative, and the share of the labelled positives that lie on its
    negative side and so speak against it. A good boundary leaves the second curve near
    0 while the first is well above. Where the first is steep, a small move changes
    many decisions; the band around the boundary shows how far it moves over resamples.

    Regions in the plane of two features are another picture, which scikit-learn has:
    ``sklearn.inspection.DecisionBoundaryDisplay`` takes our classifiers as they are.

    Make one by :meth:`from_estimator` or :meth:`from_predictions`; it keeps the gaps,
    labels, boundary and spread that it shows.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around it.
    lines_ : tuple of Line2D
        The curve of unlabelled samples, and that of labelled ones.

    Examples
    --------
    >>> from probgap.plotting import BoundaryDisplay
    >>> gap, labelled = [-0.9, -0.8, -0.3, 0.6, 0.7], [0, 0, 0, 1, 1]
    >>> display = BoundaryDisplay.from_predictions(gap, labelled, boundary=-0.5)
    >>> display.frame(at=[-0.85, -0.5, 0.65])
       boundary  unlabelled_negative  labelled_negative
    0     -0.85             0.333333                0.0
    1     -0.50             0.666667                0.0
    2      0.65             1.000000                0.5
    """

    boundary: float
    spread: float = math.nan
    lines_: tuple[Line2D, Line2D]

    def __init__(
        self,
        *,
        observed_gap: ArrayLike,
        labelled: ArrayLike,
        boundary: float,
        spread: float = math.nan,
    ) -> None:
        super().__init__(
            observed_gap=observed_gap, labelled=labelled, boundary=float(boundary)
        )
        self.spread = spread
        if self.labelled.all() or not self.labelled.any():
            msg = "labelled must mark some samples and leave others. Got all alike."
            raise InvalidInputError(msg)

    @classmethod
    def from_predictions(
        cls,
        observed_gap: ArrayLike,
        labelled: ArrayLike,
        *,
        boundary: Boundary | float,
        ax: Axes | None = None,
    ) -> Self:
        """Draw a boundary among the alternatives, from given gaps.

        Parameters
        ----------
        observed_gap : array-like of shape (n_samples,)
            P(s=1 | x) - P(s=0 | x), each in [-1, 1].
        labelled : array-like of shape (n_samples,)
            True for labelled positives; there must be some, and some others.
        boundary : Boundary or float
            The boundary l; a :class:`~probgap.boundary.Boundary` has its spread, the
            standard deviation over resamples.
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.

        Returns
        -------
        BoundaryDisplay
            The picture, and what it shows.
        """
        known: dict[str, float] = {}
        if isinstance(boundary, Boundary):
            known["spread"], boundary = boundary.spread, boundary.value
        return cls(
            observed_gap=observed_gap, labelled=labelled, boundary=boundary, **known
        ).plot(ax)

    @staticmethod
    def _more_arguments(classifier: Any) -> dict[str, Any]:
        found = classifier.boundary_
        return {"boundary": found.value, "spread": found.spread}

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the share of samples on the negative side of each boundary.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.

        Returns
        -------
        BoundaryDisplay
            Itself.
        """
        table, here = self.frame(), self.frame(at=[self.boundary])
        ax = self._start(ax)
        lines = []
        for name, colour in (("unlabelled", UNLABELLED), ("labelled", POSITIVE)):
            curve, share = table[f"{name}_negative"], here[f"{name}_negative"][0]
            lines += ax.plot(table["boundary"], curve, color=colour, lw=2, label=name)
            ax.plot(self.boundary, share, "o", color=colour, zorder=3)
            ax.annotate(
                f"{share:.0%}",
                (self.boundary, share),
                xytext=(7, -3 if share > 0.5 else 3),
                textcoords="offset points",
                va="top" if share > 0.5 else "bottom",
            )
        self.lines_ = (lines[0], lines[1])
        handles: list[Any] = [*lines, self._draw_boundary(self.boundary)]
        if np.isfinite(self.spread) and self.spread > 0.0:
            low, high = self.boundary - self.spread, self.boundary + self.spread
            name = f"\N{PLUS-MINUS SIGN} spread {self.spread:.2f}"
            handles.append(self._shade(max(-1.0, low), min(1.0, high), name))
        self._label_gap_axis()
        ax.set(ylim=(-0.02, 1.02), ylabel="share on the negative side")
        ax.legend(handles=handles)
        return self

    def frame(self, *, at: ArrayLike | None = None) -> Any:
        """Return what is drawn as a table.

        Parameters
        ----------
        at : array-like of float, default=None
            Boundaries to tabulate. ``None`` takes those that are drawn.

        Returns
        -------
        DataFrame
            For each boundary the share of unlabelled and of labelled samples on its
            negative side.
        """
        places = np.linspace(-1.0, 1.0, 401) if at is None else np.asarray(at)
        table = {"boundary": places}
        for name, kind in (("unlabelled", ~self.labelled), ("labelled", self.labelled)):
            gaps = np.sort(self.observed_gap[kind])
            below = np.searchsorted(gaps, places, side="right")
            table[f"{name}_negative"] = below / gaps.size
        return library("pandas").DataFrame(table)
