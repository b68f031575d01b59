"""Files of format 1, of probgap 0.1: translate names, fields and parameters.

There, our classes are under the private modules that they had then, and dataclasses are
without the names of their fields.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from probgap.boundary import MeanSmallest, Quantile
from probgap.gap import MixedGapEstimator, ObservedGapEstimator
from probgap.io._archive import refuse
from probgap.io._parts import PARTS, RENAMED
from probgap.io._plan import Node, make_node, nodes_of, translate
from probgap.reading.network import Curves
from probgap.reweight import KernelMeanMatching

# Attributes that were replaced by others, or that are computed from others now.
_MOVED = (
    "n_smallest quantile gap_method kernel gamma upper slack kernel_features "
    "estimated_class_prior_ estimated_class_prior_interval_ estimated_labelling_rate_ "
    "estimated_labelling_rate_interval_"
)


def translate_format_1(schema: Node) -> None:
    """Rename the types and fields of a plan of format 1 as in today's files."""
    kinds: dict[int, tuple[str, str]] = {}
    for node in nodes_of(schema):
        number = node.get("__id__")
        kind = node["__loader__"], str(node.get("__class__"))
        if type(number) is not int or number < 1:
            refuse(f"an object in it has the number {number!r}")
        if kinds.setdefault(number, kind) != kind:
            refuse(f"its object number {number} occurs in two forms")
    for node in nodes_of(schema):
        name: str = node["__class__"]
        values = node["content"]["content"] if name in ("Boundary", "Curves") else []
        if name == "Boundary" and len(values) == 11:
            del values[6]  # a field that was removed
        if name == "Curves" and len(values) == 6:
            values.insert(5, make_node("JsonNode", "str", "0.25"))  # the spread of all
        known = PARTS.get(RENAMED.get(name, name))
        if known and str(node.get("__module__")).startswith("probgap."):
            node["__module__"], node["__class__"] = known.__module__, known.__name__
    translate(schema)


def bring_up_to_date(thing: Any) -> None:
    """Change the attributes of a part of format 1 to those of today."""
    if type(thing) is Curves and np.ndim(thing.shift) == 0:
        # One number was the shift of all curves.
        for name, value in (("spread", 0.25), ("shift", float(thing.shift))):
            object.__setattr__(thing, name, np.full(thing.weights.size, value))
    old = getattr(thing, "__dict__", {})
    if "kernel_features" not in old:
        return
    if old.get("reading_") is None:
        refuse(
            f"its {type(thing).__name__} was fitted without a reading by an older "
            "version of probgap: fit again"
        )
    named = {
        "mean_smallest": MeanSmallest(old["n_smallest"]),
        "quantile": Quantile(old["quantile"]),
    }
    thing.boundary = named.get(old["boundary"], old["boundary"])
    settings = {name: old[name] for name in ("kernel", "gamma", "upper", "slack")}
    thing.reweight = KernelMeanMatching(**settings) if old["reweight"] else None
    gap = old["gap_estimator"]
    if not isinstance(gap, ObservedGapEstimator | MixedGapEstimator | None):
        own = None if isinstance(gap, str) else gap
        thing.gap_estimator = ObservedGapEstimator(own, method=old["gap_method"])
    thing.row_weight_, thing.averages_ = None, False
    for name in _MOVED.split():
        old.pop(name, None)
