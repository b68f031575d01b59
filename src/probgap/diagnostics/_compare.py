"""The methods side by side, on rows that they were not fitted on."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn import metrics
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

from probgap import methods as pu
from probgap._core.checks import check_labelled, groups_of
from probgap._core.errors import refuse
from probgap._core.estimators import check_rows, refit, sample_rows, take_rows
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Mask, Rows, Vector
from probgap.boundary import lee_liu
from probgap.diagnostics._held_out import split
from probgap.gap import MixedGapEstimator
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV

Progress = Callable[[int, int, str], None]
Outcome = Vector | str  # decisions, or why there are none

OURS = "probgap"
# Left out unless asked for: a search that takes longer than all the rest, and rules on
# top of the scores that are the larger part of a default fit.
SLOW = ("PGPUcv (paper)", "PGlin (our scores)", "PUSB (our scores)")

METHODS: Mapping[str, Any] = {
    "naive boosted trees": pu.NaiveClassifier(HistGradientBoostingClassifier()),
    "naive forest": pu.NaiveClassifier(ExtraTreesClassifier(300, min_samples_leaf=3)),
    "PU bagging": pu.PUBaggingClassifier(),
    "spy": pu.SpyClassifier(),
    "naive SVM": pu.NaiveClassifier(),
    "Elkan-Noto": pu.ElkanNotoClassifier(),
    "Natarajan": pu.NatarajanClassifier(),
    "Liu-Tao": pu.LiuTaoClassifier(),
    "nnPU": pu.NNPUClassifier(),
    "uPU": pu.NNPUClassifier(risk="upu"),
    "PUSB": pu.PUSBClassifier(),
    "PGlin": pu.PGlinClassifier(),
    "SAR-EM": pu.SAREMClassifier(),
    # Where the letter leaves nothing to train on, an answer is more use than an error.
    "PGPU (paper)": PGPUClassifier.paper(strict=False),
    "PGPUcv (paper)": PGPUClassifierCV.paper(strict=False),
    "PGlin (our scores)": pu.PGlinClassifier(gap_estimator=MixedGapEstimator()),
    "PUSB (our scores)": pu.PUSBClassifier(gap_estimator=MixedGapEstimator()),
    OURS: PGPUClassifier(),
}
# Kernels of more rows than this take too long to learn from.
_MOST_TO_LEARN_FROM = 3000
_DESCRIBED = ["hidden", "agreement", "both", "only_here", "only_there"]
_DESCRIBED += ["overlap", "lee_liu", "recall", "share_positive", "error"]
_RANKING = ["labelled_auc", "labelled_average_precision"]
_BY_TRUTH = ["accuracy", "balanced_accuracy", "f1", "roc_auc"]
_BY_TRUTH += ["hidden_found", "false_alarms"]
_BY_TRUTH += [*_RANKING, "hidden_auc", "hidden_average_precision"]


def compare_methods(
    X: Any,
    labelled: ArrayLike,
    *,
    truth: ArrayLike | None = None,
    preprocessor: Any = None,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    n_splits: int = 5,
    groups: ArrayLike | None = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Compare ours with other methods and with trees, on held-out rows.

    Every method is fitted on the same folds, on at most 3000 rows each. Without truth,
    labels only show how many held-out labelled rows are found, how few rows are called
    positive for it, and how high labelled rows are ranked among the others: if labels are
    biased, the best method by that need not be the best by the truth.

    Parameters
    ----------
    X, labelled : object
        As in :func:`probgap.inspection.column_importance`.
    truth : array-like of shape (n_samples,), default=None
        True for positives, if known. Used for scores, never for fits.
    preprocessor : transformer, default=None
        Transforms X before each method; fitted on each fold. ``None`` takes X as it is.
    methods : iterable of str, or mapping of str to classifier, default=None
        Which methods, of "naive boosted trees", "naive forest", "PU bagging", "spy",
        "naive SVM", "Elkan-Noto", "Natarajan", "Liu-Tao", "nnPU", "uPU", "PUSB", "PGlin",
        "SAR-EM", "PGPU (paper)", "PGPUcv (paper)", "PGlin (our scores)", "PUSB (our
        scores)" and "probgap"; or classifiers of your own by name, of which "probgap" is
        ours. ``None`` takes all; "PGPUcv (paper)" takes longer than the others together.
    n_splits : int, default=5
        Number of folds; fewer where fewer rows are labelled.
    groups : array-like of shape (n_samples,), default=None
        Which rows belong together: they are held out together, inside ours as well.
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds and methods.
    n_jobs : int, default=None
        Number of fits at once.
    progress : callable, default=None
        Called with how many fits are done, how many there are, and what was fitted.

    Returns
    -------
    list of dict
        For each method ``hidden`` (unlabelled rows called positive), ``agreement`` with
        ours, ``both``, ``only_here`` and ``only_there`` (unlabelled rows called positive
        by both, by ours only, by this method only), ``overlap`` (the share of ``both`` in
        these three; where positives are few, any two methods agree on nearly every row, but
        need not overlap; all five are None if "probgap" is not compared),
        ``lee_liu``, ``recall`` of labelled rows, ``share_positive``, and ``labelled_auc``
        and ``labelled_average_precision`` of labelled rows among the unlabelled; with
        truth ``accuracy``, ``balanced_accuracy``, ``f1``, ``roc_auc``, ``hidden_found``,
        ``false_alarms``, and ``hidden_auc`` and ``hidden_average_precision`` of hidden
        positives among the unlabelled. ``seconds`` is the CPU time of one fit with its
        predictions. ``error`` says why a method failed, and its numbers are None.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.diagnostics import compare_methods
    >>> X, y, posterior = make_square(300, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> methods = ["naive SVM", "probgap"]
    >>> rows = compare_methods(
    ...     X, s == 1, truth=y == 1, methods=methods, n_splits=2, random_state=0
    ... )
    >>> [row["method"] for row in rows]
    ['naive SVM', 'probgap']
    >>> rows[1]["accuracy"] > 0.95
    True
    """
    mask = check_rows(X, labelled)
    known = None if truth is None else check_labelled(truth, mask.size, name="truth")
    names = list(METHODS if methods is None else methods)
    choices = methods if isinstance(methods, Mapping) else METHODS
    if not names or len(set(names)) < len(names) or not set(names) <= set(choices):
        refuse(
            f"methods must be different names among {tuple(METHODS)}. Got {names!r}."
        )
    tell = progress or (lambda _done, _total, _what: None)
    rng = as_generator(random_state)
    group = groups_of(groups, np.arange(mask.size), mask.size)
    folds = split(mask, n_splits, draw_seed(rng), group)
    parts = []
    for train, test in folds:
        drawn = train[sample_rows(mask[train], _MOST_TO_LEARN_FROM, rng)]
        seen, unseen = _prepare(preprocessor, X, drawn, test)
        together = None if group is None else group[drawn]
        parts.append((seen, mask[drawn], unseen, draw_seed(rng), together))
    jobs = [(name, part) for part in parts for name in names]
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_fit_and_predict)(choices[name], *part) for name, part in jobs
    )
    done: list[tuple[Outcome, float]] = []
    for (name, _), result in zip(jobs, results, strict=True):
        done.append(result)
        tell(len(done), len(jobs), name)
    order = np.argsort(np.concatenate([test for _, test in folds]), kind="stable")
    pooled, seconds = {}, {}
    for k, name in enumerate(names):
        outcomes, times = zip(*done[k :: len(names)], strict=True)
        pooled[name], seconds[name] = _pool(outcomes, order), sum(times) / len(folds)
    of_ours = pooled.get(OURS, "not compared")
    here = None if isinstance(of_ours, str) else of_ours > 0.0
    return [
        _describe_method(name, pooled[name], here, mask)
        | _score(pooled[name], mask, known)
        | {"seconds": seconds[name]}
        for name in names
    ]


