import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from probgap.boundary import (
    Boundary,
    MeanSmallest,
    Quantile,
    estimate_boundary,
    share_below,
)
from probgap.exceptions import BoundaryWarning, InvalidInputError


@pytest.fixture
def gaps(rng):
    """Unlabelled gaps near -0.9 and labelled ones from -0.6 up."""
    unlabelled = rng.uniform(-1.0, -0.8, 200)
    labelled = np.concatenate([[-0.6, -0.5, -0.4], rng.uniform(-0.3, 1.0, 97)])
    gap = np.concatenate([unlabelled, labelled])
    return gap, np.arange(gap.size) >= 200


def test_rules_by_hand(gaps):
    for n_smallest, expected in ((1, -0.6), (2, -0.55), (3, -0.5)):
        found = estimate_boundary(*gaps, rule=MeanSmallest(n_smallest))
        assert found.value == pytest.approx(expected)
        assert found.rule == "mean_smallest"
    found = estimate_boundary(*gaps, rule=Quantile(0.1))
    assert found.value == pytest.approx(np.quantile(gaps[0][gaps[1]], 0.1))
    assert found.names == ("quantile", "mean_smallest")  # what answers comes first


def test_a_fixed_value_is_taken_at_its_word(gaps):
    found = estimate_boundary(*gaps, rule=-0.7)
    assert (found.value, found.rule, found.spread) == (-0.7, "fixed", 0.0)
    assert (found.n_negative, found.n_undecided) == (
        200,
        int((gaps[0] > -0.7).sum() - (gaps[0] > 0).sum()),
    )
    assert found.n_negative + found.n_undecided + found.n_positive == gaps[0].size


def test_spread_measures_how_much_the_rule_moves(gaps):
    infimum = estimate_boundary(*gaps, rule=MeanSmallest(1))
    robust = estimate_boundary(*gaps, rule=MeanSmallest(20))
    assert infimum.spread > 0.0
    assert robust.spread > 0.0
    assert np.isnan(estimate_boundary(*gaps, rule=Quantile(), n_bootstrap=0).spread)
    again = estimate_boundary(*gaps, rule=MeanSmallest(1))
    assert again == infimum


def test_a_boundary_not_below_zero_falls_back_to_the_sign_of_the_gap():
    gap = np.concatenate([np.full(50, -0.5), np.full(50, 0.5)])
    with pytest.warns(BoundaryWarning, match=r"0\.5, is not below 0: .*unlabelled"):
        found = estimate_boundary(gap, np.arange(100) >= 50, rule=MeanSmallest())
    assert -1e-300 < found.value < 0.0
    assert found.fallback is not None
    assert found.n_negative == 50


def test_a_boundary_that_leaves_no_negatives_falls_back_to_the_lowest_quarter():
    gap = np.concatenate([np.linspace(-0.6, -0.2, 101), [-0.99, 0.3]])
    labelled = np.arange(103) >= 101
    with pytest.warns(BoundaryWarning, match=r"leave negatives.* 0\.0% .*Quantile"):
        found = estimate_boundary(gap, labelled, rule=MeanSmallest(1))
    assert found.value == pytest.approx(-0.5)
    assert found.n_negative >= 25


@given(
    seed=st.integers(0, 2**32 - 1),
    rule=st.sampled_from([None, MeanSmallest(1), Quantile(), -0.5]),
    n=st.integers(2, 60),
)
def test_whatever_the_gaps_the_boundary_is_usable(seed, rule, n):
    rng = np.random.default_rng(seed)
    gap = rng.uniform(-1.0, rng.uniform(-0.9, 1.0), n)
    labelled = np.arange(n) < rng.integers(1, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundaryWarning)
        found = estimate_boundary(gap, labelled, rule=rule, n_bootstrap=5)
    assert isinstance(found, Boundary)
    assert -1.0 <= found.value <= 1.0
    assert (gap[~labelled] <= found.value).any()
    assert found.n_negative + found.n_undecided + found.n_positive == n


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rule": np.array([-0.5, -0.6])}, r"boundary must be 'auto', .* Got array"),
        ({"rule": 0.1}, r"boundary must lie in \(-1, 0\)\. Got 0\.1"),
        ({"rule": -1.0}, r"boundary must lie in \(-1, 0\)\. Got -1\.0"),
        ({"rule": "best"}, r"boundary must be 'auto', .* Got 'best'"),
        ({"rule": MeanSmallest(0)}, r"at least 1\. Got 0"),
        ({"rule": MeanSmallest(2.5)}, r"at least 1\. Got 2\.5"),
        ({"rule": Quantile(1.5)}, r"lie in \[0, 1\]\. Got 1\.5"),
        ({"rule": Quantile("low")}, r"lie in \[0, 1\]\. Got 'low'"),
    ],
)
def test_bad_rules_are_refused(gaps, parameters, message):
    with pytest.raises(ValueError, match=message):
        estimate_boundary(*gaps, **parameters)


