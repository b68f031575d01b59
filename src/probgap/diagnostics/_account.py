"""The sections of the account: what the checks found, as a page wants to tell it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.types import Mask
from probgap.diagnostics._curve import LabellingCurve
from probgap.diagnostics._held_out import LEVEL, HeldOutCalibration
from probgap.diagnostics._plain import as_plain
from probgap.diagnostics._scar import ScarTest
from probgap.diagnostics._warnings import find_warnings
from probgap.inspection import ColumnImportance

_N_HISTOGRAM = 40


@dataclass
class Evidence:
    """What the checks found; None where one could not be made."""

    held_out: HeldOutCalibration | None = None
    curve: LabellingCurve | None = None
    scar: ScarTest | None = None
    others: list[dict[str, Any]] = field(default_factory=list)
    drivers: ColumnImportance | None = None
    next: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)


def write_account(
    classifier: Any, labelled: Mask, evidence: Evidence
) -> dict[str, Any]:
    """Put sections and warnings together, in plain Python."""
    account = {
        "found": _found(classifier, labelled),
        "boundary": _boundary(classifier),
        "decision": _decision(classifier, labelled, evidence),
        "belief": _belief(classifier, evidence),
        "drivers": _drivers(evidence),
        "next": evidence.next,
    }
    plain: dict[str, Any] = as_plain(account)
    found = find_warnings(plain, evidence.held_out)
    plain["warnings"] = [*found, *evidence.failures]
    return plain


def _found(classifier: Any, labelled: Mask) -> dict[str, Any]:
    reading = classifier.reading_
    called = (classifier.posterior_ > 0.5) & ~labelled
    return {
        "rows": round(reading.n_labelled + reading.n_unlabelled),
        "labelled": round(reading.n_labelled),
        "unlabelled": round(reading.n_unlabelled),
        "hidden": reading.n_hidden,
        "hidden_interval": reading.n_hidden_interval,
        "level": LEVEL,
        "share_positive": reading.class_prior,
        "share_interval": reading.class_prior_interval,
        "called_positive": round(float(_row_weight(classifier)[called].sum())),
    }


def _row_weight(classifier: Any) -> NDArray[np.float64]:
    """Return how many rows each training row stands for."""
    weight: NDArray[np.float64] | None = classifier.row_weight_
    return np.ones(classifier.observed_gap_.size) if weight is None else weight


def _boundary(classifier: Any) -> dict[str, Any]:
    boundary = classifier.boundary_
    return {
        "value": boundary.value,
        "rule": boundary.rule,
        "spread": boundary.spread,
        "fallback": boundary.fallback,
    }


def _decision(classifier: Any, labelled: Mask, evidence: Evidence) -> dict[str, Any]:
    boundary, gap = classifier.boundary_, classifier.observed_gap_
    edges = np.linspace(-1.0, 1.0, _N_HISTOGRAM + 1)
    calibration, weight = evidence.held_out, _row_weight(classifier)
    counts = {
        name: np.histogram(gap[kind], edges, weights=weight[kind])[0]
        .round()
        .astype(int)
        for name, kind in (("unlabelled", ~labelled), ("labelled", labelled))
    }
    return {
        "n_negative": boundary.n_negative,
        "n_undecided": boundary.n_undecided,
        "n_positive": boundary.n_positive,
        "undecided_share": boundary.n_undecided / float(weight.sum()),
        "histogram": {"edges": edges, **counts},
        "reliability": [] if calibration is None else calibration.bins,
        "weights": _weights(classifier),
    }


def _weights(classifier: Any) -> dict[str, Any]:
    weight, matching = classifier.sample_weight_, classifier.kmm_
    chosen = weight[classifier.relabelling_.decided]
    total, squares = float(chosen.sum()), float(np.sum(chosen**2))
    return {
        "reweighted": matching is not None
        and not classifier.relabelling_.decided.all(),
        "effective_sample_size": total**2 / squares if squares > 0.0 else 0.0,
        "n_weighted": int(chosen.size),
        "largest": float(chosen.max()),
        "kkt_residual": None if matching is None else matching.kkt_residual,
        "converged": None if matching is None else bool(matching.converged),
    }


def _worlds(classifier: Any) -> dict[str, float]:
    """Return two numbers of hidden positives that both fit the data."""
    reading = classifier.reading_
    low, high = reading.worlds()
    return {"low": low, "high": high, "familiarity": reading.familiarity}


def _belief(classifier: Any, evidence: Evidence) -> dict[str, Any]:
    scar, curve, held_out = evidence.scar, evidence.curve, evidence.held_out
    return {
        "scar": None
        if scar is None
        else {
            "statistic": scar.statistic,
            "p_value": scar.p_value,
            "n_resamples": scar.n_resamples,
            "verdict": scar.verdict,
        },
        "labelling": None
        if curve is None
        else {
            "bins": curve.bins,
            "rises": curve.rises,
            "rank_correlation": curve.rank_correlation,
        },
        "held_out": None
        if held_out is None
        else {
            "recall": held_out.recall,
            "recall_interval": held_out.recall_interval,
            "n_labelled": held_out.n_labelled,
            "calibration_error": held_out.error,
        },
        "worlds": _worlds(classifier),
        "others": evidence.others,
    }


def _drivers(evidence: Evidence) -> dict[str, Any] | None:
    found = evidence.drivers
    if found is None:
        return None
    rows = zip(found.columns, found.importance, found.spread, strict=True)
    return {
        "scored_by": found.scored_by,
        "score": found.score,
        "columns": [
            {"column": str(name), "importance": mean, "spread": spread}
            for name, mean, spread in rows
        ],
    }
