"""What a notebook shows below the diagram of a fitted classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.html import fact_table, number, share
from probgap.boundary import Boundary
from probgap.relabel import Relabelling
from probgap.reweight import KMMResult


def fit_table(model: Any) -> str:
    """Write what a fit found as a small table; nothing for a model without a fit."""
    if not hasattr(model, "relabelling_"):
        return ""
    relabelling, n_samples = model.relabelling_, int(model.observed_gap_.size)
    facts = {
        "labelled": f"{share(model.n_labelled_, n_samples)} of {n_samples:,} samples",
        "estimated positives": _positives(relabelling),
        "share of positives": _share(model),
        "boundary": _boundary(model.boundary_),
        "undecided by the gap": share(model.boundary_.n_undecided, n_samples),
        "left out of training": share(relabelling.n_undecided, n_samples),
        "weights": _weights(model.kmm_, model.sample_weight_),
    }
    return fact_table(f"{type(model).__name__}: what the fit found", facts)


def _positives(relabelling: Relabelling) -> str:
    """Count positives by how much of each sample counts as one in training."""
    counted = relabelling.positive_share[relabelling.decided]
    if counted.size == 0:
        return "none decided"
    among = "" if relabelling.n_undecided == 0 else " of those decided"
    return f"{counted.sum():,.0f} ({counted.mean():.1%}{among})"


def _share(model: Any) -> str:
    low, high = model.estimated_class_prior_interval_
    return f"{model.estimated_class_prior_:.1%} (90%: {low:.1%} to {high:.1%})"


def _boundary(boundary: Boundary) -> str:
    spread = ""
    if boundary.spread > 0.0:
        spread = f" \N{PLUS-MINUS SIGN} {number(boundary.spread, 2)}"
    moved = ", moved: see boundary_.fallback" if boundary.fallback else ""
    return f"{number(boundary.value)}{spread} (rule {boundary.rule!r}{moved})"


def _weights(matching: KMMResult | None, weight: NDArray[np.float64]) -> str:
    if matching is None:
        return "all 1 (reweight=False)"
    used = weight[weight > 0.0]
    if used.size and np.ptp(used) == 0.0:
        return f"all {number(float(used[0]))}"
    state = "" if matching.converged else "; not converged"
    return (
        f"effective sample size {matching.effective_sample_size:,.0f} of {used.size:,}"
        f", largest {number(float(weight.max()))}{state}"
    )
