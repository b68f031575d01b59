"""``probgap correct``: a model corrected by answers, and its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from probgap._core.errors import refuse
from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._fitted import FittedTable
from probgap.cli._output import check_folder, check_libraries, write_folder

if TYPE_CHECKING:
    import pandas as pd

    from probgap.audit import CorrectedClassifier

FILES = ("model.probgap", "scores.csv")
_ANSWERS = "A file of answers; those that probgap audit has read, if it is left out."
_OUT = "Folder for the corrected model and scores; DIR/corrected by default."


def correct(
    folder: given.Fitted,
    answers: Annotated[
        Path | None, typer.Argument(metavar="[ANSWERS]", help=_ANSWERS)
    ] = None,
    *,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help=_OUT)] = None,
    table: given.TableAgain = None,
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
        fit = FittedTable(folder, table)
        check_folder(target, FILES, force=force)
        from probgap.cli._answers import read_answer_file
        from probgap.cli._questions import AuditFile

        audit = AuditFile.read(fit)
        words: dict[int, str] = {}
        if answers is not None:
            words, _ = read_answer_file(answers, audit, shown=not quiet)
        said = audit.settled(words)
        if not said:
            refuse("There are no answers yes or no to learn from yet.")
        summary = correct_into(target, fit, said)
        if as_json:
            terminal.print_json(summary)
        elif not quiet:
            _print_summary(summary, target)


def correct_into(
    target: Path, fit: FittedTable, said: Mapping[int, bool]
) -> dict[str, Any]:
    """Correct the model, and write it with its scores: both, or nothing."""
    from probgap.io import save
    from probgap.tables import write_csv

    better = fit.correct(said)
    scores = score_table(fit, better, said)
    whole = replace(better, model=fit.table_model)
    write_folder(
        target,
        {
            "model.probgap": lambda path: save(whole, path),
            "scores.csv": lambda path: write_csv(scores, path),
        },
    )
    found = better.estimate
    hidden = (scores["observed_label"] == "") & (scores["answer"] == "")
    return {
        "answers": len(said),
        "positive": sum(said.values()),
        "hidden_called_positive": int((hidden & (scores["probability"] > 0.5)).sum()),
        "model_interval": None if found is None else list(found.n_hidden_interval),
        "folder": str(target),
    }


def score_table(
    fit: FittedTable, better: CorrectedClassifier, said: Mapping[int, bool]
) -> pd.DataFrame:
    """Return the scores of all rows, the likeliest hidden positives first."""
    import numpy as np
    import pandas as pd

    rows, yes = list(said), np.array(list(said.values()))
    before, labelled = fit.model[-1], fit.labelled
    hidden = better.hidden_probability(fit.inputs, before.posterior_)
    chance = np.where(fit.known, labelled, hidden)
    chance[rows] = yes
    answer = np.full(chance.size, "", dtype=object)
    answer[rows] = np.where(yes, "yes", "no")
    called = np.where(chance > 0.5, before.positive_index_, 1 - before.positive_index_)
    number = np.arange(chance.size)
    scores = pd.DataFrame(
        {
            "row": number + 1,
            "observed_label": np.select(
                [labelled, fit.known], [fit.described["positive"], "negative"], ""
            ),
            "answer": answer,
            "probability": chance.round(8),
            "predicted_label": better.classes_[called],
        }
    )
    if fit.described["id"] is not None:
        scores.insert(1, "id", fit.ids)
    return scores.iloc[np.lexsort((number, -chance, fit.known | (answer != "")))]


def _print_summary(summary: Mapping[str, Any], target: Path) -> None:
    typer.echo(
        f"Corrected by {summary['answers']} answers, {summary['positive']} of them yes. "
        f"Scores: {target / 'scores.csv'}"
    )
    if summary["model_interval"] is not None:
        low, high = summary["model_interval"]
        typer.echo(
            f"The model's own interval is now {low:,.0f} to {high:,.0f} hidden "
            "positives. That of probgap audit needs no model."
        )
