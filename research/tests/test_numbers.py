"""Shares, ranks and corrections in the summary, against numbers worked by hand."""

from itertools import product

import pytest
from numpy.testing import assert_allclose

from probgap.exceptions import InvalidInputError
from research.paper.summary import summarise

# Labellings of Table 1 that the paper prints, and more.
SETTINGS = [(a / 10, b) for b, a in product((0.5, 1.0, 1.5, 2.0, 2.5), (1, 2, 3))]


def make(*lines, data="triangles"):
    """Rows of Table 1, one labelling a line: accuracies in percent by method."""
    return [
        {
            "table": "1",
            "data": data,
            "labelling": f"inverse({alpha}, {beta})",
            "rate": "inverse",
            "alpha": alpha,
            "beta": beta,
            "method": method,
            "seed": seed,
            "accuracy": accuracy / 100.0,
        }
        for (alpha, beta), line in zip(SETTINGS, lines, strict=False)
        for method, values in line.items()
        for seed, accuracy in enumerate(
            values if isinstance(values, list) else [values]
        )
    ]


def first_block(*lines):
    return summarise(make(*lines))["blocks"][0]


def test_the_share_of_a_block_is_the_mean_of_its_labellings_shares():
    block = first_block(
        {"SVM": 90.0, "clean": 94.0, "probgap": 93.0},  # 0.75
        {"SVM": 90.0, "clean": 91.0, "probgap": 90.5},  # 0.5
        {"SVM": 90.0, "clean": 90.4, "probgap": 92.0},  # too little to win back
    )
    assert (block["run"]["labellings"], block["run"]["qualifying"]) == (3, 2)
    assert_allclose(block["run"]["share"]["probgap"], 0.625)
    assert_allclose(block["run"]["points"]["probgap"], 5.5 / 3.0)


def test_half_a_point_is_enough():
    block = first_block({"SVM": 91.7, "clean": 92.2, "probgap": 91.95})
    assert block["run"]["measure"] == "share"
    assert_allclose(block["run"]["gains"]["probgap"], 0.5)


def test_points_are_compared_where_no_share_can_be_trusted():
    block = first_block({"SVM": 91.7, "clean": 91.9, "probgap": 92.0})
    assert block["run"]["measure"] == "points"
    assert block["run"]["share"] == {}
    assert_allclose(block["run"]["gains"]["probgap"], 0.3)


def test_nothing_is_measured_without_the_clean_svm():
    block = first_block({"SVM": 91.7, "probgap": 92.0})
    assert block["run"]["measure"] is None
    assert block["run"]["gains"] == {}


@pytest.fixture(scope="module")
def blocks():
    return summarise(make({"SVM": 90.0}))["blocks"]


@pytest.mark.parametrize(
    ("place", "method", "share"),
    [
        (0, "PGPU", 0.41),
        (1, "PGPU", 0.23),
        (2, "Elkan", 0.32),
        (3, "PGPU", 0.41),
        (4, "PGPU", 0.47),
        (5, "Liu", 0.45),
    ],
)
def test_the_printed_shares_are_those_known_of_the_paper(blocks, place, method, share):
    block = blocks[place]
    assert block["paper"]["best"] == block["paper_rival"] == method
    assert round(block["paper"]["share"][method], 2) == share


def test_the_print_has_73_lines_of_seven_methods_but_for_heart(full_summary):
    printed = [
        (group["data"], [c["method"] for c in line["cells"] if c["paper_mean"]])
        for table in full_summary["tables"]
        for group in table["groups"]
        for line in group["lines"]
    ]
    assert len(printed) == 74
    assert printed.count(("banana", [])) == 1
    for data, methods in printed:
        if not methods:
            continue
        assert len(methods) == (6 if data == "heart" else 7)
        assert ("PGPUcv" in methods) == (data != "heart")


def test_verdicts_count_only_what_was_compared():
    line = {"SVM": 92.0, "clean": 97.0, "PGPU": 93.0, "probgap": 96.0}
    summary = summarise(make(line))
    blocks, verdicts = summary["blocks"], summary["verdicts"]
    assert (verdicts["ahead"], verdicts["compared"], verdicts["blocks"]) == (1, 1, 12)
    assert_allclose(blocks[0]["run"]["gains"]["probgap"], 0.8)
    assert_allclose(blocks[0]["run"]["gains"]["PGPU"], 0.2)
    assert (blocks[0]["ahead"], blocks[1]["ahead"]) == (True, None)
    assert (verdicts["own_here"], verdicts["same_rival"]) == (1, 1)


