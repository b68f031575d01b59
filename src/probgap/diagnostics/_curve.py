"""How often rows are labelled, by how surely positive they seem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import mannwhitneyu, spearmanr
from sklearn.isotonic import IsotonicRegression

from probgap._core.runtime import RandomStateLike
from probgap._core.types import Mask, Vector
from probgap.diagnostics._held_out import (
    MOST_HELD_OUT,
    N_SPLITS,
    HeldOut,
    hold_out,
    wilson,
)

_FEWEST_TO_JUDGE = 10
_SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class CurveBin:
    """Rows of about the same estimated gap.

    Attributes
    ----------
    gap_low, gap_high, gap : float
        Where the bin begins and ends, and the mean gap of its rows.
    n, labelled : int
        How many rows it holds, and how many of them are labelled.
    frequency, low, high : float
        Their share, and its Wilson interval at 90%.
    fit : float
        The share by a fit to all bins that never falls.
    """

    gap_low: float
    gap_high: float
    gap: float
    n: int
    labelled: int
    frequency: float
    low: float
    high: float
    fit: float


@dataclass(frozen=True, slots=True)
class LabellingCurve:
    """How often rows are labelled, by estimated true gap.

    Attributes
    ----------
    bins : tuple of CurveBin
        From surely negative to surely positive.
    rises : bool or None
        Whether, among rows that are rather positive than not, labels go to the surer
        ones; None where too few rows of a kind are there to tell.
    rank_correlation : float or None
        Spearman's, between gap and frequency of the bins; None with fewer than three.
    p_value : float or None
        Of the test behind ``rises``.
    """

    bins: tuple[CurveBin, ...]
    rises: bool | None
    rank_correlation: float | None
    p_value: float | None


def labelling_curve(
    model: Any,
    X: Any,
    labelled: ArrayLike,
    *,
    n_bins: int = 10,
    n_splits: int = N_SPLITS,
    max_rows: int = MOST_HELD_OUT,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> LabellingCurve:
    """Set how often rows are labelled against how surely positive they seem.

    The gap is 2 P(Y=1 | x) - 1 by copies of the model that have not seen the row. Where
    labels go by the gap, as the method assumes, the frequency rises with it also among
    rows that are rather positive than not; where they fell at random and classes part
    cleanly, it is flat there. Where classes overlap it rises in either case: a rise
    alone is no proof of a bias, but the lack of one speaks against it. ``rises`` is a
    one-sided Mann-Whitney test at 5% among rows with a gap above 0.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        Rows, as the model takes them.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    n_bins : int, default=10
        How many bins of equal width to cut [-1, 1] into; empty ones are left out.
    n_splits : int, default=5
        Number of folds; fewer where fewer rows are labelled.
    max_rows : int, default=20000
        Of more rows, so many are drawn.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the folds and the fits.
    n_jobs : int, default=None
        Number of folds to fit at once.

    Returns
    -------
    LabellingCurve
        The bins, and whether the frequency rises.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square, platt_gap
    >>> from probgap.diagnostics import labelling_curve
    >>> X, y, _ = make_square(400, random_state=0)
    >>> gap = platt_gap(X, y, random_state=0)
    >>> s = hide_labels(X, y, gap, ("linear", 1.0), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> curve = labelling_curve(model, X, s == 1, random_state=0)
    >>> curve.bins[0].frequency < 0.1, curve.bins[-1].frequency > 0.9
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
    return draw_curve(held, n_bins)


def draw_curve(held: HeldOut, n_bins: int = 10) -> LabellingCurve:
    """Bin rows by their gap and look whether labels go to the surer ones."""
    gap = 2.0 * held.posterior - 1.0
    edges = np.linspace(-1.0, 1.0, n_bins + 1)
    at = np.clip(np.digitize(gap, edges) - 1, 0, n_bins - 1)
    used = np.unique(at)
    n = np.array([np.count_nonzero(at == k) for k in used])
    hits = np.array([np.count_nonzero(held.labelled & (at == k)) for k in used])
    middle = np.array([gap[at == k].mean() for k in used])
    fit = IsotonicRegression().fit_transform(middle, hits / n, sample_weight=n)
    bins = []
    for k, size, hit, mean, level in zip(used, n, hits, middle, fit, strict=True):
        low, high = wilson(int(hit), int(size))
        bins.append(
            CurveBin(
                gap_low=float(edges[k]),
                gap_high=float(edges[k + 1]),
                gap=float(mean),
                n=int(size),
                labelled=int(hit),
                frequency=float(hit / size),
                low=low,
                high=high,
                fit=float(level),
            )
        )
    p_value = _rise(gap, held.labelled)
    return LabellingCurve(
        bins=tuple(bins),
        rises=None if p_value is None else p_value < _SIGNIFICANT,
        rank_correlation=_rank_correlation(middle, hits / n),
        p_value=p_value,
    )


def _rise(gap: Vector, labelled: Mask) -> float | None:
    """Test whether, among likely positives, labelled ones have the greater gaps."""
    likely = gap > 0.0
    with_label, without = gap[likely & labelled], gap[likely & ~labelled]
    if min(with_label.size, without.size) < _FEWEST_TO_JUDGE:
        return None
    return float(mannwhitneyu(with_label, without, alternative="greater").pvalue)


def _rank_correlation(middle: Vector, frequency: Vector) -> float | None:
    if middle.size < 3 or np.ptp(frequency) == 0.0:
        return None
    return float(spearmanr(middle, frequency).statistic)
