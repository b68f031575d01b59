"""Benchmarks can be imported, and what they have in common measures nothing twice."""

import json
import re
import runpy
import shlex
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
if not FOLDER.exists():
    pytest.skip("the benchmarks are not beside the tests", allow_module_level=True)
sys.path.append(str(FOLDER))

import harness


@cache
def load(path):
    try:
        return runpy.run_path(str(path), run_name="imported")
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")


@pytest.mark.parametrize("path", FOLDER.rglob("*.py"), ids=lambda path: path.name)
def test_a_script_can_be_imported(path):
    assert load(path)


def quoted_commands():
    """Return the commands that pages and docstrings quote, with all their options."""
    inline = r"`(?:[^`\n]*?python3? )?(benchmarks/[\w/]+\.py[^`]*)`"
    line = r"^[ \w=./]*?python3? (benchmarks/[\w/]+\.py[^`\n]*)$"
    pages = {*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *FOLDER.rglob("*.md")}
    pages -= {ROOT / "CHANGELOG.md"}
    found = set()
    for path in {*pages, *ROOT.glob("src/**/*.py"), *FOLDER.rglob("*.py")}:
        text = path.read_text("utf-8").replace("\\\n", " ")
        found |= {*re.findall(inline, text), *re.findall(line, text, re.MULTILINE)}
    return sorted({tuple(shlex.split(command, comments=True)) for command in found})


@pytest.mark.parametrize("words", quoted_commands(), ids=" ".join)
def test_a_quoted_command_can_be_run(words, monkeypatch):
    class Parsed(Exception):
        pass

    def parse(parser):
        parser.parse_args(words[1:])
        raise Parsed

    monkeypatch.setattr(harness, "parse", parse)
    with pytest.raises(Parsed):
        load(ROOT / words[0])["main"]()


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
