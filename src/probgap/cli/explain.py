"""``probgap explain``: what drives the probabilities of all rows, or of one."""

from pathlib import Path
from typing import Annotated, Any

import typer

from probgap.cli import _options as given
from probgap.cli import _terminal as terminal
from probgap.cli._fitted import FittedTable, read_run
from probgap.cli._output import check_libraries

_MOST_COLUMNS = 20
_N_NEAREST = 5
_N_VALUES = 4  # shown of each similar row
_N_WORDS = 8
_BAR = 20
_ROW = "One row: its id, or its number (from 1) if the table has no id column."


def explain(
    folder: given.Fitted,
    *,
    row: Annotated[str | None, typer.Option(metavar="ID", help=_ROW)] = None,
    table: given.TableAgain = None,
    seed: given.Seed = 0,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
    debug: given.Debug = False,
) -> None:
    """Show which columns drive the probabilities, and why one row has its own.

    For all rows: how much worse the model tells held-out labelled rows from unlabelled
    ones when a column is shuffled (permutation importance). For one row (--row): how much
    each column moves its log-odds from the average row's, by Shapley values estimated
    from random orders of the columns, which words of a text speak for and against, and
    which labelled positives are most like it.

    Example: probgap explain results --row C-1043
    """
    with terminal.plain_errors(debug=debug):
        if row is None:
            explained = read_run(folder, "drivers")
        else:
            explained = _explain_row(folder, row, table, seed)
        if as_json:
            terminal.print_json(explained)
        elif row is None:
            _show_drivers(explained)
        else:
            _show_row(explained, n_columns=10 if quiet else _MOST_COLUMNS)


def _explain_row(
    folder: Path, row: str, source: str | None, seed: int
) -> dict[str, Any]:
    fit = FittedTable(folder, source)
    check_libraries()
    at = fit.find_row(row)
    # Not earlier: a bad request is refused before scikit-learn is loaded.
    from probgap.inspection import row_contributions
    from probgap.reporting import score_rows

    classifier, frame, labelled = fit.model[-1], fit.inputs, fit.labelled
    # As in scores.csv: by models that had not seen the row.
    held_out = (classifier.observed_gap_[[at]], classifier.probability_[[at]])
    negative = (fit.known & ~labelled)[[at]]
    scores = score_rows(classifier, *held_out, labelled[[at]], negative).iloc[0]
    shown = ("probability", "probability_low", "probability_high", "gap")
    parts = row_contributions(fit.model, frame.iloc[[at]], frame, random_state=seed)
    contributions = _describe_columns(fit, at, parts, seed)
    return {
        "row": at + 1,
        "id": fit.ids[at],
        "labelled": bool(labelled[at]),
        **{name: float(scores[name]) for name in shown},
        "average_log_odds": float(parts.baseline),
        "log_odds": float(parts.prediction),
        "contributions": contributions,
        "nearest_labelled": _describe_nearest(
            fit, at, [part["column"] for part in contributions]
        ),
    }


def _describe_columns(
    fit: FittedTable, at: int, parts: Any, seed: int
) -> list[dict[str, Any]]:
    """Return what each column contributes, the largest first, and each word of a text."""
    from probgap.inspection import word_contributions
    from probgap.reporting import cell_text

    cells, texts = fit.cells.iloc[at], fit.table_model.plan_.names("text")
    found: list[dict[str, Any]] = [
        {"column": name, "value": cell_text(cells[name]), "log_odds": float(value)}
        for name, value in zip(parts.columns, parts.contributions, strict=True)
    ]
    found.sort(key=lambda part: -abs(part["log_odds"]))
    for part in found:
        if part["column"] in texts:
            one = fit.inputs.iloc[[at]]
            said = word_contributions(fit.model, one, part["column"], random_state=seed)
            words = zip(said.columns, said.contributions.tolist(), strict=True)
            part["words"] = [
                {"word": word, "log_odds": value}
                for word, value in sorted(words, key=lambda each: -abs(each[1]))
            ]
    return found


