"""Algorithm 1 of the paper, and its steps."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV

from probgap._core._sklearn import check_parameters
from probgap._core.defaults import DEFAULTS
from probgap._core.errors import ProbgapWarning
from probgap._core.estimators import (
    clone_with_seed,
    fit_on_shares,
    require_predict_proba,
    require_sample_weight,
    round_shares,
)
from probgap._core.kernels import (
    KernelFeatures,
    TrainingFeatures,
    default_n_landmarks,
    map_training_samples,
    scale_gamma,
)
from probgap._core.mixture import MixedClassifier
from probgap._core.runtime import draw_seed, one_thread, stage
from probgap._core.svm import FastSVC, NystroemSVM
from probgap._core.types import Mask, Matrix, Vector
from probgap._device.estimators import DeviceSVM
from probgap.boundary import (
    Boundary,
    check_rule,
    describe_boundary,
    estimate_boundary,
)
from probgap.gap import GapClassifier, MixedGapEstimator, ObservedGapEstimator
from probgap.reading import Reading, read
from probgap.relabel import (
    Relabelling,
    hidden_probability,
    relabel,
    relabel_in_expectation,
)
from probgap.reweight import KMMResult

Generator = np.random.Generator
Rule = Literal["expectation", "corollary", "theorem"]

# Labelled positives above this quantile of their gaps count as certain positives.
_CERTAIN_QUANTILE = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class FittedSteps:
    """The results of all steps."""

    gap: GapClassifier
    reading: Reading
    curve: PosteriorCurve
    posterior: Vector  # P(Y=1 | x)
    relabelling: Relabelling
    matching: KMMResult | None
    sample_weight: Vector
    classifier: Any


def fit_pgpu(
    samples: Matrix,
    labelled: Mask,
    steps: Steps,
    rng: Generator,
    weight: Vector | None = None,
) -> FittedSteps:
    """Fit to samples of which some positives are labelled.

    ``weight`` is the number of samples that each one represents, if they were drawn from
    a larger table; it must be constant within the labelled and within the others.
    """
    gap = steps.estimate_gap(samples, labelled, weight, rng)  # 1  who gets labelled
    features = steps.map_features(samples, labelled, rng)
    scores, prior = gap._training_log_odds(), steps.class_prior
    reading = read(scores, labelled, class_prior=prior, sample_weight=weight)
    curve = steps.place_boundary(gap, labelled, reading, weight, rng)  # 2  boundary
    relabelling = steps.relabel(curve, gap, labelled)  # 3  Bayesian optimal relabelling
    matching, weights = steps.reweigh(  # 4  kernel mean matching
        samples, relabelling.decided, weight, features
    )
    share = relabelling.positive_share
    data = SoftLabels(samples, share, weights, labelled, features)
    classifier = steps.classify(data, rng)  # 5  weighted classifier
    posterior = curve.posterior(gap.observed_gap_, scores)
    return FittedSteps(
        gap, reading, curve, posterior, relabelling, matching, weights, classifier
    )


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorCurve:
    """A boundary, and P(Y=1 | x) as a function of the observed gap.

    Without a reading, three points of the curve are known: a true gap of -1 has an observed
    gap of -1, one of 0 has the boundary, and one of 1 has the gap of the clearest labelled
    positives. Between them the curve is interpolated linearly.
    """

    boundary: Boundary
    clearest: float  # the observed gap above which samples are certainly positive
    reading: Reading | None  # gives the posterior if the boundary was read off scores

    def posterior(self, gap: Vector, scores: Vector) -> Vector:
        """Return P(Y=1 | x) of samples, given their observed gaps and log-odds."""
        if self.reading is not None:
            return self.reading.posterior(scores)
        middle = min(max(self.boundary.value, -1.0 + 1e-6), 1.0 - 2e-6)
        knots = [-1.0, middle, max(self.clearest, middle + 1e-6)]
        return np.interp(gap, knots, [0.0, 0.5, 1.0])

    def relabel(
        self,
        gap: Vector,
        scores: Vector,
        labelled: Mask,
        rule: Rule,
        *,
        keep_labelled: bool,
    ) -> Relabelling:
        """Relabel samples by a rule."""
        if rule != "expectation":
            lower = self.boundary.value
            upper = lower if rule == "theorem" else max(0.0, lower)
            return relabel(
                gap, labelled, lower=lower, upper=upper, keep_labelled=keep_labelled
            )
        eta = self.posterior(gap, scores)
        if self.reading is None:
            hidden = hidden_probability(gap, eta)
        else:
            hidden = self.reading.hidden_probability(scores)
        return relabel_in_expectation(
            labelled, eta, hidden, keep_labelled=keep_labelled
        )


@dataclass(frozen=True, slots=True, eq=False)
class SoftLabels:
    """The training data of the final classifier."""

    samples: Matrix
    share: Vector  # weight of each sample as a positive, 0 to 1; NaN if it is left out
    weight: Vector
    labelled: Mask
    features: TrainingFeatures | None


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The settings of each step of the algorithm; made by :func:`choose_steps`."""

    gap: GapClassifier  # unfitted, like ``final``
    boundary: Any  # "auto", a rule or a number
    class_prior: Any
    rule: Rule
    keep_labelled: bool
    reweight: Any  # KernelMeanMatching, or None
    final: Any
    n_landmarks: int | None  # of kernel features; None for exact kernels
    device: str | None
    verbose: int

    def estimate_gap(
        self, samples: Matrix, labelled: Mask, weight: Vector | None, rng: Generator
    ) -> GapClassifier:
        """Step 1: estimate how likely each sample is to be labelled."""
        gap = clone_with_seed(self.gap, rng)
        with stage(self.verbose, "who is labelled"):
            gap.fit(samples, labelled)
            if weight is not None:
                gap._correct_odds(weight, labelled)
        return gap

    def map_features(
        self, samples: Matrix, labelled: Mask, rng: Generator
    ) -> TrainingFeatures | None:
        """Compute the kernel features of all samples, if they replace exact kernels."""
        if self.n_landmarks is None:
            return None
        seed, gamma = draw_seed(rng), scale_gamma(samples)
        with one_thread(), stage(self.verbose, "kernel features"):
            kernel = KernelFeatures.fit(samples, self.n_landmarks, gamma, seed)
            return map_training_samples(kernel, samples, labelled, seed)

    def place_boundary(
        self,
        gap: GapClassifier,
        labelled: Mask,
        reading: Reading | None,
        weight: Vector | None,
        rng: Generator,
    ) -> PosteriorCurve:
        """Step 2: place the boundary."""
        observed = gap.observed_gap_
        clearest = float(np.quantile(observed[labelled], _CERTAIN_QUANTILE))
        if reading is None or self.boundary != "auto":
            boundary = estimate_boundary(
                observed,
                labelled,
                rule=self.boundary,
                random_state=rng,
                sample_weight=weight,
            )
            return PosteriorCurve(boundary, clearest, None)
        value, spread = reading.boundary, reading.boundary_spread
        boundary = describe_boundary(
            observed, labelled, value, "auto", spread, weight, {"auto": value}
        )
        return PosteriorCurve(boundary, clearest, reading)

    def relabel(
        self, curve: PosteriorCurve, gap: GapClassifier, labelled: Mask
    ) -> Relabelling:
        """Step 3: label the decided samples, or weight each by its posterior."""
        known = gap.observed_gap_, gap._training_log_odds(), labelled, self.rule
        result = curve.relabel(*known, keep_labelled=self.keep_labelled)
        if result.n_positive > 0 or self.rule == "expectation":
            return result
        warnings.warn(
            "keep_labelled must be True where no sample has a gap above 0, or no "
            "positive is left to learn from. Got False; the labelled positives are "
            "kept. Fewer than half of the clearest positives seem to be labelled.",
            ProbgapWarning,
            stacklevel=2,
        )
        return curve.relabel(*known, keep_labelled=True)

    def reweigh(
        self,
        samples: Matrix,
        chosen: Mask,
        weight: Vector | None,
        features: TrainingFeatures | None,
    ) -> tuple[KMMResult | None, Vector]:
        """Step 4: weight the chosen samples so that they represent all."""
        matching = None
        if self.reweight is not None and (weight is None or not chosen.all()):
            with stage(self.verbose, "kernel mean matching"):
                matching = self.reweight.match(
                    samples,
                    chosen,
                    weight=weight,
                    features=features,
                    device=self.device,
                    verbose=self.verbose,
                )
        weights = np.zeros(chosen.size)
        if matching is not None:
            weights[chosen] = matching.weights
        else:
            weights[chosen] = 1.0 if weight is None else weight[chosen]
        return matching, weights

    def classify(self, data: SoftLabels, rng: Generator) -> Any:
        """Step 5: fit the weighted classifier."""
        classifier = clone_with_seed(self.final, rng)
        with stage(self.verbose, "final classifier"):
            return fit_final(classifier, data)


