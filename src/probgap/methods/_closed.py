"""Methods that rescale or threshold an estimate of P(s=1 | x)."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from sklearn.model_selection import train_test_split

from probgap._core._sklearn import StrOptions
from probgap._core.checks import (
    Fold,
    ObservedLabels,
    check_predict_input,
    smaller_group,
)
from probgap._core.errors import warn
from probgap._core.estimators import fit_on_shares, require_score
from probgap._core.runtime import RandomStateLike, draw_seed
from probgap._core.types import Mask, Matrix, Vector
from probgap.methods.base import (
    SHARE,
    TINY,
    FinalProbabilities,
    MethodClassifier,
    PriorMethod,
    PropensityMethod,
    score_of,
)


@dataclass(eq=False, repr=False, kw_only=True)
class ElkanNotoClassifier(FinalProbabilities):
    """Divide P(s=1 | x) by the rate at which positives are labelled.

    It assumes that labels are missing completely at random: each positive is labelled with
    the same probability c. Then P(Y=1 | x) = P(s=1 | x) / c [1]_. If easy positives are
    labelled first, c is too high for the hard ones, which are then predicted negative.

    Parameters
    ----------
    form : {"scaling", "weighted"}, default="scaling"
        "scaling" divides by c. "weighted" trains a second classifier in which each
        unlabelled sample is a positive with weight w(x) = (1 - c) / c * p / (1 - p),
        p = P(s=1 | x), and a negative with weight 1 - w(x).
    rule : {"e1", "e2", "e3"}, default="e1"
        The paper's estimator of c on held-out samples: e1 is the mean of P(s=1 | x) over
        labelled ones, e2 their share of the sum of P(s=1 | x) over all, e3 the maximum.
    hold_out : float, default=0.2
        Share of the samples held out to estimate c.
    estimator : classifier whose fit takes sample_weight, default=None
        The second classifier of the weighted form. ``None`` takes an RBF SVM.
    gap_estimator : classifier with predict_proba, or gap estimator, default=None
        Estimates P(s=1 | x). ``None`` takes a Platt-scaled SVM. Probabilities of training
        samples are in-sample, unless a gap estimator gives others.
    pos_label, random_state : object
        As in :class:`NaiveClassifier`; the seed is also that of the split.

    Attributes
    ----------
    label_frequency_ : float
        The estimate of c.
    gap_estimator_ : ObservedGapEstimator
        The fitted estimator of P(s=1 | x).
    estimator_ : object or None
        The second classifier; None in the scaling form.

    References
    ----------
    .. [1] Elkan, Noto, "Learning Classifiers from Only Positive and Unlabeled Data",
       KDD 2008.

    Examples
    --------
    >>> from probgap.methods import ElkanNotoClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("constant", 0.3), random_state=1)
    >>> model = ElkanNotoClassifier(random_state=0).fit(X, s)
    >>> bool(model.score(X, y_true) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MethodClassifier._parameter_constraints,
        "form": [StrOptions({"scaling", "weighted"})],
        "rule": [StrOptions({"e1", "e2", "e3"})],
        "hold_out": [SHARE],
    }

    form: Literal["scaling", "weighted"] = "scaling"
    rule: Literal["e1", "e2", "e3"] = "e1"
    hold_out: float = 0.2
    estimator: Any = None
    gap_estimator: Any = None
    pos_label: object = None
    random_state: RandomStateLike = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        labelled = labels.labelled
        train, held_out = self._split(labelled, rng)
        first = self._fit_gap(samples[train], labelled[train], rng)
        chance = first.predict_proba(samples[held_out])[:, 1]
        self.label_frequency_ = label_frequency(chance, labelled[held_out], self.rule)
        self.gap_estimator_ = self._fit_gap(samples, labelled, rng)
        self.estimator_ = None
        if self.form == "weighted":
            p = 0.5 * (1.0 + self.gap_estimator_.observed_gap_)
            share = unlabelled_positive_chance(p, self.label_frequency_)
            share[labelled] = 1.0
            if share.min() >= 1.0:
                warn(
                    "The weighted form leaves no negatives to learn from: by the label "
                    f"frequency of {self.label_frequency_:.3g} every unlabelled sample "
                    "is positive. The quarter of them least likely to be labelled is "
                    "taken as negative. Try form='scaling'."
                )
                share[~labelled & (p <= np.quantile(p[~labelled], 0.25))] = 0.0
            self.estimator_ = self._make_final(rng)
            fit_on_shares(self.estimator_, samples, share, np.ones(labelled.size))

    def _split(self, labelled: Mask, rng: Generator) -> Fold:
        rows, smallest = np.arange(labelled.size), smaller_group(labelled)
        if smallest < 4:
            return rows, rows
        # Keep two of each kind on either side, whatever hold_out is.
        size = float(np.clip(self.hold_out, 2.0 / smallest, 1.0 - 2.0 / smallest))
        how = {"test_size": size, "stratify": labelled, "random_state": draw_seed(rng)}
        return tuple(train_test_split(rows, **how))

    def _gives_probabilities(self) -> bool:
        return self.form == "scaling" or super()._gives_probabilities()

    def _chance(self, X: Matrix) -> Vector:
        if self.form == "weighted":
            return super()._chance(X)
        return 0.5 * (1.0 + self._decide(X))

    def _decide(self, X: Matrix) -> Vector:
        if getattr(self, "estimator_", None) is not None:
            return super()._decide(X)
        samples = check_predict_input(self, X)
        chance = self.gap_estimator_.predict_proba(samples)[:, 1]
        return 2.0 * np.minimum(chance / self.label_frequency_, 1.0) - 1.0


