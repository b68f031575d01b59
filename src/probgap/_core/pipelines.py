"""A fitted classifier, alone or at the end of a pipeline: its parts, and copies of it."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import logit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from probgap._core.checks import check_labelled
from probgap._core.runtime import one_thread
from probgap._core.types import Mask, Matrix, Vector

Rows = NDArray[np.intp]

# Beyond these log-odds a probability is as good as 0 or 1.
_FARTHEST = 30.0


def classifier_of(model: Any) -> Any:
    """Return the classifier, which is the model or its last step."""
    classifier = model[-1] if isinstance(model, Pipeline) else model
    check_is_fitted(classifier)
    return classifier


def samples_of(model: Any, X: Any) -> Matrix:
    """Return rows as the classifier sees them, after what comes before it."""
    if isinstance(model, Pipeline) and len(model) > 1:
        return model[:-1].transform(X)
    return X if hasattr(X, "shape") else np.asarray(X)


def as_matrix(samples: Any) -> Matrix:
    """Return samples without names, for distances between them."""
    return samples.tocsr() if issparse(samples) else np.asarray(samples, dtype=float)


def take_rows(X: Any, rows: Rows) -> Any:
    """Take rows of an array, a sparse matrix or a frame."""
    return _safe_indexing(X, rows)


def check_rows(X: Any, labelled: ArrayLike) -> Mask:
    """Check that every row is labelled or not, and that there are some of both."""
    return check_labelled(labelled, _num_samples(X), both=True)


def refit(classifier: Any, samples: Matrix, labelled: Mask, seed: int) -> Any:
    """Fit a copy on other rows with labels 0 and 1, quietly and on one thread."""
    copy = clone(classifier)
    known = copy.get_params(deep=False)
    ours = {"pos_label": None, "random_state": seed, "n_jobs": None, "verbose": 0}
    copy.set_params(**{name: value for name, value in ours.items() if name in known})
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return copy.fit(samples, labelled.astype(np.int8))


def chance_positive(classifier: Any, samples: Matrix) -> Vector:
    """Return P(Y=1 | x) of samples as the classifier sees them."""
    proba = classifier.predict_proba(samples)
    column: Vector = proba[:, classifier.positive_index_]
    return column


def log_odds(probability: Vector) -> Vector:
    """Return log(p / (1 - p)), cut where p is as good as 0 or 1."""
    with np.errstate(divide="ignore"):
        odds: Vector = np.clip(logit(probability), -_FARTHEST, _FARTHEST)
    return odds


def sample_rows(labelled: Mask, most: int, rng: np.random.Generator) -> Rows:
    """Draw at most so many rows, and of both kinds as they are mixed; two at least."""
    if labelled.size <= most:
        return np.arange(labelled.size)
    n_labelled = round(most * float(labelled.mean()))
    n_labelled = min(max(n_labelled, 2), int(labelled.sum()))
    drawn = [
        rng.choice(np.flatnonzero(labelled), n_labelled, replace=False),
        rng.choice(np.flatnonzero(~labelled), most - n_labelled, replace=False),
    ]
    return np.sort(np.concatenate(drawn))


def input_columns(model: Any, X: Any) -> list[Any]:
    """List the columns of X that the model looks at: names of a frame, else numbers."""
    names = list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))
    first = model[0] if isinstance(model, Pipeline) else model
    if not isinstance(first, ColumnTransformer) or not hasattr(X, "columns"):
        return names
    used: set[Any] = set()
    for _, transformer, columns in first.transformers_:
        if not (isinstance(transformer, str) and transformer == "drop"):
            picked = columns if isinstance(columns, list | tuple) else [columns]
            used.update(
                names[c] if isinstance(c, int | np.integer) else c for c in picked
            )
    return [name for name in names if name in used]
