"""What a report says of a fit: what it found, and what each check of it gave.

Everything here is plain data: the parts of ``run.json``, which the templates see too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from probgap._core.estimators import classifier_of, sample_rows, samples_of, take_rows
from probgap._core.output import count_range, plural
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Mask, Vector
from probgap.audit import suggest
from probgap.diagnostics._compare import Progress, compare_with_fit
from probgap.diagnostics._held_out import (
    LEVEL,
    calibrate,
    draw_curve,
    held_out_by_fit,
    hold_out,
)
from probgap.diagnostics._scar import scar_test
from probgap.inspection import column_importance
from probgap.plotting import count_gaps
from probgap.reweight import left_out_bound

# Share, least and greatest number of rows for checks that fit models: with these, all
# checks together cost less than the fit (benchmarks/fit.py --checks).
_TO_COMPARE = (0.2, 1000, 2500)
_TO_SHUFFLE = (0.1, 500, 2500)
_MOST_TO_DRAW_LABELS = 2000
_MOST_HELD_OUT, _N_FOLDS_HELD_OUT = 20_000, 3
_N_SCAR = 59
_N_REPEATS, _MOST_COLUMNS = 2, 30
_N_NEXT = 50
_ABOUT_EVEN = 0.1
# Trees and PGPUcv, whose search takes as long as all the rest, are left to compare_methods.
_OTHERS = ("naive SVM", "Elkan-Noto", "Natarajan", "Liu-Tao", "PGPU (paper)")

Evidence = dict[str, Any]


def plain(value: Any) -> Any:
    """Turn numpy into Python, dataclasses into dicts, NaN and infinity into None."""
    if is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)


def describe_fit(model: Any, X: Any, labelled: Mask) -> Evidence:
    """Return what the fit itself found."""
    classifier = classifier_of(model)
    estimate, gap = classifier.reading_, classifier.observed_gap_
    weight = classifier.row_weight_  # how many rows each represents
    weight = np.ones(gap.size) if weight is None else weight
    called = (classifier.probability_ > 0.5) & ~labelled
    found = {
        "rows": round(estimate.n_labelled + estimate.n_unlabelled),
        "labelled": round(estimate.n_labelled),
        "unlabelled": round(estimate.n_unlabelled),
        "hidden": estimate.n_hidden,
        "hidden_interval": estimate.n_hidden_interval,
        "level": LEVEL,
        "share_positive": estimate.class_prior,
        "share_interval": estimate.class_prior_interval,
        "called_positive": round(float(weight[called].sum())),
    }
    found["headline"] = headline(found)
    boundary = plain(classifier.boundary_)
    sides = ("n_negative", "n_undecided", "n_positive")
    decision = {name: boundary[name] for name in sides}
    n_rows = max(1, sum(decision.values()))
    decision["undecided_share"] = decision["n_undecided"] / n_rows
    decision["histogram"] = count_gaps(gap, labelled, weight=weight)
    decision["weights"] = _describe_weights(model, X)
    decision["reliability"] = []
    low, high = estimate.scenarios()
    scenarios = {"low": low, "high": high, "familiarity": estimate.familiarity}
    names = ("value", "rule", "spread", "fallback")
    return {
        "found": found,
        "boundary": {name: boundary[name] for name in names},
        "decision": decision,
        "belief": {
            "scar": None,
            "labelling": None,
            "held_out": None,
            "scenarios": scenarios,
            "others": [],
            "n_compared": 0,
        },
        "drivers": None,
        "next": [],
    }


def headline(found: Evidence) -> str:
    """Return how many positives are hidden, as firmly as the interval allows."""
    among = f"among {plural(found['unlabelled'], 'unlabelled row')}"
    low, high = found["hidden_interval"]
    words = count_range(low, high, found["unlabelled"])
    if words == "none":
        return f"No sign of hidden positives {among}"
    if words == "any number":
        return f"Any number of hidden positives {among}"
    noun = "positive" if words.endswith(" 1") else "positives"
    return f"{words[0].upper()}{words[1:]} more {noun} {among}"


def _describe_weights(model: Any, X: Any) -> Evidence:
    """Say how unequal weights are, how exact, and what rows left out can cost."""
    classifier = classifier_of(model)
    matching, relabelled = classifier.kmm_, classifier.relabelling_
    decided, bound = relabelled.decided, None
    if not decided.all():
        called = classifier.predict(samples_of(model, X))
        positive = called == classifier.classes_[classifier.positive_index_]
        bound = left_out_bound(positive != (relabelled.labels == 1), decided)
    chosen: Vector = classifier.sample_weight_[decided]
    total, squares = float(chosen.sum()), float(np.sum(chosen**2))
    return {
        "reweighted": matching is not None and not decided.all(),
        "effective_sample_size": total**2 / squares if squares > 0.0 else 0.0,
        "n_weighted": int(chosen.size),
        "largest": float(chosen.max()),
        "kkt_residual": None if matching is None else matching.kkt_residual,
        "converged": None if matching is None else bool(matching.converged),
        "bound": bound,
    }


def make_checks(
    evidence: Evidence,
    model: Any,
    X: Any,
    labelled: Mask,
    *,
    fast: bool,
    random_state: RandomStateLike,
    n_jobs: int | None,
    progress: Progress | None,
) -> dict[str, str]:
    """Add what each check gives to the evidence; return the checks that failed."""
    tell = progress or (lambda _done, _total, _what: None)
    rng, failures = as_generator(random_state), {}
    left_out = FITTING if fast else ()
    done, total = 0, sum(cost for n, (cost, _) in _CHECKS.items() if n not in left_out)
    for name, (cost, check) in _CHECKS.items():
        seed = draw_seed(rng)  # the same for a check whatever is left out
        if name in left_out:
            continue
        tell(done, total, name)
        try:
            check(evidence, model, X, labelled, seed, n_jobs)
        except Exception as error:  # noqa: BLE001 (the other checks must go on)
            failures[name] = str(error)
        done += cost
    tell(total, total, "")
    return failures


def _check_held_out(
    evidence: Evidence, model: Any, X: Any, labelled: Mask, seed: int, n_jobs: Any
) -> None:
    how = (_N_FOLDS_HELD_OUT, _MOST_HELD_OUT, seed, n_jobs)
    held = held_out_by_fit(classifier_of(model), labelled)
    held = held or hold_out(model, X, labelled, *how)
    found = plain(calibrate(held))
    evidence["decision"]["reliability"] = found.pop("bins")
    found["calibration_error"] = found.pop("error")
    evidence["belief"] |= {"held_out": found, "labelling": plain(draw_curve(held))}


def _check_scar(
    evidence: Evidence, model: Any, X: Any, labelled: Mask, seed: int, _: Any
) -> None:
    rng = np.random.default_rng(seed)
    rows = sample_rows(labelled, _MOST_TO_DRAW_LABELS, rng)
    samples = samples_of(model, take_rows(X, rows))
    found = scar_test(samples, labelled[rows], n_resamples=_N_SCAR, random_state=rng)
    evidence["belief"]["scar"] = plain(found) | {"verdict": found.verdict}


def _check_others(
    evidence: Evidence, model: Any, X: Any, labelled: Mask, seed: int, _: Any
) -> None:
    most = _share_of(labelled.size, *_TO_COMPARE)
    rows = sample_rows(labelled, most, np.random.default_rng(seed))
    samples = samples_of(model, take_rows(X, rows))
    called = classifier_of(model).posterior_[rows] > 0.5
    others, n = compare_with_fit(_OTHERS, samples, labelled[rows], called, seed)
    evidence["belief"] |= {"others": others, "n_compared": n}


def _check_columns(
    evidence: Evidence, model: Any, X: Any, labelled: Mask, seed: int, _: Any
) -> None:
    how: Any = {"n_repeats": _N_REPEATS, "max_columns": _MOST_COLUMNS}
    most = _share_of(labelled.size, *_TO_SHUFFLE)
    how |= {"max_rows": most, "random_state": seed}
    found = plain(column_importance(model, X, labelled, **how))
    lists = (found.pop(key) for key in ("columns", "importance", "spread"))
    found["columns"] = [
        {"column": str(name), "importance": mean, "spread": spread}
        for name, mean, spread in zip(*lists, strict=True)
    ]
    evidence["drivers"] = found


def _choose_next(
    evidence: Evidence, model: Any, X: Any, labelled: Mask, seed: int, _: Any
) -> None:
    classifier = classifier_of(model)
    gap, chance = classifier.observed_gap_, classifier.probability_
    known = {"labelled": labelled, "probability": chance}
    for row in suggest(model, X, _N_NEXT, **known, random_state=seed).tolist():
        even = abs(chance[row] - 0.5) < _ABOUT_EVEN
        why = "a toss-up for the model" if even else "like many other rows"
        if classifier.boundary_.value < gap[row] <= 0.0:
            why = f"undecided by the gap, {why}"
        numbers = {"gap": float(gap[row]), "probability": float(chance[row])}
        evidence["next"].append({"row": row, "id": None, **numbers, "why": why})


def _share_of(n_rows: int, share: float, fewest: int, most: int) -> int:
    return int(np.clip(round(share * n_rows), fewest, most))


# Names of the checks, and how long each takes relative to the others.
_CHECKS: Mapping[str, tuple[int, Callable[..., None]]] = {
    "held-out rows": (5, _check_held_out),
    "random labelling": (20, _check_scar),
    "other methods": (20, _check_others),
    "columns": (45, _check_columns),
    "what to label next": (10, _choose_next),
}
# Those that fit something else.
FITTING = ("random labelling", "other methods", "columns")
