"""The parts that the commands share: files, errors, progress, columns, scores."""

import os
import signal
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer

from probgap._core.errors import BoundaryWarning, UnreliableFitWarning
from probgap._core.output import whole_file
from probgap.cli._account import cell_text
from probgap.cli._analysis import add_heard, caught_warnings, heard_warnings
from probgap.cli._completion import complete_column
from probgap.cli._errors import plain_errors
from probgap.cli._options import split_columns
from probgap.cli._output import check_file, check_folder, write_folder
from probgap.cli._progress import Progress
from probgap.cli._scores import decide, label_values, rank_hidden
from probgap.diagnostics.account import Caution
from probgap.exceptions import InvalidInputError

OURS = frozenset({"a.txt", "b.txt"})


def writers(**texts):
    return {
        f"{name}.txt": lambda path, text=text: path.write_text(text)
        for name, text in texts.items()
    }


def test_a_folder_appears_with_all_its_files(tmp_path):
    write_folder(tmp_path / "deep" / "out", writers(a="1", b="2"))
    assert {p.name for p in (tmp_path / "deep" / "out").iterdir()} == OURS
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["out"]


def test_a_folder_that_fails_half_way_leaves_nothing(tmp_path):
    def fail(path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_folder(tmp_path / "out", writers(a="1") | {"b.txt": fail})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails", [False, True])
def test_earlier_results_are_replaced_whole_or_kept_whole(tmp_path, fails):
    write_folder(tmp_path / "out", writers(a="old", b="old"))

    def write(path):
        if fails:
            raise KeyboardInterrupt
        path.write_text("new")

    if fails:
        with pytest.raises(KeyboardInterrupt):
            write_folder(tmp_path / "out", {"a.txt": write})
    else:
        write_folder(tmp_path / "out", {"a.txt": write})
    found = {p.name: p.read_text() for p in (tmp_path / "out").iterdir()}
    assert found == ({"a.txt": "old", "b.txt": "old"} if fails else {"a.txt": "new"})
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_the_old_folder_returns_if_the_new_one_cannot_take_its_place(
    tmp_path, monkeypatch
):
    write_folder(tmp_path / "out", writers(a="old"))
    rename = Path.rename

    def refuse(self, target):
        if Path(target) == tmp_path / "out" and self.name != "out":
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="Permission"):
        write_folder(tmp_path / "out", writers(a="new"))
    assert (tmp_path / "out" / "a.txt").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_folder_is_checked_before_the_work(tmp_path):
    check_folder(tmp_path / "new", OURS, force=False)
    folder = tmp_path / "out"
    folder.mkdir()
    check_folder(folder, OURS, force=False)
    (folder / "a.txt").touch()
    check_folder(folder, OURS, force=True)
    with pytest.raises(InvalidInputError, match=r"Got .*out, which holds a\.txt"):
        check_folder(folder, OURS, force=False)
    for name in ("thesis.tex", "x", "y", "z"):
        (folder / name).touch()
    # --force must not become a way to lose what was not ours.
    with pytest.raises(InvalidInputError, match=r"thesis\.tex, x, y and 1 more"):
        check_folder(folder, OURS, force=True)
    with pytest.raises(InvalidInputError, match="Got the file"):
        check_folder(folder / "a.txt", OURS, force=True)


def test_a_read_only_place_is_refused_before_the_work(tmp_path, monkeypatch):
    # The superuser may write anywhere: ask as somebody else would.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInputError, match=r"can be written to\. Got"):
        check_folder(tmp_path / "a" / "b", OURS, force=False)


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "scores.csv"

    def stop_half_way():
        with whole_file(path) as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_half_way()
    assert list(tmp_path.iterdir()) == []
    with whole_file(path, binary=True) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"
    path.chmod(0o600)
    with whole_file(path) as file:
        file.write("again")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InvalidInputError, match="--force"):
        check_file(path, force=False)
    check_file(path, force=True)
    with pytest.raises(InvalidInputError, match="Got the folder"):
        check_file(tmp_path, force=True)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InvalidInputError("x must be y. Got z."), 1, "Error: x must be y. Got z.\n"),
        (FileNotFoundError(2, "No such file", "t.csv"), 1, "t.csv must be usable"),
        (OSError(28, "No space left on device"), 1, "Got: No space left"),
        (OSError("odd"), 1, "Error: odd"),
        (MemoryError(), 1, "must fit into memory"),
        (ZeroDivisionError("no"), 1, "Got ZeroDivisionError: no"),
        (KeyboardInterrupt(), 130, "Stopped. Nothing was written."),
    ],
)
def test_what_ends_a_command_is_one_sentence(error, code, said, capsys):
    with pytest.raises(typer.Exit) as end, plain_errors(debug=False):
        raise error
    assert end.value.exit_code == code
    found = capsys.readouterr()
    assert said in found.err
    assert found.err.count("\n") == 1
    assert found.out == ""


@pytest.mark.parametrize(
    "error", [InvalidInputError("x"), OSError("x"), MemoryError(), ValueError("x")]
)
def test_debug_lets_the_error_through(error):
    with pytest.raises(type(error)), plain_errors(debug=True):
        raise error


def test_a_request_to_end_unwinds():
    before = signal.getsignal(signal.SIGTERM)
    unwound = []

    def work():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            unwound.append(True)

    with pytest.raises(SystemExit) as end, plain_errors(debug=False):
        work()
    assert end.value.code == 143
    assert unwound == [True]
    assert signal.getsignal(signal.SIGTERM) is before


