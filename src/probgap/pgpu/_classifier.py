"""PGPU: a classifier from positive and unlabelled data with biased labels."""

from __future__ import annotations

from typing import Any, Literal, Self

from numpy.random import Generator
from numpy.typing import ArrayLike

from probgap._core._sklearn import fit_context
from probgap._core.checks import ObservedLabels, in_double
from probgap._core.runtime import RandomStateLike, as_generator
from probgap._core.types import Matrix, Vector
from probgap.boundary import BoundaryRule, MeanSmallest
from probgap.pgpu.base import BasePGPU, paper_steps
from probgap.pgpu.steps import Steps, choose_steps
from probgap.reweight import KernelMeanMatching


class PGPUClassifier(BasePGPU):
    """Classify from positive and unlabelled data, when easy positives are labelled first.

    Fits a classifier of the *true* label to data in which some positives are labelled
    and nothing is labelled negative: (1) estimate the observed gap, how much likelier
    than not each sample is to be labelled; (2) place the boundary, the observed gap at
    which the true gap is 0; (3) relabel by it; (4) weight the chosen samples so that they
    represent all; (5) train a weighted classifier. ``PGPUClassifier.paper()`` is the
    paper's algorithm to the letter.

    The default scores samples by a mixture of kernel and linear logistic regression,
    extremely randomised trees and gradient boosting. From these scores
    :func:`probgap.reading.read` estimates how likely each unlabelled sample is to be
    positive: the Bayesian answer under a stated prior over labelling, learnt from simulated
    tasks. The same learners are then fitted to these probabilities. No scaling is needed.

    It assumes that no negative is labelled, that labelled and unlabelled samples come from
    one population, and that clear positives are labelled at least as often as others. It
    fails where labelling depended on something else (one clinic, one year). Positive and
    unlabelled data do not distinguish steep labelling from overlapping classes: the interval
    of the count shows how much that leaves open, and ``fit`` warns if it is much
    (:class:`~probgap.exceptions.UnreliableFitWarning`). A known ``class_prior`` settles it.

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
        The value of ``y`` that marks a labelled positive. ``None`` takes the
        greater of the two; between two strings such as "fraud" and "ok", of which none
        is known to mean unlabelled, ``fit`` asks for it.
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds and estimators. The same integer gives the same bits for any ``n_jobs``.
    n_jobs : int, default=None
        Number of learners of the default to fit at once, in threads; with another
        ``gap_estimator``, number of its folds.
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
        for labelled samples, P(Y=1 | x, unlabelled) for the others. The log-odds of
        ``posterior_`` are shifted, all by the same number, so that these (weighted, if
        samples represent several) add up to ``reading_.n_hidden`` exactly, as they do with
        a known ``class_prior``. :meth:`Reading.probability_range
        <probgap.reading.Reading.probability_range>` gives their ranges.
    reading_ : Reading
        The posterior of any score, the count of hidden positives and the class prior, each
        with its 90% interval. Every count that is shown comes from here.
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
    n_features_in_, feature_names_in_ : int, ndarray
        Features seen in ``fit``, and their names if they were all strings.

    Warns
    -----
    UnreliableFitWarning
        By ``fit``, if the method may not work on the data: labels look random, too few
        positives are labelled, the task is unlike all simulated ones, or two very different
        counts are both possible.
    BoundaryWarning
        By ``fit``, if the boundary that was found had to be moved.

    See Also
    --------
    PGPUClassifierCV : The boundary by cross-validation over a grid.
    probgap.reading.read : Boundary, posterior and count from any scores.

    Notes
    -----
    ``predict_proba`` is about the true label. If the final classifier has no probabilities
    of its own, its decision is put through a sigmoid that is 1/2 at 0 and whose slope makes
    it agree best with the posterior of step 2. ``research/reading/measure.py`` measures how often
    the interval of the count holds on simulated tasks, ``benchmarks/default.py`` on real
    tables with labels hidden in many ways.

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

    def __init__(
        self,
        *,
        boundary: Literal["auto"] | float | BoundaryRule = "auto",
        class_prior: float | tuple[float, float] | None = None,
        gap_estimator: Any = None,
        relabelling: Literal["auto", "expectation", "corollary", "theorem"] = "auto",
        keep_labelled: bool = True,
        reweight: KernelMeanMatching | None = None,
        estimator: Any = None,
        device: str | None = None,
        cv: Any = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.boundary = boundary
        self.class_prior = class_prior
        self.gap_estimator = gap_estimator
        self.relabelling = relabelling
        self.keep_labelled = keep_labelled
        self.reweight = reweight
        self.estimator = estimator
        self.device = device
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """Return the paper's Algorithm 1 to the letter.

        In-sample Platt-scaled gaps, the mean of the three smallest gaps of labelled
        positives as the boundary, Corollary 1 by the gap alone, kernel mean matching, and
        a weighted support vector machine.

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
        return cls(boundary=MeanSmallest(), **paper_steps()).set_params(**parameters)

    def _fit(
        self,
        samples: Matrix,
        labels: ObservedLabels,
        rng: Generator,
        weight: Vector | None = None,
    ) -> None:
        steps = self._choose_steps(samples.shape[0])
        self._fit_checked(in_double(samples, self.device), labels, steps, rng, weight)

    @fit_context(prefer_skip_nested_validation=False)
    def _fit_weighted(self, X: Matrix, y: ArrayLike, weight: Vector) -> Self:
        """Fit to rows drawn from a larger table.

        ``weight`` is the number of rows that each one represents, constant within the
        labelled and within the unlabelled ones. It is no parameter of ``fit``, where
        scikit-learn expects an integer weight to do what repeated rows do: forests and
        folds draw rows, so that repeated ones lead to other trees.
        """
        rng = as_generator(self.random_state)
        self._fit(*self._check_fit(X, y), rng, weight)
        return self

    def _choose_steps(self, n_samples: int) -> Steps:
        return choose_steps(self, n_samples, self.boundary, self.cv)
