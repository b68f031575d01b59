"""``probgap fit``: from a table to a model, ranked hidden positives and a page."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._output import FILES, check_folder, check_libraries, claim_folder

if TYPE_CHECKING:
    from probgap.cli._analysis import Analysis
    from probgap.cli._prepare import MemoryEngine

# The steps, and how long each takes relative to the others.
_COSTS = {
    "Reading the table": 10.0,
    "Fitting the model": 65.0,
    "Checking it": 18.0,
    "Writing the report": 7.0,
}


def fit(
    table: given.Table,
    *,
    label: given.Label,
    out: given.Folder,
    positive: given.Positive = None,
    id_column: given.Id = None,
    drop: given.Drop = None,
    keep: given.Keep = None,
    category: given.Category = None,
    class_prior: given.ClassPrior = None,
    fast: given.Fast = False,
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
    - scores.csv: every row with its rank, its score, and how likely it is positive
    - label_next.csv: the rows that would teach most if somebody checked them
    - model.skops: the model, for probgap predict
    - run.json: settings, versions and evidence, for programs

    Example: probgap fit customers.csv --label bought --id customer --out results

    With --engine dask the table may be larger than memory: Parquet files, from which
    labelled rows and as many others as fit are drawn. The same files are written, except
    scores.csv: score all rows with probgap predict.

    Example: probgap fit 'data/*.parquet' --label flagged --engine dask --out results
    """
    with terminal.plain_errors(debug=debug):
        check_libraries()
        prior = given.read_class_prior(class_prior)
        if scheduler is not None and engine != given.EngineName.DASK:
            terminal.refuse("--scheduler requires --engine dask.")
        from probgap.cli._prepare import MemoryEngine, Request

        columns = (table, label, positive, id_column, drop, category)
        request = Request(
            *columns, seed=seed, jobs=jobs, class_prior=prior, keep=keep, fast=fast
        )
        shown = not (quiet or as_json)
        chosen = MemoryEngine(request)
        if engine == given.EngineName.DASK:
            from probgap.cli._cluster import DaskEngine

            chosen = DaskEngine(request, scheduler, shown=shown)
        analysis = fit_into(out, chosen, force=force, shown=shown)
        if as_json:
            terminal.print_json(analysis.to_dict())


def fit_into(out: Path, engine: MemoryEngine, *, force: bool, shown: bool) -> Analysis:
    """Fit to a table and write the results, all of them or none; show the main points."""
    allowed: Any = {"force": force, "read": engine.request.source}
    check_folder(out, FILES, **allowed)
    with claim_folder(out), terminal.Progress(_COSTS, shown=shown) as progress:
        analysis = analyse(engine, progress)
        check_folder(out, FILES, **allowed)  # somebody may have used it meanwhile
        analysis.write(out)
    if shown:
        from probgap.cli._summary import show_summary

        show_summary(analysis.report, out)
    return analysis


def analyse(engine: MemoryEngine, progress: terminal.Progress) -> Analysis:
    """Read, fit, check and describe; write nothing."""
    started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    with closing(engine):
        progress.begin("Reading the table")
        engine.read()
        # Not earlier: a bad table is refused before scikit-learn is loaded.
        from probgap.cli._analysis import Analysis, check_fit

        progress.begin("Fitting the model")
        with terminal.caught_warnings() as raised:
            model, prepared = engine.fit()
    progress.begin("Checking it")
    found = check_fit(model, prepared, raised, progress, engine, started)
    progress.begin("Writing the report")
    timings = {step: round(taken, 3) for step, taken in progress.seconds.items()}
    return Analysis(model, prepared, found.with_run(timings=timings))
