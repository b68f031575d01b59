"""A method that thresholds a ranking at the class prior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from probgap._core.checks import ObservedLabels, check_predict_input
from probgap._core.runtime import RandomStateLike
from probgap._core.types import Matrix, Vector
from probgap.methods.base import PriorMethod, held_out_scores, make_scorer, score_of


class PUSBClassifier(PriorMethod):
    """Call as many samples positive as the class prior says, by rank.

    The threshold of a score that separates labelled from unlabelled samples is its
    1 - prior quantile over the training samples [1]_. It assumes that P(s=1 | x) ranks
    samples as P(Y=1 | x) does, which covers labels at random and easy positives labelled
    first. It fails where labelling depends on something else, and the threshold is only as
    good as the class prior. There are no probabilities.

    Parameters
    ----------
    class_prior : float, default=None
        Share of all samples that are positive, labelled or not. ``None`` estimates it by
        :func:`probgap.reading.read` from held-out scores.
    gap_estimator : classifier with decision_function or predict_proba, default=None
        Scores samples, fitted to labelled against unlabelled. ``None`` takes an RBF SVM.
    cv : int, splitter or None, default=None
        Folds of the held-out scores of training samples. ``None`` takes five, or as many
        as the smaller group, labelled or unlabelled, has samples.
    pos_label, random_state, n_jobs : object
        As in :class:`ElkanNotoClassifier`.

    Attributes
    ----------
    class_prior_ : float
        The class prior that was used.
    reading_ : Reading or None
        The estimate of the class prior; None if it was given.
    threshold_ : float
        Score above which a sample is positive; samples with this very score are not.
    gap_estimator_ : object
        The fitted classifier.
    classes_, positive_index_, n_features_in_, feature_names_in_ : object
        As in :class:`NaiveClassifier`.

    References
    ----------
    .. [1] Kato, Teshima, Honda, "Learning from Positive and Unlabeled Data with a
       Selection Bias", ICLR 2019. Their score is a density ratio.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.methods import PUSBClassifier
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PUSBClassifier(class_prior=0.5, random_state=0).fit(X, s)
    >>> bool(model.score(X, y_true) > 0.9)
    True
    """

    def __init__(
        self,
        class_prior: float | None = None,
        *,
        gap_estimator: Any = None,
        cv: Any = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.class_prior = class_prior
        self.gap_estimator = gap_estimator
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        how = {"cv": self.cv, "n_jobs": self.n_jobs}
        scores = held_out_scores(self.gap_estimator, samples, labels, rng, **how)
        self._find_prior(labels.labelled, lambda: scores)
        self.threshold_ = top_threshold(scores, self.class_prior_)
        model = make_scorer(self.gap_estimator, rng)
        self.gap_estimator_ = model.fit(samples, labels.labelled.astype(np.int8))

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        return score_of(self.gap_estimator_, samples) - self.threshold_


def top_threshold(scores: Vector, share: float) -> float:
    """Return the threshold that this share of the scores lies above."""
    n_above = min(max(round(share * scores.size), 1), scores.size - 1)
    ordered = np.sort(scores)[::-1]
    return float(0.5 * (ordered[n_above - 1] + ordered[n_above]))
