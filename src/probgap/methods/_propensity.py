"""Methods with a labelling propensity for each sample: known, or learnt."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.sparse import vstack as stack_sparse
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from probgap._core._sklearn import HasMethods, Interval, check_parameters
from probgap._core.checks import ObservedLabels, check_predict_input
from probgap._core.errors import refuse, warn
from probgap._core.estimators import require_predict_proba, require_sample_weight
from probgap._core.runtime import RandomStateLike, as_generator
from probgap._core.types import Mask, Matrix, Vector
from probgap.methods._risk import NNPUClassifier
from probgap.methods.base import TINY, FinalProbabilities, PropensityMethod
from probgap.reading import read


@dataclass(eq=False, repr=False)
class PropensityWeightedClassifier(FinalProbabilities):
    r"""Weight labelled samples by the inverse of their known propensity.

    The propensity e(x) = P(s=1 | x, Y=1) is the probability that a positive like x is
    labelled. A labelled sample stands for 1 / e positives, of which 1 / e - 1 are among the
    unlabelled ones: the average of

    .. math::
        s \left[ l(1, g) / e + (1 - 1 / e) \, l(0, g) \right] + (1 - s) \, l(0, g)

    is an unbiased estimate of the risk on true labels [1]_. It assumes that e is known and
    above 0 for every positive, whatever it depends on; where e is too high, positives like
    that are missed. Small propensities make the estimate noisy.

    Parameters
    ----------
    propensity : float, callable, classifier or None, default=None
        e for all samples; a function of ``X``, as passed to ``fit``; or a fitted classifier
        whose second probability it is, in a ``FrozenEstimator`` if this object is to be
        cloned. What is passed to ``fit`` takes precedence. ``None`` takes one rate for all, the
        share of labelled samples over the class prior by :func:`probgap.reading.read`.
    estimator : NNPUClassifier or classifier whose fit takes sample_weight, default=None
        :class:`NNPUClassifier` minimises the risk above. Other classifiers cannot take
        negative weights: instead, all unlabelled samples get the same weight below 1, so
        that only the total weight of negatives is right. ``None`` takes ``NNPUClassifier()``.
    pos_label, random_state : object
        As in :class:`NaiveClassifier`.

    Attributes
    ----------
    class_prior_ : float
        Share of positives by the propensities: the sum of 1 / e of labelled samples over
        the number of samples.
    estimator_ : object
        The fitted classifier.

    References
    ----------
    .. [1] Bekker, Robberechts, Davis, "Beyond the Selected Completely At Random Assumption
       for Learning from Positive and Unlabeled Data", ECML PKDD 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.datasets import make_square
    >>> from probgap.methods import PropensityWeightedClassifier
    >>> X, y_true, _ = make_square(400, random_state=0)
    >>> e = np.where(X[:, 0] > 0, 0.8, 0.2)
    >>> s = y_true * (np.random.default_rng(1).random(400) < e)
    >>> model = PropensityWeightedClassifier(random_state=0).fit(X, s, propensity=e)
    >>> bool(model.score(X, y_true) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **FinalProbabilities._parameter_constraints,
        "propensity": [
            Interval(Real, 0, 1, closed="right"),
            callable,
            HasMethods(["predict_proba"]),
            None,
        ],
    }

    propensity: Any = None
    _: KW_ONLY
    estimator: Any = None
    pos_label: object = None
    random_state: RandomStateLike = None

    def fit(self, X: Matrix, y: ArrayLike, propensity: ArrayLike | None = None) -> Self:
        """Fit to observed labels with known propensities.

        Parameters
        ----------
        X, y : object
            Samples and *observed* labels, as in :meth:`NaiveClassifier.fit`.
        propensity : array-like of shape (n_samples,), default=None
            Probability that each sample, if positive, is labelled. Only those of labelled
            samples are used, which must be above 0. ``None`` takes the parameter.

        Returns
        -------
        Self
            The fitted estimator.
        """
        check_parameters(self)
        samples, labels = self._check_fit(X, y)
        rng = as_generator(self.random_state)
        known = self._known_propensity(X) if propensity is None else propensity
        self._fit(samples, labels, rng, known)
        return self

    def _known_propensity(self, X: Matrix) -> Any:
        if self.propensity is None or isinstance(self.propensity, Real):
            return self.propensity
        if callable(self.propensity):
            return np.asarray(self.propensity(X), dtype=np.float64)
        check_is_fitted(
            self.propensity,
            msg="propensity must be fitted; in a FrozenEstimator it stays so when cloned. "
            "Got a %(name)s that is not.",
        )
        return self.propensity.predict_proba(X)[:, 1]

    def _fit(
        self, samples: Matrix, labels: ObservedLabels, rng: Generator, known: Any = None
    ) -> None:
        labelled, n = labels.labelled, labels.labelled.size
        if known is None:
            prior = read(self._held_out_scores(samples, labels, rng), labelled)
            known = float(labelled.mean()) / prior.class_prior
        cost = np.zeros(n)
        cost[labelled] = 1.0 / _check_propensity(known, labelled)
        if cost.sum() >= n:
            refuse(
                "propensity must leave room for negatives: the sum of 1 / propensity over "
                f"labelled samples must be below {n}, the number of samples. Got "
                f"{cost.sum():.6g}."
            )
        self.class_prior_ = float(cost.sum()) / n
        if self.estimator is None or isinstance(self.estimator, NNPUClassifier):
            own = self._make("estimator", rng, default=NNPUClassifier)
            self.estimator_ = own._fit_costs(samples, cost / n)
            return
        self.estimator_ = self._make_final(rng)
        as_negative = (n - cost.sum()) / np.count_nonzero(~labelled)
        weight = np.where(labelled, cost, as_negative)
        self.estimator_.fit(samples, labelled.astype(np.int8), sample_weight=weight)

    def _gives_probabilities(self) -> bool:
        own = getattr(self, "estimator_", self.estimator)
        return own is None or hasattr(own, "predict_proba")


