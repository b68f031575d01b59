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
from typer.testing import CliRunner

from probgap import io
from probgap.cli import _cluster
from probgap.cli._app import app
from probgap.tables import _parquet as pieces

pytest.importorskip("skops", reason="skops is not installed")


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def folder(table, tmp_path, monkeypatch):
    X, _, s = table
    monkeypatch.setitem(pieces.list_row_groups.__kwdefaults__, "max_rows", 300)
    n = s.size
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        case=[f"C-{i}" for i in range(n)],
        colour=np.where(X[:, 3] > 0, "red", "green"),
        flagged=np.where(s == 1, "yes", None),
    )
    frame.loc[::50, "b"] = np.nan
    data = tmp_path / "data"
    data.mkdir()
    for k in range(3):
        part = frame.iloc[500 * k : 500 * (k + 1)]
        part.to_parquet(data / f"part-{k}.parquet", row_group_size=250, index=False)
    return data


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
    command = [
        sys.executable,
        "-m",
        "probgap",
        *words,
        "--jobs",
        "2",
        "--out",
        "results",
    ]
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


def fit(folder, *more):
    out = folder.parent / "results"
    words = ("--label", "flagged", "--engine", "dask", "--out", out)
    return run("fit", folder / "*.parquet", *words, *more), out


@pytest.mark.usefixtures("here")
def test_files_become_a_model_that_scores_files(folder):
    result, out = fit(folder, "--id", "case")
    assert result.exit_code == 0, result.stderr
    assert "Dashboard: http://here:8787/status" in result.stderr
    assert "1,500 rows in 3 files" in result.stdout
    names = ["label_next.csv", "model.skops", "report.html", "run.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    account = json.loads((out / "run.json").read_text())
    uses = {column["name"]: column["use"] for column in account["table"]["columns"]}
    assert uses["b"] == "number"
    assert uses["colour"] == "category"
    assert uses["case"] == "id"
    assert account["found"]["rows"] == 1500
    low, high = account["found"]["hidden_interval"]
    assert low <= account["found"]["hidden"] <= high
    assert f"{low:,.0f} to {high:,.0f}" in result.stdout
    scored = folder.parent / "scored.csv"
    result = run("predict", out, folder, "--out", scored)
    assert result.exit_code == 0, result.stderr
    scores = pd.read_csv(scored)
    assert scores["row"].tolist() == list(range(1, 1501))
    assert scores["id"].tolist() == [f"C-{i}" for i in range(1500)]
    result = run("predict", out, folder, "--out", scored.with_suffix(".parquet"))
    assert result.exit_code == 0, result.stderr
    pd.testing.assert_frame_equal(
        pd.read_parquet(scored.with_suffix(".parquet")), scores, check_dtype=False
    )
    assert io.load(out / "model.skops").classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("mark", "classes"), [(1, [0, 1]), (True, [False, True]), ("fraud", None)]
)
@pytest.mark.usefixtures("here")
def test_labels_are_predicted_as_they_are_written(folder, mark, classes):
    for path in folder.iterdir():
        frame = pd.read_parquet(path)
        found = frame["flagged"].notna()
        other = None if classes is None else classes[0]
        frame["flagged"] = [mark if one else other for one in found]
        frame.to_parquet(path, row_group_size=250, index=False)
    result, out = fit(folder, "--quiet")
    assert result.exit_code == 0, result.stderr
    found = io.load(out / "model.skops").classes_.tolist()
    assert found == (classes or ["fraud", "not fraud"])


@pytest.mark.usefixtures("here")
def test_what_fit_warns_of_is_said_and_kept(folder):
    coin = np.random.default_rng(0)
    for path in folder.iterdir():
        frame = pd.read_parquet(path)
        frame["flagged"] = np.where(coin.random(len(frame)) < 0.3, "yes", None)
        frame.to_parquet(path, row_group_size=250, index=False)
    result, out = fit(folder)
    account = json.loads((out / "run.json").read_text())
    said = [warning["what"] for warning in account["warnings"]]
    assert any("look like all the others" in sentence for sentence in said)
    assert any("Two worlds" in sentence for sentence in said)
    assert "! Labelled rows look like all the others" in result.stdout


@pytest.mark.usefixtures("here")
def test_json_and_quiet_say_nothing_else(folder):
    result, out = fit(folder, "--json")
    assert json.loads(result.stdout)["run"]["engine"] == "dask"
    assert result.stderr == ""
    result, _ = fit(folder, "--quiet", "--force")
    assert result.stdout == result.stderr == ""
    assert out.is_dir()


