"""Class priors on data whose answer is known, and against formulas and programs."""

import numpy as np
import pytest
from cvxopt import matrix, solvers, spmatrix
from scipy.sparse import csr_array
from scipy.stats import laplace, norm
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import euclidean_distances

from probgap.exceptions import InvalidInputError
from probgap.priors import estimate_class_prior, estimate_class_prior_from_scores
from probgap.reading import read

FROM_SCORES = (
    "consensus",
    "estimate",
    "two_means",
    "elkan_noto",
    "dedpul",
    "bbe",
    "alphamax",
)
FROM_FEATURES = ("tice", "km1", "km2")


def spread(distribution, at, n):
    """Return n values of a distribution, its quantiles."""
    return at + distribution.ppf((np.arange(n) + 0.5) / n)


def mixture(distribution, away, share, n_labelled=400, n_unlabelled=800):
    """Return scores of labelled positives, others, negatives; and who is labelled."""
    n_hidden = round(share * n_unlabelled)
    parts = [
        spread(distribution, 0.0, n_labelled),
        spread(distribution, 0.0, n_hidden),
        spread(distribution, -away, n_unlabelled - n_hidden),
    ]
    return np.concatenate(parts), np.arange(n_labelled + n_unlabelled) < n_labelled


def clusters(n=800, share=0.4, rate=0.5, apart=4.0, seed=0):
    """Return samples of two clusters, true labels, and labels at random."""
    rng = np.random.default_rng(seed)
    positive = np.arange(n) < share * n
    X = rng.normal(size=(n, 2)) + apart / np.sqrt(2.0) * positive[:, None]
    return X, positive, positive & (rng.random(n) < rate)


@pytest.mark.parametrize("method", FROM_SCORES)
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_separate_groups_labelled_at_random_are_counted(method, share):
    scores, labelled = mixture(norm, 5.0, share)
    prior = estimate_class_prior_from_scores(scores, labelled, method)
    # P(s=1 | x) is constant in the upper group, which no sigmoid of the scores is.
    near = 0.07 if method == "elkan_noto" else 0.03
    assert prior.unlabelled_share == pytest.approx(share, abs=near)
    assert prior.value == pytest.approx((400 + 800 * share) / 1200, abs=near)
    assert prior.converged


@pytest.mark.parametrize("method", FROM_FEATURES)
def test_clusters_labelled_at_random_are_counted(method):
    X, positive, labelled = clusters()
    prior = estimate_class_prior(X, labelled, method, random_state=0)
    assert prior.value == pytest.approx(positive.mean(), abs=0.05)
    assert prior.converged


def test_scores_are_fitted_once_and_out_of_fold():
    X, positive, labelled = clusters(n=300, apart=3.0)
    prior = estimate_class_prior(X, np.where(labelled, "a", "b"), pos_label="a")
    assert prior.method == "estimate"
    assert prior.value == pytest.approx(positive.mean(), abs=0.08)


@pytest.mark.parametrize("method", FROM_SCORES)
def test_both_shares_and_their_intervals_agree(method):
    scores, labelled = mixture(norm, 2.0, 0.3)
    prior = estimate_class_prior_from_scores(scores, labelled, method)
    s = labelled.mean()
    assert prior.value == pytest.approx(s + (1.0 - s) * prior.unlabelled_share)
    assert prior.label_frequency == pytest.approx(s / prior.value)
    assert (prior.interval is None) == (method not in {"consensus", "estimate", "bbe"})
    if prior.interval is not None:
        assert prior.interval[0] <= prior.value <= prior.interval[1]
        assert prior.interval == pytest.approx(
            [s + (1.0 - s) * end for end in prior.unlabelled_interval]
        )


# Shares by a transcription of the program of DEDPUL's author on the same log-odds.
@pytest.mark.parametrize(
    ("distribution", "away", "share", "theirs"),
    [(laplace, 4, 0.5, 0.50624), (norm, 2, 0.25, 0.25354), (norm, 4, 0.75, 0.75007)],
)
def test_dedpul_is_that_of_its_author(distribution, away, share, theirs):
    scores, labelled = mixture(distribution, away, share)
    prior = estimate_class_prior_from_scores(scores, labelled, "dedpul")
    assert prior.unlabelled_share == pytest.approx(theirs, abs=2e-4)


# Laplace densities a distance of 1 or 2 apart: somewhere positives are at most e or e**2
# times as dense as negatives, so that a part of the negatives passes for positive. Errors
# of DEDPUL and of KM2 in the author's tables are 0.052 and 0.059, 0.038 and 0.044.
@pytest.mark.parametrize("away", [1.0, 2.0])
@pytest.mark.parametrize("method", ["dedpul", "bbe", "km2"])
def test_overlapping_negatives_count_as_far_as_none_can_tell(method, away):
    scores, labelled = mixture(laplace, away, 0.5, n_labelled=400, n_unlabelled=400)
    identified = 0.5 + 0.5 * np.exp(-away)
    if method == "km2":
        prior = estimate_class_prior(scores[:, None], labelled, method, random_state=0)
    else:
        prior = estimate_class_prior_from_scores(scores, labelled, method)
    assert prior.unlabelled_share == pytest.approx(identified, abs=0.09)


