"""The steps of the algorithm, and which of them suits a classifier and its data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV

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
    map_training_samples,
    scale_gamma,
    usual_landmarks,
)
from probgap._core.mixture import MixedClassifier
from probgap._core.runtime import draw_seed, one_thread, stage
from probgap._core.svm import FastSVC, NystroemSVM
from probgap._core.types import Mask, Matrix, Vector
from probgap._device.estimators import DeviceSVM
from probgap.boundary import (
    Boundary,
    answer_by_rules,
    check_rule,
    count_sides,
    estimate_boundary,
    weigh_candidates,
)
from probgap.gap import MixedGapEstimator, ObservedGapEstimator
from probgap.gap.base import GapClassifier
from probgap.reading import Reading, read
from probgap.relabel import (
    Relabelling,
    hidden_probability,
    relabel,
    relabel_in_expectation,
)
from probgap.reweight import KernelMeanMatching, KMMResult

Rule = Literal["expectation", "corollary", "theorem"]

# Labelled positives above this quantile of their gaps count as certain positives.
_CERTAIN_QUANTILE = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What a final classifier is fitted to.

    Attributes
    ----------
    samples : {ndarray, sparse matrix} of shape (n_samples, n_features)
        All samples.
    share : ndarray of shape (n_samples,)
        How much of each counts as positive; NaN for one left out.
    weight : ndarray of shape (n_samples,)
        What each counts for.
    labelled : ndarray of shape (n_samples,)
        Which of them are labelled.
    features : TrainingFeatures or None
        Their kernel features, where there are any.
    """

    samples: Matrix
    share: Vector
    weight: Vector
    labelled: Mask
    features: TrainingFeatures | None


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Samples beside the boundary.

    Attributes
    ----------
    boundary : float
        The boundary.
    gap : ndarray of shape (n_samples,)
        The observed gap.
    posterior : ndarray of shape (n_samples,)
        P(Y=1 | x).
    hidden : ndarray of shape (n_samples,)
        P(Y=1 | x, unlabelled).
    """

    boundary: float
    gap: Vector
    posterior: Vector
    hidden: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A boundary, and how probable a positive is on either side of it.

    Attributes
    ----------
    boundary : Boundary
        The boundary.
    clearest : float
        The observed gap from which on samples are certainly positive.
    reading : Reading or None
        What says so in their place, where the boundary was read off the scores.
    """

    boundary: Boundary
    clearest: float
    reading: Reading | None

    def place(self, gap: Vector, scores: Vector) -> Placed:
        """Place samples by their observed gap and its log-odds."""
        value, reading = self.boundary.value, self.reading
        if reading is not None:
            hidden = reading.hidden_probability(scores)
            return Placed(value, gap, reading.posterior(scores), hidden)
        posterior = posterior_from_gap(gap, value, self.clearest)
        return Placed(value, gap, posterior, hidden_probability(gap, posterior))


