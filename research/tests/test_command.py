"""The command as a person uses it: killed, interrupted, resumed, told nonsense."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from research.paper import __main__ as command
from research.paper.rows import RowFile, read_rows

ROOT = Path(__file__).parents[2]
N_JOBS = 20
PASSING = ("seconds", "finished", "machine", "command")


def lasting(path):
    rows = [
        {k: v for k, v in row.items() if k not in PASSING} for row in read_rows(path)
    ]
    return sorted(rows, key=lambda row: row["key"])


def arguments(spec, out, *more):
    return ["--quick", "--spec", str(spec), "--out", str(out), *more]


def start(*words):
    # A session of its own, so that an interrupt reaches the workers as from a terminal.
    return subprocess.Popen(
        [sys.executable, "-m", "research.paper", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    )


def wait_for_rows(process, path, n):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.is_file() and path.read_bytes().count(b"\n") >= n:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    pytest.fail("the run made no rows in two minutes")


def refused(*words):
    """Run the command in this process; return what it ends with."""
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    return str(ended.value)


@pytest.fixture(scope="module")
def small_table(small_table):
    """A table of one data set: what is asked here takes no more."""
    return small_table.replace('["triangles", "square"]', '["triangles"]')


@pytest.fixture
def no_report(monkeypatch):
    """Draw no report, which takes longer than the rows, where a test is about rows."""
    files = SimpleNamespace(html="report.html", markdown="report.md")
    monkeypatch.setattr(command, "build_report", lambda *_, **__: files)


@pytest.fixture(scope="module")
def finished(small_table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.toml").write_text(small_table)
    command.main(arguments(folder / "small.toml", folder / "out", "--jobs", "1"))
    return folder / "out"


def test_a_run_leaves_rows_and_a_report(finished):
    rows = read_rows(finished / "rows.jsonl")
    assert len({row["key"] for row in rows}) == len(rows) == N_JOBS
    assert "<h1" in (finished / "report.html").read_text("utf-8")
    assert (finished / "report.md").read_text("utf-8").startswith("#")


def test_a_killed_run_goes_on_without_redoing_what_is_done(
    small_spec, tmp_path, finished, capsys
):
    path = tmp_path / "out" / "rows.jsonl"
    words = arguments(small_spec, path.parent, "--jobs", "1")
    process = start(*words)
    wait_for_rows(process, path, 5)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = path.read_bytes()
    assert before.count(b"\n") < N_JOBS
    # As if the last line had been cut off in the middle.
    torn = before[: before.rindex(b"\n", 0, -1) + 40]
    path.write_bytes(torn)
    whole = torn[: torn.rindex(b"\n") + 1]
    command.main([*words, "--resume"])
    out, err = capsys.readouterr()
    assert "report.html" in out
    assert err == ""
    assert path.read_bytes().startswith(whole)
    assert lasting(path) == lasting(finished / "rows.jsonl")


def test_an_interrupt_leaves_a_clean_file_and_says_how_to_go_on(
    small_spec, tmp_path, finished
):
    path = tmp_path / "out" / "rows.jsonl"
    process = start(*arguments(small_spec, path.parent, "--jobs", "2"))
    wait_for_rows(process, path, 5)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert f"of {N_JOBS} rows. Continue with:\n  python -m research.paper" in err
    assert err.rstrip().endswith("--resume")
    lines = path.read_bytes().splitlines(keepends=True)
    assert 5 <= len(lines) < N_JOBS
    assert all(line.endswith(b"\n") and json.loads(line) for line in lines)
    rows = lasting(finished / "rows.jsonl")  # of one process
    assert all(row in rows for row in lasting(path))
    assert out == ""


@pytest.mark.usefixtures("no_report")
def test_a_second_run_is_refused_unless_told_what_to_do(small_spec, finished):
    before = (finished / "rows.jsonl").read_bytes()
    words = arguments(small_spec, finished)
    assert "rows.jsonl has rows of an earlier run" in refused(*words)
    command.main([*words, "--resume"])
    assert (finished / "rows.jsonl").read_bytes() == before


@pytest.mark.usefixtures("no_report")
def test_force_starts_anew(small_spec, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"key": "old"}\n')
    words = arguments(small_spec, tmp_path, "--force", "--rows", "1", "--jobs", "1")
    command.main(words)
    assert len(read_rows(tmp_path / "rows.jsonl")) == 10


def test_a_report_can_be_built_from_rows_alone(finished, tmp_path):
    command.main(["--report", f"{finished}/rows.jsonl", "--out", f"{tmp_path}"])
    assert not (tmp_path / "rows.jsonl").exists()
    assert (tmp_path / "report.html").is_file()


@pytest.mark.usefixtures("no_report")
def test_a_run_with_other_settings_between_two_resumes_costs_nothing(
    small_spec, tmp_path
):
    words = arguments(
        small_spec, tmp_path, "--rows", "1", "--splits", "1", "--jobs", "1"
    )
    command.main(words)
    good = small_spec.read_text()
    small_spec.write_text(good.replace("C = 1.0", "C = 2.0"))
    command.main([*words, "--resume"])
    small_spec.write_text(good)
    command.main([*words, "--resume"])
    assert len(read_rows(tmp_path / "rows.jsonl")) == 10


def test_force_does_not_take_the_rows_of_a_run_that_goes_on(small_spec, tmp_path):
    with RowFile(tmp_path / "rows.jsonl") as file:
        assert "one writer at a time" in refused(
            *arguments(small_spec, tmp_path, "--force")
        )
        file.append({"key": "mine"})
    assert [row["key"] for row in read_rows(tmp_path / "rows.jsonl")] == ["mine"]


def test_a_worker_that_dies_is_said_with_the_way_to_go_on(
    small_spec, tmp_path, monkeypatch, capsys
):
    def die(*_, **__):
        raise TerminatedWorkerError

    monkeypatch.setattr(command, "run", die)
    assert refused(*arguments(small_spec, tmp_path / "out")) == "1"
    err = capsys.readouterr().err
    assert "A worker died" in err
    assert "--resume" in err


def test_a_plan_lists_jobs_and_runs_none(small_spec, tmp_path, capsys):
    command.main(arguments(small_spec, tmp_path / "out", "--plan"))
    assert len(capsys.readouterr().out.splitlines()) == N_JOBS
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_report")
def test_failed_jobs_are_counted_and_tried_again(small_spec, tmp_path):
    good = small_spec.read_text()
    small_spec.write_text(good.replace("n_smallest = 3", "n_smallest = -3"))
    words = arguments(small_spec, tmp_path, "--rows", "1", "--jobs", "1")
    assert "2 of 10 jobs failed" in refused(*words)
    small_spec.write_text(good)
    command.main([*words, "--resume"])
    assert len(read_rows(tmp_path / "rows.jsonl")) == 12


def test_missing_data_is_said_before_anything_is_run(tmp_path, monkeypatch):
    for variable in ("PROBGAP_DATA", "PROBGAP_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.delenv("PROBGAP_DATA_URL", raising=False)
    words = ["--table", "7", "--out", str(tmp_path / "out")]
    assert "banana.npz was not found in" in refused(*words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--table", "9"], "a table must be one of"),
        (["--report", "none.jsonl"], "No such file"),
        (["--rows", "99"], "rows must name some rows"),
        (["--spec", "none.toml"], "none.toml must be a TOML file"),
        (["--resume", "--force"], "2"),
        (["--rows", "1-"], "2"),
        (["--jobs", "0"], "2"),
        (["--speed"], "2"),
    ],
)
def test_nonsense_is_answered_in_a_sentence(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused(*words)
    assert list(tmp_path.iterdir()) == []
