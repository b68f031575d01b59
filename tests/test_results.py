"""Rows on disk: whole or not at all, whatever happens to the writer."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probgap.exceptions import InvalidInputError, ProbgapWarning
from probgap.results import RowFile, latest_rows, read_rows, write_rows

ROWS = [{"key": "a", "accuracy": 0.5}, {"key": "b", "text": "ä\nb"}]


@given(cut=st.integers(min_value=0, max_value=58))
def test_a_file_cut_at_any_byte_keeps_its_whole_lines(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    with RowFile(path) as file:
        for row in ROWS:
            file.append(row)
    content = path.read_bytes()
    cut = min(cut, len(content))
    path.write_bytes(content[:cut])
    n_whole = content[:cut].count(b"\n")
    assert read_rows(path) == ROWS[:n_whole]
    with RowFile(path) as file:
        assert file.rows == ROWS[:n_whole]
        file.append({"key": "c"})
    assert read_rows(path) == [*ROWS[:n_whole], {"key": "c"}]


def test_a_row_is_on_disk_when_append_returns(tmp_path):
    with RowFile(tmp_path / "new" / "rows.jsonl") as file:
        file.append(ROWS[0])
        assert read_rows(file.path) == ROWS[:1]


def test_numbers_that_are_not_finite_are_null(tmp_path):
    with RowFile(tmp_path / "rows.jsonl") as file:
        file.append({"key": "a", "auc": float("nan"), "list": [float("inf"), 1.0]})
    assert read_rows(tmp_path / "rows.jsonl") == [
        {"key": "a", "auc": None, "list": [None, 1.0]}
    ]


@pytest.mark.parametrize("line", ["no json", "[1, 2]", '{"key": '])
def test_a_broken_line_between_others_is_left_out_with_a_warning(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "a"}\n' + line + '\n\n{"key": "b"}\n')
    with pytest.warns(ProbgapWarning, match="Got 1 that are none"):
        assert [row["key"] for row in read_rows(path)] == ["a", "b"]


def test_compressed_rows_are_the_same_rows_and_the_same_bytes_each_time(tmp_path):
    for name in ("one.jsonl.gz", "two.jsonl.gz"):
        write_rows(tmp_path / name, ROWS)
        assert read_rows(tmp_path / name) == ROWS
    one, two = ((tmp_path / f"{n}.jsonl.gz").read_bytes() for n in ("one", "two"))
    assert one == two
    assert [json.loads(line) for line in gzip.decompress(one).splitlines()] == ROWS
    write_rows(tmp_path / "plain.jsonl", ROWS)
    assert read_rows(tmp_path / "plain.jsonl") == ROWS
    assert not list(tmp_path.glob("*.part"))


def test_a_cut_archive_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl.gz"
    write_rows(path, ROWS)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InvalidInputError, match="must be a whole gzip file"):
        read_rows(path)


def test_a_second_writer_is_refused(tmp_path):
    pytest.importorskip("fcntl")
    with (
        RowFile(tmp_path / "rows.jsonl"),
        pytest.raises(InvalidInputError, match="one writer at a time"),
    ):
        RowFile(tmp_path / "rows.jsonl")


def test_the_last_row_of_a_job_counts():
    first, second = {"key": "a", "n": 1}, {"key": "a", "n": 2}
    assert latest_rows([first, {"key": "b"}, second]) == [second, {"key": "b"}]
