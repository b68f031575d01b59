"""The page of a fit: what was found in a table, and whether to believe it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from probgap._core.output import PAPER, check_libraries
from probgap.page import _figures, _text
from probgap.page._audit import render_audit
from probgap.page._checks import all_checks, called_on_compared, overall, overlap
from probgap.page._rows import (
    MOST_ROWS,
    AllRows,
    Expected,
    expect_positives,
    hash_source,
    page_data,
)

if TYPE_CHECKING:
    from probgap.diagnostics import Account

__all__ = [
    "AllRows",
    "Expected",
    "RankedRow",
    "RunRecord",
    "TableRecord",
    "check_libraries",
    "expect_positives",
    "render_audit",
    "render_page",
]


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One of the likeliest hidden positives: its place in the list and in the table.

    Rows are ordered by ``probability``, P(Y=1 | x) of rows like it. ``range`` is the 90%
    range of the probability that this one is positive, given that it is unlabelled, and
    ``chance`` that probability, where it is known well enough to be one number.
    ``values`` holds cells of the columns that matter most, as text.
    """

    rank: int
    row: int
    id: str | None
    probability: float
    gap: float
    values: Mapping[str, str]
    range: tuple[float, float] | None = None
    chance: float | None = None

    @property
    def likelihood(self) -> str:
        """How likely the row is positive, in percent: one number, or a range."""
        if self.chance is not None or self.range is None:
            return _text.percent(self.chance)
        low, high = self.range
        lowest = "<1%" if 0.0 < low < 0.005 else _text.percent(low)
        return f"{lowest} to {_text.percent(high)}"


@dataclass(frozen=True, slots=True)
class TableRecord:
    """The table that was read.

    ``sentence`` tells how the label column was read, ``columns`` how each column is used:
    ``name``, ``use``, ``why``, ``n_missing``, ``n_distinct`` and ``example``.
    """

    name: str = "the table"
    path: str | None = None
    rows: int | None = None
    sha256: str | None = None
    label: str | None = None
    positive: str | None = None
    unlabelled: Mapping[str, int] = field(default_factory=dict)
    sentence: str = ""
    id: str | None = None
    notes: tuple[str, ...] = ()
    columns: tuple[Mapping[str, Any], ...] = ()
    files: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """When, how and with what a fit was made; ``started`` is in ISO 8601."""

    probgap: str | None = None
    started: str | None = None
    command: str | None = None
    seed: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    pipeline: str = ""
    files: tuple[str, ...] = ()
    engine: str | None = None


def render_page(
    account: Account,
    *,
    table: TableRecord | None = None,
    ranked: Sequence[RankedRow] = (),
    run: RunRecord | None = None,
    rows: AllRows | None = None,
) -> str:
    """Return the page of a fit as one HTML file that needs nothing else.

    It loads nothing from the network: styles and figures are inside. With ``rows`` there
    is a script, too, by which a reader can search, sort, filter and download them; the
    page reads without it, and no other script can run. Text from the table is escaped and shortened; invisible characters and those
    that change the direction of writing are shown by their code points. Where the account
    lacks a check, a sentence says so.

    Parameters
    ----------
    account : Account
        What :func:`probgap.diagnostics.examine` returns.
    table : TableRecord, default=None
        The table that was read, where it came from a file.
    ranked : sequence of RankedRow, default=()
        The likeliest hidden positives.
    run : RunRecord, default=None
        Settings, versions and times.
    rows : AllRows, default=None
        All unlabelled rows, of which the page holds the first 50,000.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.diagnostics import examine
    >>> from probgap.page import render_page
    >>> X, y, posterior = make_square(300, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> account = examine(model, X, s == 1, fast=True, random_state=0)
    >>> page = render_page(account)
    >>> "Can I believe it?" in page
    True
    """
    table, run = table or TableRecord(), run or RunRecord()
    environment = _text.page_environment()
    markup = environment.filters["svg"]
    script = environment.loader.get_source(environment, "rows.js")[0] if rows else ""
    checks = all_checks(account)
    verdict = overall(checks, account)
    strong = any(item.level == "strong" for item in account.warnings)
    doubtful = strong or verdict["state"] == "against"
    text: str = environment.get_template("page.html").render(
        account=account,
        found=account.found,
        headline=_text.headline(account.found, doubtful=doubtful),
        checks=checks,
        overall=verdict,
        overlap=overlap,
        called_on_compared=called_on_compared(account),
        figures=_figures,
        ranked=ranked,
        sample=_text.sample_to_check(account.found),
        value_columns=_text.value_columns(ranked),
        file=table,
        uses=Counter(column["use"] for column in table.columns),
        run=run,
        paper=PAPER,
        data=markup(page_data(rows, account)) if rows else "",
        script=markup(script),
        script_source=hash_source(script),
        most_rows=MOST_ROWS,
        zip=zip,
    )
    return text
