"""PGPU: a classifier from positive and unlabelled data with biased labels."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import expit

from probgap._core._sklearn import HasMethods, StrOptions, check_parameters
from probgap._core.checks import (
    ObservedLabels,
    check_predict_input,
    in_double,
    number_alone,
)
from probgap._core.errors import refuse, warn
from probgap._core.estimators import PUClassifier, log_odds
from probgap._core.output import fact_table, is_open, number, share
from probgap._core.runtime import RandomStateLike, as_generator
from probgap._core.types import Matrix, Rows, Vector
from probgap.boundary import Boundary, BoundaryRule, MeanSmallest
from probgap.gap import (
    GapClassifier,
    MixedGapEstimator,
    ObservedGapEstimator,
    gap_of,
)
from probgap.labelling import Declared, Labelling, declare, take_columns
from probgap.pgpu._rows import GatheredRows, gather_rows, know_rows, take
from probgap.pgpu.steps import (
    Steps,
    TrainingRows,
    choose_steps,
    decide,
    find_doubts,
    fit_pgpu,
)
from probgap.reading import HiddenEstimate
from probgap.relabel import Relabelling, hidden_probability
from probgap.reweight import KernelMeanMatching, KMMResult

_MOST_SHOWN = 6  # groups in a notebook


def paper_parameters() -> dict[str, Any]:
    """Return the parameters of the paper's Algorithm 1, except the boundary."""
    return {
        "gap_estimator": ObservedGapEstimator(method="in_sample", gamma="auto"),
        "relabelling": "corollary",
        "keep_labelled": False,
        "strict": True,
        "reweight": KernelMeanMatching(),
    }