def test_commands_run_outside_the_main_thread():
    ran = []

    def work():
        with plain_errors(debug=False):
            ran.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ran == [True]


def test_progress_says_each_step_once_where_there_is_no_terminal(capsys):
    with Progress({"Reading": 1.0, "Fitting": 2.0}, shown=True) as progress:
        progress.begin("Reading")
        progress.advance(1, 2)
        progress.begin("Fitting")
    assert capsys.readouterr().err == "Reading ...\nFitting ...\n"
    assert list(progress.seconds) == ["Reading", "Fitting"]


def test_progress_is_silent_when_asked(capsys):
    with Progress({"Reading": 1.0}, shown=False) as progress:
        progress.begin("Reading")
    assert capsys.readouterr() == ("", "")


def test_progress_on_a_terminal_is_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Progress({"Reading": 1.0, "Fitting": 3.0}, shown=True) as progress:
        progress.begin("Reading")
        progress.begin("Fitting")
        progress.advance(0, 0)
        progress.advance(1, 2, "fold 1")
        task = progress._bar.tasks[0]
        assert task.completed == pytest.approx(1.0 + 1.5)
        assert task.description == "Fitting: fold 1"
    assert task.completed == task.total


def test_column_names_may_hold_commas():
    known = ["a", "b", "c, d"]
    assert split_columns(["a,b", "c, d", " x , "], known) == ["a", "b", "c, d", "x"]
    assert split_columns(None, known) == []


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_columns_are_completed_from_the_head_of_the_table(tmp_path, separator):
    path = tmp_path / "t.csv"
    path.write_text(separator.join(["age", '"agent"', "city"]) + "\n1,2,3\n")
    context = SimpleNamespace(params={"table": str(path)})
    assert complete_column(context, "ag") == ["age", "agent"]


@pytest.mark.parametrize("source", ["-", "nowhere.csv"])
def test_nothing_is_completed_without_a_table(source):
    assert complete_column(SimpleNamespace(params={"table": source}), "a") == []


def test_nothing_is_completed_from_a_binary_file(tmp_path):
    (tmp_path / "t.gz").write_bytes(b"\x1f\x8b\xff\xfe\x00")
    context = SimpleNamespace(params={"table": str(tmp_path / "t.gz")})
    assert complete_column(context, "a") == []


@pytest.mark.parametrize(
    ("positive", "values"),
    [
        ("1", (0, 1)),
        ("1.0", (0, 1)),
        ("True", (False, True)),
        ("false", (True, False)),
        ("yes", ("no", "yes")),
        ("Yes", ("No", "Yes")),
        ("Y", ("N", "Y")),
        ("fraud", ("not fraud", "fraud")),
        ("2", ("not 2", "2")),
    ],
)
def test_predictions_read_like_the_label_column(positive, values):
    found = label_values(positive)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_the_gap_decides_outside_the_zone():
    gap = np.array([-0.9, -0.5, -0.2, 0.0, 0.3, -0.9])
    labelled = np.array([False, False, False, False, False, True])
    decided = decide(gap, -0.5, labelled)
    assert list(decided) == ["negative"] * 2 + ["undecided"] * 2 + ["positive"] * 2
    assert list(decide(np.array([0.1, 0.3]), 0.2)) == ["negative", "positive"]


def test_ranks_go_by_probability_then_gap_then_row():
    probability = np.array([0.5, 0.9, 0.5, 0.9, 0.5])
    gap = np.array([0.1, 0.0, 0.2, 0.0, 0.2])
    labelled = np.array([False, False, False, True, False])
    assert list(rank_hidden(probability, gap, labelled)) == [1, 2, 4, 0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (86.71299999952316, "86.713"),
        ("86.71299999952316", "86.713"),
        ("86.713", "86.713"),
        ("00012345678", "00012345678"),
        (None, ""),
        (float("nan"), ""),
        ("x" * 300, "x" * 200 + "…"),
    ],
)
def test_a_cell_is_shown_short(value, shown):
    assert cell_text(value) == shown


def test_what_fit_warned_of_is_added_unless_the_account_says_it_already():
    said = (
        Caution("strong", "Not stable.", "Label.", "unstable"),
        Caution("mild", "The boundary was moved.", "Take care."),
    )
    heard = [
        UnreliableFitWarning("The boundary is unstable.", "unstable"),
        UnreliableFitWarning(
            "Labels look like all the others. Check them.", "indistinct"
        ),
        BoundaryWarning("The boundary was moved."),
        BoundaryWarning("Something else."),
    ]
    assert [(w.level, w.what, w.do) for w in add_heard(said, heard)] == [
        ("strong", "Not stable.", "Label."),
        ("strong", "Labels look like all the others.", "Check them."),
        ("mild", "The boundary was moved.", "Take care."),
        ("mild", "Something else.", ""),
    ]


def test_warnings_of_ours_are_heard_once_each_and_no_others():
    with heard_warnings() as sentences, caught_warnings() as inner:
        for _ in range(2):
            warnings.warn("ours", BoundaryWarning, stacklevel=1)
        warnings.warn("theirs", UserWarning, stacklevel=1)
    assert [str(w) for w in inner] == ["ours"]
    assert sentences == []  # the inner one heard them
    with heard_warnings() as sentences:
        warnings.warn("ours", BoundaryWarning, stacklevel=1)
    assert sentences == ["ours"]
