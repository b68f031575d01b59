"""Measure the page of a fit with all its rows in Chromium: opening, searching, its size.

    python benchmarks/page.py                  # 50,000 rows of 20 columns
    python benchmarks/page.py --rows 5000

Columns are numbers, three categories and two texts. Opening lasts from the start of the
navigation until the table is drawn; searching and sorting, from the input until the table
is drawn anew. The best, the median and the worst of several.
"""

from __future__ import annotations

import argparse
import runpy
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import sync_playwright

ACCOUNTS = Path(__file__).parents[1] / "tests" / "report" / "accounts.py"
TYPE = """([id, value, event]) => {
  const started = performance.now(), input = document.getElementById(id);
  input.value = value;
  input.dispatchEvent(new Event(event));
  document.body.getBoundingClientRect();
  return performance.now() - started;
}"""


def draw_cells(n, n_columns, rng):
    """Return cells of several kinds."""
    words = np.array([f"{a}{b}" for a in "bcdfghlmnprstvw" for b in ("ana", "elo")])
    cells = {f"number {j}": rng.lognormal(3.0, 1.0, n) for j in range(n_columns - 5)}
    for size in (4, 12, 150):
        levels = np.array([f"town {level}" for level in range(size)])
        cells[f"category of {size}"] = rng.choice(levels, n)
    for j in range(2):
        cells[f"text {j}"] = [" ".join(words[k]) for k in rng.integers(0, 30, (n, 5))]
    return pd.DataFrame(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    make = runpy.run_path(str(ACCOUNTS))["lively"]
    told = make(given.rows)
    rng = np.random.default_rng(0)
    cells = draw_cells(given.rows, given.columns, rng)
    rows = type(told.rows)(told.rows.scores, cells, told.rows.expected)
    started = time.perf_counter()
    page = type(told)(told.account, told.table, told.ranked, told.run, rows).render()
    print(f"rendered in {time.perf_counter() - started:.2f} s")
    print(f"size {len(page.encode()) / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder, "report.html")
        file.write_text(page, encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        measured = {"open": [], "search": [], "filter": [], "sort": []}
        for _ in range(given.rounds):
            tab = browser.new_page()
            started = time.perf_counter()
            tab.goto(file.as_uri())
            tab.wait_for_selector("#rows-table tbody tr")
            measured["open"].append(1000 * (time.perf_counter() - started))
            for query in ("bana", "belo bana", "town 7", "P-0042", "zzz", ""):
                asked = ["rows-search", query, "input"]
                measured["search"].append(tab.evaluate(TYPE, asked))
            fields = tab.locator("#rows-fields input")
            fields.nth(8).evaluate("input => { input.id = 'one'; }")
            measured["filter"].append(tab.evaluate(TYPE, ["one", "> 20", "input"]))
            for column in ("8", "25"):
                asked = ["rows-sort", column, "change"]
                measured["sort"].append(tab.evaluate(TYPE, asked))
            tab.close()
        browser.close()
    for name, times in measured.items():
        middle = statistics.median(times)
        print(f"{name:7}{min(times):6.0f} {middle:6.0f} {max(times):6.0f} ms")


if __name__ == "__main__":
    main()
