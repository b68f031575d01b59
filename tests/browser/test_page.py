"""The page of a fit in a real browser: whole, quiet, legible and within reach of all."""

import pytest

REPORTS = ("typical", "doubtful", "unfit", "hostile", "lively", "lively_hostile")
SECTIONS = ["found", "believe", "decided", "drivers", "next", "record"]
WIDEST = "document.documentElement.scrollWidth"


@pytest.mark.parametrize("name", REPORTS)
def test_it_asks_for_nothing_and_complains_of_nothing(visit, name):
    page = visit(name)
    page.wait_for_load_state("networkidle")
    assert [url for url in page.asked if not url.startswith("data:")] == [page.url]
    assert page.url.startswith("file://")
    assert page.said == []
    assert page.locator("img, iframe, object, embed, form").count() == 0
    scripts = 2 if name.startswith("lively") else 0  # the rows, and what shows them
    assert page.locator("script").count() == scripts


def test_tables_and_figures_are_there(visit):
    page = visit("typical")
    charts = page.locator("figure svg.chart")
    assert charts.count() == 6
    for place in range(charts.count()):
        box = charts.nth(place).bounding_box()
        assert box["width"] > 250
        assert box["height"] > 60
        assert charts.nth(place).locator("rect, circle, line").count() >= 3
    for figure in page.locator("figure").all():
        assert figure.locator("figcaption").inner_text().strip()
    for table in page.locator("table").all():
        assert table.locator("caption").text_content().strip()
        assert table.locator("th:not([scope])").count() == 0
    assert page.locator("table").first.locator("tbody tr").count() == 20
    drawn = page.locator("#ranked-caption").locator("xpath=ancestor::div[1]")
    assert drawn.is_visible()


def test_the_first_screen_holds_the_answer(visit):
    page = visit("typical")
    for place in range(3):
        box = page.locator(".answers > div").nth(place).bounding_box()
        assert box["y"] + box["height"] < 900
    page = visit("doubtful")
    box = page.locator(".warn.strong").bounding_box()
    assert box["y"] + box["height"] < 700


@pytest.mark.parametrize("name", REPORTS)
def test_it_reads_the_same_without_javascript(visit, name):
    page = visit(name, java_script_enabled=False)
    assert page.locator("h1").is_visible()
    for section in SECTIONS:
        assert page.locator(f"h2#{section}").is_visible()
    folded = page.locator("details:visible").first
    assert not folded.locator(":scope > :not(summary)").first.is_visible()
    folded.locator("summary").click()
    assert folded.locator(":scope > :not(summary)").first.is_visible()


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")]
)
def test_axe_finds_no_serious_fault(visit, name, width, scheme, faults):
    page = visit(name, width=width, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert faults(page, 20) == {}


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_sticks_out_at_the_side(visit, name, width):
    page = visit(name, width=width)
    assert page.evaluate(WIDEST) <= width


def test_a_phone_shows_every_cell_of_a_row(visit):
    """Tables of rows are cards there, each cell beside the name of its column."""
    page = visit("typical", width=390)
    for caption in ("ranked", "scenarios", "others", "drivers", "next"):
        table = page.locator(f'[aria-labelledby="{caption}-caption"]')
        cells = table.locator("tbody tr:nth-child(2) > *")
        assert cells.count() >= 4
        for cell in cells.all():
            box = cell.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390
    label = "getComputedStyle(document.querySelector('[data-label=gap]'), '::before').content"
    assert page.evaluate(label) == '"gap"'
    assert visit("typical").evaluate(label) == "none"


@pytest.mark.parametrize("width", [390, 700, 1280])
def test_headers_do_not_break_inside_words(visit, width):
    """Each header is as wide as its longest word."""
    page = visit("typical", width=width)
    broken = """() => [...document.querySelectorAll('thead th')].filter(th =>
      th.closest('thead').offsetWidth > 1).filter(th => {
      const range = document.createRange(), texts = document.createTreeWalker(th, 4);
      while (texts.nextNode()) {
        for (const word of texts.currentNode.data.matchAll(/\\S+/g)) {
          range.setStart(texts.currentNode, word.index);
          range.setEnd(texts.currentNode, word.index + word[0].length);
          if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) return true;
        }
      }
      return false;
    }).map(th => th.textContent)"""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate(broken) == []


def test_dark_is_dark_and_light_is_light(visit):
    paint = "getComputedStyle(document.body).backgroundColor"
    grounds = [
        visit("typical", color_scheme=s).evaluate(paint) for s in ("light", "dark")
    ]
    light, dark = ([int(v) for v in g[4:-1].split(",")] for g in grounds)
    assert min(light) > 200
    assert max(dark) < 60


def test_a_keyboard_reaches_the_content_and_shows_where_it_is(visit):
    page = visit("typical")
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert skip.inner_text() == "Skip to the answer"
    assert skip.bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")
    page.keyboard.press("Tab")
    style = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(style) == "solid"


def test_it_prints_on_paper_of_its_own_width(visit):
    page = visit("typical", width=680)
    page.emulate_media(media="print")
    assert page.evaluate(WIDEST) <= 680
    assert not page.locator("nav").is_visible()
    assert page.locator(".on-paper").is_visible()
    pages = page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n")
    assert 3 <= pages <= 9
