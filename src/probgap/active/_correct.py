"""A model corrected by the answers to what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils.validation import _num_samples, column_or_1d

from probgap._core.errors import InvalidInputError
from probgap._core.kernels import scale_gamma
from probgap._core.pipelines import classifier_of
from probgap._core.runtime import one_thread
from probgap._core.types import Array, Mask, Vector
from probgap.active.belief import Belief, Points, learn


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedClassifier:
    """A classifier whose log-odds are corrected by answers: see :func:`correct`.

    Attributes
    ----------
    model : PGPUClassifier or Pipeline
        The model that was corrected.
    belief : object
        The correction, and how uncertain it is.
    """

    model: Any
    belief: Belief

    @property
    def classes_(self) -> NDArray[Any]:
        """The two labels, in ascending order."""
        classes: NDArray[Any] = classifier_of(self.model).classes_
        return classes

    def decision_function(self, X: Any) -> Vector:
        """Return the log-odds of being positive of each row."""
        with one_thread():
            return self.belief.mean(Points.of(self.model, X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        positive = classifier_of(self.model).positive_index_
        called = self.decision_function(X) > 0.0
        return self.classes_[np.where(called, positive, 1 - positive)]

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, in the order of ``classes_``."""
        chance = expit(self.decision_function(X))
        turn = 1 if classifier_of(self.model).positive_index_ == 1 else -1
        return np.column_stack([1.0 - chance, chance][::turn])


def correct(model: Any, X: Any, y: ArrayLike) -> CorrectedClassifier:
    """Correct a fitted model by rows whose true class somebody has found out.

    Answers to what :func:`suggest` asks do not belong among the labels of ``fit``: those
    must have been collected without our help, the clear positives first, or the boundary
    is read off them wrongly; and for a negative there is no place at all. Here both
    count. The true log-odds are taken for those of the model plus a shift, a stretch and
    a smooth function of the row, each unknown and probably small (a Gaussian process
    around the model). Up to a thousand answers it takes less than a second.

    It assumes that answers are right, and that rows were not chosen by looking at their
    class. Columns should have like scales, as for the model itself. Where there are no
    answers nearby the model stays as it was, but for shift and stretch.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one: fitted without the answers.
    X : {array-like, sparse matrix, frame} of shape (n_answers, n_features)
        The rows with an answer, all that there are so far.
    y : array-like of shape (n_answers,)
        The true class of each: as in ``classes_`` of the model, or True for positive.

    Returns
    -------
    CorrectedClassifier
        It has ``predict``, ``predict_proba`` and ``decision_function``;
        :func:`suggest` and :func:`probgap.io.save` take it.

    Notes
    -----
    Measured by ``benchmarks/active.py`` on 8 draws with few labels: 90% of what the
    missing ones cost was won back after 40 answers to :func:`suggest` (median). With the
    positive answers among the labels of ``fit`` instead it took 90.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.active import correct, suggest
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("constant", 0.8), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> rows = suggest(model, X, 30, labelled=s == 1)
    >>> better = correct(model, X[rows], y[rows])  # y: what a person says
    >>> bool((better.predict(X) == y).mean() > (model.predict(X) == y).mean())
    True
    """
    positive = _check_answers(classifier_of(model), y, _num_samples(X))
    with one_thread():
        answered = Points.of(model, X)
        belief = learn(answered, positive, scale_gamma(answered.samples))
    return CorrectedClassifier(model, belief)


def _check_answers(classifier: Any, y: ArrayLike, n_rows: int) -> Mask:
    """Return which answers are positive, having checked that there are answers."""
    answers = column_or_1d(y)
    if answers.size == 0 or answers.size != n_rows:
        msg = (
            "y must have an answer for each row of X, and there must be one. Got "
            f"{answers.size} for {n_rows} rows."
        )
        raise InvalidInputError(msg)
    classes = classifier.classes_
    if answers.dtype == bool and classes.dtype != bool:
        return answers
    strange = answers[~np.isin(answers, classes)]
    if strange.size:
        known = ", ".join(map(repr, classes.tolist()))
        msg = f"y must hold classes of the model, {known}. Got {strange.tolist()[0]!r}."
        raise InvalidInputError(msg)
    positive: Mask = answers == classes[classifier.positive_index_]
    return positive
