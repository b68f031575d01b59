"""The columns of the tables: the paper's methods to the letter, and ours beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from probgap._core.svm import FastSVC
from probgap.baselines import (
    ElkanNotoClassifier,
    LiuTaoClassifier,
    NaiveClassifier,
    NatarajanClassifier,
)
from probgap.boundary import MeanSmallest
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV

CLEAN = "clean"  # the one column that is fitted on true labels
FIGURE = "figure"  # PGPU once more, for the points of a picture
_PLATT_FOLDS = 5


def _pgpu(n_smallest: int = 3, **options: Any) -> PGPUClassifier:
    return PGPUClassifier.paper(boundary=MeanSmallest(n_smallest), **options)


# Each method, and its parameters for the SVM and the estimate of P(s=1 | x) that the
# methods of the paper share.
METHODS: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "SVM": (NaiveClassifier, ("estimator",)),
    "Elkan": (ElkanNotoClassifier, ("estimator", "gap_estimator")),
    "Natarajan": (NatarajanClassifier, ("estimator", "gap_estimator")),
    "Liu": (LiuTaoClassifier, ("estimator", "gap_estimator")),
    "PGPU": (_pgpu, ("estimator", "gap_estimator__estimator")),
    "PGPUcv": (PGPUClassifierCV.paper, ("estimator", "gap_estimator__estimator")),
    CLEAN: (NaiveClassifier, ("estimator",)),
    # As a user gets it: the SVM and the estimate are the paper's, not ours.
    "probgap": (PGPUClassifier, ()),
    # The same with their SVM at the end: how much of a gain is the final classifier.
    "probgap C=1": (PGPUClassifier, ("estimator",)),
    FIGURE: (_pgpu, ("estimator", "gap_estimator__estimator")),
}


def make_method(
    name: str,
    parameters: Mapping[str, Any],
    svm: Mapping[str, Any],
    seed: int,
) -> Any:
    """Return one method, unfitted."""
    platt = CalibratedClassifierCV(
        FastSVC(**svm, random_state=seed),
        method="sigmoid",
        ensemble=False,
        cv=StratifiedKFold(_PLATT_FOLDS, shuffle=True, random_state=seed),
    )
    make, places = METHODS[name]
    final = SVC(**svm, random_state=seed)
    parts = dict(zip(places, (final, platt), strict=False))
    return make(**parts, random_state=seed, **parameters)
