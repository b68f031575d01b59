"""The page of a report: what it answers, what it leaves harmless, what it does without."""

import re
import runpy
import sys
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probgap.exceptions import MissingLibraryError

pytest.importorskip("jinja2", reason="jinja2 is not installed")
TOOLS = runpy.run_path(str(Path(__file__).parent / "reports.py"))
REPORTS, change, other = (TOOLS[name] for name in ("REPORTS", "change", "other"))
LOOKED = TOOLS["looked"]
TYPICAL = REPORTS["typical"]()
VOID = {"meta", "link", "line", "rect", "circle", "path", "br", "input"}
TAGS = """html head title style body a header main footer section nav div p span h1 h2 h3
ol ul li dl dt dd b strong em bdi code pre abbr figure figcaption svg text table caption
thead tbody tr th td details summary script label select option button output"""
ALLOWED = VOID | set(TAGS.split())
FITS, LOOK, AGAINST, MISSING = "fits", "look", "against", "missing"


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
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@cache
def page_of(name):
    return REPORTS[name]().to_html()


def changed(**parts):
    """Return the page of a typical report with other parts: found__hidden=3."""
    named = {name.replace("__", "."): value for name, value in parts.items()}
    return change(TYPICAL, named).to_html()


@pytest.mark.parametrize("name", REPORTS)
def test_a_page_is_well_formed_and_needs_nothing_else(name):
    page = page_of(name)
    assert page == REPORTS[name]().to_html()
    assert len(page.encode("utf-8")) < 400_000
    outline = Outline(page)
    assert outline.open == []
    assert outline.tags <= ALLOWED
    assert not {name for name in outline.attributes if name.startswith("on")}
    assert len(set(outline.names)) == len(outline.names)
    for link in outline.links:
        assert link == "data:," or link[1:] in outline.names


def test_the_first_screen_answers_the_four_questions():
    text = Outline(page_of("typical")).text
    first = text[: text.index("What was found")]
    assert "Between 55 and 110 more positives among 449 unlabelled rows" in first
    assert "The best estimate is 80 more, 200 in all (35% of the table)." in first
    assert "How sure is that? A 90% interval. It allows for luck" in first
    assert "To know the count , check rows by hand." in first
    assert re.search(r"Which ones\? Rows P-\d+ , P-\d+ and P-\d+ come first", first)
    assert "Predicted positive: 78 of 449 unlabelled rows." in first
    assert "May I believe it? Yes, as far as such data can tell." in first
    assert "Warning" not in text


def test_sections_come_in_the_order_in_which_a_person_asks():
    page = page_of("typical")
    sections = re.findall(r'<h2 id="(\w+)"', page)
    assert sections == ["found", "believe", "decided", "drivers", "next", "record"]
    assert page.count('<svg class="chart"') == 6
    assert page.count("The numbers behind this figure") == 3


def test_warnings_stand_at_the_top_the_strong_ones_first():
    page = page_of("doubtful")
    places = [page.index(words) for words in ("Only 12 positives", "Three columns")]
    assert places == sorted(places)
    assert places[-1] < page.index("How sure is that?")
    assert "<h1>Perhaps between 31 and 402 more positives" in page
    assert "<h1>Perhaps between 9 and 240 more" in page_of("unfit")


SAID = {
    "typical": """5 of 5 checks are good signs. | by 199 trials on 569 rows
        | Compared on 284 rows drawn at random | 0.93 with every column in place
        | on 228 rows held out | 8% of the rows were left out of training
        | disagrees with the new labels on 1% of the rows
        | it is wrong on at most 9% of all rows""",
    "doubtful": """The test of random labelling was not run
        | Too few labelled rows to compare groups of rows.
        | Could not be run: SVC needs two classes in every fold.
        | Too few rows were held out | Rows were not weighted
        | What drives the answer was not measured | No row is named for checking
        | The boundary is a fallback: the rule gave""",
    "unfit": """five things that can be seen | Not by themselves: about 30 or 190
        | Most positives are labelled, and the classes overlap 30 26% 80%
        | Only the clear ones are labelled 190 54% 39%""",
}


