"""Bounds of the risk: the paper's Theorems 4 and 5, and what left-out rows can cost."""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from probgap._core.checks import check_labelled, check_unit_interval
from probgap._core.errors import require


@dataclass(frozen=True, slots=True)
class LeftOutBound:
    """An upper bound of the risk of a classifier trained on part of the domain.

    Attributes
    ----------
    value : float
        The bound: ``share_selected * risk_selected + share_left_out + deviation``, at
        most 1.
    share_selected, share_left_out : float
        Shares of the rows inside and outside the selected part; their sum is 1.
    risk_selected : float
        Mean loss of the selected rows; 0 if there are none.
    deviation : float
        How far the sum of the two may be below that of the population.
    n_rows : int
        Number of rows.
    """

    value: float
    share_selected: float
    share_left_out: float
    risk_selected: float
    deviation: float
    n_rows: int


def left_out_bound(
    losses: ArrayLike, selected: ArrayLike, *, delta: float = 0.05
) -> LeftOutBound:
    r"""Bound the risk of a classifier that was trained on part of the domain.

    Algorithm 1 leaves out the rows between the boundary and 0, where the classifier may
    be wrong on all. With losses in [0, 1],

    .. math::

        R(h) \le P(\text{selected}) \, R_{\text{selected}}(h) + P(\text{left out}),

    for any classifier, any selection by x and any weights. Both terms are means over
    held-out rows; an empirical Bernstein term [1]_ makes the sum an upper bound with
    probability at least :math:`1 - \delta`.

    It assumes that the rows are a random sample that neither the classifier nor the
    selection has seen, and that losses are by true labels. By the labels of a relabelling
    it bounds the risk if these are right; add the share of wrong ones. It allows for every
    left-out row being wrong, and is loose where few are. A labelled row is a known
    positive, whose loss is known wherever it lies: counted as selected, it makes the bound
    sharper, and no less valid.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        Loss of each held-out row, in [0, 1]; those of rows left out do not matter.
    selected : array-like of shape (n_samples,)
        True where the relabelling would decide the row, or where its loss is known
        otherwise.
    delta : float, default=0.05
        Probability that the bound fails.

    Returns
    -------
    LeftOutBound
        The bound, and what it is made of.

    References
    ----------
    .. [1] Maurer, Pontil, "Empirical Bernstein Bounds and Sample Variance Penalization",
       COLT 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.reweight import left_out_bound
    >>> wrong, selected = np.arange(2000) % 100 == 0, np.arange(2000) % 50 > 0
    >>> found = left_out_bound(wrong, selected)
    >>> round(found.share_left_out, 3), round(found.value, 3)
    (0.02, 0.033)
    """
    loss = check_array(losses, input_name="losses", ensure_2d=False, dtype=np.float64)
    loss = check_unit_interval(loss, "losses", loss.size)
    mask = check_labelled(selected, loss.size, name="selected")
    require(loss.size >= 2, "losses must be of at least 2 rows", loss.size)
    require(0.0 < delta < 1.0, "delta must lie in (0, 1)", delta)
    n, log = loss.size, np.log(2.0 / delta)
    worst = np.where(mask, loss, 1.0)
    deviation = np.sqrt(2.0 * worst.var(ddof=1) * log / n) + 7.0 * log / (3.0 * (n - 1))
    share = float(mask.mean())
    return LeftOutBound(
        value=min(1.0, float(worst.mean() + deviation)),
        share_selected=share,
        share_left_out=1.0 - share,
        risk_selected=float(loss[mask].mean()) if mask.any() else 0.0,
        deviation=float(deviation),
        n_rows=n,
    )


def risk_bound(
    n_samples: int,
    *,
    largest_weight: float,
    complexity: float,
    largest_loss: float = 1.0,
    delta: float = 0.05,
) -> float:
    r"""Bound the excess risk of a classifier that minimises a weighted loss.

    Theorem 5 of the paper: with probability at least :math:`1 - \delta`,

    .. math::

        R(\hat h) - R(h^*) \le 2 \max_x \beta(x) \, \mathfrak{R}(l \circ H)
        + 2 b \sqrt{\frac{\log(1 / \delta)}{2 N}},

    where h* is the best classifier of the class H. Theorem 4 is the case
    ``largest_weight=1``.

    **The largest weight is that of the domain, not of the sample.** Where a point is rare
    among the weighted samples and common among the others, no sample may show its weight.
    The weights are the true ratio of the densities, so that weighted samples occur
    wherever others do: not where a relabelling leaves rows out, for which
    :func:`left_out_bound` holds. H is fixed before the data are seen. The bound is loose,
    and says nothing if it exceeds the largest loss.

    Parameters
    ----------
    n_samples : int
        Number of weighted samples, the paper's N.
    largest_weight : float
        Greatest ratio of the densities over the domain, at least 1.
    complexity : float
        C, if the Rademacher complexity of the losses is at most C / sqrt(N): for losses
        that change no faster than the margin, the radius of a ball of functions in the
        RKHS of a kernel with k(x, x) <= 1; for k classifiers, sqrt(2 log k).
    largest_loss : float, default=1.0
        Upper bound of the loss, without its weight.
    delta : float, default=0.05
        Probability that the bound fails.

    Returns
    -------
    float
        The bound.

    Notes
    -----
    The paper is corrected as follows: Theorem 5 prints :math:`1 - \delta` for
    :math:`\log(1 / \delta)`; its b bounds the *weighted* loss, and so is the largest
    weight times ``largest_loss``; its Rademacher complexity is twice the usual one, so
    that the factor is 4 here (2 would do); Lemma 2 lacks b; h* is the best classifier in
    H, not of all.

    References
    ----------
    .. [1] He, Liu, Webb, Tao, "Instance-Dependent PU Learning by Bayesian Optimal
       Relabeling", arXiv:1808.02180v2, 2020.

    Examples
    --------
    >>> from probgap.reweight import risk_bound
    >>> round(risk_bound(10_000, largest_weight=2.0, complexity=1.0), 3)
    0.129
    """
    for name, number, least in (
        ("n_samples", n_samples, 1),
        ("largest_weight", largest_weight, 1),
        ("complexity", complexity, 0),
        ("largest_loss", largest_loss, 0),
    ):
        right = isinstance(number, Real) and float(number) >= least
        require(right, f"{name} must be a number of at least {least}", number)
    require(0.0 < delta < 1.0, "delta must lie in (0, 1)", delta)
    chance = largest_loss * np.sqrt(2.0 * np.log(1.0 / delta))
    return float(largest_weight * (4.0 * complexity + chance) / np.sqrt(n_samples))
