"""The methods that the paper compares with, and PU bagging, each with its assumption."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from probgap._core.checks import ObservedLabels, check_predict_input
from probgap._core.errors import InvalidInputError, ProbgapWarning
from probgap._core.estimators import (
    PUClassifier,
    clone_with_seed,
    fit_on_shares,
    require_sample_weight,
)
from probgap._core.runtime import RandomStateLike, draw_seed
from probgap._core.types import Array, Mask, Matrix, Vector
from probgap._core.validation import (
    Fold,
    make_splitter,
    observed_accuracy,
    smaller_group,
)
from probgap.gap import ObservedGapEstimator

__all__ = [
    "ElkanNotoClassifier",
    "LiuTaoClassifier",
    "NaiveClassifier",
    "NatarajanClassifier",
    "PUBaggingClassifier",
]

_TINY = float(np.finfo(np.float64).eps)
# If a group has fewer samples than this, none are held out.
_FEWEST_TO_HOLD_OUT = 4
_RATE = Interval(Real, 0, 1, closed="left")
_RATES_TO_TRY = np.round(np.linspace(0.0, 0.9, 10), 1)


class BaselineClassifier(PUClassifier):
    """A classifier whose decision is that of its final estimator."""

    estimator: Any

    def _final_estimator(self, rng: Generator) -> Any:
        if self.estimator is None:
            return SVC(random_state=draw_seed(rng))
        require_sample_weight(self.estimator, "estimator")
        return clone_with_seed(self.estimator, rng)

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        if hasattr(self.estimator_, "decision_function"):
            return self.estimator_.decision_function(samples)
        proba: Array = self.estimator_.predict_proba(samples)
        return proba[:, 1] - proba[:, 0]


class GapBaseline(BaselineClassifier):
    """A baseline that starts from P(s=1 | x)."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineClassifier._parameter_constraints,
        "gap_estimator": [HasMethods(["fit"]), None],
        "gap_method": [StrOptions({"out_of_fold", "in_sample"})],
        "n_jobs": [Integral, None],
    }

    gap_estimator: Any
    gap_method: Literal["out_of_fold", "in_sample"]
    n_jobs: int | None

    def _fit_gap(self, samples: Matrix, labelled: Mask, rng: Generator) -> Any:
        return ObservedGapEstimator(
            self.gap_estimator,
            method=self.gap_method,
            random_state=draw_seed(rng),
            n_jobs=self.n_jobs,
        ).fit(samples, labelled)