@pytest.mark.parametrize("name", SAID)
def test_what_was_found_and_what_is_missing_is_said_in_words(name):
    text = Outline(page_of(name)).text
    for words in SAID[name].split("|"):
        assert " ".join(words.split()) in text
    assert "None stands out." in Outline(changed(ranked=[])).text
    assert "left out of training" not in changed(decision__weights__bound=None)


def test_nothing_from_the_table_becomes_markup():
    page = page_of("hostile")
    assert "<script" not in page
    assert "<img" not in page
    assert "{{ 7 * 7 }}" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "x" * 100 not in page
    assert "[U+202E]evil" in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\ud800-\udfff]", page)
    assert "2,004 columns, the first 300 shown" in page
    notebook = REPORTS["hostile"]()._repr_html_()
    assert " sandbox " in notebook
    assert Outline(notebook).tags == {"iframe"}


def shown_notes(*notes):
    """Return how the page shows remarks that come from the table."""
    page = changed(table__notes=notes)
    page.encode("utf-8")
    found = re.findall(r"<dt>Note</dt><dd><bdi>(.*?)</bdi>", page, re.DOTALL)
    return [unescape(note) for note in found]


@settings(max_examples=5, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=50))
def test_text_is_made_harmless_and_keeps_its_letters(texts):
    shown = shown_notes(*texts)
    for text, note in zip(texts, shown, strict=True):
        assert not re.search("[\x00-\x08\u202a-\u202e\u2066-\u2069]", note)
        if text.isascii() and text.isprintable():
            assert note == " ".join(text.split())


def test_long_text_is_cut():
    notes = ["a\n b", "x" * 301, "x" * 300, " " * 2000 + "x", "e" + "\u0301" * 9]
    *shown, blank, accents = shown_notes(*notes)
    assert shown == ["a b", "x" * 299 + "…", "x" * 300]
    assert blank.endswith("…")
    assert accents == "e" + "\u0301" * 4


def test_a_missing_template_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingLibraryError, match=r"probgap\[report\]"):
        TYPICAL.to_html()


def states(page):
    found = re.findall(r'<li class="(\w+)"><a href="#check-([\w-]+)">', page)
    return {key: state for state, key in found}


def verdict(page):
    """Return the state and the words of the page's answer to "May I believe it?"."""
    state = re.search(r'class="short verdict (\w+)"', page)[1]
    text = Outline(page).text
    start = text.index("May I believe it?")
    return state, text[start : text.index("The checks, one by one")]


def test_verdicts_follow_the_numbers():
    assert set(states(page_of("typical")).values()) == {FITS}
    assert states(page_of("unfit")) == {
        "random": LOOK,
        "rising": AGAINST,
        "held-out": FITS,
        "settled": LOOK,
        "others": FITS,
    }
    gone = dict.fromkeys(("belief__scar", "belief__labelling", "belief__held_out"))
    nothing = changed(**gone, belief__others=[])
    found = states(nothing)
    assert found.pop("settled") == FITS
    assert set(found.values()) == {MISSING}
    assert "1 of 1 check is a good sign; 4 not run." in nothing


def test_labels_that_look_random_are_neither_a_good_sign_nor_a_violation():
    flat = {
        "belief__labelling__rises": False,
        "belief__labelling__rank_correlation": 0.8,
    }
    page = changed(**flat, belief__scar__verdict="random")
    assert states(page)["random"] == states(page)["rising"] == LOOK
    assert "Only with care." in verdict(page)[1]
    assert "the test finds no bias" in page
    assert "Not visibly: among likely positives" in page
    assert "too even, to tell" in changed(belief__labelling__rises=None)


@pytest.mark.parametrize(
    ("called", "recall", "low", "state"),
    [(420, 0.93, 0.87, AGAINST), (40, 0.4, 0.3, AGAINST), (40, 0.6, 0.5, LOOK)],
)
def test_recall_no_better_than_chance_speaks_against_it(called, recall, low, state):
    page = changed(
        found__called_positive=called,
        belief__held_out__recall=recall,
        belief__held_out__recall_interval=[low, 1.0],
    )
    assert states(page)["held-out"] == state


@pytest.mark.parametrize(("overlap", "state"), [(0.1, LOOK), (0.9, FITS)])
def test_agreement_on_easy_negatives_is_not_taken_for_overlap(overlap, state):
    page = changed(belief__others=[other(hidden=6, agreement=0.99, overlap=overlap)])
    assert states(page)["others"] == state


