"""A model of who gets labelled: P(s=1 | x) as P(Y=1 | x) times a labelling rate."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import threadpool_limits

from probgap._core.folds import Fold, make_splitter, require_partition
from probgap._core.inputs import check_fit_inputs, check_predict_input
from probgap._core.kernels import Matrix, scale_gamma
from probgap._core.overlap import CEILING_QUANTILE, separability
from probgap._core.rng import RandomStateLike, as_generator, draw_seed
from probgap.gap._base import GapClassifier
from probgap.gap._product import ProductFit, RatePrior, fit_product

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]

_CEILING_RANGE = (0.01, 0.95)
# The rate reaches its ceiling at this log-odds of being positive (a chance of 0.88).
_SCORE_AT_CEILING = 2.0
# How far the rate's level may move from what the ceiling says: 5% of the odds.
_LEVEL_FREEDOM = 0.05
# How far the boundary goes from even odds towards the least labelled positives, when
# classes do not overlap and those positives mark where the positive class begins; and
# the log-odds at which they are taken for strays instead, and followed no farther.
_TOWARDS_THE_LEAST = 0.6
_N_LEAST = 3
_N_RESAMPLES = 100
_FARTHEST = 1.0
_SCORING_C = 10.0


class LabellingModel(GapClassifier):
    r"""Estimate the observed gap, the true posterior and the boundary together.

    The model is

    .. math:: P(s=1 \mid x) = \sigma(f(x)) \cdot \sigma(a + b f(x)), \quad b \ge 0,

    where the first factor is P(Y=1 | x), the second the chance that a positive is
    labelled, which rises with the true gap, and f is linear in kernel features. It
    is fitted by maximum likelihood with a ridge penalty.

    Positive and unlabelled data identify the product, not the factors: the model has
    to be told something about the rate, and reads it off the clearest positives. If
    they are nearly always labelled the rate is taken as nearly constant near its
    ceiling; the lower their chance, the steeper the rate is assumed to be. It errs
    where that is wrong: few labels that fell at random from a rare class, or a steep
    rate that reaches 1. Where hardly any labelled positive lies among the
    unlabelled-looking samples, classes seem not to overlap, and the boundary moves
    some of the way to the least labelled positives, the paper's own estimate.

    Parameters
    ----------
    n_components : int, default=300
        Number of Nystroem features of the RBF kernel.
    gamma : float or "scale", default="scale"
        Width of the kernel; "scale" is 1 / (n_features * variance of X).
    C : float, default=100.0
        Inverse strength of the ridge penalty on f.
    method : {"out_of_fold", "in_sample"}, default="out_of_fold"
        How the attributes about training samples are computed: by models that have
        not seen the sample (averaged with the one that has, as far as classes do not
        overlap), or by the model fitted on all of them.
    cv : int, splitter or None, default=None
        Folds. ``None`` takes five stratified folds, or as many as there are labelled
        positives.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive. ``None`` takes the
        greater of the two.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the folds and the kernel features.
    n_jobs : int, default=None
        Number of folds to fit at once.

    Attributes
    ----------
    observed_gap_ : ndarray of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x) of each training sample.
    posterior_ : ndarray of shape (n_samples,)
        P(Y=1 | x) of each training sample, 1/2 where the gap is ``boundary_``.
    boundary_ : float
        The paper's l: the observed gap at which the true gap is 0.
    boundary_spread_ : float
        Standard deviation of the boundary over bootstrap resamples of the labelled
        positives, the score being given.
    ceiling_ : float
        Chance of being labelled of the clearest positives.
    separability_ : float
        From 0, classes overlap, to 1, they do not.
    n_iter_ : int
        Iterations of the fit on all samples.
    converged_ : bool
        Whether that fit, and those on the folds, converged.
    rate_level_, rate_slope_ : float
        The labelling rate is expit(rate_level_ + rate_slope_ * f).
    even_score_ : float
        The f at which a sample is as likely positive as not.
    feature_map_ : Nystroem
        The kernel features.
    product_ : object
        The fit on all samples: coefficients of f and the optimiser's evidence.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order.
    positive_index_ : int
        Which of them means labelled: 1, unless ``pos_label`` says otherwise.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where ``X`` had names that are all strings.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.gap import LabellingModel
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = LabellingModel(random_state=0).fit(X, s)
    >>> bool(((model.posterior_ > 0.5) == (y_true == 1)).mean() > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale"})],
        "C": [Interval(Real, 0, None, closed="neither")],
        "method": [StrOptions({"out_of_fold", "in_sample"})],
        "cv": ["cv_object"],
        "pos_label": "no_validation",
        "random_state": "no_validation",
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        n_components: int = 300,
        gamma: float | Literal["scale"] = "scale",
        C: float = 100.0,
        method: Literal["out_of_fold", "in_sample"] = "out_of_fold",
        cv: Any = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.C = C
        self.method = method
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit the model of who is positive and who gets labelled.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Observed labels: labelled positive, or unlabelled.

        Returns
        -------
        LabellingModel
            The fitted model.
        """
        samples, labels = check_fit_inputs(self, X, y, self.pos_label)
        labelled = labels.labelled
        rng = as_generator(self.random_state)
        splitter = make_splitter(self.cv, labels, rng)
        folds = list(splitter.split(samples, labelled))
        require_partition(folds, labelled.size)
        self.classes_, self.positive_index_ = labels.classes, labels.positive
        # One thread, so that the bits depend neither on the machine's threads nor on
        # how many folds run at once.
        with threadpool_limits(1):
            self._fit_to(samples, labelled, folds, draw_seed(rng))
        if not self.converged_:
            warnings.warn(
                f"The labelling model stopped after {self.n_iter_} iterations without "
                "converging. Scale the features, or give a smaller C.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _fit_to(
        self, samples: Matrix, labelled: Mask, folds: list[Fold], seed: int
    ) -> None:
        """Read the ceiling off a plain score, fit the product, place the boundary."""
        self.feature_map_ = Nystroem(
            gamma=scale_gamma(samples) if self.gamma == "scale" else self.gamma,
            n_components=min(self.n_components, samples.shape[0]),
            random_state=seed,
        ).set_output(transform="default")
        features = self.feature_map_.fit(samples).transform(samples)

        chance = self._out_of_fold_chance(features, labelled, folds)
        self.ceiling_ = _ceiling(chance[labelled])
        self.separability_ = separability(
            chance[labelled] < 0.5 * self.ceiling_, int(np.count_nonzero(~labelled))
        )
        prior = _rate_prior(self.ceiling_)
        parts = self._fit_parts(features, labelled, folds, prior)
        self.product_ = fit_product(features, labelled, C=self.C, prior=prior)
        score = self._training_score(features, folds, parts)
        self._place_boundary(score, labelled, parts)
        self.boundary_spread_ = self._spread(score, chance, labelled, seed)
        self.n_iter_ = self.product_.n_iter
        self.converged_ = all(part.converged for part in (self.product_, *parts))

    def _out_of_fold_chance(
        self, features: Vector, labelled: Mask, folds: list[Fold]
    ) -> Vector:
        """Estimate P(s=1 | x) by plain logistic regression, to read the ceiling off."""
        chance = np.full(labelled.size, np.nan)
        jobs = (delayed(_logistic_chance)(features, labelled, fold) for fold in folds)
        for (_, test), part in zip(folds, Parallel(self.n_jobs)(jobs), strict=True):
            chance[test] = part
        return chance

    def _fit_parts(
        self, features: Vector, labelled: Mask, folds: list[Fold], prior: RatePrior
    ) -> list[ProductFit]:
        jobs = (
            delayed(_fit_part)(features, labelled, train, self.C, prior)
            for train, _ in folds
        )
        return list(Parallel(self.n_jobs)(jobs))

    def _training_score(
        self, features: Vector, folds: list[Fold], parts: list[ProductFit]
    ) -> Vector:
        """Score the training samples, by models that saw them only as far as is safe."""
        seen = self.product_.score(features)
        if self.method == "in_sample":
            return seen
        unseen = np.full_like(seen, np.nan)
        for part, (_, test) in zip(parts, folds, strict=True):
            unseen[test] = part.score(features[test])
        # Without overlap the labels seen do no harm, and all the data give a smoother
        # edge; with it they would pull each sample towards its own label.
        share = 0.5 * self.separability_
        return share * seen + (1.0 - share) * unseen

    def _place_boundary(
        self, score: Vector, labelled: Mask, parts: list[ProductFit]
    ) -> None:
        self.rate_level_ = float(np.mean([part.level for part in parts]))
        self.rate_slope_ = _rate_slope(self.ceiling_)
        self.even_score_ = _even_score(score[labelled], self.separability_)
        self.posterior_ = expit(score - self.even_score_)
        self.observed_gap_ = 2.0 * self._chance_labelled(score, self.rate_level_) - 1.0
        self.boundary_ = _boundary(self.even_score_, self.rate_level_, self.rate_slope_)

    def _spread(
        self, score: Vector, chance: Vector, labelled: Mask, seed: int
    ) -> float:
        """Place the boundary by resampled labelled positives, and see how it moves."""
        rng = np.random.default_rng(seed)
        rows = np.flatnonzero(labelled)
        off_prior = self.rate_level_ - _rate_prior(self.ceiling_).level
        boundaries = np.empty(_N_RESAMPLES)
        for i in range(_N_RESAMPLES):
            drawn = rng.choice(rows, rows.size)
            ceiling = _ceiling(chance[drawn])
            prior = _rate_prior(ceiling)
            astray = chance[drawn] < 0.5 * ceiling
            apart = separability(astray, labelled.size - rows.size)
            even = _even_score(score[drawn], apart)
            boundaries[i] = _boundary(even, prior.level + off_prior, prior.slope)
        return float(boundaries.std())

    def _chance_labelled(self, score: Vector, level: float) -> Vector:
        chance: Vector = expit(score) * expit(level + self.rate_slope_ * score)
        return chance

    def _score(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        return self.product_.score(self.feature_map_.transform(samples))

    def _chance(self, X: Matrix) -> Vector:
        return self._chance_labelled(self._score(X), self.rate_level_)

    def predict_posterior(self, X: Matrix) -> Vector:
        """Give P(Y=1 | x), the chance to be positive whether labelled or not.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Probabilities.
        """
        posterior: Vector = expit(self._score(X) - self.even_score_)
        return posterior


def _even_score(of_labelled: Vector, separable: float) -> float:
    least = float(np.sort(of_labelled)[:_N_LEAST].mean())
    followed = float(np.clip(least, -_FARTHEST, 0.0))
    return _TOWARDS_THE_LEAST * separable * followed


def _boundary(even_score: float, level: float, slope: float) -> float:
    return float(2.0 * expit(even_score) * expit(level + slope * even_score) - 1.0)


def _ceiling(chance: Vector) -> float:
    return float(np.clip(np.quantile(chance, CEILING_QUANTILE), *_CEILING_RANGE))


def _rate_slope(ceiling: float) -> float:
    # The fewer of the clearest positives are labelled, the more the labelling must
    # have gone by how clear they are; the choice is a rule of thumb.
    return 1.0 - ceiling


def _rate_prior(ceiling: float) -> RatePrior:
    slope = _rate_slope(ceiling)
    return RatePrior(
        slope=slope,
        level=float(logit(ceiling)) - slope * _SCORE_AT_CEILING,
        spread=_LEVEL_FREEDOM / (1.0 - ceiling),
    )


def _logistic_chance(features: Vector, labelled: Mask, fold: Fold) -> Vector:
    train, test = fold
    with threadpool_limits(1):
        model = LogisticRegression(C=_SCORING_C, max_iter=1000)
        model.fit(features[train], labelled[train])
        chance: Vector = model.predict_proba(features[test])[:, 1]
    return chance


def _fit_part(
    features: Vector,
    labelled: Mask,
    train: NDArray[np.intp],
    C: float,
    prior: RatePrior,
) -> ProductFit:
    with threadpool_limits(1):
        return fit_product(features[train], labelled[train], C=C, prior=prior)
