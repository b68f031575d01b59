"""Bad tables and bad usage, one by one: an exit code, one sentence, nothing left behind."""

import gzip

import pytest

FIT = "fit t.csv --label found --out out"
COMPARE = "compare t.csv --label found"

# What is in t.csv, and a part of what is said of it.
PLAIN = "must be CSV, TSV or Parquet, maybe gzipped. Got "
BAD_FILES = {
    "empty file": (b"", "t.csv must hold a header and rows. Got an empty file."),
    "blank lines": ("\n \n\r\n", "must hold a header and rows. Got an empty file."),
    "byte order mark alone": (b"\xef\xbb\xbf", "Got an empty file."),
    "header only": ("size,found\n", "must hold rows below its header. Got a header"),
    "header without line end": ("size,found", "Got a header alone."),
    "header with the label alone": (
        "found\nyes\nyes\nno\nno\n",
        "Got no other column.",
    ),
    "UTF-16 without mark": (lambda good: good.csv().encode("utf-16-le"), PLAIN),
    "UTF-16 cut in a letter": (
        lambda good: good.csv().encode("utf-16") + b"\xd8",
        "save it as UTF-8",
    ),
    "NUL bytes": (
        lambda good: good.csv().replace("red", "r\0d"),
        PLAIN + "bytes that are no text",
    ),
    "numbers for a header": ("1,2\n3,4\n", "must hold the names of the columns"),
    "too many cells in a row": (
        lambda good: good.csv() + "x,1,red,,,\n",
        "Got 6 in data row 33",
    ),
    "too few cells in a row": (
        lambda good: good.csv() + "x,1\n",
        "header has. Got 2 in data row 33",
    ),
    "duplicated header": (
        lambda good: good.csv().replace("colour", "size", 1),
        "for columns 2, 3",
    ),
    "quote left open": (
        lambda good: good.csv() + '"x,1,red,yes\n',
        "is a quote left open?",
    ),
    "huge name of a column": (f"{'a' * 200_000},found\n1,yes\n", "131,072 characters"),
    "huge header": ("a,b" * 9_000_000, "Got a line of several megabytes"),
    "huge row": (
        lambda good: good.csv() + "x," + "1" * 9_000_000 + ",,\n",
        "a row of more than 2 MB",
    ),
    "truncated gzip": (
        lambda good: gzip.compress(good.csv().encode())[:-30],
        "whole gzip file",
    ),
    "gzip of an empty file": (gzip.compress(b"", mtime=0), "Got an empty file."),
    "gzip in gzip": (
        gzip.compress(gzip.compress(b"a", mtime=0)),
        "at most once. Got gzip in",
    ),
    "damaged gzip": (b"\x1f\x8b" + b"x" * 50, "must be a whole gzip file. Got"),
    "picture called .csv": (b"\x89PNG\r\n\x1a\n" + bytes(99), PLAIN + "a picture"),
    "workbook called .csv": (b"PK\x03\x04" + bytes(99), PLAIN + "a zip archive or an"),
    "random bytes": (bytes(range(256)) * 9, PLAIN),
    "web page": ("<!DOCTYPE html>\n<p>404</p>\n", "--label must name a column"),
    "truncated Parquet": (
        lambda good: good.parquet()[:-99],
        "whole Parquet file. Got a",
    ),
    "Parquet magic alone": (b"PAR1", "must be a whole Parquet file. Got a damaged one"),
    "Parquet without rows": (
        lambda good: good.parquet(rows=0),
        "must hold rows and columns",
    ),
    "nested Parquet": (
        lambda good: good.parquet(size=[[1, 2]] * 32),
        "Column 'size' of t.csv must hold one value per cell. Got the nested type list",
    ),
    "structs for labels": (
        lambda good: good.parquet(found=[{"a": 1}] * 32),
        "Column 'found' of t.csv must hold one value per cell.",
    ),
    "one row": ("size,found\n1,yes\n", "must leave some rows unlabelled"),
    "label absent": (
        lambda good: good.csv("found"),
        "--label must name a column of the table. Got",
    ),
    "labels of three values": (
        lambda good: good.csv(found=["a", "b"] * 16),
        "must hold one value besides those for unlabelled. Got 'a', 'b'; say which",
    ),
    "labels all empty": (lambda good: good.csv(found=""), "Got empty cells alone."),
    "labels all positive": (
        lambda good: good.csv(found="yes"),
        "must leave some rows unlabelled. Got",
    ),
    "one labelled positive": (
        lambda good: good.csv(found=["yes"] + [""] * 31),
        "must mark at least 2 positives (30 before the numbers mean much). Got 1 labelled of 32",
    ),
    "one unlabelled row": (
        lambda good: good.csv(found=["yes"] * 31 + [""]),
        "at least 2 rows unlabell",
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
        "must hold finite numbers. Got 'inf' in row 4",
    ),
    "number beyond all bounds": (
        lambda good: good.csv(size={3: "1e999"}),
        "Got '1e999' in row 4",
    ),
    "a word among numbers": (
        lambda good: good.csv(size={3: "lots"}),
        "Got 'lots' in row 4; mend the cell",
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
    refuses(command, "t.csv must hold a header and rows. Got an empty file.")


@pytest.mark.parametrize("name", USAGE)
def test_a_bad_command_is_a_matter_of_usage(name, place, probgap, listing):
    before = listing(place)
    result = probgap(*USAGE[name].split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: probgap" in result.stderr
    assert "Traceback" not in result.stderr
    assert listing(place) == before
