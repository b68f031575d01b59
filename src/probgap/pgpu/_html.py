"""What a notebook shows below the diagram of a fitted classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.output import fact_table, number, share
from probgap.boundary import Boundary
from probgap.reweight import KMMResult


def fit_table(model: Any) -> str:
    """Write what a fit found as a small table; nothing for a model without a fit."""
    if not hasattr(model, "relabelling_"):
        return ""
    relabelling, reading = model.relabelling_, model.reading_
    n_samples = round(reading.n_labelled + reading.n_unlabelled)
    facts = {
        "labelled": f"{share(model.n_labelled_, n_samples)} of {n_samples:,} samples",
        "hidden positives": _hidden(model),
        "share of positives": _share(model),
        "boundary": _boundary(model.boundary_),
        "undecided by the gap": share(model.boundary_.n_undecided, n_samples),
        "left out of training": share(relabelling.n_undecided, relabelling.labels.size),
        "weights": _weights(model.kmm_, model.sample_weight_),
    }
    return fact_table(f"{type(model).__name__}: what the fit found", facts)


def _hidden(model: Any) -> str:
    reading = model.reading_
    low, high = reading.n_hidden_interval
    return (
        f"{low:,.0f} to {high:,.0f} (90% interval), best estimate "
        f"{reading.n_hidden:,.0f}"
    )


def _share(model: Any) -> str:
    low, high = model.estimated_class_prior_interval_
    estimate = model.estimated_class_prior_
    return f"{low:.1%} to {high:.1%} (90% interval), best estimate {estimate:.1%}"


def _boundary(boundary: Boundary) -> str:
    spread = ""
    if boundary.spread > 0.0:
        spread = f" \N{PLUS-MINUS SIGN} {number(boundary.spread, 2)}"
    moved = ", moved: see boundary_.fallback" if boundary.fallback else ""
    return f"{number(boundary.value)}{spread} (rule {boundary.rule!r}{moved})"


def _weights(matching: KMMResult | None, weight: NDArray[np.float64]) -> str:
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
