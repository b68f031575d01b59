"""What the classifiers share: parameters, fitted attributes and predictions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, xlogy

from probgap._core._sklearn import HasMethods, StrOptions
from probgap._core.checks import ObservedLabels, check_predict_input
from probgap._core.defaults import DEFAULTS, LIMITS
from probgap._core.estimators import ProbabilisticPUClassifier
from probgap._core.mixture import MixedClassifier
from probgap._core.output import fact_table, is_open, number, share
from probgap._core.types import Matrix, Vector
from probgap._core.validation import spread_rows
from probgap.boundary import Boundary
from probgap.gap import MixedGapEstimator, ObservedGapEstimator
from probgap.pgpu._signs import warn_of_signs
from probgap.pgpu.steps import Steps, fit_pgpu
from probgap.reading import Reading
from probgap.reweight import KernelMeanMatching, KMMResult

_LOG_SLOPES = (-10.0, 10.0)
# Probabilities are clipped here, or certain ones would outweigh any other in an average.
_CERTAIN = 1e-4


def paper_steps() -> dict[str, Any]:
    """Return the parameters of the paper's Algorithm 1, except the boundary."""
    return {
        "gap_estimator": ObservedGapEstimator(method="in_sample"),
        "relabelling": "corollary",
        "keep_labelled": False,
        "reweight": KernelMeanMatching(),
    }


class BasePGPU(ProbabilisticPUClassifier):
    """The algorithm of the paper, fitted."""

    _keeps_single = True
    boundary_: Boundary
    reading_: Reading
    device: str | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ProbabilisticPUClassifier._parameter_constraints,
        "boundary": "no_validation",  # checked by check_rule
        "class_prior": "no_validation",  # checked by read
        "gap_estimator": [HasMethods(["fit"]), None],
        "relabelling": [StrOptions({"auto", "expectation", "corollary", "theorem"})],
        "keep_labelled": ["boolean"],
        "reweight": [KernelMeanMatching, None],
    }

    def _fit_checked(
        self,
        samples: Matrix,
        labels: ObservedLabels,
        steps: Steps,
        rng: np.random.Generator,
        weight: Vector | None = None,
    ) -> None:
        """Run the steps, store their results, and warn if the fit looks unreliable.

        ``weight`` is the number of samples that each one represents.
        """
        fitted = fit_pgpu(samples, labels.labelled, steps, rng, weight)
        self.classes_, self.positive_index_ = labels.classes, labels.positive
        self.reading_, self.boundary_ = fitted.reading, fitted.curve.boundary
        self.n_labelled_ = round(fitted.reading.n_labelled)
        if hasattr(self, "feature_names_in_"):
            fitted.gap.feature_names_in_ = self.feature_names_in_
        self.gap_estimator_ = fitted.gap
        self.observed_gap_ = fitted.gap.observed_gap_
        self.relabelling_ = fitted.relabelling
        self.kmm_, self.sample_weight_ = fitted.matching, fitted.sample_weight
        self.estimator_, self.slope_ = fitted.classifier, None
        self.row_weight_, self.posterior_ = weight, fitted.posterior
        mixed = isinstance(self.estimator_, MixedClassifier)
        if mixed:
            self.posterior_ = expit(self.estimator_.held_out_)
        # The posterior read off the gap follows sharp borders; the final classifier, fitted
        # to soft labels, smooths out noise. With many samples there is little noise.
        self.averages_ = (
            mixed
            and isinstance(fitted.gap, MixedGapEstimator)
            and self.observed_gap_.size <= DEFAULTS.most_rows
        )
        if self.averages_:
            self.posterior_ = average_chances(self.posterior_, fitted.posterior)
        counts = np.ones(self.posterior_.size) if weight is None else weight
        self.probability_ = self.reading_.share_out(
            self.posterior_, labels.labelled, counts
        )
        if not hasattr(self.estimator_, "predict_proba"):
            rows = spread_rows(len(self.posterior_), LIMITS.most_calibrated)
            decision = self.estimator_.decision_function(samples[rows])
            self.slope_ = fit_slope(decision, self.posterior_[rows])
        warn_of_signs(fitted, labels.labelled, weight, stacklevel=6)

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()
        return diagram + fit_table(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += fit_table(self)
        return bundle

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        if self.slope_ is None:
            positive: Vector = self.estimator_.predict_proba(samples)[:, 1]
            if self.averages_:
                scores = self.gap_estimator_.log_odds(samples)
                positive = average_chances(positive, self.reading_.posterior(scores))
            return 2.0 * positive - 1.0
        return self.estimator_.decision_function(samples)

    def _chance(self, X: Matrix) -> Vector:
        decision = self._decide(X)
        if self.slope_ is None:
            return 0.5 * (1.0 + decision)
        return expit(self.slope_ * decision)


def average_chances(first: Vector, second: Vector) -> Vector:
    """Return probabilities whose log-odds are the mean of those of two estimates."""
    odds = [logit(np.clip(p, _CERTAIN, 1.0 - _CERTAIN)) for p in (first, second)]
    return expit(0.5 * (odds[0] + odds[1]))


def fit_slope(decision: Vector, posterior: Vector) -> float:
    """Return the slope a for which expit(a * decision) is closest to the posterior.

    Closest in cross-entropy. There is no intercept, so that the probability passes
    1/2 where the decision passes 0.
    """
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


def fit_table(model: Any) -> str:
    """Return what a notebook shows below the diagram of a fitted classifier."""
    if not hasattr(model, "relabelling_"):
        return ""
    relabelling, reading, boundary = model.relabelling_, model.reading_, model.boundary_
    n_samples = round(reading.n_labelled + reading.n_unlabelled)
    low, high = reading.class_prior_interval
    positives = f"{low:.1%} to {high:.1%}"
    if is_open(reading.n_hidden_interval[1], reading.n_unlabelled):
        positives = f"at least {low:.1%}"
    facts = {
        "hidden positives": f"{reading.hidden_range} (90% interval), best estimate "
        f"{reading.n_hidden:,.0f}",
        "labelled": f"{share(model.n_labelled_, n_samples)} of {n_samples:,} samples",
        "share of positives": f"{positives} (90% interval), best estimate "
        f"{reading.class_prior:.1%}",
        "boundary": _boundary(boundary),
        "undecided by the gap": share(boundary.n_undecided, n_samples),
        "left out of training": share(relabelling.n_undecided, relabelling.labels.size),
        "weights": _weights(model.kmm_, model.sample_weight_),
    }
    return fact_table(f"{type(model).__name__}: what the fit found", facts)


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
