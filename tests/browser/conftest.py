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
def open_page(browser):
    """Open a page, and record what it asks for and complains about."""
    contexts = []

    def open_it(url, width, height, **options):
        size = {"width": width, "height": height}
        contexts.append(browser.new_context(viewport=size, **options))
        page = contexts[-1].new_page()
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("dialog", lambda dialog: (page.said.append("dialog"), dialog.dismiss()))
        page.goto(url)
        return page

    yield open_it
    for context in contexts:
        context.close()


@pytest.fixture
def visit(open_page, files):
    """Open the page of a report."""
    return lambda name, *, width=1280, height=900, **options: open_page(
        (files / f"{name}.html").as_uri(), width, height, **options
    )


@pytest.fixture
def faults():
    """What axe calls serious of a page, which passes at least so many of its rules."""
    reason = "axe is not installed"
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=reason)

    def find(page, n_passed):
        found = axe.Axe().run(page).response
        assert len(found["passes"]) > n_passed
        return {
            fault["id"]: [node["html"][:120] for node in fault["nodes"]][:3]
            for fault in found["violations"]
            if fault["impact"] in ("serious", "critical")
        }

    return find
