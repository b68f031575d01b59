"""Test whether labels fell at random among the positives."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit
from scipy.stats import mannwhitneyu
from sklearn.model_selection import KFold
from sklearn.utils import Bunch

from probgap._core.checks import groups_of, require_groups
from probgap._core.errors import refuse
from probgap._core.estimators import as_matrix, check_rows, sample_rows, take_rows
from probgap._core.kernels import KernelFeatures, scale_gamma
from probgap._core.newton import Logistic, fit_penalised
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, one_thread
from probgap._core.types import Array, Mask, Single, Vector

_SIGNIFICANT = 0.05
_N_LANDMARKS = 100
_PENALTY, _PENALTY_OF_INTERCEPT = 0.1, 1e-6
_N_STEPS = 10
_N_FOLDS = 5
_FEWEST_TO_TEST = 10
# With a greater share of labelled rows among clear negatives, classes overlap.
_MOST_OVERLAP = 0.1
# The clearest labelled positives.
_CEILING_QUANTILE = 0.8
# Chances between these shares of the ceiling lie in the edge.
_EDGE = (0.15, 0.6)
# Labellings drawn with a bias, to see whether the test would notice; and how often it
# must, for its silence to mean anything.
_N_BIASED = 20
_ENOUGH_POWER = 0.8


def scar_test(
    X: Any,
    labelled: ArrayLike,
    *,
    n_resamples: int = 199,
    max_rows: int = 2000,
    groups: ArrayLike | None = None,
    random_state: RandomStateLike = None,
) -> Bunch:
    """Test whether labels fell at random among the positives ("SCAR").

    Rows are taken as positive if they are labelled, or if their chance of being
    labelled, by kernel logistic regression, is more than half of that of the clearest
    positives. If labels fell at random among them, nothing predicts which of them are
    labelled: the statistic is how well held-out chances do so, compared with labels
    drawn at random from these positives [1]_.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples, on one scale, as a classifier would see them.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    n_resamples : int, default=199
        How often to draw labels at random.
    max_rows : int, default=2000
        Larger data are sampled down to so many rows, stratified by label.
    groups : array-like of shape (n_samples,), default=None
        Which rows belong together: one row of each group is drawn, as labels of the
        others are no evidence of their own.
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds, draws and kernel features.

    Returns
    -------
    Bunch
        ``verdict`` is "biased" at 5%; "random" where a bias would have been noticed and
        nothing was, not even a wide edge; "unclear" otherwise, and where classes overlap.
        ``statistic`` is the ROC AUC of held-out labels among ``n_rows`` rows that seem
        positive, 1/2 where nothing tells a labelled one from the others; ``p_value`` is how
        often ``n_resamples`` draws of labels at random give as much or more. ``overlap`` is
        the share of labelled rows that lie among clear negatives, ``power`` how often the
        test notices a chance of being labelled that falls to a third from the clearest
        positive to the last, and ``edge_p_value`` how often labels drawn at random give as
        wide an edge, where that chance is neither high nor low: small where labels thin out,
        or classes overlap.

    Notes
    -----
    The test assumes separable classes: random labels from classes that overlap, and
    labels that depend on the gap from classes that do not, may give the same data. The
    verdict is "unclear" if classes seem to overlap, or if a threefold bias would often
    go unnoticed. "random" is no proof: the test misses a bias unrelated to being
    positive (one clinic, one year), one that leaves out positives in a narrow edge
    only, and any if at most 40% of the clearest positives are labelled.

    References
    ----------
    .. [1] Teisseyre, Furmanczyk, Mielniczuk, "Verifying the Selected Completely at
       Random Assumption in Positive-Unlabeled Learning", ECAI 2024.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square, platt_gap
    >>> from probgap.diagnostics import scar_test
    >>> X, y, _ = make_square(600, random_state=0)
    >>> gap = platt_gap(X, y, random_state=0)
    >>> s = hide_labels(X, y, gap, ("linear", 0.8), random_state=1)
    >>> scar_test(X, s == 1, n_resamples=99, random_state=0).verdict
    'biased'
    """
    mask = check_rows(X, labelled)
    if n_resamples < 1:
        refuse(f"n_resamples must be at least 1. Got {n_resamples!r}.")
    rng = as_generator(random_state)
    rows = np.arange(mask.size)
    if (group := groups_of(groups, rows, mask.size)) is not None:
        order = rng.permutation(mask.size)
        rows = np.sort(order[np.unique(group[order], return_index=True)[1]])
    rows = rows[sample_rows(mask[rows], max_rows, rng)]
    known = mask[rows]
    require_groups(known, _FEWEST_TO_TEST, "test how labels fell")
    samples = as_matrix(take_rows(X, rows))
    with one_thread():
        gamma = scale_gamma(samples)
        kernel = KernelFeatures.fit(samples, _N_LANDMARKS, gamma, draw_seed(rng))
        ones = np.ones((known.size, 1), dtype=np.float32)
        features = np.hstack([kernel.transform(samples), ones])
        seed = draw_seed(rng)
        chance, (ceiling, *_) = _describe_test(features, known[:, None], seed)
        positives = np.flatnonzero(known | (chance[:, 0] > 0.5 * ceiling))
        if positives.size - int(known.sum()) < 2:
            refuse(
                "No unlabelled row looks positive: how labels fell cannot be tested."
            )
        # In the biased draws the chance falls evenly, from the clearest positive to the
        # last, to a third.
        rank = np.argsort(np.argsort(chance[positives, 0], kind="stable"))
        bias = (positives.size + 2.0 * rank) / np.sum(positives.size + 2.0 * rank)
        labels = np.zeros((known.size, 1 + n_resamples + _N_BIASED), dtype=bool)
        labels[:, 0] = known
        for k in range(1, labels.shape[1]):
            weight = None if k <= n_resamples else bias
            drawn = rng.choice(positives, int(known.sum()), replace=False, p=weight)
            labels[drawn, k] = True
        _, (_, overlap, statistic, edge) = _describe_test(features, labels, seed)
    at_random, with_bias = np.split(statistic[1:], [n_resamples])
    limit = np.quantile(at_random, 1.0 - _SIGNIFICANT)

    def p_value(found: Vector) -> float:
        return float(np.mean(found[: 1 + n_resamples] >= found[0]))

    found = {
        "p_value": p_value(statistic),
        "overlap": float(overlap[0]),
        "power": float(np.mean(with_bias > limit)),
        "edge_p_value": p_value(edge),
    }
    return Bunch(
        statistic=float(statistic[0]),
        n_resamples=n_resamples,
        n_rows=int(known.size),
        verdict=judge_randomness(**found),
        **found,
    )


def judge_randomness(
    p_value: float, overlap: float, power: float, edge_p_value: float
) -> str:
    """Return what the test allows to conclude."""
    if overlap > _MOST_OVERLAP:
        return "unclear"
    if p_value <= _SIGNIFICANT:
        return "biased"
    sharp = edge_p_value > _SIGNIFICANT
    return "random" if sharp and power >= _ENOUGH_POWER else "unclear"


def _describe_test(features: Single, labels: Mask, seed: int) -> tuple[Array, Array]:
    """Estimate who gets labelled, for each column of labels, on the same folds.

    Returns chances by the models of all rows, and for each column the ceiling (the
    chance of the clearest positives), overlap, statistic and width of the edge.
    """
    target = labels.astype(np.float32)
    chance = expit(features @ _fit_all(features, target))
    held_out = np.empty_like(chance)
    for train, test in KFold(_N_FOLDS, shuffle=True, random_state=seed).split(features):
        coefs = _fit_all(features[train], target[train])
        held_out[test] = expit(features[test] @ coefs)
    columns = zip(chance.T, held_out.T, labels.T, strict=True)
    return chance, np.array([_describe_one(*column) for column in columns]).T


def _fit_all(features: Single, target: Single) -> Single:
    """Fit a logistic regression to each column of a target, all at once.

    They start from the regression on the mean of the columns and share its curvature,
    made larger so that no step goes too far. The last feature is the intercept.
    """
    mean = target.mean(axis=1)
    shared = fit_penalised(features[:, :-1], mean, Logistic(), _PENALTY)
    coef = np.append(shared.coef[:, 0], shared.intercept[0]).astype(np.float32)
    coefs: Single = np.repeat(coef[:, None], target.shape[1], axis=1)
    penalty = np.full((coef.size, 1), _PENALTY, dtype=np.float32)
    penalty[-1] = _PENALTY_OF_INTERCEPT
    chance = expit(features @ coef)
    curved = 0.5 * np.sqrt(chance * (1.0 - chance))[:, None] * features
    factor = cho_factor(features.T @ curved + np.diag(penalty[:, 0]))
    for _ in range(_N_STEPS):
        slopes = features.T @ (expit(features @ coefs) - target)
        coefs -= cho_solve(factor, slopes + penalty * coefs)
    return coefs


def _describe_one(chance: Vector, held_out: Vector, labelled: Mask) -> list[float]:
    ceiling = float(np.quantile(held_out[labelled], _CEILING_QUANTILE))
    overlap = np.mean(held_out[labelled] < ceiling / 3.0)
    likely = chance > ceiling / 3.0
    hits, others = held_out[likely & labelled], held_out[likely & ~labelled]
    statistic = 0.5  # the AUC of held-out chances among rows that seem positive
    if hits.size and others.size:
        pairs = mannwhitneyu(hits, others, method="asymptotic").statistic
        statistic = pairs / (hits.size * others.size)
    low, high = (share * ceiling for share in _EDGE)
    between = np.count_nonzero((chance > low) & (chance < high))
    edge = between / np.maximum(1, np.count_nonzero(chance >= high))
    return [float(value) for value in (ceiling, overlap, statistic, edge)]
