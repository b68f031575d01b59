"""A model of who gets labelled: P(s=1 | x) as P(Y=1 | x) times a labelling rate."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from probgap._core.features import (
    KernelFeatures,
    TrainingFeatures,
    map_training_samples,
)
from probgap._core.folds import (
    Fold,
    make_splitter,
    require_partition,
)
from probgap._core.inputs import check_fit_inputs, check_predict_input
from probgap._core.kernels import Matrix, scale_gamma
from probgap._core.newton import LinearFits
from probgap._core.progress import stage
from probgap._core.rng import RandomStateLike, as_generator, draw_seed
from probgap._core.threads import one_thread
from probgap._core.values import HeldValues
from probgap.gap._base import GapClassifier
from probgap.gap._boosting import Stack, stack_trees
from probgap.gap._folds import HeldLabelledRows, HeldOutBy
from probgap.gap._forest import (
    deserves_forest,
    grow_forest,
    heed,
    mix_chances,
    mix_scores,
)
from probgap.gap._plain import fit_plain
from probgap.gap._product import fit_product
from probgap.gap._rate import blend, chance_of_score, rate_prior
from probgap.gap._reading import place_boundary, read_chances
from probgap.gap._resample import Placed, SomeOfEach, spread_of_prior
from probgap.gap._spread import spread_of_boundary

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]


class LabellingModel(GapClassifier):
    r"""Estimate the observed gap, the true posterior and the boundary together.

    The model is

    .. math:: P(s=1 \mid x) = \sigma(f(x)) \cdot \sigma(a + b f(x)), \quad b \ge 0,

    where the first factor is P(Y=1 | x), the second the chance that a positive is
    labelled, which rises with the true gap, and f is linear in kernel features. It
    is fitted by maximum likelihood with a ridge penalty, and then averaged with what a
    forest of randomised trees makes of the same rate.

    Positive and unlabelled data identify the product, not the factors: the model has
    to be told something about the rate, and reads it off the clearest positives. If
    they are nearly always labelled the rate is taken as nearly constant near its
    ceiling; the lower their chance, the steeper the rate is assumed to be. Where hardly
    any labelled positive lies among the unlabelled-looking samples, classes seem not to
    overlap, and the boundary moves some of the way to the least labelled positives, the
    paper's own estimate. Where labelled samples look much like the others, nothing may
    be clear, and it moves the other way, up to calling nothing positive. It errs where
    these readings are wrong: common but faint positives, or a steep rate that reaches 1.

    Parameters
    ----------
    n_components : int, default=300
        Number of Nystroem landmarks of the RBF kernel, and so at most of its features.
        If they would take more than 1.6 GB for all samples, the model is fitted on as
        many as that holds, labelled ones first, weighted to stand for all.
    gamma : float or "scale", default="scale"
        Width of the kernel; "scale" is 1 / (n_features * variance of X).
    C : float, default=100.0
        Inverse strength of the ridge penalty on f; a tenth or a hundredth of it where
        held-out labels are predicted better so.
    trees : bool, default=False
        Whether to fit boosted trees beside the kernel features, and to take their
        score for one more feature where it predicts held-out labels better. Worth its
        time with many samples, or features that matter little. Not for sparse ``X``.
    forest : bool, default=True
        Whether to average the score with that of a forest, with 100 to 6000 samples.
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
        Number of boosted models to fit at once. The rest needs no help: all folds are
        fitted in the same passes over the features.
    verbose : int, default=0
        With 1, says on standard error what it is doing.

    Attributes
    ----------
    observed_gap_ : ndarray of shape (n_samples,)
        P(s=1 | x) - P(s=0 | x) of each training sample.
    posterior_ : ndarray of shape (n_samples,)
        P(Y=1 | x) of each training sample, 1/2 where the gap is ``boundary_``.
    boundary_ : float
        The paper's l: the observed gap at which the true gap is 0.
    boundary_steps_ : dict of float
        How the boundary came about: at even odds of the model, after it moved towards
        the least labelled positives, and ("auto") after doubts moved it up.
    boundary_spread_ : float
        Standard deviation of the boundary over bootstrap resamples of the labelled
        positives, the score being given.
    class_prior_spread_ : float
        Standard deviation of the log of the share of positives over bootstrap resamples.
    ceiling_ : float
        Chance of being labelled of the clearest positives.
    mean_labelled_chance_, high_labelled_chance_ : float
        Mean and 0.95-quantile of the held-out chance of labelled positives to be
        labelled. As large as the share of positives that are labelled, or larger, if
        labels fell at random.
    separability_ : float
        From 0, classes overlap, to 1, they do not.
    evidence_ : float
        By how many standard errors held-out labels are predicted better than by their
        frequency.
    doubt_ : float
        How far the boundary was moved up, in log-odds, as the labels say little.
    shrinkage_ : float
        The factor of ``C`` that predicted held-out labels best: 1, 0.1 or 0.01.
    n_iter_ : int
        Iterations of the fit on all samples.
    converged_ : bool
        Whether that fit, and those on the folds, converged.
    rate_level_, rate_slope_ : float
        The labelling rate is expit(rate_level_ + rate_slope_ * f).
    even_score_ : float
        The f at which a sample is as likely positive as not.
    trees_used_ : bool
        Whether the score of boosted trees is among the features.
    forest_ : object
        Gives the score by the forest, and its share in the average; None if there is
        none, or none is needed as classes do not overlap.
    feature_map_ : object
        The kernel features: ``transform(X)`` gives them.
    coef_ : ndarray of shape (n_components,)
        Coefficients of f.
    intercept_ : float
        Its constant.
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
        "trees": ["boolean"],
        "forest": ["boolean"],
        "method": [StrOptions({"out_of_fold", "in_sample"})],
        "cv": ["cv_object"],
        "pos_label": "no_validation",
        "random_state": "no_validation",
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        n_components: int = 300,
        gamma: float | Literal["scale"] = "scale",
        C: float = 100.0,
        trees: bool = False,
        forest: bool = True,
        method: Literal["out_of_fold", "in_sample"] = "out_of_fold",
        cv: Any = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.C = C
        self.trees = trees
        self.forest = forest
        self.method = method
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        self._fit_features(X, y)
        return self

    def _fit_features(self, X: Matrix, y: ArrayLike) -> TrainingFeatures:
        """Fit, and hand out the kernel features of the samples for further use."""
        samples, labels = check_fit_inputs(self, X, y, self.pos_label, single=True)
        self.classes_, self.positive_index_ = labels.classes, labels.positive
        labelled = labels.labelled
        rng = as_generator(self.random_state)
        splitter = make_splitter(self.cv, labels, rng)
        folds = list(splitter.split(samples, labelled))
        require_partition(folds, labelled.size)
        seed = draw_seed(rng)
        # The bits depend neither on the machine's threads nor on n_jobs.
        with one_thread():
            features = self._map(samples, labelled, seed)
            features = self._fit_to(samples, features, labelled, folds, seed)
        if not self.converged_:
            warnings.warn(
                f"The labelling model stopped after {self.n_iter_} iterations without "
                "converging. Scale the features, or give a smaller C.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return features

    def _map(self, samples: Matrix, labelled: Mask, seed: int) -> TrainingFeatures:
        gamma = scale_gamma(samples) if self.gamma == "scale" else self.gamma
        with stage(self.verbose, "kernel features"):
            kernel = KernelFeatures.fit(samples, self.n_components, gamma, seed)
            return map_training_samples(
                kernel, samples, labelled, seed, spare=int(self._grows_trees(samples))
            )

    def _grows_trees(self, samples: Matrix) -> bool:
        return self.trees and not issparse(samples)

    def _fit_to(
        self,
        samples: Matrix,
        features: TrainingFeatures,
        labelled: Mask,
        folds: list[Fold],
        seed: int,
    ) -> TrainingFeatures:
        """Read the ceiling off a plain score, fit the product, place the boundary."""
        observed = labelled[features.rows]
        held_out_by = HeldOutBy.of(folds, labelled.size, features.rows)
        with stage(self.verbose, "who is labelled, by kernels"):
            plain = fit_plain(held_out_by.rows(features, observed))
        stack = Stack(features, plain.chance.values, plain.start)
        if self._grows_trees(samples):
            with stage(self.verbose, "who is labelled, by trees"):
                stack = stack_trees(samples, labelled, stack, seed, self.n_jobs)
        self.trees_used_, features = stack.used, stack.features
        self.feature_map_ = features.map
        forest = None
        if self.forest and deserves_forest(labelled.size):
            with stage(self.verbose, "who is labelled, by a forest"):
                forest = grow_forest(samples, labelled, seed)
        mixed = mix_chances(stack.chance, forest, features.rows)
        chance = HeldValues(mixed, observed, features.weight)
        self.shrinkage_ = plain.shrinkage
        n_unlabelled = int(np.count_nonzero(~labelled))
        reading = read_chances(chance, n_unlabelled)
        self.ceiling_, self.separability_ = reading.ceiling, reading.separability
        self.forest_ = heed(forest, self.separability_, rate_prior(self.ceiling_))
        rows = held_out_by.rows(features, observed)
        with stage(self.verbose, "who is positive"):
            product = fit_product(
                rows,
                C=self.C * plain.shrinkage,
                prior=rate_prior(self.ceiling_),
                start=stack.start,
            )
        self.coef_, self.intercept_ = product.coef[:, 0], float(product.intercept[0])
        score = self._score_samples(samples, features, rows, product)
        self.rate_level_ = float(product.level[1:].mean())
        self.rate_slope_ = rate_prior(self.ceiling_).slope
        self.mean_labelled_chance_ = reading.mean
        self.high_labelled_chance_ = reading.high
        placed = place_boundary(
            chance,
            HeldValues(score, labelled),
            reading,
            self.rate_level_,
            self.rate_slope_,
        )
        self.evidence_, self.doubt_ = placed.evidence, placed.doubt
        self.even_score_, self.boundary_ = placed.even_score, placed.boundary
        self.boundary_steps_ = placed.steps
        self.posterior_ = expit(score - self.even_score_)
        self.observed_gap_ = 2.0 * self._chance_of(score) - 1.0
        self.boundary_spread_ = spread_of_boundary(
            score[features.rows][observed],
            chance.of(labelled=True),
            n_unlabelled,
            low=reading.low,
            off_prior=self.rate_level_ - rate_prior(self.ceiling_).level,
            doubt=self.doubt_,
            seed=seed,
        )
        self.class_prior_spread_ = spread_of_prior(
            rows,
            SomeOfEach.of(rows, score[features.rows], chance.values),
            product,
            Placed(
                self.rate_level_,
                self.rate_slope_,
                self.ceiling_,
                self.separability_,
                self.doubt_,
            ),
            C=self.C * plain.shrinkage,
            seed=seed,
        )
        self.n_iter_ = product.n_iter
        self.converged_ = plain.converged and product.converged
        return features

    def _score_samples(
        self,
        samples: Matrix,
        features: TrainingFeatures,
        rows: HeldLabelledRows,
        product: LinearFits,
    ) -> Vector:
        """Score the training samples, by models that have not seen them or by all."""
        if features.complete:
            score = (features.values @ self.coef_.astype(np.float32)).astype(np.float64)
        else:
            score = self.feature_map_.score(samples, self.coef_)
        score += self.intercept_
        if self.method == "in_sample":
            return mix_scores(score, self.forest_, samples)
        unseen = rows.held_out(product).values
        seen = score[features.rows]
        score[features.rows] = blend(seen, unseen, self.separability_)
        return mix_scores(score, self.forest_)

    def _chance_of(self, score: Vector) -> Vector:
        return chance_of_score(score, self.rate_level_, self.rate_slope_)

    def _score(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        with one_thread():
            score = self.feature_map_.score(samples, self.coef_) + self.intercept_
            return mix_scores(score, self.forest_, samples)

    def _chance(self, X: Matrix) -> Vector:
        return self._chance_of(self._score(X))

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
