"""Random small tables end in results or in one sentence, never in a traceback."""

import csv
import io
import random
import re
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

NAMES = st.sampled_from(
    ["size", "id", "found", "date", "😀", "größe", "a,b", "=x", "row"]
)
NAMES |= st.text(max_size=6)
WORDS = st.lists(st.sampled_from(["late", "paid", "again", "日本", "!"]), min_size=4)
CELLS = [
    st.floats(-9, 9).map(lambda x: f"{x:.2f}"),
    st.integers(-3, 3).map(str),
    st.sampled_from(["red", "blue", "grün", ""]),
    st.sampled_from(
        ["", "NA", "inf", "1e308", "-1e308", "1e999", "0", "-0", "01", "1,5"]
    ),
    st.sampled_from(
        ["=cmd()", "<script>", "true", "no", "2020-01-01", "99999999999999999"]
    ),
    WORDS.map(" ".join),
    st.text(max_size=5),
]
MARKS = [
    ["yes", ""],
    ["1", "0"],
    ["1.0", "", "", ""],
    ["True", "False", "False"],
    ["=fraud", "no", "NA"],
    ["a", "b", ""],
    ["<b>", "0", "-1"],
]


@st.composite
def tables(draw):
    """A label column and a few others, as CSV, with a delimiter and an encoding."""
    n_rows = draw(st.integers(2, 40))
    names = [
        "mark",
        *draw(st.lists(NAMES, min_size=1, max_size=5, unique_by=str.strip)),
    ]
    # Cells come from pools: examples stay small, and values come back.
    rng = random.Random(draw(st.integers(0, 99)))
    pools = [draw(st.sampled_from(MARKS))]
    pools += [
        draw(st.lists(draw(st.sampled_from(CELLS)), min_size=1, max_size=20))
        for _ in names[1:]
    ]
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=draw(st.sampled_from(",;\t|")))
    writer.writerow(names)
    writer.writerows([rng.choice(pool) for pool in pools] for _ in range(n_rows))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))
    return text.getvalue().encode(encoding, "replace"), names


PROGRESS = re.compile(r"^(\w[\w ]+ \.\.\.\n)+")


def try_table(table, data, probgap, is_one_sentence):
    content, names = table
    name_of_rows = data.draw(st.none() | st.sampled_from(names[1:]))
    words = [] if name_of_rows is None else ["--id", name_of_rows]
    words += data.draw(st.sampled_from([["--quiet"], ["--json"], []]))
    words += data.draw(st.sampled_from([["--fast"], []]))

    def run(*command):
        result = probgap(*command)
        said = PROGRESS.sub("", result.stderr)
        event(f"{command[0]} {said.replace(str(place), '') or 'worked'}")
        assert result.exit_code in (0, 1)
        if result.exit_code == 1:
            is_one_sentence(said, "")
        else:
            assert said == ""
        return result.exit_code == 0

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "t.csv").write_bytes(content)
        out = place / "out"
        if run("fit", place / "t.csv", "--label", "mark", "--out", out, *words):
            assert run("predict", out / "model.probgap", place / "t.csv")
            run("explain", out)
            if name_of_rows is None:
                assert run("explain", out, "--row", "1")
        else:
            assert [path.name for path in place.iterdir()] == ["t.csv"]


EASY = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@settings(EASY, max_examples=3)
@given(table=tables(), data=st.data())
def test_a_random_table_gives_results_or_one_sentence(
    table, data, probgap, is_one_sentence
):
    try_table(table, data, probgap, is_one_sentence)
