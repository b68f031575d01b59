"""The report of a fit: one tree of plain data, and the files made of it."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from html import escape
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from probgap import __version__
from probgap._core.checks import decode_labels
from probgap._core.errors import InvalidInputError, load_library
from probgap._core.estimators import check_rows, classifier_of, input_columns
from probgap._core.output import whole_file
from probgap._core.runtime import RandomStateLike
from probgap._core.types import Mask, Rows
from probgap.diagnostics._compare import Progress
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV
from probgap.reporting._evidence import describe_fit, make_checks, plain
from probgap.reporting._figures import draw_figures
from probgap.reporting._page import render_report
from probgap.reporting._ranking import likeliest, rank_rows, to_label_next
from probgap.reporting._rows import AllRows, expect_positives
from probgap.reporting._warnings import all_warnings
from probgap.tables import Table

FORMAT = 1  # of run.json
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "joblib")
_MODULES = {"scikit-learn": "sklearn"}
_TABLE: dict[str, Any] = {
    "name": "the table",
    "path": None,
    "rows": None,
    "sha256": None,
    "label": None,
    "positive": None,
    "unlabelled": {},
    "sentence": "",
    "id": None,
    "notes": [],
    "columns": [],
    "files": None,
}
_RUN: dict[str, Any] = {
    "probgap": None,
    "started": None,
    "command": None,
    "seed": None,
    "settings": {},
    "versions": {},
    "timings": {},
    "pipeline": "",
    "files": [],
    "engine": None,
}


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What is known of a fit: what it found, whether to believe it, what to do next.

    Make one by :func:`probgap.report`. In a notebook it shows itself.

    Attributes
    ----------
    tree : dict
        All of it, as plain data; ``to_dict`` returns a copy. ``found`` has the counts,
        ``ranked`` the twenty likeliest hidden positives, ``boundary`` and ``decision`` how
        rows were decided, ``belief`` the checks, ``drivers`` the columns that matter most,
        ``next`` the rows worth labelling, ``warnings`` what to heed, ``table`` and ``run``
        where it all comes from. A check that failed is None, with a warning.
    ranked : DataFrame
        All rows of the fit by rank, labelled ones last, as in ``scores.csv``: ``row``
        (from 1), perhaps ``id``, ``observed_label``, ``gap``, ``decided``,
        ``probability`` with its 90% interval from ``probability_low`` to
        ``probability_high``, ``predicted_label`` and ``rank``.
    label_next : DataFrame
        Rows that would teach the model most, whole, as in ``label_next.csv``.
    """

    tree: dict[str, Any]
    ranked: Any
    label_next: Any
    _all_rows: AllRows | None = field(default=None)

    @property
    def headline(self) -> str:
        """How many positives are hidden, in words."""
        return str(self.tree["found"]["headline"])

    @property
    def warnings(self) -> list[dict[str, str]]:
        """Warnings, the gravest first: ``level``, ``code``, ``what`` it is, what to ``do``."""
        return list(self.tree["warnings"])

    @property
    def figures(self) -> dict[str, Any]:
        """Its figures by name, each a :class:`probgap.plotting.Figure`."""
        drawn = draw_figures(self.tree)
        return {name: figure for name, figure in drawn.items() if figure is not None}

    def with_run(self, **facts: Any) -> Self:
        """Return the report with further facts about the run.

        Parameters
        ----------
        **facts : object
            Such as ``timings`` and ``files``; plain data.

        Returns
        -------
        Report
            The same, with the facts in ``tree["run"]``.
        """
        run = self.tree["run"] | plain(facts)
        return replace(self, tree=self.tree | {"run": run})

    def to_dict(self) -> dict[str, Any]:
        """Return dicts, lists, strings, finite numbers and None: what ``run.json`` holds.

        Returns
        -------
        dict
            The tree, without facts about a file or a cluster that was not there.
        """
        tree = self.tree
        table, run = dict(tree["table"]), dict(tree["run"])
        for part, name in ((table, "sha256"), (table, "files"), (run, "engine")):
            if not part[name]:
                del part[name]
        return {"format": FORMAT, **tree, "table": table, "run": run}

    def to_html(self) -> str:
        """Return the report as one page that needs nothing else.

        It loads nothing from the network: styles and figures are inside. A script of its
        own lets a reader search, sort, filter and download the rows; the page reads
        without it, and no other script can run. Text from the table is escaped and
        shortened; invisible characters and those that change the direction of writing
        are shown by their code points.

        Returns
        -------
        str
            HTML.
        """
        return render_report(self.tree, self._all_rows)

    def save(self, path: str | Path) -> None:
        """Write the report to a file, whole or not at all.

        Parameters
        ----------
        path : path
            Ends in ``.html`` for the page, or in ``.json`` for the numbers.
        """
        path = Path(path)
        if path.suffix not in (".html", ".json"):
            msg = f"path must end in .html or .json. Got {str(path)!r}."
            raise InvalidInputError(msg)
        text = self.to_html() if path.suffix == ".html" else self._to_json()
        with whole_file(path) as file:
            file.write(text)

    def _to_json(self) -> str:
        content = self.to_dict()
        return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    def __repr__(self) -> str:
        return f"<Report: {self.headline}>"

    def _repr_html_(self) -> str:
        page = escape(render_report(self.tree))
        return (
            f'<iframe title="{escape(self.headline)}" sandbox srcdoc="{page}" '
            'style="width:100%;height:36rem;border:0"></iframe>'
        )


