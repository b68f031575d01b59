"""What both classifiers share: parameter checks, fitted attributes and predictions."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, xlogy
from sklearn.utils._param_validation import HasMethods, StrOptions

from probgap._core.checks import ObservedLabels, check_predict_input
from probgap._core.defaults import DEFAULTS
from probgap._core.estimators import SignClassifier
from probgap._core.mixture import MixedClassifier
from probgap._core.types import Matrix, Vector
from probgap._core.validation import spread_rows
from probgap.boundary import Boundary
from probgap.gap import MixedGapEstimator, ObservedGapEstimator
from probgap.pgpu._html import fit_table
from probgap.pgpu._signs import warn_of_signs
from probgap.pgpu.steps import Steps, fit_pgpu
from probgap.reading import Reading
from probgap.reweight import KernelMeanMatching

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


class ClassPriorMixin:
    """Class prior and labelling rate, both from the reading of a fit."""

    reading_: Reading

    @property
    def estimated_class_prior_(self) -> float:
        """Share of the training samples that are positive, labelled or not."""
        return self.reading_.class_prior

    @property
    def estimated_class_prior_interval_(self) -> tuple[float, float]:
        """90% interval of it."""
        return self.reading_.class_prior_interval

    @property
    def estimated_labelling_rate_(self) -> float:
        """Share of the positives that are labelled."""
        reading = self.reading_
        return reading.n_labelled / (reading.n_labelled + reading.n_hidden)

    @property
    def estimated_labelling_rate_interval_(self) -> tuple[float, float]:
        """90% interval of it."""
        known, (low, high) = self.reading_.n_labelled, self.reading_.n_hidden_interval
        return known / (known + high), known / (known + low)


class BasePGPU(ClassPriorMixin, SignClassifier):
    """The algorithm of the paper, fitted."""

    boundary_: Boundary
    device: str | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "class_prior": "no_validation",  # checked by read
        "gap_estimator": [HasMethods(["fit"]), None],
        "relabelling": [StrOptions({"auto", "expectation", "corollary", "theorem"})],
        "keep_labelled": ["boolean"],
        "reweight": [KernelMeanMatching, None],
        "estimator": [HasMethods(["fit"]), None],
        "cv": ["cv_object"],
        "device": [str, None],
        "pos_label": "no_validation",
        "random_state": "no_validation",
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def _in_double(self, samples: Matrix) -> Matrix:
        """Convert samples to double precision, unless a copy would cost much memory."""
        if samples.shape[0] <= DEFAULTS.most_exact or self.device is not None:
            return samples.astype(np.float64, copy=False)
        return samples

    def _fit_checked(
        self,
        samples: Matrix,
        labels: ObservedLabels,
        steps: Steps,
        rng: np.random.Generator,
        weight: Vector | None = None,
    ) -> Self:
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
        self.row_weight_, self.posterior_ = weight, fitted.posteriors.posterior
        mixed = isinstance(self.estimator_, MixedClassifier)
        if mixed:
            self.posterior_ = expit(self.estimator_.held_out_)
        # The posterior read off the gap follows sharp borders; the final classifier, fitted
        # to soft labels, smooths out noise. With many samples there is little noise.
        self.averages_ = (
            mixed
            and isinstance(fitted.gap, MixedGapEstimator)
            and self.observed_gap_.size <= DEFAULTS.most_exact
        )
        if self.averages_:
            of_gap = fitted.posteriors.posterior
            self.posterior_ = average_chances(self.posterior_, of_gap)
        if not hasattr(self.estimator_, "predict_proba"):
            rows = spread_rows(len(self.posterior_), DEFAULTS.most_calibrated)
            decision = self.estimator_.decision_function(samples[rows])
            self.slope_ = fit_slope(decision, self.posterior_[rows])
        warn_of_signs(fitted, labels.labelled, weight, stacklevel=5)
        return self

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
        decision: Vector = self.estimator_.decision_function(samples)
        return decision

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Return P(Y | x), the probabilities of being negative and of being positive.

        Only as good as the boundary: where few positives are labelled, or classes overlap,
        the probabilities may be off by as much as the estimated share of positives.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities of the true label, in the order of ``classes_``. Not of the
            observed one: that is ``gap_estimator_.predict_proba``.
        """
        decision = self._decide(X)
        if self.slope_ is None:
            positive = 0.5 * (1.0 + decision)
        else:
            positive = expit(self.slope_ * decision)
        columns = [1.0 - positive, positive]
        return np.column_stack(columns[:: 1 if self.positive_index_ == 1 else -1])


def average_chances(first: Vector, second: Vector) -> Vector:
    """Return probabilities whose log-odds are the mean of those of two estimates."""
    odds = [logit(np.clip(p, _CERTAIN, 1.0 - _CERTAIN)) for p in (first, second)]
    return np.asarray(expit(0.5 * (odds[0] + odds[1])))


def fit_slope(decision: Vector, posterior: Vector) -> float:
    """Return the slope a for which expit(a * decision) is closest to the posterior.

    Closest in cross-entropy. There is no intercept, so that the probability passes
    1/2 where the decision passes 0.
    """
    scale = float(np.abs(decision).mean())
    if scale == 0.0:
        return 1.0
    scaled = decision / scale

    def cross_entropy(log_slope: float) -> float:
        p = expit(np.exp(log_slope) * scaled)
        tiny = np.finfo(np.float64).tiny
        return -float(
            np.mean(
                xlogy(posterior, np.maximum(p, tiny))
                + xlogy(1.0 - posterior, np.maximum(1.0 - p, tiny))
            )
        )

    best = minimize_scalar(cross_entropy, bounds=_LOG_SLOPES, method="bounded")
    return float(np.exp(best.x)) / scale
