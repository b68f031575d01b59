"""The labelled positives that are most like a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors

from probgap._core.errors import InvalidInputError
from probgap._core.pipelines import as_matrix, check_rows, samples_of, take_rows


@dataclass(frozen=True, slots=True)
class NearestLabelled:
    """Labelled positives, the nearest first.

    Attributes
    ----------
    index : ndarray of shape (n,)
        Which rows they are.
    distance : ndarray of shape (n,)
        How far they are, in the space that the classifier sees.
    """

    index: NDArray[np.intp]
    distance: NDArray[np.float64]


def nearest_labelled(
    model: Any, X: Any, labelled: ArrayLike, row: Any, n: int = 5
) -> NearestLabelled:
    """Find the labelled positives that are nearest to a row.

    Distances are Euclidean ones after what comes before the classifier in a pipeline:
    what the classifier takes for alike. If the row itself is a labelled one of X, it is
    found at distance 0.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        Rows, as the model takes them.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    row : {array-like, sparse matrix, frame} of shape (1, n_features)
        The row, as the model takes it.
    n : int, default=5
        How many to find; fewer where fewer are labelled.

    Returns
    -------
    NearestLabelled
        Indices into X, and distances.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap import PGPUClassifier
    >>> from probgap.inspection import nearest_labelled
    >>> X = np.arange(60.0).reshape(-1, 1)
    >>> s = np.arange(60) >= 40
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> nearest_labelled(model, X, s, [[39.0]], n=2).index
    array([40, 41])
    """
    mask = check_rows(X, labelled)
    if n < 1:
        msg = f"n must be at least 1. Got {n!r}."
        raise InvalidInputError(msg)
    rows = np.flatnonzero(mask)
    known = as_matrix(samples_of(model, take_rows(X, rows)))
    asked = as_matrix(samples_of(model, row))
    if asked.shape[0] != 1:
        msg = f"Expected a single row, got {asked.shape[0]}."
        raise InvalidInputError(msg)
    search = NearestNeighbors(n_neighbors=min(n, rows.size)).fit(known)
    distance, found = search.kneighbors(asked)
    return NearestLabelled(rows[found[0]], distance[0])