class NaiveClassifier(BaselineClassifier):
    """Fit with every unlabelled sample as a negative.

    It assumes that no positive is unlabelled; otherwise it learns to miss positives
    like the unlabelled ones. Fitted on true labels, it is the upper bound for the other
    methods.

    Parameters
    ----------
    estimator : classifier whose fit takes sample_weight, default=None
        ``None`` takes an RBF SVM.
    pos_label : object, default=None
        The value of ``y`` for a labelled positive; the greater if None.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the estimator.

    Attributes
    ----------
    estimator_ : object
        The fitted classifier.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order; ``positive_index_`` is that of the positive.
    n_features_in_, feature_names_in_ : int, ndarray
        Features seen in ``fit``, and their names if they were all strings.

    Examples
    --------
    >>> from probgap.baselines import NaiveClassifier
    >>> from probgap.datasets import make_square
    >>> X, y_true, _ = make_square(200, random_state=0)
    >>> bool(NaiveClassifier().fit(X, y_true).score(X, y_true) > 0.95)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        pos_label: object = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.estimator = estimator
        self.pos_label = pos_label
        self.random_state = random_state

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        observed = labels.labelled.astype(np.int8)
        self.estimator_ = self._final_estimator(rng).fit(samples, observed)


class ElkanNotoClassifier(GapBaseline):
    """Divide P(s=1 | x) by the rate at which positives are labelled.

    It assumes that labels are missing completely at random: each positive is labelled
    with the same probability c, whatever its features. Then P(Y=1 | x) = P(s=1 | x) /
    c. If easy positives are labelled first, c is too high for the hard ones, which are
    then predicted negative.

    Parameters
    ----------
    form : {"scaling", "weighted"}, default="scaling"
        "scaling" divides by c. "weighted" trains a second classifier in which each
        unlabelled sample is a positive with weight w(x) = (1 - c) / c * p / (1 - p),
        p = P(s=1 | x), and a negative with weight 1 - w(x).
    rule : {"e1", "e2", "e3"}, default="e1"
        How c is estimated on held-out samples, in the names of the paper: e1 is the
        mean of P(s=1 | x) over labelled ones, e2 their share of the sum of P(s=1 | x)
        over all, e3 the maximum.
    hold_out : float, default=0.2
        Share of the samples held out to estimate c.
    estimator : classifier whose fit takes sample_weight, default=None
        The second classifier of the weighted form. ``None`` takes an RBF SVM.
    gap_estimator : classifier with predict_proba, default=None
        Estimates P(s=1 | x). ``None`` takes a Platt-scaled SVM.
    gap_method : {"out_of_fold", "in_sample"}, default="in_sample"
        Where the probabilities of training samples in the weighted form come from.
    pos_label : object, default=None
        The value of ``y`` for a labelled positive; the greater if None.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the split and the estimators.
    n_jobs : int, default=None
        Number of folds to fit at once, for out-of-fold probabilities.

    Attributes
    ----------
    label_frequency_ : float
        The estimate of c.
    gap_estimator_ : ObservedGapEstimator
        The fitted estimator of P(s=1 | x).
    estimator_ : object or None
        The second classifier; None in the scaling form.
    classes_, positive_index_, n_features_in_, feature_names_in_ : object
        As in :class:`NaiveClassifier`.

    References
    ----------
    .. [1] Elkan, Noto, "Learning Classifiers from Only Positive and Unlabeled Data",
       KDD 2008.

    Examples
    --------
    >>> from probgap.baselines import ElkanNotoClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("constant", 0.3), random_state=1)
    >>> model = ElkanNotoClassifier(random_state=0).fit(X, s)
    >>> bool(model.score(X, y_true) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GapBaseline._parameter_constraints,
        "form": [StrOptions({"scaling", "weighted"})],
        "rule": [StrOptions({"e1", "e2", "e3"})],
        "hold_out": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        *,
        form: Literal["scaling", "weighted"] = "scaling",
        rule: Literal["e1", "e2", "e3"] = "e1",
        hold_out: float = 0.2,
        estimator: Any = None,
        gap_estimator: Any = None,
        gap_method: Literal["out_of_fold", "in_sample"] = "in_sample",
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.form = form
        self.rule = rule
        self.hold_out = hold_out
        self.estimator = estimator
        self.gap_estimator = gap_estimator
        self.gap_method = gap_method
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        labelled = labels.labelled
        train, held_out = self._split(labelled, rng)
        first = self._fit_gap(samples[train], labelled[train], rng)
        chance = first.predict_proba(samples[held_out])[:, 1]
        self.label_frequency_ = label_frequency(chance, labelled[held_out], self.rule)
        self.gap_estimator_ = self._fit_gap(samples, labelled, rng)
        self.estimator_ = None
        if self.form == "weighted":
            p = 0.5 * (1.0 + self.gap_estimator_.observed_gap_)
            share = unlabelled_positive_chance(p, self.label_frequency_)
            share[labelled] = 1.0
            if share.min() >= 1.0:
                what = (
                    "The weighted form leaves no negatives to learn from: by the label "
                    f"frequency of {self.label_frequency_:.3g} every unlabelled sample "
                    "is positive. The quarter of them least likely to be labelled is "
                    "taken as negative. Try form='scaling'."
                )
                warnings.warn(what, ProbgapWarning, stacklevel=4)
                share[~labelled & (p <= np.quantile(p[~labelled], 0.25))] = 0.0
            self.estimator_ = self._final_estimator(rng)
            fit_on_shares(self.estimator_, samples, share, np.ones(labelled.size))

    def _split(self, labelled: Mask, rng: Generator) -> Fold:
        rows, smallest = np.arange(labelled.size), smaller_group(labelled)
        if smallest < _FEWEST_TO_HOLD_OUT:
            return rows, rows
        # Keep two of each kind on either side, whatever hold_out is.
        size = float(np.clip(self.hold_out, 2.0 / smallest, 1.0 - 2.0 / smallest))
        how = {"test_size": size, "stratify": labelled, "random_state": draw_seed(rng)}
        train, held_out = train_test_split(rows, **how)
        return train, held_out

    def _decide(self, X: Matrix) -> Vector:
        if getattr(self, "estimator_", None) is not None:
            return super()._decide(X)
        samples = check_predict_input(self, X)
        chance = self.gap_estimator_.predict_proba(samples)[:, 1]
        return 2.0 * np.minimum(chance / self.label_frequency_, 1.0) - 1.0


def label_frequency(chance: Vector, labelled: Mask, rule: str) -> float:
    """Estimate c = P(s=1 | Y=1) from P(s=1 | x) of held-out samples."""
    if rule == "e1":
        estimate = chance[labelled].mean()
    elif rule == "e2":
        estimate = chance[labelled].sum() / max(chance.sum(), _TINY)
    else:
        estimate = chance.max()
    return float(np.clip(estimate, _TINY, 1.0))


def unlabelled_positive_chance(chance: Vector, frequency: float) -> Vector:
    """Return w(x) = P(Y=1 | x, unlabelled), clipped to [0, 1]."""
    odds = chance / np.maximum(1.0 - chance, _TINY)
    return np.clip((1.0 - frequency) / frequency * odds, 0.0, 1.0)


class NatarajanClassifier(GapBaseline):
    """Weight the two kinds of error to correct for label noise.

    The second method of [1]_: an SVM with weight 1 - alpha on labelled and alpha on unlabelled samples, alpha = (1 - rho_plus + rho_minus) / 2. It
    assumes that every positive is mislabelled at the same rate rho_plus, and every
    negative at rho_minus, by default 0. With a rate that depends on the sample, one
    weight is too small for the hard positives and too large for the easy ones.

    Parameters
    ----------
    rho_plus : float, "estimate" or "cv", default="estimate"
        Rate at which positives are unlabelled. "estimate" takes the smallest
        P(s=0 | x) over the samples; "cv" the best of 0, 0.1, ..., 0.9 by 5-fold
        cross-validation of the accuracy against observed labels.
    rho_minus : float, default=0.0
        Rate at which negatives are labelled.
    estimator : classifier whose fit takes sample_weight, default=None
        ``None`` takes an RBF SVM.
    gap_estimator, gap_method : classifier, {"out_of_fold", "in_sample"}
        How to estimate P(s=1 | x), as in :class:`ElkanNotoClassifier`.
    cv : int, splitter or None, default=None
        Folds for ``rho_plus="cv"``. ``None`` takes five, or as many as the smaller group,
        labelled or unlabelled, has samples.
    pos_label, random_state, n_jobs : object
        As in :class:`ElkanNotoClassifier`.

    Attributes
    ----------
    rho_plus_ : float
        The rate that was used.
    alpha_ : float
        Weight of unlabelled samples; labelled ones have one minus it.
    estimator_ : object
        The fitted classifier.
    classes_, positive_index_, n_features_in_, feature_names_in_ : object
        As in :class:`NaiveClassifier`.

    References
    ----------
    .. [1] Natarajan, Dhillon, Ravikumar, Tewari, "Learning with Noisy Labels", NIPS
       2013.

    Examples
    --------
    >>> from probgap.baselines import NatarajanClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("constant", 0.3), random_state=1)
    >>> model = NatarajanClassifier(rho_plus=0.3).fit(X, s)
    >>> model.alpha_
    0.35
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GapBaseline._parameter_constraints,
        "rho_plus": [_RATE, StrOptions({"estimate", "cv"})],
        "rho_minus": [_RATE],
        "cv": ["cv_object"],
    }

    def __init__(
        self,
        *,
        rho_plus: float | Literal["estimate", "cv"] = "estimate",
        rho_minus: float = 0.0,
        estimator: Any = None,
        gap_estimator: Any = None,
        gap_method: Literal["out_of_fold", "in_sample"] = "in_sample",
        cv: Any = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.rho_plus = rho_plus
        self.rho_minus = rho_minus
        self.estimator = estimator
        self.gap_estimator = gap_estimator
        self.gap_method = gap_method
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        labelled = labels.labelled
        if self.rho_plus == "estimate":
            gap = self._fit_gap(samples, labelled, rng).observed_gap_
            self.rho_plus_ = float(0.5 * (1.0 - gap.max()))
        elif self.rho_plus == "cv":
            self.rho_plus_ = self._search(samples, labels, rng)
        else:
            self.rho_plus_ = float(self.rho_plus)
        self.alpha_ = self._alpha(self.rho_plus_)
        seed = draw_seed(rng)
        self.estimator_ = self._fit_weighted(samples, labelled, self.alpha_, seed)

    def _search(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> float:
        labelled = labels.labelled
        rates = _RATES_TO_TRY[_RATES_TO_TRY + self.rho_minus < 1.0]
        scores = np.zeros(rates.size)
        splitter = make_splitter(self.cv, labels, rng)
        seed = draw_seed(rng)
        for train, test in splitter.split(samples, labelled):
            seen = samples[train], labelled[train]
            for i, rate in enumerate(rates):
                fitted = self._fit_weighted(*seen, self._alpha(rate), seed)
                predicted = fitted.predict(samples[test]) == 1
                scores[i] += observed_accuracy(labelled[test], predicted)
        return float(rates[int(scores.argmax())])

    def _alpha(self, rho_plus: float) -> float:
        check_rates(rho_plus, self.rho_minus)
        return float(0.5 * (1.0 - rho_plus + self.rho_minus))

    def _fit_weighted(self, X: Matrix, labelled: Mask, alpha: float, seed: int) -> Any:
        # Twice the weights of the paper, so that without noise they are all 1.
        weight = 2.0 * np.where(labelled, 1.0 - alpha, alpha)
        estimator = self._final_estimator(np.random.default_rng(seed))
        return estimator.fit(X, labelled.astype(np.int8), sample_weight=weight)


class LiuTaoClassifier(GapBaseline):
    r"""Weight each sample by how likely its observed label is to be its true one.

    The weight is

    .. math::
        \beta(x, s) = \frac{P(s \mid x) - \rho_{-s}}{(1 - \rho_+ - \rho_-) P(s \mid x)},

    where rho_{-s} is the rate at which the other class gets the label s. It assumes
    that every positive is mislabelled at the same rate, and that some samples are
    certainly positive, from which the rate is estimated. If easy positives are labelled
    first, that is the rate of the easiest, and too low for the rest.

    Parameters
    ----------
    rho_plus : float, default=None
        Rate at which positives are unlabelled. ``None`` takes the smallest P(s=0 | x)
        over the samples.
    rho_minus : float, default=0.0
        Rate at which negatives are labelled. ``None`` takes the smallest P(s=1 | x).
    estimator, gap_estimator, gap_method, pos_label, random_state, n_jobs : object
        As in :class:`NatarajanClassifier`.

    Attributes
    ----------
    rho_plus_, rho_minus_ : float
        The rates that were used.
    sample_weight_ : ndarray of shape (n_samples,)
        Weight of each training sample.
    estimator_ : object
        The fitted classifier.
    classes_, positive_index_, n_features_in_, feature_names_in_ : object
        As in :class:`NaiveClassifier`.

    References
    ----------
    .. [1] Liu, Tao, "Classification with Noisy Labels by Importance Reweighting",
       IEEE Transactions on Pattern Analysis and Machine Intelligence, 2016.

    Examples
    --------
    >>> from probgap.baselines import LiuTaoClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("constant", 0.3), random_state=1)
    >>> model = LiuTaoClassifier(rho_plus=0.3, random_state=0).fit(X, s)
    >>> bool(model.score(X, y_true) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GapBaseline._parameter_constraints,
        "rho_plus": [_RATE, None],
        "rho_minus": [_RATE, None],
    }

    def __init__(
        self,
        *,
        rho_plus: float | None = None,
        rho_minus: float | None = 0.0,
        estimator: Any = None,
        gap_estimator: Any = None,
        gap_method: Literal["out_of_fold", "in_sample"] = "in_sample",
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.rho_plus = rho_plus
        self.rho_minus = rho_minus
        self.estimator = estimator
        self.gap_estimator = gap_estimator
        self.gap_method = gap_method
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        labelled = labels.labelled
        chance = 0.5 * (1.0 + self._fit_gap(samples, labelled, rng).observed_gap_)
        self.rho_plus_, self.rho_minus_ = self.rho_plus, self.rho_minus
        if self.rho_plus_ is None:
            self.rho_plus_ = float(1.0 - chance.max())
        if self.rho_minus_ is None:
            self.rho_minus_ = float(chance.min())
        weight = importance(chance, labelled, self.rho_plus_, self.rho_minus_)
        for kind in (labelled, ~labelled):
            if weight[kind].max() <= 0.0:
                # Every label of this kind looks like noise: keep them as they are.
                weight[kind] = 1.0
        self.sample_weight_ = weight
        self.estimator_ = self._final_estimator(rng)
        self.estimator_.fit(samples, labelled.astype(np.int8), sample_weight=weight)


def importance(
    chance: Vector, labelled: Mask, rho_plus: float, rho_minus: float
) -> Vector:
    """Return the weight of each sample, not below 0, from P(s=1 | x) and the rates."""
    check_rates(rho_plus, rho_minus)
    of_label = np.maximum(np.where(labelled, chance, 1.0 - chance), _TINY)
    other_rate = np.where(labelled, rho_minus, rho_plus)
    weight: Vector = (of_label - other_rate) / ((1.0 - rho_plus - rho_minus) * of_label)
    return np.maximum(weight, 0.0)


def check_rates(rho_plus: float, rho_minus: float) -> None:
    """Check that the sum of two noise rates is below 1."""
    if rho_plus + rho_minus >= 1.0:
        msg = (
            "rho_plus + rho_minus must be below 1, or labels carry no information. "
            f"Got {rho_plus:g} + {rho_minus:g}."
        )
        raise InvalidInputError(msg)


class PUBaggingClassifier(BaselineClassifier):
    """Average classifiers of the labelled against as many unlabelled samples.

    Each is fitted on all labelled samples and on a bootstrap sample of the unlabelled ones,
    as large as they are, which are taken for negative [1]_. It assumes that few of the
    unlabelled samples are positive, and that the labelled ones look like the others. To
    load one from a file, name ``DecisionTreeClassifier`` in ``trusted``.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        ``None`` takes a decision tree.
    n_estimators : int, default=100
        Number of classifiers.
    pos_label : object, default=None
        The value of ``y`` for a labelled positive; the greater if None.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the samples and the classifiers.

    Attributes
    ----------
    estimators_ : list
        The fitted classifiers.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order; ``positive_index_`` is that of the positive.
    n_features_in_, feature_names_in_ : int, ndarray
        Features seen in ``fit``, and their names if they were all strings.

    References
    ----------
    .. [1] Mordelet, Vert, "A bagging SVM to learn from positive and unlabeled examples",
       Pattern Recognition Letters, 2014.

    Examples
    --------
    >>> from probgap.baselines import PUBaggingClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y, posterior = make_square(300, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PUBaggingClassifier(random_state=0).fit(X, s)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaselineClassifier._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 100,
        pos_label: object = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.pos_label = pos_label
        self.random_state = random_state

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        known, others = (
            np.flatnonzero(labels.labelled),
            np.flatnonzero(~labels.labelled),
        )
        observed = np.repeat([1, 0], known.size)
        self.estimators_ = []
        for _ in range(self.n_estimators):
            rows = np.append(known, rng.choice(others, known.size))
            one = self._base_estimator(rng)
            self.estimators_.append(one.fit(samples[rows], observed))

    def _base_estimator(self, rng: Generator) -> Any:
        if self.estimator is None:
            return DecisionTreeClassifier(random_state=draw_seed(rng))
        return clone_with_seed(self.estimator, rng)

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        votes = [one.predict_proba(samples)[:, 1] for one in self.estimators_]
        decision: Vector = 2.0 * np.mean(votes, axis=0) - 1.0
        return decision