def test_a_labelling_that_ours_did_not_run_on_does_not_count():
    block = first_block(
        {"SVM": 90.0, "clean": 92.0, "Elkan": 91.0, "probgap": 91.5},
        {"SVM": 90.0, "clean": 92.0, "Elkan": 92.0},
    )
    assert_allclose(block["run"]["gains"]["Elkan"], 0.5)
    assert block["ahead"] is True


def test_ranks_are_averaged_and_ties_shared():
    rows = make(
        {"SVM": 90.0, "Liu": 95.0, "probgap": 93.0},
        {"SVM": 90.0, "Liu": 90.0, "probgap": 80.0},
    )
    ranks = summarise(rows)["statistics"]["ranks"]
    assert ranks == {"SVM": 2.25, "Liu": 1.25, "probgap": 2.5}


def test_the_signed_rank_test_is_exact_for_few_labellings_and_holm_steps_down():
    # All of n are won, so p = 2 / 2**n; Holm: 3 p, 2 p and p, none less than the last.
    runs = {"SVM": 6, "Liu": 5, "PGPU": 4}
    lines = [
        {"probgap": 91.0 + i / 10} | {m: 90.0 for m, n in runs.items() if i < n}
        for i in range(6)
    ]
    pairs = {p["method"]: p for p in summarise(make(*lines))["statistics"]["pairs"]}
    assert_allclose([pairs[m]["p"] for m in runs], [2 / 2**6, 2 / 2**5, 2 / 2**4])
    assert_allclose([pairs[m]["p_holm"] for m in runs], [6 / 2**6, 4 / 2**5, 4 / 2**5])
    first = pairs["SVM"]
    assert (first["wins"], first["ties"], first["losses"]) == (6, 0, 0)
    assert_allclose(first["median"], 1.25)
    assert (first["block_wins"], first["blocks"]) == (1, 1)


def test_a_method_that_ties_everywhere_is_no_different():
    line = {"SVM": 90.0, "Liu": 90.0, "probgap": 90.0}
    found = summarise(make(line, line))["statistics"]
    assert [pair["p"] for pair in found["pairs"]] == [1.0, 1.0]
    assert [pair["p_holm"] for pair in found["pairs"]] == [1.0, 1.0]
    assert set(found["ranks"].values()) == {2.0}


def test_pgpucv_is_ranked_where_it_ran(full_summary):
    found = full_summary["statistics"]
    assert (found["settings"], found["ranked"], found["data_sets"]) == (74, 65, 8)
    assert min(found["ranks"], key=found["ranks"].get) == "probgap"
    assert "PGPUcv" in found["ranks"]


@pytest.mark.parametrize(
    ("method", "ours", "expected"),
    [
        # Printed as 92.00 ± 0.42: the greater deviation counts, twice.
        ("SVM", [94.0, 96.0], True),  # by 3.0, ours ± 1.41
        ("SVM", [93.7, 95.8], False),  # by 2.75, ours ± 1.48
        ("SVM", [92.8, 92.81], False),  # by 0.805 < 0.84
        ("SVM", [92.9, 92.91], True),
        ("SVM", 92.9, True),  # one run has no deviation
        # Printed as 97.20 alone: our deviation counts, and without it nothing does.
        ("clean", [97.4, 97.6], True),
        ("clean", [97.2, 97.6], False),
        ("clean", 50.0, False),
    ],
)
def test_cells_differ_by_the_greater_deviation(method, ours, expected):
    (line, *_) = summarise(make({method: ours}))["tables"][0]["groups"][0]["lines"]
    (cell,) = [cell for cell in line["cells"] if cell["method"] == method]
    assert cell["differs"] == expected


def cell_of(rows):
    (line, *_) = summarise(rows)["tables"][0]["groups"][0]["lines"]
    return [line["cells"][0][name] for name in ("mean", "sd", "n")]


def test_of_two_rows_of_a_job_the_good_one_counts(make_row):
    job = ("1", "triangles", "inverse", 0.1, 0.5, "SVM", 0)
    old = make_row(*job, accuracy=0.9)
    new = make_row(*job, accuracy=0.8, finished="2026-11-17T00:00:00Z")
    failed = make_row(*job, status="error", finished="2026-11-18T00:00:00Z")
    assert cell_of([failed, new, old]) == [80.0, None, 1]


def test_means_and_sample_deviations_are_in_percent():
    assert_allclose(cell_of(make({"SVM": [90.0, 92.0]})), [91.0, 2.0**0.5, 2])


def test_no_rows_are_refused():
    with pytest.raises(InvalidInputError, match=r"at least one row\. Got none"):
        summarise([])
