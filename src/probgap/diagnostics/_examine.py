"""All checks of one fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from probgap._core.errors import InvalidInputError
from probgap._core.estimators import (
    check_rows,
    classifier_of,
    sample_rows,
    samples_of,
    take_rows,
)
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Mask, Vector
from probgap.audit import suggest
from probgap.diagnostics import account as parts
from probgap.diagnostics._compare import Progress, compare_with_fit
from probgap.diagnostics._held_out import (
    LEVEL,
    calibrate,
    draw_curve,
    held_out_by_fit,
    hold_out,
)
from probgap.diagnostics._scar import scar_test
from probgap.diagnostics.account import Account, Caution
from probgap.inspection import ColumnImportance, column_importance
from probgap.reweight import LeftOutBound, left_out_bound

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
_N_HISTOGRAM = 40
# Trees and PGPUcv, whose search takes as long as all the rest, are left to compare_methods.
_OTHERS = ("naive SVM", "Elkan-Noto", "Natarajan", "Liu-Tao", "PGPU (paper)")

# Thresholds of the warnings.
_FEWEST_TO_TRUST = 30
_LOWEST_AUC, _HIGHEST_AUC = 0.6, 0.999
_LOWEST_RECALL = 0.7
# One column explains this share of the AUC above chance, and the next less than this
# share of what it explains.
_ALL_BY_ITSELF, _NEXT_TO_NOTHING = 0.5, 0.2

_WITHOUT_IT = (
    "Read the rest of the page without it. It is often a sign of too few rows or "
    "labels: more of them may bring it back."
)

Evidence = dict[str, Any]


def examine(
    model: Any,
    X: Any,
    labelled: ArrayLike,
    *,
    fast: bool = False,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Account:
    """Make every check of a fitted model, and return the account of the fit.

    Held-out predictions are those of the fit itself if it made any, as the default
    does. Checks that fit other models do so on a sample of the rows, whose size is in
    the account. All checks together cost less than the fit of the default
    (``benchmarks/fit.py --checks``).

    Parameters
    ----------
    model : PGPUClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        The rows that it was fitted on.
    labelled : array-like of shape (n_samples,)
        True for labelled positives.
    fast : bool, default=False
        Leave out the checks that fit something else: whether labels fell at random, what
        other methods say, and which columns matter. A warning of the account says so.
    random_state : int, Generator, RandomState or None, default=None
        Seeds everything. The same integer gives the same numbers whatever ``n_jobs``.
    n_jobs : int, default=None
        Number of fits at once, if the model made no held-out predictions.
    progress : callable, default=None
        Called with how much is done, how much there is, and what comes next.

    Returns
    -------
    Account
        The results; :func:`probgap.page.render_page` turns them into a page,
        ``to_dict`` into plain data. A check that failed is None, with a warning that
        says why.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.diagnostics import examine
    >>> X, y, posterior = make_square(300, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> account = examine(model, X, s == 1, random_state=0)
    >>> account.found.rows, account.held_out.recall > 0.9
    (300, True)
    """
    mask = check_rows(X, labelled)
    classifier = classifier_of(model)
    if (n_fitted := classifier.observed_gap_.size) != mask.size:
        msg = f"X must hold the {n_fitted} rows of the fit. Got {mask.size}."
        raise InvalidInputError(msg)
    tell = progress or (lambda _done, _total, _what: None)
    rng, failures = as_generator(random_state), []
    evidence = _describe(model, X, mask)
    left_out = _FITTING if fast else ()
    checks = {name: check for name, check in _CHECKS.items() if name not in left_out}
    done, total = 0, sum(cost for cost, _ in checks.values())
    for name, (cost, check) in _CHECKS.items():
        seed = draw_seed(rng)  # the same for a check whatever is left out
        if name in left_out:
            continue
        tell(done, total, name)
        try:
            evidence |= check(model, X, mask, seed, n_jobs)
        except Exception as error:  # noqa: BLE001 (the other checks must go on)
            what = f"The check of {name} could not be made: {error}"
            failures.append(Caution("mild", what, _WITHOUT_IT))
        done += cost
    tell(total, total, "")
    account = Account(**evidence)
    # The gravest first.
    found = sorted(_find_warnings(account), key=lambda w: w.level != "strong")
    skipped = [_LEFT_OUT] if fast else []
    return replace(account, warnings=(*found, *skipped, *failures))


def _check_held_out(
    model: Any, X: Any, labelled: Mask, seed: int, n_jobs: int | None
) -> Evidence:
    how = (_N_FOLDS_HELD_OUT, _MOST_HELD_OUT, seed, n_jobs)
    held = held_out_by_fit(classifier_of(model), labelled)
    held = held or hold_out(model, X, labelled, *how)
    return {"held_out": calibrate(held), "labelling": draw_curve(held)}


def _check_scar(model: Any, X: Any, labelled: Mask, seed: int, _: Any) -> Evidence:
    rng = np.random.default_rng(seed)
    rows = sample_rows(labelled, _MOST_TO_DRAW_LABELS, rng)
    samples = samples_of(model, take_rows(X, rows))
    found = scar_test(samples, labelled[rows], n_resamples=_N_SCAR, random_state=rng)
    return {"scar": found}


def _check_others(model: Any, X: Any, labelled: Mask, seed: int, _: Any) -> Evidence:
    most = _share_of(labelled.size, *_TO_COMPARE)
    rows = sample_rows(labelled, most, np.random.default_rng(seed))
    samples = samples_of(model, take_rows(X, rows))
    called = classifier_of(model).posterior_[rows] > 0.5
    others, n = compare_with_fit(_OTHERS, samples, labelled[rows], called, seed)
    return {
        "others": tuple(parts.OtherMethod(**row) for row in others),
        "n_compared": n,
    }


def _check_columns(model: Any, X: Any, labelled: Mask, seed: int, _: Any) -> Evidence:
    how = {"n_repeats": _N_REPEATS, "max_columns": _MOST_COLUMNS, "random_state": seed}
    most = _share_of(labelled.size, *_TO_SHUFFLE)
    return {"drivers": column_importance(model, X, labelled, max_rows=most, **how)}


def _choose_next(model: Any, X: Any, labelled: Mask, seed: int, _: Any) -> Evidence:
    classifier = classifier_of(model)
    gap, chance = classifier.observed_gap_, classifier.probability_
    known = {"labelled": labelled, "probability": chance}
    found = []
    for row in suggest(model, X, _N_NEXT, **known, random_state=seed):
        even = abs(chance[row] - 0.5) < _ABOUT_EVEN
        why = "a toss-up for the model" if even else "like many other rows"
        if classifier.boundary_.value < gap[row] <= 0.0:
            why = f"undecided by the gap, {why}"
        numbers = float(gap[row]), float(chance[row])
        found.append(parts.NextRow(int(row) + 1, None, *numbers, why))
    return {"next": tuple(found)}


def _share_of(n_rows: int, share: float, fewest: int, most: int) -> int:
    return int(np.clip(round(share * n_rows), fewest, most))


# Names of the checks, and how long each takes relative to the others.
_CHECKS: Mapping[str, tuple[int, Callable[..., Evidence]]] = {
    "held-out rows": (5, _check_held_out),
    "random labelling": (20, _check_scar),
    "other methods": (20, _check_others),
    "columns": (45, _check_columns),
    "what to label next": (10, _choose_next),
}
# Those that fit something else.
_FITTING = ("random labelling", "other methods", "columns")
_LEFT_OUT = Caution(
    "mild",
    "Three checks were left out to save time (--fast): random labelling, other methods "
    "and columns.",
    "Fit again without --fast before you act on the numbers.",
    sign="fast",
)


def _describe(model: Any, X: Any, labelled: Mask) -> Evidence:
    """Return what the fit itself found."""
    classifier = classifier_of(model)
    reading, gap = classifier.reading_, classifier.observed_gap_
    weight = classifier.row_weight_  # how many rows each stands for
    weight = np.ones(gap.size) if weight is None else weight
    edges = np.linspace(-1.0, 1.0, _N_HISTOGRAM + 1)
    counts = (
        np.histogram(gap[kind], edges, weights=weight[kind])[0].round().astype(int)
        for kind in (~labelled, labelled)
    )
    called = (classifier.probability_ > 0.5) & ~labelled
    found = parts.Found(
        rows=round(reading.n_labelled + reading.n_unlabelled),
        labelled=round(reading.n_labelled),
        unlabelled=round(reading.n_unlabelled),
        hidden=reading.n_hidden,
        hidden_interval=reading.n_hidden_interval,
        level=LEVEL,
        share_positive=reading.class_prior,
        share_interval=reading.class_prior_interval,
        called_positive=round(float(weight[called].sum())),
    )
    matching, decided = classifier.kmm_, classifier.relabelling_.decided
    chosen: Vector = classifier.sample_weight_[decided]
    total, squares = float(chosen.sum()), float(np.sum(chosen**2))
    weights = parts.Weights(
        reweighted=matching is not None and not decided.all(),
        effective_sample_size=total**2 / squares if squares > 0.0 else 0.0,
        n_weighted=int(chosen.size),
        largest=float(chosen.max()),
        kkt_residual=None if matching is None else matching.kkt_residual,
        converged=None if matching is None else bool(matching.converged),
        bound=_bound_left_out(model, X),
    )
    low, high = reading.scenarios()
    return {
        "found": found,
        "boundary": classifier.boundary_,
        "histogram": parts.Histogram(*(tuple(n.tolist()) for n in (edges, *counts))),
        "weights": weights,
        "worlds": parts.Worlds(low, high, reading.familiarity),
    }


def _bound_left_out(model: Any, X: Any) -> LeftOutBound | None:
    """Bound the share of the rows that the classifier can have wrong, by new labels."""
    classifier = classifier_of(model)
    relabelled = classifier.relabelling_
    if relabelled.decided.all():
        return None
    called = classifier.predict(samples_of(model, X))
    positive = called == classifier.classes_[classifier.positive_index_]
    return left_out_bound(positive != (relabelled.labels == 1), relabelled.decided)


def _find_warnings(account: Account) -> Iterator[Caution]:
    n, held_out, drivers = account.found.labelled, account.held_out, account.drivers
    if n < _FEWEST_TO_TRUST:
        yield Caution(
            "strong",
            f"Only {n} positives are labelled.",
            f"Wait for at least {_FEWEST_TO_TRUST - n} more labels, collected as these "
            "were, before you trust the count; until then the ranking is worth more than "
            "any number here.",
            sign="few",
        )
    if account.boundary.fallback is not None:
        rough = "Take the count as a rough guess."
        yield Caution("mild", account.boundary.fallback, rough)
    if held_out is None:
        return
    if held_out.roc_auc < _LOWEST_AUC:
        yield Caution(
            "strong",
            "Labelled rows look like all the others: a held-out labelled row is ranked "
            f"above an unlabelled one in {held_out.roc_auc:.0%} of pairs, where chance "
            "gives 50%.",
            "Do not act on the list. Check that the label column is the right one, and "
            "add columns that could tell a positive from the rest.",
            sign="indistinct",
        )
    elif held_out.recall < _LOWEST_RECALL:
        yield Caution(
            "mild",
            f"Of the labelled positives held out, only {held_out.recall:.0%} are "
            "called positive.",
            "Expect as many of the hidden ones to be missed. Work by rank beyond the "
            "rows that are called positive.",
        )
    if held_out.roc_auc <= _HIGHEST_AUC:
        return
    what = "Labelled rows are told from unlabelled ones almost without error"
    if drivers is not None and (culprit := _one_column(drivers)) is not None:
        yield Caution(
            "strong",
            f"{what}, by the column {culprit!r} alone. That is too good to be true.",
            "Ask whether that column was filled in because a row was labelled. If so, "
            "leave it out and fit again.",
        )
    else:
        yield Caution(
            "mild",
            f"{what}. Either nothing is hidden, or some columns were filled in because "
            "a row was labelled.",
            "Check where the columns that matter most come from; leave out those that "
            "follow the label.",
        )


def _one_column(drivers: ColumnImportance) -> str | None:
    """Return the column that explains the labels by itself, if one does."""
    top, second, *_ = [*drivers.importance, 0.0, 0.0]
    enough = top > _ALL_BY_ITSELF * (drivers.score - 0.5)
    alone = enough and second < _NEXT_TO_NOTHING * top
    return str(drivers.columns[0]) if alone else None