def compare_with_fit(
    methods: Iterable[str],
    samples: Any,
    labelled: Mask,
    called: Mask,
    seed: int,
    group: Rows | None = None,
) -> dict[str, Any]:
    """Compare methods, fitted on half of the rows, with what a fit calls the others.

    Return how many rows were compared, and how many unlabelled ones the fit calls positive.
    """
    train, test = split(labelled, 2, seed, group)[0]
    seen, unseen = take_rows(samples, train), take_rows(samples, test)
    rows = []
    for name in methods:
        fitted = _fit_and_predict(METHODS[name], seen, labelled[train], unseen, seed)
        rows.append(_describe_method(name, fitted[0], called[test], labelled[test]))
    n_called = int(np.count_nonzero(called[test] & ~labelled[test]))
    return {"others": rows, "n_compared": int(test.size), "n_called": n_called}


def _prepare(preprocessor: Any, X: Any, train: Rows, test: Rows) -> tuple[Any, Any]:
    seen, unseen = take_rows(X, train), take_rows(X, test)
    if preprocessor is None:
        return seen, unseen
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a level that a fold has not seen
        fitted = clone(preprocessor).fit(seen)
        return fitted.transform(seen), fitted.transform(unseen)


def _fit_and_predict(
    method: Any,
    seen: Any,
    labelled: Mask,
    unseen: Any,
    seed: int,
    group: Rows | None = None,
) -> tuple[Outcome, float]:
    """Return decisions, or why there are none, and the CPU seconds they took."""
    started = time.process_time()
    outcome: Outcome
    try:
        copy = refit(method, seen, labelled, seed, group)
        outcome = copy.decision_function(unseen)
    except Exception as error:  # noqa: BLE001 (a failure is an outcome to report)
        outcome = str(error) or type(error).__name__
    return outcome, time.process_time() - started