def test_dedpul_finds_nothing_where_nothing_is_hidden():
    scores, labelled = mixture(norm, 8.0, 0.0)
    prior = estimate_class_prior_from_scores(scores, labelled, "dedpul")
    assert prior.unlabelled_share == pytest.approx(0.0, abs=0.01)


def test_elkan_and_noto_divide_by_the_label_frequency():
    scores, labelled = mixture(norm, 2.0, 0.3)
    prior = estimate_class_prior_from_scores(scores, labelled, "elkan_noto")
    assert prior.value == pytest.approx(labelled.mean() / prior.evidence["frequency"])
    assert prior.evidence["frequency"] < prior.label_frequency + 1e-9


def test_bbe_minimises_its_bound():
    scores, labelled = mixture(norm, 1.5, 0.3, n_labelled=60, n_unlabelled=90)
    scores = scores + np.random.default_rng(0).normal(size=scores.size)
    by_luck = sum(np.sqrt(np.log(40.0) / (2.0 * n)) for n in (60, 90))
    bounds = {}
    for cut in scores[scores <= scores[labelled].max()]:
        labelled_above = (scores[labelled] >= cut).mean()
        ratio = (scores[~labelled] >= cut).mean() / labelled_above
        bounds[ratio + 1.01 * by_luck / labelled_above] = ratio
    prior = estimate_class_prior_from_scores(scores, labelled, "bbe")
    best = min(bounds)
    assert prior.unlabelled_share == pytest.approx(bounds[best])
    assert prior.unlabelled_interval[1] == pytest.approx(min(best, 1.0))


def test_two_means_are_those_of_scikit_learn():
    scores, labelled = mixture(norm, 3.0, 0.3)
    groups = KMeans(2, n_init=5, random_state=0).fit(scores[:, None])
    upper = groups.labels_ == groups.cluster_centers_.argmax()
    prior = estimate_class_prior_from_scores(scores, labelled, "two_means")
    assert prior.unlabelled_share == pytest.approx(upper[~labelled].mean(), abs=0.01)


def test_one_normal_group_has_no_separation():
    scores = spread(norm, 0.0, 1000)
    labelled = (np.arange(1000) % 5 == 0) & (scores > -0.5)
    prior = estimate_class_prior_from_scores(scores, labelled, "consensus")
    assert prior.evidence["separation"] == pytest.approx(0.0, abs=0.01)
    estimate = read(scores, labelled)
    assert prior.value == pytest.approx(estimate.class_prior, abs=0.01)


def test_the_consensus_weights_by_precision():
    scores, labelled = mixture(norm, 3.0, 0.5, n_labelled=50)
    by = {
        method: estimate_class_prior_from_scores(scores, labelled, method)
        for method in ("consensus", "estimate", "two_means")
    }
    low, high = by["estimate"].interval
    precisions = [
        (2.0 * 1.645 / (high - low)) ** 2,
        (by["two_means"].evidence["separation"] / 0.04) ** 2,
    ]
    values = [by["estimate"].value, by["two_means"].value]
    assert abs(values[0] - values[1]) > 0.02
    assert by["consensus"].value == pytest.approx(
        np.average(values, weights=precisions)
    )


def test_a_part_with_labels_only_gives_tice_the_frequency():
    # Six in ten positives are labelled, and positives have a level of their own.
    level = np.repeat([0, 1, 2, 3], 500)
    labelled = (level == 3) & (np.arange(2000) % 10 < 6)
    X = np.column_stack([level, np.arange(2000) % 4]).astype(float)
    prior = estimate_class_prior(X, labelled, "tice", random_state=0)
    # A lower bound of the frequency, and so an upper one of the share.
    assert 0.25 - 0.01 <= prior.value <= 0.33
    assert prior.evidence["frequency"] == pytest.approx(0.15 / prior.value)


