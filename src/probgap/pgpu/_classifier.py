"""PGPU: a classifier from positive and unlabelled data with biased labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from probgap._core.inputs import check_fit_inputs
from probgap._core.kernels import Matrix
from probgap._core.rng import RandomStateLike, as_generator
from probgap._core.values import HeldValues
from probgap.boundary import (
    Boundary,
    answer_by_rules,
    count_sides,
    estimate_boundary,
    weigh_candidates,
)
from probgap.gap import LabellingModel, MixedGapEstimator
from probgap.pgpu._base import PAPER, BasePGPU, GapEstimator, Mask, Vector
from probgap.pgpu._posterior import posterior_from_gap
from probgap.pgpu._prior import prior_of_reading, store_prior
from probgap.pgpu._signs import warn_of_reading, warn_of_signs
from probgap.reading import Reading, read

# Probabilities nearer to 0 and 1 than this have no log-odds of use.
_SURE = 1e-4


class PGPUClassifier(BasePGPU):
    """Classify from positive and unlabelled data, when easy positives are labelled first.

    Fits a classifier of the *true* label to data in which some positives are labelled
    and nothing is labelled negative: (1) estimate the observed gap, how much likelier
    than not each sample is to be labelled; (2) place the boundary, the observed gap at
    which the true gap is 0; (3) relabel by it; (4) weight what was chosen so that it
    stands for all; (5) train a weighted classifier. ``PGPUClassifier.paper()`` is the
    paper's algorithm to the letter.

    The default scores samples by a mixture of kernel and linear logistic regression,
    extremely randomised trees and gradient boosting. :func:`probgap.reading.read` reads
    off these scores how likely each unlabelled sample is to be positive: the Bayes answer
    to a stated belief about labelling, learnt from simulated tasks. The same learners are
    then fitted to these probabilities. Nothing has to be scaled.

    It assumes that no negative is labelled, that labelled and unlabelled samples come from
    one population, and that clear positives are labelled at least as often as others. It
    fails where labels went by something else (one clinic, one year), and positive and
    unlabelled data do not tell steep labelling from overlapping classes: the interval of
    the count says how much that leaves open, and ``fit`` warns where it is much
    (:class:`~probgap.exceptions.UnreliableFitWarning`). A known ``class_prior`` settles it.

    Parameters
    ----------
    boundary : {"auto", "gaps", "mean_smallest", "quantile"} or float, default="auto"
        How to find the boundary l. "auto" reads it off the scores, see
        :func:`probgap.reading.read`; "gaps" is the rule "auto" of
        :func:`~probgap.boundary.estimate_boundary`, which has the others, too.
    n_smallest : int, default=3
        The paper's n', for "mean_smallest".
    quantile : float, default=0.02
        Which quantile of the gaps of labelled positives, for "quantile".
    class_prior : float or tuple of float, default=None
        The share of all samples that are positive, labelled or not, or a range that it
        lies in, if that is known. It settles what the data leave open.
    gap_estimator : classifier with predict_proba, "platt", "labelling" or None, default=None
        Estimates P(s=1 | x). ``None`` takes a
        :class:`~probgap.gap.MixedGapEstimator`, "platt" the paper's Platt-scaled support
        vector machine, "labelling" a :class:`~probgap.gap.LabellingModel`, which brings a
        boundary and a count of its own. An estimator of :mod:`probgap.gap` keeps its own
        settings.
    gap_method : {"out_of_fold", "in_sample"}, default="out_of_fold"
        Whether the gaps of training samples come from models that have not seen them.
    relabelling : {"auto", "expectation", "corollary", "theorem"}, default="auto"
        "corollary"
            Gaps at or below the boundary are negative, gaps above 0 positive, what
            lies between is left out.
        "theorem"
            Gaps above the boundary are positive; nothing is left out.
        "expectation"
            An unlabelled sample counts as positive by the chance that it is, given
            that it is unlabelled, and as negative by the rest. Nothing is left out.
        "auto"
            "expectation" with the automatic boundary, "corollary" with any other.
    keep_labelled : bool, default=True
        Whether labelled positives stay positive. The paper's algorithm, to the
        letter, goes by the gap alone and leaves out those between boundary and 0.
    reweight : bool, default=True
        Whether to weight what was chosen so that it stands for all samples. Where
        nothing was left out, the weights are 1.
    kernel : str or callable, default="rbf"
        Kernel of :func:`~probgap.reweight.kernel_mean_matching`, as the next three.
    gamma : float, default=None
        Width of the kernel; ``None`` takes the median heuristic.
    upper : float, default=1000.0
        The paper's B, the largest weight.
    slack : float, default=None
        The paper's epsilon, the half-width of the band for the mean weight.
    estimator : classifier whose fit takes sample_weight, default=None
        The final classifier. ``None`` takes the mixture of learners with the automatic
        boundary, an RBF support vector machine with any other.
    kernel_features : {"auto", "exact"} or int, default="auto"
        For gap estimators and final classifiers other than the default ones.

        "exact"
            Support vector machines with kernels, and kernel mean matching with them.
            Time grows with the square of the number of samples and more.
        int
            As many Nystroem landmarks take the place of kernels in the gap, in kernel
            mean matching (unless ``kernel`` or ``gamma`` is set) and in the final
            classifier, a support vector machine with squared hinge loss. Boosted trees
            join where they predict held-out labels better. Time and memory grow with
            the number of samples.
        "auto"
            "exact" up to 6000 samples, beyond that 3 sqrt(n) landmarks, from 300 to
            1000. If the features of all samples would take more than 1.6 GB, the
            model is fitted on as many as that holds, labelled ones first, weighted
            to stand for all.
    cv : int, splitter or None, default=None
        Folds for out-of-fold gaps of a gap estimator other than the default. ``None``
        takes five stratified folds, or as many as there are labelled positives.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive. ``None`` takes the
        greater of the two.
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds and estimators. The same integer gives the same bits, whatever
        ``n_jobs`` is.
    device : str, default=None
        torch's name of a device, "cuda", "cuda:0" or "cpu", for exact kernels at any
        number of samples; needs the extra ``gpu``. On the device: the machines of
        ``gap_estimator="platt"``, kernel mean matching, the final classifier where
        ``estimator`` is None, and its predictions. On the processor: a
        :class:`~probgap.gap.LabellingModel` or a classifier of one's own,
        the boundary and the relabelling. ``kernel_features`` is then about the labelling
        model alone. Sparse samples become dense. What is learnt is kept in numpy arrays
        and predicts without torch, too.
    n_jobs : int, default=None
        Number of folds to fit at once, of a gap estimator other than the default.
    verbose : int, default=0
        With 1, says on standard error what it is doing and how long that took.

    Attributes
    ----------
    observed_gap_ : ndarray of shape (n_samples,)
        Observed gap of each training sample.
    posterior_ : ndarray of shape (n_samples,)
        P(Y=1 | x) of each training sample. By default from models that have not seen the
        sample: rank training samples by this, not by ``predict_proba``.
    reading_ : Reading or None
        What the scores say about hidden positives: posterior of any score, count and
        interval, and the worlds that are possible. None with a labelling model.
    boundary_ : Boundary
        The boundary: value, rule, spread, how many samples fall on each side, and the
        candidates that were considered with what each scores.
    relabelling_ : Relabelling
        Labels of the training samples, and the mask of those that were decided.
    sample_weight_ : ndarray of shape (n_samples,)
        Weight of each training sample; 0 for those left out.
    kmm_ : KMMResult or None
        Evidence of kernel mean matching; None if ``reweight`` is False.
    gap_estimator_ : MixedGapEstimator, ObservedGapEstimator or LabellingModel
        The fitted estimator of the gap.
    estimator_ : object
        The fitted final classifier.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order.
    positive_index_ : int
        Which of them is positive: 1, unless ``pos_label`` says otherwise.
    n_labelled_ : int
        Number of labelled positives among the training samples.
    estimated_class_prior_ : float
        Share of the training samples that are positive, labelled or not.
    estimated_class_prior_interval_ : tuple of float
        Where it may well lie, at a nominal level of 90%; see Notes.
    estimated_labelling_rate_ : float
        Share of the positives that is labelled.
    estimated_labelling_rate_interval_ : tuple of float
        Where that may well lie, likewise.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where ``X`` had names that are all strings.

    See Also
    --------
    PGPUClassifierCV : The boundary by cross-validation over a grid.
    probgap.reading.read : Boundary, posterior and count from anybody's scores.

    Notes
    -----
    ``predict_proba`` is about the true label. With a final classifier that gives no
    probabilities of its own, its decision is put through a sigmoid whose slope makes
    it agree best with the posterior of step 2, and which passes 1/2 where the decision
    passes 0.

    ``estimated_class_prior_`` and its interval are those of ``reading_``.
    ``benchmarks/reading.py`` measures how often the interval holds on simulated tasks,
    ``benchmarks/default.py`` how often on real tables with labels hidden in many ways.

    References
    ----------
    .. [1] He, Liu, Webb, Tao, "Instance-Dependent PU Learning by Bayesian Optimal
       Relabeling", arXiv:1808.02180, 2018.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> bool(model.score(X, y_true) > 0.97)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BasePGPU._parameter_constraints,
        "boundary": "no_validation",  # estimate_boundary knows the rules by name
        "n_smallest": [Interval(Integral, 1, None, closed="left")],
        "quantile": [Interval(Real, 0, 1, closed="both")],
        "class_prior": "no_validation",  # read knows what it may be
    }

    def __init__(
        self,
        *,
        boundary: str | float = "auto",
        n_smallest: int = 3,
        quantile: float = 0.02,
        class_prior: float | tuple[float, float] | None = None,
        gap_estimator: Any = None,
        gap_method: Literal["out_of_fold", "in_sample"] = "out_of_fold",
        relabelling: Literal["auto", "expectation", "corollary", "theorem"] = "auto",
        keep_labelled: bool = True,
        reweight: bool = True,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | None = None,
        upper: float = 1000.0,
        slack: float | None = None,
        estimator: Any = None,
        kernel_features: Literal["auto", "exact"] | int = "auto",
        cv: Any = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.boundary = boundary
        self.n_smallest = n_smallest
        self.quantile = quantile
        self.class_prior = class_prior
        self.gap_estimator = gap_estimator
        self.gap_method = gap_method
        self.relabelling = relabelling
        self.keep_labelled = keep_labelled
        self.reweight = reweight
        self.kernel = kernel
        self.gamma = gamma
        self.upper = upper
        self.slack = slack
        self.estimator = estimator
        self.kernel_features = kernel_features
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """Give the paper's Algorithm 1 to the letter.

        In-sample Platt-scaled gaps, the mean of the ``n_smallest=3`` smallest gaps of
        labelled positives as the boundary, Corollary 1 by the gap alone (so that
        labelled positives between the boundary and 0 are left out), kernel mean
        matching, and a weighted support vector machine.

        Parameters
        ----------
        **parameters : dict
            Parameters to set otherwise, such as ``n_smallest=1`` for the infimum,
            which the paper uses on real data.

        Returns
        -------
        PGPUClassifier
            An unfitted classifier.

        Examples
        --------
        >>> from probgap import PGPUClassifier
        >>> PGPUClassifier.paper(n_smallest=1).boundary
        'mean_smallest'
        """
        return cls(**{**PAPER, "boundary": "mean_smallest", **parameters})

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit the classifier: Algorithm 1 of the paper.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            *Observed* labels: labelled positive, or unlabelled. Two values, of which
            the greater is positive (or see ``pos_label``), or one value beside NaN,
            None or pandas.NA.

        Returns
        -------
        PGPUClassifier
            The fitted classifier.

        Warns
        -----
        UnreliableFitWarning
            If the data look as if the method cannot work: labels look random, too few
            are there, the task is like none of the simulated ones, or two worlds with
            very different counts are both possible.
        BoundaryWarning
            If the boundary that was found cannot be used as it stands.
        """
        samples, labels = check_fit_inputs(self, X, y, self.pos_label, single=True)
        samples = self._in_double(samples)
        labelled = labels.labelled
        rng = as_generator(self.random_state)
        gap, features = self._fit_gap(
            samples,
            labelled,
            rng,
            cv=self.cv,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        reading = self._read(gap, labelled)
        boundary, posterior, hidden = self._place_boundary(gap, labelled, reading, rng)
        estimator = self._final_estimator(labelled.size, rng)
        learnt = self._learn(
            samples,
            labelled,
            gap.observed_gap_,
            posterior,
            boundary,
            estimator,
            features,
            hidden,
        )
        self.classes_, self.positive_index_ = labels.classes, labels.positive
        self.n_labelled_ = int(np.count_nonzero(labelled))
        self.boundary_, self.reading_ = boundary, reading
        decision = self._store(samples, labelled, gap, posterior, learnt)
        observed = HeldValues(gap.observed_gap_, labelled)
        if reading is None:
            prior = self._store_prior(labelled, posterior, decision, rng)
            warn_of_signs(gap, observed, boundary, prior)
            return self
        prior = prior_of_reading(reading)
        store_prior(self, prior)
        if self._reads():
            warn_of_reading(reading, observed)
        else:
            warn_of_signs(gap, observed, boundary, replace(prior, spread=0.0))
        return self

    def _reads(self) -> bool:
        automatic = isinstance(self.boundary, str) and self.boundary == "auto"
        return automatic and not self._models()

    def _goes_by_gaps(self) -> bool:
        """Tell whether the boundary comes from a rule on gaps, as on blocks of rows."""
        return isinstance(self.boundary, str) and self.boundary == "gaps"

    def _mixes(self) -> bool:
        return self.gap_estimator is None

    def _models(self) -> bool:
        """Tell whether a labelling model says what the boundary is."""
        return isinstance(self.gap_estimator, LabellingModel) or self._is("labelling")

    def _read(self, gap: GapEstimator, labelled: Mask) -> Reading | None:
        """Read who is hidden off the scores."""
        if isinstance(gap, LabellingModel) or self._goes_by_gaps():
            return None
        return read(log_odds_of(gap), labelled, class_prior=self.class_prior)

    def _place_boundary(
        self,
        gap: GapEstimator,
        labelled: Mask,
        reading: Reading | None,
        rng: np.random.Generator,
    ) -> tuple[Boundary, Vector, Vector | None]:
        """Step 2: the boundary, and the posteriors that go with it."""
        observed = gap.observed_gap_
        values = HeldValues(observed, labelled)
        if reading is not None and self._reads():
            scores = log_odds_of(gap)
            boundary = count_sides(
                values, reading.boundary, "auto", reading.boundary_spread
            )
            answers = answer_by_rules(values, self.n_smallest, self.quantile)
            boundary = weigh_candidates(
                boundary, values, {**answers, "auto": reading.boundary}
            )
            return (
                boundary,
                reading.posterior(scores),
                reading.hidden_probability(scores),
            )
        modelled = isinstance(gap, LabellingModel) and self.boundary == "auto"
        rule = "auto" if self._goes_by_gaps() else self.boundary
        rule = gap.boundary_ if modelled else rule
        boundary = estimate_boundary(
            observed,
            labelled,
            rule=rule,
            n_smallest=self.n_smallest,
            quantile=self.quantile,
            random_state=rng,
        )
        if modelled:
            named = dict(zip(boundary.names, boundary.candidates, strict=True))
            others = {name: named[name] for name in ("mean_smallest", "quantile")}
            boundary = replace(
                boundary,
                rule="auto",
                spread=gap.boundary_spread_,
                separability=gap.separability_,
            )
            boundary = weigh_candidates(
                boundary, values, {**gap.boundary_steps_, **others}
            )
        if modelled and boundary.fallback is None:
            return boundary, gap.posterior_, None
        return boundary, posterior_from_gap(observed, labelled, boundary.value), None


def log_odds_of(gap: GapEstimator) -> Vector:
    """Return the log-odds of being labelled of the training samples."""
    if isinstance(gap, MixedGapEstimator):
        return gap.log_odds_
    chance = np.clip(0.5 * (1.0 + gap.observed_gap_), _SURE, 1.0 - _SURE)
    return np.asarray(logit(chance))
