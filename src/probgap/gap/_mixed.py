"""The observed gap by a mixture of learners."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from probgap._core.checks import ObservedLabels
from probgap._core.kernels import scale_gamma
from probgap._core.mixture import Mixture, fit_mixture
from probgap._core.runtime import RandomStateLike, draw_seed
from probgap._core.types import Matrix, Vector
from probgap._core.validation import fold_of_rows, make_splitter
from probgap.gap.base import GapClassifier


class MixedGapEstimator(GapClassifier):
    """Estimate the observed gap by kernels, a linear model, a forest and boosting.

    Each learner predicts the training samples by models that have not seen them; their
    log-odds are averaged with weights that minimise the held-out log-loss. Columns are
    scaled internally. It is the default of :class:`~probgap.PGPUClassifier`. It assumes
    nothing about labels; with fewer than about ten labelled samples no score is reliable.

    Parameters
    ----------
    cv : int, splitter or None, default=None
        Folds of the learners that are cross-validated (the forest predicts out of bag).
        ``None`` takes five stratified folds, repeated three times below 2,000 samples;
        three for boosting beyond 10,000.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive. ``None`` takes the greater of
        the two.
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
    >>> from probgap.gap import MixedGapEstimator
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> gap = MixedGapEstimator(random_state=0).fit(X, s).observed_gap_
    >>> bool(gap[s == 1].mean() > gap[s == 0].mean())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "cv": ["cv_object"],
        "pos_label": "no_validation",
        "random_state": "no_validation",
        "n_jobs": [Integral, None],
    }

    _keeps_single = True
    mixture_: Mixture

    def __init__(
        self,
        *,
        cv: Any = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(
        self, samples: Matrix, labels: ObservedLabels, rng: np.random.Generator
    ) -> None:
        scale_gamma(samples)  # raises if squares would overflow
        labelled, seed, fold = labels.labelled, draw_seed(rng), None
        if self.cv is not None:
            splitter = make_splitter(self.cv, labels, rng)
            fold = fold_of_rows(splitter, samples, labelled)
        target, weight = labelled.astype(np.float64), np.ones(labelled.size)
        fitted = fit_mixture(
            samples, target, weight, labelled, seed, fold=fold, n_jobs=self.n_jobs
        )
        assert isinstance(fitted.learner, Mixture)
        self.mixture_, self.log_odds_ = fitted.learner, fitted.held_out
        self.observed_gap_ = 2.0 * expit(self.log_odds_) - 1.0

    def _training_log_odds(self) -> Vector:
        return self.log_odds_

    def _correct_odds(self, weight: Vector, labelled: NDArray[np.bool_]) -> None:
        super()._correct_odds(weight, labelled)
        self.log_odds_ = self.log_odds_ + self.log_odds_shift_

    def _uncorrected_chance(self, samples: Matrix) -> Vector:
        chance: Vector = expit(self.mixture_.log_odds(samples))
        return chance

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of being labelled for samples already validated.

        Parameters
        ----------
        samples : {ndarray, sparse matrix} of shape (n_samples, n_features)
            Samples, after the checks of ``predict_proba``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-odds, on the scale of ``log_odds_``.
        """
        return self.mixture_.log_odds(samples) + self.log_odds_shift_
