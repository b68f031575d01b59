"""The page of an audit: how many positives are hidden, by the answers of a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from probgap.reporting import _text


def render_audit(
    found: Mapping[str, Any],
    *,
    notes: Sequence[str] = (),
    table: str = "",
    folder: str = "",
) -> str:
    """Return the page of an audit as one HTML file that needs nothing else.

    Parameters
    ----------
    found : mapping
        The part ``estimate`` of audit.json.
    notes : sequence of str, default=()
        What was understood of the answers.
    table, folder : str, default=""
        Name of the table, and the folder of its results, for the commands to go on with.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from probgap.reporting import render_audit
    >>> found = {"headline": "3 positives found", "valid": False, "n_asked": 9}
    >>> found |= {"n_yes": 3, "n_no": 5, "n_unknown": 1, "kind": "find"}
    >>> "3 positives found" in render_audit(found)
    True
    """
    environment = _text.page_environment()
    page: str = environment.get_template("audit.html").render(
        found=found, notes=notes, table=table, folder=folder
    )
    return page
