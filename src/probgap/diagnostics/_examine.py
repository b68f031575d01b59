"""All checks of one model, as the plain data that a page is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.errors import InvalidInputError
from probgap._core.pipelines import (
    check_rows,
    classifier_of,
    sample_rows,
    samples_of,
    take_rows,
)
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Mask, Vector
from probgap.active import suggest
from probgap.diagnostics._account import Evidence, write_account
from probgap.diagnostics._compare import METHODS, OURS, compare_methods
from probgap.diagnostics._curve import draw_curve
from probgap.diagnostics._held_out import Progress, calibrate, hold_out
from probgap.diagnostics._scar import scar_test
from probgap.diagnostics._warnings import part_failed
from probgap.inspection import column_importance

_N_SCAR = 99
_N_NEXT = 50
_ABOUT_EVEN = 0.1
_MANY_COLUMNS = 200
# PGPUcv is left to compare_methods: its search takes as long as all the rest.
_OTHERS = tuple(name for name in METHODS if name != OURS and "cv" not in name)
_MOST_TO_COMPARE = 20_000
_N_FOLDS_HELD_OUT = 3
_N_FOLDS_TO_COMPARE = 3


@dataclass(frozen=True, slots=True)
class _Case:
    """A fitted model, its rows, and how to go about checking it."""

    model: Any
    X: Any
    samples: Any
    labelled: Mask
    chance: Vector
    n_jobs: int | None


def examine(
    model: Any,
    X: Any,
    labelled: ArrayLike,
    *,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Make every check of a fitted model, and give what they found as plain data.

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        The rows that it was fitted on.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    random_state : int, Generator, RandomState or None, default=None
        Seeds everything. The same integer gives the same numbers whatever ``n_jobs``.
    n_jobs : int, default=None
        Number of fits at once.
    progress : callable, default=None
        Called with how much is done, how much there is, and what comes next.

    Returns
    -------
    dict
        ``found``, ``boundary``, ``decision``, ``belief``, ``drivers``, ``next`` and
        ``warnings``: dicts, lists, strings, numbers and None, ready for JSON. Rows are
        counted from 1. A check that could not be made is None, with a warning that
        says why.

    See Also
    --------
    scar_test : Did labels fall at random?
    held_out_calibration : Are predictions of who is labelled right?

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.diagnostics import examine
    >>> X, y, posterior = make_square(300, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> account = examine(model, X, s == 1, random_state=0)
    >>> account["found"]["rows"], account["belief"]["held_out"]["recall"] > 0.9
    (300, True)
    """
    mask = check_rows(X, labelled)
    classifier, samples = classifier_of(model), samples_of(model, X)
    if classifier.observed_gap_.size != mask.size:
        msg = (
            f"X must hold the {classifier.observed_gap_.size} rows that the model was "
            f"fitted on. Got {mask.size}."
        )
        raise InvalidInputError(msg)
    case = _Case(model, X, samples, mask, classifier.posterior_, n_jobs)
    rng = as_generator(random_state)
    evidence = Evidence()
    done, total = 0, sum(cost for cost, _ in _CHECKS.values())
    for name, (cost, check) in _CHECKS.items():
        if progress is not None:
            progress(done, total, name)
        seed = draw_seed(rng)
        try:
            check(case, evidence, seed)
        except Exception as error:  # noqa: BLE001 (the other checks must go on)
            evidence.failures.append(part_failed(name, error))
        done += cost
    if progress is not None:
        progress(total, total, "")
    return write_account(classifier, mask, evidence)


def _check_held_out(case: _Case, found: Evidence, seed: int) -> None:
    held = hold_out(
        case.model,
        case.X,
        case.labelled,
        n_splits=_N_FOLDS_HELD_OUT,
        random_state=seed,
        n_jobs=case.n_jobs,
    )
    found.held_out, found.curve = calibrate(held), draw_curve(held)


def _check_scar(case: _Case, found: Evidence, seed: int) -> None:
    found.scar = scar_test(
        case.samples,
        case.labelled,
        n_resamples=_N_SCAR,
        random_state=seed,
        n_jobs=case.n_jobs,
    )


def _check_others(case: _Case, found: Evidence, seed: int) -> None:
    """Fit the other methods on folds of what the classifier sees, of many rows a part."""
    rng = np.random.default_rng(seed)
    rows = sample_rows(case.labelled, _MOST_TO_COMPARE, rng)
    found.others = compare_methods(
        take_rows(case.samples, rows),
        case.labelled[rows],
        methods=_OTHERS,
        ours=classifier_of(case.model),
        n_splits=_N_FOLDS_TO_COMPARE,
        random_state=rng,
        n_jobs=case.n_jobs,
    )


def _check_columns(case: _Case, found: Evidence, seed: int) -> None:
    wide = case.X.shape[1] > _MANY_COLUMNS if hasattr(case.X, "shape") else False
    fewer = {"n_repeats": 3, "max_columns": 30} if wide else {}
    found.drivers = column_importance(
        case.model, case.X, case.labelled, random_state=seed, **fewer
    )


def _choose_next(case: _Case, found: Evidence, seed: int) -> None:
    classifier = classifier_of(case.model)
    gap, lower = classifier.observed_gap_, classifier.boundary_.value
    rows = suggest(
        case.model,
        case.X,
        _N_NEXT,
        labelled=case.labelled,
        probability=case.chance,
        random_state=seed,
    )
    for row in rows:
        even = abs(case.chance[row] - 0.5) < _ABOUT_EVEN
        why = "a toss-up for the model" if even else "it stands for many rows"
        if lower < gap[row] <= 0.0:
            why = f"undecided by the gap, {why}"
        found.next.append(
            {
                "row": int(row) + 1,
                "id": None,
                "gap": gap[row],
                "probability": case.chance[row],
                "why": why,
            }
        )


# What the checks are called, and how long each takes beside the others.
_CHECKS: Mapping[str, tuple[int, Callable[[_Case, Evidence, int], None]]] = {
    "held-out rows": (27, _check_held_out),
    "random labelling": (21, _check_scar),
    "other methods": (34, _check_others),
    "columns": (14, _check_columns),
    "what to label next": (2, _choose_next),
}
