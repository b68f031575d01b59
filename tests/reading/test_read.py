"""Boundary, posterior and count from scores: what holds whatever the network says."""

import json
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from probgap.exceptions import InvalidInputError
from probgap.reading import read


def scored(n=1200, share=0.4, rate=0.5, apart=4.0, seed=0):
    """Scores of two normal classes, of which positives are labelled at random."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < share
    labelled = positive & (rng.random(n) < rate)
    return rng.normal(apart * positive), labelled, positive


@pytest.mark.parametrize(
    ("share", "rate", "apart"),
    [
        (0.4, 0.5, 4.0),
        (0.2, 0.3, 4.0),
        (0.5, 0.9, 3.0),
        (0.3, 1.0, 5.0),
        (0.1, 0.5, 4.0),
    ],
)
def test_the_interval_holds_where_labels_fell_at_random(share, rate, apart):
    scores, labelled, positive = scored(share=share, rate=rate, apart=apart)
    estimate = read(scores, labelled)
    low, high = estimate.n_hidden_interval
    assert low - 0.5 <= (positive & ~labelled).sum() <= high + 0.5
    assert low <= estimate.n_hidden <= high


def test_the_numbers_are_of_one_kind():
    scores, labelled, _ = scored()
    estimate = read(scores, labelled)
    n = labelled.size
    assert estimate.n_labelled == labelled.sum()
    assert estimate.class_prior == pytest.approx(
        (labelled.sum() + estimate.n_hidden) / n
    )
    hidden = estimate.hidden_probability(scores[~labelled])
    assert hidden.sum() == pytest.approx(estimate.n_hidden)
    assert ((hidden >= 0.0) & (hidden <= 1.0)).all()
    assert estimate.curves.weights.sum() == pytest.approx(1.0)
    low, high = estimate.scenarios()
    assert low <= estimate.n_hidden <= high
    assert 0.0 <= estimate.familiarity <= 1.0
    assert "hidden positives" in estimate._repr_html_()


def test_a_probability_lies_in_its_range():
    scores, labelled, _ = scored()
    estimate = read(scores, labelled)
    chances = estimate.posterior(scores)
    hidden = estimate.hidden_probability(scores)
    free = estimate.probability_range(chances)
    given = estimate.probability_range(hidden, unlabelled=True)
    for ranges, probability in ((free, chances), (given, hidden)):
        assert (ranges.low <= probability).all()
        assert (probability <= ranges.high).all()
        order = np.argsort(chances)
        assert (np.diff(ranges.low[order]) >= -1e-12).all()
        assert (np.diff(ranges.high[order]) >= -1e-12).all()
        assert_array_equal(ranges.agreed, ranges.high - ranges.low <= 0.1)
    both = np.where(labelled, chances, hidden)
    mixed = estimate.probability_range(both, unlabelled=~labelled)
    assert_array_equal(mixed.high, np.where(labelled, free.high, given.high))
    strange = replace(estimate, familiarity=0.0)
    assert strange.extrapolates
    assert not strange.probability_range(chances).agreed.any()


@pytest.mark.parametrize("share", [1e-4, 0.3, 0.999])
def test_shared_out_probabilities_add_up_to_the_count(share):
    scores, labelled, _ = scored()
    estimate = read(scores, labelled)
    weight = np.where(labelled, 1.0, 2.5)
    estimate = replace(estimate, n_hidden=share * weight[~labelled].sum())
    posterior = np.where(scores > 6.0, 1.0, np.where(scores < -2.0, 0.0, 0.5))
    posterior = np.where(np.abs(scores) < 1.0, estimate.posterior(scores), posterior)
    probability = estimate.share_out(posterior, labelled, weight)
    assert (probability[labelled] == 1.0).all()
    total = weight[~labelled] @ probability[~labelled]
    assert total == pytest.approx(estimate.n_hidden, rel=1e-9)
    order = np.argsort(posterior[~labelled])
    assert (np.diff(probability[~labelled][order]) >= 0.0).all()


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("steep", [False, True])
def test_rows_are_positive_as_often_as_their_range_says(rate, steep):
    scores, labelled, positive = scored(n=4000, share=0.3, rate=rate, apart=2.5)
    if steep:  # the clear ones are labelled first
        among = np.flatnonzero(positive)
        weight = np.exp(5.0 * scores[among].argsort().argsort() / among.size)
        rng, n = np.random.default_rng(0), int(rate * among.size)
        chosen = rng.choice(among, n, replace=False, p=weight / weight.sum())
        labelled = np.isin(np.arange(labelled.size), chosen)
    estimate = read(scores, labelled)
    hidden = np.flatnonzero(~labelled)
    order = hidden[np.argsort(-scores[hidden])]
    chances = estimate.hidden_probability(scores)
    ranges = estimate.probability_range(chances, unlabelled=True)
    for rows in np.array_split(order, 8):
        slack = 2.0 * np.sqrt(0.25 / rows.size)
        share = positive[rows].mean()
        assert ranges.low[rows].mean() - slack <= share
        assert share <= ranges.high[rows].mean() + slack


def test_rows_that_were_checked_narrow_the_ranges():
    scores, labelled, positive = scored(n=3000)
    estimate = read(scores, labelled)
    rows = np.flatnonzero(~labelled)[::10]
    checked = estimate.update(scores=scores[rows], positive=positive[rows])
    before, after = (
        one.probability_range(one.hidden_probability(scores), unlabelled=True)
        for one in (estimate, checked)
    )
    assert (after.high - after.low).mean() < 0.7 * (before.high - before.low).mean()
    assert after.agreed.sum() > before.agreed.sum()


def test_the_range_is_said_in_words():
    scores, labelled, _ = scored()
    estimate = read(scores, labelled)
    low, high = estimate.n_hidden_interval
    assert estimate.hidden_range == f"between {low:,.0f} and {high:,.0f}"
    open_end = replace(estimate, n_hidden_interval=(280.0, estimate.n_unlabelled))
    assert open_end.hidden_range == "at least 280"
    assert "at least 280 (90% interval), best estimate" in open_end._repr_html_()


def test_the_boundary_is_where_the_posterior_is_even():
    scores, labelled, _ = scored()
    estimate = read(scores, labelled)
    odds = np.log((1.0 + estimate.boundary) / (1.0 - estimate.boundary))
    at = (odds - estimate.offset) / estimate.slope
    assert_allclose(estimate.posterior([at]), 0.5, atol=0.01)
    assert estimate.boundary_spread >= 0.0


@pytest.mark.parametrize(("scale", "shift"), [(2.0, 5.0), (1e-3, 0.0), (1e4, -1e5)])
def test_scale_and_origin_of_scores_do_not_matter(scale, shift):
    scores, labelled, _ = scored()
    one, other = (read(values, labelled) for values in (scores, scale * scores + shift))
    assert other.n_hidden == pytest.approx(one.n_hidden, rel=1e-3)
    assert_allclose(
        other.posterior(scale * scores + shift), one.posterior(scores), atol=1e-3
    )


@pytest.mark.parametrize(("row", "value"), [(0, 1e6), (-1, -1e8)])
def test_a_single_score_far_off_decides_nothing(row, value):
    rng = np.random.default_rng(0)
    scores = rng.normal(4.0 * (np.arange(2000) < 800))
    labelled = np.arange(2000) < 400
    plain = read(scores, labelled).n_hidden
    scores[row] = value
    assert read(scores, labelled).n_hidden == pytest.approx(plain, rel=0.02)


def test_rows_that_stand_for_two_count_twice():
    scores, labelled, _ = scored(n=600)
    twice = read(np.repeat(scores, 2), np.repeat(labelled, 2))
    weighted = read(scores, labelled, sample_weight=np.full(600, 2.0))
    assert weighted.n_hidden == pytest.approx(twice.n_hidden, rel=0.02)
    assert weighted.n_unlabelled == twice.n_unlabelled


def test_a_known_prior_is_kept():
    scores, labelled, positive = scored()
    free = read(scores, labelled)
    known = read(scores, labelled, class_prior=positive.mean())
    assert known.class_prior == pytest.approx(positive.mean(), abs=1e-6)
    width = np.ptp(known.class_prior_interval)
    assert width < 0.5 * np.ptp(free.class_prior_interval)
    low, high = read(scores, labelled, class_prior=(0.6, 0.7)).class_prior_interval
    assert 0.5 < low < high < 0.8


def test_rows_that_were_checked_are_evidence():
    scores, labelled, positive = scored(share=0.3, rate=0.4, apart=2.0)
    free = read(scores, labelled)
    rows = np.flatnonzero(~labelled)[:200]
    checked = free.update(scores=scores[rows], positive=positive[rows])
    denied = free.update(scores=scores[rows], positive=np.zeros(200, dtype=bool))
    assert denied.n_hidden < checked.n_hidden
    truth = (positive & ~labelled).sum()
    assert abs(checked.n_hidden - truth) <= abs(free.n_hidden - truth) + 10.0
    with pytest.raises(InvalidInputError, match="together"):
        free.update(scores=scores[rows])


def test_the_more_rows_are_checked_the_narrower_the_interval():
    scores, labelled, positive = scored(n=3000, rate=0.2, apart=2.0)
    estimate, rng = read(scores, labelled), np.random.default_rng(1)
    unlabelled = np.flatnonzero(~labelled)
    widths = [np.diff(estimate.n_hidden_interval)[0]]
    for n_checked in (30, 300, 1000):
        rows = rng.choice(unlabelled, n_checked, replace=False)
        known = estimate.update(scores=scores[rows], positive=positive[rows])
        low, high = known.n_hidden_interval
        assert low <= (positive & ~labelled).sum() <= high
        widths.append(high - low)
    assert (np.diff(widths) < 0.0).all()
    assert widths[-1] < 0.3 * widths[0]


@pytest.mark.parametrize(
    ("scores", "labelled", "message"),
    [
        ([0.0, np.nan], [0, 1], r"Got 1 that are not finite"),
        ([[0.0, 1.0]], [0, 1], r"scores must be .* Got shape \(1, 2\)"),
        ([0.0, 1.0], [0, 0], r"labelled must mark some samples .* Got no labelled"),
        ([0.0, 1.0], [1, 1], r"labelled must mark some samples .* Got no unlabelled"),
    ],
)
def test_bad_scores_are_refused(scores, labelled, message):
    with pytest.raises(ValueError, match=message):
        read(scores, labelled)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_hardly_any_rows_are_read_all_the_same(n):
    estimate = read(np.arange(n), np.arange(n) == n - 1)
    assert np.isfinite(estimate.n_hidden)
    same = read(np.zeros(n), np.arange(n) == 0)
    assert np.isfinite(same.posterior([0.0])).all()


def test_the_network_is_a_small_file_of_arrays_that_says_where_it_comes_from():
    path = files("probgap.reading").joinpath("weights.npz")
    assert len(path.read_bytes()) < 2**20
    with path.open("rb") as file:
        stored = np.load(file, allow_pickle=False)
        settings = json.loads(str(stored["settings"]))
        assert all(np.isfinite(stored[k]).all() for k in stored if k != "settings")
    assert settings["n_tasks"] > 5000
    assert set(settings["families"]) == {"features", "truth", "rate"}
