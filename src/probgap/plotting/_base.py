"""What the displays share: the fitted model they show, axes, colours and the boundary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from probgap._core.checks import check_gap, check_labelled, read_labels
from probgap._core.errors import InvalidInputError, load_library
from probgap._core.types import Vector
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that people with colour blindness can tell apart, on light and dark backgrounds.
POSITIVE, NEGATIVE, UNLABELLED = "#d55e00", "#0072b2", "#9a9a9a"


class Display(ABC):
    """Observed gaps of labelled and unlabelled samples, on axes of matplotlib."""

    ax_: Axes
    figure_: Figure
    boundary: float | None = None

    def __init__(
        self,
        *,
        observed_gap: ArrayLike,
        labelled: ArrayLike,
        boundary: float | None = None,
    ) -> None:
        self.observed_gap = check_gap(observed_gap)
        self.labelled = check_labelled(labelled, self.observed_gap.size)
        self.boundary = boundary

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
        steps, classifier = None, estimator
        if isinstance(estimator, Pipeline):
            steps, classifier = estimator[:-1], estimator[-1]
        if not isinstance(classifier, PGPUClassifier | PGPUClassifierCV):
            msg = (
                "estimator must be a PGPUClassifier or PGPUClassifierCV, or a pipeline "
                f"that ends in one. Got {type(classifier).__name__}."
            )
            raise InvalidInputError(msg)
        check_is_fitted(classifier)
        gap = cls._gaps_of(classifier, steps, X)
        positive = classifier.classes_[classifier.positive_index_]
        labelled = read_labels(y, positive).labelled
        more = cls._more_arguments(classifier)
        return cls(observed_gap=gap, labelled=labelled, **more).plot(ax, **options)

    @staticmethod
    def _gaps_of(classifier: Any, steps: Any, X: Any) -> Vector:
        """Return the gaps of samples, or those of the fit, which were held out."""
        if X is None:
            return classifier.observed_gap_
        features = steps.transform(X) if steps else X
        return classifier.gap_estimator_.transform(features)[:, 0]

    @staticmethod
    def _more_arguments(classifier: Any) -> dict[str, Any]:
        """Return the arguments, besides gaps and labels, that a fit provides."""
        return {"boundary": classifier.boundary_.value}

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the axes given, or on new ones."""

    def _start(self, ax: Axes | None) -> Axes:
        """Keep the axes to draw on: those given, or new ones."""
        if ax is None:
            _, ax = library("matplotlib.pyplot").subplots(layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]
        return ax

    def _draw_boundary(self, value: float) -> Artist:
        """Draw a dashed line at the boundary, with its value in the legend."""
        label = f"boundary {value:.2f}".replace("-", "\N{MINUS SIGN}")
        return self.ax_.axvline(
            value, color=ink(), lw=1.5, ls="--", label=label, zorder=2.5
        )

    def _shade(self, low: float, high: float, label: str) -> Artist:
        style: dict[str, Any] = {"color": ink(), "alpha": 0.12, "lw": 0, "zorder": 0.5}
        return self.ax_.axvspan(low, high, label=label, **style)

    def _draw_zones(self) -> list[Artist]:
        """Draw 0, the boundary and the undecided zone; return what the legend names."""
        self.ax_.axvline(0.0, color=ink(), lw=0.8, zorder=1.5)
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


def library(name: str) -> ModuleType:
    """Import a module of matplotlib or pandas, or raise an error that names the extra."""
    return load_library(name, extra="report", purpose="plots")


def ink() -> Any:
    """Return the colour of text in the current style."""
    return library("matplotlib").rcParams["text.color"]
