"""``probgap fit``: from a table to a model, ranked hidden positives and a report."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probgap._core.errors import refuse
from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._output import (
    FILES,
    check_folder,
    check_libraries,
    claim_folder,
    write_folder,
)

if TYPE_CHECKING:
    from probgap.cli._table import Options
    from probgap.reporting import Report
    from probgap.tables import TableClassifier

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
    negative: given.Negative = None,
    kinds: given.Kinds = False,
    id_column: given.Id = None,
    group: given.Group = None,
    drop: given.Drop = None,
    keep: given.Keep = None,
    labelled_by: given.LabelledBy = None,
    category: given.Category = None,
    answers: given.Earlier = None,
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

    - report.html: to read first; what was found, and whether to believe it
    - scores.csv: every row with its rank, and the probability that it is positive
    - label_next.csv: the rows that would teach most if somebody checked them
    - model.probgap: the model, for probgap predict
    - run.json: settings, versions and evidence, for programs

    Example: probgap fit customers.csv --label bought --id customer --out results

    With --answers, rows that an earlier audit found positive are labelled, and those that
    it found negative are learnt from as such.

    Example: probgap fit may.csv --label bought --answers april/answers.jsonl --out may

    With --engine dask the table may be larger than memory: all labelled rows are used, and
    as many unlabelled ones as fit into memory. The same files are written, except
    scores.csv: score all rows with probgap predict.

    Example: probgap fit 'data/*.parquet' --label flagged --engine dask --out results
    """
    with terminal.plain_errors(debug=debug):
        check_libraries()
        prior = given.read_class_prior(class_prior)
        if scheduler is not None and engine != given.EngineName.DASK:
            refuse("--scheduler requires --engine dask.")
        if answers is not None and engine == given.EngineName.DASK:
            refuse("--answers requires --engine memory.")
        from probgap.cli._table import Options

        if kinds and len(set(positive or ())) < 2:
            refuse("--kinds requires --positive several times, once for each kind.")
        options = Options(
            table,
            label,
            positive,
            id_column,
            group,
            drop,
            category,
            keep,
            negative=negative,
            answers=answers,
            labelled_by=labelled_by,
            kinds=kinds,
            class_prior=prior,
            seed=seed,
            jobs=jobs,
            fast=fast,
            engine=None if engine == given.EngineName.MEMORY else engine.value,
            scheduler=scheduler,
        )
        found = fit_into(out, options, force=force, shown=not (quiet or as_json))
        if as_json:
            terminal.print_json(found.to_dict())


def fit_into(out: Path, options: Options, *, force: bool, shown: bool) -> Report:
    """Fit to a table and write the results, all of them or none; show the main points."""
    allowed: Any = {"force": force, "read": options.source}
    check_folder(out, FILES, **allowed)
    with claim_folder(out), terminal.Progress(_COSTS, shown=shown) as progress:
        model, found = analyse(options, progress, shown=shown)
        check_folder(out, FILES, **allowed)  # somebody may have used it meanwhile
        write_results(out, model, found)
    if shown:
        from probgap.cli._summary import show_summary

        show_summary(found, out)
    return found


def analyse(
    options: Options, progress: terminal.Progress, *, shown: bool
) -> tuple[TableClassifier, Report]:
    """Read, fit, check and describe; write nothing."""
    from probgap.cli._table import read_rows

    started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    progress.begin("Reading the table")
    table = read_rows(options, shown=shown)
    frame = table.frame
    columns = options.choose_columns(list(frame.columns))
    learnt = None
    if options.answers is not None:
        from probgap.cli._answers import take_along

        table, options, learnt = take_along(
            table, options, options.answers, shown=shown
        )
        frame = table.frame
    # Not earlier: a bad table is refused before scikit-learn is loaded.
    from probgap.reporting import report
    from probgap.tables import TableClassifier

    progress.begin("Fitting the model")
    model = TableClassifier(
        **columns,
        pos_label=tuple(options.positive or ()) or None,
        neg_label=options.negative,
        class_prior=options.class_prior,
        random_state=options.seed,
        n_jobs=options.jobs,
    )
    with terminal.caught_warnings() as raised:
        model._fit_weighted(frame, options.label, table.weight)
    progress.begin("Checking it")
    sampled = options.engine is not None  # scores.csv would lack most rows
    with terminal.caught_warnings():  # of refits, which repeat those of the fit
        found = report(
            model,
            frame,
            table=table,
            run={
                "started": started,
                "command": options.command,
                "seed": options.seed,
                "files": [n for n in FILES if not (sampled and n == "scores.csv")],
                "engine": options.engine,
                "answers": learnt,
            },
            fast=options.fast,
            kinds=options.kinds,
            random_state=options.seed,
            n_jobs=options.jobs,
            progress=progress.advance,
            caught=raised,
        )
    progress.begin("Writing the report")
    timings = {step: round(taken, 3) for step, taken in progress.seconds.items()}
    return model, found.with_run(timings=timings)


def write_results(folder: Path, model: TableClassifier, found: Report) -> None:
    """Write the files of the run: all of them, or none."""
    from probgap.io import save
    from probgap.tables import write_csv

    table = found.tree["table"]
    metadata = {"table": table["name"], "sha256": table["sha256"] or ""}
    write: dict[str, Callable[[Path], object]] = {
        "report.html": found.save,
        "scores.csv": lambda path: write_csv(found.ranked, path),
        "label_next.csv": lambda path: write_csv(found.label_next, path),
        "model.probgap": lambda path: save(model, path, metadata=metadata),
        "run.json": found.save,
    }
    write_folder(folder, {name: write[name] for name in found.tree["run"]["files"]})
