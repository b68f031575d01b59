"""Natarajan et al.: class-conditional noise, corrected by class weights."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from probgap._core.checks import ObservedLabels
from probgap._core.runtime import RandomStateLike, draw_seed
from probgap._core.types import Mask, Matrix
from probgap._core.validation import make_splitter, observed_accuracy
from probgap.baselines._base import GapBaseline, check_rates

_RATES_TO_TRY = np.round(np.linspace(0.0, 0.9, 10), 1)


class NatarajanClassifier(GapBaseline):
    """Weight the two kinds of error to correct for label noise.

    The second method of their paper: a support vector machine with weight 1 - alpha on
    labelled and alpha on unlabelled samples, alpha = (1 - rho_plus + rho_minus) / 2. It
    assumes that every positive is mislabelled at the same rate rho_plus, and every
    negative at rho_minus, which is 0 here. With a rate that depends on the sample, one
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
        ``None`` takes an RBF support vector machine.
    gap_estimator, gap_method : classifier, {"out_of_fold", "in_sample"}
        How to estimate P(s=1 | x), as in :class:`ElkanNotoClassifier`.
    cv : int, splitter or None, default=None
        Folds for ``rho_plus="cv"``. ``None`` takes five, or as many as there are
        labelled positives.
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
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order; ``positive_index_`` is that of the positive.
    n_features_in_, feature_names_in_ : int, ndarray
        Features seen in ``fit``, and their names if they were all strings.

    References
    ----------
    .. [1] Natarajan, Dhillon, Ravikumar, Tewari, "Learning with Noisy Labels", NIPS 2013.

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
        "rho_plus": [Real, StrOptions({"estimate", "cv"})],
        "rho_minus": [Interval(Real, 0, 1, closed="left")],
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

    def _fit(
        self, samples: Matrix, labels: ObservedLabels, rng: np.random.Generator
    ) -> None:
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

    def _search(
        self, samples: Matrix, labels: ObservedLabels, rng: np.random.Generator
    ) -> float:
        labelled = labels.labelled
        rates = _RATES_TO_TRY[_RATES_TO_TRY + self.rho_minus < 1.0]
        scores = np.zeros(rates.size)
        splitter = make_splitter(self.cv, labels, rng)
        seed = draw_seed(rng)
        for train, test in splitter.split(samples, labelled):
            for i, rate in enumerate(rates):
                fitted = self._fit_weighted(
                    samples[train], labelled[train], self._alpha(rate), seed
                )
                predicted = fitted.predict(samples[test]) == 1
                scores[i] += observed_accuracy(labelled[test], predicted)
        return float(rates[int(scores.argmax())])

    def _alpha(self, rho_plus: float) -> float:
        check_rates(rho_plus, self.rho_minus)
        return float(0.5 * (1.0 - rho_plus + self.rho_minus))

    def _fit_weighted(
        self, samples: Matrix, labelled: Mask, alpha: float, seed: int
    ) -> Any:
        # Twice the weights of the paper, so that without noise they are all 1.
        weight = 2.0 * np.where(labelled, 1.0 - alpha, alpha)
        estimator = self._final_estimator(np.random.default_rng(seed))
        return estimator.fit(samples, labelled.astype(np.int8), sample_weight=weight)
