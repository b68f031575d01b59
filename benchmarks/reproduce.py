"""Estimate how long ``probgap reproduce`` takes, and check rows that are there already.

    PROBGAP_DATA=folder python benchmarks/reproduce.py                # one split of every row
    python benchmarks/reproduce.py --tables 1 4 --check docs/reproduction/rows.jsonl.gz

Runs one split of each row of the tables, all methods, and multiplies by the number of
splits. With --check, each accuracy and boundary must be that of the row with the same key,
to the last bit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from probgap.reproduction import check_data, paper_specs, plan, read_rows, run

NUMBERS = ("accuracy", "balanced_accuracy", "f1", "auc")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tables", nargs="+", help="which tables; all, if none is named"
    )
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", type=Path, help="rows to compare with")
    options = parser.parse_args()
    planned = plan(paper_specs(), tables=options.tables)
    jobs = [job for job in planned if job.split == options.split]
    check_data({job.data for job in jobs})  # trains vectors once, as the command does
    started = time.perf_counter()
    rows = list(run(jobs, n_jobs=options.jobs))
    wall = time.perf_counter() - started
    seconds = Counter()
    for row in rows:
        seconds[row["method"]] += row["seconds"]
    print(
        f"{len(rows)} of {len(planned)} jobs in {wall:.0f} s on {options.jobs} processes;"
    )
    print(f"all of them: about {wall * len(planned) / len(rows) / 60:.0f} minutes.")
    for method, total in seconds.most_common():
        print(f"{method:14}{total:8.0f} s")
    if options.check:
        known = {row["key"]: row for row in read_rows(options.check)}
        other = [
            row["key"] for row in rows if numbers(row) != numbers(known[row["key"]])
        ]
        print(f"{len(other)} of {len(rows)} rows differ from {options.check}:", *other)
        sys.exit(bool(other))


def numbers(row):
    return [row[name] for name in NUMBERS] + [row["details"].get("boundary")]


if __name__ == "__main__":
    main()
