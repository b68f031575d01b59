"""The commands where people run them: pipes, other locales, narrow windows, completion."""

import json
import os
import subprocess
import sys

import pytest
from rich.console import Console

from probgap.cli import _streams, _summary

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

AS_PROBGAP = "import sys; sys.argv = ['probgap']; import probgap.cli as c; c.main()"


def run(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "probgap", *map(str, words)],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_words_are_printed_whatever_the_locale(fitted):
    for words in (("fit", "--help"), ("explain", fitted.out)):
        result = run(*words, **ASCII)
        assert (result.returncode, result.stderr) == (0, b"")
        result.stdout.decode("ascii")
    assert b"####" in result.stdout


def test_data_are_whole_whatever_the_locale(fitted, cases, tmp_path):
    path = tmp_path / "new.csv"
    cases.head(30).assign(case="Zoë").to_csv(path, index=False)
    result = run("predict", fitted.out, path, **ASCII)
    assert result.returncode == 0, result.stderr
    assert result.stdout.decode("utf-8").count("Zoë") == 30


def test_json_is_ascii_where_nothing_else_can_be_printed(monkeypatch, capsys):
    _streams.print_json({"name": "Zoë"})
    assert capsys.readouterr().out == '{"name": "Zoë"}\n'
    monkeypatch.setattr(_streams, "can_print", lambda _: False)
    _streams.print_json({"name": "Zoë"})
    assert json.loads(capsys.readouterr().out) == {"name": "Zoë"}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("probgap fit {table} --label st", ["strength"]),
        ("probgap fit {table} --seed 1 --label st", ["strength"]),
        ("probgap predict model.skops {table} --id ca", ["case"]),
        ("probgap fit --label st", []),
    ],
)
def test_columns_are_completed(words, offered, table):
    words = words.format(table=table)
    asked = {
        "_PROBGAP_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    result = subprocess.run(
        [sys.executable, "-c", AS_PROBGAP],
        capture_output=True,
        check=False,
        env={**os.environ, **asked},
    )
    assert result.stdout.decode().split() == offered, result.stderr


def test_a_narrow_window_shows_numbers_whole(small, capsys, monkeypatch):
    monkeypatch.setattr(
        _summary, "Console", lambda **options: Console(width=40, **options)
    )
    _summary.show_summary(small.analysis, small.out)
    shown = capsys.readouterr().out
    for entry in small.analysis.ranked[:6]:  # as many as leave room for warnings
        assert f"{entry.probability:.3f}" in shown
        assert f"{entry.gap:.2f}" in shown


def test_a_stopped_reader_is_no_error(fitted, table):
    writer = subprocess.Popen(
        [sys.executable, "-m", "probgap", "predict", str(fitted.out), str(table), "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    writer.stdout.close()
    assert b"Traceback" not in writer.stderr.read()
    writer.stderr.close()
    writer.wait()
