"""The parts that a model file may hold: trusted types, and rules for their fields.

A file names probgap's classes without their modules, and others by the path that users
import them from, so that a private module may move. To add a class, add its name here and its
rules to ``parts.toml``.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

import numpy as np

from probgap import boundary, gap, methods, pgpu, reading, relabel, reweight, tables
from probgap._core import kernels, learners, mixture, svm
from probgap._core._sklearn import CyHalfBinomialLoss
from probgap._device import estimators as device
from probgap.audit import CorrectedClassifier
from probgap.audit import _process as process
from probgap.io import _trees as trees
from probgap.reading import network
from probgap.tables import _steps as steps

PARTS: dict[str, type] = {
    name: getattr(module, name)
    for module, names in {
        # What users fit, its settings, and what it found.
        pgpu: "PGPUClassifier PGPUClassifierCV",
        methods: " ".join(methods.__all__),
        tables: "ColumnPlan ColumnUse TableClassifier",
        gap: "MixedGapEstimator ObservedGapEstimator",
        boundary: "Boundary MeanSmallest Quantile",
        reweight: "KernelMeanMatching KMMResult",
        relabel: "Relabelling",
        reading: "Reading",
        network: "Curves",
        process: "Answers Belief Correction Points",
        # What predictions are made by.
        kernels: "KernelFeatures",
        learners: "KernelLogistic LinearLogistic",
        mixture: "Columns Directions MixedClassifier Mixture Words",
        trees: "Boosting Forest Trees",
        device: "DevicePlatt DeviceSVM",
    }.items()
    for name in names.split()
}
PARTS |= {"CorrectedClassifier": CorrectedClassifier}
PARTS |= {"SVM": svm.FastSVC, "FeatureSVM": svm.NystroemSVM}
# Steps of a table's pipeline. They compute from their argument alone: nothing in this list
# may open, write or run anything.
_STEPS = "bend hold name_dates to_categories to_dates to_documents to_numbers"
STEPS = {name: getattr(steps, name) for name in _STEPS.split()}

_TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    files("probgap.io").joinpath("parts.toml").read_text(encoding="utf-8")
)
RENAMED: dict[str, str] = _TABLE["renamed"]


def _read_rules(table: dict[str, dict[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Return the fields of each part, and the forms that each may have."""
    rules: dict[str, list[tuple[str, str]]] = {}
    for names, own in table.items():
        rows = list(rules.get(own.pop("like", ""), ()))
        for fields, forms in own.items():
            rows += [(field, forms) for field in fields.split()]
        rules |= dict.fromkeys(names.split(), rows)
    return rules


RULES = _read_rules(_TABLE["rules"])
SCIKIT_LEARN = frozenset(
    f"sklearn.{module}.{name}"
    for module, names in _TABLE["scikit-learn"].items()
    for name in names.split()
)
_SPARSE = {f"scipy.sparse.cs{k}_{form}" for k in "rc" for form in ("matrix", "array")}
_SCALARS = {
    f"numpy.{kind.__name__}"
    for kind in (np.bool_, np.str_, *np.sctypeDict.values())
    if issubclass(kind, np.bool_ | np.number | np.str_)
}
_UFUNCS = {f"numpy.{n}" for n in dir(np) if isinstance(getattr(np, n), np.ufunc)}
_TRUSTED = {loader: set(names.split()) for loader, names in _TABLE["loaders"].items()}
_TRUSTED["TypeNode"] |= _SCALARS
_TRUSTED["NdArrayNode"] |= _SCALARS
_TRUSTED |= {
    "FunctionNode": {f"probgap.{name}" for name in STEPS} | _UFUNCS,
    "ObjectNode": {f"probgap.{name}" for name in PARTS} | SCIKIT_LEARN | _SPARSE,
    "SparseMatrixNode": _SPARSE,
    # The name of its module depends on the version of scikit-learn.
    "LossNode": {f"{CyHalfBinomialLoss.__module__}.{CyHalfBinomialLoss.__name__}"},
}


def is_trusted(loader: str, name: str) -> bool:
    """Return whether a type of this name may be built by this loader."""
    # Numbers, strings and None are built without their name.
    return loader == "JsonNode" or name in _TRUSTED.get(loader, ())


def public_name(loader: str, module: str, name: str) -> str:
    """Return a name as users import it if that is trusted, else the full path."""
    path = module.split(".")
    private = next((k for k, word in enumerate(path) if word[:1] == "_"), len(path))
    public = ".".join([*path[:private], name])
    return public if is_trusted(loader, public) else f"{module}.{name}"
