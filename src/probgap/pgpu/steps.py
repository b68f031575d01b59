"""Algorithm 1 of the paper, and its steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, xlogy
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV

from probgap._core._sklearn import check_parameters
from probgap._core.defaults import DEFAULTS
from probgap._core.errors import UnreliableFitWarning, refuse, warn
from probgap._core.estimators import (
    clone_with_seed,
    fit_on_shares,
    require_predict_proba,
    require_sample_weight,
    round_shares,
)
from probgap._core.kernel_svm import KernelSVM
from probgap._core.kernels import (
    KernelFeatures,
    TrainingFeatures,
    default_n_landmarks,
    map_training_samples,
    rbf_gamma,
)
from probgap._core.mixture import MixedClassifier
from probgap._core.newton import log_likelihood
from probgap._core.output import count_range, joined
from probgap._core.runtime import draw_seed, one_thread, spread_rows, stage
from probgap._core.svm import FastSVC, NystroemSVM
from probgap._core.types import Mask, Matrix, Rows, Vector
from probgap.boundary import Boundary, check_rule, describe_boundary, estimate_boundary
from probgap.gap import GapClassifier, MixedGapEstimator, ObservedGapEstimator
from probgap.labelling import (
    Declared,
    Labelling,
    LabellingFit,
)
from probgap.pgpu._looked import fit_labelling
from probgap.reading import HiddenEstimate, read
from probgap.relabel import (
    Relabelling,
    hidden_probability,
    relabel,
    relabel_in_expectation,
)
from probgap.reweight import KernelMeanMatching, KMMResult

Generator = np.random.Generator
Rule = Literal["expectation", "corollary", "theorem"]
Width = float | Literal["scale", "auto"]

# Labelled positives above this quantile of their gaps count as certain positives.
_CERTAIN_QUANTILE = 0.9
# Probabilities are clipped here, or certain ones would outweigh any other in an average.
_CERTAIN = 1e-4
_LOG_SLOPES = (-10.0, 10.0)
# Fewest labelled positives, and fewest standard errors by which held-out labels are
# predicted better than by their frequency, without a warning.
_FEWEST_LABELLED = 12
_FEWEST_ERRORS = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class FittedSteps:
    """The results of all steps."""

    gap: GapClassifier
    estimate: HiddenEstimate
    boundary: Boundary
    relabelling: Relabelling
    matching: KMMResult | None
    sample_weight: Vector
    classifier: Any
    averages: bool  # whether two posteriors are averaged, also of new samples
    posterior: Vector  # P(Y=1 | x)
    probability: Vector  # the same, given whether the sample is labelled
    slope: float | None  # from decisions to log-odds; None if there are probabilities
    labelling: Labelling | None  # who was looked at, if columns say so


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """The rows to fit to, and all that is known of them."""

    samples: Matrix
    labelled: Mask
    weight: Vector | None = None  # how many samples each one represents
    negative: Mask | None = None  # checked, and not positive
    group: Rows | None = None  # rows of one group are held out together
    looked: Declared | None = None  # the columns that say who was looked at


def fit_pgpu(rows: TrainingRows, steps: Steps, rng: Generator) -> FittedSteps:
    """Fit to samples of which some positives are labelled."""
    samples, labelled, weight = rows.samples, rows.labelled, rows.weight
    gap = steps.estimate_gap(rows, rng)  # 1  who gets labelled
    gap, looked = steps.find_rates(gap, rows, rng)  # and who was looked at
    features = steps.map_features(samples, labelled, rng)
    scores = gap._training_log_odds()
    estimate = read_gap(scores, looked, rows, steps.class_prior)
    curve = steps.place_boundary(gap, labelled, estimate, weight, rng)  # 2  boundary
    curve = curve if looked is None else replace(curve, missed=looked.missed)
    relabelling = steps.relabel(curve, gap, labelled)  # 3  Bayesian optimal relabelling
    relabelling = relabelling.with_negatives(rows.negative)
    matching, weights = steps.reweigh(  # 4  kernel mean matching
        samples, relabelling.decided, weight, features
    )
    share = relabelling.positive_share
    data = SoftLabels(samples, share, weights, labelled, features, rows.group)
    classifier = steps.classify(data, rng)  # 5  weighted classifier
    averages = steps.averages and estimate.n_unlabelled > 0.0
    by_gap = curve.posterior(gap)
    posterior = steps.average(by_gap, classifier, averages)  # 6  both posteriors
    given = curve.given_label(posterior, gap)
    probability = estimate.share_out(given, labelled, weight, rows.negative)
    return FittedSteps(
        gap=gap,
        estimate=estimate,
        boundary=curve.boundary,
        relabelling=relabelling,
        matching=matching,
        sample_weight=weights,
        classifier=classifier,
        averages=averages,
        posterior=posterior,
        probability=probability,
        slope=fit_slope(classifier, samples, posterior),
        labelling=None
        if looked is None
        else looked.describe(probability, *estimate.n_hidden_interval),
    )


def read_gap(
    scores: Vector, looked: LabellingFit | None, rows: TrainingRows, prior: Any
) -> HiddenEstimate:
    """Estimate the hidden positives from the log-odds of being labelled.

    A row that may have been overlooked counts as labelled so many times as it is likely
    that it would be, and as unlabelled with the rest. One that is known to be negative hides
    nothing.
    """
    labelled, weight = rows.labelled, rows.weight
    if looked is None and rows.negative is None:
        return read(scores, labelled, class_prior=prior, sample_weight=weight)
    weight = np.ones(labelled.size) if weight is None else weight
    missed = labelled.astype(np.float64) if looked is None else looked.missed
    part = np.concatenate([missed, 1.0 - missed]) * np.tile(weight, 2)
    twice, kind = np.tile(scores, 2), np.repeat([True, False], scores.size)
    used = part > 0.0
    estimate = read(twice[used], kind[used], sample_weight=part[used])
    if rows.negative is not None:
        rest = (1.0 - missed) * weight
        estimate = estimate._without_negatives(scores, rest, rows.negative)
    if looked is not None:
        known = float(weight @ labelled)
        estimate = estimate._with_overlooked(known, *looked.count_missed())
    if prior is None or estimate.n_unlabelled == 0.0:
        return estimate
    return estimate.update(class_prior=prior)


def decide(model: Any, samples: Matrix) -> Vector:
    """Return what decides ``predict``, for a fitted model: step 6 for new samples."""
    if model.slope_ is not None:
        return model.estimator_.decision_function(samples)
    positive = model.estimator_.predict_proba(samples)[:, 1]
    if model.averages_:
        scores = model.gap_estimator_._log_odds_at(samples)
        positive = average_chances(positive, model.estimate_.posterior(scores))
    return 2.0 * positive - 1.0


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorCurve:
    """A boundary, and P(Y=1 | x) of the training samples by their observed gap.

    Without an estimate, three points of the curve are known: a true gap of -1 has an observed
    gap of -1, one of 0 has the boundary, and one of 1 has the gap of the clearest labelled
    positives. Between them the curve is interpolated linearly.
    """

    boundary: Boundary
    clearest: float  # the observed gap above which samples are certainly positive
    # Gives the posterior if the boundary was read off scores.
    estimate: HiddenEstimate | None
    # How likely each sample would be labelled, had everybody been looked at alike.
    missed: Vector | None = None

    def posterior(self, gap: GapClassifier) -> Vector:
        """Return P(Y=1 | x)."""
        if self.estimate is not None:
            return self.estimate.posterior(gap._training_log_odds())
        middle = min(max(self.boundary.value, -1.0 + 1e-6), 1.0 - 2e-6)
        knots = [-1.0, middle, max(self.clearest, middle + 1e-6)]
        return np.interp(gap.observed_gap_, knots, [0.0, 0.5, 1.0])

    def hidden_probability(self, gap: GapClassifier) -> Vector:
        """Return P(Y=1 | x, unlabelled)."""
        if self.estimate is not None:
            hidden = self.estimate.hidden_probability(gap._training_log_odds())
        else:
            hidden = hidden_probability(gap.observed_gap_, self.posterior(gap))
        if self.missed is None:
            return hidden
        return self.missed + (1.0 - self.missed) * hidden

    def given_label(self, posterior: Vector, gap: GapClassifier) -> Vector:
        """Return a posterior given whether a sample is labelled, up to a common factor.

        The odds are multiplied by what it tells, in step 2, that somebody who was looked at
        so often is unlabelled. If all were looked at alike, that differs little.
        """
        if self.missed is None:
            return posterior
        before, after = self.posterior(gap), self.hidden_probability(gap)
        odds = [logit(np.clip(p, _CERTAIN, 1.0 - _CERTAIN)) for p in (before, after)]
        prior = logit(np.clip(posterior, _CERTAIN, 1.0 - _CERTAIN))
        return expit(prior + odds[1] - odds[0])


@dataclass(frozen=True, slots=True, eq=False)
class SoftLabels:
    """The training data of the final classifier."""

    samples: Matrix
    share: Vector  # weight of each sample as a positive, 0 to 1; NaN if it is left out
    weight: Vector
    labelled: Mask
    features: TrainingFeatures | None
    group: Rows | None = None


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
    averages: bool  # whether step 6 averages two posteriors
    gamma: Width  # width of the SVMs that None stands for
    n_landmarks: int | None  # of kernel features; None for exact kernels
    strict: bool  # whether to fail where the letter of the algorithm does
    device: str | None
    verbose: int

    def estimate_gap(self, rows: TrainingRows, rng: Generator) -> GapClassifier:
        """Step 1: estimate how likely each sample is to be labelled."""
        gap = clone_with_seed(self.gap, rng)
        with stage(self.verbose, "who is labelled"):
            known = rows.samples, rows.labelled, rows.weight, rows.group
            gap._fit_checked(*known)
        return gap

    def find_rates(
        self, gap: GapClassifier, rows: TrainingRows, rng: Generator
    ) -> tuple[GapClassifier, LabellingFit | None]:
        """Step 1, where columns say who was looked at: make the gap that of all alike.

        The gap is fitted anew to how likely each sample would be labelled, had everybody
        been looked at alike, and the rates of groups again to that.
        """
        if rows.looked is None:
            return gap, None
        with stage(self.verbose, "who was looked at"):
            return fit_labelling(gap, rows, draw_seed(rng))

    def map_features(
        self, samples: Matrix, labelled: Mask, rng: Generator
    ) -> TrainingFeatures | None:
        """Compute the kernel features of all samples, if they replace exact kernels."""
        if self.n_landmarks is None:
            return None
        seed, gamma = draw_seed(rng), rbf_gamma(self.gamma, samples)
        with one_thread(), stage(self.verbose, "kernel features"):
            kernel = KernelFeatures.fit(samples, self.n_landmarks, gamma, seed)
            return map_training_samples(kernel, samples, labelled, seed)

    def place_boundary(
        self,
        gap: GapClassifier,
        labelled: Mask,
        estimate: HiddenEstimate | None,
        weight: Vector | None,
        rng: Generator,
    ) -> PosteriorCurve:
        """Step 2: place the boundary."""
        observed = gap.observed_gap_
        clearest = float(np.quantile(observed[labelled], _CERTAIN_QUANTILE))
        if estimate is None or self.boundary != "auto":
            boundary = estimate_boundary(
                observed,
                labelled,
                rule=self.boundary,
                random_state=rng,
                sample_weight=weight,
                strict=self.strict,
            )
            return PosteriorCurve(boundary, clearest, None)
        value, spread = estimate.boundary, estimate.boundary_spread
        boundary = describe_boundary(
            observed, labelled, value, "auto", spread, weight, {"auto": value}
        )
        return PosteriorCurve(boundary, clearest, estimate)

    def relabel(
        self, curve: PosteriorCurve, gap: GapClassifier, labelled: Mask
    ) -> Relabelling:
        """Step 3: label the decided samples, or weight each by its posterior."""
        keep = self.keep_labelled
        if self.rule == "expectation":
            eta, hidden = curve.posterior(gap), curve.hidden_probability(gap)
            return relabel_in_expectation(labelled, eta, hidden, keep_labelled=keep)
        lower = curve.boundary.value
        upper = lower if self.rule == "theorem" else max(0.0, lower)
        known, limits = (gap.observed_gap_, labelled), {"lower": lower, "upper": upper}
        result = relabel(*known, **limits, keep_labelled=keep)
        if self.strict:
            _require_both(result)
        if result.n_positive > 0:
            return result
        warn(
            "keep_labelled=False would leave no positive to train on; using "
            "keep_labelled=True instead."
        )
        return relabel(*known, **limits, keep_labelled=True)

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

    def average(self, by_gap: Vector, classifier: Any, averages: bool) -> Vector:
        """Step 6: average the posterior read off the gap and the final classifier's.

        The first follows sharp borders; the second, of a mixture fitted to soft labels,
        smooths out noise. With many samples there is little noise, and the second is
        taken alone; other final classifiers are not held out, and the first is taken.
        """
        if not isinstance(classifier, MixedClassifier):
            return by_gap
        held_out = expit(classifier.held_out_)
        return average_chances(held_out, by_gap) if averages else held_out


def choose_steps(model: Any, n_samples: int, boundary: Any, cv: Any = None) -> Steps:
    """Choose the steps by a classifier's parameters and the number of samples.

    No other code branches on these. ``cv`` is for out-of-fold gaps.
    """
    automatic = isinstance(boundary, str) and boundary == "auto"
    exact = n_samples <= DEFAULTS.most_rows or model.device is not None or model.strict
    n_landmarks = None if exact or automatic else default_n_landmarks(n_samples)
    rule = model.relabelling
    if rule == "auto":
        # "expectation" leaves nothing out, so that there would be nothing to reweight.
        shared = automatic and model.reweight is None
        rule = "expectation" if shared else "corollary"
    for given in (model.gap_estimator, model.reweight):
        if isinstance(given, GapClassifier | KernelMeanMatching):
            check_parameters(given)
    gap = _choose_gap(model, n_landmarks, cv)
    # One width for both SVMs that None stands for.
    gamma: Width = gap.gamma if isinstance(gap, ObservedGapEstimator) else "scale"
    final = _choose_final(model, n_landmarks, gamma, automatic=automatic)
    mixed = isinstance(gap, MixedGapEstimator) and isinstance(final, MixedClassifier)
    return Steps(
        gap=gap,
        boundary=boundary if automatic else check_rule(boundary),
        class_prior=model.class_prior,
        rule=rule,
        keep_labelled=model.keep_labelled,
        reweight=model.reweight,
        final=final,
        averages=mixed and n_samples <= DEFAULTS.most_rows,
        gamma=gamma,
        n_landmarks=n_landmarks,
        strict=model.strict,
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
        gap.set_params(device=gap.device or model.device)
        if n_landmarks is not None and gap.device is None:
            svm = NystroemSVM(n_components=n_landmarks, gamma=gap.gamma)
            scaled = CalibratedClassifierCV(svm, method="sigmoid", ensemble=False)
            gap.set_params(estimator=scaled)
    return gap


def _choose_final(
    model: Any, n_landmarks: int | None, gamma: Width, *, automatic: bool
) -> Any:
    if model.estimator is not None:
        require_sample_weight(model.estimator, "estimator")
        return model.estimator
    if model.device is not None:
        return KernelSVM(gamma=gamma, device=model.device)
    if automatic:
        return MixedClassifier(n_jobs=model.n_jobs)
    if n_landmarks is None:
        return FastSVC(gamma=gamma)
    return NystroemSVM(n_components=n_landmarks, gamma=gamma)


def _require_both(relabelling: Relabelling) -> None:
    """Refuse a relabelling from which nothing can be learnt."""
    n_positive, n_negative = relabelling.n_positive, relabelling.n_negative
    if n_positive and n_negative:
        return
    none, why = (
        "negative",
        "no unlabelled sample has an observed gap below the boundary",
    )
    if not n_positive:
        none, why = "positive", "no sample has an observed gap above 0"
    refuse(
        f"The algorithm's letter leaves no {none} to train on: {why}. Pass strict=False, "
        "which mends that and says how, or another gap_estimator or boundary."
    )


def fit_final(classifier: Any, data: SoftLabels) -> Any:
    """Fit a final classifier: on soft labels if it takes them, or else on weighted copies."""
    share, weight = data.share, data.weight
    if isinstance(classifier, MixedClassifier):
        known = data.samples, share, weight, data.labelled
        return classifier.fit_on_shares(*known, data.group)
    if isinstance(classifier, NystroemSVM) and data.features is not None:
        return classifier.fit_on_features(data.features, share, weight)
    fit_on_shares(classifier, data.samples, round_shares(share), weight)
    return classifier


def average_chances(first: Vector, second: Vector) -> Vector:
    """Return probabilities whose log-odds are the mean of those of two estimates."""
    odds = [logit(np.clip(p, _CERTAIN, 1.0 - _CERTAIN)) for p in (first, second)]
    return expit(0.5 * (odds[0] + odds[1]))


def fit_slope(classifier: Any, samples: Matrix, posterior: Vector) -> float | None:
    """Return the slope a for which expit(a * decision) is closest to the posterior.

    Closest in cross-entropy. There is no intercept, so that the probability passes
    1/2 where the decision passes 0. None if the classifier has probabilities.
    """
    if hasattr(classifier, "predict_proba"):
        return None
    rows = spread_rows(posterior.size, DEFAULTS.most_calibrated)
    decision, posterior = classifier.decision_function(samples[rows]), posterior[rows]
    scale, tiny = float(np.abs(decision).mean()), np.finfo(np.float64).tiny
    if scale == 0.0:
        return 1.0

    def cross_entropy(log_slope: float) -> float:
        p = expit(np.exp(log_slope) * (decision / scale))
        gain = xlogy(posterior, np.maximum(p, tiny))
        gain += xlogy(1.0 - posterior, np.maximum(1.0 - p, tiny))
        return -float(gain.mean())

    best = minimize_scalar(cross_entropy, bounds=_LOG_SLOPES, method="bounded")
    return float(np.exp(best.x)) / scale


def find_doubts(model: Any, labelled: Mask) -> Iterator[UnreliableFitWarning]:
    """Return warnings that a fit may not be believed, those that told bad fits from good.

    ``fit`` issues them, and the report of the fitted model repeats them.

    Of 60 fits to labels drawn by a coin, 53 were "indistinct", and of 72 fits to twelve
    labelled positives or more, one. Below twelve the interval of the count held in 26
    of 48 fits, above in 70 of 72 (``benchmarks/doubts.py``).
    """
    chance = 0.5 * (1.0 + model.observed_gap_)
    if model.labelling_ is not None:
        chance = chance * model.labelling_.rate
    errors = _evidence(chance, labelled, model.row_weight_)
    if errors < _FEWEST_ERRORS:
        yield UnreliableFitWarning(
            "Labels look random: held-out labels are predicted "
            f"{errors:.1f} standard errors better than by their frequency, where "
            f"{_FEWEST_ERRORS:.0f} is the least to ask for. Check the label column, and "
            "add features that could tell a positive from the rest.",
            code="indistinct",
        )
    looked = model.labelling_
    if looked is not None and looked.hidden_as_features is not None:
        columns = joined([repr(name) for name in looked.columns])
        low, high = looked.hidden_as_features
        other = count_range(low, high, model.estimate_.n_unlabelled)
        yield UnreliableFitWarning(
            f"Held-out labels are much better explained with {columns} among the features "
            f"than by who was looked at. Hidden positives: {model.estimate_.hidden_range} as "
            f"declared, {other} with features alone. If the truth depends on what was "
            "declared, keep it, too, or fit without labelled_by.",
            code="declared",
        )
    n_labelled = model.estimate_.n_labelled
    if model.boundary_.rule == "auto" and n_labelled < _FEWEST_LABELLED:
        yield UnreliableFitWarning(
            f"Only {n_labelled:.0f} positives are labelled: the count rests on the "
            "simulated tasks more than on these data. Collect at least "
            f"{_FEWEST_LABELLED} labels, or pass class_prior.",
            code="few",
        )


def _evidence(chance: Vector, labelled: Mask, weight: Vector | None) -> float:
    """Return the gain of held-out chances over the label frequency, in standard errors."""
    frequency = np.full(labelled.size, np.average(labelled, weights=weight))
    gain = log_likelihood(chance, labelled)
    gain = gain - log_likelihood(frequency, labelled)
    share = np.ones(gain.size) if weight is None else weight
    share = share / share.sum()
    mean = float(share @ gain)
    error = float(np.sqrt(share**2 @ (gain - mean) ** 2))
    return mean / max(error, float(np.finfo(np.float64).tiny))
