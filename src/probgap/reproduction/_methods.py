"""The columns of the tables: the paper's methods to the letter, and ours beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import joblib
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold

from probgap._core.errors import InvalidInputError
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
_BY_DEFAULT_GAP = ("probgap", "probgap C=1")
_PLATT_FOLDS = 5


def _pgpu(svm: Any, platt: Any, n_smallest: int = 3, **own: Any) -> PGPUClassifier:
    return PGPUClassifier.paper(
        boundary=MeanSmallest(n_smallest),
        estimator=svm,
        gap_estimator__estimator=platt,
        **own,
    )


# Each takes the SVM and the estimate of P(s=1 | x) that the methods share.
_METHODS: Mapping[str, Callable[..., Any]] = {
    "SVM": lambda svm, _, **own: NaiveClassifier(estimator=svm, **own),
    "Elkan": lambda svm, platt, **own: ElkanNotoClassifier(
        estimator=svm, gap_estimator=platt, **own
    ),
    "Natarajan": lambda svm, platt, **own: NatarajanClassifier(
        estimator=svm, gap_estimator=platt, **own
    ),
    "Liu": lambda svm, platt, **own: LiuTaoClassifier(
        estimator=svm, gap_estimator=platt, **own
    ),
    "PGPU": _pgpu,
    "PGPUcv": lambda svm, platt, **own: PGPUClassifierCV.paper(
        estimator=svm, gap_estimator__estimator=platt, **own
    ),
    CLEAN: lambda svm, _, **own: NaiveClassifier(estimator=svm, **own),
    # As a user gets it: the settings above are the paper's, not ours.
    "probgap": lambda _svm, _platt, **own: PGPUClassifier(**own),
    # The same with their SVM at the end: how much of a gain is the final classifier.
    "probgap C=1": lambda svm, _, **own: PGPUClassifier(estimator=svm, **own),
    FIGURE: _pgpu,
}


def check_method(name: str) -> None:
    """Refuse an unknown method."""
    if name not in _METHODS:
        msg = f"a method must be one of {tuple(_METHODS)}. Got {name!r}."
        raise InvalidInputError(msg)


def make_method(
    name: str,
    parameters: Mapping[str, Any],
    svm: Mapping[str, Any],
    seed: int,
    memory: Memory | None,
) -> Any:
    """Return one method, unfitted.

    With a memory, methods of one split that need P(s=1 | x) of the same samples fit it
    once.
    """
    platt: Any = CalibratedClassifierCV(
        FastSVC(**svm, random_state=seed),
        method="sigmoid",
        ensemble=False,
        cv=StratifiedKFold(_PLATT_FOLDS, shuffle=True, random_state=seed),
    )
    if memory is not None:
        platt = SharedClassifier(platt, memory)
    final = FastSVC(**svm, random_state=seed)
    method = _METHODS[name](final, platt, random_state=seed, **parameters)
    if memory is not None and name in _BY_DEFAULT_GAP:
        method.set_params(gap_estimator=SharedGap(memory))
    return method


class Memory(dict[str, Any]):
    """Results by the content of their inputs; a clone of an estimator shares it."""

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

    Every ``random_state`` in its estimator is set, so the same input has the same fit:
    sharing changes no number, only the time.
    """

    def __init__(self, estimator: Any, memory: Memory) -> None:
        self.estimator = estimator
        self.memory = memory

    def fit(self, X: Matrix, y: NDArray[Any]) -> Self:
        """Fit, or take the fit made on the same data."""
        self.content_ = joblib.hash((X, y, self.estimator.get_params()))
        self.estimator_ = self.memory.recall(
            self.content_, lambda: clone(self.estimator).fit(X, y)
        )
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, X: Matrix) -> Array:
        """Return the probabilities of the classes."""
        proba: Array = self.memory.recall(
            (self.content_, X), lambda: self.estimator_.predict_proba(X)
        )
        return proba


class SharedGap(MixedGapEstimator):
    """The gap of the default, fitted once for each set of samples, labels and seed."""

    def __init__(self, memory: Memory, *, random_state: Any = None) -> None:
        super().__init__(random_state=random_state)
        self.memory = memory

    def fit(self, X: Matrix, y: NDArray[Any]) -> Self:
        """Fit, or take the fit made on the same data."""
        seed = self.random_state
        fitted = self.memory.recall(
            ("gap", X, y, seed), lambda: MixedGapEstimator(random_state=seed).fit(X, y)
        )
        for name, value in vars(fitted).items():
            if name.endswith("_"):
                setattr(self, name, value)
        return self
