"""All rows in the page: data that cannot break out, ranges that agree with the headline."""

import base64
import hashlib
import json
import re
import runpy
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probgap.reading import read
from probgap.reporting._rows import expect_positives

pytest.importorskip("jinja2", reason="jinja2 is not installed")
TOOLS = runpy.run_path(str(Path(__file__).parent / "reports.py"))
SCRIPT = re.compile(r"<script([^>]*)>(.*?)</script>", re.DOTALL)


@cache
def lively(name="lively"):
    return TOOLS["REPORTS"][name]()


def with_rows(parts=None, **rows):
    """Return a report with other rows, or other cells of them."""
    return TOOLS["change"](lively(), parts or {}, **rows)


def data_of(report):
    (kind, data), _ = SCRIPT.findall(report.to_html())
    assert kind == ' type="application/json" id="rows-data"'
    return json.loads(data)


def test_the_policy_allows_the_script_of_the_page_alone():
    page = lively().to_html()
    _, (kind, script) = SCRIPT.findall(page)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search('Security-Policy" content="([^"]*)"', page)[1]
    assert kind == ""
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in TOOLS["REPORTS"]["typical"]().to_html()


def test_no_cell_ends_the_block_of_data():
    page = lively("lively_hostile").to_html()
    assert len(SCRIPT.findall(page)) == 2
    data = SCRIPT.findall(page)[0][1]
    assert not re.search("[<>&\u2028\u2029\u202e\ud800-\udfff]", data)
    column = next(c for c in json.loads(data)["columns"] if c["name"] == "radius")
    assert column["words"][1] == "</script><script>alert(5)</script>"


def test_data_are_what_was_given():
    given = lively()
    columns = {column["name"]: column for column in data_of(lively())["columns"]}
    assert columns["rank"]["values"] == list(range(1, 450))
    assert columns["id"]["words"] == given.ranked["id"].tolist()
    assert columns["id"]["codes"] == []  # all differ
    clinic = columns["clinic"]
    cells = [clinic["words"][code] for code in clinic["codes"]]
    assert cells == given._cells["clinic"].tolist()
    assert columns["radius"]["values"] == given._cells["radius"].tolist()


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([1.0, np.nan, np.inf, -2.5], [1, None, None, -2.5]),
        ([1234567.0, 0.123456789, 1e300, 3], [1234567, 0.123457, 1e300, 3]),
        ([True, False, True, True], [1, 0, 1, 1]),
    ],
)
def test_numbers_are_valid_json(values, written):
    ranked = lively().ranked[:4]
    report = with_rows(ranked=ranked, cells=pd.DataFrame({"x": values}))
    assert data_of(report)["columns"][-1]["values"] == written


def test_a_page_holds_fifty_thousand_rows_of_the_most_telling_columns():
    n = 50_001
    ranked = pd.concat([lively().ranked] * 112)[:n].reset_index(drop=True)
    cells = pd.DataFrame({j: np.zeros(n, dtype=np.int8) for j in range(21)})
    cells[1] = [f"{place:0150d}" for place in range(n)]  # of these, one has space
    cells[2] = cells[1]
    page = with_rows({"found.unlabelled": n}, ranked=ranked, cells=cells).to_html()
    assert len(page) < 15_000_000
    assert "The first 50,000 of 50,001" in page
    data = json.loads(SCRIPT.findall(page)[0][1])
    assert data["columns"][0]["values"][-1] == 50_000
    assert [column["name"] for column in data["columns"][data["own"] :]] == ["0", "1"]
    assert data["left"] == 19


@pytest.mark.parametrize("class_prior", [None, (0.3, 0.35)])
@pytest.mark.parametrize("distance", [0.5, 4.0])
@pytest.mark.parametrize("n_rows", [30, 2000])
def test_expected_positives_agree_with_the_headline(n_rows, distance, class_prior):
    rng = np.random.default_rng(0)
    positive = np.arange(n_rows) < n_rows // 3
    scores = rng.normal(distance * positive)
    labelled = positive & (rng.random(n_rows) < 0.5)
    estimate = read(scores, labelled, class_prior=class_prior)
    ranked = np.sort(estimate.posterior(scores[~labelled]))[::-1]
    found = expect_positives(estimate, ranked)
    k, low, mean, high = (
        np.array(found[name]) for name in ("k", "low", "mean", "high")
    )
    assert (k[0], k[-1]) == (1, ranked.size)
    assert (low[-1], high[-1]) == estimate.n_hidden_interval
    assert mean[-1] == estimate.n_hidden
    for counts in (low, mean, high):
        assert (np.diff(counts) >= 0.0).all()
    assert (low <= mean).all()
    assert (mean <= high).all()
    assert (high <= k + 1e-9).all()
    # What comes before the last, which is set, meets it without a leap.
    assert abs(high[-2] / high[-1] - 1.0) < 0.2


def test_ranges_of_few_top_rows_hold_the_truth():
    """On one drawn table, for nine in ten numbers of rows, to within one row."""
    rng = np.random.default_rng(1)
    positive = np.arange(4000) < 800
    scores = rng.normal(3.0 * positive)
    labelled = positive & (rng.random(4000) < 0.5)
    estimate = read(scores, labelled)
    order = np.argsort(-scores[~labelled])
    found = expect_positives(estimate, estimate.posterior(scores[~labelled][order]))
    true = np.cumsum(positive[~labelled][order])[np.array(found["k"]) - 1]
    inside = (np.array(found["low"]) <= true + 1) & (
        true - 1 <= np.array(found["high"])
    )
    assert inside.mean() > 0.9
