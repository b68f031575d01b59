"""PGPUcv: the boundary chosen by cross-validation over a grid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from probgap._core.checks import check_fit_inputs, require_labelled_and_unlabelled
from probgap._core.errors import InvalidInputError
from probgap._core.runtime import (
    RandomStateLike,
    as_generator,
    draw_seed,
    one_thread,
    stage,
)
from probgap._core.types import Matrix, Vector
from probgap._core.validation import lee_liu, make_splitter, observed_accuracy
from probgap.pgpu._search import Criterion, score_fold
from probgap.pgpu.base import BasePGPU, paper_steps
from probgap.pgpu.steps import choose_steps
from probgap.reweight import KernelMeanMatching

_FEWEST_FOLDS = 3
# Scores whose relative difference is below this are ties.
_ROUNDING = 1e-12
_CRITERIA: dict[str, Criterion] = {
    "observed_accuracy": observed_accuracy,
    "lee_liu": lee_liu,
}
# The boundaries that the paper tries: -0.90, -0.89, ..., -0.60.
_PAPER_GRID = np.round(np.linspace(-0.90, -0.60, 31), 2)


class PGPUClassifierCV(BasePGPU):
    """PGPU with the boundary chosen by cross-validation, the paper's PGPUcv.

    Tries each boundary of a grid on held-out folds and takes the one with the best mean
    score. The score is often flat: boundaries whose scores are within 1e-12 of the best
    (relative to it, if that is above 1) are tied. Of the tied boundaries in ascending
    order, adjacent on the grid or not, the median one is chosen, the lower of two.

    Held-out folds have only observed labels. Accuracy against them, which the paper seems
    to use, favours boundaries near that of a classifier that takes unlabelled for
    negative; the criterion of Lee and Liu does well with few labels. Neither detects a
    bias in the labels: where labels are biased, prefer :class:`PGPUClassifier`.

    The search gives the same scores as refitting for each fold and boundary, at a fraction
    of the cost: a fold has one gap, one kernel matrix for matching, and one fit for all
    boundaries that choose the same samples. ``n_jobs`` folds run at once, each on one
    thread.

    The assumption is that of :class:`PGPUClassifier`.

    Parameters
    ----------
    boundaries : array-like of float, default=None
        Boundaries to try, each in (-1, 0). ``None`` takes -0.90, -0.89, ..., -0.60.
    scoring : {"observed_accuracy", "lee_liu"} or callable, default="observed_accuracy"
        What to maximise. A callable takes two masks, labelled and predicted positive,
        and returns a number.
    class_prior, gap_estimator, relabelling, keep_labelled, reweight, estimator : object
        As in :class:`PGPUClassifier`. ``relabelling="auto"`` is "corollary", ``estimator``
        by default a support vector machine, and ``class_prior`` only affects the count.
    cv : int, splitter or None, default=None
        Folds of the search. ``None`` takes five stratified folds, or as many as
        there are labelled positives.
    pos_label, random_state : object
        As in :class:`PGPUClassifier`.
    n_jobs : int, default=None
        Number of folds to fit at once.
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
    observed_gap_, posterior_, reading_, relabelling_, sample_weight_, kmm_ : object
        As in :class:`PGPUClassifier`, like all its other attributes.

    See Also
    --------
    PGPUClassifier : The boundary from the gaps themselves, without a search.

    References
    ----------
    .. [1] He, Liu, Webb, Tao, "Instance-Dependent PU Learning by Bayesian Optimal
       Relabeling", arXiv:1808.02180, 2018.

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

    def __init__(
        self,
        *,
        boundaries: ArrayLike | None = None,
        scoring: str | Criterion = "observed_accuracy",
        class_prior: float | tuple[float, float] | None = None,
        gap_estimator: Any = None,
        relabelling: Literal["auto", "expectation", "corollary", "theorem"] = "auto",
        keep_labelled: bool = True,
        reweight: KernelMeanMatching | None = None,
        estimator: Any = None,
        cv: Any = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.boundaries = boundaries
        self.scoring = scoring
        self.class_prior = class_prior
        self.gap_estimator = gap_estimator
        self.relabelling = relabelling
        self.keep_labelled = keep_labelled
        self.reweight = reweight
        self.estimator = estimator
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        return cls(cv=5, **paper_steps()).set_params(**parameters)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Choose the boundary by cross-validation, then fit with it on all samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Observed labels: labelled positive, or unlabelled.

        Returns
        -------
        PGPUClassifierCV
            The fitted classifier.

        Warns
        -----
        UnreliableFitWarning
            If the method may not work on the data, as for :class:`PGPUClassifier`.
        BoundaryWarning
            If the boundary that was found had to be moved.
        """
        samples, labels = check_fit_inputs(self, X, y, self.pos_label, single=True)
        samples = self._in_double(samples)
        labelled = labels.labelled
        grid = _check_grid(self.boundaries)
        rng = as_generator(self.random_state)
        # With a fold held out, the rest must still hold two labelled samples.
        require_labelled_and_unlabelled(labels, n_folds=_FEWEST_FOLDS)
        splitter = make_splitter(self.cv, labels, rng)
        folds = list(splitter.split(samples, labelled))
        scoring = self.scoring
        criterion = _CRITERIA[scoring] if isinstance(scoring, str) else scoring
        jobs = [
            delayed(score_fold)(
                self, criterion, samples, labelled, fold, grid, draw_seed(rng)
            )
            for fold in folds
        ]
        # Each fold limits its threads, but if folds are threads of one process, the first
        # to end would lift the limit of the others.
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
        steps = choose_steps(
            self,
            labelled.size,
            boundary=float(grid[best]),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self._fit_checked(samples, labels, steps, rng)
        self.boundary_ = replace(
            self.boundary_,
            rule="cross_validated",
            spread=float(np.std([grid[_middle_of_the_best(row)] for row in scores])),
            candidates=tuple(map(float, grid)),
            scores=tuple(map(float, mean)),
            names=(),
        )
        return self


def _middle_of_the_best(scores: Vector) -> int:
    """Return the median of equally good boundaries: the score is often flat.

    Of an even number, the lower of the two. Scores that differ by rounding are equal.
    """
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
        msg = f"boundaries must be numbers in (-1, 0). Got {boundaries!r}."
        raise InvalidInputError(msg)
    return grid
