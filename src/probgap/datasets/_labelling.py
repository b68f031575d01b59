"""Hide labels of positives as a function of the true gap: the paper's labellings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probgap._core.checks import check_gap, read_labels
from probgap._core.errors import InvalidInputError
from probgap._core.runtime import RandomStateLike, as_generator
from probgap._core.types import Matrix
from probgap.gap import ObservedGapEstimator

GapFunction = Callable[[NDArray[np.float64]], ArrayLike]
RateLike = GapFunction | Sequence[object]


@dataclass(frozen=True, slots=True)
class InverseRate:
    """Mislabelled rate alpha / ((alpha + gap) (1 + beta)), for gaps above 0.

    It falls from 1 / (1 + beta) at gap 0. A positive whose gap is below 0 has the
    rate of gap 0, where the formula would rise without bound.
    """

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        _require_within("alpha", self.alpha, 1e-12, np.inf)
        _require_within("beta", self.beta, 0.0, np.inf)

    def __call__(self, gap: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the chance that a positive with this gap is left unlabelled."""
        falls = self.alpha / (self.alpha + np.maximum(gap, 0.0))
        return falls / (1.0 + self.beta)


@dataclass(frozen=True, slots=True)
class LinearRate:
    """Mislabelled rate alpha (1 - gap), cut at 1."""

    alpha: float

    def __post_init__(self) -> None:
        """Check the parameter."""
        _require_within("alpha", self.alpha, 0.0, 1.0)

    def __call__(self, gap: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the chance that a positive with this gap is left unlabelled."""
        return np.minimum(self.alpha * (1.0 - gap), 1.0)


@dataclass(frozen=True, slots=True)
class ConstantRate:
    """The same mislabelled rate everywhere: labels are missing at random."""

    alpha: float

    def __post_init__(self) -> None:
        """Check the parameter."""
        _require_within("alpha", self.alpha, 0.0, 1.0)

    def __call__(self, gap: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the chance that a positive with this gap is left unlabelled."""
        return np.full(gap.shape, self.alpha)


_RATES: dict[str, Callable[..., GapFunction]]
_RATES = {"inverse": InverseRate, "linear": LinearRate, "constant": ConstantRate}


def paper_rates() -> list[InverseRate | LinearRate | ConstantRate]:
    """List the 17 labellings of the paper's synthetic experiments.

    Returns
    -------
    list of InverseRate, LinearRate and ConstantRate
        Nine inverse, five linear and three constant rates.

    Examples
    --------
    >>> from probgap.datasets import paper_rates
    >>> len(paper_rates()), paper_rates()[0]
    (17, InverseRate(alpha=0.1, beta=0.5))
    """
    return [
        *(InverseRate(a, b) for a in (0.1, 0.2, 0.3) for b in (0.5, 1.0, 1.5)),
        *(LinearRate(a) for a in (0.2, 0.4, 0.6, 0.8, 1.0)),
        *(ConstantRate(a) for a in (0.1, 0.2, 0.3)),
    ]


def platt_gap(
    X: Matrix, y_true: ArrayLike, *, random_state: RandomStateLike = None
) -> NDArray[np.float64]:
    """Estimate the true gap from true labels, by a support vector machine.

    It is calibrated by Platt scaling. This is how the paper decides which positives are
    easy where the posterior is not known. Scale the features first: the kernel goes by
    distances.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples.
    y_true : array-like of shape (n_samples,)
        True labels; the greater value is positive.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the folds of the calibration.

    Returns
    -------
    ndarray of shape (n_samples,)
        P(Y=1 | x) - P(Y=0 | x), each in [-1, 1].

    Examples
    --------
    >>> from probgap.datasets import make_triangles, platt_gap
    >>> X, y, _ = make_triangles(200, random_state=0)
    >>> bool(platt_gap(X, y, random_state=0)[y == 1].mean() > 0.5)
    True
    """
    estimator = ObservedGapEstimator(method="in_sample", random_state=random_state)
    return estimator.fit(X, y_true).observed_gap_


def hide_labels(
    X: Matrix,
    y_true: ArrayLike,
    gap: ArrayLike | None = None,
    rate: RateLike = ("inverse", 0.1, 0.5),
    random_state: RandomStateLike = None,
) -> NDArray[np.generic]:
    """Leave positives unlabelled with a probability that depends on their gap.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples. Used only where ``gap`` is None.
    y_true : array-like of shape (n_samples,)
        True labels, two values; the greater is positive.
    gap : array-like of shape (n_samples,), default=None
        True gap of each sample, in [-1, 1]. ``None`` estimates it by
        :func:`platt_gap`.
    rate : tuple or callable, default=("inverse", 0.1, 0.5)
        The mislabelled rate: ``("inverse", alpha, beta)``, ``("linear", alpha)``,
        ``("constant", alpha)``, or any function from an array of gaps to an array of
        rates in [0, 1]. The method of the paper assumes one that falls with the gap.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the draw. Pass on the Generator that drew the data, or another seed:
        the seed that drew the data would tie the labels to the features.

    Returns
    -------
    ndarray of shape (n_samples,)
        Observed labels: ``y_true`` with some positives turned into the other value.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y, posterior = make_square(1000, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("constant", 0.3), random_state=1)
    >>> bool((s <= y).all()), bool(0.6 < s.sum() / y.sum() < 0.8)
    (True, True)
    """
    labels = read_labels(y_true)
    rng = as_generator(random_state)
    true_gap = check_gap(platt_gap(X, y_true, random_state=rng) if gap is None else gap)
    n_samples = labels.labelled.size
    if true_gap.size != n_samples:
        rule = f"one value for each of the {n_samples} samples"
        msg = f"gap must have {rule}. Got {true_gap.size}."
        raise InvalidInputError(msg)
    rates = np.asarray(_make_rate(rate)(true_gap), dtype=np.float64)
    rates = np.broadcast_to(rates, true_gap.shape)
    if not ((rates >= 0.0) & (rates <= 1.0)).all():
        got = f"{rates.min():.6g} to {rates.max():.6g}"
        msg = f"rate must give values in [0, 1]. Got {got}."
        raise InvalidInputError(msg)
    observed = labels.labelled & (rng.random(n_samples) >= rates)
    at = np.where(observed, labels.positive, 1 - labels.positive)
    return np.asarray(labels.classes[at])


def _make_rate(rate: RateLike) -> GapFunction:
    if callable(rate):
        return rate
    name, *parameters = rate if isinstance(rate, Sequence) else (rate,)
    if not isinstance(name, str) or name not in _RATES:
        rule = f"a function, or a tuple that begins with one of {sorted(_RATES)}"
        msg = f"rate must be {rule}. Got {rate!r}."
        raise InvalidInputError(msg)
    try:
        return _RATES[name](*parameters)
    except TypeError:
        expected = ", ".join(_RATES[name].__annotations__)
        msg = f"rate must be ({name!r}, {expected}). Got {rate!r}."
        raise InvalidInputError(msg) from None


def _require_within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        msg = f"{name} must lie between {least:g} and {most:g}. Got {value!r}."
        raise InvalidInputError(msg)
