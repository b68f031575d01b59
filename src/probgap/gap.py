"""The observed gap: how much likelier than not a sample is to be labelled."""

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import (
    PredefinedSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.utils.validation import check_is_fitted

from probgap._core._sklearn import Interval, StrOptions, check_parameters
from probgap._core.checks import (
    DEFAULT_FOLDS,
    ObservedLabels,
    can_hold_out,
    check_predict_input,
    fold_of_rows,
    group_folds,
    make_splitter,
    number_alone,
    read_groups,
    smaller_group,
)
from probgap._core.defaults import DEFAULTS
from probgap._core.errors import refuse
from probgap._core.estimators import (
    PUClassifier,
    clone_with_seed,
    require_predict_proba,
)
from probgap._core.kernel_svm import PlattTask, fit_platt
from probgap._core.kernels import scale_gamma
from probgap._core.mixture import fit_mixture
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.svm import FastSVC
from probgap._core.types import Array, Mask, Matrix, Rows, Vector

__all__ = ["MixedGapEstimator", "ObservedGapEstimator"]

# Weights that differ by less are equal.
_ROUNDING = 1e-12


class GapClassifier(TransformerMixin, PUClassifier):
    """A classifier of labelled against unlabelled whose decision is the observed gap."""

    observed_gap_: Vector  # of the training samples; ``_fit`` sets it
    # Added to log-odds to correct for labelled samples that were drawn more often.
    log_odds_shift_: float = 0.0

    def fit(self, X: Matrix, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit to observed labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            *Observed* labels, as for :class:`~probgap.PGPUClassifier`.
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, and are held out together.

        Returns
        -------
        Self
            The fitted estimator.
        """
        check_parameters(self)
        samples, labels = self._check_fit(X, y)
        if groups is not None:
            group = number_alone(read_groups(groups, labels.labelled.size))
            labels = replace(labels, group=group)
        self._fit(samples, labels, as_generator(self.random_state))
        return self

    def _fit_checked(
        self,
        samples: Matrix,
        labelled: Mask,
        weight: Vector | None = None,
        group: Rows | None = None,
        target: Vector | None = None,
    ) -> Self:
        """Fit to samples, and to the mask of the labelled ones, that were checked.

        Labelled and unlabelled rows are weighted apart, as rare ones are learnt better; the
        odds are then corrected for the mean weights of the two. ``target`` is the chance of
        each sample to count as labelled, where that is soft; it needs no correction.
        """
        if not self._keeps_single:
            samples = samples.astype(np.float64, copy=False)
        self.classes_, self.positive_index_ = np.array([False, True]), 1
        self.n_features_in_ = samples.shape[1]
        self.log_odds_shift_ = 0.0
        known = labelled, self.classes_, self.positive_index_
        rng = as_generator(self.random_state)
        if target is not None:
            labels = ObservedLabels(*known, weight=weight, group=group)
            self._fit_share(samples, labels, target, rng)
            return self
        labels = ObservedLabels(*known, weight=_apart(weight, labelled), group=group)
        self._fit(samples, labels, rng)
        if weight is not None:
            self._correct_odds(weight, labelled)
        return self

    def _fit_share(
        self,
        samples: Matrix,
        labels: ObservedLabels,
        target: Vector,
        rng: Generator,
    ) -> None:
        """Fit to the chance of each sample to count as labelled."""
        del samples, labels, target, rng
        refuse(
            "gap_estimator must be None or a MixedGapEstimator with labelled_by: others "
            f"do not take soft labels. Got {self!r}."
        )

    @abstractmethod
    def _uncorrected_chance(self, samples: Matrix) -> Vector:
        """Return P(s=1 | x) as fitted, without the correction for sampling weights."""

    def _training_log_odds(self) -> Vector:
        """Return the log-odds that each training sample is labelled."""
        return log_odds_of(self.observed_gap_)

    def _log_odds_at(self, X: Matrix) -> Vector:
        """Return log-odds of being labelled, on the scale of ``_training_log_odds``."""
        return log_odds_of(self.decision_function(X))

    def _correct_odds(self, weight: Vector, labelled: Mask) -> None:
        """Multiply the odds by the ratio of the two groups' sampling weights."""
        shift = float(np.log(weight[labelled].mean() / weight[~labelled].mean()))
        self.log_odds_shift_ = shift
        self.observed_gap_ = gap_of(
            expit(logit(0.5 * (1.0 + self.observed_gap_)) + shift)
        )

    def _chance(self, X: Matrix) -> Vector:
        return self._chance_at(check_predict_input(self, X))

    def _chance_at(self, samples: Matrix) -> Vector:
        chance = self._uncorrected_chance(samples)
        if self.log_odds_shift_ == 0.0:
            return chance
        return expit(logit(chance) + self.log_odds_shift_)

    def _decide(self, X: Matrix) -> Vector:
        return gap_of(self._chance(X))

    def transform(self, X: Matrix) -> Array:
        """Return the observed gap as a column, for use inside a pipeline.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 1)
            The gap, in [-1, 1].
        """
        return self._decide(X)[:, None]

    def get_feature_names_out(
        self,
        input_features: ArrayLike | None = None,  # noqa: ARG002 (scikit-learn passes it)
    ) -> NDArray[Any]:
        """Return the name of the column of ``transform``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Not used: the gap is one column whatever the input.

        Returns
        -------
        ndarray of shape (1,)
            ``["observed_gap"]``.
        """
        check_is_fitted(self)
        return np.array(["observed_gap"], dtype=object)


def _apart(weight: Vector | None, labelled: Mask) -> Vector | None:
    """Return weights of mean 1 among the labelled rows and the others; None if all are."""
    if weight is None:
        return None
    means = [weight[kind].mean() for kind in (~labelled, labelled)]
    apart = weight / np.where(labelled, means[1], means[0])
    return None if np.ptp(apart) < _ROUNDING else apart


def gap_of(chance: Vector) -> Vector:
    """Return the gap for a probability of being labelled."""
    return np.clip(2.0 * np.asarray(chance, dtype=np.float64) - 1.0, -1.0, 1.0)


def log_odds_of(observed_gap: Vector) -> Vector:
    """Return the log-odds of being labelled, clipped away from certainty."""
    least = DEFAULTS.least_probability
    return logit(np.clip(0.5 * (1.0 + observed_gap), least, 1.0 - least))


@dataclass(eq=False, repr=False, kw_only=True)
class MixedGapEstimator(GapClassifier):
    """Estimate the observed gap by kernels, a linear model, a forest and boosting.

    Each learner predicts the training samples by models that have not seen them; their
    log-odds are averaged with weights that minimise the held-out log-loss. Columns are
    scaled internally. It is the default of :class:`~probgap.PGPUClassifier`. It assumes
    nothing about labels; with fewer than about thirty labelled samples scores are
    unreliable.

    Parameters
    ----------
    cv : int, splitter or None, default=None
        Folds of the learners but the forest, which predicts out of bag unless ``fit`` is told
        ``groups``. ``None`` takes five stratified folds, thrice up to 2,000 samples; three for
        boosting beyond 6,000.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive. ``None`` takes the greater.
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds, landmarks and trees.
    n_jobs : int, default=None
        Number of learners to fit at once, each in a thread. Results do not depend on it.

    Attributes
    ----------
    observed_gap_ : ndarray of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x) of each training sample, by models that have not seen it.
    log_odds_ : ndarray of shape (n_samples,)
        The same as log-odds.
    mixture_ : Mixture
        The fitted learners and their weights.
    classes_, n_features_in_, feature_names_in_ : ndarray, int, ndarray
        As in scikit-learn. ``positive_index_`` tells which class means labelled.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.gap import MixedGapEstimator
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> gap = MixedGapEstimator(random_state=0).fit(X, s).observed_gap_
    >>> bool(gap[s == 1].mean() > gap[s == 0].mean())
    True
    """

    _keeps_single = True

    cv: Any = None
    pos_label: object = None
    random_state: RandomStateLike = None
    n_jobs: int | None = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        target = labels.labelled.astype(np.float64)
        self._fit_share(samples, labels, target, rng)

    def _fit_share(
        self,
        samples: Matrix,
        labels: ObservedLabels,
        target: Vector,
        rng: Generator,
    ) -> None:
        """Fit to the chance of each sample to count as labelled."""
        scale_gamma(samples)  # raises if squares would overflow
        labelled, seed, fold = labels.labelled, draw_seed(rng), None
        if self.cv is not None:
            splitter = make_splitter(self.cv, labels, rng)
            fold = fold_of_rows(splitter, samples, labels)
        weight = labels.weight
        fitted = fit_mixture(
            samples,
            target,
            np.ones(labelled.size) if weight is None else weight,
            labelled,
            seed,
            fold=fold,
            together=labels.group,
            n_jobs=self.n_jobs,
        )
        self.mixture_: Any = fitted.learner
        self.log_odds_ = fitted.held_out
        self.observed_gap_ = 2.0 * expit(self.log_odds_) - 1.0

    def _training_log_odds(self) -> Vector:
        return self.log_odds_

    def _log_odds_at(self, X: Matrix) -> Vector:
        return self.mixture_.log_odds(X) + self.log_odds_shift_

    def _correct_odds(self, weight: Vector, labelled: Mask) -> None:
        super()._correct_odds(weight, labelled)
        self.log_odds_ = self.log_odds_ + self.log_odds_shift_

    def _uncorrected_chance(self, samples: Matrix) -> Vector:
        return expit(self.mixture_.log_odds(samples))


@dataclass(eq=False, repr=False)
class ObservedGapEstimator(GapClassifier):
    """Estimate the observed probabilistic gap P(s=1 | x) - P(s=0 | x).

    A classifier of labelled (s=1) against unlabelled, not of positive against negative. The
    paper assumes that the chance of a positive to be labelled rises with the true gap, and
    so the observed gap does. It is only as good as the probabilities of the classifier.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        Estimates P(s=1 | x). ``None`` takes an RBF support vector machine with Platt
        scaling, as in the paper.
    method : {"out_of_fold", "in_sample"}, default="out_of_fold"
        Whether gaps of training samples come from models that have not seen them, or from
        the model fitted on all, which is overconfident. With only two labelled or two
        unlabelled samples, gaps are always in-sample.
    gamma : float, "scale" or "auto", default="scale"
        Width of the kernel of the SVM that ``estimator=None`` stands for, as in
        :class:`sklearn.svm.SVC`; "auto" is 1 / n_features, the default of LIBSVM.
    cv : int, splitter or None, default=None
        Folds for the out-of-fold gaps. ``None`` takes five stratified folds, or as
        many as the smaller group, labelled or unlabelled, has samples.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive. ``None`` takes the greater.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the folds and the estimator.
    n_jobs : int, default=None
        Number of folds to fit at once.
    device : str, default=None
        torch's name of a device, "cuda" or "cpu", to solve the SVMs of all folds on, with
        the same kernel width. Only with ``estimator=None``; needs the extra ``gpu``.

    Attributes
    ----------
    observed_gap_ : ndarray of shape (n_samples,)
        The gap of each training sample, in [-1, 1].
    estimator_ : object
        The classifier, fitted on all samples.
    classes_, n_features_in_, feature_names_in_ : ndarray, int, ndarray
        As in scikit-learn. ``positive_index_`` tells which class means labelled.

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
        **PUClassifier._parameter_constraints,
        "method": [StrOptions({"out_of_fold", "in_sample"})],
        "gamma": [
            StrOptions({"scale", "auto"}),
            Interval(Real, 0, None, closed="neither"),
        ],
    }

    estimator: Any = None
    _: KW_ONLY
    method: Literal["out_of_fold", "in_sample"] = "out_of_fold"
    gamma: float | Literal["scale", "auto"] = "scale"
    cv: Any = None
    pos_label: object = None
    random_state: RandomStateLike = None
    n_jobs: int | None = None
    device: str | None = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
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
                FastSVC(gamma=self.gamma), method="sigmoid", ensemble=False, cv=folds
            )
        if labels.group is not None:
            self._fit_groups(model, samples, labels, rng, out_of_fold=out_of_fold)
            return
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

    def _fit_groups(
        self,
        model: Any,
        samples: Matrix,
        labels: ObservedLabels,
        rng: Generator,
        *,
        out_of_fold: bool,
    ) -> None:
        """Fit to rows of which some belong together: neither folds nor Platt's part them."""
        labelled, group = labels.labelled, labels.group
        assert group is not None

        def fit(rows: Rows) -> Any:
            copy = clone_with_seed(model, rng)
            if self.estimator is None:
                known = labelled[rows], group[rows]
                folds = PredefinedSplit(group_folds(*known, model.cv.n_splits, rng))
                copy.set_params(cv=folds)
            return copy.fit(samples[rows], labelled[rows].astype(np.int8))

        self.estimator_ = fit(np.arange(labelled.size))
        chance = self.estimator_.predict_proba(samples)[:, 1]
        fold = np.empty(0, dtype=np.intp)
        if out_of_fold:
            fold = fold_of_rows(make_splitter(self.cv, labels, rng), samples, labels)
        for k in range(fold.max(initial=-1) + 1):
            other = fit(np.flatnonzero(fold != k))
            chance[fold == k] = other.predict_proba(samples[fold == k])[:, 1]
        self.observed_gap_ = gap_of(chance)

    def _fit_on_device(
        self,
        samples: Matrix,
        labels: ObservedLabels,
        rng: Generator,
        *,
        out_of_fold: bool,
    ) -> None:
        """Fit the SVMs of all folds, and of the calibration folds inside them, together."""
        if self.estimator is not None:
            refuse(
                "estimator must be None with a device, which fits the SVM of the paper. "
                f"Got {self.estimator!r}."
            )
        labelled, held_out = labels.labelled, []
        inner = _calibration_folds(smaller_group(labelled), rng)
        if out_of_fold:
            splitter = make_splitter(self.cv, labels, rng)
            fold = fold_of_rows(splitter, samples, labels)
            held_out = [fold == k for k in range(fold.max() + 1)]
        parts = [np.ones(labelled.size, dtype=bool), *(~test for test in held_out)]
        self.estimator_, (chance, *by_others) = fit_platt(
            samples,
            labelled,
            [_platt_task(part, labels, inner, rng) for part in parts],
            device=self.device,
            gamma=self.gamma,
        )
        for test, other in zip(held_out, by_others, strict=True):
            chance[test] = other[test]
        self.observed_gap_ = gap_of(chance)

    def _uncorrected_chance(self, samples: Matrix) -> Vector:
        return self.estimator_.predict_proba(samples)[:, 1]


def _calibration_folds(smallest: int, rng: Generator) -> StratifiedKFold:
    """Return folds for Platt scaling, no more than each training part has samples for."""
    largest_fold = math.ceil(smallest / min(DEFAULT_FOLDS, smallest))
    folds = min(DEFAULT_FOLDS, max(2, smallest - largest_fold))
    return StratifiedKFold(folds, shuffle=True, random_state=draw_seed(rng))


def _platt_task(
    part: Mask, labels: ObservedLabels, folds: Any, rng: Generator
) -> PlattTask:
    rows, held_out = np.flatnonzero(part), []
    known = labels.labelled[rows]
    if labels.group is not None:
        own = group_folds(known, labels.group[rows], folds.n_splits, rng)
        folds = PredefinedSplit(own)
    for _, test in folds.split(rows[:, None], known.astype(np.int8)):
        mask = np.zeros(part.size, dtype=bool)
        mask[rows[test]] = True
        held_out.append(mask)
    return PlattTask(part, held_out)
