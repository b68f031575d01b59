"""The columns of the tables: the paper's methods to the letter, and ours beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import joblib
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold

from probgap._core.svm import FastSVC
from probgap._core.types import Array, Matrix
from probgap.baselines import (
    ElkanNotoClassifier,
    LiuTaoClassifier,
    NaiveClassifier,
    NatarajanClassifier,
)
from probgap.boundary import MeanSmallest
from probgap.gap import MixedGapEstimator
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
    fits: Fits,
) -> Any:
    """Return one method, unfitted; fits are shared with other methods of the split."""
    platt = CalibratedClassifierCV(
        FastSVC(**svm, random_state=seed),
        method="sigmoid",
        ensemble=False,
        cv=StratifiedKFold(_PLATT_FOLDS, shuffle=True, random_state=seed),
    )
    make, places = METHODS[name]
    final = FastSVC(**svm, random_state=seed)
    parts = dict(zip(places, (final, SharedClassifier(platt, fits)), strict=False))
    if make is PGPUClassifier:
        parts["gap_estimator"] = SharedGap(fits)
    return make(**parts, random_state=seed, **parameters)


class Fits(dict[str, Any]):
    """Results by the content of their inputs; clones of an estimator share them."""

    def recall(self, inputs: Any, compute: Callable[[], Any]) -> Any:
        """Compute, unless the same inputs were seen before."""
        key = joblib.hash(inputs)
        if key not in self:
            self[key] = compute()
        return self[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class SharedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that is fitted once for each set of samples and labels.

    Every ``random_state`` in it is set, so that sharing changes no number.
    """

    def __init__(self, estimator: Any, fits: Fits) -> None:
        self.estimator = estimator
        self.fits = fits

    def fit(self, X: Matrix, y: NDArray[Any]) -> Self:
        """Fit, or take the fit made on the same data."""
        self.content_ = joblib.hash((X, y, self.estimator.get_params()))
        self.estimator_ = self.fits.recall(
            self.content_, lambda: clone(self.estimator).fit(X, y)
        )
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, X: Matrix) -> Array:
        """Return the probabilities of the classes."""
        proba: Array = self.fits.recall(
            (self.content_, X), lambda: self.estimator_.predict_proba(X)
        )
        return proba


class SharedGap(MixedGapEstimator):
    """The gap of the default, fitted once for each set of samples, labels and seed."""

    def __init__(self, fits: Fits, *, random_state: Any = None) -> None:
        super().__init__(random_state=random_state)
        self.fits = fits

    def fit(self, X: Matrix, y: NDArray[Any]) -> Self:
        """Fit, or take the fit made on the same data."""
        seed = self.random_state
        fitted = self.fits.recall(
            ("gap", X, y, seed), lambda: MixedGapEstimator(random_state=seed).fit(X, y)
        )
        for name, value in vars(fitted).items():
            if name.endswith("_"):
                setattr(self, name, value)
        return self