def choose_steps(model: Any, n_samples: int, boundary: Any, cv: Any = None) -> Steps:
    """Choose the steps by a classifier's parameters and the number of samples.

    No other code branches on these. ``cv`` is for out-of-fold gaps.
    """
    automatic = isinstance(boundary, str) and boundary == "auto"
    exact = n_samples <= DEFAULTS.most_rows or model.device is not None
    n_landmarks = None if exact or automatic else default_n_landmarks(n_samples)
    rule = model.relabelling
    if rule == "auto":
        # "expectation" leaves nothing out, so that there would be nothing to reweight.
        shared = automatic and model.reweight is None
        rule = "expectation" if shared else "corollary"
    if model.reweight is not None:
        check_parameters(model.reweight)
    return Steps(
        gap=_choose_gap(model, n_landmarks, cv),
        boundary=boundary if automatic else check_rule(boundary),
        class_prior=model.class_prior,
        rule=rule,
        keep_labelled=model.keep_labelled,
        reweight=model.reweight,
        final=_choose_final(model, n_landmarks, automatic=automatic),
        n_landmarks=n_landmarks,
        device=model.device,
        verbose=model.verbose,
    )


def _choose_gap(model: Any, n_landmarks: int | None, cv: Any) -> GapClassifier:
    given = model.gap_estimator
    if given is None:
        return MixedGapEstimator(cv=cv, n_jobs=model.n_jobs)
    if not isinstance(given, GapClassifier):
        require_predict_proba(given, "gap_estimator")
        return ObservedGapEstimator(given, cv=cv, n_jobs=model.n_jobs)
    gap = clone(given)
    if isinstance(gap, ObservedGapEstimator) and gap.estimator is None:
        # The SVM of the paper: with an exact kernel, on a device if given, or features.
        gap.set_params(device=gap.device or model.device, verbose=model.verbose)
        if n_landmarks is not None and gap.device is None:
            svm = NystroemSVM(n_components=n_landmarks)
            scaled = CalibratedClassifierCV(svm, method="sigmoid", ensemble=False)
            gap.set_params(estimator=scaled)
    return gap


def _choose_final(model: Any, n_landmarks: int | None, *, automatic: bool) -> Any:
    if model.estimator is not None:
        require_sample_weight(model.estimator, "estimator")
        return model.estimator
    if model.device is not None:
        return DeviceSVM(device=model.device, verbose=model.verbose)
    if automatic:
        return MixedClassifier(n_jobs=model.n_jobs)
    if n_landmarks is None:
        return FastSVC()
    return NystroemSVM(n_components=n_landmarks)


def fit_final(classifier: Any, data: SoftLabels) -> Any:
    """Fit a final classifier: on soft labels if it takes them, or else on weighted copies."""
    share, weight = data.share, data.weight
    if isinstance(classifier, MixedClassifier):
        return classifier.fit_on_shares(data.samples, share, weight, data.labelled)
    if isinstance(classifier, NystroemSVM) and data.features is not None:
        return classifier.fit_on_features(data.features, share, weight)
    fit_on_shares(classifier, data.samples, round_shares(share), weight)
    return classifier
