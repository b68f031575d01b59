"""``probgap fit``: from a table to a model, ranked hidden positives and a page."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from probgap._core.errors import InvalidInputError
from probgap.cli import _options as given
from probgap.cli._output import check_folder, check_libraries, write_folder
from probgap.cli._terminal import Progress, plain_errors, print_json

if TYPE_CHECKING:
    from probgap.cli._analysis import Analysis
    from probgap.cli._prepare import MemoryEngine

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
    - run.json: settings, versions and evidence, for programs

    Example: probgap fit customers.csv --label bought --id customer --out results

    With --engine dask the table may be larger than memory: Parquet files, from which
    labelled rows and as many others as fit are drawn. The same files are written but
    scores.csv: probgap predict scores all rows.

    Example: probgap fit 'data/*.parquet' --label flagged --engine dask --out results
    """
    with plain_errors(debug=debug):
        from probgap.cli._prepare import MemoryEngine, Request, read_class_prior

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
            from probgap.cli._cluster import DaskEngine

            chosen: MemoryEngine = DaskEngine(request, scheduler, shown=shown)
        elif scheduler is not None:
            msg = "--scheduler requires --engine dask."
            raise InvalidInputError(msg)
        else:
            chosen = MemoryEngine(request)
        analysis = fit_into(chosen, out, force=force, shown=shown)
        if as_json:
            print_json(analysis.to_dict())
        elif not quiet:
            from probgap.cli._summary import show_summary

            show_summary(analysis, out)


def fit_into(engine: MemoryEngine, out: Path, *, force: bool, shown: bool) -> Analysis:
    """Fit to a table and write the results: all of them, or none."""
    files = tuple(n for n in FILES if engine.scores_all or n != "scores.csv")
    check_folder(out, files, force=force, read=engine.request.source)
    check_libraries()
    from probgap.cli._prepare import COSTS, PAGE

    with Progress(COSTS, shown=shown) as progress:
        analysis = analyse(engine, progress)
        progress.begin(PAGE)
        seconds = {step: round(taken, 3) for step, taken in progress.seconds.items()}
        table, run = engine.about()
        analysis = replace(
            analysis,
            table=replace(analysis.table, **table),
            run=replace(analysis.run, files=files, timings=seconds, **run),
        )
        _write_results(analysis, files, out)
    return analysis


def analyse(engine: MemoryEngine, progress: Progress) -> Analysis:
    """Read, fit, check: everything but the files."""
    from probgap.cli._prepare import FIT, READ

    started = datetime.now(UTC)
    with closing(engine):
        progress.begin(READ)
        engine.read()
        # Not earlier: a bad table is refused before scikit-learn is loaded.
        from probgap.cli._analysis import caught_warnings, check_fit

        progress.begin(FIT)
        with caught_warnings() as heard:
            model, prepared = engine.fit()
    return check_fit(engine.request, prepared, model, heard, started, progress)


def _write_results(analysis: Analysis, files: tuple[str, ...], out: Path) -> None:
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
