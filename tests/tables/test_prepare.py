"""The step before a classifier: bounded, the same for any chunk, order or type."""

import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from probgap.exceptions import InvalidInputError
from probgap.tables import (
    TableReader,
    make_preprocessor,
    plan_columns,
    read_table,
    to_categories,
    to_numbers,
)

WORDS = ["red", "green", "cat", "dog", "runs", "sleeps", "far", "away", "often"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    n = 300
    return pd.DataFrame(
        {
            "plain": rng.normal(size=n),
            "tail": np.exp(3 * rng.normal(size=n)),
            "zeros": np.where(rng.random(n) < 0.95, 0.0, 1e4 * rng.random(n)),
            "holes": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            "whole": rng.integers(0, 4, n),
            "level": rng.choice(["a", "b", "c", "1", "2"], n),
            "flag": rng.random(n) < 0.5,
            "note": [" ".join(rng.choice(WORDS, 6)) for _ in range(n)],
            "y": np.where(np.arange(n) % 9 == 0, "yes", ""),
        }
    )


@pytest.fixture(scope="module")
def as_csv(frame):
    return frame.to_csv(index=False).encode()


@pytest.fixture(scope="module")
def fitted(as_csv):
    text = read_table(io.BytesIO(as_csv)).frame
    return make_preprocessor(plan_columns(text, label="y")).fit(text)


def test_every_column_has_about_the_same_say(frame, fitted):
    X = fitted.transform(frame)
    assert X.dtype == np.float64
    assert isinstance(X, np.ndarray)
    assert np.isfinite(X).all()
    numbers = X[:, :5]
    assert numbers.var(axis=0).max() < 1.01
    assert numbers.var(axis=0).min() > 0.5
    levels = fitted.named_transformers_["categories"].transform(
        frame[["level", "flag"]]
    )
    text = fitted.named_transformers_["text_1"].transform(frame[["note"]])
    assert 0.5 < levels.toarray().var(axis=0).sum() / 2 < 1.0
    assert 0.2 < text.var(axis=0).sum() < 1.0


@pytest.mark.parametrize("chunk_rows", [7, 100, 300])
def test_chunks_order_and_types_change_nothing(frame, as_csv, fitted, chunk_rows):
    X = fitted.transform(frame)
    with TableReader(io.BytesIO(as_csv), chunk_rows=chunk_rows) as reader:
        parts = [fitted.transform(chunk.iloc[:, ::-1]) for chunk in reader]
    assert_array_equal(np.vstack(parts), X)
    assert_array_equal(fitted.transform(frame.assign(more=1).convert_dtypes()), X)
    assert_array_equal(fitted.transform(frame.astype(object)), X)


def test_levels_are_one_whether_text_or_numbers(fitted, frame):
    rows = pd.concat([frame.iloc[:1]] * 4)
    encode = fitted.named_transformers_["categories"].transform
    levels = pd.DataFrame(
        {"level": ["1", 1, 1.0, " 1.0 "], "flag": ["TRUE", True, "true", np.True_]}
    )
    X = encode(rows[[]].reset_index(drop=True).join(levels)).toarray()
    assert_array_equal(X, X[:1].repeat(4, axis=0))
    assert X[0].sum() == 2


def test_objects_read_the_same_whatever_stands_beside_them():
    values = [b"x", "x", 1.5, Decimal("1.50"), 2, 2.0, True, "true", None, ""] * 3
    frame = pd.DataFrame({"c": pd.Series(values, dtype=object)})
    one = [to_categories(frame.iloc[i : i + 1])[0, 0] for i in range(len(frame))]
    assert (
        one[:10]
        == ["x", "x", "1.5", "1.5", "2", "2", "true", "true"] + ["(missing)"] * 2
    )
    assert to_categories(frame)[:, 0].tolist() == one


def test_unknown_rare_and_missing_levels_are_pooled():
    levels = ["a"] * 100 + ["b"] * 100 + [f"rare {i}" for i in range(50)] + [None] * 50
    frame = pd.DataFrame({"c": levels, "y": ["", "", "", "", "p"] * 60})
    step = make_preprocessor(plan_columns(frame, label="y")).fit(frame)
    new = step.transform(pd.DataFrame({"c": ["a", "new", "rare 3", None, "", "NA"]}))
    assert new.shape == (6, 4)
    assert_array_equal(new[1], new[2])
    assert_array_equal(new[3], new[4])
    assert_array_equal(new[3], new[5])
    assert_array_equal(new.sum(axis=1), 1.0)


def test_one_huge_value_leaves_the_others_apart():
    values = np.random.default_rng(0).normal(size=500)
    spoilt = values.copy()
    spoilt[0] = 1e99
    spoilt[1] = -1e99
    y = ["p"] * 50 + [""] * 450
    both = []
    for column in (values, spoilt):
        frame = pd.DataFrame({"x": column, "y": y})
        both.append(
            make_preprocessor(plan_columns(frame, label="y")).fit_transform(frame)
        )
    assert np.abs(both[1]).max() <= 5.0
    assert np.corrcoef(both[0][2:, 0], both[1][2:, 0])[0, 1] > 0.999
    assert both[1][2:].std() > 0.5


def test_a_later_huge_value_is_held(fitted, frame):
    rows = frame.iloc[:2].assign(plain=[1e300, -1e300], tail=["1e200", "$1,000,000"])
    assert np.abs(fitted.transform(rows)).max() <= 5.0


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("abc", "'plain' has 'abc' in row 4, which is not a number"),
        ("inf", "'plain' has 'inf' in row 4, which is not a finite number"),
        ("1e999", "finite"),
        ("2020-01-01", "is not a number"),
        ("x" * 500, "is not a number"),
    ],
)
def test_a_bad_cell_is_named(fitted, frame, value, says):
    rows = frame.iloc[2:6].astype({"plain": object})
    rows.iloc[1, 0] = value
    with pytest.raises(InvalidInputError, match=says):
        fitted.transform(rows)


