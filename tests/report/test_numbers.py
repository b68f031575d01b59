"""Shares, ranks and corrections, against numbers worked by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from probgap.exceptions import InvalidInputError
from probgap.report._printed import printed_scores
from probgap.report._rows import PAPER_METHODS, Score, Setting, read_runs
from probgap.report._shares import block_shares, count_verdicts, summarise_blocks
from probgap.report._statistics import (
    adjust_by_holm,
    average_ranks,
    critical_difference,
    summarise_statistics,
)
from probgap.report._tables import differs


def test_the_share_of_a_block_is_the_mean_of_its_labellings_shares():
    lines = [
        {"SVM": 90.0, "clean": 94.0, "probgap": 93.0},  # 0.75
        {"SVM": 90.0, "clean": 91.0, "probgap": 90.5},  # 0.5
        {"SVM": 90.0, "clean": 90.4, "probgap": 92.0},  # too little to win back
    ]
    found = block_shares(lines)
    assert (found["labellings"], found["qualifying"]) == (3, 2)
    ours = found["methods"]["probgap"]
    assert_allclose(ours["share"], 0.625)
    assert_allclose(ours["pooled"], 5.5 / 5.4)
    assert_allclose(ours["points"], 5.5 / 3.0)


def test_half_a_point_is_enough():
    found = block_shares([{"SVM": 91.7, "clean": 92.2, "probgap": 91.95}])
    assert found["measure"] == "share"
    assert_allclose(found["methods"]["probgap"]["share"], 0.5)


def test_points_are_compared_where_no_share_can_be_trusted():
    found = block_shares([{"SVM": 91.7, "clean": 91.9, "probgap": 92.0}])
    assert found["measure"] == "points"
    assert found["methods"]["probgap"]["share"] is None
    assert found["methods"]["probgap"]["pooled"] is None
    assert_allclose(found["methods"]["probgap"]["points"], 0.3)


def test_nothing_is_measured_without_the_clean_machine():
    found = block_shares([{"SVM": 91.7, "probgap": 92.0}])
    assert found["measure"] is None
    assert found["methods"] == {}


@pytest.mark.parametrize(
    ("table", "method", "pooled"),
    [
        ("1", "PGPU", 0.39),
        ("2", "PGPU", 0.17),
        ("3", "Elkan", 0.29),
        ("4", "PGPU", 0.42),
        ("5", "PGPU", 0.39),
        ("6", "Liu", 0.56),
    ],
)
def test_the_printed_shares_are_those_known_of_the_paper(table, method, pooled):
    blocks = summarise_blocks({}, printed_scores())
    block = next(block for block in blocks if block["table"] == table)
    assert round(block["paper"]["methods"][method]["pooled"], 2) == pooled


def test_the_print_has_73_lines_of_seven_methods_but_for_heart():
    printed = printed_scores()
    assert len(printed) == 73
    for setting, line in printed.items():
        left_out = {"PGPUcv"} if setting.data == "heart" else set()
        assert set(line) == set(PAPER_METHODS) - left_out


def test_verdicts_count_only_what_was_compared():
    setting = Setting("1", "triangles", "inverse", 0.1, 0.5)
    means = {"SVM": 92.0, "clean": 97.0, "PGPU": 93.0, "probgap": 96.0}
    scores = {setting: {method: Score(m, 0.5, 10) for method, m in means.items()}}
    blocks = summarise_blocks(scores, printed_scores())
    verdicts = count_verdicts(blocks)
    assert (verdicts["ahead"], verdicts["compared"], verdicts["blocks"]) == (1, 1, 12)
    assert_allclose(blocks[0]["ours"]["share"], 0.8)
    assert_allclose(blocks[0]["best"]["share"], 0.2)
    # The paper's PGPU has 0.41 in Table 1: 0.8 is ahead, and not quite twice.
    assert blocks[0]["ahead_printed"] is True
    assert blocks[0]["double"] is False
    assert blocks[1]["ahead"] is None


def test_a_labelling_that_ours_did_not_run_on_does_not_count():
    lines = {
        Setting("1", "triangles", "inverse", 0.1, 0.5): {
            "SVM": 90.0, "clean": 92.0, "Elkan": 91.0, "probgap": 91.5,
        },
        Setting("1", "triangles", "inverse", 0.1, 1.0): {
            "SVM": 90.0, "clean": 92.0, "Elkan": 92.0,
        },
    }  # fmt: skip
    scores = {
        setting: {method: Score(m, None, 1) for method, m in line.items()}
        for setting, line in lines.items()
    }
    block = summarise_blocks(scores, {})[0]
    assert_allclose(block["best"]["share"], 0.5)
    assert block["ahead"] is True


def test_ranks_are_averaged_and_ties_shared():
    accuracy = np.array([[90.0, 95.0, 93.0], [90.0, 90.0, 80.0]])
    assert_allclose(average_ranks(accuracy), [2.25, 1.25, 2.5])


@pytest.mark.parametrize(
    ("n_methods", "quantile"), [(2, 1.960), (5, 2.728), (10, 3.164)]
)
def test_critical_difference_is_that_of_demsars_table(n_methods, quantile):
    n_settings = 14
    expected = quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_settings))
    assert_allclose(critical_difference(n_methods, n_settings), expected, rtol=5e-4)


def test_holm_steps_down():
    # Sorted: 0.005 * 4, 0.01 * 3, 0.03 * 2, 0.04 * 1, each no less than the one before.
    adjusted = adjust_by_holm([0.01, 0.04, 0.03, 0.005])
    assert_allclose(adjusted, [0.03, 0.06, 0.06, 0.02])
    assert adjust_by_holm([0.9, 0.8]) == [1.0, 1.0]
    assert adjust_by_holm([]) == []


def test_the_signed_rank_test_is_exact_for_few_labellings():
    # Six wins of six: p = 2 / 2**6.
    scores = {
        Setting("1", "triangles", "inverse", alpha, None): {
            "SVM": Score(90.0, None, 1),
            "probgap": Score(91.0 + alpha, None, 1),
        }
        for alpha in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    }
    (pair,) = summarise_statistics(scores)["pairs"]
    assert_allclose(pair["p"], 2 / 2**6)
    assert (pair["wins"], pair["ties"], pair["losses"]) == (6, 0, 0)
    assert_allclose(pair["median"], 1.35)
    assert (pair["block_wins"], pair["blocks"]) == (1, 1)


def test_a_method_that_ties_everywhere_is_no_different():
    line = {"SVM": Score(90.0, None, 1), "probgap": Score(90.0, None, 1)}
    line |= {"Liu": Score(90.0, None, 1)}
    scores = {Setting("1", "a", "linear", a, None): line for a in (0.1, 0.2)}
    found = summarise_statistics(scores)
    assert [pair["p"] for pair in found["pairs"]] == [1.0, 1.0]
    assert found["rankings"][0]["p"] is None


def test_pgpucv_is_ranked_where_it_ran(full_summary):
    first, second = full_summary["statistics"]["rankings"]
    assert (first["settings"], first["left_out"]) == (74, ["PGPUcv"])
    assert (second["settings"], second["without"]) == (65, ["heart"])
    assert "PGPUcv" in second["methods"]
    assert first["methods"][0] == "probgap"


@pytest.mark.parametrize(
    ("ours", "paper", "expected"),
    [
        (Score(95.0, 1.0, 10), Score(97.1, 0.5, None), True),
        (Score(95.0, 1.0, 10), Score(97.0, 0.5, None), False),
        (Score(95.0, 0.1, 10), Score(97.1, 1.1, None), False),
        (Score(95.0, 0.1, 10), Score(97.1, None, None), True),
        (Score(95.0, None, 1), Score(97.1, None, None), False),
        (None, Score(97.1, None, None), False),
    ],
)
def test_cells_differ_by_the_greater_deviation(ours, paper, expected):
    assert differs(ours, paper) is expected


def test_of_two_rows_of_a_job_the_good_one_counts(make_row):
    job = ("1", "triangles", "inverse", 0.1, 0.5, "SVM", 0)
    old = make_row(*job, accuracy=0.9)
    new = make_row(*job, accuracy=0.8, finished="2026-11-17T00:00:00Z")
    failed = make_row(*job, status="error", finished="2026-11-18T00:00:00Z")
    (line,) = read_runs([failed, new, old]).scores.values()
    assert line == {"SVM": Score(80.0, None, 1)}


def test_means_and_sample_deviations_are_in_percent(make_row):
    job = ("1", "triangles", "inverse", 0.1, 0.5, "SVM")
    rows = [make_row(*job, seed, accuracy=a) for seed, a in enumerate((0.90, 0.92))]
    (line,) = read_runs(rows).scores.values()
    assert_allclose(line["SVM"].mean, 91.0)
    assert_allclose(line["SVM"].sd, np.sqrt(2.0))
    assert line["SVM"].n == 2


def test_rows_that_are_none_or_not_rows_are_named():
    with pytest.raises(InvalidInputError, match=r"at least one row\. Got none"):
        read_runs([])
    with pytest.raises(InvalidInputError, match=r"Got one without \['data'"):
        read_runs([{"table": "1"}])
