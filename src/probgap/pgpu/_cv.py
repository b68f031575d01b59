"""PGPUcv: the boundary chosen by cross-validation over a grid."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.random import Generator
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from probgap._core._sklearn import StrOptions, check_parameters
from probgap._core.checks import (
    Fold,
    ObservedLabels,
    fold_of_rows,
    in_double,
    make_splitter,
    observed_accuracy,
    require_labelled_and_unlabelled,
)
from probgap._core.errors import InvalidInputError, ProbgapWarning, refuse
from probgap._core.estimators import clone_with_seed
from probgap._core.kernels import TrainingFeatures
from probgap._core.runtime import (
    RandomStateLike,
    as_generator,
    draw_seed,
    one_thread,
    stage,
)
from probgap._core.types import Mask, Matrix, Rows, Vector
from probgap.boundary import lee_liu
from probgap.pgpu._fold import FitsOnFold
from probgap.pgpu._rows import know_rows, take
from probgap.pgpu.classifier import BasePGPU, paper_parameters
from probgap.pgpu.steps import SoftLabels, Steps, TrainingRows, choose_steps
from probgap.reweight import KernelMeanMatching, KMMResult

Criterion = Callable[[Mask, Mask], float]

_FEWEST_FOLDS = 3
# Scores whose relative difference is below this are ties.
_ROUNDING = 1e-12
_CRITERIA: dict[str, Criterion] = {
    "observed_accuracy": observed_accuracy,
    "lee_liu": lee_liu,
}
# The boundaries that the paper tries: -0.90, -0.89, ..., -0.60.
_PAPER_GRID = np.round(np.linspace(-0.90, -0.60, 31), 2)


@dataclass(eq=False, repr=False, kw_only=True)
class PGPUClassifierCV(BasePGPU):
    """PGPU with the boundary chosen by cross-validation, the paper's PGPUcv.

    Tries each boundary of a grid on held-out folds and takes the one with the best mean
    score. The score is often flat: of boundaries whose scores are equal up to rounding the
    median one is chosen, the lower of two.

    Held-out folds have only observed labels. Accuracy against them, which the paper seems
    to use, favours boundaries near that of a classifier that takes unlabelled for
    negative; the criterion of Lee and Liu does well with few labels. Neither detects a
    bias in the labels: where labels are biased, prefer :class:`PGPUClassifier`: same
    assumption, no dependence on observed-label scores.

    The search judges by observed labels, so that it cannot tell who was looked at: there is
    no ``labelled_by`` here.

    The search gives the same scores as refitting for each fold and boundary, at a fraction
    of the cost: a fold has one gap, one kernel matrix for matching, and one fit for all
    boundaries that choose the same samples.

    Parameters
    ----------
    boundaries : array-like of float, default=None
        Boundaries to try, each in (-1, 0). ``None`` takes the paper's -0.90, -0.89, ...,
        -0.60, which 12 of the 17 true boundaries of its own experiments lie outside.
    scoring : {"observed_accuracy", "lee_liu"} or callable, default="observed_accuracy"
        What to maximise. A callable takes two masks, labelled and predicted positive,
        and returns a number.
    class_prior, gap_estimator, relabelling, keep_labelled, reweight, estimator : object
        As in :class:`PGPUClassifier`. ``relabelling="auto"`` is "corollary", ``estimator``
        by default a support vector machine, and ``class_prior`` only affects the count.
    strict : bool, default=False
        As in :class:`PGPUClassifier`. A boundary at which the letter leaves no positives or
        no negatives to train on scores minus infinity.
    cv : int, splitter or None, default=None
        Folds of the search. ``None`` takes five stratified folds, or as many as
        there are labelled positives.
    pos_label, random_state : object
        As in :class:`PGPUClassifier`.
    n_jobs : int, default=None
        Number of folds to fit at once, each on one thread.
    verbose : int, default=0
        With 1, reports on standard error what it is doing and how long that took.

    Attributes
    ----------
    cv_results_ : dict of ndarray
        For each boundary the score on each fold, their mean and standard deviation;
        minus infinity where a boundary leaves no negatives.
    best_score_ : float
        Mean score of the boundary that was chosen.
    boundary_ : Boundary
        The boundary, with the grid as candidates, their mean scores, and as spread the
        standard deviation of the best boundaries of single folds.
    observed_gap_, posterior_, estimate_, relabelling_, sample_weight_, kmm_ : object
        As in :class:`PGPUClassifier`, like all its other attributes.

    Warns
    -----
    UnreliableFitWarning, BoundaryWarning
        By ``fit``, as for :class:`PGPUClassifier`.

    See Also
    --------
    PGPUClassifier : The boundary from the gaps themselves, without a search.

    References
    ----------
    .. [1] He, Liu, Webb, Tao, "Instance-Dependent PU Learning by Bayesian Optimal
       Relabeling", arXiv:1808.02180v2, 2020.

    Examples
    --------
    >>> from probgap import PGPUClassifierCV
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(200, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifierCV(boundaries=[-0.8, -0.6], cv=3, random_state=0).fit(X, s)
    >>> model.boundary_.rule
    'cross_validated'
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BasePGPU._parameter_constraints,
        "boundaries": ["array-like", None],
        "scoring": [StrOptions(set(_CRITERIA)), callable],
    }

    boundaries: ArrayLike | None = None
    scoring: str | Criterion = "observed_accuracy"
    class_prior: float | tuple[float, float] | None = None
    gap_estimator: Any = None
    relabelling: Literal["auto", "expectation", "corollary", "theorem"] = "auto"
    keep_labelled: bool = True
    reweight: KernelMeanMatching | None = None
    estimator: Any = None
    strict: bool = False
    cv: Any = None
    pos_label: object = None
    random_state: RandomStateLike = None
    n_jobs: int | None = None
    verbose: int = 0

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """Return the paper's PGPUcv to the letter.

        As :meth:`PGPUClassifier.paper`, with the boundary searched over -0.90, -0.89,
        ..., -0.60 by 5-fold cross-validation on the accuracy against observed labels.

        Parameters
        ----------
        **parameters : dict
            Parameters to override, as ``set_params`` takes them.

        Returns
        -------
        PGPUClassifierCV
            An unfitted classifier.

        Examples
        --------
        >>> from probgap import PGPUClassifierCV
        >>> PGPUClassifierCV.paper().keep_labelled
        False
        """
        return cls(cv=5, **paper_parameters()).set_params(**parameters)

    def fit(self, X: Matrix, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit to observed labels.

        There are no sample weights: scores of folds count rows.

        Parameters
        ----------
        X, y, groups : object
            As for :meth:`PGPUClassifier.fit`.

        Returns
        -------
        Self
            The fitted classifier.
        """
        check_parameters(self)
        samples, labels = self._check_fit(X, y)
        known = know_rows(labels, samples, None, groups)
        self._fit(samples, take(known, slice(None)), as_generator(self.random_state))
        return self

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        """Choose the boundary by cross-validation, then fit with it on all samples."""
        samples, labelled = in_double(samples), labels.labelled
        grid = _check_grid(self.boundaries)
        # With a fold held out, the rest must still hold two labelled samples.
        require_labelled_and_unlabelled(labels, n_folds=_FEWEST_FOLDS)
        splitter = make_splitter(self.cv, labels, rng)
        if labels.group is not None:
            splitter = PredefinedSplit(fold_of_rows(splitter, samples, labels))
        folds = list(splitter.split(samples, labelled))
        rows = TrainingRows(samples, labelled, group=labels.group)
        scoring = self.scoring
        criterion = _CRITERIA[scoring] if isinstance(scoring, str) else scoring
        quiet = clone(self).set_params(n_jobs=None, verbose=0)
        jobs = [
            delayed(score_fold)(quiet, criterion, rows, fold, grid, draw_seed(rng))
            for fold in folds
        ]
        # Of folds in threads, the first to end would lift the limit of the others.
        task = f"{len(folds)} folds of {grid.size} boundaries"
        with one_thread(), stage(self.verbose, task):
            scores = np.array(Parallel(n_jobs=self.n_jobs)(jobs))
        mean = scores.mean(axis=0)
        best = _middle_of_the_best(mean)
        with np.errstate(invalid="ignore"):  # minus infinity has no deviation
            deviation = scores.std(axis=0)
        self.cv_results_ = {
            "boundary": grid,
            "mean_test_score": mean,
            "std_test_score": deviation,
            **{f"split{k}_test_score": row for k, row in enumerate(scores)},
        }
        self.best_score_ = float(mean[best])
        steps = choose_steps(self, labelled.size, float(grid[best]))
        self._fit_steps(samples, labels, steps, rng)
        self.boundary_ = replace(
            self.boundary_,
            rule="cross_validated",
            spread=float(np.std([grid[_middle_of_the_best(row)] for row in scores])),
            candidates=tuple(map(float, grid)),
            scores=tuple(map(float, mean)),
            names=(),
        )


def _middle_of_the_best(scores: Vector) -> int:
    """Return the median of the boundaries that are best up to rounding, the lower of two."""
    best = float(scores.max())
    # If no boundary is usable, all scores are minus infinity.
    rounding = _ROUNDING * max(1.0, abs(best)) if np.isfinite(best) else 0.0
    tied = np.flatnonzero(scores >= best - rounding)
    return int(tied[(tied.size - 1) // 2])


def _check_grid(boundaries: ArrayLike | None) -> Vector:
    if boundaries is None:
        return _PAPER_GRID.copy()
    try:
        grid = np.unique(np.asarray(boundaries, dtype=np.float64))
    except (TypeError, ValueError):
        grid = np.empty(0)
    if grid.size == 0 or not ((grid > -1.0) & (grid < 0.0)).all():
        refuse(f"boundaries must be numbers in (-1, 0). Got {boundaries!r}.")
    return grid


def score_fold(
    model: Any,
    criterion: Criterion,
    all_rows: TrainingRows,
    fold: Fold,
    grid: Vector,
    seed: int,
) -> Vector:
    """Score every boundary on one fold.

    The steps of :func:`fit_pgpu`, each for all boundaries at once: gap, kernel features and
    kernel matrices are shared, and boundaries that choose the same samples are one.
    """
    train, test = fold
    samples, labelled, group = all_rows.samples, all_rows.labelled, all_rows.group
    rows, known = samples[train], labelled[train]
    apart = None if group is None else group[train]
    scores = np.full(grid.size, -np.inf)
    # One thread, so that the bits do not depend on how many folds run at once.
    with one_thread(), warnings.catch_warnings():
        # Warn of the chosen boundary only, not of candidates that lose.
        warnings.simplefilter("ignore", ProbgapWarning)
        rng = np.random.default_rng(seed)
        steps = choose_steps(model, train.size, float(grid[0]))
        fits = FitsOnFold(rows, samples[test])
        gap = fits.estimate_gap(steps, TrainingRows(rows, known, group=apart), rng)
        features = steps.map_features(rows, known, rng)
        final_seed = draw_seed(rng)
        first, which = _distinct(steps, gap.observed_gap_, grid)
        relabelled = {}
        for i in first:
            at_value = replace(steps, boundary=float(grid[i]))
            curve = at_value.place_boundary(gap, known, None, None, rng)
            if curve.boundary.fallback is None:  # there are negatives to learn from
                with suppress(InvalidInputError):  # strict, and one class is empty
                    relabelled[i] = steps.relabel(curve, gap, known)
        decided = {i: found.decided for i, found in relabelled.items()}
        matched = _match_each(steps.reweight, rows, decided, features)
        for i, chosen in decided.items():
            weights = chosen.astype(np.float64)
            if i in matched:
                weights[chosen] = matched[i].weights
            share = relabelled[i].positive_share
            data = SoftLabels(rows, share, weights, known, features, apart)
            classifier = clone_with_seed(steps.final, np.random.default_rng(final_seed))
            predicted = fits.fit_and_predict(classifier, data)
            scores[i] = criterion(labelled[test], predicted)
    if np.isnan(scores).any():
        refuse(f"scoring must return a number. Got NaN from {criterion!r}.")
    return scores[first][which]


def _distinct(steps: Steps, gap: Vector, grid: Vector) -> tuple[Rows, Rows]:
    """Return the values with distinct selections, and which of them each value equals."""
    if steps.rule == "expectation":
        # Here the weights of samples depend on the value itself.
        every = np.arange(grid.size)
        return every, every
    # Samples below the boundary are the first in the order of gaps, so that their
    # number determines the selection.
    below = [np.count_nonzero(gap < value) for value in grid]
    _, first, which = np.unique(below, return_index=True, return_inverse=True)
    return first, which


def _match_each(
    matching: KernelMeanMatching | None,
    samples: Matrix,
    chosen: dict[Any, Mask],
    features: TrainingFeatures | None,
) -> dict[Any, KMMResult]:
    """Match selections by one kernel matrix, except those that need no weights."""
    if matching is None:
        return {}
    # A selection of all samples needs no weights, unless the upper bound is below 1.
    some = {i: c for i, c in chosen.items() if matching.upper < 1.0 or not c.all()}
    if features is not None or not some:
        # Kernel features exist to avoid a kernel matrix of all samples.
        return {
            i: matching.match(samples, c, features=features) for i, c in some.items()
        }
    found = matching.match_each(samples, list(some.values()))
    return dict(zip(some, found, strict=True))
