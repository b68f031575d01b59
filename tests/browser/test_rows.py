"""All rows of a page in a real browser: sort, search, filter, tick, download, plan."""

import csv
import io

import pandas as pd
import pytest

from probgap.tables import write_csv

BODY = "#rows-table tbody tr:not(.why)"


def cells(page, label):
    return page.locator(f'{BODY} [data-label="{label}"]').all_inner_texts()


def count(page):
    return page.locator("#rows-count").inner_text()


def save(page, button):
    with page.expect_download() as waiting:
        page.locator(button).click()
    return waiting.value.path().read_bytes().decode("utf-8")


def test_scripts_replace_the_short_list_which_stays_without_them(visit):
    page = visit("lively")
    assert page.locator(BODY).count() == 50
    assert visit("lively", width=390).locator(BODY).count() == 10  # cards
    assert not page.locator("#ranked-caption").is_visible()
    page.emulate_media(media="print")
    assert page.locator("#ranked-caption").is_visible()
    assert not page.locator("#rows-app").is_visible()
    page = visit("lively", java_script_enabled=False)
    assert page.locator("#ranked-caption").is_visible()
    assert not page.locator("#rows-app").is_visible()


def test_a_foreign_script_does_not_run(visit):
    page = visit("lively_hostile")
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'),"
        " {textContent: 'window.ran = 1'}))"
    )
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in said for said in page.said)
    assert "dialog" not in page.said


def test_search_filter_and_sort(visit):
    page = visit("lively")
    assert count(page) == "449 of 449 rows."
    page.get_by_label("Search").fill("note 42")
    assert count(page) == "5 of 449 rows."
    page.get_by_label("Search").fill("p-0007")
    assert cells(page, "id") == ["P-0007"]
    page.get_by_label("Search").fill("")
    page.locator("#rows-filters summary").click()
    page.locator("#rows-fields").get_by_label("clinic").fill("= leeds")
    page.locator("#rows-fields").get_by_label("radius").fill("> 25")
    assert 1 < page.locator(BODY).count() < 50
    page.get_by_label("Sort by").select_option("radius")
    radius = [float(text) for text in cells(page, "radius")]
    assert radius == sorted(radius)
    assert radius[0] > 25.0
    page.locator("thead button", has_text="radius").press("Enter")
    assert [float(text) for text in cells(page, "radius")] == radius[::-1]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("radius")
    assert page.evaluate("document.activeElement.innerText") == "radius"


def test_pages_and_rows_are_reached_by_keyboard(visit):
    page = visit("lively")
    page.locator("#rows-on").press("Enter")
    assert cells(page, "rank")[0] == "51"
    assert page.locator("#rows-page").inner_text() == "Page 2 of 9"
    button = page.locator(f"{BODY} button").first
    button.press("Enter")
    why = page.locator("tr.why")
    assert "probgap explain . --row='P-0050'" in why.inner_text()
    assert "of rows" in why.inner_text()
    assert page.evaluate("document.activeElement.ariaExpanded") == "true"
    page.keyboard.press("Enter")
    assert why.count() == 0


def test_the_plan_agrees_with_the_headline(visit):
    page = visit("lively")
    says = page.locator("#plan-says")
    assert says.inner_text().startswith("Check 200 rows, expect between ")
    page.get_by_label("Rows", exact=True).fill("449")
    headline = page.locator("h1").inner_text()
    numbers = [word for word in headline.split() if word.isdigit()][:2]
    expected = "between {} and {}".format(*numbers)
    assert says.inner_text() == f"Check 449 rows, expect {expected} positives."
    page.locator("#plan-step").press("Home")
    assert says.inner_text().startswith("Check 1 row, expect")
    page.get_by_label("Gain from a positive").fill("0")
    assert "checking does not pay" in page.locator("#plan-worth").inner_text()
    page.get_by_label("Rows", exact=True).fill("30")
    page.get_by_label("only the rows to check").check()
    assert count(page) == "30 of 449 rows."


def test_downloads_hold_what_is_filtered_or_ticked(visit):
    page = visit("lively")
    assert page.locator("#rows-save-ticked").is_disabled()
    page.get_by_label("Tick P-0003").check()
    page.get_by_label("Tick P-0001").check()
    assert count(page) == "449 of 449 rows, 2 ticked."
    ticked = list(csv.DictReader(io.StringIO(save(page, "#rows-save-ticked"))))
    assert [row["id"] for row in ticked] == ["P-0001", "P-0003"]
    page.get_by_label("Search").fill("note 42")
    assert len(save(page, "#rows-save").splitlines()) == 6


def test_downloads_are_as_safe_in_spreadsheets_as_scores_are(visit):
    page = visit("lively_hostile")
    table = list(csv.reader(io.StringIO(save(page, "#rows-save"), newline="")))
    at = next(j for j, name in enumerate(table[0]) if "cmd" in name)
    given = ["=1+1", "-1.5", "+x", "@y", 'a "b", c', "[U+202E]evil", "\tt"]
    stream = io.StringIO()
    write_csv(pd.DataFrame({"=cmd|' /C calc'!A0": given}), stream)
    written = [row[0] for row in csv.reader(io.StringIO(stream.getvalue(), newline=""))]
    assert [row[at] for row in table[:8]] == written


@pytest.mark.parametrize("locale", ["de-DE", "ar-EG"])
def test_numbers_are_the_same_in_every_locale(visit, locale):
    plain, page = visit("lively"), visit("lively", locale=locale)
    for label in ("rank", "probability", "radius"):
        assert cells(page, label) == cells(plain, label)
    says = "#plan-says"
    assert page.locator(says).inner_text() == plain.locator(says).inner_text()
