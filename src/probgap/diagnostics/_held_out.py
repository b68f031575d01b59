"""What a model says of rows that it has not seen, against the labels they carry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from probgap._core.errors import InvalidInputError
from probgap._core.folds import smaller_group
from probgap._core.pipelines import (
    called_positive,
    chance_positive,
    check_rows,
    classifier_of,
    refit,
    sample_rows,
    samples_of,
    take_rows,
)
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Mask, Vector

Rows = NDArray[np.intp]
Progress = Callable[[int, int, str], None]

LEVEL = 0.9
MOST_HELD_OUT = 20_000
N_SPLITS = 5


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What copies of a model say of rows that each has not seen.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        Which rows of the table these are.
    labelled : ndarray of shape (n_rows,)
        Which of them are labelled.
    chance : ndarray of shape (n_rows,)
        P(s=1 | x).
    posterior : ndarray of shape (n_rows,)
        P(Y=1 | x).
    positive : ndarray of shape (n_rows,)
        Which of them are predicted to be positive.
    """

    rows: Rows
    labelled: Mask
    chance: Vector
    posterior: Vector
    positive: Mask


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Rows of about the same predicted chance to be labelled.

    Attributes
    ----------
    predicted, observed : float
        Mean predicted chance, and the share that is labelled.
    n : int
        How many rows.
    low, high : float
        Wilson interval of the share, at 90%.
    """

    predicted: float
    observed: float
    n: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class HeldOutCalibration:
    """How well a model predicts the labels of rows it has not seen.

    Attributes
    ----------
    bins : tuple of ReliabilityBin
        Predicted chance to be labelled against the share that is.
    error : float
        Mean difference between the two, in size, weighted by rows.
    recall : float
        Share of held-out labelled positives that are predicted positive.
    recall_interval : tuple of float
        Its Wilson interval, at 90%.
    n_labelled : int
        How many labelled positives were held out.
    roc_auc : float
        Chance that a held-out labelled row is scored above an unlabelled one.
    """

    bins: tuple[ReliabilityBin, ...]
    error: float
    recall: float
    recall_interval: tuple[float, float]
    n_labelled: int
    roc_auc: float


def held_out_calibration(
    model: Any,
    X: Any,
    labelled: ArrayLike,
    *,
    n_bins: int = 10,
    n_splits: int = N_SPLITS,
    max_rows: int = MOST_HELD_OUT,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> HeldOutCalibration:
    """Check predictions of who is labelled on rows that were held out.

    P(s=1 | x) is the one probability that positive and unlabelled data can check: the
    observed label is there to compare with. That it is right says nothing about
    P(Y=1 | x). Copies of the classifier are fitted on folds; what comes before it in a
    pipeline is not fitted again, as it does not see the labels.

    The recall is that of labelled positives. Where easy ones were labelled first, that
    of all positives is lower.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        Rows, as the model takes them.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    n_bins : int, default=10
        How many groups of about equal size to compare in.
    n_splits : int, default=5
        Number of folds; fewer where fewer rows are labelled.
    max_rows : int, default=20000
        Of more rows, so many are drawn, with the share of labelled ones that there is.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the folds and the fits.
    n_jobs : int, default=None
        Number of folds to fit at once.

    Returns
    -------
    HeldOutCalibration
        Bins, calibration error, recall with its interval, ROC AUC.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.diagnostics import held_out_calibration
    >>> X, y, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> found = held_out_calibration(model, X, s == 1, random_state=0)
    >>> bool(found.recall > 0.9), bool(found.error < 0.1)
    (True, True)
    """
    held = hold_out(
        model,
        X,
        labelled,
        n_splits=n_splits,
        max_rows=max_rows,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return calibrate(held, n_bins)


def hold_out(
    model: Any,
    X: Any,
    labelled: ArrayLike,
    *,
    n_splits: int = N_SPLITS,
    max_rows: int = MOST_HELD_OUT,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> HeldOut:
    """Let copies of a model judge the rows of the folds that they were not fitted on."""
    mask = check_rows(X, labelled)
    rng = as_generator(random_state)
    classifier = classifier_of(model)
    rows = sample_rows(mask, max_rows, rng)
    samples, known = samples_of(model, take_rows(X, rows)), mask[rows]
    folds = split(known, n_splits, draw_seed(rng))
    seed = draw_seed(rng)
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_judge)(classifier, samples, known, train, test, seed)
        for train, test in folds
    )
    order = np.argsort(np.concatenate([test for _, test in folds]), kind="stable")
    chance, posterior, positive = (
        np.concatenate(values)[order] for values in zip(*parts, strict=True)
    )
    return HeldOut(rows, known, chance, posterior, positive)


def split(labelled: Mask, n_splits: int, seed: int) -> list[tuple[Rows, Rows]]:
    """Make folds with labelled positives in each, as many as these allow."""
    n_folds = min(n_splits, smaller_group(labelled))
    # Each fit needs two of either kind.
    if (
        n_folds < 2
        or smaller_group(labelled) - -(-smaller_group(labelled) // n_folds) < 2
    ):
        msg = (
            "labelled must mark at least 4 rows and leave as many, to hold some out. "
            f"Got {int(labelled.sum())} of {labelled.size}."
        )
        raise InvalidInputError(msg)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(np.zeros(labelled.size), labelled))


def _judge(
    classifier: Any, samples: Any, labelled: Mask, train: Rows, test: Rows, seed: int
) -> tuple[Vector, Vector, Mask]:
    copy = refit(classifier, take_rows(samples, train), labelled[train], seed)
    unseen = take_rows(samples, test)
    gap = copy.gap_estimator_.transform(unseen)[:, 0]
    return (
        0.5 * (1.0 + gap),
        chance_positive(copy, unseen),
        called_positive(copy, unseen),
    )


def calibrate(held: HeldOut, n_bins: int = 10) -> HeldOutCalibration:
    """Compare predicted chances with labels, in groups of about equal size."""
    order = np.argsort(held.chance, kind="stable")
    groups = [g for g in np.array_split(order, n_bins) if g.size]
    bins = tuple(_compare(held, group) for group in groups)
    n_labelled = int(held.labelled.sum())
    found = int(np.count_nonzero(held.positive & held.labelled))
    return HeldOutCalibration(
        bins=bins,
        error=sum(b.n * abs(b.predicted - b.observed) for b in bins) / order.size,
        recall=found / n_labelled,
        recall_interval=wilson(found, n_labelled),
        n_labelled=n_labelled,
        roc_auc=float(roc_auc_score(held.labelled, held.chance)),
    )


def _compare(held: HeldOut, group: Rows) -> ReliabilityBin:
    n_labelled = int(held.labelled[group].sum())
    low, high = wilson(n_labelled, group.size)
    predicted, observed = float(held.chance[group].mean()), n_labelled / group.size
    return ReliabilityBin(predicted, observed, int(group.size), low, high)


def wilson(successes: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the Wilson interval of a share."""
    z = float(norm.ppf(0.5 + 0.5 * level))
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low, high = max(0.0, float(middle - half)), min(1.0, float(middle + half))
    return min(share, low), max(share, high)
