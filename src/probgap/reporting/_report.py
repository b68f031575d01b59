"""The report of a fit: one tree of plain data, and the files made of it."""

import json
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike

from probgap import __version__
from probgap._core.errors import refuse
from probgap._core.estimators import classifier_of, input_columns
from probgap._core.output import whole_file
from probgap._core.runtime import RandomStateLike, as_generator
from probgap.diagnostics._compare import Progress
from probgap.pgpu.steps import find_doubts
from probgap.reporting._evidence import (
    FITTING,
    describe_fit,
    make_checks,
    plain,
    read_fit,
    tell_kinds,
)
from probgap.reporting._page import draw_figures, render_report
from probgap.reporting._rows import expect_positives, label_next, likeliest, rank_rows
from probgap.reporting._verdicts import all_warnings
from probgap.tables import Table

_FORMAT = 1  # of run.json
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "joblib")
_ONLY_IF_KNOWN = (
    *(("table", "sha256"), ("table", "files"), ("found", "negative")),
    *(("run", "engine"), ("run", "answers")),
)


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What is known of a fit: what it found, whether to believe it, what to do next.

    Make one by :func:`probgap.report`. In a notebook it shows itself.

    Attributes
    ----------
    tree : dict
        All of it, as plain data; ``to_dict`` returns a copy. ``found`` has the counts,
        ``ranked`` the twenty likeliest hidden positives, ``expected`` how many positives
        to expect among the first ``k`` rows (None for a sample of rows), ``boundary`` and ``decision`` how
        rows were decided, ``belief`` the checks, ``drivers`` the columns that matter most,
        ``next`` the rows worth labelling, ``warnings`` what to heed, ``table`` and ``run``
        where it all comes from. ``question`` is None, or the column that labels go by
        beyond what all others explain, with the count if it says who was looked at
        (:func:`probgap.diagnostics.labelling_columns`). A check that failed is None, with a warning.
    ranked : DataFrame
        All rows of the fit by rank, labelled ones last, as in ``scores.csv``: ``row``
        (from 1), perhaps ``id``, ``observed_label``, ``gap``, ``decided``,
        ``probability`` with its 90% interval from ``probability_low`` to
        ``probability_high``, ``predicted_label`` and ``rank``; with ``kinds``, ``kind``.
    label_next : DataFrame
        Rows that would teach the model most, whole, as in ``label_next.csv``.
    """

    tree: dict[str, Any]
    ranked: Any
    label_next: Any
    _cells: Any = None  # of all rows; none for a sample, whose page is not searched

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
            Facts by name, such as timings, that can be written as JSON.

        Returns
        -------
        Report
            A copy that has them in its part ``run``.
        """
        run = self.tree["run"] | plain(facts)
        return replace(self, tree=self.tree | {"run": run})

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as ``run.json`` holds it, without what does not apply.

        Returns
        -------
        dict
            Plain data.
        """
        tree = {"format": _FORMAT} | self.tree
        if tree.get("kinds") is None:
            tree.pop("kinds", None)
        for part, name in _ONLY_IF_KNOWN:
            tree[part] = {k: v for k, v in tree[part].items() if k != name or v}
        return tree

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
            The page.
        """
        return render_report(self.tree, self.ranked, self._cells)

    def save(self, path: str | Path) -> None:
        """Write the page or the tree, whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file: ``.html`` for the page, ``.json`` for the tree.
        """
        path = Path(path)
        if path.suffix == ".html":
            text = self.to_html()
        elif path.suffix == ".json":
            how: Any = {"ensure_ascii": False, "allow_nan": False, "indent": 1}
            text = json.dumps(self.to_dict(), **how) + "\n"
        else:
            refuse(f"path must end in .html or .json. Got {str(path)!r}.")
        with whole_file(path) as file:
            file.write(text)

    def __repr__(self) -> str:
        return f"<Report: {self.headline}>"

    def _repr_html_(self) -> str:
        page, title = escape(render_report(self.tree)), escape(self.headline)
        style = "width:100%;height:36rem;border:0"
        return (
            f'<iframe title="{title}" sandbox srcdoc="{page}" style="{style}"></iframe>'
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
    kinds: bool = False,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    caught: Iterable[Warning] = (),
) -> Report:
    """Make every check of a fitted model, and return the report of the fit.

    Held-out predictions are those of the fit itself if it made any, as the default
    does. Checks that fit other models do so on a sample of the rows, whose size is in
    the report. All checks together cost less than the fit of the default
    (``benchmarks/tool.py``, with and without ``--fast``).

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
        Your names of the rows; those of a TableClassifier's ``id`` by default.
    table : Table, default=None
        The table that was read, where the rows come from a file.
    run : mapping, default=None
        Facts about the run, such as ``command``, ``started``, ``seed`` and ``files``.
    fast : bool, default=False
        Leave out the checks that fit something else: whether labels fell at random, what
        other methods say, which columns matter, and by which of them labels go. A
        warning says so.
    kinds : bool, default=False
        Where several values mean positive: say which of these kinds each row looks like,
        and how many hidden positives are expected of each. By a linear classifier of the
        labelled rows alone, which assumes that hidden positives of a kind look like
        labelled ones.
    random_state : int, Generator, RandomState or None, default=None
        Seeds everything. The same integer gives the same numbers whatever ``n_jobs``.
    n_jobs : int, default=None
        Number of fits at once, if the model made no held-out predictions.
    progress : callable, default=None
        Called with how much is done, how much there is, and what comes next.
    caught : iterable of Warning, default=()
        Warnings that the fit raised, to be repeated in the report. Those that the fit may
        not be believed are in it anyway.

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
    fit = read_fit(model, X, y, ids, table)
    tree = describe_fit(fit)
    options: Any = {"rng": as_generator(random_state), "n_jobs": n_jobs}
    tell = progress or (lambda _done, _total, _what: None)
    failures = make_checks(tree, fit, fast=fast, tell=tell, **options)
    doubts = [*find_doubts(fit.classifier, fit.labelled), *caught]
    plan = getattr(model, "plan_", None)
    told = plan is None or fit.classifier.group_ is not None
    repeated = () if told else getattr(plan, "repeated_ids", ())
    warned = all_warnings(tree, failures, FITTING if fast else (), doubts, repeated)
    drivers = tree["drivers"]
    driving = [each["column"] for each in drivers["columns"]] if drivers else []
    used = map(str, input_columns(fit.pipeline, fit.X))
    telling = list(dict.fromkeys([*driving, *used]))
    kind, by_kind = tell_kinds(fit) if kinds else (None, None)
    ranked, cells, expected = rank_rows(fit, kind), None, None
    if fit.classifier.row_weight_ is None and tree["found"]["unlabelled"]:
        cells = fit.inputs[[name for name in telling if name in fit.inputs]]
        unlabelled = ranked.index[ranked["rank"] != ""]
        chances = [fit.classifier.posterior_[unlabelled]]
        if fit.classifier.labelling_ is not None:
            chances.append(fit.classifier.probability_[unlabelled])
        expected = expect_positives(fit.classifier.estimate_, *chances)
    tree = {
        "table": fit.table | {"rows": tree["found"]["rows"]},
        "found": tree.pop("found"),
        "ranked": likeliest(ranked, fit.cells, telling),
        "kinds": by_kind,
        "expected": expected,
        **tree,
        "warnings": warned,
        "run": _describe_run(fit.pipeline) | dict(run or {}),
    }
    suggested = label_next(tree["next"], fit)
    return Report(plain(tree), ranked, suggested, cells)


def _describe_run(pipeline: Any) -> dict[str, Any]:
    """Return with what a fit was made."""
    settings = {
        key: value if isinstance(value, str | int | float | bool) else repr(value)
        for key, value in classifier_of(pipeline).get_params(deep=False).items()
        if value is not None
    }
    versions = {"python": platform.python_version(), "probgap": __version__}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    run: dict[str, Any] = dict.fromkeys(
        ("started", "command", "seed", "engine", "answers")
    )
    run |= {"probgap": __version__, "settings": settings, "versions": versions}
    return run | {"timings": {}, "pipeline": repr(pipeline), "files": []}
