"""What a notebook shows of a fitted classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from probgap._core.output import fact_table, is_open, number, share
from probgap._core.types import Vector
from probgap.boundary import Boundary
from probgap.reweight import KMMResult


def fit_table(model: Any) -> str:
    """Return what a notebook shows below the diagram of a fitted classifier."""
    if not hasattr(model, "relabelling_"):
        return ""
    relabelling, estimate, boundary = (
        model.relabelling_,
        model.estimate_,
        model.boundary_,
    )
    n_samples = round(estimate.n_labelled + estimate.n_unlabelled)
    low, high = estimate.class_prior_interval
    positives = f"{low:.1%} to {high:.1%}"
    if is_open(estimate.n_hidden_interval[1], estimate.n_unlabelled):
        positives = f"at least {low:.1%}"
    facts = {
        "hidden positives": f"{estimate.hidden_range} (90% interval), best estimate "
        f"{estimate.n_hidden:,.0f}",
        "labelled": f"{share(model.n_labelled_, n_samples)} of {n_samples:,} samples",
        "share of positives": f"{positives} (90% interval), best estimate "
        f"{estimate.class_prior:.1%}",
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
