"""Rows on disk: whole or not at all, whatever happens to the writer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probgap.exceptions import InvalidInputError
from research.paper.rows import RowFile, latest_rows, read_rows, write_rows

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


def test_compressed_rows_are_the_same_rows_and_the_same_bytes_each_time(tmp_path):
    one, two = tmp_path / "one.jsonl.gz", tmp_path / "two.jsonl.gz"
    write_rows(one, ROWS)
    write_rows(two, ROWS)
    assert read_rows(one) == ROWS
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("fresh", [False, True])
def test_a_second_writer_is_refused_and_takes_nothing_away(tmp_path, fresh):
    pytest.importorskip("fcntl")
    path = tmp_path / "rows.jsonl"
    with RowFile(path) as file:
        file.append(ROWS[0])
        with pytest.raises(InvalidInputError, match="one writer at a time"):
            RowFile(path, fresh=fresh)
        file.append(ROWS[1])
    assert read_rows(path) == ROWS
    with RowFile(path, fresh=True) as file:
        assert file.rows == []


def test_the_last_row_of_a_job_counts():
    first, second = {"key": "a", "n": 1}, {"key": "a", "n": 2}
    assert latest_rows([first, {"key": "b"}, second]) == [second, {"key": "b"}]


def test_a_failure_gives_way_to_a_success_and_not_the_other_way_round():
    good, bad = {"key": "a", "status": "ok"}, {"key": "a", "status": "error"}
    assert latest_rows([bad, good]) == latest_rows([good, bad]) == [good]
