"""What all commands share: how they end, which columns they complete, how cells look."""

import os
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from probgap.exceptions import InvalidInputError
from probgap.reading import read
from probgap.reporting import cell_text, rank_hidden, score_rows
from probgap.tables import LabelColumn


@pytest.fixture
def predict(probgap, monkeypatch, tmp_path):
    """Run a command in which something happens as soon as it reads its model."""
    (tmp_path / "t.csv").write_text("a\n1\n")
    (tmp_path / "model.probgap").touch()

    def run(happen, *more):
        monkeypatch.setattr("probgap.io.load", happen)
        words = (tmp_path / "model.probgap", tmp_path / "t.csv")
        return probgap("predict", *words, *more)

    return run


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InvalidInputError("x must be y. Got z."), 1, "Error: x must be y. Got z.\n"),
        (
            FileNotFoundError(2, "No such file", "t.csv"),
            1,
            "Error: cannot use t.csv: No such file.",
        ),
        (
            OSError(5, "Input/output error"),
            1,
            "Error: cannot read or write: Input/output error.",
        ),
        (OSError("odd"), 1, "Error: odd"),
        (MemoryError(), 1, "Error: not enough memory"),
        (
            ZeroDivisionError("no"),
            1,
            "Internal error (ZeroDivisionError: no). Please report",
        ),
        (KeyboardInterrupt(), 130, "Stopped. Nothing was written."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_ends_a_command_is_one_sentence(error, code, said, predict):
    result = predict(failing(error))
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "error", [InvalidInputError("x"), OSError("x"), MemoryError(), ValueError("x")]
)
def test_debug_lets_the_error_through(error, predict):
    assert predict(failing(error), "--debug").exception is error


def test_a_request_to_end_unwinds(predict):
    before = signal.getsignal(signal.SIGTERM)
    unwound = []

    def ask(*_, **__):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            unwound.append(True)

    assert predict(ask).exit_code == 143
    assert unwound == [True]
    assert signal.getsignal(signal.SIGTERM) is before


def test_commands_run_outside_the_main_thread(predict):
    found = []
    end = failing(InvalidInputError("as in the main thread"))
    thread = threading.Thread(target=lambda: found.append(predict(end)))
    thread.start()
    thread.join()
    assert found[0].stderr == "Error: as in the main thread\n"


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
    found = LabelColumn({positive: 1}, {}, {}).values
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_the_gap_decides_outside_the_zone():
    def decide(gap, lower, labelled=None):
        classifier = SimpleNamespace(
            boundary_=SimpleNamespace(value=lower),
            positive_index_=1,
            classes_=np.array(["no", "yes"]),
            estimate_=read(np.arange(20.0), np.arange(20) > 14),
        )
        scored = score_rows(classifier, np.array(gap), np.full(len(gap), 0.3), labelled)
        return list(scored["decided"])

    labelled = np.array([False, False, False, False, False, True])
    decided = decide([-0.9, -0.5, -0.2, 0.0, 0.3, -0.9], -0.5, labelled)
    assert decided == ["negative"] * 2 + ["undecided"] * 2 + ["positive"] * 2
    assert decide([0.1, 0.3], 0.2) == ["negative", "positive"]


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
