"""How far the final machine may bend to its labels: C by cross-validation without truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from probgap._core.estimators import fit_on_shares
from probgap._core.folds import Fold, smaller_group
from probgap._core.kernels import Matrix
from probgap._core.svm import RBFMachine

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]

PENALTIES = (1.0, 3.0, 10.0, 30.0)
_FOLDS = 3
# Fewer samples are classified wrongly too seldom to tell one C from another by it.
_FEWEST_SAMPLES = 1000
# As many will do; more would only take their time.
_MOST_SAMPLES = 2000


def choose_penalty(
    samples: Matrix, share: Vector, labelled: Mask, seed: int, *, separability: float
) -> float:
    """Choose C by how often held-out samples are classified as they should be.

    How they should be is not known; ``share``, the chance of each to be positive, stands
    for it. A soft margin forgives labels that are wrong, and these are shares already,
    so that a larger C is often better; but a flexible machine also follows the errors of
    the shares. So 1 is left only for a C that is better by more than one standard error
    of the difference, sample by sample.

    With too few samples to tell, C goes by how well the classes part, from 1 to 10:
    where they do, few labels are wrong.
    """
    if share.size < _FEWEST_SAMPLES:
        return float(10.0**separability)
    if share.size > _MOST_SAMPLES:
        rng = np.random.default_rng(seed)
        some = np.sort(rng.choice(share.size, _MOST_SAMPLES, replace=False))
        samples, share, labelled = samples[some], share[some], labelled[some]
    if smaller_group(labelled) < _FOLDS:
        return PENALTIES[0]
    splitter = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    folds = list(splitter.split(samples, labelled))
    if any(_has_one_class(share[train]) for train, _ in folds):
        return PENALTIES[0]
    first = _chance_of_being_right(samples, share, folds, PENALTIES[0], seed)
    best, best_gain = PENALTIES[0], 0.0
    for penalty in PENALTIES[1:]:
        gains = _chance_of_being_right(samples, share, folds, penalty, seed) - first
        error = float(gains.std()) / np.sqrt(gains.size)
        gain = float(gains.mean()) - error
        if gain > best_gain:
            best, best_gain = penalty, gain
        if gain < -2.0 * error:
            break  # clearly worse than 1: larger ones would be worse still
    return best


def _has_one_class(share: Vector) -> bool:
    return bool(share.max() <= 0.0 or share.min() >= 1.0)


def _chance_of_being_right(
    samples: Matrix, share: Vector, folds: list[Fold], penalty: float, seed: int
) -> Vector:
    right = np.empty(share.size)
    for train, test in folds:
        machine = RBFMachine(C=penalty, random_state=seed)
        fit_on_shares(machine, samples[train], share[train], np.ones(train.size))
        positive = machine.decision_function(samples[test]) > 0.0
        right[test] = np.where(positive, share[test], 1.0 - share[test])
    return right
