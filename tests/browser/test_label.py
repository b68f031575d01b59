"""Labelling in a real browser: by keyboard alone, with hostile cells, on any screen."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")

from probgap.audit import design
from probgap.cli._journal import Journal, read_journal
from probgap.cli._labelling import LabelSession

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
WIDEST = "document.documentElement.scrollWidth"


def show(row):
    cells = [["remark", HOSTILE], ["picture", "http://example.org/a.png"]]
    cells += [
        ["story", "word " * 2000],
        ["nothing", ""],
        [HOSTILE, "\u202eright to left"],
    ]
    cells += [[f"column {i}", str(i * row)] for i in range(495)]
    shown = {"row": row + 1, "id": f"C-{row:04}", "cells": cells}
    if row % 2:
        near = {"row": 1, "id": HOSTILE, "cells": cells[:4]}
        shown |= {"score": 0.5, "similar": [near]}
    return shown


@pytest.fixture
def site(serve_label, tmp_path):
    made = design(np.linspace(0.99, 0.01, 400), budget=60)
    about = {"table": HOSTILE, "folder": "results", "label": "found"}
    about |= {"positive": HOSTILE, "driving": 2}
    with Journal(tmp_path) as journal:
        session = LabelSession(journal, made, show, {})
        port, token = serve_label(session, about)
        parts = {"session": session, "folder": tmp_path, "design": made}
        url = f"http://127.0.0.1:{port}/"
        yield SimpleNamespace(url=url, token=token, **parts)


@pytest.fixture
def visit(open_page, site):
    def open_site(*, width=1200, **options):
        page = open_page(f"{site.url}?token={site.token}", width, 800, **options)
        page.wait_for_selector("#cells dd")
        return page

    return open_site


def press(page, key):
    """Press a key as soon as the page waits for one."""
    before = page.locator("#count").inner_text()
    page.keyboard.press(key)
    page.wait_for_function(
        "before => document.getElementById('count').textContent !== before", arg=before
    )
    page.wait_for_function("() => !busy")


def test_fifty_answers_by_keyboard(visit, site):
    page = visit()
    expected = {}
    for turn, row in enumerate(site.design.rows[:50].tolist()):
        assert page.locator("#name").inner_text() == f"C-{row:04} (row {row + 1})"
        if turn == 7:  # a slip, taken back
            press(page, "n")
            press(page, "z")
            assert page.locator("#name").inner_text().startswith(f"C-{row:04}")
        key, told = [("y", True), ("n", False), ("?", None)][
            0 if row < 80 else 1 + (turn % 9 == 0)
        ]
        press(page, key)
        expected[row] = told
    assert site.session.answers == expected
    assert len(read_journal(site.folder)) == 52
    page.wait_for_function("() => found.answers === 50 && !counting")
    found = site.session.estimate()
    low, high = round(found["low"]), round(found["high"])
    assert page.locator("#interval").inner_text() == f"{low} to {high}"
    assert f"Between {low} and {high}" in page.locator("#said-count").text_content()
    assert page.locator("#chart .zone").count() == 1
    page.reload()
    page.wait_for_selector("#cells dd")
    assert page.locator("#count").inner_text() == "50 of 60"


def test_it_stops_where_the_interval_is_narrow_enough(visit, site):
    page = visit()
    page.fill("#width", "399")
    page.keyboard.press("Tab")
    for _ in range(30):
        if page.locator("#end").is_visible():
            break
        press(page, "n")
        page.wait_for_function("() => !counting")
    assert page.locator("#end-title").inner_text() == "The interval is narrow enough"
    told = len(site.session.answers)
    page.keyboard.press("y")
    page.get_by_role("button", name="Go on anyway").click()
    assert len(site.session.answers) == told
    press(page, "y")
    assert len(site.session.answers) == told + 1


def test_two_windows_and_a_server_that_is_gone(visit, site):
    one, two = visit(), visit()
    names = [page.locator("#name").inner_text() for page in (one, two)]
    assert names[0] != names[1]
    press(one, "y")
    press(two, "n")
    assert len(site.session.answers) == 2
    one.route("**/api/answer*", lambda route: route.abort())
    before = one.locator("#name").inner_text()
    one.keyboard.press("y")
    one.wait_for_selector("#problem:not([hidden])")
    assert "was not saved" in one.locator("#problem").inner_text()
    assert one.locator("#name").inner_text() == before
    one.unroute("**/api/answer*")
    press(one, "y")
    assert not one.locator("#problem").is_visible()


def test_cells_are_text_and_nothing_is_loaded(visit, site):
    page = visit()
    assert page.locator("#cells dd").first.inner_text() == HOSTILE
    assert page.locator("img, main script, iframe, main a").count() == 0
    page.wait_for_load_state("networkidle")
    assert all(url.startswith((site.url, "data:")) for url in page.asked)
    assert page.said == []
    assert page.url == site.url  # without the token
    assert page.evaluate("document.cookie") == ""


def test_long_cells_and_many_columns_unfold(visit):
    page = visit()
    assert page.locator("#cells dt").count() == 24
    assert len(page.locator("#cells dd").nth(2).inner_text()) < 500
    page.get_by_role("button", name="Show all 10,000 characters").click()
    assert len(page.locator("#cells dd").nth(2).inner_text()) > 9000
    page.get_by_role("button", name="Show 476 more columns").click()
    assert page.locator("#cells dt").count() == 500


@pytest.mark.parametrize(
    ("width", "scheme"), [(1200, "light"), (1200, "dark"), (390, "light")]
)
def test_axe_finds_no_serious_fault_and_nothing_sticks_out(
    visit, width, scheme, faults
):
    page = visit(width=width, color_scheme=scheme)
    for key in ("y", "n", "n"):
        press(page, key)
    page.wait_for_selector("#chart .zone")
    assert page.evaluate(WIDEST) <= width
    assert faults(page, 15) == {}
