"""Keep the rows of a full run in ``docs/reproduction``, with the page made of them.

    python -m research.paper.keep reproduction/rows.jsonl

Without rows, those that are kept already are used again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from research.paper.report import build_report
from research.paper.rows import latest_rows, read_rows, write_rows

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"


def main() -> None:
    """Write rows.jsonl.gz, report.md and the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path, nargs="?", help="a file of rows")
    options = parser.parse_args()
    kept = FOLDER / "rows.jsonl.gz"
    rows = latest_rows(read_rows(options.rows or kept))
    rows.sort(key=lambda row: row["key"])
    write_rows(kept, rows)
    for old in (FOLDER / "figures").glob("*.svg"):
        old.unlink()
    files = build_report(rows, FOLDER)
    files.html.unlink()  # the documentation makes its own of the other


if __name__ == "__main__":
    main()