class BasePGPU(PUClassifier):
    """The algorithm of the paper, fitted."""

    _keeps_single = True
    boundary_: Boundary
    estimate_: HiddenEstimate
    device: str | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PUClassifier._parameter_constraints,
        "boundary": "no_validation",  # checked by check_rule
        "class_prior": "no_validation",  # checked by read
        "gap_estimator": [HasMethods(["fit"]), None],
        "relabelling": [StrOptions({"auto", "expectation", "corollary", "theorem"})],
        "keep_labelled": ["boolean"],
        "strict": ["boolean"],
        "reweight": [KernelMeanMatching, None],
        "labelled_by": ["array-like", None],
        "keep": ["array-like", None],
    }

    def _fit_steps(
        self, samples: Matrix, labels: ObservedLabels, steps: Steps, rng: Generator
    ) -> None:
        """Run the steps, store their results, and warn if they may not be believed."""
        self.looked_ = labels.looked
        labelled, weight = labels.labelled, labels.weight
        rows = TrainingRows(
            in_double(samples, self.device),
            labelled,
            weight,
            labels.negative,
            labels.group,
            labels.looked,
        )
        fitted = fit_pgpu(rows, steps, rng)
        self.classes_, self.positive_index_ = labels.classes, labels.positive
        self.estimate_, self.boundary_ = fitted.estimate, fitted.boundary
        self.n_labelled_ = round(fitted.estimate.n_labelled)
        if hasattr(self, "feature_names_in_"):
            fitted.gap.feature_names_in_ = self.feature_names_in_
        self.gap_estimator_ = fitted.gap
        self.observed_gap_ = fitted.gap.observed_gap_
        self.relabelling_ = fitted.relabelling
        self.kmm_, self.sample_weight_ = fitted.matching, fitted.sample_weight
        self.row_weight_, self.group_ = weight, labels.group
        self.negative_ = labels.negative
        self.estimator_, self.slope_ = fitted.classifier, fitted.slope
        self.averages_ = fitted.averages
        self.posterior_, self.probability_ = fitted.posterior, fitted.probability
        self.labelling_ = fitted.labelling
        for doubt in find_doubts(self, labelled):
            warn(doubt)

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()
        return diagram + fit_table(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += fit_table(self)
        return bundle

    def _decide(self, X: Matrix) -> Vector:
        return decide(self, check_predict_input(self, self._without_declared(X)))

    def _without_declared(self, X: Any) -> Any:
        """Return the columns that the model learnt from; the others may be lacking."""
        taken = getattr(self, "taken_out_", None)
        if taken is None or not hasattr(X, "shape"):
            return X
        names, present = getattr(self, "feature_names_in_", None), hasattr(X, "columns")
        if names is not None and present and set(names) <= set(X.columns):
            return X[list(names)]
        n_columns = self.n_features_in_ + taken.size
        if X.shape[1] != n_columns:
            return X
        return take_columns(X, np.setdiff1d(np.arange(n_columns), taken))

    def _chance(self, X: Matrix) -> Vector:
        return self._chance_at(check_predict_input(self, self._without_declared(X)))

    def _chance_at(self, samples: Matrix) -> Vector:
        decision = decide(self, samples)
        if self.slope_ is None:
            return 0.5 * (1.0 + decision)
        return expit(self.slope_ * decision)


@dataclass(eq=False, repr=False, kw_only=True)
class PGPUClassifier(BasePGPU):
    """Classify from positive and unlabelled data, when easy positives are labelled first.

    Fits a classifier of the *true* label to data in which some positives are labelled
    and nothing is labelled negative: (1) estimate the observed gap, how much likelier
    than not each sample is to be labelled; (2) place the boundary, the observed gap at
    which the true gap is 0; (3) relabel by it; (4) weight the chosen samples so that they
    represent all; (5) train a weighted classifier; (6) average its probabilities with those
    of step 2. ``PGPUClassifier.paper()`` is the paper's algorithm to the letter.

    The default scores samples by a mixture of kernel and linear logistic regression,
    extremely randomised trees and gradient boosting. From these scores
    :func:`probgap.reading.read` estimates how likely each unlabelled sample is to be
    positive: the Bayesian answer under a stated prior over labelling, learnt from simulated
    tasks. The same learners are then fitted to these probabilities. No scaling is needed.

    It assumes that no negative is labelled, that labelled and unlabelled samples come from
    one population, and that clear positives are labelled at least as often as others. It
    fails where labelling depended on something else (one clinic, one year), unless
    ``labelled_by`` names it. Positive and
    unlabelled data do not distinguish steep labelling from overlapping classes: the interval
    of the count shows how much that leaves open. A known ``class_prior`` settles it.

    Parameters
    ----------
    boundary : "auto", float, MeanSmallest or Quantile, default="auto"
        The boundary l: read off the scores (:func:`probgap.reading.read`), a number in
        (-1, 0), or a rule of :mod:`probgap.boundary`.
    class_prior : float or tuple of float, default=None
        The share of all samples that are positive, labelled or not, or a range that it
        lies in, if that is known.
    gap_estimator : classifier with predict_proba, default=None
        Estimates P(s=1 | x). ``None`` takes a :class:`~probgap.gap.MixedGapEstimator`. A
        :class:`~probgap.gap.ObservedGapEstimator` keeps its own settings and, without
        an estimator of its own, is the paper's Platt-scaled support vector machine; any
        other classifier is fitted out of fold, as ``cv`` says.
    relabelling : {"auto", "expectation", "corollary", "theorem"}, default="auto"
        "corollary": gaps at or below the boundary are negative, gaps above 0 positive, and
        samples in between are left out. "theorem": gaps above the boundary are positive.
        "expectation": an unlabelled sample counts as a positive with weight
        P(Y=1 | x, unlabelled) and as a negative with the rest. "auto": "expectation" with
        the automatic boundary and without ``reweight``, "corollary" with any other.
    keep_labelled : bool, default=True
        Whether labelled positives stay positive. The paper's algorithm, taken literally,
        uses the gap alone and leaves out those between boundary and 0.
    reweight : KernelMeanMatching or None, default=None
        How to weight the chosen samples so that they represent all. The default leaves
        nothing out and needs no weights.
    estimator : classifier whose fit takes sample_weight, default=None
        The final classifier. ``None`` takes the mixture of learners with the automatic
        boundary, an RBF support vector machine with any other; beyond 6000 samples, a
        linear one on 300 to 1000 Nystroem features of the kernel.
    strict : bool, default=False
        Whether to follow Algorithm 1 to the letter where that may fail. Otherwise a
        boundary that leaves fewer than 2% of the unlabelled samples below it is moved to
        their lower quartile, one that is not below 0 is moved there, labelled positives
        are kept if no other positive is left, each with a warning, and beyond 6000 samples
        Nystroem features stand for the kernel.
    device : str, default=None
        torch's name of a device, "cuda", "cuda:0" or "cpu", for exact kernels at any
        number of samples; needs the extra ``gpu``. It solves the support vector machines
        of an ``ObservedGapEstimator`` and of the final classifier, if ``estimator`` is
        None, and kernel mean matching. Sparse samples become dense. The fitted model
        consists of numpy arrays and predicts without torch, too.
    cv : int, splitter or None, default=None
        Folds for held-out gaps. ``None`` takes five stratified folds, or as many as there
        are labelled positives; the default's learners repeat them up to 2,000 samples.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive, or a tuple of several that do:
        ``("card", "identity")`` are one class, "card or identity"; numbers are named by
        the first of them. ``None`` takes the greater of the two; between two strings such
        as "fraud" and "ok", of which none is known to mean unlabelled, ``fit`` asks for it.
    labelled_by : iterable of str or int, default=None
        Names or positions of columns that say who was looked at: a clinic, a year, who
        labelled. They need not be numbers. They leave the model of the truth, and how often
        positives of each of their groups were labelled is estimated (``labelling_``). Rows
        to predict may lack them. Only with ``gap_estimator=None`` or a
        :class:`~probgap.gap.MixedGapEstimator`.
    keep : iterable of str or int, default=None
        Those of them on which the truth depends as well, such as an age at which people are
        examined more and ill more often. They stay among the features, and rates of all
        groups come from the rows that the other columns find clearest.
    neg_label : object, default=None
        The value of ``y`` that marks samples that were checked and are not positive, beside
        positive and unlabelled ones. They train the final classifier as negatives, and are
        never counted or ranked as hidden; for steps 1 and 2 they are samples that were not
        labelled. Which samples were checked may depend on their features, not on their
        class: the positives that a check found must be labelled. Where all samples were
        checked, the same learners are fitted to these labels. ``None`` means that nobody
        checked.
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds and estimators. The same integer gives the same bits for any ``n_jobs``.
    n_jobs : int, default=None
        Number of parallel jobs: threads over the four learners, or over folds if
        ``gap_estimator`` is given.
    verbose : int, default=0
        With 1, reports on standard error what it is doing and how long that took.

    Attributes
    ----------
    observed_gap_ : ndarray of shape (n_samples,)
        Observed gap of each training sample.
    posterior_ : ndarray of shape (n_samples,)
        P(Y=1 | x) of each training sample. By default from models that have not seen the
        sample: rank training samples by this, not by ``predict_proba``.
    probability_ : ndarray of shape (n_samples,)
        How likely each training sample is to be positive, given whether it is labelled: 1
        for labelled samples, 0 for those that were checked and are negative,
        P(Y=1 | x, unlabelled) for the others. The log-odds of
        ``posterior_`` are shifted, all by the same number, so that these (weighted, if
        samples represent several) add up to ``estimate_.n_hidden`` exactly, as they do with
        a known ``class_prior``. :meth:`HiddenEstimate.probability_range
        <probgap.reading.HiddenEstimate.probability_range>` gives their ranges.
    estimate_ : HiddenEstimate
        The posterior of any score, the count of hidden positives and the class prior, each
        with its 90% interval. Every count that is shown comes from here.
    labelling_ : Labelling or None
        Who was looked at: relative rates and hidden positives of each group, if
        ``labelled_by`` is given. ``observed_gap_`` is then that of a label, had everybody
        been looked at alike; all counts and probabilities are about the truth.
    boundary_ : Boundary
        The boundary, how many samples fall on each side, and the candidates.
    relabelling_ : Relabelling
        Labels of the training samples, and the mask of those that were decided.
    sample_weight_ : ndarray of shape (n_samples,)
        Weight of each training sample; 0 for those left out.
    kmm_ : KMMResult or None
        Result of kernel mean matching; None if ``reweight`` is None.
    gap_estimator_, estimator_ : object
        The fitted estimator of the gap, and the fitted final classifier.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order; ``positive_index_`` is that of the positive.
    n_labelled_ : int
        Number of labelled positives among the training samples.
    negative_ : ndarray of shape (n_samples,) or None
        True for training samples that were checked and are not positive; ``None`` without
        ``neg_label``.
    n_features_in_, feature_names_in_ : int, ndarray
        Features seen in ``fit``, and their names if they were all strings.

    Warns
    -----
    UnreliableFitWarning
        By ``fit``, if labels look random, or fewer than 12 positives are labelled.
    BoundaryWarning
        By ``fit``, if the boundary that was found had to be moved.

    See Also
    --------
    PGPUClassifierCV : The boundary by cross-validation over a grid.
    probgap.reading.read : Boundary, posterior and count from any scores.

    Notes
    -----
    ``predict`` and ``predict_proba`` are about P(Y=1 | x), of a sample that may be labelled
    or not; ``probability_`` is about a training sample of which that is known. If the final
    classifier has no probabilities of its own, its decision values are calibrated by a
    one-parameter sigmoid fitted to the posterior of step 2. ``research/reading/measure.py``
    measures how often the interval of the count holds on simulated tasks,
    ``benchmarks/default.py`` on real tables with labels hidden in many ways.

    References
    ----------
    .. [1] He, Liu, Webb, Tao, "Instance-Dependent PU Learning by Bayesian Optimal
       Relabeling", arXiv:1808.02180v2, 2020.

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

    boundary: Literal["auto"] | float | BoundaryRule = "auto"
    class_prior: float | tuple[float, float] | None = None
    gap_estimator: Any = None
    relabelling: Literal["auto", "expectation", "corollary", "theorem"] = "auto"
    keep_labelled: bool = True
    reweight: KernelMeanMatching | None = None
    estimator: Any = None
    strict: bool = False
    device: str | None = None
    cv: Any = None
    pos_label: object = None
    labelled_by: Any = None
    keep: Any = None
    neg_label: object = None
    random_state: RandomStateLike = None
    n_jobs: int | None = None
    verbose: int = 0

    def _check_fit(self, X: Any, y: ArrayLike) -> tuple[Matrix, ObservedLabels]:
        if self.labelled_by is None:
            if self.keep is not None:
                refuse(f"keep must be None without labelled_by. Got {self.keep!r}.")
            self.taken_out_: Rows | None = None
            return super()._check_fit(X, y)
        X = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
        rest, declared, self.taken_out_ = declare(X, self.labelled_by, self.keep or ())
        samples, labels = super()._check_fit(rest, y)
        return samples, replace(labels, looked=declared)

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """Return the paper's Algorithm 1 to the letter.

        In-sample Platt-scaled gaps, the mean of the three smallest gaps of labelled
        positives as the boundary, Corollary 1 by the gap alone, kernel mean matching, and
        a weighted support vector machine; both machines with LIBSVM's kernel width, 1 /
        n_features, so that features need scaling.

        Only unlabelled samples below the boundary become negative; labelled positives
        without a gap above 0 are left out. Nothing is rescued: where the letter leaves no
        positives or no negatives to train on, ``fit`` raises an error. ``strict=False``
        moves such a boundary, keeps labelled positives where no other is left, and takes
        Nystroem features beyond 6000 samples.

        Parameters
        ----------
        **parameters : dict
            Parameters to override, as ``set_params`` takes them, such as
            ``boundary__n_smallest=1`` for the infimum, as in the paper's real data.

        Returns
        -------
        PGPUClassifier
            An unfitted classifier.

        Examples
        --------
        >>> from probgap import PGPUClassifier
        >>> PGPUClassifier.paper(boundary__n_smallest=1).boundary
        MeanSmallest(n_smallest=1)
        """
        return cls(boundary=MeanSmallest(), **paper_parameters()).set_params(
            **parameters
        )

    def fit(
        self,
        X: Matrix,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit to observed labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            *Observed* labels: labelled positive, or unlabelled. Two values, of which the
            greater is positive (or see ``pos_label``), or one value beside NaN, None or
            pandas.NA.
        sample_weight : array-like of shape (n_samples,), default=None
            How many samples each one stands for. A weight of 3 does what three equal
            samples do, and 0 what leaving the sample out does; counts are sums of weights.
            With a ``gap_estimator`` other than a ``MixedGapEstimator`` whole numbers.
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together: rows of one patient, customer or site. Those
            of a group are held out together, by every learner. A missing entry is a group
            of its own.

        Returns
        -------
        Self
            The fitted classifier.
        """
        return self._fit_known(X, y, sample_weight, groups)

    def _fit_known(
        self,
        X: Matrix,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        looked: Declared | None = None,
    ) -> Self:
        """Fit as ``fit`` does; ``looked`` are columns that say who was looked at."""
        check_parameters(self)
        samples, labels = self._check_fit(X, y)
        labels = replace(labels, looked=looked or labels.looked)
        known = know_rows(labels, samples, sample_weight, groups)
        self._fit(samples, known, as_generator(self.random_state))
        return self

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        gap = self.gap_estimator
        cv = getattr(gap, "cv", None) if isinstance(gap, GapClassifier) else self.cv
        weighs = gap is None or isinstance(gap, MixedGapEstimator)
        rows = gather_rows(
            samples,
            labels,
            cv,
            repeat=not weighs,
            in_order=self.strict and not weighs,
        )
        self._fit_gathered(rows, rng)
        if rows.back is not None:
            self._spread_back(rows, samples)

    def _fit_gathered(self, rows: GatheredRows, rng: Generator) -> None:
        n_rows = rows.labels.labelled.size
        steps = choose_steps(self, n_rows, self.boundary, self.cv)
        if rows.back is not None and hasattr(steps.gap, "cv"):
            steps.gap.set_params(cv=rows.cv)
        self._fit_steps(rows.samples, rows.labels, steps, rng)

    def _spread_back(self, rows: GatheredRows, samples: Matrix) -> None:
        """Assign to each row of the user what the fit found for the one it stands for."""
        gap, labels, relabelling = self.gap_estimator_, rows.given, self.relabelling_
        assert rows.back is not None
        absent = samples[rows.back < 0]
        observed, odds, chance = [np.empty(0)] * 3
        if absent.shape[0]:
            observed = gap_of(gap._chance_at(absent))
            odds, chance = log_odds(gap._chance_at(absent)), self._chance_at(absent)
        gap.observed_gap_ = rows.spread(gap.observed_gap_, observed)
        if hasattr(gap, "log_odds_"):
            gap.log_odds_ = rows.spread(gap.log_odds_, odds)
        self.observed_gap_ = gap.observed_gap_
        self.posterior_ = rows.spread(self.posterior_, chance)
        hidden = hidden_probability(self.observed_gap_, self.posterior_)
        hidden[labels.labelled] = 1.0
        if labels.negative is not None:
            hidden[labels.negative] = 0.0
        hidden = hidden[rows.back < 0]
        self.probability_ = rows.spread(self.probability_, hidden)
        self.relabelling_ = Relabelling(
            rows.spread(relabelling.labels, -1),
            rows.spread(relabelling.positive_share, np.nan),
        )
        weight = labels.weight if labels.weight is not None else 1.0
        share = self.sample_weight_
        if self.row_weight_ is not None:
            share = share / self.row_weight_
        self.sample_weight_ = weight * rows.spread(share, 0.0)
        self.row_weight_ = labels.weight
        self.group_ = None if labels.group is None else number_alone(labels.group)
        self.negative_ = labels.negative
        if self.labelling_ is not None:
            rate = rows.spread(self.labelling_.rate, 1.0)
            self.labelling_ = replace(self.labelling_, rate=rate)
        self.looked_ = labels.looked

    def _fit_weighted(
        self,
        X: Matrix,
        y: ArrayLike,
        weight: Vector | None,
        groups: ArrayLike | None = None,
        looked: Declared | None = None,
    ) -> Self:
        """Fit to rows drawn from a larger table, each of which represents several."""
        check_parameters(self)
        rng = as_generator(self.random_state)
        samples, labels = self._check_fit(X, y)
        labels = replace(
            know_rows(labels, samples, None, groups), looked=looked or labels.looked
        )
        labels = take(labels, slice(None), weight)
        self._fit_gathered(GatheredRows(samples, labels, self.cv, labels), rng)
        return self


def fit_table(model: Any) -> str:
    """Return what a notebook shows below the diagram of a fitted classifier."""
    if not hasattr(model, "relabelling_"):
        return ""
    relabelling, estimate = model.relabelling_, model.estimate_
    n_samples = round(estimate.n_rows)
    low, high = estimate.class_prior_interval
    positives = f"{low:.1%} to {high:.1%}"
    if is_open(estimate.n_hidden_interval[1], estimate.n_unlabelled):
        positives = f"at least {low:.1%}"
    facts = {
        "hidden positives": f"{estimate.hidden_range} (90% interval), best estimate "
        f"{estimate.n_hidden:,.0f}",
        "labelled": f"{share(model.n_labelled_, n_samples)} of {n_samples:,} samples",
        "share of positives": f"{positives} (90% interval), best estimate "
        f"{estimate.class_prior:.1%}",
        "boundary": _boundary(model.boundary_),
        "undecided by the gap": share(model.boundary_.n_undecided, n_samples),
        "left out of training": share(relabelling.n_undecided, relabelling.labels.size),
        "weights": _weights(model.kmm_, model.sample_weight_),
    }
    if model.labelling_ is not None:
        for column in model.labelling_.columns:
            facts[f"rates by {column}"] = _rates(model.labelling_, column)
    return fact_table(f"{type(model).__name__}: what the fit found", facts)


def _rates(labelling: Labelling, column: str) -> str:
    groups = [group for group in labelling.groups if group.column == column]
    shown = [f"{group.level} {group.rate:.0%}" for group in groups[:_MOST_SHOWN]]
    more = len(groups) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _boundary(boundary: Boundary) -> str:
    spread = ""
    if boundary.spread > 0.0:
        spread = f" \N{PLUS-MINUS SIGN} {number(boundary.spread, 2)}"
    moved = ", moved: see boundary_.fallback" if boundary.fallback else ""
    return f"{number(boundary.value)}{spread} (rule {boundary.rule!r}{moved})"


def _weights(matching: KMMResult | None, weight: Vector) -> str:
    if matching is None:
        return "all 1 (reweight=None)"
    used = weight[weight > 0.0]
    if used.size and np.ptp(used) == 0.0:
        return f"all {number(float(used[0]))}"
    state = "" if matching.converged else "; not converged"
    return (
        f"effective sample size {matching.effective_sample_size:,.0f} of {used.size:,}"
        f", largest {number(float(weight.max()))}{state}"
    )
