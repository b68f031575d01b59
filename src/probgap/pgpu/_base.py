"""What both classifiers share: the algorithm, and predictions from what it learnt."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from probgap._core.classifier import TrueLabelClassifier
from probgap._core.errors import ProbgapWarning
from probgap._core.estimators import (
    clone_with_seed,
    fit_on_shares,
    require_sample_weight,
    round_shares,
)
from probgap._core.features import (
    KernelFeatures,
    TrainingFeatures,
    map_training_samples,
    usual_landmarks,
)
from probgap._core.folds import folds_by_rows
from probgap._core.inputs import check_predict_input
from probgap._core.kernels import Matrix, scale_gamma, spread_rows
from probgap._core.machine import FeatureMachine
from probgap._core.mixed import MixedClassifier
from probgap._core.progress import stage
from probgap._core.rng import RandomStateLike, draw_seed
from probgap._core.svm import RBFMachine
from probgap._core.threads import one_thread
from probgap._core.values import HeldValues
from probgap._device._estimators import DeviceMachine
from probgap.boundary import Boundary
from probgap.gap import LabellingModel, MixedGapEstimator, ObservedGapEstimator
from probgap.gap._base import GapClassifier
from probgap.pgpu._html import fit_table
from probgap.pgpu._matching import match_features
from probgap.pgpu._penalty import choose_penalty
from probgap.pgpu._posterior import fit_slope
from probgap.pgpu._prior import (
    ClassPrior,
    estimate_prior,
    label_frequencies,
    share_called,
    spread_of_share,
    store_prior,
)
from probgap.relabel import (
    Relabelling,
    relabel,
    relabel_by_probability,
    relabel_in_expectation,
)
from probgap.reweight import KMMResult, kernel_mean_matching

Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]
GapEstimator = LabellingModel | MixedGapEstimator | ObservedGapEstimator

# Weights that rest on a smaller share of the samples than this are no estimate.
_FEWEST_EFFECTIVE = 0.02

# Beyond this many samples kernels give way to kernel features.
MOST_EXACT = 6000

MOST_ASKED = 10_000

# The paper's Algorithm 1 to the letter, but for where the boundary comes from.
PAPER: dict[str, Any] = {
    "gap_estimator": "platt",
    "gap_method": "in_sample",
    "relabelling": "corollary",
    "keep_labelled": False,
    "reweight": True,
}


@dataclass(frozen=True, slots=True)
class Learnt:
    """What steps 3 to 5 of the algorithm give for one boundary."""

    relabelling: Relabelling
    matching: KMMResult | None
    sample_weight: Vector
    estimator: Any


def spread_weights(chosen: Mask, matching: KMMResult | None) -> Vector:
    """Give each sample its weight: 0 if left out, 1 if nothing was matched."""
    weight = np.zeros(chosen.size)
    weight[chosen] = 1.0 if matching is None else matching.weights
    return weight


class BasePGPU(TrueLabelClassifier):
    """The algorithm of the paper, given a boundary."""

    boundary_: Boundary

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gap_estimator": [
            HasMethods(["fit"]),
            StrOptions({"platt", "labelling"}),
            None,
        ],
        "gap_method": [StrOptions({"out_of_fold", "in_sample"})],
        "relabelling": [StrOptions({"auto", "expectation", "corollary", "theorem"})],
        "keep_labelled": ["boolean"],
        "reweight": ["boolean"],
        "kernel": [str, callable],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "upper": [Interval(Real, 0, None, closed="neither")],
        "slack": [Interval(Real, 0, None, closed="left"), None],
        "estimator": [HasMethods(["fit"]), None],
        "kernel_features": [
            StrOptions({"auto", "exact"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "cv": ["cv_object"],
        "device": [str, None],
        "pos_label": "no_validation",
        "random_state": "no_validation",
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    gap_estimator: Any
    gap_method: Literal["out_of_fold", "in_sample"]
    relabelling: Literal["auto", "expectation", "corollary", "theorem"]
    keep_labelled: bool
    reweight: bool
    kernel: str | Callable[..., Any]
    gamma: float | None
    upper: float
    slack: float | None
    estimator: Any
    kernel_features: Literal["auto", "exact"] | int
    cv: Any
    pos_label: object
    random_state: RandomStateLike
    device: str | None = None
    n_jobs: int | None
    verbose: int

    def _fit_gap(
        self,
        samples: Matrix,
        labelled: Mask,
        rng: np.random.Generator,
        *,
        cv: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> tuple[GapEstimator, TrainingFeatures | None]:
        """Step 1: how likely each sample is to be labelled; and features, if it made any."""
        settings: dict[str, Any] = {
            "method": self.gap_method,
            "cv": cv,
            "random_state": draw_seed(rng),
            "n_jobs": n_jobs,
        }
        size = self._n_gap_features(labelled.size)
        model: GapEstimator
        if self._mixes():
            model = MixedGapEstimator(random_state=settings["random_state"])
        elif self.gap_estimator is None or self._is("labelling"):
            if size is not None:
                # What blocks of rows on several machines can do, too.
                settings["cv"] = folds_by_rows(cv, labelled, rng)
                settings |= {"n_components": size, "trees": True, "forest": False}
            model = LabellingModel(**settings, verbose=verbose)
        elif isinstance(self.gap_estimator, GapClassifier):
            model = clone_with_seed(self.gap_estimator, rng)
        elif not self._is("platt"):
            model = ObservedGapEstimator(self.gap_estimator, **settings)
        elif size is None:
            model = ObservedGapEstimator(
                **settings, device=self.device, verbose=verbose
            )
        else:
            machine = FeatureMachine(n_components=size)
            scaled = CalibratedClassifierCV(machine, method="sigmoid", ensemble=False)
            model = ObservedGapEstimator(scaled, **settings)
        if isinstance(model, LabellingModel):
            return model, model._fit_features(samples, labelled)
        with stage(verbose, "who is labelled"):
            model.fit(samples, labelled)
        if size is None or self._reads():
            return model, None
        seed = draw_seed(rng)
        with one_thread(), stage(verbose, "kernel features"):
            kernel = KernelFeatures.fit(samples, size, scale_gamma(samples), seed)
            return model, map_training_samples(kernel, samples, labelled, seed)

    def _is(self, name: str) -> bool:
        return isinstance(self.gap_estimator, str) and self.gap_estimator == name

    def _reads(self) -> bool:
        """Tell whether boundary and posterior are read off the scores."""
        return False

    def _mixes(self) -> bool:
        """Tell whether the gap comes from the mixture of learners."""
        return False

    def _in_double(self, samples: Matrix) -> Matrix:
        """Leave single precision alone only where a copy would cost memory."""
        if self._n_kernel_features(samples.shape[0]) is None:
            return samples.astype(np.float64, copy=False)
        return samples

    def _n_gap_features(self, n_samples: int) -> int | None:
        """Say how many kernel features the gap has: a labelling model is fitted here."""
        if self.device is None or self.gap_estimator is not None:
            return self._n_kernel_features(n_samples)
        return self._n_features_here(n_samples)

    def _n_kernel_features(self, n_samples: int) -> int | None:
        """Say how many kernel features take the place of kernels; None for none."""
        return None if self.device is not None else self._n_features_here(n_samples)

    def _n_features_here(self, n_samples: int) -> int | None:
        if self.kernel_features == "exact":
            return None
        if self.kernel_features != "auto":
            return int(self.kernel_features)
        return None if n_samples <= MOST_EXACT else usual_landmarks(n_samples)

    def _learn(
        self,
        samples: Matrix,
        labelled: Mask,
        observed_gap: Vector,
        posterior: Vector,
        boundary: Boundary,
        estimator: Any,
        features: TrainingFeatures | None = None,
        hidden: Vector | None = None,
    ) -> Learnt:
        """Relabel, remove the domain bias, train the weighted classifier: steps 3 to 5."""
        relabelling = self._relabel(observed_gap, labelled, posterior, boundary, hidden)
        chosen = relabelling.decided
        with stage(self.verbose if self.reweight else 0, "kernel mean matching"):
            matching = self._match(samples, chosen, features) if self.reweight else None
        weight = spread_weights(chosen, matching)
        share = relabelling.positive_share
        mixed = isinstance(estimator, MixedClassifier)
        automatic = boundary.rule == "auto" and self.estimator is None and not mixed
        if automatic and chosen.all():
            penalty = choose_penalty(
                samples,
                share,
                labelled,
                estimator.random_state,
                separability=boundary.separability,
            )
            estimator.set_params(C=penalty)
        with stage(self.verbose, "final classifier"):
            if mixed and self.estimator is None:
                estimator.fit_on_shares(samples, share, weight, labelled)
            elif features is not None and isinstance(estimator, FeatureMachine):
                estimator.fit_on_features(features, share, weight)
            elif isinstance(estimator, DeviceMachine):
                estimator.fit_on_shares(samples, round_shares(share), weight)
            else:
                fit_on_shares(estimator, samples, round_shares(share), weight)
        return Learnt(relabelling, matching, weight, estimator)

    def _relabel(
        self,
        gap: Vector,
        labelled: Mask,
        posterior: Vector,
        boundary: Boundary,
        hidden: Vector | None = None,
    ) -> Relabelling:
        if self._rule_of_relabelling(boundary) == "expectation":
            if hidden is not None:
                return relabel_by_probability(
                    labelled, hidden, posterior, keep_labelled=self.keep_labelled
                )
            return relabel_in_expectation(
                gap,
                labelled,
                posterior,
                hardness=boundary.separability,
                keep_labelled=self.keep_labelled,
            )
        lower = boundary.value
        upper = lower if self.relabelling == "theorem" else max(0.0, lower)
        result = relabel(
            gap, labelled, lower=lower, upper=upper, keep_labelled=self.keep_labelled
        )
        if result.n_positive > 0:
            return result
        warnings.warn(
            "keep_labelled must be True where no sample has a gap above 0, or no "
            "positive is left to learn from. Got False; the labelled positives are "
            "kept. Fewer than half of the clearest positives seem to be labelled.",
            ProbgapWarning,
            stacklevel=2,
        )
        return relabel(gap, labelled, lower=lower, upper=upper)

    def _rule_of_relabelling(self, boundary: Boundary) -> str:
        if self.relabelling != "auto":
            return self.relabelling
        return "expectation" if boundary.rule == "auto" else "corollary"

    def _match(
        self, samples: Matrix, chosen: Mask, features: TrainingFeatures | None = None
    ) -> KMMResult:
        usual = self.kernel == "rbf" and self.gamma is None and not chosen.all()
        large = self._n_kernel_features(chosen.size) is not None
        if usual and large and features is not None:
            result = match_features(
                features, chosen, upper=self.upper, slack=self.slack
            )
        else:
            result = kernel_mean_matching(
                samples if chosen.all() else samples[chosen],
                samples,
                gamma=self.gamma,
                upper=self.upper,
                slack=self.slack,
                kernel=self.kernel,
                device=self.device,
                verbose=self.verbose,
            )
        weighed = chosen if features is None else chosen[features.rows]
        n_weighed = int(np.count_nonzero(weighed))
        if result.effective_sample_size < _FEWEST_EFFECTIVE * n_weighed:
            warnings.warn(
                "Kernel mean matching must spread its weight over many samples. Got an "
                f"effective sample size of {result.effective_sample_size:.1f} out of "
                f"{n_weighed}: what was chosen does not cover what was left "
                "out. Use a smaller upper, or reweight=False.",
                ProbgapWarning,
                stacklevel=2,
            )
        return result

    def _final_estimator(self, n_samples: int, rng: np.random.Generator) -> Any:
        """Give an unfitted copy of the final classifier."""
        if self.estimator is None:
            seed, size = draw_seed(rng), self._n_kernel_features(n_samples)
            if self._reads() and self.device is None:
                return MixedClassifier(random_state=seed)
            if self.device is not None:
                return DeviceMachine(
                    device=self.device, verbose=self.verbose, random_state=seed
                )
            if size is None:
                return RBFMachine(random_state=seed)
            return FeatureMachine(n_components=size, random_state=seed)
        require_sample_weight(self.estimator, "estimator")
        return clone_with_seed(self.estimator, rng)

    def _store(
        self,
        samples: Matrix,
        labelled: Mask,
        gap: GapEstimator,
        posterior: Vector,
        learnt: Learnt,
    ) -> Vector:
        """Keep what was learnt; return the decision about some training samples."""
        if hasattr(self, "feature_names_in_"):
            gap.feature_names_in_ = self.feature_names_in_
        self.gap_estimator_ = gap
        self.observed_gap_ = gap.observed_gap_
        self.relabelling_ = learnt.relabelling
        self.kmm_ = learnt.matching
        self.sample_weight_ = learnt.sample_weight
        self.estimator_ = learnt.estimator
        # So many are enough for a slope and a share.
        rows = spread_rows(labelled.size, MOST_ASKED)
        self.slope_ = None
        if isinstance(learnt.estimator, MixedClassifier):
            posterior = expit(learnt.estimator.held_out_)
            decision: Vector = learnt.estimator.held_out_[rows]
        elif not hasattr(learnt.estimator, "predict_proba"):
            decision = learnt.estimator.decision_function(samples[rows])
            self.slope_ = fit_slope(decision, posterior[rows])
        else:
            decision = learnt.estimator.predict_proba(samples[rows])[:, 1] - 0.5
        self.posterior_ = posterior
        return decision

    def _store_prior(
        self,
        labelled: Mask,
        posterior: Vector,
        decision: Vector,
        rng: np.random.Generator,
    ) -> ClassPrior:
        """Keep how many seem positive, by the decision about some samples."""
        rows = spread_rows(labelled.size, MOST_ASKED)
        called = decision > 0.0
        gap, observed = self.gap_estimator_, HeldValues(self.observed_gap_, labelled)
        chances = HeldValues(posterior, labelled)
        prior = estimate_prior(
            observed,
            chances,
            share_called(called[~labelled[rows]], chances),
            frequencies=label_frequencies(gap, observed),
            spread=spread_of_share(gap, observed, self.boundary_, draw_seed(rng)),
        )
        store_prior(self, prior)
        return prior

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
            proba = self.estimator_.predict_proba(samples)
            gap: Vector = proba[:, 1] - proba[:, 0]
            return gap
        decision: Vector = self.estimator_.decision_function(samples)
        return decision

    def predict_proba(self, X: Matrix) -> NDArray[np.float64]:
        """Give P(Y | x), the chance of being negative and of being positive.

        As good as the boundary is: where few positives are labelled, or classes
        overlap, the probabilities may be off by as much as the share of positives is.

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
