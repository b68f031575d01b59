"""The page of a fit: what was found in a table, and whether to believe it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from probgap._core.output import NONE, PAPER, check_libraries, load, make_environment
from probgap.page._checks import all_checks, called_on_compared, overall, overlap
from probgap.page._clean import clip, harmless
from probgap.page._figures import (
    draw_count,
    draw_gaps,
    draw_labelling,
    draw_recall,
    draw_reliability,
)
from probgap.page._record import RankedRow, RunRecord, TableRecord, value_columns
from probgap.page._words import headline, moment, p_words, percent, whole_number

if TYPE_CHECKING:
    from probgap.diagnostics import Account

__all__ = ["RankedRow", "RunRecord", "TableRecord", "check_libraries", "render_page"]


def render_page(
    account: Account,
    *,
    table: TableRecord | None = None,
    ranked: Sequence[RankedRow] = (),
    run: RunRecord | None = None,
) -> str:
    """Return the page of a fit as one HTML file that needs nothing else.

    It loads nothing from the network: styles and figures are inside, and there is no
    script. Text from the table is escaped and shortened; invisible characters and those
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

    Returns
    -------
    str
        The page.

    Raises
    ------
    MissingLibraryError
        If jinja2 is not installed.

    Examples
    --------
    >>> from probgap import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.diagnostics import examine
    >>> from probgap.page import render_page
    >>> X, y, posterior = make_square(300, random_state=0)
    >>> s = hide_labels(X, y, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> model = PGPUClassifier(random_state=0).fit(X, s)
    >>> page = render_page(examine(model, X, s == 1, random_state=0))
    >>> "Can I believe it?" in page
    True
    """
    table, run = table or TableRecord(), run or RunRecord()
    environment = make_environment("probgap.page", autoescape=True, finalize=harmless)
    environment.filters.update(
        percent=percent,
        whole=whole_number,
        p_words=p_words,
        moment=moment,
        clip=clip,
        overlap=overlap,
        svg=load("markupsafe").Markup,
    )
    checks = all_checks(account)
    verdict = overall(checks, account)
    strong = any(item.level == "strong" for item in account.warnings)
    text: str = environment.get_template("page.html").render(
        account=account,
        found=account.found,
        headline=headline(
            account.found, doubtful=strong or verdict["state"] == "against"
        ),
        checks=checks,
        overall=verdict,
        count_line=draw_count(account),
        labelling_curve=draw_labelling(account),
        recall_line=draw_recall(account),
        gap_bars=draw_gaps(account),
        reliability=draw_reliability(account),
        called_on_compared=called_on_compared(account),
        ranked=ranked,
        value_columns=value_columns(ranked),
        file=table,
        uses=Counter(column["use"] for column in table.columns),
        run=run,
        paper=PAPER,
        dash=NONE,
        zip=zip,
    )
    return text