def reference_km(X, labelled, *, second):
    """Return KM1 or KM2 by cvxopt and differences, as the authors' program does."""
    rows = np.concatenate([X[~labelled], X[labelled]])
    n, m = np.sum(~labelled), np.sum(labelled)
    mixed = np.repeat([1.0 / n, 0.0], [n, m])
    component = np.repeat([0.0, 1.0 / m], [n, m])
    squared = euclidean_distances(rows, squared=True)
    kernels = [
        np.exp(-squared / (2.0 * np.median(squared) * w**2))
        for w in np.logspace(-1, 1, 5)
    ]
    apart = mixed - component
    K = max(kernels, key=lambda kernel: apart @ kernel @ apart)
    far = np.sqrt(apart @ K @ apart)

    def distance(value):
        target = value * mixed + (1.0 - value) * component
        size = n + m
        solved = solvers.qp(
            matrix(K),
            matrix(-K @ target),
            spmatrix(-1.0, range(size), range(size)),
            matrix(0.0, (size, 1)),
            matrix(1.0, (1, size)),
            matrix(1.0),
            options={"show_progress": False},
        )
        left = np.array(solved["x"]).ravel() - target
        return np.sqrt(max(left @ K @ left, 0.0))

    threshold = 1.0 / np.sqrt(min(n, m))
    if second or threshold > 0.9 * far:
        threshold = 0.8 * distance(1.05) / 0.05 + 0.2 * far
    low, high = 1.0, 8.0
    while high - low > 0.04:
        middle = 0.5 * (low + high)
        slope = (distance(middle + 0.02) - distance(middle)) / 0.02
        low, high = (low, middle) if slope > threshold else (middle, high)
    value = 0.5 * (low + high)
    return (value - 1.0) / value


@pytest.mark.parametrize("method", ["km1", "km2"])
def test_kernel_means_agree_with_an_interior_point(method):
    X, _, labelled = clusters(n=150, apart=2.5, seed=3)
    prior = estimate_class_prior(X, labelled, method, random_state=0)
    reference = reference_km(X, labelled, second=method == "km2")
    assert prior.unlabelled_share == pytest.approx(reference, abs=0.03)
    assert prior.evidence["duality_gap"] < 1e-9


@pytest.mark.parametrize("method", FROM_SCORES)
def test_scale_and_origin_of_scores_do_not_matter(method):
    scores, labelled = mixture(norm, 2.0, 0.3)
    plain, moved = (
        estimate_class_prior_from_scores(values, labelled, method).value
        for values in (scores, 100.0 + 7.0 * scores)
    )
    assert moved == pytest.approx(plain, abs=2e-3)


@pytest.mark.parametrize("method", FROM_SCORES)
def test_constant_scores_and_few_labels_give_a_share(method):
    labelled = np.arange(60) < 2
    for scores in (np.ones(60), np.repeat([1.0, 0.0], [3, 57])):
        prior = estimate_class_prior_from_scores(scores, labelled, method)
        assert labelled.mean() <= prior.value <= 1.0


@pytest.mark.parametrize("method", ["km1", "km2"])
def test_groups_that_cannot_be_told_apart_may_all_be_positive(method):
    prior = estimate_class_prior(np.zeros((60, 2)), np.arange(60) < 12, method)
    assert prior.unlabelled_share == pytest.approx(7 / 8)
    assert prior.converged


@pytest.mark.parametrize("method", ["tice", "km1"])
def test_results_follow_from_the_random_state(method):
    X, _, labelled = clusters(n=1200, rate=0.9, apart=1.0)
    values = [
        estimate_class_prior(X, labelled, method, random_state=seed).value
        for seed in (0, 0, 1)
    ]
    assert values[0] == values[1] != values[2]


def test_many_rows_are_thinned_out():
    few, many = (
        mixture(norm, 3.0, 0.3, n_labelled=n, n_unlabelled=2 * n) for n in (1000, 20000)
    )
    values = [
        estimate_class_prior_from_scores(*data, "dedpul").value for data in (few, many)
    ]
    assert values[0] == pytest.approx(values[1], abs=0.005)


def test_what_cannot_be_is_refused():
    scores, labelled = mixture(norm, 3.0, 0.3)
    for bad, message in (
        ((scores, labelled, "tice"), "method must be one of"),
        ((scores, labelled, ["bbe"]), "method must be one of"),
        ((scores[:, None], labelled), "scores must be a one-dimensional array"),
        ((np.where(labelled, np.nan, scores), labelled), "Got 400 that are not finite"),
        ((scores, np.ones_like(labelled)), "Got no unlabelled sample"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            estimate_class_prior_from_scores(*bad)
    X, _, mask = clusters(n=60)
    with pytest.raises(InvalidInputError, match="method must be one of"):
        estimate_class_prior(X, mask, "none")
    with pytest.raises(InvalidInputError, match="numbers whose squares"):
        estimate_class_prior(1e200 * X, mask, "km1")
    with pytest.raises(InvalidInputError, match="X must be dense"):
        estimate_class_prior(csr_array(X), mask, "tice")
    assert 0.0 < estimate_class_prior(csr_array(X), mask, "km1").value < 1.0


def test_a_notebook_shows_both_shares():
    prior = estimate_class_prior_from_scores(*mixture(norm, 3.0, 0.3))
    shown = prior._repr_html_()
    assert "of all rows" in shown
    assert "of unlabelled rows" in shown
    assert "90% interval" in shown
