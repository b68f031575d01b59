"""A fitted model and the rows that it was fitted on, as a report needs them."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from probgap import __version__
from probgap._core.checks import decode_labels
from probgap._core.errors import InvalidInputError, load_library
from probgap._core.estimators import check_rows, classifier_of, input_columns
from probgap._core.types import Mask, Rows, Vector
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV
from probgap.tables import ids_of

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "joblib")


@dataclass(frozen=True)
class Fit:
    """A fitted model, and its rows: as it takes them, as a frame, and as in the table."""

    pipeline: Any
    X: Any
    labelled: Mask
    inputs: Any
    cells: Any
    ids: NDArray[Any] | None
    table: dict[str, Any]

    @cached_property
    def classifier(self) -> Any:
        """The classifier at the end of the pipeline."""
        return classifier_of(self.pipeline)

    @property
    def numbers(self) -> Rows:
        """Numbers of the rows in the whole table, counted from 1."""
        numbers: Rows = self.cells.index.to_numpy() + 1
        return numbers

    @property
    def weight(self) -> Vector:
        """How many rows each one represents."""
        weight = self.classifier.row_weight_
        return np.ones(self.labelled.size) if weight is None else weight

    @property
    def columns(self) -> list[str]:
        """Names of the columns that the model uses."""
        return [str(name) for name in input_columns(self.pipeline, self.X)]


def read_fit(model: Any, X: Any, y: Any, ids: Any, table: Any) -> Fit:
    """Find out what was fitted on which rows, or refuse it."""
    pipeline = getattr(model, "pipeline_", model)
    classifier = classifier_of(pipeline)
    if not isinstance(classifier, PGPUClassifier | PGPUClassifierCV):
        msg = (
            "model must be a fitted PGPUClassifier, PGPUClassifierCV or TableClassifier, "
            f"or a pipeline that ends in one. Got {type(classifier).__name__}."
        )
        raise InvalidInputError(msg)
    facts = _describe_table(model, classifier, y, table)
    labelled = check_rows(X, _read_observed(model, classifier, X, y))
    if (n_fitted := classifier.observed_gap_.size) != labelled.size:
        msg = f"X must hold the {n_fitted} rows of the fit. Got {labelled.size}."
        raise InvalidInputError(msg)
    inputs = _as_frame(X) if pipeline is model else model.read_inputs(X)
    cells = _as_frame(X) if hasattr(X, "columns") else inputs
    if table is not None:
        cells = table.frame
    if ids is None and getattr(model, "id", None) is not None:
        ids = ids_of(cells, model.id)
    return Fit(
        pipeline,
        X if pipeline is model else inputs,
        labelled,
        inputs,
        cells,
        None if ids is None else np.asarray(ids, dtype=object),
        facts,
    )


def _read_observed(model: Any, classifier: Any, X: Any, y: Any) -> Any:
    """Return the mask of labelled rows, from labels as they were given to the fit."""
    if y is None:
        label = getattr(model, "label_", None)
        if label is None or label not in getattr(X, "columns", ()):
            msg = "y must be given: X has no column that the model took for its label."
            raise InvalidInputError(msg)
        return model.labels_.find(_as_frame(X)[label])
    if getattr(y, "dtype", None) == bool:
        return y
    return decode_labels(y, classifier.classes_[classifier.positive_index_]).labelled


def _as_frame(X: Any) -> Any:
    """Return rows as a DataFrame, numbered from 0; one without columns if sparse."""
    pd = load_library("pandas", extra="report", purpose="a report")
    if issparse(X):
        return pd.DataFrame(index=pd.RangeIndex(X.shape[0]))
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    frame = pd.DataFrame(X)
    names = [str(name) for name in frame.columns]
    return frame.set_axis(names, axis=1).set_axis(pd.RangeIndex(len(frame)), axis=0)


def _describe_table(model: Any, classifier: Any, y: Any, table: Any) -> dict[str, Any]:
    """Say what table it is, how its label was read, and how each column is used."""
    plan = getattr(model, "plan_", None)
    uses = [asdict(use) for use in plan.columns] if plan is not None else []
    facts = dict.fromkeys(("path", "rows", "sha256", "label", "id", "files"))
    facts |= {"name": "the table", "unlabelled": {}, "sentence": "", "notes": []}
    facts |= {use["use"]: use["name"] for use in uses if use["use"] in ("id", "label")}
    label = getattr(model, "label_", None) or facts["label"]
    facts["label"] = label or getattr(y, "name", None)
    facts["positive"] = str(classifier.classes_[classifier.positive_index_])
    facts["columns"] = uses
    for source in (getattr(model, "labels_", None), table):
        known = {name: getattr(source, name, None) for name in facts}
        facts |= {name: value for name, value in known.items() if value}
    return facts


def describe_run(pipeline: Any) -> dict[str, Any]:
    """Say with what a fit was made."""
    settings = {
        key: value if isinstance(value, str | int | float | bool) else repr(value)
        for key, value in classifier_of(pipeline).get_params(deep=False).items()
        if value is not None
    }
    versions = {"python": platform.python_version(), "probgap": __version__}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    run: dict[str, Any] = dict.fromkeys(("started", "command", "seed", "engine"))
    run |= {"probgap": __version__, "settings": settings, "versions": versions}
    return run | {"timings": {}, "pipeline": repr(pipeline), "files": []}
