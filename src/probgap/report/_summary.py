"""From rows to plain data, which every page and picture is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from probgap.report._details import (
    summarise_boundaries,
    summarise_figure,
    summarise_run,
)
from probgap.report._differences import summarise_differences
from probgap.report._printed import printed_scores
from probgap.report._rows import OURS, read_runs
from probgap.report._shares import count_verdicts, summarise_blocks
from probgap.report._statistics import summarise_statistics
from probgap.report._tables import TITLES, summarise_tables


def summarise(
    rows: Sequence[Mapping[str, Any]], *, command: str | None = None
) -> dict[str, Any]:
    """Compute everything that the report says.

    Parameters
    ----------
    rows : sequence of mappings
        One for each job, in any order.
    command : str, default=None
        The command line of the run.

    Returns
    -------
    dict
        Numbers, names and lists of them; nothing in it is formatted.

    Examples
    --------
    >>> from probgap.report import summarise
    >>> row = {"table": "1", "data": "triangles", "labelling": "inverse(0.1, 0.5)"}
    >>> row |= {"rate": "inverse", "alpha": 0.1, "beta": 0.5, "seed": 0}
    >>> scores = {"SVM": 0.92, "clean": 0.98, "probgap": 0.96}
    >>> rows = [row | {"method": m, "accuracy": a} for m, a in scores.items()]
    >>> round(summarise(rows)["blocks"][0]["ours"]["share"], 3)
    0.667
    """
    runs = read_runs(rows)
    printed = printed_scores()
    blocks = summarise_blocks(runs.scores, printed)
    tables = summarise_tables(runs, printed)
    present = {table["number"] for table in tables}
    return {
        "run": summarise_run(runs, command),
        "ours": OURS,
        "blocks": blocks,
        "verdicts": count_verdicts(blocks),
        "tables": tables,
        "missing_tables": [number for number in TITLES if number not in present],
        "statistics": summarise_statistics(runs.scores),
        "panels": summarise_figure(runs.figure),
        "boundaries": summarise_boundaries(runs),
        "differences": summarise_differences(tables, blocks),
    }
