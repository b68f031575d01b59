"""What ``fit`` found, on one screen."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from probgap.cli._terminal import one_line, plain_table
from probgap.reporting import Report, ask, describe_looked, split_sentence

_N_SHOWN = 10
_MOST_WARNINGS = 3
_LONGEST = 1000  # characters of a paragraph
_WIDE = 60  # characters; on a narrower terminal the row's own values are left out


def show_summary(report: Report, out: Path) -> None:
    """Print the main points of a fit to standard output."""
    console = Console(highlight=False)
    tree = report.tree
    console.print(escape(_table_line(tree["table"])))
    console.print(escape(tree["table"]["sentence"]) + "\n")
    console.print(escape(report.headline), style="bold")
    _print_numbers(console, tree["found"])
    if looked := describe_looked(tree.get("looked")):
        console.print("\nWho was looked at", style="dim")
        for column in looked:
            console.print(escape(one_line(column["says"], _LONGEST)))
    if tree["kinds"]:
        kinds = (f"{one_line(k['kind'])} {k['hidden']:,.0f}" for k in tree["kinds"])
        console.print(escape(f"By kind, expected: {', '.join(kinds)}"))
    question = ask(tree)
    if question is not None:
        console.print("\nA question to you", style="dim")
        console.print(escape(one_line(" ".join(question.values()), _LONGEST)))
    console.print("\nLikeliest hidden positives", style="dim")
    warnings = [
        " ".join(split_sentence(part)[0] for part in (one["what"], one["do"])).strip()
        for one in sorted(report.warnings, key=lambda one: one["code"] != "fast")
    ]
    left = len(warnings) - _MOST_WARNINGS
    if left > 0:
        warnings[_MOST_WARNINGS:] = [f"{left} more in the report."]
    # Rows give way to warnings, so that all fits one screen.
    n_shown = _N_SHOWN - 2 * max(0, len(warnings) - 2) - 4 * (question is not None)
    n_values = 2 if console.width >= _WIDE else 0
    console.print(_ranked_table(tree["ranked"][:n_shown], n_values=n_values))
    for warning in warnings:
        console.print(f"[bold yellow]![/bold yellow] {escape(warning)}")
    page = Text(str(out / "report.html"), style="bold")
    console.print(Text("Read ").append_text(page), soft_wrap=True)
    files, way = tree["run"]["files"], "check rows drawn at random; see there"
    if "scores.csv" in files:
        way = f"probgap audit {shlex.quote(str(out))}"
    console.print(Text(f"To know how many: {way}", style="dim"), soft_wrap=True)
    console.print(f"[dim]In the same folder: {', '.join(files[1:])}[/dim]")


def _print_numbers(console: Console, found: Mapping[str, Any]) -> None:
    called, most = f"{found['called_positive']:,}", f"{found['unlabelled']:,}"
    estimate = f"hidden positives (above: the {found['level']:.0%} interval)"
    lines = [
        ("Best estimate", f"{found['hidden']:,.0f}", estimate),
        ("Labelled positives", f"{found['labelled']:,}", f"of {found['rows']:,} rows"),
        ("Predicted positive", called, f"of {most} unlabelled rows"),
    ]
    width = max(9, *(len(value) for _, value, _ in lines))
    for name, value, more in lines:
        console.print(f"{name:<20}[bold]{value:>{width}}[/bold]  [dim]{more}[/dim]")


def _table_line(table: Mapping[str, Any]) -> str:
    uses = ("number", "date", "category", "text")
    used = [c for c in table["columns"] if c["use"] in uses]
    left = [c for c in table["columns"] if c["use"] == "left out"]
    columns = "1 column" if len(used) == 1 else f"{len(used)} columns"
    files = len(table["files"] or ())
    rows = f"{table['rows']:,} rows" + (f" in {files:,} files" if files > 1 else "")
    line = f"{table['name']}: {rows}, {columns} used"
    if not left:
        return line + "."
    left.sort(key=lambda c: not c["why"].startswith("id-like"))
    shown = "; ".join(f"{one_line(c['name'])}: {c['why']}" for c in left[:3])
    more = f"; {len(left) - 3} more" if len(left) > 3 else ""
    back = "; --keep brings one back" if left[0]["why"].startswith("id-like") else ""
    return f"{line}, {len(left)} left out ({shown}{more}){back}."


def _ranked_table(ranked: Sequence[Mapping[str, Any]], *, n_values: int) -> Any:
    named = ["id"] if any(entry["id"] is not None for entry in ranked) else []
    values = list(ranked[0]["values"])[:n_values] if ranked else []
    rows = []
    for entry in ranked:
        low, high = entry["interval"]
        cells = [str(entry["rank"]), one_line(entry["id"] or "")][: 1 + len(named)]
        cells += [f"{entry['row']}", f"{entry['probability']:.3f}"]
        cells += [f"{low:.2f}-{high:.2f}"]  # without spaces: never cut in two
        rows.append(cells + [one_line(entry["values"][name]) for name in values])
    numbers = ("row", "probability", "interval")
    headings = ("rank", *named, *numbers, *map(one_line, values))
    return plain_table(headings, rows, right=("rank", *numbers))
