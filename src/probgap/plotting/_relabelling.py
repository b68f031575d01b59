"""What became of each sample before the final classifier was trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.checks import check_gap, check_labelled
from probgap._core.errors import InvalidInputError
from probgap._core.kernels import spread_rows
from probgap._core.types import Mask, Vector
from probgap.plotting._base import (
    NEGATIVE,
    POSITIVE,
    UNLABELLED,
    Display,
    draw_zones,
    ink,
    label_gap_axis,
    legend,
    library,
    look_at,
)
from probgap.relabel import Relabelling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["counts", "training"]

# Beyond so many points a scatter plot is a blot; those drawn are spread over all samples.
_MOST_DRAWN = 5000
# A piece of a bar that is shorter than this share of the longest has no room for text.
_ROOM_FOR_TEXT = 0.06
# Codes of a Relabelling, in the order in which they are drawn, and their colours.
_OUTCOMES = {
    1: ("positive", POSITIVE),
    -1: ("undecided", UNLABELLED),
    0: ("negative", NEGATIVE),
}
_ROWS = ("labelled", "unlabelled")


@dataclass(kw_only=True, eq=False, repr=False)
class RelabellingDisplay(Display):
    """What labelled and unlabelled samples were relabelled as, and what they count for.

    "counts"
        Two bars, what was labelled and what was not, cut into what became of it:
        positive, undecided (left out of training) or negative.
    "training"
        Each sample at its observed gap: upwards by as much as it counts as a positive
        in training, downwards as a negative, on the line if it is left out. A sample
        about which doubt is kept, as the default does, stands on both sides.

    Make one by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    observed_gap : ndarray of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x).
    labelled : ndarray of shape (n_samples,)
        True for labelled positives.
    relabelling : Relabelling
        What was decided about each.
    sample_weight : ndarray of shape (n_samples,)
        What each counts for in training.
    boundary : float or None
        The boundary l, where it is known.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure around it.

    Examples
    --------
    >>> from probgap.plotting import RelabellingDisplay
    >>> from probgap.relabel import relabel
    >>> gap, labelled = [-0.9, -0.8, -0.3, 0.6, 0.7], [0, 0, 0, 0, 1]
    >>> relabelling = relabel(gap, labelled, lower=-0.5)
    >>> display = RelabellingDisplay.from_predictions(gap, labelled, relabelling)
    >>> display.frame().loc["unlabelled"].to_dict()
    {'positive': 1, 'undecided': 1, 'negative': 2}
    """

    observed_gap: Vector
    labelled: Mask
    relabelling: Relabelling
    sample_weight: Vector
    boundary: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        kind: Kind = "counts",
        ax: Axes | None = None,
    ) -> Self:
        """Draw what a fitted classifier made of its training samples.

        Parameters
        ----------
        estimator : estimator
            A fitted :class:`~probgap.PGPUClassifier` or
            :class:`~probgap.PGPUClassifierCV`, or a pipeline that ends in one.
        X : array-like or None
            The samples it was fitted on, or ``None`` for the same: only those were
            relabelled. They are not looked at, but for their number.
        y : array-like of shape (n_samples,)
            The observed labels it was fitted on.
        kind : {"counts", "training"}, default="counts"
            What to draw.
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.

        Returns
        -------
        RelabellingDisplay
            The picture, and what it shows.

        Examples
        --------
        >>> from probgap.plotting import RelabellingDisplay
        >>> RelabellingDisplay.from_estimator(model, X, y)  # doctest: +SKIP
        """
        classifier, gap, labelled = look_at(estimator, None, y)
        if X is not None and np.shape(X)[0] != gap.size:
            msg = (
                f"X must be the {gap.size} samples that estimator was fitted on, or "
                f"None. Got {np.shape(X)[0]} samples."
            )
            raise InvalidInputError(msg)
        return cls.from_predictions(
            gap,
            labelled,
            classifier.relabelling_,
            sample_weight=classifier.sample_weight_,
            boundary=classifier.boundary_.value,
            kind=kind,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        observed_gap: ArrayLike,
        labelled: ArrayLike,
        relabelling: Relabelling,
        *,
        sample_weight: ArrayLike | None = None,
        boundary: float | None = None,
        kind: Kind = "counts",
        ax: Axes | None = None,
    ) -> Self:
        """Draw a relabelling that is at hand.

        Parameters
        ----------
        observed_gap : array-like of shape (n_samples,)
            P(s=1 | x) - P(s=0 | x), each in [-1, 1].
        labelled : array-like of shape (n_samples,)
            True for labelled positives.
        relabelling : Relabelling
            What :func:`~probgap.relabel.relabel` decided.
        sample_weight : array-like of shape (n_samples,), default=None
            What each counts for in training. ``None`` takes 1 for all.
        boundary : float, default=None
            The boundary l, to be drawn where it is known.
        kind : {"counts", "training"}, default="counts"
            What to draw.
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.

        Returns
        -------
        RelabellingDisplay
            The picture, and what it shows.

        Examples
        --------
        >>> from probgap.plotting import RelabellingDisplay
        >>> from probgap.relabel import relabel
        >>> gap, labelled = [-0.9, 0.7], [0, 1]
        >>> relabelling = relabel(gap, labelled, lower=-0.5)
        >>> display = RelabellingDisplay.from_predictions(gap, labelled, relabelling)
        >>> display.sample_weight
        array([1., 1.])
        """
        gap = check_gap(observed_gap)
        mask = check_labelled(labelled, gap.size)
        weight = (
            np.ones(gap.size) if sample_weight is None else np.asarray(sample_weight)
        )
        sizes = {"relabelling": relabelling.labels.size, "sample_weight": weight.size}
        for name, size in sizes.items():
            if size != gap.size:
                msg = (
                    f"{name} must have one entry for each of the {gap.size} samples. "
                    f"Got {size}."
                )
                raise InvalidInputError(msg)
        display = cls(
            observed_gap=gap,
            labelled=mask,
            relabelling=relabelling,
            sample_weight=weight,
            boundary=boundary,
        )
        return display.plot(ax, kind=kind)

    def plot(self, ax: Axes | None = None, *, kind: Kind = "counts") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.
        kind : {"counts", "training"}, default="counts"
            What to draw.

        Returns
        -------
        RelabellingDisplay
            Itself.
        """
        _require_kind(kind)
        draw = self._draw_counts if kind == "counts" else self._draw_training
        draw(self._start(ax))
        return self

    def frame(self, *, kind: Kind = "counts") -> Any:
        """Return what is drawn as a table.

        Parameters
        ----------
        kind : {"counts", "training"}, default="counts"
            What is drawn.

        Returns
        -------
        DataFrame
            How many of each kind became what; or, for each sample, its gap, label and
            outcome, and what it counts for as a positive and as a negative.
        """
        _require_kind(kind)
        pandas = library("pandas")
        if kind == "counts":
            rows = pandas.Index(_ROWS, name="observed")
            return pandas.DataFrame(self._counts(), index=rows)
        positive, negative = self._parts()
        labels = self.relabelling.labels.tolist()
        table = {
            "observed_gap": self.observed_gap,
            "labelled": self.labelled,
            "relabelled": [_OUTCOMES[code][0] for code in labels],
            "as_positive": positive,
            "as_negative": negative,
        }
        return pandas.DataFrame(table)

    def _counts(self) -> dict[str, list[int]]:
        """Count what labelled and unlabelled samples became."""
        kinds = (self.labelled, ~self.labelled)
        return {
            name: [
                int(np.sum((self.relabelling.labels == code) & kind)) for kind in kinds
            ]
            for code, (name, _) in _OUTCOMES.items()
        }

    def _parts(self) -> tuple[Vector, Vector]:
        """Return what each sample counts for as a positive, and as a negative."""
        share, decided = self.relabelling.positive_share, self.relabelling.decided
        positive = np.where(decided, share * self.sample_weight, 0.0)
        negative = np.where(decided, (1.0 - share) * self.sample_weight, 0.0)
        return positive, negative

    def _draw_counts(self, ax: Axes) -> None:
        counts = self._counts()
        left = np.zeros(len(_ROWS))
        longest = max(np.sum(list(counts.values()), axis=0))
        for name, colour in _OUTCOMES.values():
            width = np.array(counts[name])
            label = f"{name} ({width.sum():,})"
            bars = ax.barh(_ROWS, width, left=left, color=colour, label=label)
            left += width
            text = [f"{n:,}" if n > _ROOM_FOR_TEXT * longest else "" for n in width]
            shown = "black" if colour == UNLABELLED else "white"
            ax.bar_label(bars, text, label_type="center", color=shown)
        ax.invert_yaxis()
        ax.set(xlabel="samples", ylabel="observed as", xlim=(0.0, 1.02 * longest))
        style: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
        ax.legend(title="relabelled as", ncols=3, frameon=False, **style)

    def _draw_training(self, ax: Axes) -> None:
        positive, negative = self._parts()
        rows = np.zeros(self.labelled.size, dtype=bool)
        rows[spread_rows(self.labelled.size, _MOST_DRAWN)] = True
        style: dict[str, Any] = {"s": 14, "lw": 0, "alpha": 0.6, "zorder": 2}
        for height, drawn, colour, name in (
            (positive, positive > 0.0, POSITIVE, "as positive"),
            (-negative, negative > 0.0, NEGATIVE, "as negative"),
            (positive, ~self.relabelling.decided, UNLABELLED, "left out"),
        ):
            if drawn.any():
                shown = drawn & rows
                gaps = self.observed_gap[shown]
                ax.scatter(gaps, height[shown], color=colour, label=name, **style)
        ax.axhline(0.0, color=ink(), lw=0.8, zorder=1.5)
        draw_zones(ax, self.boundary)
        label_gap_axis(ax)
        ax.set_ylabel("weight in training")
        ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        legend(ax)


def _require_kind(kind: str) -> None:
    if kind not in get_args(Kind):
        msg = f"kind must be one of {get_args(Kind)}. Got {kind!r}."
        raise InvalidInputError(msg)
