"""What ``fit`` found, on one screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from probgap.cli._analysis import Analysis, split_sentence
from probgap.cli._terminal import one_line

if TYPE_CHECKING:
    from probgap.boundary import Boundary
    from probgap.diagnostics import Account
    from probgap.page import RankedRow, TableRecord

_N_SHOWN = 10
_MOST_WARNINGS = 3
_WIDE = 60  # signs; on a narrower terminal the row's own values are left out


def show_summary(analysis: Analysis, out: Path) -> None:
    """Print the main points of a fit to standard output."""
    console = Console(highlight=False)  # numbers and names are the user's
    account, table = analysis.account, analysis.table
    warnings = account.warnings
    console.print(escape(_table_line(table)))
    console.print(escape(table.sentence))
    console.print()
    lines = list(_numbers(account))
    width = max(9, *(len(value) for _, value, _ in lines))
    for name, value, more in lines:
        console.print(f"{name:<20}[bold]{value:>{width}}[/bold]  [dim]{more}[/dim]")
    console.print("\nLikeliest hidden positives", style="dim")
    ranked = analysis.ranked[: _n_shown(len(warnings))]
    console.print(_ranked_table(ranked, wide=console.width >= _WIDE))
    for warning in warnings[:_MOST_WARNINGS]:
        said = (split_sentence(part)[0] for part in (warning.what, warning.do))
        line = " ".join(said).strip()
        console.print(f"[bold yellow]![/bold yellow] {escape(line)}")
    left = len(warnings) - _MOST_WARNINGS
    if left > 0:
        console.print(f"[bold yellow]![/bold yellow] {left} more in the report.")
    page = Text(str(out / "report.html"), style="bold")
    console.print(page.append(" is the page to read", style="not bold"), soft_wrap=True)
    files = ", ".join(analysis.run.files[1:])
    console.print(f"[dim]beside it: {files}[/dim]")


def _n_shown(n_warnings: int) -> int:
    """Let rows give way to warnings, so that all fits one screen."""
    n_lines = min(n_warnings, _MOST_WARNINGS + 1)
    return _N_SHOWN - 2 * max(0, n_lines - 2)


def _numbers(account: Account) -> Iterator[tuple[str, str, str]]:
    """Yield the lines of numbers: name, value, remark."""
    found, boundary = account.found, account.boundary
    low, high = found.hidden_interval
    estimate = f"{found.level:.0%} interval; best estimate {found.hidden:,.0f}"
    yield "Labelled positives", f"{found.labelled:,}", f"of {found.rows:,} rows"
    yield "Hidden positives", f"{low:,.0f} to {high:,.0f}", estimate
    called = f"of {found.unlabelled:,} unlabelled rows (probability > 1/2)"
    yield "Called positive", f"{found.called_positive:,}", called
    yield "Boundary", f"{boundary.value:.2f}", _boundary_words(boundary)
    undecided = "of rows: their gap alone does not say"
    yield "Undecided", f"{account.undecided_share:.0%}", undecided


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
    shown = "; ".join(f"{one_line(c['name'])}: {c['why']}" for c in left[:3])
    more = f"; {len(left) - 3} more" if len(left) > 3 else ""
    return f"{line}, {len(left)} left out ({shown}{more})."


def _boundary_words(boundary: Boundary) -> str:
    if boundary.value >= 1.0:
        return "no row is likelier positive than not"
    words = "gap of even odds"
    return f"{words} (± {boundary.spread:.2f})" if boundary.spread else words


def _ranked_table(ranked: Sequence[RankedRow], *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    named = any(entry.id is not None for entry in ranked)
    n_values = 2 if wide else 0
    table.add_column("rank", justify="right")
    if named:
        table.add_column("id", no_wrap=True)
    for name in ("row", "probability", "gap"):
        table.add_column(name, justify="right", min_width=len(name))
    for name in list(ranked[0].values)[:n_values] if ranked else []:
        table.add_column(Text(one_line(name)), no_wrap=True)
    for entry in ranked:
        cells = [str(entry.rank)]
        if named:
            cells.append(one_line(entry.id or ""))
        cells += [f"{entry.row}", f"{entry.probability:.3f}", f"{entry.gap:.2f}"]
        values = list(entry.values.values())[:n_values]
        cells += [one_line(value) for value in values]
        table.add_row(*(Text(cell) for cell in cells))
    return table
