"""What is written reads back, and no cell is a formula."""

import io

import numpy as np
import pandas as pd
import pytest

from probgap.exceptions import InvalidInputError
from probgap.tables import append_parquet, read_table, write_csv


def written(frame, **options):
    stream = io.StringIO(newline="")
    write_csv(frame, stream, **options)
    return stream.getvalue()


@pytest.mark.parametrize(
    "cell", ["=cmd()", "+1+1", "-x", "@sum", "\tx", "\rx", "-1-1", "-inf", "-"]
)
def test_formulas_get_an_apostrophe(cell):
    frame = pd.DataFrame({cell: [cell, None, "plain"], "b": 1, "c": 2})
    stream = io.BytesIO()
    write_csv(frame, stream)
    back = read_table(io.BytesIO(stream.getvalue())).frame
    assert back.columns[0].startswith("'")
    assert back.iloc[0, 0] == f"'{cell}"
    assert back.iloc[-1, 0] == "plain"


def test_numbers_are_untouched_and_exact():
    values = [-1.5, 0.1 + 0.2, 1e-300, np.nan, 3.0]
    frame = pd.DataFrame({"x": values, "i": [-1, 2, 3, 4, 5], "t": ["-2.5"] * 5})
    back = read_table(io.BytesIO(written(frame).encode())).frame
    assert [float(v) for v in back["x"][[0, 1, 2, 4]]] == [-1.5, 0.1 + 0.2, 1e-300, 3.0]
    assert back["i"].tolist() == ["-1", "2", "3", "4", "5"]
    assert set(back["t"]) == {"-2.5"}


def test_quotes_newlines_and_signs_come_back():
    cells = ['a,"b"', "two\nlines", "😀", " x ", "<script>"]
    frame = pd.DataFrame({"c": cells, "d": [True, False] * 2 + [True]})
    text = written(frame)
    assert text.endswith("\r\n")
    assert read_table(io.BytesIO(text.encode())).frame["c"].tolist() == cells


def test_rows_alone_follow_an_earlier_chunk():
    frame = pd.DataFrame({"a": [1], "b": ["x"]})
    assert written(frame, header=False) == "1,x\r\n"


def test_a_path(tmp_path):
    frame = pd.DataFrame({"a": [1], "b": ["é"]})
    write_csv(frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == "a,b\r\n1,é\r\n".encode()
    with pytest.raises(InvalidInputError, match="Cannot write"):
        write_csv(frame, tmp_path / "none" / "t.csv")


def test_odd_columns_are_written(tmp_path):
    frame = pd.DataFrame({"o": [1, "=x", None], "c": pd.Categorical(["a", "-b", "a"])})
    frame["i"] = pd.Series([1, 2, 3], dtype=object)
    assert written(frame) == "o,c,i\r\n1,a,1\r\n'=x,'-b,2\r\n,a,3\r\n"


def test_frames_make_one_parquet_file_with_the_types_of_the_first():
    first = pd.DataFrame({"id": ["a", None], "x": [1.5, -2.0], "yes": [True, False]})
    then = pd.DataFrame({"id": [7], "x": [np.nan], "yes": [True]})
    stream = io.BytesIO()
    with append_parquet(stream) as write:
        write(first)
        write(then)
    back = pd.read_parquet(stream)
    assert back["id"].tolist()[0::2] == ["a", "7"]
    assert back["id"].isna().tolist() == [False, True, False]
    np.testing.assert_array_equal(back["x"], [1.5, -2.0, np.nan])
    assert back["yes"].tolist() == [True, False, True]
    empty = io.BytesIO()
    with append_parquet(empty):
        pass
    assert empty.getvalue() == b""
