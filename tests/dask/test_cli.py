"""``fit --engine dask`` and ``predict`` on several files."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import dask
import numpy as np
import pandas as pd
import pytest
import typer
from numpy.testing import assert_array_equal

from probgap import io
from probgap.cli import _cluster
from probgap.dask._files import draw_table

N_ROWS = 600


@pytest.fixture
def folder(table, tmp_path):
    """Write three files and one without rows."""
    X, s = table[0][:N_ROWS], table[2][:N_ROWS]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        case=[f"C-{i}" for i in range(N_ROWS)],
        colour=np.where(X[:, 3] > 0, "red", "green"),
        flagged=np.where(s == 1, "yes", None),
    )
    frame.loc[::50, "b"] = np.nan
    data = tmp_path / "data"
    data.mkdir()
    for k in range(3):
        part = frame.iloc[200 * k : 200 * (k + 1)]
        part.to_parquet(data / f"part-{k}.parquet", index=False)
    frame.iloc[:0].to_parquet(data / "part-9.parquet", index=False)
    return data


def rewrite(folder, change):
    """Change every file, a frame at a time."""
    for path in sorted(folder.iterdir()):
        frame = pd.read_parquet(path)
        change(frame).to_parquet(path, index=False)


@pytest.fixture
def here(monkeypatch):
    """Compute in this process: others take seconds to start."""

    @contextmanager
    def start(*_, shown):
        if shown:
            typer.echo("Dashboard: http://here:8787/status", err=True)
        yield

    monkeypatch.setattr(_cluster, "start_client", start)


@pytest.mark.skipif(os.name != "posix", reason="needs process groups")
def test_an_interrupt_is_one_sentence_and_leaves_nothing(folder, tmp_path):
    """Ctrl-C goes to the workers, too: they leave it to the command."""
    words = ["fit", f"{folder}/*.parquet", "--label", "flagged", "--engine", "dask"]
    command = [sys.executable, "-m", "probgap", *words, "--jobs", "1"]
    command += ["--out", "results"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        said = ""
        while "Fitting the model" not in said:
            more = process.stderr.read(1)
            assert more, said
            said += more
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert rest.splitlines()[-1] == "Stopped. Nothing was written."
    assert "Traceback" not in rest
    assert not (tmp_path / "results").exists()


def test_processes_start_and_say_where_to_watch_them(capsys):
    with dask.config.set(scheduler=None), _cluster.start_client(None, 1, shown=True):
        assert dask.delayed(sum)([1, 2]).compute() == 3
    assert "Dashboard: http://127.0.0.1:" in capsys.readouterr().err


@pytest.fixture
def fit(folder, probgap):
    def run(*more):
        out = folder.parent / "results"
        words = ("--label", "flagged", "--engine", "dask", "--fast", "--out", out)
        return probgap("fit", folder / "*.parquet", *words, *more), out

    return run


@pytest.mark.usefixtures("here")
def test_files_become_a_model_that_scores_files(folder, fit, probgap):
    result, out = fit("--id", "case")
    assert result.exit_code == 0, result.stderr
    assert "Dashboard: http://here:8787/status" in result.stderr
    assert "600 rows in 3 files" in " ".join(result.stdout.split())
    names = ["label_next.csv", "model.probgap", "report.html", "run.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    account = json.loads((out / "run.json").read_text())
    uses = {column["name"]: column["use"] for column in account["table"]["columns"]}
    assert uses["b"] == "number"
    assert uses["colour"] == "category"
    assert uses["case"] == "id"
    assert account["found"]["rows"] == N_ROWS
    low, high = account["found"]["hidden_interval"]
    assert low <= account["found"]["hidden"] <= high
    assert f"Between {low:,.0f} and {high:,.0f} more" in result.stdout
    scored = folder.parent / "scored.csv"
    result = probgap("predict", out, folder, "--out", scored)
    assert result.exit_code == 0, result.stderr
    scores = pd.read_csv(scored)
    assert scores["row"].tolist() == list(range(1, N_ROWS + 1))
    assert scores["id"].tolist() == [f"C-{i}" for i in range(N_ROWS)]
    parquet = scored.with_suffix(".parquet")
    result = probgap("predict", out, folder, "--out", parquet)
    assert result.exit_code == 0, result.stderr
    pd.testing.assert_frame_equal(pd.read_parquet(parquet), scores, check_dtype=False)
    assert io.load(out / "model.probgap").classes_.tolist() == ["no", "yes"]
    # A later file without a column: nothing is written.
    pd.DataFrame({"a": [1.0]}).to_parquet(folder / "part-9.parquet")
    scored.unlink()
    result = probgap("predict", out, folder, "--out", scored, "--quiet")
    assert result.exit_code == 1
    assert "has no 'b', 'c', 'd', 'colour'" in result.stderr
    assert not scored.exists()
    assert dask.config.get("scheduler") == "synchronous"


@pytest.mark.parametrize(
    ("mark", "classes"), [(1, [0, 1]), (True, [False, True]), ("fraud", None)]
)
@pytest.mark.usefixtures("here")
def test_labels_are_predicted_as_they_are_written(folder, fit, mark, classes):
    other = None if classes is None else classes[0]
    rewrite(
        folder,
        lambda frame: frame.head(80).assign(
            flagged=[
                mark if one else other for one in frame["flagged"].head(80).notna()
            ]
        ),
    )
    result, out = fit("--json" if mark is True else "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    if mark is True:
        assert json.loads(result.stdout)["run"]["engine"] == "dask"
    else:
        assert result.stdout == ""
    found = io.load(out / "model.probgap").classes_.tolist()
    assert found == (classes or ["fraud", "not fraud"])


@pytest.mark.usefixtures("here")
def test_what_fit_warns_of_is_said_and_kept(folder, fit):
    coin = np.random.default_rng(1)
    rewrite(
        folder,
        lambda frame: frame.assign(
            flagged=np.where(coin.random(len(frame)) < 0.3, "yes", None)
        ),
    )
    result, out = fit()
    account = json.loads((out / "run.json").read_text())
    said = [warning["what"] for warning in account["warnings"]]
    # Fit and report find it, and it is said once.
    random = "Labels look random"
    assert sum(random in sentence for sentence in said) == 1
    assert f"! {random}" in result.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("data", "--label", "flag", "--engine", "dask"), "Did you mean 'flagged'"),
        (("*.csv", "--label", "x", "--engine", "dask"), "has no CSV or Parquet"),
        (("data", "--label", "flagged", "--positive", "ja", "--engine", "dask"), "ja"),
        (("data", "--label", "flagged", "--scheduler", "x"), "requires --engine dask"),
        (("data", "--label", "a", "--engine", "dask"), "say which one marks"),
        (("text", "--label", "a", "--engine", "dask"), "holds '1' in every row"),
    ],
)
@pytest.mark.usefixtures("here")
def test_requests_that_cannot_be_met_are_refused_in_a_sentence(
    folder, probgap, monkeypatch, words, sentence
):
    monkeypatch.chdir(folder.parent)
    (folder.parent / "text").mkdir()
    (folder.parent / "text" / "part.parquet").write_text("a,b\n1,2\n")
    result = probgap("fit", *words, "--out", "results", "--quiet")
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (folder.parent / "results").exists()


def test_a_scheduler_that_is_not_there_is_named(fit, monkeypatch):
    def refuse(address):
        msg = f"Timed out trying to connect to {address}"
        raise OSError(msg)

    monkeypatch.setattr("distributed.Client", refuse)
    result, out = fit("--scheduler", "tcp://nowhere:1")
    assert result.exit_code == 1
    assert "--scheduler must be the address" in result.stderr
    assert "tcp://nowhere:1" in result.stderr
    assert not out.exists()


@pytest.mark.usefixtures("here")
def test_a_bad_value_is_named_by_its_row_in_all_files(folder, fit):
    path = folder / "part-1.parquet"
    frame = pd.read_parquet(path)
    frame.loc[100:110, "a"] = np.inf
    frame.to_parquet(path, index=False)
    result, out = fit("--quiet")
    assert result.exit_code == 1
    assert not out.exists()
    assert "'inf' in row 301, which is not a finite number" in result.stderr


def rows_of(folder, pattern, **options):
    how = {"drop": ["case"], "id": None, "category": (), "keep": ()}
    return draw_table(f"{folder}/{pattern}", "flagged", **how, **options)


@pytest.mark.parametrize("room", [64e6, 8 * 8 * 400])
def test_csv_and_parquet_give_the_same_rows_however_they_are_cut(folder, room):
    whole = pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*"))])
    whole.to_csv(folder / "all.csv", index=False)
    whole.iloc[:350].to_csv(folder / "half-1.csv", index=False)
    whole.iloc[350:].to_csv(folder / "half-2.csv", index=False)
    patterns = ("part*.parquet", "all.csv", "half*.csv")
    drawn = [rows_of(folder, pattern, max_memory=room) for pattern in patterns]
    one = drawn[0]
    labelled = whole["flagged"].notna().to_numpy()
    for other in drawn[1:]:
        assert_array_equal(other.frame.index, one.frame.index)
        assert_array_equal(other.frame["case"], one.frame["case"])
    assert_array_equal(whole["case"].iloc[one.frame.index], one.frame["case"])
    assert set(np.flatnonzero(labelled)) <= set(one.frame.index)
    if room > 1e6:
        assert (len(one.frame), one.weight, one.notes) == (600, None, ())
    else:
        assert len(one.frame) < 600
        assert one.weight.sum() == pytest.approx(600)
        assert "of 600 rows were drawn" in one.notes[0]


@pytest.mark.usefixtures("here")
def test_all_rows_drawn_are_fitted_as_in_memory(folder, fit, probgap):
    result, out = fit("--id", "case", "--quiet")
    assert result.exit_code == 0, result.stderr
    words = ("--label", "flagged", "--id", "case", "--fast", "--quiet")
    probgap("fit", folder, *words, "--out", folder.parent / "whole")
    by_dask, whole = (
        json.loads((place / "run.json").read_text())
        for place in (out, folder.parent / "whole")
    )
    assert by_dask["found"] == whole["found"]
    assert by_dask["ranked"] == whole["ranked"]
