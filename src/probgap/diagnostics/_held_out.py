"""Predictions for rows held out, against the labels they carry."""

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import binomtest, mannwhitneyu, spearmanr
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import PredefinedSplit, StratifiedKFold
from sklearn.utils import Bunch

from probgap._core.checks import (
    group_folds,
    groups_of,
    require_groups,
    smaller_group,
)
from probgap._core.errors import refuse
from probgap._core.estimators import (
    chance_positive,
    check_rows,
    classifier_of,
    refit,
    sample_rows,
    samples_of,
    take_rows,
)
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Mask, Rows, Vector
from probgap.gap import MixedGapEstimator

LEVEL = 0.9
_OF_GROUP = ["predicted", "observed", "n", "low", "high"]
_OF_BIN = ["gap_low", "gap_high", "gap", "n", "labelled"]
_OF_BIN += ["frequency", "low", "high", "fit"]
_FEWEST_TO_JUDGE = 10
_SIGNIFICANT = 0.05


# Who is labelled, and P(s=1 | x) and P(Y=1 | x) by models not fitted on the rows.
HeldOut = tuple[Mask, Vector, Vector]


def held_out_calibration(
    model: Any,
    X: Any,
    labelled: ArrayLike,
    *,
    n_bins: int = 10,
    n_splits: int = 5,
    max_rows: int = 20_000,
    groups: ArrayLike | None = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> Bunch:
    """Check predictions of who is labelled on rows that were held out.

    P(s=1 | x) is the one probability that positive and unlabelled data can check; a
    correct one does not make P(Y=1 | x) correct. Copies of the classifier are fitted on
    folds, but not the other steps of a pipeline, which do not see the labels. The
    recall of all positives is lower if easy ones were labelled first.

    If labels depend on the gap, 2 P(Y=1 | x) - 1, as the method assumes, they become more
    frequent with it, also among rows with a gap above 0 (a one-sided Mann-Whitney test at
    5%). Where classes overlap they do in any case: a rise does not prove a bias, but its
    absence is evidence against one.

    Parameters
    ----------
    model, X, labelled : object
        As in :func:`probgap.inspection.column_importance`.
    n_bins : int, default=10
        Number of groups of about equal size, and of bins of equal width of the gap; empty
        ones are left out.
    n_splits : int, default=5
        Number of folds; fewer if fewer rows are labelled.
    max_rows : int, default=20000
        Larger data are sampled down to so many rows, stratified by label.
    groups : array-like of shape (n_samples,), default=None
        Which rows belong together: they are held out together.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the folds and the fits.
    n_jobs : int, default=None
        Number of folds to fit at once.

    Returns
    -------
    Bunch
        Of the predictions ``bins`` (for each group of ``n`` rows the ``predicted`` chance of
        being labelled, and the share ``observed``, with its interval from ``low`` to
        ``high``), ``error`` (mean absolute difference of the two, weighted by rows) and
        ``roc_auc`` (chance that a held-out labelled row is scored above an unlabelled one).
        Of ``n_labelled`` held-out labelled positives ``recall``, the share that is predicted
        positive, and ``recall_interval``, its Wilson interval at 90%.

        ``labelling`` says how often rows are labelled, by estimated true gap: ``bins`` (from
        surely negative to surely positive the ends ``gap_low`` and ``gap_high`` and mean
        ``gap``, ``n`` rows and how many are ``labelled``, the ``frequency``, its interval
        from ``low`` to ``high``, and an isotonic ``fit``); whether the frequency ``rises``
        among rows with a gap above 0, and the ``p_value`` of that test (None with fewer than
        ten labelled or unlabelled rows among them); and the ``rank_correlation`` of gap and
        frequency (Spearman's; None with fewer than three bins).

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.diagnostics import held_out_calibration
    >>> X, y, posterior = make_square(200, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> found = held_out_calibration(model, X, s == 1, n_splits=2, random_state=0)
    >>> bool(found.recall > 0.9), bool(found.error < 0.1)
    (True, True)
    >>> found.labelling["bins"][0]["frequency"] < 0.1
    True
    """
    how = n_splits, max_rows, random_state, n_jobs, groups
    held = hold_out(model, X, labelled, *how)
    return calibrate(*held, n_bins=n_bins)


def held_out_by_fit(classifier: Any, labelled: Mask) -> HeldOut | None:
    """Return the held-out predictions of the fit itself; None if it made none."""
    gap, final = classifier.gap_estimator_, classifier.estimator_
    if not isinstance(gap, MixedGapEstimator) or not hasattr(final, "held_out_"):
        return None
    chance, shift = 0.5 * (1.0 + classifier.observed_gap_), gap.log_odds_shift_
    if classifier.labelling_ is not None:
        chance, weight = chance * classifier.labelling_.rate, classifier.row_weight_
        if weight is not None:
            shift = np.log(weight[labelled].mean() / weight[~labelled].mean())
    if shift:  # back to the rows that were drawn
        chance = expit(logit(chance) - shift)
    return labelled, chance, classifier.posterior_


def hold_out(
    model: Any,
    X: Any,
    labelled: ArrayLike,
    n_splits: int,
    max_rows: int,
    random_state: RandomStateLike,
    n_jobs: int | None,
    groups: ArrayLike | None = None,
) -> HeldOut:
    """Fit copies of a model on folds, and predict the rows that each has not seen."""
    mask, rng = check_rows(X, labelled), as_generator(random_state)
    classifier = classifier_of(model)
    looked = getattr(classifier, "looked_", None)
    if looked is not None and classifier.observed_gap_.size != mask.size:
        refuse(
            "X must hold the rows of the fit, whose groups are known, if columns say who "
            f"was looked at. Got {mask.size} for {classifier.observed_gap_.size}."
        )
    rows = sample_rows(mask, max_rows, rng)
    samples, known = samples_of(model, take_rows(X, rows)), mask[rows]
    group = groups_of(groups, rows, mask.size)
    folds, seed = split(known, n_splits, draw_seed(rng), group), draw_seed(rng)

    def predict(train: Rows, test: Rows) -> tuple[Vector, Vector]:
        seen, unseen = take_rows(samples, train), take_rows(samples, test)
        own = None if looked is None else looked.take(rows[train])
        together = None if group is None else group[train]
        copy = refit(classifier, seen, known[train], seed, together, own)
        chance = 0.5 * (1.0 + copy.gap_estimator_.transform(unseen)[:, 0])
        if looked is not None:
            rate = copy.labelling_.rate
            chance *= looked.rate_of(rows[test], rows[train], rate)
        return chance, chance_positive(copy, unseen)

    parts = Parallel(n_jobs=n_jobs)(delayed(predict)(*fold) for fold in folds)
    order = np.argsort(np.concatenate([test for _, test in folds]), kind="stable")
    chance, posterior = (np.concatenate(v)[order] for v in zip(*parts, strict=True))
    return known, chance, posterior


def split(
    labelled: Mask, n_splits: int, seed: int, group: Rows | None = None
) -> list[tuple[Rows, Rows]]:
    """Return folds with labelled positives in each, as many as these allow."""
    if n_splits < 2:
        refuse(f"n_splits must be at least 2. Got {n_splits}.")
    # Each fit needs two of either kind.
    fewest = 3 if n_splits > 2 else 4
    require_groups(labelled, fewest, f"hold some out in {n_splits} folds")
    if group is not None:
        rng = np.random.default_rng(seed)
        fold = group_folds(labelled, group, n_splits, rng)
        return list(PredefinedSplit(fold).split())
    n_folds = min(n_splits, smaller_group(labelled))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(np.zeros(labelled.size), labelled))


