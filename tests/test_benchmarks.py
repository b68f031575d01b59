"""Benchmarks can be imported, and what they have in common measures nothing twice."""

import json
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
if not FOLDER.exists():
    pytest.skip("the benchmarks are not beside the tests", allow_module_level=True)
sys.path.append(str(FOLDER))

import harness


@pytest.mark.parametrize("name", [p.name for p in FOLDER.rglob("*.py")])
def test_a_script_can_be_imported(name):
    try:
        assert runpy.run_path(str(next(FOLDER.rglob(name))), run_name="imported")
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")


def test_a_run_goes_on_where_it_stopped(tmp_path):
    def measure(cell, methods):
        return [{"method": name, "value": cell["seed"] + 0.5} for name in methods]

    cells = [{"data": "toy", "seed": seed} for seed in (0, 1)]
    options = harness.parser("", out="toy").parse_args([])
    options.out = tmp_path / "rows.jsonl"
    harness.run_cells(cells[:1], measure, options, ["ours"])
    with pytest.raises(SystemExit, match="exists"):
        harness.run_cells(cells, measure, options, ["ours"])
    options.resume = True
    rows = harness.run_cells(cells, measure, options, ["ours", "theirs"])
    lines = [json.loads(line) for line in options.out.read_text().splitlines()]
    assert [line["method"] for line in lines] == ["ours", "theirs", "ours", "theirs"]
    assert len(rows) == 4
    assert set(lines[0]) == {"data", "seed", "method", "value", *harness.about()}
    table = harness.summarise(rows, "method", mean="value")
    assert harness.markdown(table, 1).splitlines()[2] == "| ours | 1.0 |"
