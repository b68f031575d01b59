"""The page of a fit: what was found in a table, and whether to believe it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probgap._core.pages import NONE, PAPER, check_libraries, load, make_environment
from probgap.page._clean import harmless
from probgap.page._read import check_account
from probgap.page._view import make_view
from probgap.page._words import percent, whole_number

__all__ = ["check_libraries", "render_page"]


def render_page(account: Mapping[str, Any]) -> str:
    """Write the page of a fit as one HTML file that needs nothing else.

    It is made from plain data alone, and asks nothing of the network: styles and
    figures are inside, there is no script. Text from the table is escaped and cut to a
    length that a reader can take in; control characters and those that turn the
    direction of writing are shown by their number. What the account lacks, or holds as
    ``None``, the page says in a sentence.

    Parameters
    ----------
    account : mapping
        What ``probgap fit`` knows at its end, as JSON would hold it. ``"table"`` and
        ``"found"`` must be there; ``"ranked"``, ``"boundary"``, ``"decision"``,
        ``"belief"``, ``"drivers"``, ``"next"``, ``"warnings"`` and ``"run"`` may be.

    Returns
    -------
    str
        The page.

    Raises
    ------
    InvalidInputError
        If the account is no mapping, or has no table or nothing found.
    MissingLibraryError
        If jinja2 is not installed.

    Examples
    --------
    >>> from probgap.page import render_page
    >>> found = {"rows": 90, "labelled": 20, "unlabelled": 70, "hidden": 11.6}
    >>> page = render_page({"table": {"name": "tumours.csv"}, "found": found})
    >>> page[page.index("<h1>") : page.index("</h1>")]
    '<h1>Perhaps 12 more positives among 70 unlabelled rows'
    """
    view = make_view(check_account(account))
    environment = make_environment("probgap.page", autoescape=True, finalize=harmless)
    environment.filters.update(percent=percent, whole=whole_number)
    environment.filters["svg"] = load("markupsafe").Markup
    text: str = environment.get_template("page.html").render(
        **view, paper=PAPER, dash=NONE
    )
    return text
