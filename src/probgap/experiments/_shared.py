"""Fits that several methods of one split have in common, made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from probgap._core.types import Matrix


class Memory:
    """What was computed before, by the content of what it was computed from.

    Copies of it, which scikit-learn makes when it clones an estimator, are the same
    memory.
    """

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self.n_found = 0

    def recall(self, inputs: Any, compute: Callable[[], Any]) -> Any:
        """Compute, unless the same inputs were seen before."""
        key = joblib.hash(inputs)
        if key in self._known:
            self.n_found += 1
        else:
            self._known[key] = compute()
        return self._known[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class SharedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that is fitted once for each set of samples and labels.

    Its estimator must give the same fit for the same input, so every ``random_state`` in
    it is set: then sharing changes no number, only the time.

    Parameters
    ----------
    estimator : classifier with predict_proba
        What to fit.
    memory : Memory
        Where fits and predictions are kept.
    """

    def __init__(self, estimator: Any, memory: Memory) -> None:
        self.estimator = estimator
        self.memory = memory

    def fit(self, X: Matrix, y: NDArray[Any]) -> Self:
        """Fit, or take the fit that was made of the same data."""
        self.content_ = joblib.hash((X, y, self.estimator.get_params()))
        self.estimator_ = self.memory.recall(
            self.content_, lambda: clone(self.estimator).fit(X, y)
        )
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Give the probabilities of the classes."""
        proba: NDArray[np.float64] = self.memory.recall(
            (self.content_, X), lambda: self.estimator_.predict_proba(X)
        )
        return proba
