"""Bayesian optimal relabelling: labels that follow from the observed gap."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probgap._core.checks import check_gap, check_labelled, check_unit_interval
from probgap._core.errors import refuse
from probgap._core.output import fact_table, share

__all__ = ["Relabelling", "hidden_probability", "relabel", "relabel_in_expectation"]


@dataclass(frozen=True, slots=True)
class Relabelling:
    """The new label of each sample.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        1 for positive, 0 for negative, -1 where the rule abstains.
    positive_share : ndarray of shape (n_samples,)
        Weight of the sample as a positive in training; its weight as a negative is the
        rest to 1. NaN where the rule abstains.
    """

    labels: NDArray[np.int8]
    positive_share: NDArray[np.float64]

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Mask of the samples that have a label."""
        return self.labels >= 0

    @property
    def n_positive(self) -> int:
        """How many samples are positive."""
        return int(np.count_nonzero(self.labels == 1))

    @property
    def n_negative(self) -> int:
        """How many samples are negative."""
        return int(np.count_nonzero(self.labels == 0))

    @property
    def n_undecided(self) -> int:
        """How many samples have no label."""
        return int(np.count_nonzero(self.labels < 0))

    def with_negatives(self, negative: ArrayLike | None) -> Self:
        """Return the same, with samples that are known to be negative as negatives.

        Parameters
        ----------
        negative : array-like of shape (n_samples,) or None
            True for samples that were checked and are not positive.

        Returns
        -------
        Relabelling
            The labels, with 0 for these samples.
        """
        if negative is None:
            return self
        mask = check_labelled(negative, self.labels.size, name="negative")
        labels = np.where(mask, 0, self.labels).astype(np.int8)
        return replace(
            self, labels=labels, positive_share=np.where(mask, 0.0, self.positive_share)
        )

    def _repr_html_(self) -> str:
        n_samples = self.labels.size
        facts = {
            "samples": f"{n_samples:,}",
            "positive": share(self.n_positive, n_samples),
            "negative": share(self.n_negative, n_samples),
            "undecided": share(self.n_undecided, n_samples),
            "counted as positive": f"{np.nansum(self.positive_share):,.1f}",
        }
        return fact_table("Relabelling", facts)


def relabel(
    observed_gap: ArrayLike,
    labelled: ArrayLike | None = None,
    *,
    lower: float,
    upper: float = 0.0,
    keep_labelled: bool = True,
) -> Relabelling:
    """Label the samples whose observed gap settles the Bayes class.

    Corollary 1 of He, Liu, Webb and Tao (arXiv:1808.02180): a gap below ``lower`` (the
    paper's l) means negative, a gap above ``upper`` = 0 means positive, and samples
    between them are left out. Theorem 2, the strong form, is ``upper=lower``, where a gap
    that equals both means negative. A labelled positive never becomes a negative.

    It assumes that the chance of a positive to be labelled depends on its true gap alone
    and rises with it. With estimates it errs most near the boundary, where Corollary 1
    abstains.

    Parameters
    ----------
    observed_gap : array-like of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x), each in [-1, 1].
    labelled : array-like of shape (n_samples,), default=None
        True for labelled positives. ``None`` means that there are none.
    lower, upper : float
        A gap below the first, the boundary l, means negative; one above the second means
        positive.
    keep_labelled : bool, default=True
        Whether a labelled positive stays positive whatever its gap. Otherwise one that the
        gap does not call positive is left out.

    Returns
    -------
    Relabelling
        The labels, and the mask of the samples that have one.

    Examples
    --------
    >>> from probgap.relabel import relabel
    >>> relabel([-0.9, -0.5, -0.5, 0.3], [0, 0, 1, 0], lower=-0.8).labels
    array([ 0, -1,  1,  1], dtype=int8)
    """
    gap = check_gap(observed_gap)
    if lower > upper:
        refuse(f"lower must not exceed upper. Got lower={lower!r}, upper={upper!r}.")
    labels = np.full(gap.shape, -1, dtype=np.int8)
    labels[gap > upper] = 1
    labels[(gap < lower) | ((gap == lower) & (lower == upper))] = 0
    if labelled is not None:
        mask = check_labelled(labelled, gap.size)
        labels[mask & (keep_labelled | (gap <= upper))] = 1 if keep_labelled else -1
    return Relabelling(labels, np.where(labels < 0, np.nan, labels))


def relabel_in_expectation(
    labelled: ArrayLike,
    posterior: ArrayLike,
    hidden: ArrayLike,
    *,
    keep_labelled: bool = True,
) -> Relabelling:
    """Weight each unlabelled sample as a positive by the probability that it is one.

    The sample enters training twice, as a positive with P(Y=1 | x, unlabelled) as its
    weight and as a negative with the rest. It is only as good as the probabilities.

    Parameters
    ----------
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    posterior : array-like of shape (n_samples,)
        P(Y=1 | x), each in [0, 1].
    hidden : array-like of shape (n_samples,)
        P(Y=1 | x, unlabelled), each in [0, 1]; see :func:`hidden_probability`.
    keep_labelled : bool, default=True
        Whether a labelled positive counts fully as positive. Otherwise its posterior is
        its weight.

    Returns
    -------
    Relabelling
        Labels for all samples, and the share of each that counts as positive.

    Examples
    --------
    >>> from probgap.relabel import hidden_probability, relabel_in_expectation
    >>> hidden = hidden_probability([0.0, -0.6, 0.0], [0.75, 0.2, 0.75])
    >>> relabel_in_expectation([0, 0, 1], [0.75, 0.2, 0.75], hidden).positive_share
    array([0.5, 0. , 1. ])
    """
    eta = np.asarray(posterior, dtype=np.float64)
    eta = check_unit_interval(eta, "posterior", eta.size)
    mask = check_labelled(labelled, eta.size)
    share = check_unit_interval(hidden, "hidden", eta.size).copy()
    share[mask] = 1.0 if keep_labelled else eta[mask]
    labels = (eta > 0.5) | (mask & keep_labelled)
    return Relabelling(labels.astype(np.int8), share)


def hidden_probability(
    observed_gap: ArrayLike, posterior: ArrayLike
) -> NDArray[np.float64]:
    """Return P(Y=1 | x, unlabelled), given the observed gap and P(Y=1 | x).

    Parameters
    ----------
    observed_gap : array-like of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x), each in [-1, 1].
    posterior : array-like of shape (n_samples,)
        P(Y=1 | x), each in [0, 1].

    Returns
    -------
    ndarray of shape (n_samples,)
        The probability that a sample is positive although it is unlabelled.

    Examples
    --------
    >>> from probgap.relabel import hidden_probability
    >>> hidden_probability([0.0], [0.75])
    array([0.5])
    """
    gap = check_gap(observed_gap)
    eta = check_unit_interval(posterior, "posterior", gap.size)
    chance = 0.5 * (1.0 + gap)
    left = np.maximum(1.0 - chance, np.finfo(np.float64).eps)
    return np.clip((eta - chance) / left, 0.0, 1.0)
