"""What a report says of a fit: what it found, and what each check of it gave.

Everything here is plain data: the parts of ``run.json``, which the templates see too.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probgap._core.checks import decode_labels
from probgap._core.errors import load_library, refuse
from probgap._core.estimators import (
    check_rows,
    classifier_of,
    sample_rows,
    samples_of,
    take_rows,
)
from probgap._core.output import count_range, plural
from probgap._core.runtime import draw_seed
from probgap._core.types import Mask, Rows, Vector
from probgap.audit import suggest
from probgap.diagnostics._compare import Progress, compare_with_fit
from probgap.diagnostics._held_out import LEVEL, calibrate, held_out_by_fit, hold_out
from probgap.diagnostics._scar import scar_test
from probgap.diagnostics._who_looked import labelling_columns
from probgap.gap import MixedGapEstimator
from probgap.inspection import column_importance
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV
from probgap.plotting import count_gaps
from probgap.reweight import left_out_bound
from probgap.tables import ids_of

# Share, least and greatest number of rows for checks that fit models: with these, all
# checks together cost less than the fit (benchmarks/tool.py, with and without --fast).
_TO_COMPARE = (0.2, 1000, 2500)
_TO_SHUFFLE = (0.1, 500, 2500)
_MOST_TO_DRAW_LABELS = 2000
_MOST_HELD_OUT, _N_FOLDS_HELD_OUT = 20_000, 3
_N_SCAR = 59
_N_REPEATS, _MOST_COLUMNS = 2, 30
_N_NEXT = 50
_N_FIRST = 3
_ABOUT_EVEN = 0.1
_SIDES = ("n_negative", "n_undecided", "n_positive")
_OF_BOUNDARY = ("value", "rule", "spread", "fallback")
# Trees and PGPUcv, whose search takes as long as all the rest, are left to compare_methods.
_OTHERS = ("naive SVM", "Elkan-Noto", "Natarajan", "Liu-Tao", "PGPU (paper)")

Evidence = dict[str, Any]


@dataclass(frozen=True)
class Fit:
    """A fitted model, and its rows: as it takes them, as a frame, and as in the table."""

    pipeline: Any
    X: Any
    labelled: Mask
    inputs: Any
    cells: Any
    ids: NDArray[Any] | None
    table: dict[str, Any]
    kinds: NDArray[Any]  # the value that marks each labelled row, "" of the others
    given: tuple[Any, Any]  # the model and its rows, as they were given

    @cached_property
    def negative(self) -> Mask:
        """Which rows were checked and are not positive."""
        negative = self.classifier.negative_
        return np.zeros_like(self.labelled) if negative is None else negative

    @cached_property
    def classifier(self) -> Any:
        """The classifier at the end of the pipeline."""
        return classifier_of(self.pipeline)

    def groups(self, rows: Any = slice(None)) -> Rows | None:
        """Return which rows belong together; None if none do."""
        group = self.classifier.group_
        return None if group is None else group[rows]


def read_fit(model: Any, X: Any, y: Any, ids: Any, table: Any) -> Fit:
    """Find out what was fitted on which rows, or refuse it."""
    pipeline = getattr(model, "pipeline_", model)
    classifier = classifier_of(pipeline)
    if not isinstance(classifier, PGPUClassifier | PGPUClassifierCV):
        refuse(
            "model must be a fitted PGPUClassifier, PGPUClassifierCV or TableClassifier, "
            f"or a pipeline that ends in one. Got {type(classifier).__name__}."
        )
    facts = _describe_table(model, classifier, y, table)
    kinds = _read_observed(model, classifier, X, y, facts["positive"])
    labelled = check_rows(X, kinds != "")
    if (n_fitted := classifier.observed_gap_.size) != labelled.size:
        refuse(f"X must hold the {n_fitted} rows of the fit. Got {labelled.size}.")
    inputs = _as_frame(X) if pipeline is model else model.read_inputs(X)
    cells = _as_frame(X) if table is None and hasattr(X, "columns") else inputs
    if table is not None:
        cells = table.frame
    if ids is None and getattr(model, "id", None) is not None:
        ids = ids_of(cells, model.id)
    ids = None if ids is None else np.asarray(ids, dtype=object)
    seen = X if pipeline is model else inputs
    return Fit(pipeline, seen, labelled, inputs, cells, ids, facts, kinds, (model, X))


def _read_observed(
    model: Any, classifier: Any, X: Any, y: Any, positive: str
) -> NDArray[Any]:
    """Return the value of each labelled row, from labels as they were given to the fit.

    That is ``positive`` if there is but one, and "" of rows that are not labelled.
    """
    if y is None:
        label = getattr(model, "label_", None)
        if label is None or label not in getattr(X, "columns", ()):
            refuse(
                "y must be given: X has no column that the model took for its label."
            )
        kinds = model.labels_.find_kinds(_as_frame(X)[label])
        one = len(model.labels_.kinds) == 1
        return np.where(kinds != "", positive, "") if one else kinds
    if getattr(y, "dtype", None) == bool:
        return np.where(np.asarray(y), positive, "")
    names, at = classifier.classes_.tolist(), classifier.positive_index_
    several = getattr(model, "pos_label", None)  # of a TableClassifier, or none
    several = several if isinstance(several, tuple | list) else classifier.pos_label
    marks = several if isinstance(several, tuple | list) else (names[at],)
    negative = None if classifier.negative_ is None else names[1 - at]
    labelled = decode_labels(y, tuple(marks), negative).labelled
    values = np.asarray(y, dtype=object).ravel() if len(marks) > 1 else positive
    return np.where(labelled, values, "").astype(str)


def _as_frame(X: Any) -> Any:
    """Return rows as a DataFrame, numbered from 0; one without columns if sparse."""
    pd = load_library("pandas", extra="report", purpose="a report")
    if issparse(X):
        return pd.DataFrame(index=pd.RangeIndex(X.shape[0]))
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    frame = pd.DataFrame(X)
    names = [str(name) for name in frame.columns]
    return frame.set_axis(names, axis=1).set_axis(pd.RangeIndex(len(frame)), axis=0)


def _describe_table(model: Any, classifier: Any, y: Any, table: Any) -> dict[str, Any]:
    """Describe the table, how its label was decoded, and how each column is used."""
    plan = getattr(model, "plan_", None)
    uses = [asdict(use) for use in plan.columns] if plan is not None else []
    facts = dict.fromkeys(("path", "rows", "sha256", "label", "id", "files"))
    facts |= {"name": "the table", "unlabelled": {}, "sentence": "", "notes": []}
    facts |= {use["use"]: use["name"] for use in uses if use["use"] in ("id", "label")}
    label = getattr(model, "label_", None) or facts["label"]
    facts["label"] = label or getattr(y, "name", None)
    facts["positive"] = str(classifier.classes_[classifier.positive_index_])
    facts["columns"] = uses
    for source in (getattr(model, "labels_", None), table):
        known = {name: getattr(source, name, None) for name in facts}
        facts |= {name: value for name, value in known.items() if value}
    return facts


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


def describe_fit(fit: Fit) -> Evidence:
    """Return what the fit itself found, with places for what the checks give."""
    classifier = fit.classifier
    estimate, gap = classifier.estimate_, classifier.observed_gap_
    weight = classifier.row_weight_  # how many rows each one represents
    weight = np.ones(gap.size) if weight is None else weight
    called = (classifier.probability_ > 0.5) & ~fit.labelled
    found = {
        "rows": round(estimate.n_rows),
        "labelled": round(estimate.n_labelled),
        "unlabelled": round(estimate.n_unlabelled),
        "negative": round(estimate.n_negative),
        "hidden": estimate.n_hidden,
        "hidden_interval": estimate.n_hidden_interval,
        "level": LEVEL,
        "share_positive": estimate.class_prior,
        "share_interval": estimate.class_prior_interval,
        "called_positive": round(float(weight[called].sum())),
    }
    boundary = plain(classifier.boundary_)
    sides = {name: boundary[name] for name in _SIDES}
    low, high = estimate.scenarios()
    belief: Evidence = dict.fromkeys(("scar", "labelling", "held_out"))
    belief["scenarios"] = {"low": low, "high": high}
    belief["scenarios"]["familiarity"] = estimate.familiarity
    looked = {} if classifier.labelling_ is None else {"looked": _describe_looked(fit)}
    return {
        "found": found | {"headline": headline(found)},
        **looked,
        "boundary": {name: boundary[name] for name in _OF_BOUNDARY},
        "decision": {
            **sides,
            "undecided_share": sides["n_undecided"] / max(1, sum(sides.values())),
            "histogram": count_gaps(gap, fit.labelled, weight=weight),
            "weights": _describe_weights(fit),
            "reliability": [],
        },
        "belief": belief | {"others": [], "n_compared": 0, "n_called": 0},
        "drivers": None,
        "question": None,
        "next": [],
    }


def _describe_looked(fit: Fit) -> Evidence:
    """Describe who was looked at, by the columns that say it."""
    found = plain(fit.classifier.labelling_)
    del found["rate"]  # of every row
    return found


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


def tell_kinds(fit: Fit) -> tuple[NDArray[Any], list[Evidence]]:
    """Return which kind of positive each row looks like, and what is expected of each kind.

    By a linear classifier of the labelled rows alone: hidden positives of a kind are
    assumed to look like labelled ones.
    """
    names, counts = np.unique(fit.kinds[fit.labelled], return_counts=True)
    if names.size < 2:
        refuse(
            "kinds (--kinds) needs several values that mean positive (--positive). Got "
            f"{names.tolist()}."
        )
    classifier = fit.classifier
    samples = classifier._without_declared(samples_of(fit.pipeline, fit.X))
    model = make_pipeline(
        StandardScaler(with_mean=False), LogisticRegression(max_iter=1000)
    )
    share = model.fit(samples[fit.labelled], fit.kinds[fit.labelled]).predict_proba(
        samples
    )
    kind = np.where(fit.labelled, fit.kinds, names[share.argmax(axis=1)])
    kind[fit.negative] = ""
    chance, weight = classifier.probability_, classifier.row_weight_
    free = np.where(fit.labelled | fit.negative, 0.0, chance)
    expected = (free if weight is None else weight * free) @ share
    likeliest = np.argsort(-free, kind="stable")
    found = []
    for at, name in enumerate(names.tolist()):
        rows = likeliest[(kind[likeliest] == name) & (free[likeliest] > 0.0)][:_N_FIRST]
        found.append(
            {
                "kind": name,
                "labelled": int(counts[at]),
                "hidden": float(expected[at]),
                "first": [_name_row(fit, row) for row in rows.tolist()],
            }
        )
    return kind, sorted(found, key=lambda each: -each["hidden"])


def _name_row(fit: Fit, row: int) -> str:
    return str(fit.cells.index[row] + 1 if fit.ids is None else fit.ids[row])


def _describe_weights(fit: Fit) -> Evidence:
    """Describe how unequal weights are, how exact, and what rows left out can cost."""
    classifier = fit.classifier
    matching, relabelled = classifier.kmm_, classifier.relabelling_
    decided, bound = relabelled.decided, None
    if not decided.all():
        called = classifier.predict(samples_of(fit.pipeline, fit.X))
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
    tree: Evidence, fit: Fit, *, fast: bool, rng: Any, n_jobs: Any, tell: Progress
) -> dict[str, str]:
    """Add what each check gives to the tree; return the checks that failed, and why."""
    failures, left_out = {}, FITTING if fast else ()
    done, total = 0, sum(cost for n, (cost, _) in _CHECKS.items() if n not in left_out)
    for name, (cost, check) in _CHECKS.items():
        seed = draw_seed(rng)  # the same for a check whatever is left out
        if name in left_out:
            continue
        tell(done, total, name)
        try:
            check(tree, fit, seed, n_jobs)
        except Exception as error:  # noqa: BLE001 (the other checks must go on)
            failures[name] = str(error)
        done += cost
    tell(total, total, "")
    return failures


def _check_held_out(tree: Evidence, fit: Fit, seed: int, n_jobs: int | None) -> None:
    how = (_N_FOLDS_HELD_OUT, _MOST_HELD_OUT, seed, n_jobs, fit.groups())
    held = held_out_by_fit(fit.classifier, fit.labelled)
    held = held or hold_out(fit.pipeline, fit.X, fit.labelled, *how)
    found = plain(calibrate(*held))
    tree["decision"]["reliability"] = found.pop("bins")
    found["calibration_error"] = found.pop("error")
    if fit.negative.any():
        called = fit.classifier.posterior_[fit.negative] > 0.5
        found |= {"n_negative": called.size, "n_false": int(called.sum())}
    tree["belief"] |= {"labelling": found.pop("labelling"), "held_out": found}


def _check_scar(tree: Evidence, fit: Fit, seed: int, _: Any) -> None:
    rng = np.random.default_rng(seed)
    rows, samples, known = _draw(fit, _MOST_TO_DRAW_LABELS, rng)
    how: Any = {"n_resamples": _N_SCAR, "groups": fit.groups(rows)}
    found = scar_test(samples, known, random_state=rng, **how)
    tree["belief"]["scar"] = plain(found)


def _check_others(tree: Evidence, fit: Fit, seed: int, _: Any) -> None:
    most = _share_of(fit.labelled.size, *_TO_COMPARE)
    rows, samples, known = _draw(fit, most, np.random.default_rng(seed))
    called = fit.classifier.posterior_[rows] > 0.5
    data = samples, known, called, seed, fit.groups(rows)
    tree["belief"] |= compare_with_fit(_OTHERS, *data)


def _draw(fit: Fit, most: int, rng: Any) -> tuple[Rows, Any, Mask]:
    """Draw rows of a fit: which, as the classifier sees them, and who is labelled."""
    free = np.flatnonzero(~fit.negative)  # to others they would be unlabelled
    rows = free[sample_rows(fit.labelled[free], most, rng)]
    return rows, samples_of(fit.pipeline, take_rows(fit.X, rows)), fit.labelled[rows]


def _check_columns(tree: Evidence, fit: Fit, seed: int, _: Any) -> None:
    most = _share_of(fit.labelled.size, *_TO_SHUFFLE)
    how: Any = {"n_repeats": _N_REPEATS, "max_columns": _MOST_COLUMNS}
    how |= {"max_rows": most, "random_state": seed, "groups": fit.groups()}
    found = plain(column_importance(fit.pipeline, fit.X, fit.labelled, **how))
    lists = (found.pop(key) for key in ("columns", "importance", "spread"))
    found["columns"] = [
        {"column": str(name), "importance": mean, "spread": spread}
        for name, mean, spread in zip(*lists, strict=True)
    ]
    tree["drivers"] = found


def _check_looked(tree: Evidence, fit: Fit, seed: int, _: Any) -> None:
    """Find the column of which to ask whether it says who was looked at."""
    can_be_told = hasattr(fit.classifier, "labelled_by")
    if not (
        can_be_told and isinstance(fit.classifier.gap_estimator_, MixedGapEstimator)
    ):
        return
    for first in labelling_columns(*fit.given, fit.labelled, random_state=seed)[:1]:
        if first.strong:
            told = fit.classifier.labelling_
            names = [*(() if told is None else told.columns), first.name]
            if not hasattr(fit.given[1], "columns"):
                names = [int(name) if name.isdigit() else name for name in names]
            tree["question"] = plain(first) | {"declared": names}


def _choose_next(tree: Evidence, fit: Fit, seed: int, _: Any) -> None:
    gap, chance = fit.classifier.observed_gap_, fit.classifier.probability_
    known: dict[str, Any] = {"labelled": fit.labelled | fit.negative}
    known |= {"probability": chance, "random_state": seed}
    for at in suggest(fit.pipeline, fit.X, _N_NEXT, **known).tolist():
        even = abs(chance[at] - 0.5) < _ABOUT_EVEN
        why = "a toss-up for the model" if even else "like many other rows"
        if fit.classifier.boundary_.value < gap[at] <= 0.0:
            why = f"undecided by the gap, {why}"
        numbers = {"gap": float(gap[at]), "probability": float(chance[at])}
        name = None if fit.ids is None else fit.ids[at]
        row = {"row": int(fit.cells.index[at]) + 1, "id": name}
        tree["next"].append(row | numbers | {"why": why})


def _share_of(n_rows: int, share: float, fewest: int, most: int) -> int:
    return int(np.clip(round(share * n_rows), fewest, most))


# Names of the checks, and how long each takes relative to the others.
_CHECKS: Mapping[str, tuple[int, Callable[..., None]]] = {
    "held-out rows": (5, _check_held_out),
    "random labelling": (20, _check_scar),
    "other methods": (20, _check_others),
    "columns": (45, _check_columns),
    "what to label next": (10, _choose_next),
    "who was looked at": (30, _check_looked),
}
# Those that fit something else.
FITTING = ("random labelling", "other methods", "columns", "who was looked at")
