"""The page of a fit: what it answers, what it leaves harmless, what it does without."""

import json
import re
import runpy
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probgap._core.pages import MINUS, NONE
from probgap.exceptions import InvalidInputError, MissingLibraryError
from probgap.page import render_page
from probgap.page._charts import Chart, brief, ticks
from probgap.page._checks import (
    AGAINST,
    FITS,
    LOOK,
    MISSING,
    all_checks,
    overall,
)
from probgap.page._clean import clip, harmless
from probgap.page._words import day, headline, moment, p_words, percent

pytest.importorskip("jinja2", reason="jinja2 is not installed")
ACCOUNTS = runpy.run_path(str(Path(__file__).parent / "accounts.py"))["ACCOUNTS"]
EMPTY = {"table": {}, "found": {}}
VOID = {"meta", "link", "line", "rect", "circle", "path", "br"}
TAGS = """html head title style body a header main footer section nav div p span h1 h2 h3
ol ul li dl dt dd b strong em bdi code pre abbr figure figcaption svg text table caption
thead tbody tr th td details summary"""
ALLOWED = VOID | set(TAGS.split())


class Outline(HTMLParser):
    """What a page is made of, and whether its tags are closed in order."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.names, self.links, self.open = set(), [], [], []
        self.attributes, self.words = set(), []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        given = dict(attributes)
        self.names += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module", params=ACCOUNTS)
def outline(request):
    return Outline(render_page(ACCOUNTS[request.param]()))


def test_a_page_is_well_formed_and_needs_nothing_else(outline):
    assert outline.open == []
    assert outline.tags <= ALLOWED
    assert not {name for name in outline.attributes if name.startswith("on")}
    assert len(set(outline.names)) == len(outline.names)
    for link in outline.links:
        assert link == "data:," or link[1:] in outline.names


@pytest.mark.parametrize("name", ACCOUNTS)
def test_a_page_repeats_itself_and_can_be_written(name):
    page = render_page(ACCOUNTS[name]())
    assert page == render_page(ACCOUNTS[name]())
    assert len(page.encode("utf-8")) < 400_000


def test_the_first_screen_answers_the_four_questions():
    text = Outline(render_page(ACCOUNTS["typical"]())).text
    first = text[: text.index("What was found")]
    assert "Between 55 and 110 more positives among 449 unlabelled rows" in first
    assert "The best estimate is 80 more, 200 in all (35% of the table)." in first
    assert "How sure is that? Between 55 and 110." in first
    assert re.search(r"Which ones\? Rows P-\d+ , P-\d+ and P-\d+ come first", first)
    assert "May I believe it? Yes, as far as such data can tell." in first
    assert "Warning" not in text


def test_sections_come_in_the_order_in_which_a_person_asks():
    page = render_page(ACCOUNTS["typical"]())
    sections = re.findall(r'<h2 id="(\w+)"', page)
    assert sections == ["found", "believe", "decided", "drivers", "next", "record"]
    assert page.count('<svg class="chart"') == 6
    assert page.count("The numbers behind this figure") == 3


def test_warnings_stand_at_the_top_the_strong_ones_first():
    page = render_page(ACCOUNTS["doubtful"]())
    places = [page.index(words) for words in ("Only 12 positives", "Three columns")]
    assert places == sorted(places)
    assert places[-1] < page.index("How sure is that?")
    assert "<h1>Perhaps 144 more positives" in page
    assert "<h1>Perhaps between 9 and 240 more" in render_page(ACCOUNTS["unfit"]())


def test_what_is_missing_is_said_in_words():
    text = Outline(render_page(ACCOUNTS["doubtful"]())).text
    for words in (
        "The test of random labelling could not be run",
        "Too few labelled rows to compare groups of rows.",
        "Could not be run: SVC needs two classes in every fold.",
        "Too few rows were held out",
        "Rows were not weighted",
        "What drives the answer was not measured",
        "No row is named for labelling",
        "The boundary is a fallback: the rule gave",
    ):
        assert words in text


@pytest.mark.parametrize("hidden", [None, 0.0, float("nan"), 10**400, "many"])
def test_the_least_account_still_has_a_page(hidden):
    outline = Outline(render_page({"table": {}, "found": {"hidden": hidden}}))
    assert outline.open == []
    assert "Nobody can say yet." in outline.text
    assert "None stands out." in outline.text


def test_an_account_survives_its_trip_through_json():
    account = ACCOUNTS["typical"]()
    assert render_page(json.loads(json.dumps(account))) == render_page(account)


def test_nothing_from_the_table_becomes_markup():
    page = render_page(ACCOUNTS["hostile"]())
    assert "<script" not in page
    assert "<img" not in page
    assert "{{ 7 * 7 }}" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "x" * 100 not in page
    assert "[U+202E]evil" in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\ud800-\udfff]", page)
    assert "The first 300 of 2,004 columns" in page


@given(st.text(max_size=30))
def test_text_is_made_harmless_and_keeps_its_letters(text):
    shown = harmless(text)
    shown.encode("utf-8")
    assert not re.search("[\x00-\x08\u202a-\u202e\u2066-\u2069]", shown)
    if text.isascii() and text.isprintable():
        assert shown == text


def test_what_is_no_text_is_left_alone():
    assert harmless(3) == 3
    assert harmless(None) is None
    assert harmless("e" + "\u0301" * 9) == "e" + "\u0301" * 4


def test_long_text_is_cut():
    assert clip("a\n b") == "a b"
    assert clip("x" * 81) == "x" * 79 + "…"
    assert clip("x" * 80) == "x" * 80
    assert clip(" " * 1000 + "x").endswith("…")


leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
tree = st.recursive(
    leaf,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(sorted(ACCOUNTS)), st.data())
def test_no_value_of_an_account_breaks_the_page(name, data):
    account = ACCOUNTS[name]()
    place = account
    path = []
    while True:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
        path.append(key)
        inside = place[key]
        if not (
            isinstance(inside, dict | list) and inside and data.draw(st.booleans())
        ):
            break
        place = inside
    value = data.draw(tree)
    if path in (["table"], ["found"]) and not isinstance(value, dict):
        return
    place[key] = value
    assert Outline(render_page(account)).open == []


@pytest.mark.parametrize("account", [None, [], {}, {"table": {}}, {"found": {}}])
def test_what_is_no_account_is_refused(account):
    with pytest.raises(InvalidInputError, match="account must"):
        render_page(account)


def test_a_missing_template_library_is_named(monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr("probgap._core.optional.import_module", refuse)
    with pytest.raises(MissingLibraryError, match=r"probgap\[report\]"):
        render_page(EMPTY)


def states(account):
    return {check.key: check.state for check in all_checks(account)}


def test_verdicts_follow_the_numbers():
    assert set(states(ACCOUNTS["typical"]()).values()) == {FITS}
    assert states(ACCOUNTS["unfit"]()) == {
        "random": LOOK,
        "rising": AGAINST,
        "held-out": FITS,
        "settled": LOOK,
        "others": FITS,
    }
    assert set(states(EMPTY).values()) == {MISSING}


def test_a_test_that_finds_nothing_is_no_good_sign():
    account = ACCOUNTS["typical"]()
    account["belief"]["scar"] |= {"p_value": 0.87, "verdict": "random"}
    account["belief"]["labelling"] |= {"rises": False, "rank_correlation": 0.8}
    assert states(account)["random"] == LOOK
    assert overall(all_checks(account), [])["answer"] == "Only with care."


def test_labels_that_look_random_are_no_violation():
    account = ACCOUNTS["typical"]()
    account["belief"]["labelling"] |= {"rises": False, "rank_correlation": 0.8}
    assert states(account)["rising"] == LOOK
    assert "Not visibly: among likely positives" in render_page(account)


def test_methods_are_compared_on_the_same_rows():
    account = ACCOUNTS["typical"]()
    assert "All methods are compared on rows held out" not in render_page(account)
    for other in account["belief"]["others"]:
        other |= {"both": 50, "only_here": 12}
    page = render_page(account)
    assert "All methods are compared on rows held out" in page
    assert "62 <span" in page


def test_recall_no_better_than_chance_speaks_against_it():
    account = ACCOUNTS["typical"]()
    account["found"]["called_positive"] = 420
    assert states(account)["held-out"] == AGAINST
    account["found"]["called_positive"] = 40
    account["belief"]["held_out"] |= {"recall": 0.4, "recall_interval": None}
    assert states(account)["held-out"] == AGAINST
    account["belief"]["held_out"] |= {"recall": 0.6, "n_labelled": None}
    assert states(account)["held-out"] == LOOK


def test_agreement_on_easy_negatives_is_not_taken_for_overlap():
    account = ACCOUNTS["typical"]()
    account["belief"]["others"] = [
        {"method": "m", "agreement": 0.99, "both": 1, "only_here": 5, "only_there": 5}
    ]
    assert states(account)["others"] == LOOK
    account["belief"]["others"] = [{"method": "m", "agreement": 0.99}]
    assert states(account)["others"] == FITS


def test_other_answers_of_the_checks_are_put_in_words():
    account = ACCOUNTS["typical"]()
    account["belief"]["scar"] |= {"p_value": 0.4, "verdict": "random"}
    account["belief"]["labelling"]["rises"] = None
    text = Outline(render_page(account)).text
    assert "the test sees no favourites" in text
    assert "too even, to tell" in text


def test_possible_worlds_are_shown_where_the_fit_names_them():
    account = ACCOUNTS["unfit"]()
    text = Outline(render_page(account)).text
    assert "five things that can be seen" in text
    assert "Not by themselves: about 30 or 190" in text
    assert "Most positives are labelled, and the classes overlap 30 26% 80%" in text
    assert "Only the clear ones are labelled 190 54% 39%" in text
    account["belief"]["worlds"] = None
    text = Outline(render_page(account)).text
    assert "four things that can be seen" in text
    assert "Do the data settle" not in text


def test_the_sum_of_the_checks_is_no_better_than_they_are():
    def verdict(account, *warnings):
        return overall(all_checks(account), list(warnings))

    strong = {"strong": True}
    typical = ACCOUNTS["typical"]()
    assert verdict(typical)["state"] == FITS
    assert verdict(typical, strong)["state"] == LOOK
    assert verdict(ACCOUNTS["unfit"]())["state"] == AGAINST
    assert verdict(ACCOUNTS["doubtful"]())["state"] == LOOK
    assert "No check is a good sign" in verdict(ACCOUNTS["doubtful"]())["why"]
    assert verdict(EMPTY)["state"] == MISSING
    typical["belief"]["worlds"]["high"] = 300.0
    assert "whether the data settle the count" in verdict(typical)["why"]


def test_numbers_and_times_read_well():
    assert [percent(v) for v in (None, 0.0, 0.0004, 0.004, 0.5, 0.999, 1.0)] == [
        NONE,
        "0%",
        "<1%",
        "0.4%",
        "50%",
        ">99%",
        "100%",
    ]
    assert p_words(0.00501).replace("\xa0", " ") == "p = 0.005"
    assert p_words(1e-9).replace("\xa0", " ") == "p < 0.0001"
    assert day("2026-11-16T08:00:00Z") == "16 November 2026"
    assert (day(None), moment(None)) == (None, None)
    assert day("soon") == moment("soon") == "soon"
    assert moment("2026-11-16T08:00:00") == "16 November 2026, 08:00"


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (280.0, 1400.0, "Between 280 and 1,400 more positives among 2,000 unlabelled"),
        (280.0, 1990.0, "At least 280 more positives"),
        (0.2, 31.0, "Up to 31 more positives"),
        (12.1, 12.3, "About 12 more positives"),
        (0.0, 0.3, "No sign of hidden positives"),
    ],
)
def test_the_headline_gives_the_range(low, high, words):
    found = {"hidden": 0.5 * (low + high), "hidden_interval": [low, high]}
    assert headline(found | {"unlabelled": 2000}).startswith(words)
    assert headline({"hidden": 0.2}).startswith("No sign of hidden positives")
    assert headline({"hidden": 1.2}).startswith("Perhaps 1 more positive among")


def test_ticks_are_round_and_marks_stay_on_the_plane():
    assert ticks(0.0, 110.0) == [0.0, 50.0, 100.0]
    assert ticks(1.0, 1.0) == [1.0]
    assert [brief(v) for v in (0.0, -0.5, 120.0, 9000.0, 20_000.0, 1.5e6)] == [
        "0",
        f"{MINUS}0.5",
        "120",
        "9,000",
        "20k",
        "1.5M",
    ]
    chart = Chart((0.0, 1.0), (0.0, 1.0), 10)
    chart.dot((1e308, -1e308), "own")
    assert 'cx="100.0%" cy="100.0%"' in chart.svg("a < b")
    assert "a &lt; b" in chart.svg("a < b")
    assert Chart((1.0, 1.0), (0.0, 1.0), 10).share(7.0) == 0.5
