"""Files of format 1, of probgap 0.1: names and fields as they are now.

There, our classes stand under the modules that they lived in, and dataclasses without the
names of their fields.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from probgap.boundary import MeanSmallest, Quantile
from probgap.gap import MixedGapEstimator, ObservedGapEstimator
from probgap.io._archive import refuse
from probgap.io._parts import PARTS
from probgap.io._plan import Node, make_node, nodes_of, translate
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV
from probgap.reading.network import Curves
from probgap.reweight import KernelMeanMatching

_RENAMED = {
    "DeviceMachine": "DeviceSVM",
    "FeatureMachine": "FeatureSVM",
    "Nodes": "Trees",
    "RBFMachine": "SVM",
    "StoredBoosting": "Boosting",
    "StoredForest": "Forest",
}
_FIELDS = {
    "Boundary": "value rule spread n_negative n_undecided n_positive fallback candidates "
    "scores names",
    "Boosting": "nodes n_features n_rounds baseline margin",
    "Columns": "centre scale",
    "Curves": "weights ceiling share middle width spread shift",
    "Directions": "scale offset basis",
    "Forest": "nodes n_features frequency margin",
    "KMMResult": "weights objective kkt_residual band_slack n_iter converged solver gamma "
    "duality_gap n_passes bytes_moved",
    "KernelFeatures": "landmarks gamma rotation",
    "KernelLogistic": "features scale coef intercept",
    "LinearLogistic": "coef intercept",
    "Mixture": "learners weights intercept view",
    "Reading": "boundary class_prior class_prior_interval n_hidden n_hidden_interval "
    "n_labelled n_unlabelled strangeness curves slope offset scores",
    "Relabelling": "labels positive_share",
    "Trees": "is_leaf feature threshold missing_left value",
    "Words": "counts factor basis",
}
# Before that, a boundary had one number more, and one number was the shift of all curves.
_BEFORE = {
    ("Boundary", 11): _FIELDS["Boundary"].replace("fallback", "gone fallback"),
    ("Curves", 6): "weights ceiling share middle width shift",
}
# Attributes that estimators had in the place of others, or that follow from others now.
_MOVED = (
    *("n_smallest", "quantile", "gap_method", "kernel", "gamma", "upper", "slack"),
    *("kernel_features", "estimated_class_prior_", "estimated_class_prior_interval_"),
    *("estimated_labelling_rate_", "estimated_labelling_rate_interval_"),
)


def translate_format_1(schema: Node) -> None:
    """Name things and fields of a plan of format 1 as files do now."""

    def find_part(module: str, name: str) -> str | None:
        known = _RENAMED.get(name, name)
        return known if module.startswith("probgap.") and known in PARTS else None

    def find_fields(name: str, count: int) -> list[str]:
        return _BEFORE.get((name, count), _FIELDS.get(name, "")).split()

    kinds: dict[int, tuple[str, str]] = {}
    for node in nodes_of(schema):
        number = node.get("__id__")
        kind = node["__loader__"], str(node.get("__class__"))
        if type(number) is not int or number < 1:
            refuse(f"an object in it has the number {number!r}")
        if kinds.setdefault(number, kind) != kind:
            refuse(f"its object number {number} occurs in two forms")
    translate(schema, find_part, find_fields)
    for node in nodes_of(schema):
        if node["__class__"] == "Curves" and isinstance(node.get("fields"), dict):
            node["fields"].setdefault("spread", make_node("JsonNode", "str", "0.25"))


def bring_up_to_date(things: list[Any]) -> None:
    """Spell parameters of a model of format 1 as they are spelt now."""
    kinds = PGPUClassifier, PGPUClassifierCV
    for thing in things:
        if type(thing) is Curves and np.ndim(thing.shift) == 0:
            for name, value in (("spread", 0.25), ("shift", float(thing.shift))):
                object.__setattr__(thing, name, np.full(thing.weights.size, value))
        if type(thing) in kinds and "kernel_features" in vars(thing):
            _respell(thing)


def _respell(classifier: Any) -> None:
    old = vars(classifier)
    if getattr(classifier, "reading_", None) is None:
        refuse(
            f"its {type(classifier).__name__} was fitted without a reading by an older "
            "version of probgap: fit again"
        )
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
    if gap is not None and not isinstance(
        gap, ObservedGapEstimator | MixedGapEstimator
    ):
        own = None if isinstance(gap, str) else gap
        classifier.gap_estimator = ObservedGapEstimator(own, method=old["gap_method"])
    classifier.row_weight_, classifier.averages_ = None, False
    for name in _MOVED:
        old.pop(name, None)
