"""The pages: whole, sound, the same each time, and honest about what is missing."""

import random
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from research.paper.report import build_report
from research.paper.summary import summarise

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Reads a page, sees to it that tags are closed, and keeps what it saw."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes), tuple(self.open)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, *names):
        return [item for item in self.seen if item[0] in names]


@pytest.fixture(scope="module")
def page(full_report):
    return Page(full_report.html.read_text(encoding="utf-8"))


def test_headings_come_in_order(page):
    levels = [int(tag[1]) for tag, _, _ in page.all("h1", "h2", "h3", "h4")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_needs_nothing_else(page):
    assert page.all("script", "link", "iframe") == []
    pictures = page.all("img")
    assert len(pictures) == 3
    for _, attributes, _ in pictures:
        assert attributes["src"].startswith("data:image/svg+xml;base64,")
        assert attributes["alt"]


def test_markdown_links_to_pictures_that_are_there(full_report):
    text = full_report.markdown.read_text(encoding="utf-8")
    links = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    paths = [full_report.markdown.parent / link for link in links]
    assert sorted(paths) == sorted(full_report.figures)
    assert all(path.read_text().startswith("<?xml") for path in paths)


def test_markdown_tables_are_whole(full_report):
    lines = full_report.markdown.read_text(encoding="utf-8").splitlines()
    tables = [line for line in lines if line.startswith("|")]
    assert len(tables) > 130
    width = 0
    for before, line in pairwise(lines):
        if line.startswith("|---"):
            width = before.count("|")
        if line.startswith("|") and before.startswith("|"):
            assert line.count("|") == width


def test_the_pages_say_what_was_found(full_report, full_summary):
    table = full_summary["tables"][6]
    assert (table["runs"], table["equal"]) == (10, True)
    for path in (full_report.html, full_report.markdown):
        text = path.read_text(encoding="utf-8")
        assert (
            "ahead of every method of the paper in this run in 12 of the 12 blocks"
            in text
        )
        assert "make reproduce" in text
        assert "not printed" in text
        assert "look like those of banana" in text
        assert "92.00 ± 0.42" in text
        assert "‡" in text


def test_the_best_of_a_line_stands_out_ours_and_the_papers(full_summary):
    line = full_summary["tables"][0]["groups"][0]["lines"][0]
    assert [c["method"] for c in line["cells"] if c["best"]] == ["probgap"]
    assert [c["method"] for c in line["cells"] if c["paper_best"]] == ["PGPU"]


def test_the_order_of_rows_changes_nothing(make_rows, table_specs, tmp_path):
    rows = make_rows(table_specs[:2], seeds=2)
    shuffled = random.Random(0).sample(rows, len(rows))
    first = build_report(rows, tmp_path / "a")
    second = build_report(shuffled, tmp_path / "b")
    for one, other in zip(
        [first.html, first.markdown, *first.figures],
        [second.html, second.markdown, *second.figures],
        strict=True,
    ):
        assert one.read_bytes() == other.read_bytes()
    assert len(first.figures) == 3


def test_part_of_a_run_gives_a_page_that_says_so(make_rows, table_specs, tmp_path):
    rows = make_rows(table_specs[:1], seeds=2, methods=("SVM", "clean", "probgap"))
    quick = [row | {"profile": "quick", "commit": None} for row in rows[:-1]]
    quick = [{**row, "command": None} for row in quick]
    report = build_report(quick, tmp_path)
    text = "".join(Page(report.html.read_text(encoding="utf-8")).text)
    assert "Not run: Table 2" in text
    assert "Not run here: Elkan, Natarajan, Liu, PGPU and PGPUcv." in text
    assert "no data for Figure 1" in text
    assert "The profile of these rows is quick" in text
    assert "command line was not recorded" in text


@pytest.mark.parametrize("method", ["SVM", "probgap", "new"])
def test_one_method_alone_gives_a_page(make_rows, table_specs, tmp_path, method):
    rows = make_rows(table_specs[-1:], seeds=1, methods=(method,))[:-1]
    report = build_report(rows, tmp_path)
    text = report.markdown.read_text(encoding="utf-8")
    assert "there is nothing to compare yet" in text
    assert "there is nothing to test" in text
    assert report.figures == ()


def test_the_figure_alone_gives_a_page(make_rows, tmp_path):
    report = build_report(make_rows([]), tmp_path)
    assert [path.name for path in report.figures] == ["panels.svg"]
    assert "there is nothing to compare yet" in report.markdown.read_text("utf-8")


def test_failed_jobs_are_listed_and_count_in_no_mean(make_rows, table_specs, tmp_path):
    rows = make_rows(table_specs[:1], seeds=2)[:-1]
    whole = {"status": "error", "accuracy": None, "error": "ValueError: a | <b>"}
    failed = [
        row | whole
        if row["method"] == "Liu" or (row["method"], row["seed"]) == ("PGPU", 1)
        else row
        for row in rows
    ]
    failed[0] = failed[0] | {"accuracy": float("nan")}
    summary = summarise(failed)
    assert len(summary["run"]["errors"]) == 6 * 3 + 1
    assert (summary["tables"][0]["runs"], summary["tables"][0]["equal"]) == (2, False)
    report = build_report(failed, tmp_path)
    page = report.html.read_text(encoding="utf-8")
    assert "19 failed: see the end." in page
    assert "ValueError: a | &lt;b&gt;" in page
    assert "no finite accuracy" in page
    assert ">failed<br" in page
    assert "n=1" in page
    assert "ValueError: a \\| &lt;b&gt;" in report.markdown.read_text(encoding="utf-8")


def test_what_rows_say_is_never_taken_for_markup(make_row, tmp_path):
    name = "<script>alert(1)</script>|$x_1$"
    rows = [
        make_row("7", name, "inverse", 0.1, 0.5, method, seed, accuracy=accuracy)
        for method, accuracy in [("SVM", 0.9), ("clean", 0.95), (f"m{name}", 0.92)]
        for seed in range(2)
    ]
    rows.append(make_row("7", name, "inverse", 0.1, 0.5, "probgap", 0, accuracy=0.93))
    report = build_report([row | {"command": name} for row in rows], tmp_path)
    page = Page(report.html.read_text(encoding="utf-8"))
    assert page.all("script") == []
    assert name in "".join(page.text)
    for path in (report.markdown, *report.figures):
        assert "<script" not in path.read_text(encoding="utf-8")


def test_a_torn_figure_is_left_out(make_rows, table_specs):
    *rows, figure = make_rows(table_specs[-1:], seeds=1)
    odd = [float("nan"), *figure["details"]["panels"]["x1"][1:]]
    for change in ({"x1": [0.1]}, {"x1": None}, {"x1": odd}):
        panels = figure["details"]["panels"] | change
        row = figure | {"details": {"panels": panels}}
        assert summarise([*rows, row])["panels"] is None
    assert summarise([*rows, figure | {"details": {}}])["panels"] is None
    failed = figure | {"status": "error", "error": "ValueError: no"}
    assert summarise([*rows, failed])["run"]["errors"][0][1] == "ValueError: no"


def test_settings_and_warnings_are_told_by_method(make_row, tmp_path):
    job = ("1", "triangles", "inverse", 0.1, 0.5)
    parameters = {"svm": {"gamma": "auto", "C": 1.0}, "n_smallest": 3, "max_rows": None}
    said = ["BoundaryWarning: 3 of 1500 samples are left", "BoundaryWarning: 1 of 2"]
    rows = [
        make_row(*job, "PGPU", seed, parameters=parameters, warnings=said[: seed + 1])
        for seed in range(2)
    ]
    rows.append(make_row(*job, "probgap", 0, parameters=parameters))
    run = summarise(rows)["run"]
    assert run["settings_used"] == [
        ("PGPU", 2, "n_smallest: 3, svm: {C: 1.0, gamma: auto}"),
        ("probgap", 1, "n_smallest: 3"),  # it has a final classifier of its own
    ]
    assert run["warnings"] == [
        ("PGPU", 2, "BoundaryWarning: … of … samples are left"),
        ("PGPU", 1, "BoundaryWarning: … of …"),
    ]
    report = build_report(rows, tmp_path)
    assert "Warnings" in report.markdown.read_text(encoding="utf-8")
    assert "samples are left" in report.html.read_text(encoding="utf-8")


def test_a_table_that_the_paper_does_not_have_stands_after_its_own(make_rows, tmp_path):
    rows = make_rows([("9", "mine", "linear", [(0.2, None), (0.4, None)])], seeds=2)
    rows = [row | {"finished": "yesterday", "versions": None} for row in rows]
    summary = summarise(rows)
    assert [table["number"] for table in summary["tables"]] == ["9"]
    assert summary["tables"][0]["methods"][-1] == "probgap"
    assert summary["blocks"][-1]["label"] == "Table 9 (mine)"
    assert summary["verdicts"]["blocks"] == 12
    text = build_report(rows, tmp_path).markdown.read_text(encoding="utf-8")
    assert "No cell of these rows has a printed counterpart." in text


def test_a_run_of_which_nothing_came_still_has_a_page(make_row, tmp_path):
    job = ("1", "triangles", "inverse", 0.1, 0.5, "probgap", 0)
    row = make_row(*job, status="error", accuracy=None, error="ValueError: no")
    report = build_report([row], tmp_path)
    assert report.figures == ()
    assert "ValueError: no" in report.html.read_text(encoding="utf-8")


def test_boundaries_are_compared_by_data_set(full_summary):
    found = {(g["data"], g["method"]): g for g in full_summary["boundaries"]}
    assert len(found) == 14
    group = found["triangles", "PGPU"]
    assert (len(group["true"]), group["runs"]) == (14, 140)
    assert group["bias"] < -0.4


def test_a_report_replaces_an_older_one_and_leaves_nothing_else(make_row, tmp_path):
    job = ("8", "tcdb", "real", None, None)
    scores = {"SVM": 0.9, "clean": 0.902, "probgap": 0.903}
    rows = [make_row(*job, method, 0, accuracy=a) for method, a in scores.items()]
    build_report([row | {"command": "first"} for row in rows], tmp_path)
    report = build_report([row | {"command": "second"} for row in rows], tmp_path)
    text = report.markdown.read_text(encoding="utf-8")
    assert "command first" not in text
    assert "- Made by (3 jobs): command second, commit 0a1b2c3" in text
    assert "| **+0.30 pts** |" in text  # labels cost too little for a share
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"report.html", "report.md", "figures"}


