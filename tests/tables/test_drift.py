"""Columns of new rows that left the range of the fit are named, and no others."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from probgap.tables import DriftWatch, describe_ranges, plan_columns


def draw(n, seed):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(365, size=n), "D")
    words = ["late", "paid", "again", "never", "asked", "soon", "twice"]
    return pd.DataFrame(
        {
            "size": rng.normal(10.0, 2.0, n),
            "amount": np.exp(rng.normal(5.0, 2.5, n)).round(2).astype(str),
            "gaps": np.where(rng.random(n) < 0.3, np.nan, rng.random(n)),
            "colour": rng.choice(["red", "green", "blue", ""], n),
            "code": rng.choice([f"c{i}" for i in range(200)], n),
            "day": days.strftime("%d/%m/%Y"),
            "note": [" ".join(rng.choice(words, 6)) + f" {i}" for i in range(n)],
            "y": np.where(rng.random(n) < 0.2, "yes", ""),
        }
    )


@pytest.fixture(scope="module")
def ranges():
    frame = draw(2000, 0)
    plan = plan_columns(frame, label="y")
    assert plan.names("number", "date", "category", "text") == tuple(frame.columns[:-1])
    return json.loads(json.dumps(describe_ranges(frame, plan)))


def notices(ranges, *frames):
    watch = DriftWatch(ranges)
    for frame in frames:
        watch.update(frame)
    return {entry["column"]: entry["notice"] for entry in watch.notices()}


@pytest.mark.parametrize(
    "n", [1, 3, 10, 50, 300, pytest.param(2000, marks=pytest.mark.slow)]
)
def test_rows_like_those_of_the_fit_give_hardly_a_notice(ranges, n):
    # Of 210 columns; chance gives one in a thousand.
    assert sum(len(notices(ranges, draw(n, seed))) for seed in range(1, 31)) <= 1


def scaled(name):
    return lambda frame: frame[name].astype(float) * 1000.0


CHANGES = {
    "times 1000": ("size", scaled("size"), "100% of its cells are above what was"),
    "long tail times 1000": ("amount", scaled("amount"), "are above what was usual"),
    "negative": ("size", lambda f: -f["size"], "are below what was usual"),
    "1e308": ("size", lambda f: f["size"] + 1e308, "1e.308"),
    "number empty": ("size", lambda _: np.nan, "100% of its cells are empty, where 0%"),
    "gaps all empty": ("gaps", lambda _: "", "are empty, where 30% were in the fit"),
    "category empty": ("colour", lambda _: None, "are empty, where 2"),
    "date empty": ("day", lambda _: "", "are empty, where 0%"),
    "text empty": ("note", lambda _: "", "are empty, where 0%"),
    "unseen": (
        "colour",
        lambda f: f["colour"].replace(["red", "blue"], "rot"),
        "'rot'",
    ),
    "all unseen": ("code", lambda f: "x" + f["code"], "100% .* did not have, such as"),
    "numbers": (
        "colour",
        lambda f: f["size"],
        "cells are numbers, such as .* categories",
    ),
    "later": (
        "day",
        lambda _: "31/12/2025",
        "2025-12-31 to 2025-12-31, where it had 20",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("n", [30, 1000])
def test_a_column_that_left_its_range_is_named_once(ranges, name, n):
    column, change, says = CHANGES[name]
    frame = draw(n, 1)
    frame[column] = change(frame)
    halves = frame.iloc[: n // 2], frame.iloc[n // 2 :]
    found = notices(ranges, *halves)
    assert list(found) == [column]
    start = f"Column '{column}' left its training range: "
    assert found[column].startswith(start)
    assert re.search(says, found[column]), found[column]


def test_a_single_row_far_out_is_named(ranges):
    row = draw(1, 1).assign(size=1e4, colour="rot")
    assert {"size", "colour"} == set(notices(ranges, row))


def test_a_few_rows_far_out_are_not(ranges):
    frame = draw(1000, 1)
    frame.loc[:50, "size"] = 1e6
    assert notices(ranges, frame) == {}


def test_without_ranges_there_are_no_notices():
    assert notices({}, draw(10, 0) * 0) == {}
