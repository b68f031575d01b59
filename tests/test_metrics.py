from itertools import combinations

import numpy as np
import pytest
from sklearn import metrics

from probgap.metrics import pu_score, pu_score_range, recovered_share

TRUE_SCORES = {
    "accuracy": metrics.accuracy_score,
    "balanced_accuracy": metrics.balanced_accuracy_score,
    "f1": metrics.f1_score,
    "precision": metrics.precision_score,
    "recall": metrics.recall_score,
    "average_precision": metrics.average_precision_score,
    "roc_auc": metrics.roc_auc_score,
}
BY_RANK = ("average_precision", "roc_auc")
# Two labelled, one of them found; three of ten called positive.
S = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
CALLED = [1, 0, 1, 1, 0, 0, 0, 0, 0, 0]


def draw_labels(n, seed, steepness=0.0):
    """Return labels, truth and scores; steep labelling favours high scores."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    score = rng.normal(size=n) + 1.5 * y
    rate = 0.4 / (1.0 + np.exp(-steepness * (score - 1.5)))
    s = y * (rng.random(n) < (rate if steepness else 0.4))
    return s, y, score


def test_recovered_share_by_hand():
    assert recovered_share(0.90, 0.90, 0.95) == 0.0
    assert recovered_share(0.95, 0.90, 0.95) == pytest.approx(1.0)
    assert recovered_share(0.85, 0.90, 0.95) == pytest.approx(-1.0)
    assert np.isnan(recovered_share(0.9, 0.9, 0.9))


def test_recovered_share_refuses_what_is_not_a_score():
    with pytest.raises(ValueError, match=r"naive must be a finite score\. Got nan"):
        recovered_share(0.9, float("nan"), 0.9)
    with pytest.raises(ValueError, match=r"method must be a finite score\. Got None"):
        recovered_share(None, 0.8, 0.9)


def test_lee_liu_by_hand():
    # recall 1/2 of the labelled, half of all predicted positive: (1/4) / (1/2)
    assert pu_score([1, 1, 0, 0], [1, 0, 1, 0], "lee_liu") == pytest.approx(0.5)
    assert pu_score([1, 1, 0, 0], [0, 0, 0, 0], "lee_liu") == 0.0
    named = pu_score(["a", "b"], ["a", "b"], "lee_liu", pos_label="a")
    assert named == pytest.approx(2.0)
    # The second row counts for nothing: recall 1, two of three called.
    weight = [1, 0, 1, 1]
    found = pu_score([1, 1, 0, 0], [1, 0, 1, 0], "lee_liu", sample_weight=weight)
    assert found == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("recall", 1 / 2),
        ("lee_liu", (1 / 2) ** 2 / 0.3),
        ("precision", 0.2 / 0.3),
        ("f1", 2 * 0.2 / 0.7),
        ("accuracy", 1 - 0.3 - 0.4 + 0.4),
        ("balanced_accuracy", (0.5 + 0.5 / 0.6) / 2),
    ],
)
def test_scores_of_predictions_by_hand(metric, expected):
    assert pu_score(S, CALLED, metric, class_prior=0.4) == pytest.approx(expected)
    # Each row twice is each row with weight two.
    double = {"class_prior": 0.4, "sample_weight": np.full(10, 2.0)}
    assert pu_score(S, CALLED, metric, **double) == pytest.approx(expected)


def test_scores_of_rankings_by_hand():
    s, score = [1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0]
    # Labelled above unlabelled in 3 of 4 pairs; among all rows (0.5 + 0.75) / 2.
    auc = pu_score(s, score, "roc_auc", class_prior=0.6)
    assert auc == pytest.approx((0.625 - 0.3) / 0.4)
    # A labelled row without weight changes nothing.
    more = {"class_prior": 0.6, "sample_weight": [0, 1, 1, 1, 1]}
    for metric in BY_RANK:
        plain = pu_score(s, score, metric, class_prior=0.6)
        assert pu_score([1, *s], [9.0, *score], metric, **more) == pytest.approx(plain)
    # Of 1.4 other positives one is labelled: precision 1 at rank 1, 2.4 / 3 at rank 3.
    found = pu_score(s, score, "average_precision", class_prior=0.6)
    assert found == pytest.approx((1 + (1 + 1.4) / 3) / 2)
    # Nothing is hidden: the scores are those of scikit-learn, ties or not.
    s, y, score = draw_labels(500, 0)
    for ranked in (score, score.round()):
        for metric in BY_RANK:
            plain = TRUE_SCORES[metric](y, ranked)
            share = float(y.mean())
            assert pu_score(y, ranked, metric, class_prior=share) == pytest.approx(
                plain
            )


@pytest.mark.parametrize("metric", TRUE_SCORES)
def test_estimates_converge_where_labels_are_random(metric):
    errors = []
    for n in (2_000, 200_000):
        off = []
        for seed in range(4):
            s, y, score = draw_labels(n, seed)
            output = score if metric in BY_RANK else (score > 1.0).astype(int)
            truth = TRUE_SCORES[metric](y, output)
            off.append(pu_score(s, output, metric, class_prior=y.mean()) - truth)
        errors.append(np.sqrt(np.mean(np.square(off))))
    assert errors[1] < 0.004
    assert errors[1] < 0.35 * errors[0]  # by the root of 100, were it not for luck


def test_average_precision_is_unbiased_with_three_labels():
    _, y, score = draw_labels(400, 0)
    positive, rng, found = np.flatnonzero(y), np.random.default_rng(1), []
    for _ in range(500):
        s = np.isin(np.arange(400), rng.choice(positive, 3, replace=False)).astype(int)
        share = y.mean()
        found.append(pu_score(s, score, "average_precision", class_prior=share))
    error = np.mean(found) - metrics.average_precision_score(y, score)
    assert abs(error) < 3.0 * np.std(found) / np.sqrt(500)


def test_a_range_of_what_needs_no_prior_is_one_value():
    labels, called = [1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]
    for metric in ("recall", "lee_liu"):
        low, high = pu_score_range(labels, called, metric, class_prior=0.8, scar=True)
        assert low == high == pu_score(labels, called, metric)


@pytest.mark.parametrize("metric", TRUE_SCORES)
def test_rows_without_weight_change_nothing(metric):
    more = {"class_prior": 1.0, "sample_weight": np.repeat([1, 0], [10, 90])}
    plain = pu_score(S, CALLED, metric, class_prior=1.0)
    assert pu_score(S + 90 * [0], CALLED + 90 * [0], metric, **more) == plain


@pytest.mark.parametrize("metric", TRUE_SCORES)
def test_estimates_are_too_high_where_easy_positives_are_labelled_first(metric):
    s, y, score = draw_labels(20_000, 0, steepness=2.0)
    output = score if metric in BY_RANK else (score > 1.0).astype(int)
    estimate = pu_score(s, output, metric, class_prior=y.mean())
    assert estimate > TRUE_SCORES[metric](y, output) + 0.02


def test_predictions_score_between_0_and_1_whatever_the_labels():
    # Both labelled rows are found by two calls; the prior has room for more.
    s, called = [1, 1, 0, 0, 0], [1, 1, 0, 0, 0]
    assert pu_score(s, called, "precision", class_prior=0.6) == pytest.approx(1.0)
    assert pu_score(s, called, "accuracy", class_prior=0.6) == pytest.approx(0.8)


@pytest.mark.parametrize(
    "metric", [name for name in TRUE_SCORES if name not in BY_RANK]
)
@pytest.mark.parametrize("called", [(0, 2, 3), (0, 1), (), (2, 3, 4, 5), range(6)])
def test_ranges_are_those_of_all_possible_truths(metric, called):
    s, predicted = np.array([1, 1, 0, 0, 0, 0, 0]), np.zeros(7, dtype=int)
    predicted[list(called)] = 1
    values = []
    for n_hidden in (1, 2, 3):
        for hidden in combinations(range(2, 7), n_hidden):
            y = s.copy()
            y[list(hidden)] = 1
            zero = {"zero_division": 0.0} if metric in {"f1", "precision"} else {}
            values.append(TRUE_SCORES[metric](y, predicted, **zero))
    low, high = pu_score_range(s, predicted, metric, class_prior=(3 / 7, 5 / 7))
    # Shares of positives between those of whole rows may turn a bound a bit further.
    assert low <= min(values) + 1e-12
    assert high >= max(values) - 1e-12
    steps = [
        pu_score_range(s, predicted, metric, class_prior=share)
        for share in np.linspace(3 / 7, 5 / 7, 201)
    ]
    assert low == pytest.approx(min(least for least, _ in steps), abs=2e-3)
    assert high == pytest.approx(max(most for _, most in steps), abs=2e-3)


def test_without_any_prior_the_range_allows_all_but_one_to_be_positive():
    # Right of ten: the labelled one alone, or all but the labelled one that was missed.
    assert pu_score_range(S, CALLED) == pytest.approx((0.1, 0.9))


def test_a_range_of_priors_under_random_labelling_covers_every_prior():
    s, y, score = draw_labels(3_000, 1)
    called = (score > 0.2).astype(int)
    for metric, true_score in TRUE_SCORES.items():
        output = score if metric in BY_RANK else called
        known = {"class_prior": (0.2, 0.6), "scar": True}
        low, high = pu_score_range(s, output, metric, **known)
        at = [
            pu_score(s, output, metric, class_prior=p)
            for p in np.linspace(0.2, 0.6, 41)
        ]
        assert (low, high) == pytest.approx((min(at), max(at)), abs=0.02)
        assert low - 0.02 <= true_score(y, output) <= high + 0.02


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [1], "recall"), r"y_pred must have one value for each of the 2"),
        (([1, 0], [0.3, 0.2], "recall"), r"y_pred must hold the values \[0, 1\]"),
        (([1, 0], [np.nan, 0], "roc_auc", 0.6), r"Input y_pred contains NaN"),
        (([1, 0], [1, 0], "auc"), r"metric must be one of accuracy, .* Got 'auc'"),
        (([1, 0], [1, 0], "f1"), r"class_prior must be a number .* Got None"),
        (
            ([1, 0], [1, 0], "f1", 1.5),
            r"class_prior must be a number in \[0, 1\] .* Got 1\.5",
        ),
        (([1, 0], [1, None], "f1", 0.6), r"y_pred must hold the .* Got \[None\]"),
    ],
)
def test_scores_refuse_what_they_cannot_use(arguments, message):
    with pytest.raises(ValueError, match=message):
        pu_score(*arguments[:3], class_prior=arguments[3] if arguments[3:] else None)


def test_ranges_refuse_what_they_cannot_use():
    with pytest.raises(ValueError, match="scar must be True for metric='roc_auc'"):
        pu_score_range(S, CALLED, "roc_auc")
    for prior in ((0.5, 0.4), (None, 0.5), "half", (0.2, 0.3, 0.4)):
        with pytest.raises(ValueError, match=r"class_prior must lie in .* Got [(']"):
            pu_score_range(S, CALLED, class_prior=prior)
    weight = np.array(S)
    with pytest.raises(
        ValueError, match=r"sample_weight must be above 0 .* unlabelled"
    ):
        pu_score_range(S, CALLED, "balanced_accuracy", sample_weight=weight)
    assert pu_score(S, CALLED, "recall", sample_weight=weight) == 0.5


def test_a_prior_far_below_the_labelled_share_is_refused():
    s = np.repeat([1, 0], 200)
    with pytest.raises(ValueError, match=r"at least the labelled share .* 0\.5"):
        pu_score(s, s, class_prior=0.3)
    assert pu_score(s, s, class_prior=0.48) == pytest.approx(1.0)  # by chance


def test_labels_as_the_classifiers_take_them():
    words = np.where(np.array(S) == 1, "fraud", "open")
    called = np.where(np.array(CALLED) == 1, "fraud", "open")
    found = pu_score(words, called, "f1", class_prior=0.4, pos_label="fraud")
    gaps = np.where(np.array(S) == 1, 1.0, np.nan)
    assert found == pu_score(gaps, CALLED, "f1", class_prior=0.4)
