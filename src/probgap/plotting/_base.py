"""What the displays share: the fitted model they show, axes, colours and the boundary."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from probgap._core.checks import check_labelled, read_labels
from probgap._core.errors import InvalidInputError, load_library
from probgap._core.types import Mask, Vector
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that people with colour blindness can tell apart, on light and dark backgrounds.
POSITIVE, NEGATIVE, UNLABELLED = "#d55e00", "#0072b2", "#9a9a9a"
_SHADE = 0.12


class Display:
    """A picture on axes of matplotlib."""

    ax_: Axes
    figure_: Figure

    def _start(self, ax: Axes | None) -> Axes:
        """Keep the axes to draw on: those given, or new ones."""
        if ax is None:
            _, ax = library("matplotlib.pyplot").subplots(layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]
        return ax


def look_at(estimator: Any, X: Any, y: ArrayLike) -> tuple[Any, Vector, Mask]:
    """Return the fitted classifier, the gaps of ``X`` by it, and which are labelled.

    ``X`` is None for the samples it was fitted on.
    """
    steps, classifier = None, estimator
    if isinstance(estimator, Pipeline):
        steps, classifier = estimator[:-1], estimator[-1]
    if not isinstance(classifier, PGPUClassifier | PGPUClassifierCV):
        msg = (
            "estimator must be a PGPUClassifier or PGPUClassifierCV, or a pipeline that "
            f"ends in one. Got {type(classifier).__name__}."
        )
        raise InvalidInputError(msg)
    check_is_fitted(classifier)
    if X is None:
        gap = classifier.observed_gap_
    else:
        inner = steps.transform(X) if steps is not None and len(steps) else X
        gap = classifier.gap_estimator_.transform(inner)[:, 0]
    positive = classifier.classes_[classifier.positive_index_]
    labelled = check_labelled(read_labels(y, positive).labelled, gap.size)
    return classifier, gap, labelled


def library(name: str) -> ModuleType:
    """Import a module of matplotlib or pandas, or raise an error that names the extra."""
    return load_library(name, extra="report", purpose="plots")


def ink() -> Any:
    """Return the colour of text in the current style."""
    return library("matplotlib").rcParams["text.color"]


def boundary_label(boundary: float) -> str:
    """Return the entry of the legend, with a minus sign as wide as a plus."""
    return f"boundary {boundary:.2f}".replace("-", "\N{MINUS SIGN}")


def draw_boundary(ax: Axes, boundary: float, **style: Any) -> None:
    """Draw the boundary as a dashed line."""
    label = boundary_label(boundary)
    ax.axvline(boundary, color=ink(), lw=1.5, ls="--", label=label, **style)


def shade(ax: Axes, low: float, high: float, label: str, **style: Any) -> None:
    """Shade a range of gaps."""
    ax.axvspan(low, high, color=ink(), alpha=_SHADE, lw=0, label=label, **style)


def draw_zones(ax: Axes, boundary: float | None) -> None:
    """Draw 0, the boundary, and the undecided zone between them."""
    ax.axvline(0.0, color=ink(), lw=0.8, zorder=1.5)
    if boundary is None:
        return
    if boundary < 0.0:
        shade(ax, boundary, 0.0, "undecided", zorder=0.5)
    draw_boundary(ax, boundary, zorder=2.5)


def label_gap_axis(ax: Axes) -> None:
    """Label the axis of gaps."""
    ax.set_xlim(-1.02, 1.02)
    ax.set_xlabel("observed gap, P(labelled | x) \N{MINUS SIGN} P(unlabelled | x)")


def legend(ax: Axes, *first: str) -> None:
    """Draw the legend, with some entries first."""
    handles, labels = ax.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    shown = [label for label in dict.fromkeys([*first, *labels]) if label in named]
    ax.legend([named[label] for label in shown], shown)
