"""``probgap fit``: from a table to a model, ranked hidden positives and a page."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probgap.cli import _options as given
from probgap.cli._errors import plain_errors
from probgap.cli._output import check_folder, write_folder

if TYPE_CHECKING:
    from probgap.cli._analysis import Analysis
    from probgap.cli._prepare import Request
    from probgap.cli._progress import Progress

FILES = ("report.html", "scores.csv", "label_next.csv", "model.skops", "run.json")


def fit(
    table: given.Tables,
    *,
    label: given.Label,
    out: given.Folder,
    positive: given.Positive = None,
    id_column: given.Id = None,
    drop: given.Drop = None,
    category: given.Category = None,
    class_prior: given.ClassPrior = None,
    seed: given.Seed = 0,
    jobs: given.Jobs = 1,
    engine: given.Engine = given.EngineName.MEMORY,
    scheduler: given.Scheduler = None,
    force: given.Force = False,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Find the hidden positives of a table, and learn a model to find more.

    The table has one row for each case, and a column that marks the positives somebody
    has found. All others may be positive or negative. Writes into DIR:

    - report.html: the page to read first; what was found, and whether to believe it
    - scores.csv: every row with its probability of being positive, and its rank
    - label_next.csv: the rows that would teach most if somebody labelled them
    - model.skops: the model, for probgap predict
    - run.json: settings, versions and evidence, for machines

    Example: probgap fit customers.csv --label bought --id customer --out results

    With --engine dask the table may be larger than memory: Parquet files, from which
    labelled rows and as many others as fit are drawn. The same files are written but
    scores.csv: probgap predict scores all rows.

    Example: probgap fit 'data/*.parquet' --label flagged --engine dask --out results
    """
    with plain_errors(debug=debug):
        from probgap._core.errors import InvalidInputError
        from probgap.cli._prepare import Request, read_class_prior

        if scheduler is not None and engine != given.EngineName.DASK:
            msg = "--scheduler requires --engine dask."
            raise InvalidInputError(msg)

        request = Request(
            source=table,
            label=label,
            positive=positive,
            id=id_column,
            drop=drop,
            category=category,
            seed=seed,
            jobs=jobs,
            class_prior=read_class_prior(class_prior),
            command=shlex.join(["probgap", *sys.argv[1:]]),
        )
        shown = not (quiet or as_json)
        if engine == given.EngineName.DASK:
            from probgap.cli._cluster import fit_on_cluster

            analysis = fit_on_cluster(
                request, out, scheduler=scheduler, force=force, shown=shown
            )
        else:
            analysis = fit_into(request, out, force=force, shown=shown)
        if as_json:
            from probgap.cli._streams import print_json

            print_json(analysis.to_dict())
        elif not quiet:
            from probgap.cli._summary import show_summary

            show_summary(analysis, out)


def fit_into(request: Request, out: Path, *, force: bool, shown: bool) -> Analysis:
    """Fit to a table and write the results: all of them, or none."""
    check_folder(out, frozenset(FILES), force=force, read=request.source)
    check_tool_libraries()
    from probgap.cli._analysis import COSTS, PAGE, analyse
    from probgap.cli._progress import Progress

    with Progress(COSTS, shown=shown) as progress:
        analysis = analyse(request, progress)
        progress.begin(PAGE)
        run = replace(analysis.run, files=FILES, timings=rounded(progress))
        analysis = replace(analysis, run=run)
        write_results(analysis, FILES, out)
    return analysis


def check_tool_libraries() -> None:
    """Find out before a long run whether its results can be written."""
    from importlib.util import find_spec

    from probgap._core.errors import MissingLibraryError

    for library in ("pandas", "jinja2", "matplotlib", "skops"):
        if find_spec(library) is None:
            raise MissingLibraryError(
                library=library, extra="tool", purpose="the commands"
            )


def write_results(analysis: Analysis, files: tuple[str, ...], out: Path) -> None:
    """Write some of the results: all of these, or none."""
    from probgap.io import save
    from probgap.tables import write_csv

    page = analysis.page
    account = json.dumps(
        analysis.to_dict(), ensure_ascii=False, allow_nan=False, indent=1
    )
    write = {
        "report.html": lambda path: path.write_text(page, encoding="utf-8"),
        "scores.csv": lambda path: write_csv(analysis.scores, path),
        "label_next.csv": lambda path: write_csv(analysis.label_next, path),
        "model.skops": lambda path: save(
            analysis.model, path, metadata=analysis.metadata
        ),
        "run.json": lambda path: path.write_text(account + "\n", encoding="utf-8"),
    }
    write_folder(out, {name: write[name] for name in files})


def rounded(progress: Progress) -> dict[str, Any]:
    """Return how long each step took, in seconds."""
    return {step: round(seconds, 3) for step, seconds in progress.seconds.items()}
