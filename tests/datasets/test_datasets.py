import numpy as np
import pytest
from scipy.stats import chi2_contingency, ks_2samp, spearmanr

from probgap.datasets import (
    ConstantRate,
    InverseRate,
    LinearRate,
    hide_labels,
    make_square,
    make_triangles,
    paper_rates,
    platt_gap,
)


def test_triangles_are_what_the_paper_says():
    X, y, posterior = make_triangles(2000, random_state=0)
    assert y.sum() == 1000
    np.testing.assert_array_equal(y == 1, X[:, 1] > X[:, 0])
    np.testing.assert_array_equal(posterior, y)
    # Uniform on the whole square: each quarter holds a quarter.
    quarters = np.histogram2d(X[:, 0], X[:, 1], bins=2)[0]
    assert np.abs(quarters - 500).max() < 80


def test_square_is_what_the_paper_says():
    X, y, posterior = make_square(20000, random_state=0)
    np.testing.assert_allclose(
        posterior, np.clip(0.5 - 10.0 * (X[:, 0] - X[:, 1]), 0, 1)
    )
    between = (posterior > 0) & (posterior < 1)
    assert between.mean() > 0.025
    for low in (0.1, 0.3, 0.5, 0.7):
        inside = (posterior >= low) & (posterior < low + 0.2)
        assert y[inside].mean() == pytest.approx(low + 0.1, abs=0.1)


@pytest.mark.parametrize("make", [make_triangles, make_square])
def test_seeds_decide_everything(make):
    np.testing.assert_array_equal(
        make(50, random_state=1).X, make(50, random_state=1).X
    )
    assert not np.array_equal(make(50, random_state=1).X, make(50, random_state=2).X)
    with pytest.raises(ValueError, match=r"n_samples must be an integer .* Got 1\."):
        make(1)


def test_features_labels_and_labelling_are_drawn_independently():
    X, y, posterior = make_square(20000, random_state=7)
    # Given the posterior, y says nothing more about where the sample is.
    sure = posterior == 1.0
    assert y[sure].all()
    s = hide_labels(X, y, 2 * posterior - 1, ("constant", 0.5), random_state=8)
    hidden = s[y == 1] == 0
    for feature in X[y == 1].T:
        assert ks_2samp(feature[hidden], feature[~hidden]).pvalue > 0.001
    assert abs(spearmanr(X[:, 0], X[:, 1]).statistic) < 0.03
    middle = (posterior > 0.4) & (posterior < 0.6) & (y == 1)
    table = np.histogram2d(X[middle, 0] > 0, s[middle], bins=2)[0]
    assert chi2_contingency(table).pvalue > 0.001


@pytest.mark.parametrize(
    ("rate", "gap", "expected"),
    [
        (InverseRate(0.1, 0.5), [0.0, 0.4, -0.5], [1 / 1.5, 0.1 / 0.5 / 1.5, 1 / 1.5]),
        (LinearRate(0.6), [0.0, 1.0, -0.5, -1.0], [0.6, 0.0, 0.9, 1.0]),
        (ConstantRate(0.3), [0.0, 1.0], [0.3, 0.3]),
    ],
)
def test_rates_by_hand(rate, gap, expected):
    np.testing.assert_allclose(rate(np.array(gap)), expected)


def test_the_paper_has_seventeen_labellings():
    rates = paper_rates()
    assert len(rates) == len(set(rates)) == 17


def test_hidden_labels_follow_the_rate_and_leave_negatives_alone():
    X, y, posterior = make_square(20000, random_state=1)
    s = hide_labels(X, y, 2 * posterior - 1, lambda gap: 0.2 + 0 * gap, random_state=2)
    assert (s <= y).all()
    assert (s[y == 1] == 0).mean() == pytest.approx(0.2, abs=0.02)


def test_labels_keep_their_names():
    X = np.zeros((6, 1))
    y = np.array(["no", "yes"] * 3)
    s = hide_labels(X, y, np.zeros(6), ("constant", 1.0), random_state=0)
    assert s.tolist() == ["no"] * 6


def test_without_a_gap_platt_scaling_gives_one():
    X, y, _ = make_triangles(300, random_state=0)
    gap = platt_gap(X, y, random_state=0)
    assert ((gap > 0) == (y == 1)).mean() > 0.95
    s = hide_labels(X, y, rate=("linear", 1.0), random_state=0)
    assert gap[(y == 1) & (s == 0)].mean() < gap[s == 1].mean()


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        ("inverse", r"rate must be a function, or a tuple .* Got 'inverse'"),
        (
            ("cubic", 1.0),
            r"rate must be a function, or a tuple .* Got \('cubic', 1\.0\)",
        ),
        (("inverse", 0.1), r"rate must be \('inverse', alpha, beta\)"),
        (("linear", 1.5), r"alpha must lie between 0 and 1\. Got 1\.5"),
        (("inverse", -0.1, 0.5), r"alpha must lie between 1e-12 and inf\. Got -0\.1"),
        (lambda gap: gap + 2.0, r"rate must return values in \[0, 1\]\. Got 2 to 2"),
        (3, r"rate must be a function, or a tuple .* Got 3"),
    ],
)
def test_bad_rates_are_refused(rate, message):
    with pytest.raises(ValueError, match=message):
        hide_labels(np.zeros((2, 1)), [0, 1], [0.0, 0.0], rate)


def test_a_gap_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"gap must have one value for each of the 2"):
        hide_labels(np.zeros((2, 1)), [0, 1], [0.0])
