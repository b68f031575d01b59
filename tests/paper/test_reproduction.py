"""The committed report is what the committed rows give, and the rows are all there."""

from pathlib import Path

import pytest

from probgap.reproduction import (
    build_report,
    paper_specs,
    pending,
    plan,
    read_rows,
    summarise,
)

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"
pytestmark = pytest.mark.skipif(
    not (FOLDER / "rows.jsonl.gz").is_file(), reason="the rows are not beside the tests"
)


@pytest.fixture(scope="module")
def rows():
    return read_rows(FOLDER / "rows.jsonl.gz")


def test_every_job_of_the_paper_has_a_row_made_with_the_settings_of_today(rows):
    jobs = plan(paper_specs())
    assert pending(jobs, rows) == []
    assert len(rows) == len(jobs)
    assert {row["profile"] for row in rows} == {"full"}


def test_the_page_is_made_of_these_rows(rows, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    page = (FOLDER / "report.md").read_text("utf-8")
    command = page.partition("Command line: <code>")[2].partition("</code>")[0]
    build_report(rows, tmp_path, command=command)
    assert (tmp_path / "report.md").read_text("utf-8") == page
    for picture in (tmp_path / "figures").iterdir():
        assert (FOLDER / "figures" / picture.name).is_file()


def test_the_documentation_says_what_the_rows_say(rows):
    verdicts = summarise(rows)["verdicts"]
    ahead = f"in {verdicts['ahead']} of {verdicts['compared']} blocks"
    for page in ("README.md", "docs/which_method.md"):
        assert ahead in (FOLDER.parents[1] / page).read_text("utf-8")