def test_small_p_values_are_bounds_and_times_have_units(make_row, tmp_path):
    rows = [
        make_row("9", "a", "linear", alpha / 100, None, method, 0, accuracy=accuracy)
        for alpha in range(20)
        for method, accuracy in (("SVM", 0.9), ("probgap", 0.9 + alpha / 1000))
    ]
    rows[0]["accuracy"], rows[0]["seconds"] = 0.8, 7260.0
    text = build_report(rows, tmp_path).markdown.read_text(encoding="utf-8")
    assert "| <\N{NO-BREAK SPACE}0.0001 |" in text.replace("&lt;", "<")
    assert "- Time in jobs: 2 h 1 min, summed over 40 jobs" in text
    seconds = [row | {"seconds": 1.9} for row in rows]
    text = build_report(seconds, tmp_path).markdown.read_text(encoding="utf-8")
    assert "- Time in jobs: 1 min 16 s, summed over 40 jobs" in text


def test_labellings_without_printed_accuracies_serve_for_boundaries_alone(make_row):
    rows = [make_row("1", "triangles", "inverse", 0.1, 0.5, "PGPU", 0)]
    more = [make_row("boundaries", "triangles", "inverse", 0.1, 1.5, "PGPU", 0)]
    alone, both = summarise(rows), summarise(rows + more)
    assert both["tables"] == alone["tables"]
    assert both["blocks"] == alone["blocks"]
    assert len(both["boundaries"][0]["true"]) == 2


def test_ours_with_the_svm_of_the_others_is_counted_beside_ours(make_rows, tmp_path):
    tables = [("1", "triangles", "inverse", [(0.1, 0.5)])]
    methods = ("SVM", "Elkan", "clean", "probgap", "probgap C=1")
    rows = make_rows(tables, 3, methods)
    for row in rows:
        if row["method"] == "probgap C=1":
            row["accuracy"] = 0.5
    summary = summarise(rows)
    assert summary["verdicts"]["ahead"] == 1
    assert summary["verdicts"]["ahead_plain"] == 0
    text = build_report(rows, tmp_path).markdown.read_text(encoding="utf-8")
    assert "it is ahead in 0 of 1." in text