def report(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    ids: ArrayLike | None = None,
    table: Table | None = None,
    run: Mapping[str, Any] | None = None,
    fast: bool = False,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    caught: Iterable[Warning] = (),
) -> Report:
    """Make every check of a fitted model, and return the report of the fit.

    Held-out predictions are those of the fit itself if it made any, as the default
    does. Checks that fit other models do so on a sample of the rows, whose size is in
    the report. All checks together cost less than the fit of the default
    (``benchmarks/fit.py --checks``).

    Parameters
    ----------
    model : PGPUClassifier, PGPUClassifierCV, TableClassifier or Pipeline
        A fitted classifier, or a pipeline that ends in one.
    X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
        The rows that it was fitted on.
    y : array-like of shape (n_samples,), default=None
        Their observed labels: those of the fit, or True for labelled positives. ``None``
        takes the column of X that a TableClassifier was fitted on as its label.
    ids : array-like of shape (n_samples,), default=None
        Your names of the rows.
    table : Table, default=None
        The table that was read, where the rows come from a file.
    run : mapping, default=None
        Facts about the run, such as ``command``, ``started``, ``seed`` and ``files``.
    fast : bool, default=False
        Leave out the checks that fit something else: whether labels fell at random, what
        other methods say, and which columns matter. A warning says so.
    random_state : int, Generator, RandomState or None, default=None
        Seeds everything. The same integer gives the same numbers whatever ``n_jobs``.
    n_jobs : int, default=None
        Number of fits at once, if the model made no held-out predictions.
    progress : callable, default=None
        Called with how much is done, how much there is, and what comes next.
    caught : iterable of Warning, default=()
        Warnings that the fit raised, to be repeated in the report.

    Returns
    -------
    Report
        What was found, the checks, the rows by rank, and what to do next.

    Examples
    --------
    >>> import probgap
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y, posterior = make_square(300, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = probgap.PGPUClassifier(random_state=0).fit(X, s)
    >>> found = probgap.report(model, X, s, fast=True, random_state=0)
    >>> found.tree["found"]["rows"], found.tree["belief"]["held_out"]["recall"] > 0.9
    (300, True)
    >>> found.save("report.html")  # doctest: +SKIP
    """
    fit = _read_fit(model, X, y, ids, table)
    evidence = describe_fit(fit.pipeline, fit.X, fit.labelled)
    failures = make_checks(
        evidence,
        fit.pipeline,
        fit.X,
        fit.labelled,
        fast=fast,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )
    evidence["warnings"] = all_warnings(evidence, failures, caught, fast=fast)
    facts = _describe_run(fit.pipeline) | dict(run or {})
    return _put_together(fit, evidence, facts)


@dataclass(frozen=True)
class _Fit:
    """A fitted model, the rows that it was fitted on, and their cells and names."""

    pipeline: Any
    X: Any  # as the pipeline takes them
    labelled: Mask
    inputs: Any  # the same rows as a DataFrame
    cells: Any  # as in the table, other columns among them
    numbers: Rows
    ids: NDArray[Any] | None
    table: dict[str, Any]

    @property
    def classifier(self) -> Any:
        return classifier_of(self.pipeline)


def _read_fit(model: Any, X: Any, y: Any, ids: Any, table: Any) -> _Fit:
    """Find out what was fitted on which rows, or refuse it."""
    pipeline = getattr(model, "pipeline_", model)
    classifier = classifier_of(pipeline)
    if not isinstance(classifier, PGPUClassifier | PGPUClassifierCV):
        msg = (
            "model must be a fitted PGPUClassifier, PGPUClassifierCV or TableClassifier, "
            f"or a pipeline that ends in one. Got {type(classifier).__name__}."
        )
        raise InvalidInputError(msg)
    facts = _describe_table(model, classifier, y, table)
    labelled = check_rows(X, _read_observed(model, classifier, X, y))
    if (n_fitted := classifier.observed_gap_.size) != labelled.size:
        msg = f"X must hold the {n_fitted} rows of the fit. Got {labelled.size}."
        raise InvalidInputError(msg)
    cells = _as_frame(X) if table is None else table.frame
    inputs = cells if pipeline is model else model.read_inputs(X)
    return _Fit(
        pipeline,
        X if pipeline is model else inputs,
        labelled,
        inputs,
        cells,
        cells.index.to_numpy() + 1,
        None if ids is None else np.asarray(ids, dtype=object),
        facts,
    )


