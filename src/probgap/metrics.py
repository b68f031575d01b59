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

from probgap._core._sklearn import check_sample_weight
from probgap._core.checks import decode_labels
from probgap._core.errors import refuse
from probgap._core.types import Mask, Vector

__all__ = ["pu_score", "pu_score_range", "recovered_share"]

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
        if not isinstance(value, Real) or not np.isfinite(value):
            refuse(f"{name} must be a finite score. Got {value!r}.")
    return float((method - naive) / (clean - naive)) if clean != naive else np.nan


def pu_score(
    y: ArrayLike,
    y_pred: ArrayLike,
    metric: str = "accuracy",
    *,
    class_prior: float | None = None,
    pos_label: object = None,
    neg_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Estimate a score against the true labels from observed labels.

    Assumes that labelled positives are a random sample of the positives (SCAR, selected
    completely at random), and that ``class_prior`` is right. Then the recall r of labelled
    positives estimates the recall of all. With q the share of rows predicted positive and
    :math:`\pi` the class prior, :math:`r \pi` of all rows are true positives, and

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
                         j-th of them at rank k; c is the share of the other positives
                         that are labelled
    ===================  ============================================================

    Where easy positives are labelled first, a classifier finds labelled positives more
    often than others: r is too high, and so is every estimate here, the more so the
    steeper the labelling. :func:`pu_score_range` returns bounds that hold nevertheless.
    "lee_liu" [3]_ ranks models as precision times recall does, and needs no prior.

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
        below the labelled share, as happens in small samples, is raised to it, and 1 is
        lowered so that one sample is negative.
    pos_label : object, default=None
        The value of ``y`` that marks labelled positives, or a tuple of several. ``None``
        takes the greater.
    neg_label : object, default=None
        The value of ``y`` that marks samples that were checked and are not positive. They
        count among those that are not labelled; that they are negative is not used, for who
        was checked is seldom a random sample.
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
    .. [3] Lee, Liu, "Learning with Positive and Unlabeled Examples Using Weighted
       Logistic Regression", ICML 2003.

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
    rows = _Rows.of(y, y_pred, metric, (pos_label, neg_label), sample_weight)
    if metric in _WITHOUT_PRIOR:
        return _BY_COUNTS[metric](rows.recall, rows.called, 1.0)
    return rows.estimate(metric, rows.check_prior(class_prior)[0])


def check_metric(metric: str, class_prior: Any) -> None:
    """Check the name of a metric, and that it has the prior that it needs."""
    if metric not in _METRICS:
        refuse(f"metric must be one of {', '.join(_METRICS)}. Got {metric!r}.")
    if metric in _WITHOUT_PRIOR:
        return
    if not isinstance(class_prior, Real) or not 0.0 <= float(class_prior) <= 1.0:
        rule = f"be a number in [0, 1] for metric={metric!r}"
        refuse(f"class_prior must {rule}. Got {class_prior!r}.")


def pu_score_range(
    y: ArrayLike,
    y_pred: ArrayLike,
    metric: str = "accuracy",
    *,
    class_prior: float | tuple[float, float] | None = None,
    scar: bool = False,
    pos_label: object = None,
    neg_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[float, float]:
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
        ``estimate_.class_prior_interval`` of a fitted classifier. ``None`` allows any,
        from the labelled share to all samples but one.
    scar : bool, default=False
        Whether labelled positives are a random sample of the positives.
    pos_label, neg_label, sample_weight : object
        As in :func:`pu_score`.

    Returns
    -------
    low, high : float
        The ends of the range.

    Examples
    --------
    Of ten rows two are labelled, one of them found; between three and five are positive.

    >>> from probgap.metrics import pu_score_range
    >>> s = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> predicted = [1, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    >>> low, high = pu_score_range(s, predicted, class_prior=(0.3, 0.5))
    >>> round(low, 3), round(high, 3)
    (0.4, 0.9)
    """
    check_metric(metric, 0.0)
    rows = _Rows.of(y, y_pred, metric, (pos_label, neg_label), sample_weight)
    if metric in BY_RANK and not scar:
        refuse(f"scar must be True for metric={metric!r}. Got {scar!r}.")
    low, high = rows.check_prior((0.0, 1.0) if class_prior is None else class_prior)
    return (rows.scar_range if scar else rows.bounds)(metric, low, high)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Checked labels and output of a classifier, and shares of the rows by weight."""

    labelled: Mask
    output: Vector  # scores, or 1 for predicted positive and 0 for the rest
    weight: Vector  # sums to 1
    known: float  # share that is labelled
    called: float  # share predicted positive
    recall: float  # share of the labelled rows predicted positive

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        y_pred: ArrayLike,
        metric: str,
        named: tuple[object, object],
        sample_weight: ArrayLike | None,
    ) -> _Rows:
        labels, output = decode_labels(y, *named), np.asarray(y_pred)
        labelled = labels.labelled
        if output.shape != labelled.shape:
            refuse(
                f"y_pred must have one value for each of the {labelled.size} samples. "
                f"Got shape {output.shape}."
            )
        if metric in BY_RANK:
            how = {"ensure_2d": False, "dtype": np.float64, "input_name": "y_pred"}
            output = check_array(output, **how)
        else:
            wrong = output[~np.isin(output, labels.classes)]
            if wrong.size:
                refuse(
                    f"y_pred must hold the values {labels.classes.tolist()!r} for "
                    f"metric={metric!r}. Got {wrong[:5].tolist()!r}."
                )
            output = (output == labels.classes[labels.positive]).astype(np.float64)
        weight = check_sample_weight(
            sample_weight, labelled, dtype=np.float64, ensure_non_negative=True
        )
        counted = weight > 0.0
        if not counted[labelled].any():
            refuse("sample_weight must be above 0 for some labelled sample. Got none.")
        if metric not in _WITHOUT_PRIOR and not counted[~labelled].any():
            refuse(
                "sample_weight must be above 0 for some unlabelled sample. Got none."
            )
        weight = weight / weight.sum()
        known = float(weight[labelled].sum())
        recall = min(float(weight[labelled] @ output[labelled]) / known, 1.0)
        return cls(labelled, output, weight, known, float(weight @ output), recall)

    def check_prior(self, class_prior: Any) -> tuple[float, float]:
        """Return a range that leaves all labelled rows positive and one row negative."""
        n, known = np.count_nonzero(self.weight), self.known
        ends = list(class_prior) if np.ndim(class_prior) else [class_prior, class_prior]
        numbers = len(ends) == 2 and all(isinstance(end, Real) for end in ends)
        if not numbers or not 0.0 <= ends[0] <= ends[1] <= 1.0:
            rule = "lie in [0, 1], the lower end of a range first"
            refuse(f"class_prior must {rule}. Got {class_prior!r}.")
        if ends[1] < known - _TOO_FAR * np.sqrt(known * (1.0 - known) / n):
            refuse(
                "class_prior must be at least the labelled share of the samples, "
                f"{known:.3g}. Got {float(ends[1])!r}."
            )
        low, high = np.clip(ends, known, max(known, 1.0 - 1.0 / n)).tolist()
        return low, high

    def estimate(self, metric: str, prior: float) -> float:
        """Estimate a metric under SCAR."""
        if metric == "roc_auc":
            above = roc_auc_score(self.labelled, self.output, sample_weight=self.weight)
            above = 0.5 * self.known + (1.0 - self.known) * above
            return float((above - 0.5 * prior) / (1.0 - prior))
        if metric == "average_precision":
            return self._average_precision(prior)
        hit = max(self.recall * prior, self.called + prior - 1.0)
        return float(_BY_COUNTS[metric](min(hit, self.called), self.called, prior))

    def _average_precision(self, prior: float) -> float:
        # Rows at or above each row, ties included.
        _, block = np.unique(-self.output, return_inverse=True)
        above = np.cumsum(np.bincount(block, self.weight))[block]
        own = np.where(self.labelled, self.weight, 0.0)
        labelled_above = np.cumsum(np.bincount(block, own))[block]
        # The row itself is positive; the other labelled ones stand for the other positives.
        others = np.maximum(self.known - own, np.finfo(np.float64).tiny)
        hits = own + (labelled_above - own) * np.maximum(prior - own, 0.0) / others
        counts = own > 0.0
        return float(np.average(hits[counts] / above[counts], weights=own[counts]))

    def scar_range(self, metric: str, low: float, high: float) -> tuple[float, float]:
        """Return the least and the greatest estimate over a range of priors."""
        if metric in _WITHOUT_PRIOR:
            value = _BY_COUNTS[metric](self.recall, self.called, 1.0)
            return value, value
        # Priors beyond which ``estimate`` limits the true positives.
        turns = [self.called / self.recall] if self.recall > 0.0 else []
        turns += (
            [(1.0 - self.called) / (1.0 - self.recall)] if self.recall < 1.0 else []
        )
        at = [low, high, *(turn for turn in turns if low < turn < high)]
        values = [self.estimate(metric, prior) for prior in at]
        if metric not in BY_RANK:
            values = np.clip(values, 0.0, 1.0).tolist()
        return min(values), max(values)

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
