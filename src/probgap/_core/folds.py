"""How many folds the labelled positives allow, and which rows go where."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from probgap._core.errors import InvalidInputError
from probgap._core.labels import ObservedLabels, require_labelled_and_unlabelled
from probgap._core.rng import draw_seed

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]

DEFAULT_FOLDS = 5


def make_splitter(cv: Any, labels: ObservedLabels, rng: np.random.Generator) -> Any:
    """Give a splitter that keeps the share of labelled positives in every fold.

    ``None`` means five folds, or as many as there are labelled (or unlabelled)
    samples if those are fewer. An integer is taken at its word, and refused where
    there are fewer such samples than folds. Anything else is used as it is.
    """
    if cv is None:
        cv = min(DEFAULT_FOLDS, smaller_group(labels.labelled))
    if isinstance(cv, int | np.integer):
        require_labelled_and_unlabelled(labels, n_folds=int(cv))
        return StratifiedKFold(int(cv), shuffle=True, random_state=draw_seed(rng))
    return check_cv(cv, labels.labelled, classifier=True)


def require_partition(folds: list[Fold], n_samples: int) -> None:
    """Check that every sample is held out exactly once."""
    times = np.zeros(n_samples, dtype=np.intp)
    for _, test in folds:
        times[test] += 1
    if not (times == 1).all():
        msg = (
            "cv must hold out every sample exactly once. Got "
            f"{np.count_nonzero(times == 0)} of {n_samples} samples never held out and "
            f"{np.count_nonzero(times > 1)} more than once."
        )
        raise InvalidInputError(msg)


def smaller_group(labelled: NDArray[np.bool_]) -> int:
    """Count the labelled or the unlabelled samples, whichever are fewer."""
    n_labelled = int(labelled.sum())
    return min(n_labelled, labelled.size - n_labelled)
