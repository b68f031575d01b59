"""Models of older files, with their parameters as they are spelt now."""

from __future__ import annotations

from typing import Any

import numpy as np

from probgap._core.errors import ModelFileError
from probgap.boundary import MeanSmallest, Quantile
from probgap.gap import ObservedGapEstimator
from probgap.gap._base import GapClassifier
from probgap.io._walk import walk
from probgap.pgpu._base import BasePGPU
from probgap.reading._network import Curves
from probgap.reweight import KernelMeanMatching

# Types that files of older versions hold, and this one no longer has.
GONE = frozenset(
    {
        "probgap.gap._labelling.LabellingModel",
        "probgap.gap._boosting.BoostedChance",
        "probgap.gap._boosting.StackedFeatures",
        "probgap.gap._forest.ForestChance",
        "probgap.gap._forest.ForestScore",
        "probgap.gap._rate.RatePrior",
    }
)
# Parameters that became those of an object, and what follows from ``reading_``.
_MOVED = (
    "n_smallest",
    "quantile",
    "gap_method",
    "kernel",
    "gamma",
    "upper",
    "slack",
    "kernel_features",
    "estimated_class_prior_",
    "estimated_class_prior_interval_",
    "estimated_labelling_rate_",
    "estimated_labelling_rate_interval_",
)


def bring_up_to_date(model: object) -> None:
    """Spell parameters as they are spelt now, in every classifier of a model."""
    for thing in list(walk(model)):
        if isinstance(thing, Curves) and not hasattr(thing, "shift"):
            _spread_alike(thing)
        if isinstance(thing, BasePGPU) and "kernel_features" in vars(thing):
            _respell(thing)


def _spread_alike(curves: Any) -> None:
    """Let all curves spread by as much as one number once said, and shift alike.

    Fields are stored in their order: what was the shift of all lies where spreads do.
    """
    shift = float(curves.spread)
    object.__setattr__(curves, "spread", np.full(curves.weights.size, 0.25))
    object.__setattr__(curves, "shift", np.full(curves.weights.size, shift))


def _respell(classifier: Any) -> None:
    old = vars(classifier)
    if getattr(classifier, "reading_", None) is None:
        msg = (
            f"its {type(classifier).__name__} was fitted without a reading by an older "
            "version of probgap: fit again"
        )
        raise ModelFileError(msg)
    named = {
        "mean_smallest": MeanSmallest(old["n_smallest"]),
        "quantile": Quantile(old["quantile"]),
    }
    classifier.boundary = named.get(old["boundary"], old["boundary"])
    if old["reweight"]:
        settings = {name: old[name] for name in ("kernel", "gamma", "upper", "slack")}
        classifier.reweight = KernelMeanMatching(**settings)
    else:
        classifier.reweight = None
    gap = old["gap_estimator"]
    if gap is not None and not isinstance(gap, GapClassifier):
        own = None if isinstance(gap, str) else gap
        classifier.gap_estimator = ObservedGapEstimator(own, method=old["gap_method"])
    classifier.row_weight_, classifier.averages_ = None, False
    for name in _MOVED:
        old.pop(name, None)
