"""Methods for noisy labels: weights that correct for the noise rates."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from probgap._core._sklearn import Interval, StrOptions
from probgap._core.checks import ObservedLabels, make_splitter, observed_accuracy
from probgap._core.errors import refuse
from probgap._core.runtime import RandomStateLike, draw_seed
from probgap._core.types import Mask, Matrix, Vector
from probgap.methods.base import TINY, FinalProbabilities, MethodClassifier

_RATE = Interval(Real, 0, 1, closed="left")
_RATES_TO_TRY = np.round(np.linspace(0.0, 0.9, 10), 1)


@dataclass(eq=False, repr=False, kw_only=True)
class NatarajanClassifier(MethodClassifier):
    """Weight the two kinds of error to correct for label noise.

    The second method of [1]_ weights labelled samples by 1 - alpha and unlabelled ones by
    alpha = (1 - rho_plus + rho_minus) / 2. It assumes that every positive is mislabelled at
    the same rate rho_plus, and every negative at rho_minus. If easy positives are labelled
    first, the correction is too weak for hard ones and too strong for easy ones.

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
    gap_estimator : object
        As in :class:`ElkanNotoClassifier`.
    cv : int, splitter or None, default=None
        Folds for ``rho_plus="cv"``. ``None`` takes five, or as many as the smaller group,
        labelled or unlabelled, has samples.
    pos_label, random_state : object
        As in :class:`ElkanNotoClassifier`.

    Attributes
    ----------
    rho_plus_ : float
        The rate that was used.
    alpha_ : float
        Weight of unlabelled samples; labelled ones have one minus it.
    estimator_ : object
        The fitted classifier.

    References
    ----------
    .. [1] Natarajan, Dhillon, Ravikumar, Tewari, "Learning with Noisy Labels", NIPS
       2013.

    Examples
    --------
    >>> from probgap.methods import NatarajanClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("constant", 0.3), random_state=1)
    >>> model = NatarajanClassifier(rho_plus=0.3).fit(X, s)
    >>> model.alpha_
    0.35
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MethodClassifier._parameter_constraints,
        "rho_plus": [_RATE, StrOptions({"estimate", "cv"})],
        "rho_minus": [_RATE],
    }

    rho_plus: float | Literal["estimate", "cv"] = "estimate"
    rho_minus: float = 0.0
    estimator: Any = None
    gap_estimator: Any = None
    cv: Any = None
    pos_label: object = None
    random_state: RandomStateLike = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        labelled = labels.labelled
        if self.rho_plus == "estimate":
            gap = self._fit_gap(samples, labelled, rng).observed_gap_
            self.rho_plus_ = float(0.5 * (1.0 - gap.max()))
        elif self.rho_plus == "cv":
            self.rho_plus_ = self._search(samples, labels, rng)
        else:
            self.rho_plus_ = float(self.rho_plus)
        check_rates(self.rho_plus_, self.rho_minus)
        self.alpha_ = 0.5 * (1.0 - self.rho_plus_ + self.rho_minus)
        seed = draw_seed(rng)
        self.estimator_ = self._fit_weighted(samples, labelled, self.rho_plus_, seed)

    def _search(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> float:
        labelled = labels.labelled
        rates = _RATES_TO_TRY[_RATES_TO_TRY + self.rho_minus < 1.0]
        scores = np.zeros(rates.size)
        splitter = make_splitter(self.cv, labels, rng)
        seed = draw_seed(rng)
        for train, test in splitter.split(samples, labelled):
            seen = samples[train], labelled[train]
            for i, rate in enumerate(rates):
                fitted = self._fit_weighted(*seen, rate, seed)
                predicted = fitted.predict(samples[test]) == 1
                scores[i] += observed_accuracy(labelled[test], predicted)
        return float(rates[int(scores.argmax())])

    def _fit_weighted(self, X: Matrix, labelled: Mask, rate: float, seed: int) -> Any:
        alpha = 0.5 * (1.0 - rate + self.rho_minus)
        # Twice the weights of the paper, so that without noise they are all 1.
        weight = 2.0 * np.where(labelled, 1.0 - alpha, alpha)
        estimator = self._make_final(np.random.default_rng(seed))
        return estimator.fit(X, labelled.astype(np.int8), sample_weight=weight)


@dataclass(eq=False, repr=False, kw_only=True)
class LiuTaoClassifier(FinalProbabilities):
    r"""Weight each sample by how likely its observed label is to be its true one.

    The weight is [1]_

    .. math::
        \beta(x, s) = \frac{P(s \mid x) - \rho_{-s}}{(1 - \rho_+ - \rho_-) P(s \mid x)},

    where rho_{-s} is the rate at which the other class gets the label s. It assumes
    that every positive is mislabelled at the same rate, and that some samples are
    certainly positive, from which the rate is estimated. If easy positives are labelled
    first, the estimate is the rate of the easiest ones, and too low for the rest.

    Parameters
    ----------
    rho_plus : float, default=None
        Rate at which positives are unlabelled. ``None`` takes the smallest P(s=0 | x)
        over the samples.
    rho_minus : float, default=0.0
        Rate at which negatives are labelled. ``None`` takes the smallest P(s=1 | x).
    estimator, gap_estimator, pos_label, random_state : object
        As in :class:`NatarajanClassifier`.

    Attributes
    ----------
    rho_plus_, rho_minus_ : float
        The rates that were used.
    sample_weight_ : ndarray of shape (n_samples,)
        Weight of each training sample.
    estimator_ : object
        The fitted classifier.

    References
    ----------
    .. [1] Liu, Tao, "Classification with Noisy Labels by Importance Reweighting",
       IEEE Transactions on Pattern Analysis and Machine Intelligence, 2016.

    Examples
    --------
    >>> from probgap.methods import LiuTaoClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("constant", 0.3), random_state=1)
    >>> model = LiuTaoClassifier(rho_plus=0.3, random_state=0).fit(X, s)
    >>> bool(model.score(X, y_true) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MethodClassifier._parameter_constraints,
        "rho_plus": [_RATE, None],
        "rho_minus": [_RATE, None],
    }

    rho_plus: float | None = None
    rho_minus: float | None = 0.0
    estimator: Any = None
    gap_estimator: Any = None
    pos_label: object = None
    random_state: RandomStateLike = None

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
        self.estimator_ = self._make_final(rng)
        self.estimator_.fit(samples, labelled.astype(np.int8), sample_weight=weight)


def importance(
    chance: Vector, labelled: Mask, rho_plus: float, rho_minus: float
) -> Vector:
    """Return the weight of each sample, not below 0, from P(s=1 | x) and the rates."""
    check_rates(rho_plus, rho_minus)
    of_label = np.maximum(np.where(labelled, chance, 1.0 - chance), TINY)
    other_rate = np.where(labelled, rho_minus, rho_plus)
    weight: Vector = (of_label - other_rate) / ((1.0 - rho_plus - rho_minus) * of_label)
    return np.maximum(weight, 0.0)


def check_rates(rho_plus: float, rho_minus: float) -> None:
    """Check that the sum of two noise rates is below 1."""
    if rho_plus + rho_minus >= 1.0:
        refuse(
            "rho_plus + rho_minus must be below 1, or labels carry no information. "
            f"Got {rho_plus:g} + {rho_minus:g}."
        )
