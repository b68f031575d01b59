"""Dates are read as days, become features, and come back from a model file."""

import io
from datetime import date

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from probgap.exceptions import InvalidInputError
from probgap.tables import (
    TableReader,
    make_preprocessor,
    plan_columns,
    read_table,
    to_dates,
)

N = 60
SCORE = np.random.default_rng(5).normal(size=N)
LABEL = ["yes"] * 12 + [""] * (N - 12)
DAYS = pd.date_range("2019-11-03", periods=N, freq="5D")


def plan_of(values, name="when"):
    frame = pd.DataFrame({"score": SCORE, name: pd.Series(values), "y": LABEL})
    return frame, plan_columns(frame, label="y")


@pytest.mark.parametrize(
    ("cell", "day_first", "expected"),
    [
        ("2020-03-04", False, date(2020, 3, 4)),
        ("2020-03-04", True, date(2020, 3, 4)),
        ("2020/3/4", True, date(2020, 3, 4)),
        ("2020.03.04", True, date(2020, 3, 4)),
        ("20200304", True, date(2020, 3, 4)),
        (20200304, False, date(2020, 3, 4)),
        (20200304.0, False, date(2020, 3, 4)),
        ("3/4/2020", False, date(2020, 3, 4)),
        ("3/4/2020", True, date(2020, 4, 3)),
        ("03.04.20", True, date(2020, 4, 3)),
        ("3-4-69", False, date(1969, 3, 4)),
        ("3-4-68", False, date(2068, 3, 4)),
        ("4 March 2020", False, date(2020, 3, 4)),
        ("04-MAR-20", False, date(2020, 3, 4)),
        ("Mar 4th, 2020", True, date(2020, 3, 4)),
        ("Sept. 4 2020", False, date(2020, 9, 4)),
        ("2020-03-04T23:59:59+02:00", False, date(2020, 3, 4)),
        ("2020-03-04 00:30:00.000000Z", False, date(2020, 3, 4)),
        ("3/4/2020, 11:30 pm", False, date(2020, 3, 4)),
        (pd.Timestamp("2020-03-04 12:00", tz="Asia/Tokyo"), False, date(2020, 3, 4)),
        (date(2020, 3, 4), False, date(2020, 3, 4)),
        ("9999-12-31", False, date(9999, 12, 31)),
        ("0001-01-01", False, date(1, 1, 1)),
        (" 2020-02-29 ", False, date(2020, 2, 29)),
    ],
)
def test_a_cell_means_a_day(cell, day_first, expected):
    frame = pd.DataFrame({"d": pd.Series([cell, None, "", "NaT"], dtype=object)})
    got = to_dates(frame, ["d"] if day_first else [])
    days = (expected - date(1970, 1, 1)).days
    parts = [expected.year, expected.month, expected.weekday(), days]
    assert got[0].tolist() == parts
    assert np.isnan(got[1:]).all()


@pytest.mark.parametrize(
    "cell", ["x", "2020-02-30", "13/13/2020", "10:30", "2020", "31/1/2020", "1/1/0000"]
)
def test_a_cell_that_is_no_date_is_named(cell):
    frame = pd.DataFrame({"d": ["2020-01-01", cell]}, index=[7, 8])
    with pytest.raises(
        InvalidInputError, match=r"'d' has .* in row 9, which is not a date"
    ):
        to_dates(frame)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (DAYS, "dates"),
        (DAYS.tz_localize("UTC"), "dates"),
        (DAYS.date, "dates"),
        (DAYS.strftime("%Y%m%d"), "dates"),
        (DAYS.strftime("%Y%m%d").astype(int), "dates"),
        (DAYS.strftime("%Y-%m-%d"), "dates"),
        (DAYS.strftime("%Y/%m/%d %H:%M"), "dates"),
        (DAYS.strftime("%d %B %Y"), "dates"),
        (DAYS.strftime("%b %d, %Y"), "dates"),
        (DAYS.strftime("%d/%m/%Y"), "dates, day first"),
        (DAYS.strftime("%m/%d/%Y"), "dates, month first"),
        (DAYS.strftime("%d.%m.%y"), "dates, day first"),
    ],
)
def test_every_way_to_write_a_date_makes_the_same_features(values, why):
    frame, plan = plan_of(values)
    column = plan.columns[1]
    assert (column.use, column.why) == ("date", why)
    assert plan.inputs == ("score", "when")
    step = make_preprocessor(plan).fit(frame)
    want, want_plan = plan_of(DAYS)
    assert_allclose(
        step.transform(frame), make_preprocessor(want_plan).fit_transform(want)
    )
    assert [str(name) for name in step.get_feature_names_out()[1:]] == [
        f"dates__value__when_{part}" for part in ("year", "month", "weekday", "days")
    ]


