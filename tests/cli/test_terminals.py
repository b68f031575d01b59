"""The commands where people run them: pipes, other locales, narrow windows, completion."""

import json
import os
import subprocess
import sys

import pytest

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


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


def test_data_are_whole_whatever_the_locale(fitted, cases, probgap, tmp_path):
    path = tmp_path / "new.csv"
    cases.head(30).assign(case="Zoë").to_csv(path, index=False)
    result = probgap("predict", fitted.out, path, charset="ascii")
    assert result.exit_code == 0, result.stderr
    assert result.stdout_bytes.decode("utf-8").count("Zoë") == 30


@pytest.fixture
def complete(probgap):
    """Ask for what may follow the words, as bash does."""

    def ask(words):
        asked = {
            "_PROBGAP_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        return probgap(prog_name="probgap", env=asked).stdout.split()

    return ask


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("fit {table} --label st", ["strength"]),
        ("fit {table} --seed 1 --label st", ["strength"]),
        ("predict model.probgap {table} --id ca", ["case"]),
        ("fit t.tsv --label ag", ["age", "agent"]),
        ("fit semicolons.csv --label ag", ["age", "agent"]),
        ("fit --label st", []),
        ("fit - --label a", []),
        ("fit nowhere.csv --label a", []),
        ("fit t.gz --label a", []),
    ],
)
def test_columns_are_completed_from_the_head_of_a_table(
    words, offered, table, complete, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.tsv").write_text('age\t"agent"\tcity\n1\t2\t3\n')
    (tmp_path / "semicolons.csv").write_text('age;"agent";city\n1;2;3\n')
    (tmp_path / "t.gz").write_bytes(b"\x1f\x8b\xff\xfe\x00")
    assert complete("probgap " + words.format(table=table)) == offered


@pytest.mark.parametrize("charset", ["utf-8", "ascii"])
def test_json_is_ascii_where_nothing_else_can_be_printed(place, probgap, charset):
    run = place / "run" / "run.json"
    run.write_text(run.read_text().replace('"size"', '"größe"'))
    result = probgap("explain", "run", "--json", charset=charset)
    assert result.exit_code == 0, result.stderr
    assert ("größe" in result.stdout) == (charset == "utf-8")
    columns = json.loads(result.stdout)["columns"]
    assert "größe" in {column["column"] for column in columns}


def test_progress_on_a_terminal_is_a_bar(on_terminal, fitted, table, tmp_path):
    shown = on_terminal("predict", fitted.out, table, "--out", tmp_path / "s.csv")
    assert "Scoring" in shown
    assert "━━━" in shown


@pytest.mark.parametrize(
    "command", ["explain", pytest.param("predict", marks=pytest.mark.slow)]
)
def test_a_stopped_reader_is_no_error(fitted, table, command):
    words = {"explain": ["--json"], "predict": [str(table), "-q"]}[command]
    writer = subprocess.Popen(
        [sys.executable, "-m", "probgap", command, str(fitted.out), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    writer.stdout.close()
    assert b"Traceback" not in writer.stderr.read()
    writer.stderr.close()
    writer.wait()


INTERRUPTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["probgap", "explain", "nowhere", "--row", "1"]
from probgap.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "probgap.cli.fit"])
def test_an_interrupt_while_modules_load_is_one_line(module):
    script = INTERRUPTED.format(module=module)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "Stopped. Nothing was written.\n"
