"""The map of the code names what there is, and its picture shows every room."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
if not PAGE.is_file():
    pytest.skip("the documentation is not beside the tests", allow_module_level=True)
pytest.importorskip("grimp", reason="import-linter is not installed")
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from architecture import (
    describe,
    draw,
    leave_out_implied,
    order,
    read_imports,
    read_rows,
    route,
)

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
            if name != "reading_":  # an attribute of what is fitted elsewhere
                assert re.search(rf"\b{name}\b", text), f"{name} is not in {path}"


def test_the_contract_has_every_room():
    folder = ROOT / "src" / "probgap"
    files = {path.stem for path in folder.glob("*.py")}
    rooms = files | {path.parent.name for path in folder.glob("*/__init__.py")}
    known = {room for row in read_rows() for room in row}
    # Names alone, without code: they stand in no row.
    assert rooms - known == {"__init__", "__main__", "exceptions"}
    assert known <= rooms


def test_imports_are_those_of_the_code():
    rooms = [room for row in read_rows() for room in row]
    imports = read_imports(rooms)
    assert ("pgpu", "reading") in imports
    assert not any(a == "_core" for a, _ in imports)


def test_an_arrow_is_left_out_only_where_others_lead_the_same_way():
    edges = {("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}
    assert leave_out_implied(edges) == {("a", "b"), ("b", "c"), ("a", "d")}


def test_rows_are_ordered_so_that_arrows_need_not_cross():
    rows, stations = route(
        [["a", "b"], ["m", "n"], ["x", "y"]], {("a", "y"), ("b", "x"), ("b", "m")}
    )
    ordered = order(rows, stations, set())
    assert [sorted(map(str, row)) for row in ordered] == [
        sorted(map(str, row)) for row in rows
    ]
    passing = [item for item in ordered[1] if not isinstance(item, str)]
    ends = [(ordered[0].index(a), ordered[2].index(b)) for (a, b), _ in passing]
    assert ends == sorted(ends)
    assert sorted(b for _, b in ends) == [b for _, b in ends]


def test_picture_and_table_have_every_room(tmp_path):
    draw(tmp_path / "rooms.svg")
    picture, table = (tmp_path / "rooms.svg").read_text("utf-8"), describe()
    for room in (room for row in read_rows() for room in row):
        assert f"<!-- {room} " in picture  # as matplotlib notes the text that it draws
        assert re.search(rf"^\| `{room}` \| \w.+ \|$", table, re.MULTILINE)
