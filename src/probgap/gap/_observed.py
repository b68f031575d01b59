"""The observed gap by any probabilistic classifier: the paper's first step."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils._param_validation import HasMethods, StrOptions

from probgap._core.checks import ObservedLabels
from probgap._core.errors import InvalidInputError
from probgap._core.estimators import clone_with_seed, require_predict_proba
from probgap._core.runtime import RandomStateLike, draw_seed
from probgap._core.svm import FastSVC
from probgap._core.types import Mask, Matrix, Vector
from probgap._core.validation import (
    DEFAULT_FOLDS,
    can_hold_out,
    fold_of_rows,
    make_splitter,
    smaller_group,
)
from probgap._device.estimators import PlattTask, fit_platt
from probgap.gap.base import GapClassifier, gap_of


class ObservedGapEstimator(GapClassifier):
    """Estimate the observed probabilistic gap P(s=1 | x) - P(s=0 | x).

    ``s`` says whether a sample is labelled, so this is a classifier of labelled against
    unlabelled, not of positive against negative. The paper assumes that the chance of a
    positive to be labelled rises with the true gap; the observed gap then rises with it,
    too. It fails where labelling depends on anything but the true gap, and is only as good
    as the probabilities of the underlying classifier.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        Estimates P(s=1 | x). ``None`` takes an RBF support vector machine with Platt
        scaling, as in the paper.
    method : {"out_of_fold", "in_sample"}, default="out_of_fold"
        How ``observed_gap_`` is computed for the training samples: by models that have
        not seen the sample, or by the model fitted on all of them, which is overconfident
        on its own training labels. With only two labelled or two unlabelled samples, gaps
        are always in-sample.
    cv : int, splitter or None, default=None
        Folds for the out-of-fold gaps. ``None`` takes five stratified folds, or as
        many as there are labelled positives.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive. ``None`` takes the
        greater of the two.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the folds and the estimator.
    n_jobs : int, default=None
        Number of folds to fit at once.
    device : str, default=None
        torch's name of a device, "cuda" or "cpu", to solve the paper's SVMs on, all folds
        together and with the same kernel width. Only with ``estimator=None``. Needs the
        extra ``gpu``.
    verbose : int, default=0
        With 1, reports on standard error what a device keeps in memory.

    Attributes
    ----------
    observed_gap_ : ndarray of shape (n_samples,)
        The gap of each training sample, in [-1, 1].
    estimator_ : object
        The classifier, fitted on all samples.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order.
    positive_index_ : int
        Which of them means labelled: 1, unless ``pos_label`` says otherwise.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where ``X`` had names that are all strings.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.gap import ObservedGapEstimator
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=0)
    >>> gap = ObservedGapEstimator(random_state=0).fit(X, s).observed_gap_
    >>> bool(gap[s == 1].mean() > gap[s == 0].mean())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"]), None],
        "method": [StrOptions({"out_of_fold", "in_sample"})],
        "cv": ["cv_object"],
        "pos_label": "no_validation",
        "random_state": "no_validation",
        "n_jobs": [int, np.integer, None],
        "device": [str, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Literal["out_of_fold", "in_sample"] = "out_of_fold",
        cv: Any = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def _fit(
        self, samples: Matrix, labels: ObservedLabels, rng: np.random.Generator
    ) -> None:
        smallest = smaller_group(labels.labelled)
        out_of_fold = self.method == "out_of_fold" and can_hold_out(smallest)
        if self.device is not None:
            self._fit_on_device(samples, labels, rng, out_of_fold=out_of_fold)
            return
        if self.estimator is not None:
            require_predict_proba(self.estimator, "estimator")
            model = clone_with_seed(self.estimator, rng)
        else:
            folds = _calibration_folds(smallest, rng)
            model = CalibratedClassifierCV(
                FastSVC(), method="sigmoid", ensemble=False, cv=folds
            )
        observed = labels.labelled.astype(np.int8)
        self.estimator_ = clone_with_seed(model, rng).fit(samples, observed)
        if out_of_fold:
            proba = cross_val_predict(
                clone_with_seed(model, rng),
                samples,
                observed,
                cv=make_splitter(self.cv, labels, rng),
                method="predict_proba",
                n_jobs=self.n_jobs,
            )
        else:
            proba = self.estimator_.predict_proba(samples)
        self.observed_gap_ = gap_of(proba[:, 1])

    def _fit_on_device(
        self,
        samples: Matrix,
        labels: ObservedLabels,
        rng: np.random.Generator,
        *,
        out_of_fold: bool,
    ) -> None:
        """Fit the SVMs of all folds, and of the calibration folds inside them, together."""
        if self.estimator is not None:
            msg = (
                "estimator must be None with a device, which fits the SVM of the paper. "
                f"Got {self.estimator!r}."
            )
            raise InvalidInputError(msg)
        labelled = labels.labelled
        inner = _calibration_folds(smaller_group(labelled), rng)
        held_out = []
        if out_of_fold:
            splitter = make_splitter(self.cv, labels, rng)
            fold = fold_of_rows(splitter, samples, labelled)
            held_out = [fold == k for k in range(fold.max() + 1)]
        parts = [np.ones(labelled.size, dtype=bool), *(~test for test in held_out)]
        self.estimator_, (chance, *by_others) = fit_platt(
            samples,
            labelled,
            [_platt_task(part, labelled, inner) for part in parts],
            device=self.device or "cpu",
            verbose=self.verbose,
        )
        for test, other in zip(held_out, by_others, strict=True):
            chance[test] = other[test]
        self.observed_gap_ = gap_of(chance)

    def _uncorrected_chance(self, samples: Matrix) -> Vector:
        chance: Vector = self.estimator_.predict_proba(samples)[:, 1]
        return chance


def _calibration_folds(smallest: int, rng: np.random.Generator) -> StratifiedKFold:
    """Return folds for Platt scaling, no more than each training part has samples for."""
    in_each_part = smallest - -(-smallest // min(DEFAULT_FOLDS, smallest))
    folds = min(DEFAULT_FOLDS, max(2, in_each_part))
    return StratifiedKFold(folds, shuffle=True, random_state=draw_seed(rng))


def _platt_task(part: Mask, labelled: Mask, folds: StratifiedKFold) -> PlattTask:
    rows = np.flatnonzero(part)
    held_out = []
    for _, test in folds.split(rows[:, None], labelled[rows].astype(np.int8)):
        mask = np.zeros(part.size, dtype=bool)
        mask[rows[test]] = True
        held_out.append(mask)
    return PlattTask(part, held_out)
