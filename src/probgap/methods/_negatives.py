"""Methods that take unlabelled samples for negative: all, random ones, reliable ones."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from sklearn.tree import DecisionTreeClassifier

from probgap._core._sklearn import HasMethods, Interval
from probgap._core.checks import ObservedLabels, check_predict_input
from probgap._core.errors import warn
from probgap._core.estimators import require_predict_proba, require_score
from probgap._core.runtime import RandomStateLike
from probgap._core.types import Matrix, Vector
from probgap.methods.base import SHARE, FinalProbabilities, MethodClassifier, score_of


@dataclass(eq=False, repr=False)
class NaiveClassifier(FinalProbabilities):
    """Fit with every unlabelled sample as a negative.

    It assumes that no positive is unlabelled; otherwise it learns to miss positives
    like the unlabelled ones. Fitted on true labels, it shows what complete labels would
    achieve.

    Parameters
    ----------
    estimator : classifier whose fit takes sample_weight, default=None
        ``None`` takes an RBF SVM.
    pos_label : object, default=None
        The value of ``y`` for a labelled positive; the greater if None.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the estimator.

    Attributes
    ----------
    estimator_ : object
        The fitted classifier.

    Examples
    --------
    >>> from probgap.methods import NaiveClassifier
    >>> from probgap.datasets import make_square
    >>> X, y_true, _ = make_square(200, random_state=0)
    >>> bool(NaiveClassifier().fit(X, y_true).score(X, y_true) > 0.95)
    True
    """

    estimator: Any = None
    _: KW_ONLY
    pos_label: object = None
    random_state: RandomStateLike = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        observed = labels.labelled.astype(np.int8)
        self.estimator_ = self._make_final(rng).fit(samples, observed)


@dataclass(eq=False, repr=False)
class PUBaggingClassifier(MethodClassifier):
    """Average classifiers of labelled samples against equally many unlabelled ones.

    Each is fitted on all labelled samples, and on as many unlabelled ones, drawn with
    replacement and taken for negative [1]_. It assumes that few of the unlabelled samples
    are positive, and that labelled positives look like hidden ones; if easy positives were
    labelled first, hard ones get low scores. To load one from a file, pass
    the class ``DecisionTreeClassifier`` in ``trusted``.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        ``None`` takes a decision tree.
    n_estimators : int, default=100
        Number of classifiers.
    pos_label, random_state : object
        As in :class:`NaiveClassifier`.

    Attributes
    ----------
    estimators_ : list
        The fitted classifiers.

    References
    ----------
    .. [1] Mordelet, Vert, "A bagging SVM to learn from positive and unlabeled examples",
       Pattern Recognition Letters, 2014.

    Examples
    --------
    >>> from probgap.methods import PUBaggingClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y, posterior = make_square(300, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PUBaggingClassifier(random_state=0).fit(X, s)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MethodClassifier._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
    }

    estimator: Any = None
    _: KW_ONLY
    n_estimators: int = 100
    pos_label: object = None
    random_state: RandomStateLike = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        known = np.flatnonzero(labels.labelled)
        others = np.flatnonzero(~labels.labelled)
        observed = np.repeat([1, 0], known.size)
        self.estimators_ = []
        for _ in range(self.n_estimators):
            rows = np.append(known, rng.choice(others, known.size))
            one = self._make(
                "estimator", rng, require_predict_proba, default=DecisionTreeClassifier
            )
            self.estimators_.append(one.fit(samples[rows], observed))

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        votes = [one.predict_proba(samples)[:, 1] for one in self.estimators_]
        decision: Vector = 2.0 * np.mean(votes, axis=0) - 1.0
        return decision


@dataclass(eq=False, repr=False)
class SpyClassifier(MethodClassifier):
    """Find reliable negatives with spies, then learn positives against them.

    A first classifier learns labelled samples against unlabelled ones, among which some
    labelled ones, the spies, are put. Unlabelled samples that score below nearly all spies
    are reliable negatives [1]_; a second classifier learns all labelled samples against
    them. It assumes that hidden positives score like labelled ones. If easy positives were
    labelled first, the hard ones score below the spies and are taken for negative.

    Parameters
    ----------
    spy_estimator : classifier with decision_function or predict_proba, default=None
        The first classifier. ``None`` takes an RBF SVM.
    estimator : classifier with decision_function or predict_proba, default=None
        The second classifier. ``None`` takes an RBF SVM.
    spy_share : float, default=0.15
        Share of the labelled samples that become spies, at least one.
    noise : float, default=0.05
        Share of the spies that may score below the threshold.
    pos_label, random_state : object
        As in :class:`NaiveClassifier`.

    Attributes
    ----------
    threshold_ : float
        Score of the first classifier below which an unlabelled sample is negative.
    reliable_negative_ : ndarray of shape (n_samples,)
        True for training samples that the second classifier took as negative.
    estimator_ : object
        The second classifier.

    References
    ----------
    .. [1] Liu, Lee, Yu, Li, "Partially Supervised Classification of Text Documents", ICML
       2002; Liu, Dai, Li, Lee, Yu, "Building Text Classifiers Using Positive and Unlabeled
       Examples", ICDM 2003. Their second step is EM or a sequence of SVMs.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.methods import SpyClassifier
    >>> X, y, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("constant", 0.5), random_state=1)
    >>> model = SpyClassifier(random_state=0).fit(X, s)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MethodClassifier._parameter_constraints,
        "spy_estimator": [HasMethods(["fit"]), None],
        "spy_share": [SHARE],
        "noise": [Interval(Real, 0, 1, closed="left")],
    }

    spy_estimator: Any = None
    estimator: Any = None
    _: KW_ONLY
    spy_share: float = 0.15
    noise: float = 0.05
    pos_label: object = None
    random_state: RandomStateLike = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        known = np.flatnonzero(labels.labelled)
        n_spies = min(max(1, round(self.spy_share * known.size)), known.size - 1)
        spies = rng.choice(known, n_spies, replace=False)
        called = labels.labelled.astype(np.int8)
        called[spies] = 0
        first = self._make("spy_estimator", rng, require_score)
        score = score_of(first.fit(samples, called), samples)
        # At most a share ``noise`` of the spies lies below.
        self.threshold_ = float(np.sort(score[spies])[int(self.noise * n_spies)])
        reliable = ~labels.labelled & (score < self.threshold_)
        if not reliable.any():
            warn(
                "No unlabelled sample scores below the spies. The quarter with the lowest "
                "scores is taken as negative. Try another spy_estimator, or more noise."
            )
            least = np.quantile(score[~labels.labelled], 0.25)
            reliable = ~labels.labelled & (score <= least)
        self.reliable_negative_ = reliable
        used = labels.labelled | reliable
        second = self._make("estimator", rng, require_score)
        observed = labels.labelled[used].astype(np.int8)
        self.estimator_ = second.fit(samples[used], observed)
