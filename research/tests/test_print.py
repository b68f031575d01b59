"""What the print shows by itself, and which choice moves which column."""

import pandas as pd
import pytest

from research.paper.printed import (
    LINE,
    compare_ranges,
    count_lines,
    count_multiples,
    count_narrow,
    count_shared_sds,
    describe_print,
    find_equal,
    find_misplaced_bold,
)
from research.paper.summary import summarise


def printed(*cells):
    """A print of a few cells: table, data, line, method, mean, deviation, bold."""
    columns = [*LINE, "method", "paper_mean", "paper_sd", "bold"]
    return pd.DataFrame(cells, columns=columns)


PRINT = printed(
    ("1", "a", "x", "SVM", 90.0, 1.0, False),
    ("1", "a", "x", "Liu", 90.0, 1.0, True),
    ("1", "a", "x", "PGPU", 91.0, 2.0, False),
    ("1", "a", "x", "clean", 95.0, None, False),
    ("4", "b", "x", "SVM", 90.0, 1.5, True),
    ("4", "b", "x", "Liu", 80.0, 1.0, False),
    ("4", "b", "y", "SVM", 90.0, 1.5, True),
    ("4", "b", "x", "clean", 94.0, None, False),
    ("4", "b", "y", "clean", 97.0, None, False),
)


def test_the_counts_by_hand():
    assert count_shared_sds(PRINT, "a", "b") == (1, 3)  # Liu's
    assert count_multiples(pd.Series([33.33, 66.67, 50.0, 66.66]), 3) == 2
    equal = ["Table 1, a, x: SVM = Liu", "Table 4, b, SVM: x = y"]
    assert find_equal(PRINT) == equal
    assert find_misplaced_bold(PRINT) == ["Table 1, a, x: Liu"]
    # 95 lies between 94 and 97, and the least of these is one below it.
    assert compare_ranges(PRINT, "a", "b")["within"] == (1, 1)
    assert compare_ranges(PRINT, "b", "a") == {"within": (0, 2), "above": -1.0}
    # Of 250 rows, 90% has a deviation of 1.9 points; of 500, 1.34.
    assert count_narrow(PRINT) == (1, 3)


def test_lines_are_counted_alone_or_level():
    lines = pd.DataFrame(
        {"SVM": [90.0, 90.0], "Natarajan": [89.0, 90.0], "PGPU": [90.0, 89.0]}
    )
    assert count_lines(lines) == {
        "best": (1, 2),
        "PGPU": (0, 2),
        "PGPUcv": (0, 0),
        "Natarajan": (1, 2),
    }


def test_what_the_paper_prints():
    found = describe_print()
    assert found["shared_sds"] == (45, 45)
    assert found["thirds"] == (53, 54)
    assert found["rows_250"] == found["rows_500"] == (14, 14)
    assert found["splice"]["within"] == (7, 9)
    assert found["narrow"] == (27, 28)
    assert found["inverse"] == (6, 9)
    assert len(found["equal"]) == 7
    assert [text[:14] for text in found["misplaced"]] == ["Table 7, image"] * 2


def test_the_print_is_counted_as_it_stands(full_summary):
    lines = full_summary["lines"]["paper"]
    counts = {"best": (51, 73), "PGPU": (37, 73), "PGPUcv": (57, 64)}
    assert lines == counts | {"Natarajan": (57, 73)}


def test_a_variant_stands_beside_the_tables_and_the_print(make_row):
    job = ("triangles", "constant", 0.2, None)  # the SVM is printed as 94.52
    scores = {"3": 0.97, "raw": 0.96, "raw1000": 0.95}
    rows = [make_row(t, *job, "SVM", 0, accuracy=a) for t, a in scores.items()]
    rows += [make_row(t, *job, "PGPU", 0, accuracy=0.98) for t in ("3", "raw")]
    summary = summarise(rows)
    variants = summary["variants"]
    less = [round(row["SVM"], 2) for row in variants["columns"]]
    assert less == [2.48, 1.48, 0.48] * 2  # of Table 3, and of all
    assert [row["best"] for row in variants["lines"]] == [(1, 1), (1, 1), (0, 1)]
    (naive,) = variants["naive"]
    assert (naive["printed"], naive["raw"]) == (94.52, pytest.approx(96.0))
    alone = summarise([row for row in rows if row["table"] == "3"])
    assert summary["tables"] == alone["tables"]  # variants are not in them
    assert alone["variants"]["columns"] == []


def test_n_and_forms_are_compared_where_they_ran(make_row):
    real = ("tcdb", "real", None, None)
    tables = [("8", 0.77, 0.93), ("smallest3", 0.80, None), ("weighted", None, 0.94)]
    rows = [
        make_row(table, *real, method, seed, accuracy=accuracy)
        for table, *scores in tables
        for method, accuracy in zip(("PGPU", "Elkan"), scores, strict=True)
        if accuracy
        for seed in range(2)
    ]
    found = summarise(rows)["variants"]
    less = {row["n"]: round(row["difference"], 2) for row in found["smallest"]}
    assert less == {1: -7.3, 3: -4.3}  # printed as 84.30
    (elkan,) = found["elkan"]
    assert elkan["weighted"]["difference"] == pytest.approx(94.0 - 84.14)
    assert elkan["scaling"]["paper_sd"] is None


def test_boundaries_at_their_extremes(full_summary):
    found = full_summary["extremes"]
    assert (found["labellings"], found["outside"]) == (17, 12)
    assert found["highest"] < 0.0


def test_a_class_for_what_is_left_out_stands_beside_leaving_it_out(make_row):
    line = ("triangles", "constant", 0.2, None)
    rows = [make_row("3", *line, "PGPU", 0, accuracy=0.96)]
    for table, spread in (("semi", 0.95), ("semikept", 0.98)):
        named = {"unweighted": 0.96, "self-training": 0.96, "label spreading": spread}
        rows += [make_row(table, *line, m, 0, accuracy=a) for m, a in named.items()]
    found = summarise(rows)["variants"]
    (row,) = found["filled"]
    assert (row["data"], row["rate"]) == ("triangles", "constant")
    assert row["cells"]["label spreading, kept"] == pytest.approx(98.0)
    assert row["cells"]["PGPU"] == pytest.approx(96.0)
    above = found["filled_counts"]
    assert above.pop("label spreading, kept") == (1, 1)
    assert set(above.values()) == {(0, 1)}
