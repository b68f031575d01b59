"""A command that cannot do what it is asked for refuses before it loads what it would need."""

import json
import subprocess
import sys

import pytest

# Runs commands one after the other: no one may load what the first line names.
SCRIPT = """
LARGE = {"sklearn", "scipy", "matplotlib", "dask"}
import contextlib, io, json, sys
from probgap.cli import main
for words in json.load(sys.stdin):
    sys.argv = ["probgap", *words.split()]
    shown, said, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            code = end.code
    loaded = sorted(LARGE & set(sys.modules))
    print(json.dumps([code, shown.getvalue(), said.getvalue(), loaded]))
"""
REFUSED = {
    "fit t.csv --label nope --out out": "--label must name a column",
    "fit nowhere.csv --label found --out out": "No such file or directory",
    "fit bad.csv --label found --out out": "in data row 2",
    "fit t.csv --label found --out out --class-prior 7": "--class-prior must be a share",
    "fit t.csv --label found --out full": "which holds thesis.tex",
    "fit t.csv --label found --out out --scheduler x": "requires --engine dask",
    "fit t.parquet --label nope --engine dask --out out": "--label must name a column",
    "compare t.csv --label found --truth nope": "--truth must name a column",
    "predict nowhere t.csv": "MODEL must be a file that probgap fit wrote",
    "predict model.probgap nowhere.csv": "No such file or directory",
    "predict model.probgap t.csv --out a/b.csv": "in a folder that exists",
    "explain nowhere": "no run.json in it",
    "demo --out t.csv": "--out must name a folder",
}


def test_bad_input_is_refused_before_scikit_learn_is_loaded(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, 2, 3, 4], "b": [2, 3, 1, 4]})
    table["found"] = ["yes", None, "yes", None]
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "bad.csv").write_text("a,found\n1,yes\n2,3,4,5\n")
    (tmp_path / "model.probgap").write_bytes(b"")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(list(REFUSED)),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    results = map(json.loads, process.stdout.splitlines())
    for (words, part), (code, shown, said, loaded) in zip(
        REFUSED.items(), results, strict=True
    ):
        assert (code, shown, loaded) == (1, "", []), words
        assert part in said, words
        assert "Dashboard" not in said
    assert not (tmp_path / "out").exists()


def test_of_a_fit_by_dask_all_rows_are_explained_but_not_one(tmp_path, probgap):
    driver = {"column": "size", "importance": 0.25, "spread": 0.01}
    drivers = {"scored_by": "ROC AUC", "score": 0.9, "columns": [driver]}
    run = {"format": 1, "table": {"files": ["a", "b"]}, "drivers": drivers}
    (tmp_path / "run.json").write_text(json.dumps(run))
    result = probgap("explain", tmp_path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "+0.250" in result.stdout
    result = probgap("explain", tmp_path, "--row", "1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "requires a fit in memory" in result.stderr