def _read_observed(model: Any, classifier: Any, X: Any, y: Any) -> Any:
    """Return the mask of labelled rows, from labels as they were given to the fit."""
    if y is None:
        label = getattr(model, "label_", None)
        if label is None or label not in getattr(X, "columns", ()):
            msg = "y must be given: X has no column that the model took for its label."
            raise InvalidInputError(msg)
        return model.labels_.find(X[label])
    if getattr(y, "dtype", None) == bool:
        return y
    return decode_labels(y, classifier.classes_[classifier.positive_index_]).labelled


def _as_frame(X: Any) -> Any:
    """Return rows as a DataFrame, numbered from 0; one without columns if sparse."""
    pd = load_library("pandas", extra="report", purpose="a report")
    if issparse(X):
        return pd.DataFrame(index=pd.RangeIndex(X.shape[0]))
    if not hasattr(X, "columns"):
        X = np.asarray(X)
        return pd.DataFrame(X, columns=[str(k) for k in range(X.shape[1])])
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    names = [str(name) for name in frame.columns]
    return frame.set_axis(names, axis=1).set_axis(pd.RangeIndex(len(frame)), axis=0)


def _describe_table(model: Any, classifier: Any, y: Any, table: Any) -> dict[str, Any]:
    """Say what table it is, how its label was read, and how each column is used."""
    plan = getattr(model, "plan_", None)
    uses = [asdict(use) for use in plan.columns] if plan is not None else []
    named = {use["use"]: use["name"] for use in uses if use["use"] in ("id", "label")}
    facts = _TABLE | named | {"columns": uses}
    facts["label"] = getattr(model, "label_", None) or named.get("label")
    facts["label"] = facts["label"] or getattr(y, "name", None)
    facts["positive"] = str(classifier.classes_[classifier.positive_index_])
    for source in (getattr(model, "labels_", None), table):
        known = {name: getattr(source, name, None) for name in facts}
        facts |= {name: value for name, value in known.items() if value}
    return facts


def _describe_run(pipeline: Any) -> dict[str, Any]:
    """Say with what a fit was made."""
    settings = {
        key: value if isinstance(value, str | int | float | bool) else repr(value)
        for key, value in classifier_of(pipeline).get_params(deep=False).items()
        if value is not None
    }
    versions = {"python": platform.python_version(), "probgap": __version__}
    installed = [name for name in _LIBRARIES if find_spec(_MODULES.get(name, name))]
    return _RUN | {
        "probgap": __version__,
        "settings": settings,
        "versions": versions | {name: version(name) for name in installed},
        "pipeline": repr(pipeline),
    }


def _put_together(fit: _Fit, evidence: dict[str, Any], run: dict[str, Any]) -> Report:
    """Name and rank the rows, and make the report of the evidence."""
    suggested = evidence["next"]
    places = [entry["row"] for entry in suggested]
    for entry, at in zip(suggested, places, strict=True):
        entry["row"] = int(fit.numbers[at])
        entry["id"] = None if fit.ids is None else fit.ids[at]
    drivers, table = evidence["drivers"], fit.table
    driving = [each["column"] for each in drivers["columns"]] if drivers else []
    used = [str(name) for name in input_columns(fit.pipeline, fit.X)]
    telling = list(dict.fromkeys([*driving, *used]))
    ranked = rank_rows(
        fit.classifier, fit.labelled, fit.numbers, fit.ids, table["positive"]
    )
    table["rows"] = evidence["found"]["rows"]
    tree = {
        "table": table,
        "found": evidence.pop("found"),
        "ranked": likeliest(ranked, fit.cells, telling),
        **evidence,
        "run": run,
    }
    label_next = to_label_next(suggested, places, fit.cells, table["label"])
    return Report(plain(tree), ranked, label_next, _take_all(fit, ranked, telling))


def _take_all(fit: _Fit, ranked: Any, names: list[str]) -> AllRows | None:
    """Return all unlabelled rows for the page; none if they are a sample of more."""
    if fit.classifier.row_weight_ is not None:
        return None
    rows = ranked.index[~fit.labelled[ranked.index]]
    shown = [name for name in names if name in fit.inputs]
    return AllRows(
        ranked.loc[rows],
        fit.inputs[shown].iloc[rows],
        expect_positives(fit.classifier.reading_, fit.classifier.posterior_[rows]),
    )
