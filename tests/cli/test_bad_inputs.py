"""Bad tables and bad usage, one by one: an exit code, one sentence, nothing left behind."""

import pytest

FIT = "fit t.csv --label found --out out"
COMPARE = "compare t.csv --label found"

# What is in t.csv, and a part of what is said of it.
OTHER = ", not a CSV, TSV, Parquet or Excel file; save the table as CSV"
BAD_FILES = {
    "empty file": (b"", "t.csv is empty; expected a header and rows."),
    "header only": ("size,found\n", "t.csv has a header but no rows."),
    "header with the label alone": (
        "found\nyes\nyes\nno\nno\n",
        "besides 'found': the table has no other column.",
    ),
    "too many cells in a row": (
        lambda good: good.csv() + "x,1,red,,,\n",
        "t.csv has 6 cells in data row 33 (near line 34), but 4 in its header",
    ),
    "quote left open": (
        lambda good: good.csv() + '"x,1,red,yes\n',
        "is a quote left open?",
    ),
    "web page": ("<!DOCTYPE html>\n<p>404</p>\n", "--label must name a column"),
    "truncated Parquet": (
        lambda good: good.parquet()[:-99],
        "truncated or damaged Parquet file",
    ),
    "nested Parquet": (
        lambda good: good.parquet(size=[[1, 2]] * 32),
        "Column 'size' of t.csv has the nested type list",
    ),
    "label absent": (
        lambda good: good.csv("found"),
        "--label must name a column of the table, which has case, size, colour. Got",
    ),
    "labels of three values": (
        lambda good: good.csv(found=["a", "b"] * 16),
        "holds several values besides those for unlabelled: 'a', 'b'; say which",
    ),
    "labels all empty": (lambda good: good.csv(found=""), "all its cells are empty."),
    "one labelled positive": (
        lambda good: good.csv(found=["yes"] + [""] * 31),
        "marks 1 of 32 rows; a fit needs at least 2 labelled rows (12 before the numbers mean much)",
    ),
    "constant columns only": (
        lambda good: good.csv("colour", size=1),
        "'size' (constant).",
    ),
    "column that is the label": (
        lambda good: good.csv("colour", size=good.frame()["found"]),
        "'size' (mirrors the label: filled in exactly where a row is labelled).",
    ),
    "a word among numbers": (
        lambda good: good.csv(size={3: "lots"}),
        "has 'lots' in row 4, which is not a number (31 cells of the column are, 1 is not)",
    ),
}


USAGE = {
    "no label": "fit t.csv --out out",
    "no folder": "fit t.csv --label found",
    "no table": "fit --label found --out out",
    "negative seed": FIT + " --seed -1",
    "seed that is a word": FIT + " --seed x",
    "no job": FIT + " --jobs 0",
    "one fold": COMPARE + " --folds 1",
    "no such option": FIT + " --lable x",
    "no such command": "fitt t.csv",
    "no model": "predict",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_table_gives_one_sentence_and_leaves_nothing(name, place, good, refuses):
    content, part = BAD_FILES[name]
    content = content(good) if callable(content) else content
    data = content.encode() if isinstance(content, str) else content
    (place / "t.csv").write_bytes(data)
    refuses(FIT, part)


@pytest.mark.parametrize("name", USAGE)
def test_a_bad_command_is_a_matter_of_usage(name, place, probgap, listing):
    before = listing(place)
    result = probgap(*USAGE[name].split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: probgap" in result.stderr
    assert "Traceback" not in result.stderr
    assert listing(place) == before
