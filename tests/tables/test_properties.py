"""Random small tables give a result or a ProbgapError, never anything else."""

import gzip
import io
from decimal import Decimal

import numpy as np
import pandas as pd
from hypothesis import example, given, settings
from hypothesis import strategies as st

from probgap.exceptions import ProbgapError
from probgap.tables import (
    TableReader,
    make_preprocessor,
    plan_columns,
    read_labels,
    read_table,
    write_csv,
)

# Cells that mean something to one library or another.
ODD = [
    *[
        "NA",
        "nan",
        "None",
        "inf",
        "-inf",
        "1e308",
        "-1e308",
        "1e999",
        "1e-320",
        "0",
        "-0",
        "1",
        "2",
        "3",
        "01",
        "1.0",
        "1,5",
        "$3",
        "5%",
    ],
    *[
        "?",
        "-",
        ".",
        "--",
        "true",
        "FALSE",
        "yes",
        "no",
        "=cmd()",
        "<script>",
        "@x",
        "2020-01-01",
        "10:30",
    ],
    *["99999999999999999999", "0x1F", "1_0", "١٢", "Ⅷ", "😀", "\ufeff", "\u200f"],
    *['""', '"', ";", "|", "'"],
]
ODD_CELLS = st.sampled_from(ODD) | st.just("")
CELLS = ODD_CELLS | st.text(max_size=8) | st.floats().map(str)
WORDY = st.lists(st.sampled_from(["cat", "dog", "sat", "!", "日本"]), min_size=5)
COLUMN_OF_CELLS = st.one_of(
    ODD_CELLS, CELLS, st.floats(width=32).map(str), WORDY.map(" ".join)
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.complex_numbers(),
    st.decimals(allow_nan=False),
    st.just(Decimal("NaN")),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.lists(st.integers(), max_size=2),
)


@st.composite
def tables(draw, cells=COLUMN_OF_CELLS):
    n_rows = draw(st.integers(1, 16))
    n_columns = draw(st.integers(1, 4))
    column = st.lists(cells, min_size=n_rows, max_size=n_rows)
    kinds = st.lists(column, min_size=n_columns, max_size=n_columns)
    label = st.lists(st.sampled_from(["yes", ""]), min_size=n_rows, max_size=n_rows)
    data = {f"c{i}": values for i, values in enumerate(draw(kinds))}
    return pd.DataFrame(data | {"y": draw(label)}, dtype=object)


def go_through(frame):
    """Go all the way and check what holds for every table."""
    read_labels(frame["y"])
    plan = plan_columns(frame, label="y")
    step = make_preprocessor(plan)
    X = step.fit_transform(frame)
    assert np.isfinite(X).all()
    assert X.shape[0] == len(frame)
    assert X.shape[1] > 0
    again = [
        step.transform(frame.iloc[i : i + 5, ::-1]) for i in range(0, len(frame), 5)
    ]
    np.testing.assert_allclose(np.vstack(again), X, atol=1e-9)


@given(data=st.binary(max_size=200))
@example(data=b"\x1f\x8b")
@example(data=b"PAR1PAR1")
@settings(max_examples=60)
def test_random_bytes(data):
    for source in (data, b"a,b\n" + data, gzip.compress(data, mtime=0), b"PAR1" + data):
        try:
            table = read_table(io.BytesIO(source))
        except ProbgapError:
            continue
        assert table.frame.shape[0] > 0


@given(frame=tables(), delimiter=st.sampled_from(",;\t|"), unix=st.booleans())
@settings(max_examples=25)
def test_random_tables_from_csv(frame, delimiter, unix):
    text = frame.to_csv(index=False, sep=delimiter, lineterminator="\n\r\n"[unix:])
    try:
        go_through(read_table(io.BytesIO(text.encode())).frame)
    except ProbgapError:
        return


@given(frame=tables(VALUES))
@settings(max_examples=25)
def test_random_frames_of_any_values(frame):
    try:
        go_through(frame)
    except ProbgapError:
        return


@given(frame=tables(), chunk_rows=st.integers(1, 31))
@settings(max_examples=20)
def test_what_is_written_comes_back_in_chunks(frame, chunk_rows):
    stream = io.BytesIO()
    write_csv(frame, stream)
    try:
        whole = read_table(io.BytesIO(stream.getvalue())).frame
        with TableReader(
            io.BytesIO(stream.getvalue()), chunk_rows=chunk_rows
        ) as reader:
            parts = list(reader)
    except ProbgapError:
        return
    assert len(whole) <= len(frame)
    pd.testing.assert_frame_equal(pd.concat(parts), whole)


@given(values=st.lists(VALUES, min_size=1, max_size=20), positive=st.text(max_size=3))
def test_random_labels(values, positive):
    column = pd.Series(values, dtype=object)
    for wanted in (None, positive):
        try:
            labels = read_labels(column, wanted)
        except ProbgapError:
            continue
        assert 0 < labels.n_labelled < len(values)
        assert sum(labels.unlabelled.values()) + labels.n_labelled == len(values)
