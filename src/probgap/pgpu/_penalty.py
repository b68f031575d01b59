"""How far the final machine may bend to its labels: C without truth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.model_selection import StratifiedKFold

from probgap._core.estimators import fit_on_shares, round_shares
from probgap._core.features import KernelFeatures
from probgap._core.folds import smaller_group
from probgap._core.kernels import Matrix, scale_gamma, spread_rows
from probgap._core.svm import RBFMachine
from probgap._core.threads import one_thread

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]

PENALTIES = (1.0, 3.0, 10.0, 30.0)
# Fewer samples are classified wrongly too seldom to tell one C from another by it.
_FEWEST_SAMPLES = 1000
# As many will do; more would only take their time.
_MOST_FOR_MACHINES = 2000
_MOST_FOR_LEAST_SQUARES = 4000
_FOLDS = 3
# Classes that part at least so well leave few support vectors, and a machine is soon
# fitted.
_PARTED = 0.5
_N_LANDMARKS = 300
# The constant is a feature like the others, but so large that its penalty is none.
_CONSTANT = 10.0
# A sample that its own label decides alone has no leave-one-out score.
_MOST_LEVERAGE = 1.0 - 1e-6


def rows_for_penalty(n_samples: int, separability: float) -> NDArray[np.intp]:
    """Give the rows that :func:`choose_penalty` looks at."""
    parted = separability >= _PARTED
    most = _MOST_FOR_MACHINES if parted else _MOST_FOR_LEAST_SQUARES
    return spread_rows(n_samples, most)


def choose_penalty(
    samples: Matrix,
    share: Vector,
    labelled: Mask,
    seed: int,
    *,
    separability: float,
    n_samples: int | None = None,
) -> float:
    """Choose C by how often held-out samples are classified as they should be.

    How they should be is not known; ``share``, the chance of each to be positive, stands
    for it. A soft margin forgives labels that are wrong, and these are shares already,
    so that a larger C is often better; but a flexible machine also follows the errors of
    the shares. So 1 is left only for a C that is better by more than one standard error
    of the difference, sample by sample.

    Where classes part, machines are fitted to tell. Where they overlap that takes long,
    and least squares in kernel features stand in for them.

    With too few samples to tell, C goes by how well the classes part, from 1 to 10:
    where they do, few labels are wrong.

    Of many samples some are looked at (``rows_for_penalty``). If they alone are given,
    ``n_samples`` says how many they stand for.
    """
    n_samples = share.size if n_samples is None else n_samples
    if n_samples < _FEWEST_SAMPLES:
        return float(10.0**separability)
    if separability < _PARTED:
        chances = _by_least_squares(samples, share, seed, n_samples)
    else:
        chances = _by_machines(samples, share, labelled, seed)
    best, best_gain = PENALTIES[0], 0.0
    first = next(chances)
    for penalty, right in zip(PENALTIES[1:], chances, strict=False):
        gains = right - first
        error = float(gains.std()) / np.sqrt(gains.size)
        gain = float(gains.mean()) - error
        if gain > best_gain:
            best, best_gain = penalty, gain
        if gain < -2.0 * error:
            break  # clearly worse than 1: larger ones would be worse still
    return best


def _by_machines(
    samples: Matrix, share: Vector, labelled: Mask, seed: int
) -> Iterator[Vector]:
    """Give, for each C, the chance of being right on samples of a fold held out."""
    rows = spread_rows(share.size, _MOST_FOR_MACHINES)
    samples, share, labelled = samples[rows], share[rows], labelled[rows]
    splitter = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    few = smaller_group(labelled) < _FOLDS
    folds = [] if few else list(splitter.split(samples, labelled))
    if any(_has_one_class(share[train]) for train, _ in folds):
        folds = []
    # With nothing to compare, no C is better than the first.
    for penalty in PENALTIES if folds else PENALTIES[:1]:
        right = np.zeros(share.size)
        for train, test in folds:
            machine = RBFMachine(C=penalty, random_state=seed)
            rounded = round_shares(share[train])
            fit_on_shares(machine, samples[train], rounded, np.ones(train.size))
            positive = machine.decision_function(samples[test]) > 0.0
            right[test] = np.where(positive, share[test], 1.0 - share[test])
        yield right


def _has_one_class(share: Vector) -> bool:
    return bool(share.max() <= 0.0 or share.min() >= 1.0)


def _by_least_squares(
    samples: Matrix, share: Vector, seed: int, n_samples: int
) -> Iterator[Vector]:
    """Give, for each C, the chance of being right on each sample left out by itself.

    Leave-one-out scores of least squares have a closed form: one eigendecomposition
    serves every C and every sample. The features have landmarks of their own: those
    that the shares came from would follow every error of theirs.
    """
    rows = spread_rows(share.size, _MOST_FOR_LEAST_SQUARES)
    samples, share = samples[rows], share[rows]
    side = 2.0 * share - 1.0
    with one_thread():
        gamma = scale_gamma(samples)
        kernel = KernelFeatures.fit(samples, _N_LANDMARKS, gamma, seed)
        constant = np.full((rows.size, 1), _CONSTANT, dtype=np.float32)
        features = np.hstack([kernel.transform(samples), constant])
        value, vector = eigh((features.T @ features).astype(np.float64))
        features = features @ vector.astype(np.float32)
        along = side @ features
        for penalty in PENALTIES:
            # Each row stands for as many as were not looked at.
            shrunk = 1.0 / (np.maximum(value, 0.0) + rows.size / (n_samples * penalty))
            leverage = np.minimum((features**2) @ shrunk, _MOST_LEVERAGE)
            left_out = features @ (shrunk * along) - leverage * side
            yield np.where(left_out > 0.0, share, 1.0 - share)
