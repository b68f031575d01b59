"""probgap demo and doctor."""

import json

import pytest

from probgap.cli import doctor as module

pytest.importorskip("skops")
pytest.importorskip("pandas")


@pytest.mark.usefixtures("quick")
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


def test_the_doctor_finds_all_well(probgap):
    result = probgap("doctor")
    assert result.exit_code == 0, result.stdout
    assert "FAILED" not in result.stdout
    found = json.loads(probgap("doctor", "--json").stdout)
    assert found["passed"]
    assert {check["passed"] for check in found["self_test"]} == {True}


def test_the_doctor_says_what_is_missing_and_how_to_get_it(probgap, monkeypatch):
    real = module._version
    monkeypatch.setattr(
        module, "_version", lambda name: None if name == "pyarrow" else real(name)
    )
    assert "pip install 'probgap[tool]'" in probgap("doctor").stdout


def test_the_doctor_reports_a_failure_and_ends_with_one(probgap, monkeypatch):
    def broken():
        msg = "no"
        raise ZeroDivisionError(msg)

    monkeypatch.setattr(module, "_try_fit", broken)
    result = probgap("doctor")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout
    assert "ZeroDivisionError" in result.stdout