def spoil(folder, column, value):
    path = folder / "part-1.parquet"
    frame = pd.read_parquet(path)
    if isinstance(value, str):
        frame[column] = frame[column].astype(str)
    frame.loc[300, column] = value
    frame.to_parquet(path, row_group_size=250, index=False)


@pytest.mark.parametrize("value", [np.inf, "many"])
@pytest.mark.usefixtures("here")
def test_a_bad_cell_is_named_and_nothing_is_written(folder, value, monkeypatch):
    # The sample that shows what the columns are does not have the cell.
    monkeypatch.setattr(_cluster, "_SAMPLE_ROWS", 100)
    spoil(folder, "c", value)
    result, out = fit(folder, "--quiet")
    assert result.exit_code == 1
    assert "Column 'c' must hold" in result.stderr
    assert "row 301" in result.stderr
    assert "part-1.parquet, rows 251 to 500" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not out.exists()


@pytest.mark.usefixtures("here")
def test_requests_that_cannot_be_met_are_refused_in_a_sentence(folder):
    out = folder.parent / "results"
    for words, sentence in {
        (
            "fit",
            folder,
            "--label",
            "flag",
            "--engine",
            "dask",
        ): "Did you mean 'flagged'",
        ("fit", folder.parent / "*.csv", "--label", "x", "--engine", "dask"): "none",
        (
            "fit",
            folder,
            "--label",
            "flagged",
            "--scheduler",
            "x",
        ): "requires --engine dask",
        ("fit", folder, "--label", "a", "--engine", "dask"): "say which one marks",
    }.items():
        result = run(*words, "--out", out, "--quiet")
        assert result.exit_code == 1
        assert sentence in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
        assert not out.exists()
    (folder / "part-0.parquet").write_text("a,b\n1,2\n")
    result, _ = fit(folder, "--quiet")
    assert "must be a Parquet file" in result.stderr


def test_a_scheduler_that_is_not_there_is_named(folder, monkeypatch):
    def refuse(address):
        msg = f"Timed out trying to connect to {address}"
        raise OSError(msg)

    monkeypatch.setattr("distributed.Client", refuse)
    result, out = fit(folder, "--scheduler", "tcp://nowhere:1")
    assert result.exit_code == 1
    assert "--scheduler must be the address" in result.stderr
    assert "tcp://nowhere:1" in result.stderr
    assert not out.exists()


@pytest.mark.usefixtures("here")
def test_predict_refuses_a_later_file_without_a_column_and_writes_nothing(folder):
    _, out = fit(folder, "--quiet")
    pd.DataFrame({"a": [1.0]}).to_parquet(folder / "part-9.parquet")
    scored = folder.parent / "scored.csv"
    result = run("predict", out, folder, "--out", scored, "--quiet")
    assert result.exit_code == 1
    assert "Got none named 'b'" in result.stderr
    assert not scored.exists()
    assert dask.config.get("scheduler") == "synchronous"


@pytest.mark.usefixtures("here")
def test_a_bad_value_in_the_sample_is_named_by_file_and_row(folder, monkeypatch):
    monkeypatch.setattr(_cluster, "_SAMPLE_ROWS", 700)
    path = folder / "part-1.parquet"
    frame = pd.read_parquet(path)
    frame.loc[100:110, "a"] = np.inf
    frame.to_parquet(path, row_group_size=250, index=False)
    result, out = fit(folder, "--quiet")
    assert result.exit_code == 1
    assert not out.exists()
    assert "'inf' in row 101; " in result.stderr
    assert f"({path}, rows 1 to 250)" in result.stderr


@pytest.mark.usefixtures("here")
def test_a_column_that_gives_rare_labels_away_is_noticed(folder, monkeypatch):
    monkeypatch.setattr(_cluster, "_SAMPLE_ROWS", 30)
    for path in folder.iterdir():
        frame = pd.read_parquet(path)
        frame.loc[frame["flagged"].notna() & (frame.index % 5 > 0), "flagged"] = None
        frame["outcome"] = np.where(frame["flagged"] == "yes", "closed", "open")
        frame.to_parquet(path, row_group_size=250, index=False)
    _, out = fit(folder)
    columns = json.loads((out / "run.json").read_text())["table"]["columns"]
    used = {column["name"]: column["use"] for column in columns}
    assert used["outcome"] not in ("category", "number")


@pytest.mark.usefixtures("here")
def test_files_without_rows_are_passed_over(folder):
    empty = pd.read_parquet(folder / "part-0.parquet").iloc[:0]
    empty.to_parquet(folder / "part-9.parquet", index=False)
    _, out = fit(folder)
    scored = folder.parent / "scored.csv"
    assert run("predict", out, folder, "--out", scored, "--quiet").exit_code == 0
    assert len(pd.read_csv(scored)) == 1500
