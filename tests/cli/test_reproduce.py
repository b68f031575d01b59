"""probgap reproduce as a person uses it: killed, interrupted, resumed, told nonsense."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from probgap import reproduction
from probgap.reproduction import RowFile, read_rows

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

N_JOBS = 20
PASSING = ("seconds", "finished", "machine")


def lasting(path):
    rows = [
        {k: v for k, v in row.items() if k not in PASSING} for row in read_rows(path)
    ]
    return sorted(rows, key=lambda row: row["key"])


def arguments(spec, out, *more):
    return ["reproduce", "--quick", "--spec", str(spec), "--out", str(out), *more]


def start(*words):
    # A session of its own, so that an interrupt reaches the workers as from a terminal.
    return subprocess.Popen(
        [sys.executable, "-m", "probgap", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_rows(process, path, n):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.is_file() and path.read_bytes().count(b"\n") >= n:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    pytest.fail("the run made no rows in two minutes")


@pytest.fixture(scope="module")
def small_table(small_table):
    """A table of one data set: what is asked here takes no more."""
    return small_table.replace('["triangles", "square"]', '["triangles"]')


@pytest.fixture
def no_report(monkeypatch):
    """Draw no report, which takes longer than the rows, where a test is about rows."""
    files = SimpleNamespace(html="report.html", markdown="report.md")
    monkeypatch.setattr(reproduction, "build_report", lambda *_, **__: files)


@pytest.fixture(scope="module")
def finished(small_table, probgap, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.toml").write_text(small_table)
    words = arguments(folder / "small.toml", folder / "out", "--jobs", "1")
    result = probgap(*words)
    assert result.exit_code == 0, result.output
    return folder / "out"


def test_a_run_leaves_rows_and_a_report(finished):
    rows = read_rows(finished / "rows.jsonl")
    assert len({row["key"] for row in rows}) == len(rows) == N_JOBS
    assert "<h1" in (finished / "report.html").read_text()
    assert (finished / "report.md").read_text().startswith("#")


def test_a_killed_run_goes_on_without_redoing_what_is_done(
    small_spec, tmp_path, finished, probgap
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
    result = probgap(*words, "--resume")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "report.html" in result.stdout
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
    assert f"of {N_JOBS} rows. Continue with:\n  probgap reproduce --quick" in err
    assert err.rstrip().endswith("--resume")
    lines = path.read_bytes().splitlines(keepends=True)
    assert 5 <= len(lines) < N_JOBS
    assert all(line.endswith(b"\n") and json.loads(line) for line in lines)
    rows = lasting(finished / "rows.jsonl")  # of one process
    assert all(row in rows for row in lasting(path))
    assert out == ""


def test_a_second_run_is_refused_unless_told_what_to_do(small_spec, finished, probgap):
    before = (finished / "rows.jsonl").read_bytes()
    refused = probgap(*arguments(small_spec, finished))
    assert refused.exit_code == 1
    assert "rows.jsonl has rows of an earlier run" in refused.stderr
    both = probgap(*arguments(small_spec, finished, "--resume", "--force"))
    assert (both.exit_code, both.stdout) == (1, "")
    again = probgap(*arguments(small_spec, finished, "--resume", "-q"))
    assert (again.exit_code, again.output) == (0, "")
    assert (finished / "rows.jsonl").read_bytes() == before


@pytest.mark.usefixtures("no_report")
def test_force_starts_anew(small_spec, tmp_path, probgap):
    (tmp_path / "rows.jsonl").write_text('{"key": "old"}\n')
    words = arguments(small_spec, tmp_path, "--force", "--rows", "1", "--jobs", "1")
    assert probgap(*words).exit_code == 0
    assert len(read_rows(tmp_path / "rows.jsonl")) == 10


def test_a_report_can_be_built_from_rows_alone(finished, tmp_path, probgap):
    words = [
        "reproduce",
        "--rows",
        str(finished / "rows.jsonl"),
        "--out",
        str(tmp_path),
    ]
    result = probgap(*words)
    assert result.exit_code == 0
    assert not (tmp_path / "rows.jsonl").exists()
    assert (tmp_path / "report.html").is_file()


@pytest.mark.usefixtures("no_report")
def test_a_run_with_other_settings_between_two_resumes_costs_nothing(
    small_spec, tmp_path, probgap
):
    words = arguments(small_spec, tmp_path / "out", "--rows", "1", "--jobs", "1", "-q")
    assert probgap(*words).exit_code == 0
    good = small_spec.read_text()
    small_spec.write_text(good.replace("C = 1.0", "C = 2.0"))
    assert probgap(*words, "--resume").exit_code == 0
    small_spec.write_text(good)
    assert probgap(*words, "--resume").exit_code == 0
    assert len(read_rows(tmp_path / "out" / "rows.jsonl")) == 20


def test_force_does_not_take_the_rows_of_a_run_that_goes_on(
    small_spec, tmp_path, probgap
):
    with RowFile(tmp_path / "rows.jsonl") as file:
        words = arguments(small_spec, tmp_path, "--force")
        result = probgap(*words)
        assert result.exit_code == 1
        assert "one writer at a time" in result.stderr
        file.append({"key": "mine"})
    assert [row["key"] for row in read_rows(tmp_path / "rows.jsonl")] == ["mine"]


def test_a_report_that_cannot_be_built_is_said_before_anything_is_run(
    small_spec, tmp_path, monkeypatch, probgap
):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = probgap(*arguments(small_spec, tmp_path / "out"))
    assert result.exit_code == 1
    assert "jinja2 must be installed" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_worker_that_dies_is_said_with_the_way_to_go_on(
    small_spec, tmp_path, monkeypatch, probgap
):
    def die(*_, **__):
        raise TerminatedWorkerError

    monkeypatch.setattr(reproduction, "run", die)
    result = probgap(*arguments(small_spec, tmp_path / "out"))
    assert result.exit_code == 1
    assert "A worker died" in result.stderr
    assert "--resume" in result.stderr


def test_a_plan_lists_jobs_and_runs_none(small_spec, tmp_path, probgap):
    result = probgap(*arguments(small_spec, tmp_path / "out", "--plan"))
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == N_JOBS
    assert not (tmp_path / "out").exists()


def test_failed_jobs_are_counted_and_tried_again(small_spec, tmp_path, probgap):
    good = small_spec.read_text()
    small_spec.write_text(good.replace("n_smallest = 3", "n_smallest = -3"))
    words = arguments(small_spec, tmp_path, "--rows", "1", "--jobs", "1")
    failed = probgap(*words)
    assert failed.exit_code == 1
    assert "2 of 10 jobs failed" in failed.stderr
    assert (tmp_path / "report.html").is_file()
    small_spec.write_text(good)
    assert probgap(*words, "--resume").exit_code == 0
    assert len(read_rows(tmp_path / "rows.jsonl")) == 12


def test_missing_data_is_said_before_anything_is_run(tmp_path, monkeypatch, probgap):
    for variable in ("PROBGAP_DATA", "PROBGAP_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.delenv("PROBGAP_DATA_URL", raising=False)
    words = ["reproduce", "--table", "7", "--out", str(tmp_path / "out")]
    result = probgap(*words)
    assert result.exit_code == 1
    assert "banana.npz was not found in" in result.stderr
    assert "Tables 1 to 6 need neither" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--table", "9"], 1, "a table must be one of"),
        (["--rows", "none.jsonl"], 1, "cannot use none.jsonl: "),
        (["--rows", "99"], 1, "rows must name some rows"),
        (["--spec", "none.toml"], 1, "none.toml must be a TOML file"),
        (["--jobs", "0"], 2, "--jobs"),
        (["--speed"], 2, "No such option"),
    ],
)
def test_nonsense_is_answered_in_a_sentence(
    words, code, message, tmp_path, monkeypatch, probgap
):
    monkeypatch.chdir(tmp_path)
    result = probgap("reproduce", *words)
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said(small_spec, tmp_path, probgap):
    (tmp_path / "file").write_text("")
    result = probgap(*arguments(small_spec, tmp_path / "file" / "out"))
    assert result.exit_code == 1
    assert "Error: cannot use " in result.stderr


def test_debug_shows_the_error_itself(tmp_path, probgap):
    words = ["reproduce", "--debug", "--rows", str(tmp_path / "none.jsonl")]
    assert isinstance(probgap(*words).exception, FileNotFoundError)


@pytest.mark.usefixtures("no_report")
def test_progress_is_shown_on_a_terminal_alone(
    small_spec, tmp_path, on_terminal, capsys
):
    words = arguments(small_spec, tmp_path / "out", "--rows", "1", "--jobs", "1")
    assert "10/10 jobs" in on_terminal(*words)
    assert "jobs" not in capsys.readouterr().out.replace("small", "")


def test_help_is_fast_and_names_every_option():
    before = os.times()
    out = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "probgap", "reproduce", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert os.times().children_user - before.children_user < 2.0
    for heavy in ("sklearn", "numpy", "scipy", "matplotlib"):
        assert f" {heavy}\n" not in out.stderr
    for option in ("--table", "--rows", "--quick", "--resume", "--jobs", "--out"):
        assert option in out.stdout
