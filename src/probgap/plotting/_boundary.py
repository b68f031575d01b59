"""What every other boundary would have decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.checks import check_gap, check_labelled
from probgap._core.errors import InvalidInputError
from probgap._core.types import Mask, Vector
from probgap.boundary import Boundary
from probgap.plotting._base import (
    POSITIVE,
    UNLABELLED,
    Display,
    boundary_label,
    draw_boundary,
    label_gap_axis,
    legend,
    library,
    look_at,
    shade,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 401


@dataclass(kw_only=True, eq=False, repr=False)
class BoundaryDisplay(Display):
    """What the boundary decides, and what any other boundary would.

    For each place where the boundary could lie: the share of the unlabelled samples that
    it would call negative, and the share of the labelled positives that lie on its
    negative side and so speak against it. A good boundary leaves the second curve near
    0 while the first is well above. Where the first is steep, a small move changes
    many decisions; the band around the boundary shows how far it moves over resamples.

    Regions in the plane of two features are another picture, which scikit-learn has:
    ``sklearn.inspection.DecisionBoundaryDisplay`` takes our classifiers as they are.

    Make one by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    observed_gap : ndarray of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x).
    labelled : ndarray of shape (n_samples,)
        True for labelled positives.
    boundary : float
        The boundary l.
    spread : float
        Its standard deviation over resamples; NaN where it is not known.

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

    observed_gap: Vector
    labelled: Mask
    boundary: float
    spread: float = float("nan")
    lines_: tuple[Any, Any] = field(init=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Axes | None = None
    ) -> Self:
        """Draw the boundary of a fitted classifier among the alternatives.

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

        Returns
        -------
        BoundaryDisplay
            The picture, and what it shows.

        Examples
        --------
        >>> from probgap.plotting import BoundaryDisplay
        >>> BoundaryDisplay.from_estimator(model, None, y)  # doctest: +SKIP
        """
        classifier, gap, labelled = look_at(estimator, X, y)
        return cls.from_predictions(gap, labelled, boundary=classifier.boundary_, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        observed_gap: ArrayLike,
        labelled: ArrayLike,
        *,
        boundary: Boundary | float,
        ax: Axes | None = None,
    ) -> Self:
        """Draw a boundary among the alternatives, from gaps that are at hand.

        Parameters
        ----------
        observed_gap : array-like of shape (n_samples,)
            P(s=1 | x) - P(s=0 | x), each in [-1, 1].
        labelled : array-like of shape (n_samples,)
            True for labelled positives, of which there must be some, as of others.
        boundary : Boundary or float
            The boundary l; a :class:`~probgap.boundary.Boundary` has its spread.
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.

        Returns
        -------
        BoundaryDisplay
            The picture, and what it shows.

        Examples
        --------
        >>> from probgap.plotting import BoundaryDisplay
        >>> BoundaryDisplay.from_predictions([-0.5, 0.5], [0, 1], boundary=-0.2).boundary
        -0.2
        """
        gap = check_gap(observed_gap)
        mask = check_labelled(labelled, gap.size)
        if mask.all() or not mask.any():
            msg = "labelled must mark some samples and leave others. Got all alike."
            raise InvalidInputError(msg)
        if isinstance(boundary, Boundary):
            known = {"boundary": boundary.value, "spread": boundary.spread}
        else:
            known = {"boundary": float(boundary)}
        display = cls(observed_gap=gap, labelled=mask, **known)
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.

        Returns
        -------
        BoundaryDisplay
            Itself.
        """
        ax = self._start(ax)
        places, unlabelled, labelled = self._shares(np.linspace(-1.0, 1.0, _POINTS))
        (first,) = ax.plot(
            places, unlabelled, color=UNLABELLED, lw=2, label="unlabelled"
        )
        (second,) = ax.plot(places, labelled, color=POSITIVE, lw=2, label="labelled")
        self.lines_ = (first, second)
        self._mark_boundary()
        label_gap_axis(ax)
        ax.set(ylim=(-0.02, 1.02), ylabel="share on the negative side")
        legend(ax, "unlabelled", "labelled", boundary_label(self.boundary))
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
        places = np.linspace(-1.0, 1.0, _POINTS) if at is None else at
        names = ("boundary", "unlabelled_negative", "labelled_negative")
        table = dict(zip(names, self._shares(places), strict=True))
        return library("pandas").DataFrame(table)

    def _shares(self, at: ArrayLike) -> tuple[Vector, Vector, Vector]:
        """Return boundaries, and the share of each kind with a gap at or below them."""
        places = np.asarray(at, dtype=np.float64)
        unlabelled, labelled = (
            np.searchsorted(np.sort(gaps), places, side="right") / gaps.size
            for gaps in (
                self.observed_gap[~self.labelled],
                self.observed_gap[self.labelled],
            )
        )
        return places, unlabelled, labelled

    def _mark_boundary(self) -> None:
        ax, value = self.ax_, self.boundary
        if np.isfinite(self.spread) and self.spread > 0.0:
            low, high = max(-1.0, value - self.spread), min(1.0, value + self.spread)
            shade(ax, low, high, f"\N{PLUS-MINUS SIGN} spread {self.spread:.2f}")
        draw_boundary(ax, value)
        _, *shares = (float(share) for share in self._shares(value))
        for share, colour in zip(shares, (UNLABELLED, POSITIVE), strict=True):
            ax.plot(value, share, "o", color=colour, zorder=3)
            ax.annotate(
                f"{share:.0%}",
                (value, share),
                xytext=(7, -3),
                textcoords="offset points",
                va="top",
            )
