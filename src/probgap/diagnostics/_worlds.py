"""Compare methods on labels simulated from a table's own reading, with known truth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from sklearn.base import clone

from probgap._core.errors import InvalidInputError
from probgap._core.estimators import check_rows, sample_rows, take_rows
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Mask, Vector
from probgap.diagnostics._compare import METHODS, SLOW, Progress, compare_methods
from probgap.diagnostics._held_out import split
from probgap.gap import MixedGapEstimator
from probgap.reading import Reading, read

# Most rows of a world: every method is fitted several times in each.
_MOST_ROWS = 1500
_FEWEST_LABELS = 8
_FEWEST_TO_HOLD_OUT = 4  # labelled rows, and others, for two folds
_SCORES = ("accuracy", "balanced_accuracy", "roc_auc", "hidden_average_precision")


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """True classes compatible with a table's labels, and how methods do on them.

    Attributes
    ----------
    class_prior : float
        Share of the rows that are positive in this world.
    label_rate : float
        Share of its positives that were labelled when labels were drawn again.
    methods : list of dict
        What :func:`compare_methods` returns, given the true classes.
    """

    class_prior: float
    label_rate: float
    methods: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class WorldsComparison:
    """How methods do in worlds that are compatible with a table's labels.

    Attributes
    ----------
    best : str or None
        The method with the highest accuracy, averaged over the worlds; None if all failed.
    methods : list of dict
        For each method the mean over the worlds of ``accuracy``, ``balanced_accuracy``,
        ``roc_auc`` and ``hidden_average_precision``, the number of worlds in which it is
        the most accurate (``n_best``), and by how much its accuracy falls short of the
        best in its worst world (``shortfall``). The means and ``shortfall`` are None, and
        ``error`` is the message, where a method failed. Most accurate first.
    worlds : tuple of World
        The worlds, from the fewest hidden positives to the most; all equally likely.
    """

    best: str | None
    methods: list[dict[str, Any]]
    worlds: tuple[World, ...]


def compare_worlds(
    X: Any,
    labelled: ArrayLike,
    *,
    n_worlds: int = 4,
    class_prior: float | tuple[float, float] | None = None,
    preprocessor: Any = None,
    methods: Iterable[str] | None = None,
    n_splits: int = 2,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> WorldsComparison:
    """Compare methods without negatives, in simulated worlds that fit the labels.

    :func:`probgap.reading.read` finds curves P(Y=1 | score, unlabelled) that are compatible
    with the labels, and how likely each is. A world takes one of them: true classes of
    unlabelled rows are drawn with these probabilities, and positives are labelled anew at
    the rate that follows, so that labels look as they do in the table. The true classes of
    a world are known, and methods can be scored by them.

    It assumes what the reading assumes: the probability of a label depends on how clear a
    case is. True classes are drawn from scores of the default classifier's learners, which
    favours similar methods. At most 1500 rows are used.

    Parameters
    ----------
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        Rows.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    n_worlds : int, default=4
        Number of worlds, at evenly spaced quantiles of the number of hidden positives.
    class_prior : float or tuple of float, default=None
        The share of positives, or a range that it lies in, if known.
    preprocessor : transformer, default=None
        Transforms X before each method; fitted on each fold. ``None`` takes X as it is.
    methods : iterable of str, default=None
        Which methods, as in :func:`compare_methods`. ``None`` takes all but three slow ones.
    n_splits : int, default=2
        Number of folds in each world.
    random_state : int, Generator, RandomState or None, default=None
        Seeds worlds, folds and methods.
    n_jobs : int, default=None
        Number of fits at once.
    progress : callable, default=None
        Called with how many fits are done, how many there are, and what was fitted.

    Returns
    -------
    WorldsComparison
        The best method on average, means over the worlds, and the worlds.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.diagnostics import compare_worlds
    >>> X, y, posterior = make_square(300, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.9), random_state=1)
    >>> found = compare_worlds(
    ...     X, s == 1, methods=["naive SVM", "probgap"], n_worlds=2, random_state=0
    ... )
    >>> found.best
    'probgap'
    """
    mask = check_rows(X, labelled)
    if not isinstance(n_worlds, Integral) or n_worlds < 1:
        msg = f"n_worlds must be an integer of at least 1. Got {n_worlds!r}."
        raise InvalidInputError(msg)
    rng = as_generator(random_state)
    split(mask, n_splits, 0)  # raises if too few are labelled or left
    names = [n for n in METHODS if n not in SLOW] if methods is None else list(methods)
    rows = sample_rows(mask, _MOST_ROWS, rng)
    X, mask = take_rows(X, rows), mask[rows]
    samples = X if preprocessor is None else clone(preprocessor).fit_transform(X)
    gap = MixedGapEstimator(random_state=draw_seed(rng), n_jobs=n_jobs)
    scores = logit(0.5 * (1.0 + gap.fit(samples, mask).observed_gap_))
    reading = read(scores, mask, class_prior=class_prior)
    worlds: list[World] = []

    def tell(done: int, total: int, what: str) -> None:
        if progress is not None:
            progress(len(worlds) * total + done, n_worlds * total, what)

    for level in (np.arange(n_worlds) + 0.5) / n_worlds:
        truth, again = draw_world(reading, scores, mask, level, rng)
        compared = compare_methods(
            X,
            again,
            truth=truth,
            preprocessor=preprocessor,
            methods=names,
            n_splits=n_splits,
            random_state=draw_seed(rng),
            n_jobs=n_jobs,
            progress=tell,
        )
        label_rate = float(again.sum() / truth.sum())
        worlds.append(World(float(truth.mean()), label_rate, compared))
    worlds.sort(key=lambda world: world.class_prior)
    summary = _summarise(names, worlds)
    best = None if summary[0]["error"] else summary[0]["method"]
    return WorldsComparison(best, summary, tuple(worlds))


def draw_world(
    reading: Reading, scores: Vector, labelled: Mask, level: float, rng: Generator
) -> tuple[Mask, Mask]:
    """Draw true classes that are compatible with the labels, and new labels for them.

    ``level`` chooses the curve, as a quantile of the number of hidden positives. Positives
    are labelled with probability P(s=1 | x) / P(Y=1 | x); if too few are, so are the
    clearest, and if too few are left, the least clear are not.
    """
    odds = reading.log_odds(scores)
    curves = reading.curves.unfolded(reading.scores)
    each = curves.each(odds)
    order = np.argsort(each[:, ~labelled].sum(axis=1))
    below = np.cumsum(curves.weights[order])
    hidden = each[order[min(int(np.searchsorted(below, level)), order.size - 1)]]
    truth = labelled | (rng.random(odds.size) < hidden)
    chance = expit(odds)
    rate = chance / (chance + (1.0 - chance) * hidden)
    again = truth & (rng.random(odds.size) < rate)
    n_true = int(truth.sum())
    fewest = max(min(_FEWEST_LABELS, n_true - 1), min(_FEWEST_TO_HOLD_OUT, n_true))
    missing = fewest - int(again.sum())
    surplus = _FEWEST_TO_HOLD_OUT - int(np.count_nonzero(~again))
    if missing > 0:
        clearest = np.argsort(np.where(truth & ~again, -odds, np.inf), kind="stable")
        again[clearest[:missing]] = True
    elif surplus > 0:
        faintest = np.argsort(np.where(again, odds, np.inf), kind="stable")
        again[faintest[:surplus]] = False
    return truth, again


def _summarise(names: list[str], worlds: list[World]) -> list[dict[str, Any]]:
    """Return the mean scores of each method, the most accurate first."""
    accuracy = np.array(
        [[-np.inf if m["error"] else m["accuracy"] for m in w.methods] for w in worlds]
    )
    best = accuracy.max(axis=1, keepdims=True)
    rows = []
    for at, name in enumerate(names):
        row: dict[str, Any] = {"method": name, **dict.fromkeys(_SCORES)}
        row |= {"n_best": 0, "shortfall": None, "error": None}
        here = [world.methods[at] for world in worlds]
        if failed := [each["error"] for each in here if each["error"]]:
            row["error"] = failed[0]
        else:
            for score in _SCORES:
                found = [each[score] for each in here if each[score] is not None]
                row[score] = float(np.mean(found)) if found else None
            row["n_best"] = int((accuracy[:, at] == best[:, 0]).sum())
            row["shortfall"] = float((best[:, 0] - accuracy[:, at]).max())
        rows.append(row)
    return sorted(rows, key=lambda r: -(r["accuracy"] or 0.0))