def label_frequency(chance: Vector, labelled: Mask, rule: str) -> float:
    """Estimate c = P(s=1 | Y=1) from P(s=1 | x) of held-out samples."""
    if rule == "e1":
        estimate = chance[labelled].mean()
    elif rule == "e2":
        estimate = chance[labelled].sum() / max(chance.sum(), TINY)
    else:
        estimate = chance.max()
    return float(np.clip(estimate, TINY, 1.0))


def unlabelled_positive_chance(chance: Vector, frequency: float) -> Vector:
    """Return w(x) = P(Y=1 | x, unlabelled), clipped to [0, 1]."""
    odds = chance / np.maximum(1.0 - chance, TINY)
    return np.clip((1.0 - frequency) / frequency * odds, 0.0, 1.0)


@dataclass(eq=False, repr=False, kw_only=True)
class PGlinClassifier(PropensityMethod):
    r"""Take the root of P(s=1 | x), relative to its maximum.

    It assumes that a positive is labelled with a probability proportional to P(Y=1 | x), and
    that some samples are certainly positive [1]_. With M the maximum of P(s=1 | x),

    .. math::
        P(Y=1 \mid x) = \sqrt{P(s=1 \mid x) / M}, \qquad
        P(s=1 \mid x, Y=1) = \sqrt{M \, P(s=1 \mid x)}.

    If labels are missing at random, probabilities strictly between 0 and 1 are too high; if
    labelling is steeper, too low. M rests on the single sample with the highest estimate.

    Parameters
    ----------
    gap_estimator, pos_label, random_state : object
        As in :class:`ElkanNotoClassifier`.

    Attributes
    ----------
    largest_ : float
        M, the maximum of P(s=1 | x) over the training samples.
    gap_estimator_ : ObservedGapEstimator or MixedGapEstimator
        The fitted estimator of P(s=1 | x).

    References
    ----------
    .. [1] Gerych, Hartvigsen, Buquicchio, Agu, Rundensteiner, "Recovering the Propensity
       Score from Biased Positive Unlabeled Data", AAAI 2022.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.methods import PGlinClassifier
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGlinClassifier(random_state=0).fit(X, s)
    >>> bool(model.score(X, y_true) > 0.9)
    True
    """

    gap_estimator: Any = None
    pos_label: object = None
    random_state: RandomStateLike = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        self.gap_estimator_ = self._fit_gap(samples, labels.labelled, rng)
        largest = 0.5 * (1.0 + self.gap_estimator_.observed_gap_.max())
        self.largest_ = float(max(largest, TINY))

    def _share_of_largest(self, samples: Matrix) -> Vector:
        chance = self.gap_estimator_.predict_proba(samples)[:, 1]
        return np.minimum(chance / self.largest_, 1.0)

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        return 2.0 * np.sqrt(self._share_of_largest(samples)) - 1.0

    def _propensity(self, samples: Matrix) -> Vector:
        return self.largest_ * np.sqrt(self._share_of_largest(samples))


@dataclass(eq=False, repr=False)
class PUSBClassifier(PriorMethod):
    """Call as many samples positive as the class prior says, by rank.

    The threshold of a score that separates labelled from unlabelled samples is its
    1 - prior quantile over the training samples [1]_. It assumes that P(s=1 | x) ranks
    samples as P(Y=1 | x) does, which covers labels at random and easy positives labelled
    first. It fails where labelling depends on something else, and the threshold is only as
    good as the class prior.

    Parameters
    ----------
    class_prior : float, default=None
        Share of all samples that are positive, labelled or not. ``None`` estimates it by
        :func:`probgap.reading.read` from held-out scores.
    gap_estimator : classifier with decision_function or predict_proba, default=None
        Scores samples, fitted to labelled against unlabelled. ``None`` takes an RBF SVM.
    cv, pos_label, random_state, n_jobs : object
        As in :class:`NatarajanClassifier`; ``cv`` makes the held-out scores, with
        ``n_jobs`` fits at once.

    Attributes
    ----------
    class_prior_, estimate_ : float, HiddenEstimate or None
        The class prior that was used, and its estimate; None if it was given.
    threshold_ : float
        Score above which a sample is positive; samples with this very score are not.
    gap_estimator_ : object
        The fitted classifier.

    References
    ----------
    .. [1] Kato, Teshima, Honda, "Learning from Positive and Unlabeled Data with a
       Selection Bias", ICLR 2019. Their score is a density ratio.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.methods import PUSBClassifier
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PUSBClassifier(class_prior=0.5, random_state=0).fit(X, s)
    >>> bool(model.score(X, y_true) > 0.9)
    True
    """

    class_prior: float | None = None
    _: KW_ONLY
    gap_estimator: Any = None
    cv: Any = None
    pos_label: object = None
    random_state: RandomStateLike = None
    n_jobs: int | None = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        scores = self._held_out_scores(samples, labels, rng)
        self._find_prior(labels.labelled, lambda: scores)
        n_above = round(self.class_prior_ * scores.size)
        n_above = min(max(n_above, 1), scores.size - 1)
        ordered = np.sort(scores)[::-1]
        self.threshold_ = float(0.5 * (ordered[n_above - 1] + ordered[n_above]))
        model = self._make("gap_estimator", rng, require_score)
        self.gap_estimator_ = model.fit(samples, labels.labelled.astype(np.int8))

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        return score_of(self.gap_estimator_, samples) - self.threshold_
