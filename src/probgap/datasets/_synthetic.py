"""The paper's two synthetic data sets, with their true posterior."""

from __future__ import annotations

from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError
from probgap._core.runtime import RandomStateLike, as_generator

_POSITIVE_TRIANGLE = ((-1.0, -1.0), (-1.0, 1.0), (1.0, 1.0))
_NEGATIVE_TRIANGLE = ((-1.0, -1.0), (1.0, 1.0), (1.0, -1.0))


class SyntheticData(NamedTuple):
    """Samples, true labels, and the truth behind them.

    Attributes
    ----------
    X : ndarray of shape (n_samples, 2)
        Samples.
    y : ndarray of shape (n_samples,)
        True labels, 1 or 0.
    posterior : ndarray of shape (n_samples,)
        P(Y=1 | x) of each sample. The true gap is ``2 * posterior - 1``.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    posterior: NDArray[np.float64]


def make_triangles(
    n_samples: int = 2000, *, random_state: RandomStateLike = None
) -> SyntheticData:
    """Draw two classes from two triangles that share an edge, without overlap.

    Half of the samples are positive, uniform on the triangle above the diagonal of
    the square [-1, 1]^2; the others are negative, uniform on the one below. The
    posterior is 0 or 1, so that the true gap says nothing about how near a sample is
    to the other class: estimate one with :func:`platt_gap`, as the paper does.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of samples. The odd one is negative.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the draw.

    Returns
    -------
    SyntheticData
        Samples, true labels and posterior, in random order.

    Examples
    --------
    >>> from probgap.datasets import make_triangles
    >>> X, y, posterior = make_triangles(100, random_state=0)
    >>> X.shape, int(y.sum())
    ((100, 2), 50)
    """
    n = _check_n_samples(n_samples)
    rng = as_generator(random_state)
    triangles = ((_POSITIVE_TRIANGLE, n // 2), (_NEGATIVE_TRIANGLE, n - n // 2))
    X = np.concatenate([_uniform_on_triangle(*drawn, rng) for drawn in triangles])
    order = rng.permutation(n)
    y = (order < n // 2).astype(np.int64)
    return SyntheticData(X[order], y, y.astype(np.float64))


def make_square(
    n_samples: int = 2000, *, random_state: RandomStateLike = None
) -> SyntheticData:
    """Draw two classes that overlap along the diagonal of a square.

    Samples are uniform on [-1, 1]^2 and positive with probability
    ``clip(0.5 - 10 * (x1 - x2), 0, 1)``.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of samples.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the draw.

    Returns
    -------
    SyntheticData
        Samples, true labels and posterior.

    Examples
    --------
    >>> from probgap.datasets import make_square
    >>> X, y, posterior = make_square(100, random_state=0)
    >>> bool(((posterior >= 0) & (posterior <= 1)).all())
    True
    """
    n = _check_n_samples(n_samples)
    rng = as_generator(random_state)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    posterior = np.clip(0.5 - 10.0 * (X[:, 0] - X[:, 1]), 0.0, 1.0)
    y = (rng.random(n) < posterior).astype(np.int64)
    return SyntheticData(X, y, posterior)


def _uniform_on_triangle(
    corners: tuple[tuple[float, float], ...], n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    origin, first, second = np.asarray(corners)
    u = rng.random((n, 2))
    outside = u.sum(axis=1) > 1.0  # the other half of the parallelogram: fold it back
    u[outside] = 1.0 - u[outside]
    points: NDArray[np.float64] = origin + u @ (np.stack([first, second]) - origin)
    return points


def _check_n_samples(n_samples: int) -> int:
    if not isinstance(n_samples, Integral) or n_samples < 2:
        msg = f"n_samples must be an integer of at least 2. Got {n_samples!r}."
        raise InvalidInputError(msg)
    return int(n_samples)
