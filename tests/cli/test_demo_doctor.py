"""probgap demo and doctor."""

import json
from importlib import metadata

import pytest

from probgap.cli import doctor as module

pytest.importorskip("pandas")


def test_the_demo_finds_what_was_hidden(probgap, tmp_path):
    out = tmp_path / "demo"
    result = probgap("demo", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert {path.name for path in out.iterdir()} == {"tumours.csv", "results"}
    last = result.stdout.strip().splitlines()[-2:]
    naive, ours = (int(line.split(" of ")[0].split()[-1]) for line in last)
    assert ours > naive
    assert "report.html" in result.stdout
    assert probgap("demo", "--out", out).exit_code == 1


def test_the_doctor_says_what_is_missing_and_how_to_get_it(probgap, monkeypatch):
    real = metadata.version

    def version(name):
        if name == "pyarrow":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(module, "version", version)
    result = probgap("doctor")
    assert result.exit_code == 0, result.stdout
    assert "Self-test passed: accuracy" in result.stdout
    assert "pip install 'probgap[tool]'" in result.stdout
    assert "pip install '.[tool]' in a clone" in result.stdout
    assert "probgap label" in result.stdout


def test_the_doctor_reports_a_failure_and_ends_with_one(probgap, monkeypatch):
    def broken(*_, **__):
        msg = "no"
        raise ZeroDivisionError(msg)

    monkeypatch.setattr("probgap.datasets.make_square", broken)
    result = probgap("doctor", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["passed"], found["self_test"]) == (False, "ZeroDivisionError: no")
