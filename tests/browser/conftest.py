"""Chromium, and pages for it to open; without either the tests here are left out."""

from __future__ import annotations

import os
import runpy
import shutil
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
REPORTS = Path(__file__).parents[1] / "reporting" / "reports.py"


def find_chromium():
    named = os.environ.get("PROBGAP_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session")
def browser():
    reason = "playwright is not installed; pip install 'probgap[browser]'"
    api = pytest.importorskip("playwright.sync_api", reason=reason)
    program = find_chromium()
    if program is None:
        pytest.skip("no chromium found; install one, or name it in PROBGAP_CHROMIUM")
    # Its sandbox needs rights that containers do not have; the pages are our own.
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"]
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """One page for each report, as files."""
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    folder = tmp_path_factory.mktemp("pages")
    for name, make in runpy.run_path(str(REPORTS))["REPORTS"].items():
        (folder / f"{name}.html").write_text(make().to_html(), encoding="utf-8")
    return folder


@pytest.fixture
def visit(browser, files):
    """Open the page of a report, and record what it asks for and complains about."""
    contexts = []

    def open_page(name, *, width=1280, height=900, **options):
        context = browser.new_context(
            viewport={"width": width, "height": height}, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("dialog", lambda dialog: (page.said.append("dialog"), dialog.dismiss()))
        page.goto((files / f"{name}.html").as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