def _pool(parts: Sequence[Outcome], order: Rows) -> Outcome:
    """Put the predictions of the folds together."""
    failed = [part for part in parts if isinstance(part, str)]
    return failed[0] if failed else np.concatenate(parts)[order]


def _describe_method(
    name: str, outcome: Outcome, ours: Mask | None, labelled: Mask
) -> dict[str, Any]:
    """Return what a method calls positive, and how that agrees with ours."""
    row: dict[str, Any] = {"method": name} | dict.fromkeys(_DESCRIBED)
    if isinstance(outcome, str):
        return row | {"error": outcome}
    called = outcome > 0.0
    row |= {
        "hidden": int(np.count_nonzero(called & ~labelled)),
        "lee_liu": lee_liu(labelled, called),
        "recall": float(called[labelled].mean()),
        "share_positive": float(called.mean()),
    }
    if ours is not None:
        hidden, mine = called & ~labelled, ours & ~labelled
        either = np.count_nonzero(hidden | mine)
        agreement, both = np.mean(called == ours), np.count_nonzero(hidden & mine)
        row |= {
            "agreement": float(agreement),
            "both": int(both),
            "only_here": int(np.count_nonzero(mine & ~hidden)),
            "only_there": int(np.count_nonzero(hidden & ~mine)),
            "overlap": float(both / either if either else agreement),
        }
    return row


def _score(outcome: Outcome, labelled: Mask, truth: Mask | None) -> dict[str, Any]:
    """Return how rows are ranked and, given the truth, how many are called rightly."""
    row: dict[str, Any] = dict.fromkeys(_RANKING if truth is None else _BY_TRUTH)
    if isinstance(outcome, str):
        return row
    row |= _rank("labelled", labelled, outcome)
    if truth is None:
        return row
    called = outcome > 0.0
    row |= {
        "accuracy": float(metrics.accuracy_score(truth, called)),
        "f1": float(metrics.f1_score(truth, called, zero_division=0.0)),
        "hidden_found": int(np.count_nonzero(called & truth & ~labelled)),
        "false_alarms": int(np.count_nonzero(called & ~truth)),
    }
    if truth.any() and not truth.all():
        balanced = metrics.balanced_accuracy_score(truth, called)
        row["balanced_accuracy"] = float(balanced)
        row["roc_auc"] = float(metrics.roc_auc_score(truth, outcome))
    return row | _rank("hidden", truth[~labelled], outcome[~labelled])


def _rank(kind: str, sought: Mask, scores: Vector) -> dict[str, float]:
    """Return how high the rows sought stand among the others, if there are both."""
    if sought.all() or not sought.any():
        return {}
    precision = metrics.average_precision_score(sought, scores)
    auc = metrics.roc_auc_score(sought, scores)
    return {f"{kind}_auc": float(auc), f"{kind}_average_precision": float(precision)}
