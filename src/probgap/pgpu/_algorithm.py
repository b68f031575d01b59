"""Algorithm 1, written once: what every classifier calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from probgap._core.types import Mask, Matrix, Vector
from probgap.boundary import Boundary
from probgap.gap.base import GapClassifier
from probgap.pgpu.steps import Shares, Steps
from probgap.reading import Reading
from probgap.relabel import Relabelling
from probgap.reweight import KMMResult


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What the steps of the algorithm found.

    Attributes
    ----------
    gap : GapClassifier
        The fitted estimator of the observed gap.
    reading : Reading or None
        What its scores say about hidden positives: the one count of a fit.
    boundary : Boundary
        The observed gap at which the true gap is 0.
    posterior : ndarray of shape (n_samples,)
        P(Y=1 | x) of each sample, by gap and boundary.
    relabelling : Relabelling
        What was decided about each sample.
    matching : KMMResult or None
        Evidence of the weights.
    sample_weight : ndarray of shape (n_samples,)
        What each sample counts for in training.
    classifier : object
        The fitted final classifier.
    """

    gap: GapClassifier
    reading: Reading | None
    boundary: Boundary
    posterior: Vector
    relabelling: Relabelling
    matching: KMMResult | None
    sample_weight: Vector
    classifier: Any


def fit_pgpu(
    samples: Matrix,
    labelled: Mask,
    steps: Steps,
    rng: np.random.Generator,
    weight: Vector | None = None,
) -> Fitted:
    """Fit to samples of which some positives are labelled.

    Parameters
    ----------
    samples : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Samples: all of them, or some that were drawn from blocks.
    labelled : ndarray of shape (n_samples,)
        Which of them are labelled.
    steps : Steps
        What to do at each step.
    rng : Generator
        Seeds the estimators, in the order of the steps.
    weight : ndarray of shape (n_samples,), default=None
        How many samples each stands for: the same for all labelled ones, and for all
        others. None for one each.

    Returns
    -------
    Fitted
        What each step found.
    """
    gap = steps.estimate_gap(samples, labelled, weight, rng)  # 1  who gets labelled
    features = steps.map_features(samples, labelled, rng)
    reading = steps.read(gap, labelled, weight)  # how many are hidden
    curve = steps.place_boundary(gap, labelled, reading, weight, rng)  # 2  boundary
    placed = curve.place(gap.observed_gap_, gap._training_log_odds())
    relabelling = steps.relabel(placed, labelled)  # 3  Bayesian optimal relabelling
    matching, sample_weight = steps.reweigh(  # 4  ones where nothing was left out
        samples, relabelling.decided, weight, features
    )
    share = relabelling.positive_share
    data = Shares(samples, share, sample_weight, labelled, features)
    classifier = steps.classify(data, curve, rng)  # 5  weighted classifier
    return Fitted(
        gap,
        reading,
        curve.boundary,
        placed.posterior,
        relabelling,
        matching,
        sample_weight,
        classifier,
    )
