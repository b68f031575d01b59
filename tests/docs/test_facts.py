"""Pages agree with each other and with the code: a fact that stands twice is the same."""

import re
from pathlib import Path

import pytest

from probgap.cli._app import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
if not (DOCS / "performance.md").is_file():
    pytest.skip("the documentation is not beside the tests", allow_module_level=True)

GENERATED = ("CHANGELOG.md", "report.md", "layers.md")
DEFAULT, REAL = "design/default.md", "design/real_tables.md"
# What a fact is called: where it stands, and as what.
FACTS = {
    "seconds to fit a million rows": {
        "../README.md": r"fitted in (\d+) CPU seconds",
        "performance.md": r"\| 1,000,000, 20 \| (\d+) \|",
        "howto/large_data.md": r"columns are fitted in (\d+) seconds",
        "howto/gpu.md": r"a million rows in (\d+) seconds",
    },
    "gigabytes to fit a million rows": {
        "../README.md": r"one core with ([\d.]+) GB",
        "performance.md": r"\| 1,000,000, 20 \| \d+ \| ([\d.]+) GB",
        "howto/large_data.md": r"with ([\d.]+) GB",
    },
    "seconds to predict a million rows": {
        "../README.md": r"and predicted in (\d+)",
        "performance.md": r"are predicted in (\d+) seconds",
        "howto/large_data.md": r"and predicted in (\d+)",
    },
    "average precision of the default, most labelled and few": {
        "../README.md": r"`PGPUClassifier\(\)`\*\* \| \*\*([\d.]+)\*\* \| \*\*([\d.]+)",
        DEFAULT: r"default \| \*\*1.53\*\* \| 3 \| \*\*([\d.]+)\*\*.* \*\*([\d.]+)\*\* \|",
    },
    "average precision of the paper's method, most labelled and few": {
        "../README.md": r"`PGPUClassifier.paper\(strict=False\)` \| ([\d.]+) \| ([\d.]+)",
        DEFAULT: r"paper\(\)` \| 0.16 \| 7 \| ([\d.]+) \| 0.23 \| 0 \| ([\d.]+)",
    },
    "coverage where the assumption is broken": {
        "../README.md": r"(\d+)% when our main assumption was broken",
        "guide/estimate.md": r"in (\d+)% where labelling\s+was stranger",
        DEFAULT: r"one column \| 36 \| 0.53 \| 1 \| (\d+)%",
    },
    "bad fits, and how many of them were warned of": {
        "guide/belief.md": r"of (\d+) bad fits [^.]*\bit\s+warned of (\d+)",
        DEFAULT: r"Of (\d+) bad fits [^.]* warned of (\d+)",
    },
    "average precision on real tables, ours and naive": {
        "../README.md": r"average precision ([\d.]+) against ([\d.]+)",
        REAL: r"\| all \| +\| +\|.* ([\d.]+) \| ([\d.]+) \| [\d.]+ \| [\d.]+ \|\n",
    },
}


def read(page):
    return (DOCS / page).read_text("utf-8")


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_is_the_same_wherever_it_stands(name):
    found = {page: re.search(fact, read(page)) for page, fact in FACTS[name].items()}
    assert all(found.values()), found
    assert len({match.groups() for match in found.values()}) == 1, found


def pages():
    paths = [*DOCS.glob("*.md"), *DOCS.glob("*/*.md"), *ROOT.glob("*.md")]
    return {path for path in paths if path.name not in GENERATED}


def test_a_benchmark_that_a_page_cites_exists():
    cited = {
        name
        for page in pages()
        for name in re.findall(
            r"\b(?:benchmarks|examples|tools)/[\w/]+\.py\b", page.read_text("utf-8")
        )
    }
    assert len(cited) > 10
    assert {name for name in cited if not (ROOT / name).is_file()} == set()


def test_the_tutorial_lists_every_command():
    listed = set(re.findall(r"^\| `probgap (\w+)", read("tutorial.md"), re.MULTILINE))
    known = {
        command.name or command.callback.__name__ for command in app.registered_commands
    }
    assert listed == known


def test_the_glossary_has_at_most_twenty_terms():
    assert len(re.findall(r"^: ", read("glossary.md"), re.MULTILINE)) <= 20


def test_words_that_the_glossary_replaced_are_gone():
    old = re.compile(
        r"\b(?:rooms?|two worlds|an account|the account)\b|\ba reading\b|\bthe reading\b",
        re.IGNORECASE,
    )
    found = {
        (page.name, word)
        for page in pages()
        for word in old.findall(page.read_text("utf-8"))
    }
    assert found == set()
