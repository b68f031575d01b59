"""The methods of the experiments; those of a split share the fits that several need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import joblib
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from probgap import methods
from probgap._core.checks import ObservedLabels
from probgap._core.svm import FastSVC
from probgap._core.types import Array, Matrix
from probgap.boundary import MeanSmallest
from probgap.gap import MixedGapEstimator
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV

CLEAN = "clean"  # the one column that is fitted on true labels
FIGURE = "figure"  # PGPU again, whose row holds the points of Figure 1
_PLATT_FOLDS = 5


class Fits(dict[str, Any]):
    """Results by the content of their inputs; clones of an estimator share them."""

    def recall(self, inputs: Any, compute: Callable[[], Any]) -> Any:
        """Return the result for these inputs, computed once."""
        key = joblib.hash(inputs)
        if key not in self:
            self[key] = compute()
        return self[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class SharedPlatt(CalibratedClassifierCV):
    """An SVM with Platt scaling, fitted once for each set of samples and labels.

    Every ``random_state`` in it is set, so that sharing changes no number.
    """

    _only_calibrates = True  # a search may fit it by a kernel matrix

    def __init__(self, estimator: Any, *, cv: Any, fits: Fits) -> None:
        super().__init__(estimator, method="sigmoid", ensemble=False, cv=cv)
        self.fits = fits

    def fit(self, X: Matrix, y: NDArray[Any]) -> Self:
        """Fit, or reuse the fit on the same data."""
        self.content_ = joblib.hash((X, y, self.estimator.get_params(), self.cv))
        fit = super().fit
        fitted = self.fits.recall(self.content_, lambda: vars(fit(X, y)))
        self.__dict__.update({k: v for k, v in fitted.items() if k.endswith("_")})
        return self

    def predict_proba(self, X: Matrix) -> Array:
        """Return the probabilities of the classes."""
        predict = super().predict_proba
        proba: Array = self.fits.recall((self.content_, X), lambda: predict(X))
        return proba


class SharedGap(MixedGapEstimator):
    """The gap of the default, fitted once for each set of samples, labels and seed."""

    def __init__(self, fits: Fits, *, random_state: Any = None) -> None:
        super().__init__(random_state=random_state)
        self.fits = fits

    def _fit(self, samples: Matrix, labels: ObservedLabels, _: Generator) -> None:
        """Fit, or reuse the fit on the same data."""
        seed, known = self.random_state, (samples, labels.labelled)
        fit = lambda: MixedGapEstimator(random_state=seed)._fit_checked(*known)
        fitted = self.fits.recall(("gap", *known, seed), fit)
        self.mixture_, self.log_odds_ = fitted.mixture_, fitted.log_odds_
        self.observed_gap_ = fitted.observed_gap_


class FilledPGPU(ClassifierMixin, BaseEstimator):
    """PGPU whose undecided rows get a class from the relabelled ones, in place of weights.

    The SVM is fitted to the rows that have one, as in PGPU.
    """

    def __init__(self, model: PGPUClassifier, filler: Any) -> None:
        self.model, self.filler = model, filler

    def fit(self, X: Matrix, s: NDArray[Any]) -> Self:
        """Relabel, fill in what is undecided, and fit the SVM."""
        self.boundary_ = self.model.fit(X, s).boundary_
        labels = self.model.relabelling_.labels  # -1 is undecided, as in scikit-learn
        if (labels < 0).any():
            labels = clone(self.filler).fit(X, labels).transduction_
        known = labels >= 0
        self.estimator_ = clone(self.model.estimator).fit(X[known], labels[known])
        return self

    def decision_function(self, X: Matrix) -> Array:
        """Return the decisions of the SVM."""
        return self.estimator_.decision_function(X)


def _pgpu(n_smallest: int = 3, **options: Any) -> PGPUClassifier:
    return PGPUClassifier.paper(boundary=MeanSmallest(n_smallest), **options)


def _unweighted(**options: Any) -> PGPUClassifier:
    return _pgpu(reweight=None, **options)


def _self_trained(**options: Any) -> FilledPGPU:
    model = _unweighted(**options)
    platt = CalibratedClassifierCV(model.estimator, cv=_PLATT_FOLDS, ensemble=False)
    return FilledPGPU(model, SelfTrainingClassifier(platt))


def _spread(**options: Any) -> FilledPGPU:
    return FilledPGPU(_unweighted(**options), LabelSpreading(kernel="knn"))


_PGPU_PARTS = ("estimator", "gap_estimator__estimator")
# Each method, and its parameters for the SVM and the estimate of P(s=1 | x) that the
# methods of the paper share.
METHODS: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "SVM": (methods.NaiveClassifier, ("estimator",)),
    "Elkan": (methods.ElkanNotoClassifier, ("estimator", "gap_estimator")),
    "Natarajan": (methods.NatarajanClassifier, ("estimator", "gap_estimator")),
    "Liu": (methods.LiuTaoClassifier, ("estimator", "gap_estimator")),
    "PGPU": (_pgpu, _PGPU_PARTS),
    "PGPUcv": (PGPUClassifierCV.paper, _PGPU_PARTS),
    CLEAN: (methods.NaiveClassifier, ("estimator",)),
    # As a user gets it: the SVM and the estimate are the paper's, not ours.
    "probgap": (PGPUClassifier, ()),
    # The same with their SVM at the end, to see what the final classifier contributes.
    "probgap C=1": (PGPUClassifier, ("estimator",)),
    # The same without weights, and with a class for what PGPU leaves out.
    "unweighted": (_unweighted, _PGPU_PARTS),
    "self-training": (_self_trained, _PGPU_PARTS),
    "label spreading": (_spread, _PGPU_PARTS),
    FIGURE: (_pgpu, _PGPU_PARTS),
}


def make_method(
    name: str,
    parameters: Mapping[str, Any],
    svm: Mapping[str, Any],
    seed: int,
    fits: Fits,
) -> Any:
    """Return a method, unfitted; ``fits`` are shared with other methods of the split."""
    estimator = FastSVC(**svm, random_state=seed)
    folds = StratifiedKFold(_PLATT_FOLDS, shuffle=True, random_state=seed)
    platt = SharedPlatt(estimator, cv=folds, fits=fits)
    make, places = METHODS[name]
    parts: dict[str, Any] = dict(zip(places, (estimator, platt), strict=False))
    if make is PGPUClassifier:
        parts["gap_estimator"] = SharedGap(fits)
    return make(**parts, random_state=seed, **parameters)
