"""Folds of samples of which some are labelled."""

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from probgap._core.checks import ObservedLabels, require_labelled_and_unlabelled
from probgap._core.errors import refuse
from probgap._core.runtime import draw_seed
from probgap._core.types import Mask, Rows

Fold = tuple[Rows, Rows]

DEFAULT_FOLDS = 5
# Platt scaling needs two labelled and two unlabelled samples in each training part, which
# takes three of each in all.
_FEWEST_FOR_OUT_OF_FOLD = 3


def make_splitter(cv: Any, labels: ObservedLabels, rng: np.random.Generator) -> Any:
    """Return a splitter that keeps the share of labelled positives in every fold.

    ``None`` means five folds, or as many as the smaller group, labelled or unlabelled, has
    samples. An integer above that raises an error.
    """
    if cv is None:
        cv = min(DEFAULT_FOLDS, smaller_group(labels.labelled))
    if not isinstance(cv, int | np.integer):
        return check_cv(cv, labels.labelled, classifier=True)
    require_labelled_and_unlabelled(labels, n_folds=int(cv))
    return StratifiedKFold(int(cv), shuffle=True, random_state=draw_seed(rng))


def fold_of_rows(splitter: Any, samples: Any, labelled: Mask) -> Rows:
    """Return the fold that holds out each row; each must be held out exactly once."""
    fold, times = np.zeros((2, labelled.size), dtype=np.intp)
    for k, (_, test) in enumerate(splitter.split(samples, labelled)):
        fold[test] = k
        times[test] += 1
    if not (times == 1).all():
        refuse(
            "cv must hold out every sample exactly once. Got "
            f"{np.count_nonzero(times == 0)} of {times.size} samples never held out and "
            f"{np.count_nonzero(times > 1)} more than once."
        )
    return fold


def smaller_group(labelled: Mask) -> int:
    """Count the labelled or the unlabelled samples, whichever are fewer."""
    n_labelled = int(labelled.sum())
    return min(n_labelled, labelled.size - n_labelled)


def require_groups(labelled: Mask, fewest: int, purpose: str) -> None:
    """Refuse labels of which too few, or all but too few, mark a row."""
    if smaller_group(labelled) < fewest:
        refuse(
            f"labelled must mark at least {fewest} rows and leave as many, to {purpose}. "
            f"Got {int(labelled.sum()):,} of {labelled.size:,}."
        )


def can_hold_out(smallest: int) -> bool:
    """Return whether the smaller group is large enough for out-of-fold gaps."""
    return smallest >= _FEWEST_FOR_OUT_OF_FOLD


def observed_accuracy(labelled: Mask, predicted: Mask) -> float:
    """Return the share of samples whose prediction agrees with the observed label."""
    return float(np.mean(labelled == predicted))