@dataclass(frozen=True, eq=False)
class Steps:
    """What each step of the algorithm does; made by :func:`choose_steps`.

    Attributes
    ----------
    gap : GapClassifier
        Unfitted estimator of the observed gap.
    boundary : "auto", float or BoundaryRule
        Where the boundary comes from.
    class_prior : float, tuple of float or None
        What is known of the share of positives.
    rule : {"expectation", "corollary", "theorem"}
        How to relabel.
    keep_labelled : bool
        Whether labelled positives stay positive.
    reweight : KernelMeanMatching or None
        How to weight what was chosen.
    final : object
        Unfitted final classifier.
    fit_final : callable
        Fits it to shares.
    n_landmarks : int or None
        Landmarks of kernel features that stand in for kernels; None for none.
    device : str or None
        torch's name of the device that solves.
    verbose : int
        Whether to report progress.
    """

    gap: GapClassifier
    boundary: Any
    class_prior: Any
    rule: Rule
    keep_labelled: bool
    reweight: KernelMeanMatching | None
    final: Any
    fit_final: Callable[[Any, Shares], None]
    n_landmarks: int | None
    device: str | None
    verbose: int

    def estimate_gap(
        self,
        samples: Matrix,
        labelled: Mask,
        weight: Vector | None,
        rng: np.random.Generator,
    ) -> GapClassifier:
        """Step 1: estimate how likely each sample is to be labelled."""
        gap: GapClassifier = clone_with_seed(self.gap, rng)
        with stage(self.verbose, "who is labelled"):
            gap.fit(samples, labelled)
        if weight is not None:
            gap._stand_for(weight, labelled)
        return gap

    def map_features(
        self, samples: Matrix, labelled: Mask, rng: np.random.Generator
    ) -> TrainingFeatures | None:
        """Map samples to features that stand in for kernels, where these are used."""
        if self.n_landmarks is None:
            return None
        seed, gamma = draw_seed(rng), scale_gamma(samples)
        with one_thread(), stage(self.verbose, "kernel features"):
            kernel = KernelFeatures.fit(samples, self.n_landmarks, gamma, seed)
            return map_training_samples(kernel, samples, labelled, seed)

    def read(
        self, gap: GapClassifier, labelled: Mask, weight: Vector | None
    ) -> Reading | None:
        """Read off the scores how many positives are hidden."""
        scores = gap._training_log_odds()
        return read(
            scores, labelled, class_prior=self.class_prior, sample_weight=weight
        )

    def place_boundary(
        self,
        gap: GapClassifier,
        labelled: Mask,
        reading: Reading | None,
        weight: Vector | None,
        rng: np.random.Generator,
    ) -> Curve:
        """Step 2: place the boundary."""
        observed = gap.observed_gap_
        clearest = clearest_gap(observed, labelled)
        if reading is None or not is_automatic(self.boundary):
            boundary = estimate_boundary(
                observed,
                labelled,
                rule=self.boundary,
                random_state=rng,
                sample_weight=weight,
            )
            return Curve(boundary, clearest, None)
        value, spread = reading.boundary, reading.boundary_spread
        boundary = weigh_candidates(
            count_sides(observed, value, "auto", spread, weight),
            observed,
            labelled,
            {"auto": value, **answer_by_rules(observed[labelled])},
            weight,
        )
        return Curve(boundary, clearest, reading)

    def relabel(self, placed: Placed, labelled: Mask) -> Relabelling:
        """Step 3: label the samples whose class is settled, or share out the others."""
        keep = self.keep_labelled
        result = relabel_rows(placed, labelled, self.rule, keep_labelled=keep)
        if result.n_positive > 0 or self.rule == "expectation":
            return result
        warnings.warn(
            "keep_labelled must be True where no sample has a gap above 0, or no "
            "positive is left to learn from. Got False; the labelled positives are "
            "kept. Fewer than half of the clearest positives seem to be labelled.",
            ProbgapWarning,
            stacklevel=2,
        )
        return relabel_rows(placed, labelled, self.rule, keep_labelled=True)

    def reweigh(
        self,
        samples: Matrix,
        chosen: Mask,
        weight: Vector | None,
        features: TrainingFeatures | None,
    ) -> tuple[KMMResult | None, Vector]:
        """Step 4: weight the chosen samples so that they stand for all."""
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
        return matching, spread_weights(chosen, matching, weight)

    def classify(self, data: Shares, curve: Curve, rng: np.random.Generator) -> Any:
        """Step 5: fit the weighted classifier."""
        del curve  # samples that are not here would need it
        classifier = clone_with_seed(self.final, rng)
        with stage(self.verbose, "final classifier"):
            self.fit_final(classifier, data)
        return classifier


def clearest_gap(observed_gap: Vector, labelled: Mask) -> float:
    """Return the gap from which on labelled positives count as certain."""
    return float(np.quantile(observed_gap[labelled], _CERTAIN_QUANTILE))


def posterior_from_gap(
    observed_gap: Vector, boundary: float, clearest: float
) -> Vector:
    """Estimate P(Y=1 | x) from the observed gap and the boundary.

    Three points of the curve are known: where the true gap is -1 so is the observed
    one; where it is 0 the observed one is the boundary; and where it is 1 the
    observed one is that of the clearest labelled positives. Between them the curve
    is taken as straight.
    """
    middle = min(max(boundary, -1.0 + 1e-6), 1.0 - 2e-6)
    knots = [-1.0, middle, max(clearest, middle + 1e-6)]
    return np.interp(observed_gap, knots, [0.0, 0.5, 1.0])


