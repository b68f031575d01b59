"""The paper's bounds on the risk, Theorems 4 and 5."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from probgap._core.errors import InvalidInputError
from probgap._core.types import Vector


@dataclass(frozen=True, slots=True)
class RiskBound:
    """Bounds on the excess risk of a weighted classifier.

    Attributes
    ----------
    n_samples, largest_weight : int, float
        The paper's N and max beta.
    effective_sample_size : float
        Number of equally weighted samples whose mean has the same variance.
    empirical_risk : float
        Weighted mean loss of the samples; NaN if no losses were given.
    theorem_4, theorem_5 : float
        The bound if all weights were 1, and that from the largest weight.
    sharper : float
        The bound from the effective sample size, never above ``theorem_5``.
    deviation : float
        The part of ``sharper`` that does not depend on the complexity.
    says_nothing : bool
        Whether ``sharper`` is at least the largest possible loss.
    """

    n_samples: int
    effective_sample_size: float
    largest_weight: float
    empirical_risk: float
    theorem_4: float
    theorem_5: float
    sharper: float
    deviation: float
    says_nothing: bool


def risk_bound(
    weights: ArrayLike,
    *,
    complexity: float,
    losses: ArrayLike | None = None,
    largest_loss: float = 1.0,
    delta: float = 0.05,
) -> RiskBound:
    r"""Bound the excess risk of a classifier that minimises a weighted loss.

    Theorem 5 of the paper: with probability at least :math:`1 - \delta`,

    .. math::

        R(\hat h) - R(h^*) \le 2 \max_i \beta_i \, \mathfrak{R}(l \circ H)
        + 2 b \sqrt{\frac{\log(1 / \delta)}{2 N}},

    where h* is the best classifier of the class H. Theorem 4 is the case
    :math:`\beta = 1`. Both terms change with a sample by at most its own weight, so that
    :math:`\sqrt{\sum_i \beta_i^2} / N` can replace :math:`\max_i \beta_i / \sqrt N`:
    ``sharper``. **The bound is loose**, and says nothing if it exceeds the largest loss. It
    shows what weights cost, not how good a classifier is.

    It assumes that the weights are the true ratio of the densities, that weighted samples
    occur wherever others do, that their labels are those of the best classifier, and that H
    was fixed before the data were seen. Weights of kernel mean matching are estimates, and
    a region without weighted samples breaks the bound without any warning.

    Parameters
    ----------
    weights : array-like of shape (n_samples,)
        Weights, not negative; such as ``kmm_.weights`` of a fitted classifier.
    complexity : float
        C, if the Rademacher complexity of the losses is at most C / sqrt(N): for losses
        that change no faster than the margin, the radius of a ball of functions in the
        RKHS of a kernel with k(x, x) <= 1; for k classifiers, sqrt(2 log k).
    losses : array-like of shape (n_samples,), default=None
        Loss of each sample, for ``empirical_risk``.
    largest_loss : float, default=1.0
        Upper bound of the loss, without its weight.
    delta : float, default=0.05
        Probability that the bound fails.

    Returns
    -------
    RiskBound
        The bounds, and what they are made of.

    Notes
    -----
    The paper is corrected as follows: Theorem 5 prints :math:`1 - \delta` for
    :math:`\log(1 / \delta)`; its b bounds the *weighted* loss, and so is the largest
    weight times ``largest_loss``; its Rademacher complexity is twice the usual one, so
    that the factor is 4 here; Lemma 2 lacks b; h* is the best classifier in H, not of all.

    References
    ----------
    .. [1] He, Liu, Webb, Tao, "Instance-Dependent PU Learning by Bayesian Optimal
       Relabeling", arXiv:1808.02180, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.reweight import risk_bound
    >>> found = risk_bound(np.repeat([2.0, 0.5], [1000, 2000]), complexity=1.0)
    >>> round(found.effective_sample_size)
    2000
    >>> round(found.theorem_5, 3), round(found.sharper, 3)
    (0.235, 0.144)
    """
    how = {"ensure_2d": False, "dtype": np.float64}
    weight: Vector = check_array(weights, input_name="weights", **how)
    given = np.zeros(weight.shape) if losses is None else losses
    loss: Vector = check_array(given, input_name="losses", **how)
    lightest = float(weight.min())
    for name, number in (("complexity", complexity), ("largest_loss", largest_loss)):
        if not isinstance(number, Real):
            msg = f"{name} must be a number. Got {number!r}."
            raise InvalidInputError(msg)
    outside = loss[(loss < 0.0) | (loss > largest_loss)]
    for right, rule, value in (
        (weight.ndim == 1, "weights must be one-dimensional", weight.shape),
        (lightest >= 0.0, "weights must not be negative", lightest),
        (weight.any(), "weights must be above 0 for some sample", float(weight.sum())),
        (loss.shape == weight.shape, "losses must be as many as weights", loss.shape),
        (complexity >= 0.0, "complexity must not be negative", complexity),
        (largest_loss > 0.0, "largest_loss must be above 0", largest_loss),
        (
            not outside.size,
            "losses must lie in [0, largest_loss]",
            outside[:1].tolist(),
        ),
        (0.0 < delta < 1.0, "delta must lie in (0, 1)", delta),
    ):
        if not right:
            msg = f"{rule}. Got {value!r}."
            raise InvalidInputError(msg)
    n, total = weight.size, float(weight.sum())
    squares = float(weight @ weight)
    risk = np.nan if losses is None else float(weight @ loss / n)
    chance = largest_loss * np.sqrt(2.0 * np.log(1.0 / delta))
    # Twice the paper's complexity, which is twice the usual one, and the deviation.
    unit, most = 4.0 * complexity + chance, weight.max() / np.sqrt(n)
    scale = min(np.sqrt(squares) / n, most)  # equal but for rounding if all weights are
    return RiskBound(
        n_samples=n,
        effective_sample_size=total**2 / squares,
        largest_weight=float(weight.max()),
        empirical_risk=risk,
        theorem_4=float(unit / np.sqrt(n)),
        theorem_5=float(unit * most),
        sharper=float(unit * scale),
        deviation=float(chance * scale),
        says_nothing=bool(unit * scale >= largest_loss),
    )