def calibrate(
    labelled: Mask, chance: Vector, posterior: Vector, n_bins: int = 10
) -> Bunch:
    """Compare predicted chances with labels, in groups of about equal size."""
    order = np.argsort(chance, kind="stable")
    bins = []
    for group in np.array_split(order, min(n_bins, order.size)):
        hits, n = int(labelled[group].sum()), int(group.size)
        predicted = float(chance[group].mean())
        row = predicted, hits / n, n, *_interval(hits, n)
        bins.append(dict(zip(_OF_GROUP, row, strict=True)))
    off = sum(b["n"] * abs(b["predicted"] - b["observed"]) for b in bins)
    n_labelled = int(labelled.sum())
    n_found = int(np.count_nonzero(posterior[labelled] > 0.5))
    return Bunch(
        bins=bins,
        error=off / order.size,
        recall=n_found / n_labelled,
        recall_interval=_interval(n_found, n_labelled),
        n_labelled=n_labelled,
        roc_auc=float(roc_auc_score(labelled, chance)),
        labelling=_follow_gap(2.0 * posterior - 1.0, labelled, n_bins),
    )


def _follow_gap(gap: Vector, labelled: Mask, n_bins: int) -> dict[str, Any]:
    """Bin rows by their gap, and test whether clearer positives are labelled more."""
    edges = np.linspace(-1.0, 1.0, n_bins + 1)
    at = np.clip(np.digitize(gap, edges) - 1, 0, n_bins - 1)
    used, at, n = np.unique(at, return_inverse=True, return_counts=True)
    hits, middle = np.bincount(at[labelled], minlength=n.size), np.bincount(at, gap) / n
    share = hits / n
    fit = IsotonicRegression().fit_transform(middle, share, sample_weight=n)
    ends = [_interval(*pair) for pair in zip(hits.tolist(), n.tolist(), strict=True)]
    low, high = np.array(ends).T
    columns = (edges[used], edges[used + 1], middle, n, hits, share, low, high, fit)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    likely = gap > 0.0
    surer, others = gap[likely & labelled], gap[likely & ~labelled]
    p_value = None
    if min(surer.size, others.size) >= _FEWEST_TO_JUDGE:
        p_value = float(mannwhitneyu(surer, others, alternative="greater").pvalue)
    varies = used.size >= 3 and np.ptp(share) > 0.0
    return {
        "bins": [dict(zip(_OF_BIN, row, strict=True)) for row in rows],
        "rises": None if p_value is None else p_value < _SIGNIFICANT,
        "rank_correlation": spearmanr(middle, share).statistic if varies else None,
        "p_value": p_value,
    }


def _interval(successes: int, n: int) -> tuple[float, float]:
    """Return the Wilson interval of a share."""
    ends = binomtest(successes, n).proportion_ci(LEVEL, method="wilson")
    return float(ends.low), float(ends.high)
