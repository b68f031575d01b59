"""The map of the code names what there is, and every module."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
if not PAGE.is_file():
    pytest.skip("the documentation is not beside the tests", allow_module_level=True)
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from layers import describe, read_layers

PATH = re.compile(r"`([\w.]+/[\w./]*|\w+\.(?:md|toml|txt|py))`")
QUESTION = re.compile(r"^\| [^|]*\? \| `([^`]+)` \| (.*) \|$", re.MULTILINE)


def test_every_path_on_the_page_exists():
    paths = set(PATH.findall(PAGE.read_text("utf-8")))
    assert len(paths) > 20
    assert {path for path in paths if not (ROOT / path).exists()} == set()


def test_every_make_target_on_the_page_exists():
    targets = set(re.findall(r"`make ([\w-]+)`", PAGE.read_text("utf-8")))
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert {name for name in targets if f"\n{name}:" not in makefile} == set()


def test_an_answer_is_in_the_file_that_it_names():
    answers = QUESTION.findall(PAGE.read_text("utf-8"))
    assert len(answers) > 10
    for path, hint in answers:
        place = ROOT / path
        files = place.glob("*.py") if place.is_dir() else [place]
        text = "\n".join(file.read_text("utf-8") for file in files)
        for name in re.findall(r"`(\w+)`", hint):
            if name != "estimate_":  # an attribute of what is fitted elsewhere
                assert re.search(rf"\b{name}\b", text), f"{name} is not in {path}"


def test_the_table_has_every_module_once():
    folder = ROOT / "src" / "probgap"
    files = {path.stem for path in folder.glob("*.py")}
    modules = files | {path.parent.name for path in folder.glob("*/__init__.py")}
    layered = [name for layer in read_layers() for name in layer]
    # Names alone, without code: they stand in no layer.
    assert modules - {*layered} == {"__init__", "__main__", "exceptions"}
    rows = re.findall(r"^\| \d+ \| `(\w+)` \| \w.+ \|$", describe(), re.MULTILINE)
    assert rows == layered
