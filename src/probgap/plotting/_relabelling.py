"""What became of each sample before the final classifier was trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.errors import InvalidInputError
from probgap._core.types import Vector
from probgap._core.validation import spread_rows
from probgap.plotting._base import (
    NEGATIVE,
    POSITIVE,
    UNLABELLED,
    Display,
    ink,
    library,
)
from probgap.relabel import Relabelling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["counts", "training"]

# A scatter plot of more points is a blot; those drawn are spread over all samples.
_MOST_DRAWN = 5000
# A segment shorter than this share of the longest bar has no room for text.
_ROOM_FOR_TEXT = 0.06
# Codes of a Relabelling, in the order in which they are drawn, and their colours.
_OUTCOMES = {
    1: ("positive", POSITIVE),
    -1: ("undecided", UNLABELLED),
    0: ("negative", NEGATIVE),
}
_ROWS = ("labelled", "unlabelled")


class RelabellingDisplay(Display):
    """What labelled and unlabelled samples were relabelled as, and what they count for.

    "counts"
        Two bars, what was labelled and what was not, cut into what became of it:
        positive, undecided (left out of training) or negative.
    "training"
        Each sample at its observed gap: upwards by as much as it counts as a positive
        in training, downwards as a negative, on the line if it is left out. A sample
        with shares of both labels, as by default, is drawn on both sides.

    Make one by :meth:`from_estimator` or :meth:`from_predictions`; it keeps the gaps,
    labels, relabelling, weights and boundary that it shows.

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

    def __init__(
        self,
        *,
        observed_gap: ArrayLike,
        labelled: ArrayLike,
        relabelling: Relabelling,
        sample_weight: ArrayLike | None = None,
        boundary: float | None = None,
    ) -> None:
        super().__init__(
            observed_gap=observed_gap, labelled=labelled, boundary=boundary
        )
        n_samples = self.observed_gap.size
        self.relabelling = relabelling
        self.sample_weight = (
            np.ones(n_samples) if sample_weight is None else np.asarray(sample_weight)
        )
        for name, values in (
            ("relabelling", relabelling.labels),
            ("sample_weight", self.sample_weight),
        ):
            if values.size != n_samples:
                msg = (
                    f"{name} must have one entry for each of the {n_samples} samples. "
                    f"Got {values.size}."
                )
                raise InvalidInputError(msg)

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
        """Draw a given relabelling.

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
        """
        shown = cls(
            observed_gap=observed_gap,
            labelled=labelled,
            relabelling=relabelling,
            sample_weight=sample_weight,
            boundary=boundary,
        )
        return shown.plot(ax, kind=kind)

    @staticmethod
    def _gaps_of(classifier: Any, steps: Any, X: Any) -> Vector:  # noqa: ARG004
        gap: Vector = classifier.observed_gap_
        if X is not None and np.shape(X)[0] != gap.size:
            msg = (
                f"X must be the {gap.size} samples that estimator was fitted on, or "
                f"None. Got {np.shape(X)[0]} samples."
            )
            raise InvalidInputError(msg)
        return gap

    @staticmethod
    def _more_arguments(classifier: Any) -> dict[str, Any]:
        return {
            "relabelling": classifier.relabelling_,
            "sample_weight": classifier.sample_weight_,
            "boundary": classifier.boundary_.value,
        }

    def plot(self, ax: Axes | None = None, *, kind: Kind = "counts") -> Self:
        """Draw bars of counts, or each sample by its weight in training.

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
        table = self.frame(kind=kind)
        self._start(ax)
        draw = self._draw_counts if kind == "counts" else self._draw_training
        draw(table)
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
        if kind not in get_args(Kind):
            msg = f"kind must be one of {get_args(Kind)}. Got {kind!r}."
            raise InvalidInputError(msg)
        pandas = library("pandas")
        names = [_OUTCOMES[code][0] for code in self.relabelling.labels.tolist()]
        if kind == "counts":
            observed = np.where(self.labelled, *_ROWS)
            table = pandas.crosstab(observed, np.array(names), rownames=["observed"])
            outcomes = [name for name, _ in _OUTCOMES.values()]
            return table.reindex(index=_ROWS, columns=outcomes, fill_value=0)
        decided = self.relabelling.decided
        share = np.where(decided, self.relabelling.positive_share, 0.0)
        weight = np.where(decided, self.sample_weight, 0.0)
        table = {
            "observed_gap": self.observed_gap,
            "labelled": self.labelled,
            "relabelled": names,
            "as_positive": share * weight,
            "as_negative": (1.0 - share) * weight,
        }
        return pandas.DataFrame(table)

    def _draw_counts(self, table: Any) -> None:
        ax, left = self.ax_, np.zeros(len(table))
        longest = table.sum(axis="columns").max()
        for name, colour in _OUTCOMES.values():
            label = f"{name} ({table[name].sum():,})"
            bars = ax.barh(_ROWS, table[name], left=left, color=colour, label=label)
            left += table[name].to_numpy()
            room = _ROOM_FOR_TEXT * longest
            text = [f"{n:,}" if n > room else "" for n in table[name]]
            shown = "black" if colour == UNLABELLED else "white"
            ax.bar_label(bars, text, label_type="center", color=shown)
        ax.invert_yaxis()
        ax.set(xlabel="samples", ylabel="observed as", xlim=(0.0, 1.02 * longest))
        style: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
        ax.legend(title="relabelled as", ncols=3, frameon=False, **style)

    def _draw_training(self, table: Any) -> None:
        ax = self.ax_
        table = table.iloc[spread_rows(len(table), _MOST_DRAWN)]
        positive, negative = table["as_positive"], table["as_negative"]
        style: dict[str, Any] = {"s": 14, "lw": 0, "alpha": 0.6, "zorder": 2}
        handles: list[Any] = []
        for height, drawn, colour, name in (
            (positive, positive > 0.0, POSITIVE, "as positive"),
            (-negative, negative > 0.0, NEGATIVE, "as negative"),
            (positive, table["relabelled"] == "undecided", UNLABELLED, "left out"),
        ):
            if drawn.any():
                gaps = table["observed_gap"][drawn]
                style |= {"color": colour, "label": name}
                handles.append(ax.scatter(gaps, height[drawn], **style))
        ax.axhline(0.0, color=ink(), lw=0.8, zorder=1.5)
        handles += self._draw_zones()
        self._label_gap_axis()
        ax.set_ylabel("weight in training")
        ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        ax.legend(handles=handles)