def test_missing_cells_of_a_column_that_had_none_take_the_median(fitted, frame):
    row = frame.iloc[:1].assign(plain=np.nan)
    middle = frame.iloc[:1].assign(plain=frame["plain"].median())
    assert_allclose(fitted.transform(row), fitted.transform(middle), atol=1e-12)


def test_wide_tables_become_narrow():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(40, 300)).round(3).astype(str))
    words = pd.DataFrame(rng.choice(["u", "v"], size=(40, 300)))
    frame = pd.concat([wide.add_prefix("n"), words.add_prefix("c")], axis=1)
    frame = frame.assign(y=["p"] * 12 + [""] * 28)
    step = make_preprocessor(plan_columns(frame, label="y"))
    assert step.fit_transform(frame).shape[1] <= 400


def test_a_subset_may_lack_a_column_or_a_level(fitted, frame):
    part = frame.iloc[:6].assign(holes=np.nan, level="a", zeros=0.0)
    X = clone(fitted).fit_transform(part)
    assert np.isfinite(X).all()


def test_numbers_that_are_read_already_are_taken_as_they_are():
    cells = pd.DataFrame({"a": ["1.5", "", "1e300"], "b": ["-2", "3", "4e-5"]})
    read = to_numbers(cells)
    typed = pd.DataFrame(read, columns=cells.columns)
    again = to_numbers(typed)
    assert_array_equal(again, read)
    assert again.flags.f_contiguous == read.flags.f_contiguous
    assert_array_equal(to_numbers(typed.assign(a=1e300))[:, 0], 1e100)
    with pytest.raises(
        InvalidInputError, match=r"'b' has .* in row 2, which is not a finite"
    ):
        to_numbers(typed.assign(b=[1.0, np.inf, 2.0]))
