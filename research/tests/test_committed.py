"""The committed report is what the committed rows give, and the rows are all there."""

from itertools import pairwise
from pathlib import Path

import pytest

from research.paper.plan import paper_specs, pending, plan
from research.paper.report import build_report
from research.paper.rows import read_rows
from research.paper.summary import summarise

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.fixture(scope="module")
def rows():
    return read_rows(FOLDER / "rows.jsonl.gz")


def test_every_job_of_the_paper_has_a_row_made_with_the_settings_of_today(rows):
    jobs = plan(paper_specs())
    assert pending(jobs, rows) == []
    assert len(rows) == len(jobs)
    assert {row["profile"] for row in rows} == {"full"}
    assert all(row["commit"] and row["command"] for row in rows)


def test_the_page_is_made_of_these_rows(rows, tmp_path):
    page = (FOLDER / "report.md").read_text("utf-8")
    build_report(rows, tmp_path)
    assert (tmp_path / "report.md").read_text("utf-8") == page
    for picture in (tmp_path / "figures").iterdir():
        assert (FOLDER / "figures" / picture.name).is_file()
    rulers = [pair for pair in pairwise(page.splitlines()) if pair[1][:4] == "|---"]
    assert len(rulers) > 20
    assert all(head.count("|") == line.count("|") for head, line in rulers)


def test_the_documentation_says_what_the_rows_say(rows):
    verdicts = summarise(rows)["verdicts"]
    ahead = f"in {verdicts['ahead']} of {verdicts['compared']} blocks"
    plain = f"in {verdicts['ahead_plain']} of {verdicts['compared_plain']}"
    for page in ("README.md", "docs/which_method.md"):
        text = " ".join((FOLDER.parents[1] / page).read_text("utf-8").split())
        assert ahead in text
        assert plain in text