def _check_propensity(propensity: Any, labelled: Mask) -> Vector:
    """Return the propensities of labelled samples, which must lie in (0, 1]."""
    each = np.asarray(propensity, dtype=np.float64)
    if each.ndim and each.shape != labelled.shape:
        rule = f"one value for each of the {labelled.size} samples"
        refuse(f"propensity must have {rule}. Got shape {each.shape}.")
    used = np.broadcast_to(each, labelled.shape)[labelled]
    if not ((used > 0.0) & (used <= 1.0)).all():
        refuse(
            "propensity must be above 0 and at most 1 for labelled samples. Got "
            f"{used.min():.6g} to {used.max():.6g}."
        )
    return used


@dataclass(eq=False, repr=False)
class SAREMClassifier(PropensityMethod):
    r"""Learn a classifier and the propensity together, by EM.

    With f(x) = P(Y=1 | x) and e(x) = P(s=1 | x, Y=1), an unlabelled sample is positive with
    probability :math:`f (1 - e) / (1 - f e)`. EM alternates between computing these, and
    fitting f to them as soft labels and e to the observed labels with them as weights [1]_.
    It assumes that labelling depends on some features in a way that the propensity's
    estimator can learn. Labels determine the product f e only, so that f and e are told
    apart by the forms of their estimators, and by features that one of them does not use:
    with the same features and estimators for both, the answer depends on where EM starts.

    As it stands, with logistic regression on all features for both, this is LBE-LF, which
    two of the authors of PGPU gave as its sequel [2]_. Its E- and M-steps are these, but
    for the penalty of logistic regression, which a large ``C`` takes away. The notes have
    its start and its end.

    Parameters
    ----------
    estimator : classifier with predict_proba and sample_weight, default=None
        Learns f. ``None`` takes logistic regression.
    propensity_estimator : classifier with predict_proba and sample_weight, default=None
        Learns e. ``None`` takes logistic regression.
    propensity_features : array-like of int, bool or str, default=None
        Columns that the propensity depends on. ``None`` takes all.
    max_iter : int, default=500
        Maximum number of rounds of EM.
    tol : float, default=1e-5
        EM stops when the mean log-likelihood changes by less than this.
    pos_label, random_state : object
        As in :class:`NaiveClassifier`.

    Attributes
    ----------
    log_likelihood_ : ndarray of shape (n_iter_ + 1,)
        Mean log-likelihood of the observed labels at the start and after each round. It
        never falls if both estimators maximise the likelihood; with a penalty it may.
    posterior_ : ndarray of shape (n_samples,)
        Probability that each training sample is positive given its label.
    n_iter_, converged_ : int, bool
        Rounds of EM, and whether the last one changed the likelihood by less than ``tol``.
    estimator_, propensity_estimator_ : object
        The fitted classifiers.
    propensity_features_ : ndarray of int
        Columns that the propensity depends on.

    Notes
    -----
    EM starts from f fitted to the observed labels, labelled and unlabelled samples having
    the same total weight, and e fitted with f as weights; it ends when the likelihood does
    not change. LBE starts from both fitted to the observed labels alike, takes some steps
    of Adam in place of each M-step, and ends after a number of rounds. Code of it that
    fits e without the weights has no other fixed point than f = 1.

    References
    ----------
    .. [1] Bekker, Robberechts, Davis, "Beyond the Selected Completely At Random Assumption
       for Learning from Positive and Unlabeled Data", ECML PKDD 2019.
    .. [2] Gong, Wang, Liu, Han, You, Yang, Tao, "Instance-Dependent Positive and Unlabeled
       Learning With Labeling Bias Estimation", IEEE TPAMI 44(8), 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.methods import SAREMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y_true = X[:, 0] + X[:, 1] > 0
    >>> s = y_true & (rng.random(600) < np.where(X[:, 2] > 0, 0.9, 0.3))
    >>> model = SAREMClassifier(propensity_features=[2]).fit(X, s)
    >>> bool(model.score(X, y_true) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PropensityMethod._parameter_constraints,
        "propensity_estimator": [HasMethods(["fit"]), None],
        "propensity_features": ["array-like", None],
    }

    estimator: Any = None
    propensity_estimator: Any = None
    _: KW_ONLY
    propensity_features: Any = None
    max_iter: int = 500
    tol: float = 1e-5
    pos_label: object = None
    random_state: RandomStateLike = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        labelled, n = labels.labelled, labels.labelled.size
        self.propensity_features_ = self._find_columns(samples.shape[1])
        seen = samples[:, self.propensity_features_]
        twice = stack_sparse if issparse(samples) else np.vstack
        copies, classes = twice([samples, samples]), np.repeat([1, 0], n)
        needs = require_sample_weight, require_predict_proba
        plain = partial(LogisticRegression, warm_start=True, tol=1e-6, max_iter=1000)
        f = self._make("estimator", rng, *needs, default=plain)
        e = self._make("propensity_estimator", rng, *needs, default=plain)
        # At the start, labelled samples weigh as much in total as unlabelled ones.
        balanced = np.where(labelled, 0.5 / labelled.mean(), 0.5 / (~labelled).mean())
        observed = labelled.astype(np.int8)
        f.fit(samples, observed, sample_weight=balanced)
        share = np.where(labelled, 1.0, f.predict_proba(samples)[:, 1])
        e.fit(seen, observed, sample_weight=share)
        self.converged_, progress = False, []
        while True:
            positive = f.predict_proba(samples)[:, 1]
            propensity = e.predict_proba(seen)[:, 1]
            progress.append(mean_log_likelihood(positive, propensity, labelled))
            share = posterior_given_label(positive, propensity, labelled)
            if len(progress) > 1:
                self.converged_ = abs(progress[-1] - progress[-2]) < self.tol
            if self.converged_ or len(progress) > self.max_iter:
                break
            weight = np.concatenate([share, 1.0 - share])
            f.fit(copies, classes, sample_weight=weight)
            e.fit(seen, observed, sample_weight=share)
        self.estimator_, self.propensity_estimator_ = f, e
        self.log_likelihood_, self.posterior_ = np.array(progress), share
        self.n_iter_ = len(progress) - 1
        if not self.converged_:
            what = f"EM had not converged after {self.n_iter_} rounds. Raise max_iter or tol."
            warn(what, ConvergenceWarning)

    def _find_columns(self, n_features: int) -> NDArray[np.intp]:
        every, wanted = np.arange(n_features), self.propensity_features
        if wanted is None:
            return every
        try:
            keys = np.asarray(wanted)
            if keys.dtype.kind in "UO":
                names = list(getattr(self, "feature_names_in_", ()))
                keys = np.array([names.index(key) for key in keys.tolist()])
            found = every[keys]
        except (IndexError, ValueError):
            found = every[:0]
        if found.size == 0 or found.ndim != 1:
            rule = f"name some of the {n_features} columns of X"
            refuse(f"propensity_features must {rule}. Got {wanted!r}.")
        return found

    def _chance(self, X: Matrix) -> Vector:
        return self.estimator_.predict_proba(check_predict_input(self, X))[:, 1]

    def _decide(self, X: Matrix) -> Vector:
        return 2.0 * self._chance(X) - 1.0

    def _propensity(self, samples: Matrix) -> Vector:
        columns = samples[:, self.propensity_features_]
        return self.propensity_estimator_.predict_proba(columns)[:, 1]


def posterior_given_label(
    positive: Vector, propensity: Vector, labelled: Mask
) -> Vector:
    """Return P(Y=1 | x, s): 1 for labelled samples (the expectation step)."""
    hidden = positive * (1.0 - propensity)
    left = np.maximum(1.0 - positive * propensity, TINY)
    return np.where(labelled, 1.0, np.minimum(hidden / left, 1.0))


def mean_log_likelihood(positive: Vector, propensity: Vector, labelled: Mask) -> float:
    """Return the mean log-probability of the observed labels."""
    chance = np.clip(positive * propensity, TINY, 1.0 - TINY)
    return float(np.mean(xlogy(labelled, chance) + xlogy(~labelled, 1.0 - chance)))
