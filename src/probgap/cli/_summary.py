"""What ``fit`` found, on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from probgap.cli._analysis import Analysis, split_sentence
from probgap.cli._terminal import one_line, plain_table
from probgap.diagnostics import Account
from probgap.page import RankedRow, TableRecord

_N_SHOWN = 10
_MOST_WARNINGS = 3
_WIDE = 60  # characters; on a narrower terminal the row's own values are left out


def show_summary(analysis: Analysis, out: Path) -> None:
    """Print the main points of a fit to standard output."""
    console = Console(highlight=False)
    account, table = analysis.account, analysis.table
    console.print(escape(_table_line(table)))
    console.print(escape(table.sentence) + "\n")
    console.print(escape(account.found.headline), style="bold")
    _print_numbers(console, account)
    console.print("\nLikeliest hidden positives", style="dim")
    warnings = [
        " ".join(split_sentence(part)[0] for part in (warning.what, warning.do)).strip()
        for warning in sorted(account.warnings, key=lambda one: one.sign != "fast")
    ]
    left = len(warnings) - _MOST_WARNINGS
    if left > 0:
        warnings[_MOST_WARNINGS:] = [f"{left} more in the report."]
    # Rows give way to warnings, so that all fits one screen.
    n_shown = _N_SHOWN - 2 * max(0, len(warnings) - 2)
    ranked = analysis.ranked[:n_shown]
    console.print(_ranked_table(ranked, n_values=2 if console.width >= _WIDE else 0))
    for warning in warnings:
        console.print(f"[bold yellow]![/bold yellow] {escape(warning)}")
    page = Text(str(out / "report.html"), style="bold")
    console.print(Text("Read ").append_text(page), soft_wrap=True)
    console.print(
        f"[dim]To know how many, check some rows: probgap audit {escape(str(out))}[/dim]"
    )
    files = ", ".join(analysis.run.files[1:])
    console.print(f"[dim]In the same folder: {files}[/dim]")


def _print_numbers(console: Console, account: Account) -> None:
    found, boundary = account.found, account.boundary
    estimate = f"hidden positives (the range is a {found.level:.0%} interval)"
    called = f"of {found.unlabelled:,} unlabelled rows (score above 1/2)"
    odds = "gap at which P(positive) is 1/2"
    if boundary.value >= 1.0:
        odds = "no row is likelier positive than not"
    elif boundary.spread:
        odds += f" (± {boundary.spread:.2f})"
    undecided = "of rows, which the gap alone does not decide"
    lines = [
        ("Best estimate", f"{found.hidden:,.0f}", estimate),
        ("Labelled positives", f"{found.labelled:,}", f"of {found.rows:,} rows"),
        ("Called positive", f"{found.called_positive:,}", called),
        ("Boundary", f"{boundary.value:.2f}", odds),
        ("Undecided", f"{account.undecided_share:.0%}", undecided),
    ]
    width = max(9, *(len(value) for _, value, _ in lines))
    for name, value, more in lines:
        console.print(f"{name:<20}[bold]{value:>{width}}[/bold]  [dim]{more}[/dim]")


def _table_line(table: TableRecord) -> str:
    uses = ("number", "date", "category", "text")
    used = [c for c in table.columns if c["use"] in uses]
    left = [c for c in table.columns if c["use"] == "left out"]
    columns = "1 column" if len(used) == 1 else f"{len(used)} columns"
    files = len(table.files or ())
    rows = f"{table.rows:,} rows" + (f" in {files:,} files" if files > 1 else "")
    line = f"{table.name}: {rows}, {columns} used"
    if not left:
        return line + "."
    left.sort(key=lambda c: not c["why"].startswith("id-like"))
    shown = "; ".join(f"{one_line(c['name'])}: {c['why']}" for c in left[:3])
    more = f"; {len(left) - 3} more" if len(left) > 3 else ""
    back = "; --keep brings one back" if left[0]["why"].startswith("id-like") else ""
    return f"{line}, {len(left)} left out ({shown}{more}){back}."


def _ranked_table(ranked: Sequence[RankedRow], *, n_values: int) -> Any:
    named = ["id"] if any(entry.id is not None for entry in ranked) else []
    values = list(ranked[0].values)[:n_values] if ranked else []
    numbers = ("row", "score", "positive", "gap")
    rows = []
    for entry in ranked:
        cells = [str(entry.rank), one_line(entry.id or "")][: 1 + len(named)]
        cells += [f"{entry.row}", f"{entry.probability:.3f}", entry.likelihood]
        cells += [f"{entry.gap:.2f}"]
        rows.append(cells + [one_line(entry.values[name]) for name in values])
    headings = ("rank", *named, *numbers, *map(one_line, values))
    return plain_table(headings, rows, right=("rank", *numbers))
