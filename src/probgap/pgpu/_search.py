"""The search for a boundary on one fold, with the work shared between candidates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import InvalidInputError, ProbgapWarning
from probgap._core.estimators import clone_with_seed
from probgap._core.folds import Fold
from probgap._core.kernels import TrainingFeatures
from probgap._core.runtime import draw_seed, one_thread
from probgap._core.types import Mask, Matrix, Vector
from probgap.gap.base import GapClassifier
from probgap.pgpu._algorithm import fit_pgpu
from probgap.pgpu._fold import FitOnFold
from probgap.pgpu.steps import Curve, Shares, Steps, choose_steps, spread_weights
from probgap.reading import Reading
from probgap.reweight import KMMResult

Rows = NDArray[np.intp]
Criterion = Callable[[Mask, Mask], float]


def score_fold(
    model: Any,
    criterion: Criterion,
    samples: Matrix,
    labelled: Mask,
    fold: Fold,
    grid: Vector,
    seed: int,
) -> Vector:
    """Score every boundary on one fold: one gap, and one fit per distinct selection."""
    train, test = fold
    rows, known = samples[train], labelled[train]
    # One thread, so that the bits do not depend on how many folds run at once.
    with one_thread(), warnings.catch_warnings():
        # A candidate that is no use loses; only the chosen one is worth a warning.
        warnings.simplefilter("ignore", ProbgapWarning)
        rng = np.random.default_rng(seed)
        plain = choose_steps(model, train.size, boundary=float(grid[0]))
        gap = plain.estimate_gap(rows, known, None, rng)
        features = plain.map_features(rows, known, rng)
        of_final = draw_seed(rng)
        first, which = _distinct(plain, gap.observed_gap_, grid)
        shared = Shared(gap, features, FitOnFold(rows, samples[test]))
        usable = {}
        for i in first:
            steps = FoldSteps.of(replace(plain, boundary=float(grid[i])), shared)
            # Some values leave no negatives to learn from.
            if steps.place_boundary(gap, known).boundary.fallback is None:
                usable[int(i)] = steps
        shared.weigh(rows, known, list(usable.values()))
        scores = np.full(grid.size, -np.inf)
        for i, steps in usable.items():
            final = np.random.default_rng(of_final)
            fitted = fit_pgpu(rows, known, steps, final)
            scores[i] = criterion(labelled[test], fitted.classifier)
    if np.isnan(scores).any():
        msg = f"scoring must return a number. Got NaN from {criterion!r}."
        raise InvalidInputError(msg)
    found: Vector = scores[first][which]
    return found


def _distinct(steps: Steps, gap: Vector, grid: Vector) -> tuple[Rows, Rows]:
    """Return the values that choose differently, and which of them each value equals."""
    if steps.rule == "expectation":
        # What a sample counts for depends on the value itself.
        every = np.arange(grid.size)
        return every, every
    # The samples at or below the boundary are the first so many by gap: their number
    # tells which they are, and that settles who is chosen.
    below = [np.count_nonzero(gap <= value) for value in grid]
    _, first, which = np.unique(below, return_index=True, return_inverse=True)
    return first, which


class Shared:
    """What all boundaries of a fold have in common: one gap, one kernel to match by."""

    def __init__(
        self, gap: GapClassifier, features: TrainingFeatures | None, fit: FitOnFold
    ) -> None:
        self.gap = gap
        self.features = features
        self.fit = fit
        self.curves: dict[float, Curve] = {}
        self._matched: dict[bytes, KMMResult] = {}

    def weigh(self, samples: Matrix, labelled: Mask, each: list[FoldSteps]) -> None:
        """Match the selections of all boundaries at once, from one kernel matrix."""
        matching = each[0].reweight if each else None
        if matching is None:
            return
        gap, scores = self.gap.observed_gap_, self.gap._training_log_odds()
        chosen = []
        for steps in each:
            placed = steps.place_boundary(self.gap, labelled).place(gap, scores)
            chosen.append(steps.relabel(placed, labelled).decided)
        # Where nothing is left out there is nothing to match, unless 1 is too large.
        partial = [mask for mask in chosen if not mask.all() or matching.upper < 1.0]
        if self.features is not None:
            # A kernel matrix of all samples is what kernel features are there to avoid.
            results = [
                matching.match(samples, mask, features=self.features)
                for mask in partial
            ]
        else:
            results = matching.match_each(samples, partial) if partial else []
        self._matched = {
            mask.tobytes(): result
            for mask, result in zip(partial, results, strict=True)
        }

    def matched(self, chosen: Mask) -> KMMResult | None:
        """Return what was found for a selection; None where nothing was to match."""
        return self._matched.get(chosen.tobytes())


@dataclass(frozen=True, eq=False)
class FoldSteps(Steps):
    """The steps on a fold. The final classifier is its answer: which test rows are positive."""

    shared: Shared

    @classmethod
    def of(cls, steps: Steps, shared: Shared) -> FoldSteps:
        """Share what was computed before."""
        own = {field.name: getattr(steps, field.name) for field in fields(Steps)}
        return cls(**own, shared=shared)

    def estimate_gap(self, *_: Any, **__: Any) -> GapClassifier:
        """Return the gap of the fold."""
        return self.shared.gap

    def map_features(self, *_: Any, **__: Any) -> TrainingFeatures | None:
        """Return the features of the fold."""
        return self.shared.features

    def read(self, *_: Any, **__: Any) -> Reading | None:
        """Read nothing: a candidate is not asked for a count."""
        return None

    def place_boundary(self, gap: GapClassifier, labelled: Mask, *_: Any) -> Curve:
        """Return the curve of the candidate, made once."""
        curves, value = self.shared.curves, self.boundary
        if value not in curves:
            rng = np.random.default_rng(0)  # a fixed value draws nothing
            curves[value] = super().place_boundary(gap, labelled, None, None, rng)
        return curves[value]

    def reweigh(
        self, samples: Matrix, chosen: Mask, *_: Any, **__: Any
    ) -> tuple[KMMResult | None, Vector]:
        """Return the weights that were matched before."""
        del samples
        matching = self.shared.matched(chosen)
        return matching, spread_weights(chosen, matching)

    def classify(self, data: Shares, curve: Curve, rng: np.random.Generator) -> Any:
        """Return which test rows a classifier fitted on the training rows calls positive."""
        del curve
        classifier = clone_with_seed(self.final, rng)
        return self.shared.fit.predict(classifier, self.fit_final, data)
