"""Bad tables and bad usage, one by one: an exit code, one sentence, nothing left behind."""

import gzip

import pytest

FIT = "fit t.csv --label found --out out"
COMPARE = "compare t.csv --label found"

# What is in t.csv, and a part of what is said of it.
OTHER = ", not a CSV, TSV, Parquet or Excel file; save the table as CSV"
BAD_FILES = {
    "empty file": (b"", "t.csv is empty; expected a header and rows."),
    "blank lines": ("\n \n\r\n", "t.csv is empty; expected a header"),
    "byte order mark alone": (b"\xef\xbb\xbf", "t.csv is empty;"),
    "header only": ("size,found\n", "t.csv has a header but no rows."),
    "header without line end": ("size,found", "has a header but no rows."),
    "header with the label alone": (
        "found\nyes\nyes\nno\nno\n",
        "besides 'found': the table has no other column.",
    ),
    "UTF-16 without mark": (lambda good: good.csv().encode("utf-16-le"), OTHER),
    "UTF-16 cut in a letter": (
        lambda good: good.csv().encode("utf-16") + b"\xd8",
        "save it as UTF-8",
    ),
    "NUL bytes": (
        lambda good: good.csv().replace("red", "r\0d"),
        "t.csv is binary data" + OTHER,
    ),
    "numbers for a header": ("1,2\n3,4\n", "The first line of t.csv has only numbers"),
    "too many cells in a row": (
        lambda good: good.csv() + "x,1,red,,,\n",
        "t.csv has 6 cells in data row 33 (near line 34), but 4 in its header",
    ),
    "too few cells in a row": (
        lambda good: good.csv() + "x,1\n",
        "t.csv has 2 cells in data row 33",
    ),
    "duplicated header": (
        lambda good: good.csv().replace("colour", "size", 1),
        "Columns 2 and 3 of t.csv are both named 'size'",
    ),
    "quote left open": (
        lambda good: good.csv() + '"x,1,red,yes\n',
        "is a quote left open?",
    ),
    "huge name of a column": (f"{'a' * 200_000},found\n1,yes\n", "131,072 characters"),
    "huge header": (f"{99 * 'a'}," * 180_000, "is several megabytes long"),
    "huge row": (
        lambda good: good.csv() + "x," + "1" * 9_000_000 + ",,\n",
        "a row of more than 2 MB",
    ),
    "truncated gzip": (
        lambda good: gzip.compress(good.csv().encode())[:-30],
        "truncated or damaged gzip file",
    ),
    "gzip of an empty file": (gzip.compress(b"", mtime=0), "t.csv is empty;"),
    "gzip in gzip": (
        gzip.compress(gzip.compress(b"a", mtime=0)),
        "t.csv is gzipped twice",
    ),
    "damaged gzip": (b"\x1f\x8b" + b"x" * 50, "truncated or damaged gzip file ("),
    "picture called .csv": (
        b"\x89PNG\r\n\x1a\n" + bytes(99),
        "t.csv is a picture" + OTHER,
    ),
    "workbook called .csv": (b"PK\x03\x04" + bytes(99), "t.csv is a damaged Excel"),
    "huge number": (
        lambda good: good.csv(size={3: "-1e308"}),
        "Column 'size' has '-1e308' in row 4, which is not a number from -1e100",
    ),
    "random bytes": (bytes(range(256)) * 9, OTHER),
    "web page": ("<!DOCTYPE html>\n<p>404</p>\n", "--label must name a column"),
    "truncated Parquet": (
        lambda good: good.parquet()[:-99],
        "truncated or damaged Parquet file",
    ),
    "Parquet magic alone": (b"PAR1", "truncated or damaged Parquet file: "),
    "Parquet without rows": (
        lambda good: good.parquet(rows=0),
        "t.csv is empty: it has no rows or no columns.",
    ),
    "nested Parquet": (
        lambda good: good.parquet(size=[[1, 2]] * 32),
        "Column 'size' of t.csv has the nested type list",
    ),
    "structs for labels": (
        lambda good: good.parquet(found=[{"a": 1}] * 32),
        "Column 'found' of t.csv has the nested type struct",
    ),
    "one row": ("size,found\n1,yes\n", "some rows must be unlabelled"),
    "label absent": (
        lambda good: good.csv("found"),
        "--label must name a column of the table, which has case, size, colour. Got",
    ),
    "labels of three values": (
        lambda good: good.csv(found=["a", "b"] * 16),
        "holds several values besides those for unlabelled: 'a', 'b'; say which",
    ),
    "labels all empty": (lambda good: good.csv(found=""), "all its cells are empty."),
    "labels all positive": (
        lambda good: good.csv(found="yes"),
        "holds 'yes' in every row; some rows must be unlabelled.",
    ),
    "one labelled positive": (
        lambda good: good.csv(found=["yes"] + [""] * 31),
        "marks 1 of 32 rows; a fit needs at least 2 labelled rows (30 before the numbers mean much)",
    ),
    "one unlabelled row": (
        lambda good: good.csv(found=["yes"] * 31 + [""]),
        "marks 31 of 32 rows",
    ),
    "labels that are numbers": (
        lambda good: good.csv(found=range(32)),
        "and 25 more values; say which",
    ),
    "constant columns only": (
        lambda good: good.csv("colour", size=1),
        "'size' (constant).",
    ),
    "all-missing column only": (
        lambda good: good.csv("colour", size=""),
        "(all cells are empty).",
    ),
    "column that is the label": (
        lambda good: good.csv("colour", size=good.frame()["found"]),
        "'size' (mirrors the label: filled in exactly where a row is labelled).",
    ),
    "inf": (
        lambda good: good.csv(size={3: "inf"}),
        "has 'inf' in row 4, which is not a finite number",
    ),
    "number beyond all bounds": (
        lambda good: good.csv(size={3: "1e999"}),
        "has '1e999' in row 4",
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


@pytest.mark.parametrize(
    "command", ["compare t.csv --label found", "predict run/model.skops t.csv"]
)
def test_other_commands_read_tables_the_same(command, place, refuses):
    (place / "t.csv").write_bytes(b"")
    refuses(command, "t.csv is empty; expected a header and rows.")


@pytest.mark.parametrize("name", USAGE)
def test_a_bad_command_is_a_matter_of_usage(name, place, probgap, listing):
    before = listing(place)
    result = probgap(*USAGE[name].split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: probgap" in result.stderr
    assert "Traceback" not in result.stderr
    assert listing(place) == before