def test_the_sum_of_the_checks_is_no_better_than_they_are():
    strong = REPORTS["unfit"]().warnings
    assert verdict(page_of("typical"))[0] == FITS
    assert verdict(changed(warnings=strong))[0] == LOOK
    assert verdict(page_of("unfit"))[0] == AGAINST
    state, words = verdict(page_of("doubtful"))
    assert state == LOOK
    assert "0 of 2 checks are good signs; 3 not run." in words
    open_count = verdict(changed(belief__scenarios__high=300.0))
    assert "Look at whether the data settle the count." in open_count[1]


def test_numbers_read_well():
    """A share is never written as all or nothing unless it is."""
    shares = {"0%": 0.0, "<1%": 0.0004, "0.4%": 0.004, "50%": 0.5, ">99%": 0.999}
    rows = [other(hidden=9, overlap=1.0, recall=share) for share in shares.values()]
    page = changed(belief__others=rows, belief__scar__p_value=0.00501)
    cells = re.findall('"labels found">([^<]*)</td>', page)
    assert [unescape(cell) for cell in cells] == list(shares)
    assert "p = 0.005" in Outline(page).text
    assert "p < 0.0001" in Outline(changed(belief__scar__p_value=1e-9)).text


@pytest.mark.parametrize(
    ("started", "words"),
    [
        ("2026-11-16T08:00:00Z", "16 November 2026, 08:00 UTC"),
        ("2026-11-16T08:00:00", "16 November 2026, 08:00"),
        ("soon", "soon"),
    ],
)
def test_times_read_well(started, words):
    page = changed(run__started=started)
    assert f"<dt>Started</dt><dd>{words}</dd>" in page
    assert f"<span><bdi>{words.split(',')[0]}</bdi></span>" in page


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (280.0, 1400.0, "Between 280 and 1,400 more positives among 2,000 unlabelled"),
        (280.0, 1990.0, "At least 280 more positives"),
        (0.2, 31.0, "Up to 31 more positives"),
        (1.2, 1278.8, "Up to 1,279 more positives"),
        (0.0, 1990.0, "Any number of hidden positives among 2,000 unlabelled"),
        (0.0, 1.2, "Up to 1 more positive among"),
        (12.1, 12.3, "About 12 more positives"),
        (0.0, 0.3, "No sign of hidden positives"),
    ],
)
def test_the_headline_gives_the_interval(low, high, words):
    found = {"found__hidden": 0.5 * (low + high), "found__hidden_interval": [low, high]}
    found |= {"found__unlabelled": 2000, "belief__held_out": None}
    assert f"<h1>{words}" in changed(**found)
    doubtful = changed(**found, warnings=REPORTS["unfit"]().warnings)
    assert "<h1>Perhaps" in doubtful or "<h1>No sign" in doubtful


@pytest.mark.parametrize("ends", [(280.0, 1990.0), (0.0, 1990.0), (280.0, 1400.0)])
def test_nothing_on_the_page_contradicts_the_headline(ends):
    """An upper end that says nothing is not given elsewhere as if it did."""
    page = changed(
        found__rows=2120,
        found__unlabelled=2000,
        found__hidden=800.0,
        found__hidden_interval=ends,
        found__share_interval=[(120 + end) / 2120 for end in ends],
    )
    text = Outline(page).text
    text = text[: text.index("Can I believe it? The table")]
    assert ("Such labels set no upper end." in text) == (ends[1] > 1900)
    some = "at least 19% of all rows are positive" in text
    assert some == (ends == (280.0, 1990.0))
    assert "1,990" not in text
    assert ("Between 280 and 1,400" in text) == (ends == (280.0, 1400.0))


@pytest.mark.parametrize(
    ("unlabelled", "hidden", "words"),
    [
        (6300, 900.0, "check 50 unlabelled rows drawn at random. probgap audit"),
        (
            6300,
            900.0,
            "If 7 of the 50 are positive, as many as the best estimate has it",
        ),
        (6300, 900.0, "then between 490 and 1,507 are hidden, at 90%"),
        (6300, 0.2, "If 1 of the 50 are positive, then between"),
        (60, 20.0, "To know how many are hidden, check all 60 unlabelled rows."),
    ],
)
def test_the_page_offers_the_way_to_know(unlabelled, hidden, words):
    page = changed(found__unlabelled=unlabelled, found__hidden=hidden)
    assert words in " ".join(Outline(page).text.replace(" .", ".").split())
    assert page.count('href="#know"') == 3


