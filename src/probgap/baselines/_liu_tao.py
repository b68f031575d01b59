"""Liu and Tao: class-conditional noise, corrected by importance weights."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval

from probgap._core.checks import ObservedLabels
from probgap._core.runtime import RandomStateLike
from probgap._core.types import Mask, Matrix, Vector
from probgap.baselines._base import GapBaseline, check_rates


class LiuTaoClassifier(GapBaseline):
    r"""Weight each sample by how likely its observed label is to be its true one.

    The weight is

    .. math:: \beta(x, s) = \frac{P(s \mid x) - \rho_{-s}}{(1 - \rho_+ - \rho_-) P(s \mid x)},

    where rho_{-s} is the rate at which the other class gets the label s. It assumes that
    every positive is mislabelled at the same rate, and that some samples are certainly
    positive, from which the rate is estimated. If easy positives are labelled first, that
    is the rate of the easiest, and too low for the rest.

    Parameters
    ----------
    rho_plus : float, default=None
        Rate at which positives are unlabelled. ``None`` takes the smallest P(s=0 | x)
        over the samples.
    rho_minus : float, default=0.0
        Rate at which negatives are labelled. ``None`` takes the smallest P(s=1 | x).
    estimator : classifier whose fit takes sample_weight, default=None
        ``None`` takes an RBF support vector machine.
    gap_estimator, gap_method : classifier, {"out_of_fold", "in_sample"}
        How to estimate P(s=1 | x), as in :class:`ElkanNotoClassifier`.
    pos_label, random_state, n_jobs : object
        As in :class:`ElkanNotoClassifier`.

    Attributes
    ----------
    rho_plus_, rho_minus_ : float
        The rates that were used.
    sample_weight_ : ndarray of shape (n_samples,)
        Weight of each training sample.
    estimator_ : object
        The fitted classifier.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order; ``positive_index_`` is that of the positive.
    n_features_in_, feature_names_in_ : int, ndarray
        Features seen in ``fit``, and their names if they were all strings.

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
        "rho_plus": [Interval(Real, 0, 1, closed="left"), None],
        "rho_minus": [Interval(Real, 0, 1, closed="left"), None],
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

    def _fit(
        self, samples: Matrix, labels: ObservedLabels, rng: np.random.Generator
    ) -> None:
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
        self.estimator_ = self._final_estimator(rng).fit(
            samples, labelled.astype(np.int8), sample_weight=weight
        )


def importance(
    chance: Vector, labelled: Mask, rho_plus: float, rho_minus: float
) -> Vector:
    """Return the weight of each sample, not below 0, from P(s=1 | x) and the rates."""
    check_rates(rho_plus, rho_minus)
    of_label = np.where(labelled, chance, 1.0 - chance)
    of_label = np.maximum(of_label, np.finfo(np.float64).eps)
    other_rate = np.where(labelled, rho_minus, rho_plus)
    weight: Vector = (of_label - other_rate) / ((1.0 - rho_plus - rho_minus) * of_label)
    return np.maximum(weight, 0.0)