def test_samples_count_by_what_they_stand_for(gaps):
    gap, labelled = gaps
    weight = np.where(labelled, 1.0, 3.0)
    rows = np.repeat(np.arange(gap.size), weight.astype(int))
    settings = {"rule": MeanSmallest(), "n_bootstrap": 0}
    some = estimate_boundary(gap, labelled, sample_weight=weight, **settings)
    whole = estimate_boundary(gap[rows], labelled[rows], **settings)
    assert some.scores == pytest.approx(whole.scores)
    for name in ("value", "n_negative", "n_undecided", "n_positive"):
        assert getattr(some, name) == getattr(whole, name)


@pytest.mark.parametrize(
    ("labelled", "missing"), [([0, 0], "labelled"), ([1, 1], "unlabelled")]
)
def test_both_kinds_of_sample_are_needed(labelled, missing):
    with pytest.raises(ValueError, match=rf"Got no {missing} sample\."):
        estimate_boundary([0.1, 0.2], labelled)


def test_the_answers_of_all_rules_are_kept_with_their_scores(rng):
    labelled = rng.random(200) < 0.3
    gap = np.where(labelled, rng.uniform(-0.5, 0.9, 200), rng.uniform(-1.0, -0.2, 200))
    found = estimate_boundary(gap, labelled, rule=-0.6)
    assert found.names == ("fixed", "mean_smallest", "quantile")
    assert found.candidates[0] == found.value
    for name, value, score in zip(
        found.names[1:], found.candidates[1:], found.scores[1:], strict=True
    ):
        rule = {"mean_smallest": MeanSmallest(), "quantile": Quantile()}[name]
        assert value == estimate_boundary(gap, labelled, rule=rule).value
        called = gap > value
        recall = called[labelled].mean()
        assert score == pytest.approx(recall**2 / called.mean())


def test_a_value_that_was_moved_is_among_the_candidates():
    gap, labelled = np.linspace(-0.9, 0.9, 50), np.arange(50) >= 45
    with pytest.warns(BoundaryWarning, match="below 0"):
        found = estimate_boundary(gap, labelled, rule=MeanSmallest())
    assert found.names[-1] == "fallback"
    assert found.candidates[-1] == found.value < 0.0 < found.candidates[0]


def test_a_notebook_shows_the_candidates(rng):
    gap, labelled = rng.uniform(-1.0, 0.5, 100), np.arange(100) < 20
    html = estimate_boundary(gap, labelled, rule=-0.5)._repr_html_()
    assert "fixed \N{MINUS SIGN}0.5 (" in html
    assert "; quantile " in html
    bare = Boundary(-0.5, "fixed", 0.0, 1, 1, 1)
    assert "candidates" not in bare._repr_html_()
    grid = replace(bare, candidates=(-0.9, -0.5), scores=(0.7, 0.9))
    low, high = "\N{MINUS SIGN}0.9", "\N{MINUS SIGN}0.5"
    assert f"2 from {low} to {high} (0.7 to 0.9)" in grid._repr_html_()
    useless = replace(grid, scores=(-np.inf, -np.inf))
    assert "2, none usable" in useless._repr_html_()


def test_the_share_below_the_kth_gap_is_a_beta_variable():
    rng = np.random.default_rng(0)
    below = np.sort(rng.random((4000, 50)), axis=1)[:, 2]  # uniform: the share itself
    assert stats.kstest(below, stats.beta(3, 48).cdf).pvalue > 0.01
    assert np.mean(below <= share_below(3, 50)) == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize(
    "rule", [MeanSmallest(1), MeanSmallest(3), Quantile(0.05), -0.8]
)
def test_at_most_that_share_of_new_labelled_positives_lies_below(rule):
    rng, law = np.random.default_rng(1), stats.beta(1.0, 2.0, loc=-0.98, scale=1.98)
    held = []
    for _ in range(400):
        # Positives deep among the negatives: nothing is assumed of overlap.
        gap = np.append(law.rvs(80, random_state=rng), -0.99)
        labelled = gap > -0.985
        found = estimate_boundary(gap, labelled, rule=rule, n_bootstrap=0)
        held.append(law.cdf(found.value) <= found.share_below)
    assert np.mean(held) >= 0.93
    assert np.mean(held) < 1.0 or isinstance(rule, float)


def test_hidden_positives_below_are_bounded_where_the_rate_is():
    assert share_below(2, 40, largest_rate=0.75) == pytest.approx(
        3.0 * share_below(2, 40)
    )
    assert share_below(41, 40) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 10), "rank must be at least 1"),
        ((1, 10, 1.0), "level must lie in"),
        ((1, 10, 0.9, 1.0), "largest_rate must lie in"),
    ],
)
def test_what_bounds_no_share_is_refused(arguments, message):
    rank, n, *others = arguments
    with pytest.raises(InvalidInputError, match=message):
        share_below(
            rank, n, **dict(zip(("level", "largest_rate"), others, strict=False))
        )