def relabel_rows(
    placed: Placed, labelled: Mask, rule: Rule, *, keep_labelled: bool
) -> Relabelling:
    """Relabel samples by a rule, each by itself."""
    if rule == "expectation":
        return relabel_in_expectation(
            labelled, placed.posterior, placed.hidden, keep_labelled=keep_labelled
        )
    lower = placed.boundary
    upper = lower if rule == "theorem" else max(0.0, lower)
    return relabel(
        placed.gap, labelled, lower=lower, upper=upper, keep_labelled=keep_labelled
    )


def spread_weights(
    chosen: Mask, matching: KMMResult | None, weight: Vector | None = None
) -> Vector:
    """Return the weight of each sample: 0 if left out, its own if nothing was matched."""
    found = np.zeros(chosen.size)
    if matching is not None:
        found[chosen] = matching.weights
    else:
        found[chosen] = 1.0 if weight is None else weight[chosen]
    return found


def is_automatic(boundary: object) -> bool:
    """Tell whether the boundary is read off the scores."""
    return isinstance(boundary, str) and boundary == "auto"


def choose_steps(
    model: Any,
    n_samples: int,
    *,
    boundary: Any,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Steps:
    """Choose what suits a classifier's parameters, the number of samples and the device.

    The only place where these matter. ``cv`` and ``n_jobs`` are for gaps out of fold.
    """
    automatic = is_automatic(boundary)
    exact = n_samples <= DEFAULTS.most_exact or model.device is not None
    n_landmarks = None if exact or automatic else usual_landmarks(n_samples)
    rule = model.relabelling
    if rule == "auto":
        # There is nothing to weight where nothing is left out.
        shared = automatic and model.reweight is None
        rule = "expectation" if shared else "corollary"
    final, fit_final = _choose_final(
        model, n_landmarks, n_jobs, verbose, automatic=automatic
    )
    return Steps(
        gap=_choose_gap(model, n_landmarks, cv, n_jobs, verbose),
        boundary=boundary if automatic else check_rule(boundary),
        class_prior=model.class_prior,
        rule=rule,
        keep_labelled=model.keep_labelled,
        reweight=_check_reweight(model.reweight),
        final=final,
        fit_final=fit_final,
        n_landmarks=n_landmarks,
        device=model.device,
        verbose=verbose,
    )


def _check_reweight(reweight: KernelMeanMatching | None) -> KernelMeanMatching | None:
    if reweight is not None:
        reweight._validate_params()
    return reweight


def _choose_gap(
    model: Any, n_landmarks: int | None, cv: Any, n_jobs: int | None, verbose: int
) -> GapClassifier:
    given = model.gap_estimator
    if given is None:
        return MixedGapEstimator(cv=cv, n_jobs=n_jobs)
    if not isinstance(given, GapClassifier):
        require_predict_proba(given, "gap_estimator")
        return ObservedGapEstimator(given, cv=cv, n_jobs=n_jobs)
    gap = clone(given)
    if isinstance(gap, ObservedGapEstimator) and gap.estimator is None:
        # The SVM of the paper, where kernels of all samples fit: here or on a device.
        gap.set_params(device=gap.device or model.device, verbose=verbose)
        if n_landmarks is not None and gap.device is None:
            svm = NystroemSVM(n_components=n_landmarks)
            scaled = CalibratedClassifierCV(svm, method="sigmoid", ensemble=False)
            gap.set_params(estimator=scaled)
    return gap


def _choose_final(
    model: Any,
    n_landmarks: int | None,
    n_jobs: int | None,
    verbose: int,
    *,
    automatic: bool,
) -> tuple[Any, Callable[[Any, Shares], None]]:
    if model.estimator is not None:
        require_sample_weight(model.estimator, "estimator")
        return model.estimator, _fit_copies
    if model.device is not None:
        return DeviceSVM(device=model.device, verbose=verbose), _fit_copies
    if automatic:
        return MixedClassifier(n_jobs=n_jobs), _fit_mixture
    if n_landmarks is None:
        return FastSVC(), _fit_copies
    return NystroemSVM(n_components=n_landmarks), _fit_features


def _fit_copies(classifier: Any, data: Shares) -> None:
    share = round_shares(data.share)
    fit_on_shares(classifier, data.samples, share, data.weight)


def _fit_mixture(classifier: MixedClassifier, data: Shares) -> None:
    classifier.fit_on_shares(data.samples, data.share, data.weight, data.labelled)


def _fit_features(classifier: NystroemSVM, data: Shares) -> None:
    assert data.features is not None  # chosen together
    classifier.fit_on_features(data.features, data.share, data.weight)
