"""Scores against true labels, and what can be said of them from observed labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from probgap._core.checks import read_labels
from probgap._core.errors import InvalidInputError
from probgap._core.types import Mask, Vector

__all__ = [
    "ScoreRange",
    "lee_liu_score",
    "pu_score",
    "pu_score_range",
    "recovered_share",
]

# Metrics as functions of the shares of rows that are true positives, predicted positive
# and positive. Each increases with the first share if the other two are fixed.
_BY_COUNTS: dict[str, Callable[[float, float, float], float]] = {
    "accuracy": lambda hit, called, prior: 1.0 - called - prior + 2.0 * hit,
    "balanced_accuracy": lambda hit, called, prior: (
        0.5 * (hit / prior + (1.0 - called - prior + hit) / (1.0 - prior))
    ),
    "f1": lambda hit, called, prior: 2.0 * hit / (called + prior),
    "lee_liu": lambda hit, called, prior: (
        (hit / prior) ** 2 / called if called > 0.0 else 0.0
    ),
    "precision": lambda hit, called, _: hit / called if called > 0.0 else 0.0,
    "recall": lambda hit, _, prior: hit / prior,
}
_WITHOUT_PRIOR = ("lee_liu", "recall")
BY_RANK = ("average_precision", "roc_auc")
_METRICS = (*_BY_COUNTS, *BY_RANK)
# A prior more standard errors than this below the labelled share is not due to chance.
_TOO_FAR = 3.0


def recovered_share(method: float, naive: float, clean: float) -> float:
    """Return the share of the loss due to missing labels that a method recovers.

    ``(method - naive) / (clean - naive)``: 0 for a method that is as good as ignoring
    the problem, 1 for one that is as good as knowing every label. It does not depend on
    the scale of the scores, and is meaningless if clean and naive are about equal.

    Parameters
    ----------
    method, naive, clean : float
        Scores against true labels of the method, of a classifier that takes
        unlabelled as negative, and of the same classifier fitted on true labels.

    Returns
    -------
    float
        The share; NaN if ``clean`` equals ``naive``.

    Examples
    --------
    >>> from probgap.metrics import recovered_share
    >>> round(recovered_share(0.95, 0.90, 0.96), 3)
    0.833
    """
    for name, value in {"method": method, "naive": naive, "clean": clean}.items():
        if not np.isfinite(value):
            msg = f"{name} must be a finite score. Got {value!r}."
            raise InvalidInputError(msg)
    return float((method - naive) / (clean - naive)) if clean != naive else np.nan


def lee_liu_score(
    y: ArrayLike,
    y_pred: ArrayLike,
    *,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Score predictions without known negatives.

    ``recall ** 2 / P(predicted positive)``, with the recall of labelled positives. It
    ranks models as precision times recall does if labels are missing at random; if easy
    positives are labelled first the recall, and so the score, is too high.

    Parameters
    ----------
    y, y_pred : array-like of shape (n_samples,)
        Observed labels, and predictions of the same two values.
    pos_label, sample_weight : object
        As in :func:`pu_score`.

    Returns
    -------
    float
        The score, at least 0; greater is better.

    References
    ----------
    .. [1] Lee, Liu, "Learning with Positive and Unlabeled Examples Using Weighted
       Logistic Regression", ICML 2003.

    Examples
    --------
    >>> from probgap.metrics import lee_liu_score
    >>> lee_liu_score([1, 1, 0, 0], [1, 1, 1, 0])
    1.3333333333333333
    """
    return pu_score(
        y, y_pred, "lee_liu", pos_label=pos_label, sample_weight=sample_weight
    )