def _describe_nearest(
    fit: FittedTable, at: int, names: list[str]
) -> list[dict[str, Any]]:
    """Return the labelled positives that are most like a row, and their cells."""
    from probgap.inspection import nearest_labelled
    from probgap.reporting import cell_text

    others = fit.labelled.copy()
    others[at] = False
    one = fit.inputs.iloc[[at]]
    found = nearest_labelled(fit.model, fit.inputs, others, one, n=_N_NEAREST)
    return [
        {
            "row": row + 1,
            "id": fit.ids[row],
            "distance": away,
            "values": {name: cell_text(fit.cells[name].iloc[row]) for name in names},
        }
        for row, away in zip(*(part.tolist() for part in found), strict=True)
    ]


def _show_drivers(drivers: dict[str, Any]) -> None:
    console = terminal.make_console()
    console.print(f"{drivers['scored_by']}: {drivers['score']:.3f}")
    console.print("Drop in this score when a column is shuffled:\n", style="dim")
    shown = drivers["columns"][:_MOST_COLUMNS]
    _print_bars([(c["column"], c["importance"], f"± {c['spread']:.3f}") for c in shown])
    left = len(drivers["columns"]) - len(shown)
    if left > 0:
        console.print(f"\n{left} more columns: see report.html or --json.", style="dim")


def _show_row(explained: dict[str, Any], *, n_columns: int) -> None:
    console = terminal.make_console()
    name = explained["id"] or f"row {explained['row']}"
    state = "labelled positive" if explained["labelled"] else "unlabelled"
    likely = ""
    if not explained["labelled"]:
        low, high = explained["probability_low"], explained["probability_high"]
        likely = f" (90% interval {low:.2f} to {high:.2f})"
    console.print(
        f"{name} ({state}): probability {explained['probability']:.3f}{likely}, "
        f"gap {explained['gap']:.2f}"
    )
    console.print(
        "The final model gives it log-odds of "
        f"{explained['log_odds']:.2f}; the average row has "
        f"{explained['average_log_odds']:.2f}. Each column's part of the difference:\n",
        style="dim",
    )
    parts = explained["contributions"]
    _print_bars([(c["column"], c["log_odds"], c["value"]) for c in parts[:n_columns]])
    if len(parts) > n_columns:
        rest = sum(c["log_odds"] for c in parts[n_columns:])
        console.print(f"all other columns together {rest:+.3f}", style="dim")
    for part in parts[:n_columns]:
        if part.get("words"):
            _print_words(part["column"], part["words"])
    console.print("\nLabelled positives most like it, and their values:", style="dim")
    names = [part["column"] for part in parts[:_N_VALUES]]
    rows = [[name, "", *(part["value"] for part in parts[:_N_VALUES])]]
    for other in explained["nearest_labelled"]:
        label = other["id"] or f"row {other['row']}"
        values = [other["values"][column] for column in names]
        rows.append([label, f"{other['distance']:.2f}", *values])
    longest = max(32, (console.width - 36) // len(names))  # beside name and distance
    cells = [[terminal.one_line(cell, longest) for cell in row] for row in rows]
    headings = ["", "distance", *(terminal.one_line(column) for column in names)]
    console.print(terminal.plain_table(headings, cells))


def _print_words(column: str, words: list[dict[str, Any]]) -> None:
    """Print the words of a text that raise the log-odds, and those that lower them."""
    console = terminal.make_console()
    title = (
        f"\nWords of {terminal.one_line(column)}, by what each adds to an empty cell:"
    )
    console.print(title, style="dim")
    for heading, sign in (("for", 1.0), ("against", -1.0)):
        # Shares that would be shown as 0 say nothing.
        found = [word for word in words if sign * word["log_odds"] >= 0.005]
        shown = [f"{each['word']} {each['log_odds']:+.2f}" for each in found]
        console.print(f"  {heading:<8} {terminal.first_few(shown, _N_WORDS) or 'none'}")


def _print_bars(entries: list[tuple[str, float, str]]) -> None:
    from rich.text import Text

    largest = max((abs(value) for _, value, _ in entries), default=0.0) or 1.0
    sign = "█" if terminal.can_print("█") else "#"
    rows = []
    for name, value, remark in entries:
        bar = sign * round(_BAR * abs(value) / largest)
        drawn = Text(bar, "red" if value < 0 else "blue")
        named, said = (terminal.one_line(text, 40) for text in (name, remark))
        rows.append([named, f"{value:+.3f}", drawn, said])
    terminal.make_console().print(terminal.plain_table((), rows))
