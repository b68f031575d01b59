"""Pictures of a fit, in scikit-learn's Display convention: each also returns its table."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.checks import check_gap, check_labelled, decode_labels
from probgap._core.errors import InvalidInputError, load_library
from probgap._core.estimators import classifier_of, samples_of
from probgap._core.output import comparable_height
from probgap._core.runtime import spread_rows
from probgap.boundary import Boundary
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV
from probgap.relabel import Relabelling

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["BoundaryDisplay", "GapDisplay", "RelabellingDisplay"]

Kind = Literal["counts", "training"]

# Colours that people with colour blindness can tell apart, on light and dark backgrounds.
_POSITIVE, _NEGATIVE, _UNLABELLED = "#d55e00", "#0072b2", "#9a9a9a"
_ZONES = np.array(["negative", "undecided", "positive"], dtype=object)
# Codes of a Relabelling, in the order in which they are drawn, and their colours.
_OUTCOMES = {
    1: ("positive", _POSITIVE),
    -1: ("undecided", _UNLABELLED),
    0: ("negative", _NEGATIVE),
}
_ROWS = ("labelled", "unlabelled")
# A scatter plot of more points is a blot; those drawn are spread over all samples.
_MOST_DRAWN = 5000
# A segment shorter than this share of the longest bar has no room for text.
_ROOM_FOR_TEXT = 0.06


class Display(ABC):
    """Observed gaps of labelled and unlabelled samples, on axes of matplotlib."""

    ax_: Axes
    figure_: Figure
    boundary: float | None
    _both_kinds: ClassVar[bool] = False  # whether some must be labelled, and some not

    def __init__(
        self,
        *,
        observed_gap: ArrayLike,
        labelled: ArrayLike,
        boundary: Boundary | float | None = None,
        spread: float = math.nan,
    ) -> None:
        if isinstance(boundary, Boundary):
            spread, boundary = boundary.spread, boundary.value
        self.observed_gap = check_gap(observed_gap)
        n_samples = self.observed_gap.size
        self.labelled = check_labelled(labelled, n_samples, both=self._both_kinds)
        self.boundary = boundary
        self.spread = spread

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw what a fitted classifier made of samples.

        Parameters
        ----------
        estimator : estimator
            A fitted :class:`~probgap.PGPUClassifier` or
            :class:`~probgap.PGPUClassifierCV`, or a pipeline that ends in one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None
            Samples. ``None`` stands for those it was fitted on, with the gaps that
            placed the boundary: by default of models that had not seen the sample.
            :class:`~probgap.plotting.RelabellingDisplay` takes no others, since only
            those were relabelled.
        y : array-like of shape (n_samples,)
            Their observed labels.
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.
        **options : dict
            Further parameters of ``plot``, such as ``n_bins`` or ``kind``.

        Returns
        -------
        Display
            The picture, and what it shows.
        """
        classifier = classifier_of(estimator)
        if not isinstance(classifier, PGPUClassifier | PGPUClassifierCV):
            msg = (
                "estimator must be a PGPUClassifier or PGPUClassifierCV, or a pipeline "
                f"that ends in one. Got {type(classifier).__name__}."
            )
            raise InvalidInputError(msg)
        samples = None if X is None else samples_of(estimator, X)
        positive = classifier.classes_[classifier.positive_index_]
        labelled = decode_labels(y, positive).labelled
        shown = cls._describe(classifier, samples)
        return cls(labelled=labelled, **shown).plot(ax, **options)

    @classmethod
    def _describe(cls, classifier: Any, samples: Any) -> dict[str, Any]:
        """Return what a fit says of samples, or of its own; those were held out."""
        gap = classifier.observed_gap_
        if samples is not None:
            gap = classifier.gap_estimator_.transform(samples)[:, 0]
        return {"observed_gap": gap, "boundary": classifier.boundary_}

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the axes given, or on new ones."""

    def _start(self, ax: Axes | None) -> Axes:
        """Keep the axes to draw on: those given, or new ones."""
        if ax is None:
            _, ax = _library("matplotlib.pyplot").subplots(layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]
        return ax

    def _draw_boundary(self, value: float) -> Artist:
        """Draw a dashed line at the boundary, with its value in the legend."""
        label = f"boundary {value:.2f}".replace("-", "\N{MINUS SIGN}")
        return self.ax_.axvline(
            value, color=_ink(), lw=1.5, ls="--", label=label, zorder=2.5
        )

    def _shade(self, low: float, high: float, label: str) -> Artist:
        style: dict[str, Any] = {"color": _ink(), "alpha": 0.12, "lw": 0, "zorder": 0.5}
        return self.ax_.axvspan(low, high, label=label, **style)

    def _draw_zones(self) -> list[Artist]:
        """Draw 0, the boundary and the undecided zone; return what the legend names."""
        self.ax_.axvline(0.0, color=_ink(), lw=0.8, zorder=1.5)
        if self.boundary is None:
            return []
        line = self._draw_boundary(self.boundary)
        if self.boundary >= 0.0:
            return [line]
        return [line, self._shade(self.boundary, 0.0, "undecided")]

    def _label_gap_axis(self) -> None:
        self.ax_.set_xlim(-1.02, 1.02)
        self.ax_.set_xlabel(
            "observed gap, P(labelled | x) \N{MINUS SIGN} P(unlabelled | x)"
        )


class GapDisplay(Display):
    """Histogram of observed gaps, with the boundary, 0 and what lies between.

    A sample to the left of the boundary looks negative, one to the right of 0 is more
    likely labelled than not and so positive, and between the two the gap alone decides
    nothing. Grey bars to the right of the boundary are where hidden positives are.

    Make one by :meth:`from_estimator` or :meth:`from_predictions`; it keeps the gaps,
    labels and boundary that it shows.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
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
        boundary: Boundary | float | None = None,
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
        boundary : Boundary or float, default=None
            The boundary l, to be drawn where it is known.
        ax, n_bins : object
            As in :meth:`plot`.

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
        """
        table = self.frame(n_bins=n_bins)
        ax = self._start(ax)
        left, unlabelled, labelled = (
            table[name].to_numpy() for name in ("gap_low", "unlabelled", "labelled")
        )
        style: dict[str, Any] = {"width": 2.0 / n_bins, "align": "edge", "zorder": 2}
        below = ax.bar(left, unlabelled, color=_UNLABELLED, label="unlabelled", **style)
        style |= {"bottom": unlabelled, "color": _POSITIVE, "label": "labelled"}
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
        return _library("pandas").DataFrame(table)


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
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
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
    lines_: tuple[Line2D, Line2D]
    _both_kinds = True

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
        shown = cls(observed_gap=observed_gap, labelled=labelled, boundary=boundary)
        return shown.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the share of samples on the negative side of each boundary.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.
        """
        table, here = self.frame(), self.frame(at=[self.boundary])
        ax = self._start(ax)
        lines = []
        for name, colour in (("unlabelled", _UNLABELLED), ("labelled", _POSITIVE)):
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
        if self.spread > 0.0:
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
        return _library("pandas").DataFrame(table)


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
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

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
        relabelling: Relabelling,
        sample_weight: ArrayLike | None = None,
        **shown: Any,
    ) -> None:
        super().__init__(**shown)
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
        boundary: Boundary | float | None = None,
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
        boundary : Boundary or float, default=None
            The boundary l, to be drawn where it is known.
        kind, ax : object
            As in :meth:`plot`.

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

    @classmethod
    def _describe(cls, classifier: Any, samples: Any) -> dict[str, Any]:
        n_fitted = classifier.observed_gap_.size
        if samples is not None and np.shape(samples)[0] != n_fitted:
            msg = (
                f"X must be the {n_fitted} samples that estimator was fitted on, or "
                f"None. Got {np.shape(samples)[0]} samples."
            )
            raise InvalidInputError(msg)
        return {
            **super()._describe(classifier, None),
            "relabelling": classifier.relabelling_,
            "sample_weight": classifier.sample_weight_,
        }

    def plot(self, ax: Axes | None = None, *, kind: Kind = "counts") -> Self:
        """Draw bars of counts, or each sample by its weight in training.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. ``None`` makes a figure.
        kind : {"counts", "training"}, default="counts"
            What to draw.
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
        pandas = _library("pandas")
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
            shown = "black" if colour == _UNLABELLED else "white"
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
            (positive, positive > 0.0, _POSITIVE, "as positive"),
            (-negative, negative > 0.0, _NEGATIVE, "as negative"),
            (positive, table["relabelled"] == "undecided", _UNLABELLED, "left out"),
        ):
            if drawn.any():
                gaps = table["observed_gap"][drawn]
                style |= {"color": colour, "label": name}
                handles.append(ax.scatter(gaps, height[drawn], **style))
        ax.axhline(0.0, color=_ink(), lw=0.8, zorder=1.5)
        handles += self._draw_zones()
        self._label_gap_axis()
        ax.set_ylabel("weight in training")
        ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        ax.legend(handles=handles)


def _library(name: str) -> ModuleType:
    """Import a module of matplotlib or pandas, or raise an error that names the extra."""
    return load_library(name, extra="report", purpose="plots")


def _ink() -> Any:
    """Return the colour of text in the current style."""
    return _library("matplotlib").rcParams["text.color"]
