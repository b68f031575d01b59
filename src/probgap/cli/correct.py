"""``probgap correct``: a model corrected by answers, and its scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._output import check_folder, check_libraries, write_folder
from probgap.cli._run import read_run, request_again

FILES = ("model.skops", "scores.csv")
_FOLDER = "A folder that fit wrote, with an audit."
_ANSWERS = "A file of answers; those that probgap audit has read, if it is left out."
_OUT = "Folder for the corrected model and scores; DIR/corrected by default."
_TABLE = "The table of the fit, if it is no longer where it was."


def correct(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help=_FOLDER)],
    answers: Annotated[
        Path | None, typer.Argument(metavar="[ANSWERS]", help=_ANSWERS)
    ] = None,
    *,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help=_OUT)] = None,
    table: Annotated[str | None, typer.Option(metavar="TABLE", help=_TABLE)] = None,
    force: given.Force = False,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Correct a model by the answers of a person, positives and negatives.

    Writes a model for probgap predict, and new scores of the table's rows, the likeliest
    hidden positives first.

    Example: probgap correct results results/audit.csv
    """
    with terminal.plain_errors(debug=debug):
        check_libraries()
        target = out or folder / "corrected"
        described = read_run(folder, "table")
        check_folder(target, FILES, force=force)
        from probgap.cli._answers import AuditFile, read_answers

        state = AuditFile.read(folder)
        said = {**state.others, **state.answers}
        if answers is not None:
            told = read_answers(answers, state, state.table["positive"])
            for note in told.notes if not quiet else ():
                typer.echo(note, err=True)
            said |= {**told.others, **told.answers}
        rows = sorted(row for row, answer in said.items() if answer is not None)
        if not rows:
            terminal.refuse("There are no answers yes or no to learn from yet.")
        told_yes = [bool(said[row]) for row in rows]
        summary = _write(
            target, folder, request_again(described, table), rows, told_yes
        )
        if as_json:
            terminal.print_json(summary)
        elif not quiet:
            typer.echo(
                f"Corrected by {len(rows)} answers, {sum(told_yes)} of them yes. Scores: "
                f"{target / 'scores.csv'}"
            )
            if summary["model_interval"] is not None:
                low, high = summary["model_interval"]
                typer.echo(
                    f"The model's own interval is now {low:,.0f} to {high:,.0f} hidden "
                    "positives. That of probgap audit needs no model."
                )


def _write(
    target: Path,
    folder: Path,
    request: dict[str, Any],
    rows: list[int],
    yes: list[bool],
) -> dict[str, Any]:
    """Correct the model, and write it with its scores: both, or nothing."""
    from probgap.cli._prepare import Request, prepare

    prepared = prepare(Request(**request))
    import numpy as np
    import pandas as pd

    from probgap.audit import correct as correct_model
    from probgap.io import load, read_metadata, save
    from probgap.tables import write_csv

    with terminal.caught_warnings():
        model = load(folder / "model.skops")
    frame, labelled = prepared.inputs, prepared.labels.labelled
    held_out = model[-1].posterior_  # by models that had not seen the row
    better = correct_model(
        model, frame.iloc[rows], np.array(yes), probability=held_out[rows]
    )
    chance = np.where(labelled, 1.0, better.hidden_probability(frame, held_out))
    chance[rows] = yes
    at = model[-1].positive_index_
    positive, negative = better.classes_[at], better.classes_[1 - at]
    answered = np.full(len(frame), "", dtype=object)
    answered[rows] = np.where(yes, "yes", "no")
    scores = pd.DataFrame(
        {
            "row": prepared.numbers,
            "observed_label": np.where(labelled, prepared.labels.positive, ""),
            "answer": answered,
            "probability": chance.round(8),
            "predicted_label": np.where(chance > 0.5, positive, negative),
        }
    )
    if prepared.request.id is not None:
        scores.insert(1, "id", prepared.ids)
    settled = labelled | (answered != "")
    order = np.lexsort((np.arange(len(frame)), -chance, settled))
    metadata = read_metadata(folder / "model.skops")
    write_folder(
        target,
        {
            "model.skops": lambda path: save(better, path, metadata=metadata),
            "scores.csv": lambda path: write_csv(scores.iloc[order], path),
        },
    )
    reading = better.reading
    return {
        "answers": len(rows),
        "positive": int(np.sum(yes)),
        "hidden_called_positive": int(np.sum((chance > 0.5) & ~settled)),
        "model_interval": None if reading is None else list(reading.n_hidden_interval),
        "folder": str(target),
    }