def pu_score(
    y: ArrayLike,
    y_pred: ArrayLike,
    metric: str = "accuracy",
    *,
    class_prior: float | None = None,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Estimate a score against the true labels from observed labels.

    Assumes that labelled positives are a random sample of the positives (SCAR, selected
    completely at random), and that ``class_prior`` is right. Then the recall r of labelled positives estimates the
    recall of all. With q the share of rows predicted positive and :math:`\pi` the class
    prior, :math:`r \pi` of all rows are true positives, and

    ===================  ============================================================
    metric               estimate
    ===================  ============================================================
    "recall"             r
    "lee_liu"            :math:`r^2 / q`
    "precision"          :math:`r \pi / q`
    "f1"                 :math:`2 r \pi / (q + \pi)`
    "accuracy"           :math:`1 - q - \pi + 2 r \pi`
    "balanced_accuracy"  :math:`(r + (1 - q - \pi + r \pi) / (1 - \pi)) / 2`
    "roc_auc"            :math:`(A - \pi / 2) / (1 - \pi)`, with A the chance that a
                         labelled positive ranks above a row drawn from all rows
    "average_precision"  mean over labelled positives of (1 + (j - 1) / c) / k, for the
                         j-th of them at rank k; c is the share of positives labelled
    ===================  ============================================================

    Where easy positives are labelled first, a classifier finds labelled positives more
    often than others: r is too high, and so is every estimate here, the more so the
    steeper the labelling. :func:`pu_score_range` returns bounds that hold nevertheless.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Observed labels, of samples that the classifier was not fitted on.
    y_pred : array-like of shape (n_samples,)
        Predictions, of the same two values; for "roc_auc" and "average_precision",
        scores that are greater for likelier positives.
    metric : str, default="accuracy"
        One of the table's.
    class_prior : float, default=None
        Share of the samples that is positive, labelled or not. Not needed for "recall"
        and "lee_liu". Use one value for all models that are compared. A value slightly
        below the labelled share, as happens in small samples, is raised to it.
    pos_label : object, default=None
        The value of ``y`` that marks labelled positives. ``None`` takes the greater.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples.

    Returns
    -------
    float
        The estimate. True positives are limited to what q and the prior allow, so that
        metrics of predictions lie in [0, 1]. "roc_auc" and "average_precision" are not
        clipped: values far above 1 show that labelled positives are not a random sample
        of the positives, or that the prior is too high.

    See Also
    --------
    pu_score_range : Bounds for a range of priors, or without SCAR.
    probgap.model_selection.make_pu_scorer : The same as a scorer.

    References
    ----------
    .. [1] Elkan, Noto, "Learning Classifiers from Only Positive and Unlabeled Data",
       KDD 2008.
    .. [2] Jain, White, Radivojac, "Recovering True Classifier Performance in
       Positive-Unlabeled Learning", AAAI 2017.

    Examples
    --------
    Half of the labelled rows and three of all ten are predicted positive; four are positive.

    >>> from probgap.metrics import pu_score
    >>> s = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> predicted = [1, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    >>> round(pu_score(s, predicted, "precision", class_prior=0.4), 3)
    0.667
    >>> round(pu_score(s, predicted, "accuracy", class_prior=0.4), 3)
    0.7
    """
    check_metric(metric, class_prior)
    rows = _Rows.of(y, y_pred, metric, pos_label, sample_weight)
    if metric in _WITHOUT_PRIOR:
        return _BY_COUNTS[metric](rows.recall, rows.called, 1.0)
    return rows.estimate(metric, rows.check_prior((class_prior, class_prior))[0])


def check_metric(metric: str, class_prior: Any) -> None:
    """Check the name of a metric, and that it has the prior that it needs."""
    if metric not in _METRICS:
        msg = f"metric must be one of {', '.join(_METRICS)}. Got {metric!r}."
        raise InvalidInputError(msg)
    if not isinstance(class_prior, Real) and metric not in _WITHOUT_PRIOR:
        rule = f"class_prior must be a number for metric={metric!r}"
        msg = f"{rule}. Got {class_prior!r}."
        raise InvalidInputError(msg)


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """Lower and upper bound of a score.

    Attributes
    ----------
    low, high : float
        The ends.
    metric : str
        Which score.
    class_prior : tuple of float
        Range of the share of positives that was assumed.
    scar : bool
        Whether labelled positives were taken as a random sample of the positives.
    """

    low: float
    high: float
    metric: str
    class_prior: tuple[float, float]
    scar: bool


def pu_score_range(
    y: ArrayLike,
    y_pred: ArrayLike,
    metric: str = "accuracy",
    *,
    class_prior: float | tuple[float, float] | None = None,
    scar: bool = False,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> ScoreRange:
    """Bound a score against the true labels of these samples.

    Without SCAR only counts are used: labelled rows are positive, and of the others
    any may be, as long as the share of positives is in the range of ``class_prior``.
    These bounds hold however labels came about, and none narrower do without further
    assumptions. With SCAR the range is that of :func:`pu_score` over all priors.
    Neither includes the sampling error of few samples.

    Parameters
    ----------
    y, y_pred : array-like of shape (n_samples,)
        As in :func:`pu_score`.
    metric : str, default="accuracy"
        As in :func:`pu_score`; "roc_auc" and "average_precision" only with ``scar``.
    class_prior : float or tuple of float, default=None
        Share of the samples that is positive, or a range of it, such as
        ``estimated_class_prior_interval_`` of a fitted classifier. ``None`` allows any,
        from the labelled share to all samples but one.
    scar : bool, default=False
        Whether labelled positives are a random sample of the positives.
    pos_label, sample_weight : object
        As in :func:`pu_score`.

    Returns
    -------
    ScoreRange
        The range, with what was assumed.

    Examples
    --------
    Of ten rows two are labelled, one of them found; between three and five are positive.

    >>> from probgap.metrics import pu_score_range
    >>> s = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> predicted = [1, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    >>> found = pu_score_range(s, predicted, class_prior=(0.3, 0.5))
    >>> round(found.low, 3), round(found.high, 3)
    (0.4, 0.9)
    """
    check_metric(metric, 0.0)
    rows = _Rows.of(y, y_pred, metric, pos_label, sample_weight)
    if metric in BY_RANK and not scar:
        msg = f"scar must be True for metric={metric!r}. Got {scar!r}."
        raise InvalidInputError(msg)
    ends: Any = (0.0, 1.0) if class_prior is None else class_prior
    low, high = rows.check_prior(ends if np.ndim(ends) else (ends, ends))
    if scar:
        turns = [] if metric in BY_RANK else rows.turns(low, high)
        values = [rows.estimate(metric, prior) for prior in (low, high, *turns)]
        least, most = min(values), max(values)
        if metric != "lee_liu":
            least, most = np.clip((least, most), 0.0, 1.0).tolist()
    else:
        least, most = rows.bounds(metric, low, high)
    return ScoreRange(least, most, metric, (low, high), scar)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Checked labels, output of a classifier, and weights that sum to 1."""

    labelled: Mask
    output: Vector  # scores, or 1 for predicted positive and 0 for the rest
    weight: Vector

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        y_pred: ArrayLike,
        metric: str,
        pos_label: object,
        sample_weight: ArrayLike | None,
    ) -> _Rows:
        labels, found = read_labels(y, pos_label), np.asarray(y_pred)
        n_samples = labels.labelled.size
        if found.shape != (n_samples,):
            msg = (
                f"y_pred must have one value for each of the {n_samples} samples. "
                f"Got shape {found.shape}."
            )
            raise InvalidInputError(msg)
        weight = _check_sample_weight(
            sample_weight, labels.labelled, dtype=np.float64, ensure_non_negative=True
        )
        if not weight[labels.labelled].sum() > 0.0:
            msg = "sample_weight must be above 0 for some labelled sample. Got none."
            raise InvalidInputError(msg)
        weight = weight / weight.sum()
        if metric in BY_RANK:
            scores = check_array(
                found, ensure_2d=False, dtype=np.float64, input_name="y_pred"
            )
            return cls(labels.labelled, scores, weight)
        if not np.isin(found, labels.classes).all():
            msg = (
                f"y_pred must hold the values {labels.classes.tolist()!r} for "
                f"metric={metric!r}. Got {np.unique(found)[:5].tolist()!r}."
            )
            raise InvalidInputError(msg)
        called = found == labels.classes[labels.positive]
        return cls(labels.labelled, called.astype(np.float64), weight)

    @property
    def called(self) -> float:
        """Share of the rows predicted positive."""
        return float(self.weight @ self.output)

    @property
    def known(self) -> float:
        """Share of the rows that are labelled."""
        return float(self.weight[self.labelled].sum())

    @property
    def recall(self) -> float:
        """Share of the labelled rows predicted positive."""
        found = float(self.weight[self.labelled] @ self.output[self.labelled])
        return min(found / self.known, 1.0)

    def check_prior(self, prior: tuple[Any, Any]) -> tuple[float, float]:
        """Check a range, and clip it to leave all labelled positive and one row negative."""
        n, known = self.labelled.size, self.known
        if len(prior) != 2 or not 0.0 <= prior[0] <= prior[1] <= 1.0:
            msg = f"class_prior must lie in [0, 1], the lower end first. Got {prior!r}."
            raise InvalidInputError(msg)
        if prior[1] < known - _TOO_FAR * np.sqrt(known * (1.0 - known) / n):
            msg = (
                "class_prior must be at least the labelled share of the samples, "
                f"{known:.3g}. Got {float(prior[1])!r}."
            )
            raise InvalidInputError(msg)
        most = max(known, 1.0 - 1.0 / n)
        low, high = np.clip(prior, known, most).tolist()
        return low, high

    def turns(self, low: float, high: float) -> list[float]:
        """Return the priors in a range beyond which ``estimate`` limits the true positives."""
        called, recall = self.called, self.recall
        turns = [called / recall] if recall > 0.0 else []
        turns += [(1.0 - called) / (1.0 - recall)] if recall < 1.0 else []
        return [turn for turn in turns if low < turn < high]

    def estimate(self, metric: str, prior: float) -> float:
        """Estimate a metric under SCAR."""
        if metric == "roc_auc":
            above = roc_auc_score(self.labelled, self.output, sample_weight=self.weight)
            above = 0.5 * self.known + (1.0 - self.known) * above
            return float((above - 0.5 * prior) / (1.0 - prior))
        if metric == "average_precision":
            return self._average_precision(prior)
        called = self.called
        hit = min(max(self.recall * prior, called + prior - 1.0), called)
        return float(_BY_COUNTS[metric](hit, called, prior))

    def _average_precision(self, prior: float) -> float:
        # Rows at or above each row, ties included.
        _, block = np.unique(-self.output, return_inverse=True)
        above = np.cumsum(np.bincount(block, self.weight))[block]
        own = np.where(self.labelled, self.weight, 0.0)
        labelled_above = np.cumsum(np.bincount(block, own))[block]
        # The row itself is positive; each other labelled one stands for 1 / c of them.
        hits = own + (labelled_above - own) * prior / self.known
        counts = own > 0.0
        return float(np.average(hits[counts] / above[counts], weights=own[counts]))

    def bounds(self, metric: str, low: float, high: float) -> tuple[float, float]:
        """Bound a metric by counts alone."""
        score, called = _BY_COUNTS[metric], self.called
        found, missed = self.known * self.recall, self.known * (1.0 - self.recall)
        # Priors at which the bounds of the true positives change their form.
        turns = np.clip((1.0 - called + found, called + missed), low, high)
        at: list[float] = [low, high, *turns.tolist()]
        least = [score(max(found, called + p - 1.0), called, p) for p in at]
        most = [score(min(called, p - missed), called, p) for p in at]
        return min(least), max(most)