def test_ambiguous_dates_begin_with_the_day_where_points_stand_between():
    cells = [f"{1 + i % 12}/{1 + i % 11}/2020" for i in range(N)]
    assert plan_of(cells)[1].columns[1].why == "dates, month first"
    dotted = [cell.replace("/", ".") for cell in cells]
    assert plan_of(dotted)[1].columns[1].why == "dates, day first"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (
            [*DAYS.strftime("%Y-%m-%d")[:-1], "soon"],
            "not in 1 of 60 cells, such as 'soon'",
        ),
        ([*DAYS.strftime("%d/%m/%Y")[:-1], "12/31/2020"], "such as '12/31/2020'"),
        ([f"10:{i:02d}" for i in range(N)], "times of day"),
        (["2020-01-01"] * N, "constant"),
        (list(DAYS[:12].astype(str)) + [None] * (N - 12), "filled in exactly"),
        (["2020-01-01"] * 12 + ["2020-01-02"] * (N - 12), "mirrors the label"),
        (20200100 + np.arange(N), "numbers the rows"),
    ],
)
def test_dates_that_are_left_out_and_why(values, why):
    column = plan_of(values)[1].columns[1]
    assert column.use == "left out"
    assert pd.Series([column.why]).str.contains(why).all()


def test_a_date_has_the_say_of_one_number_and_missing_ones_are_marked():
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 2000, 500), "D")
    when = pd.Series(days.strftime("%Y-%m-%d"))
    frame = pd.DataFrame({"when": when, "y": ["yes"] + [""] * 499})
    X = make_preprocessor(plan_columns(frame, label="y")).fit_transform(frame)
    assert X.shape == (500, 4)
    assert X.var(axis=0).sum() == pytest.approx(1.0, abs=0.05)
    frame.loc[::7, "when"] = None
    X = make_preprocessor(plan_columns(frame, label="y")).fit_transform(frame)
    assert X.shape == (500, 8)
    missing = frame["when"].isna().to_numpy()
    assert_array_equal(X[:, 4:], np.repeat(0.5 * missing[:, None], 4, axis=1))


def test_chunks_and_later_dates():
    frame, _ = plan_of(DAYS.strftime("%d/%m/%Y"))
    data = frame.to_csv(index=False).encode()
    table = read_table(io.BytesIO(data)).frame
    step = make_preprocessor(plan_columns(table, label="y")).fit(table)
    X = step.transform(table)
    with TableReader(io.BytesIO(data), chunk_rows=7) as reader:
        parts = [step.transform(chunk.iloc[:, ::-1]) for chunk in reader]
    assert_array_equal(np.vstack(parts), X)
    later = table.iloc[:3].assign(when=["31.12.9999", "2150-01-01", ""])
    assert np.abs(step.transform(later)).max() <= 5.0
    with pytest.raises(
        InvalidInputError, match=r"'when' has .* in row 2, which is not a date"
    ):
        step.transform(table.iloc[:3].assign(when=["", "soon", ""]))