def test_each_row_has_one_probability_and_its_interval():
    page = page_of("typical")
    cells = re.findall('"90% interval"><span[^>]*>([^<]*)<', page)
    assert [cell.strip() for cell in cells[:2]] == ["88% to 98%", "85% to 97%"]
    assert re.findall('"probability">([^<]*)<', page)[:2] == ["0.973", "0.961"]
    text = Outline(page).text
    assert text.count("Do not add what you find to the labels.") == 1


def test_counts_have_one_format():
    rows = [
        row | {"hidden": 5000, "both": 4000, "only_here": 1000, "only_there": 1234}
        for row in TYPICAL.tree["belief"]["others"][:3]
    ]
    page = changed(
        found__rows=70_000,
        found__unlabelled=60_000,
        found__labelled=10_000,
        found__hidden=12_345.6,
        found__hidden_interval=[9010.0, 17_601.0],
        found__called_positive=13_481,
        decision__n_negative=41_000,
        decision__n_undecided=9000,
        belief__scenarios__low=9100.0,
        belief__scenarios__high=16_000.0,
        belief__others=rows,
        belief__n_compared=14_000,
        run__started=None,
    )
    text = Outline(page).text
    text = text[: text.index("Data, settings, how to cite The table")]
    text = re.sub(r"P-\d+", "", text)  # names of rows
    assert re.findall(r"(?<![\d.,])\d{4,}", text) == []


def test_cells_of_wide_tables_name_their_column_for_narrow_screens():
    page = page_of("hostile")
    for caption in ("ranked", "scenarios", "others", "next"):
        at = page.index(f'aria-labelledby="{caption}-caption"')
        assert page[:at].endswith('<div class="box cards" tabindex="0" role="region" ')
        body = page[page.index("<tbody>", at) : page.index("</tbody>", at)]
        cells = re.findall("<td[^>]*>", body)
        assert all("data-label=" in cell or "colspan=" in cell for cell in cells)


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (110.0, ["0", "50", "100"]),
        (4.0, ["0", "1", "2", "3", "4"]),
        (9000.0, ["0", "2,000", "4,000", "6,000", "8,000", "10k"]),
        (20_000.0, ["0", "5,000", "10k", "15k", "20k"]),
        (1.4e6, ["0", "500k", "1M", "1.5M"]),
    ],
)
def test_ticks_are_round(most, ticks):
    page = changed(found__hidden=most / 2, found__hidden_interval=[0.0, most])
    count_line = page[page.index("<svg") : page.index("</svg>")]
    assert re.findall(r'class="tick"[^>]*>([^<]*)<', count_line) == ticks


def test_the_group_with_most_hidden_positives_and_the_assumption_are_said_in_words():
    page = Outline(page_of("unfit")).text
    assert "You said that clinic and year say who was looked at" in page
    says = (
        "Positives of clinic C were labelled 1% as often as those of A: about 22 there"
    )
    assert f"{says}, of whom 2 are labelled." in page
    assert "does not depend on clinic once the other columns are known" in page
    assert "Whether a row is positive may depend on year, too" in page
    assert page.count("probgap audit . --by clinic") == 1


def test_of_many_groups_ten_are_shown_and_the_rest_is_summed_up():
    levels = [f"site {k}" for k in range(100)]
    tree = LOOKED("site", levels=levels)
    page = Outline(changed(looked=tree)).text
    assert "90 more groups hold " in page
    shown = re.findall(r"site \d+", page)
    assert len(set(shown)) == 11  # and the best, which the sentence names


def test_rates_that_may_be_equal_are_not_called_unequal():
    tree = LOOKED("site", levels=["A", "B"])
    for group in tree["groups"]:
        group["rate_high"] = 1.0
    page = Outline(changed(looked=tree)).text
    assert "do not show that positives of some site were labelled much less" in page
