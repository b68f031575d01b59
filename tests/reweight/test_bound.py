import numpy as np
import pytest

from probgap.reweight import kernel_mean_matching, risk_bound

THRESHOLDS = np.linspace(0.0, 1.0, 21)


def test_the_bounds_by_hand():
    found = risk_bound([2.0, 1.0, 1.0, 0.0], complexity=0.5, delta=np.exp(-2.0))
    # 4 C + b sqrt(2 log(1 / delta)) = 2 + 2
    assert found.theorem_4 == pytest.approx(4.0 / 2.0)
    assert found.theorem_5 == pytest.approx(4.0 * 2.0 / 2.0)
    assert found.sharper == pytest.approx(4.0 * np.sqrt(6.0) / 4.0)
    assert found.deviation == pytest.approx(2.0 * np.sqrt(6.0) / 4.0)
    assert found.effective_sample_size == pytest.approx(16.0 / 6.0)
    assert found.largest_weight == 2.0
    assert found.says_nothing
    assert np.isnan(found.empirical_risk)


def test_the_risk_of_the_samples_is_the_paper_s_weighted_mean():
    found = risk_bound([2.0, 1.0, 0.0], complexity=0.0, losses=[1.0, 0.5, 1.0])
    assert found.empirical_risk == pytest.approx(2.5 / 3.0)


def test_equal_weights_make_one_bound_of_three():
    found = risk_bound(np.ones(50), complexity=2.0)
    assert found.theorem_4 == pytest.approx(found.theorem_5)
    assert found.theorem_4 == pytest.approx(found.sharper)


def draw_biased(n, rng):
    """Rows of density 0.5 + x on [0, 1], with the weights that make them uniform."""
    u = rng.random(n)
    x = np.sqrt(0.25 + 2.0 * u) - 0.5
    noise = rng.random(n) < 0.2
    return x, (x > 0.6) ^ noise, 1.0 / (0.5 + x)


def true_risk(threshold):
    return 0.2 + 0.6 * np.abs(threshold - 0.6)


@pytest.mark.parametrize("n", [300, 3000])
def test_the_bound_covers_the_true_gap_on_drawn_data(n):
    rng, gaps, deviations = np.random.default_rng(0), [], []
    for _ in range(100):
        x, y, weight = draw_biased(n, rng)
        risks = [(weight * ((x > t) != y)).mean() for t in THRESHOLDS]
        chosen = THRESHOLDS[int(np.argmin(risks))]
        complexity = np.sqrt(2.0 * np.log(THRESHOLDS.size))
        found = risk_bound(weight, complexity=complexity, losses=(x > chosen) != y)
        assert found.empirical_risk == pytest.approx(min(risks))
        assert found.sharper <= found.theorem_5
        gap = true_risk(chosen) - true_risk(THRESHOLDS).min()
        gaps.append(gap / found.sharper)
        deviations.append(abs(risks[0] - true_risk(0.0)) / (found.deviation / 2.0))
    assert max(gaps) <= 1.0
    # One classifier, without complexity: right in 95 of 100, and of the right size.
    assert np.mean(np.array(deviations) <= 1.0) >= 0.95
    assert max(deviations) > 0.3


def test_matching_a_sample_to_itself_costs_nothing():
    X = np.random.default_rng(0).normal(size=(100, 2))
    found = kernel_mean_matching(X, X).risk_bound(1.0)
    assert found.theorem_5 == pytest.approx(found.theorem_4, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [-1.0, 2.0]}, r"weights must not be negative\. Got -1\.0"),
        ({"weights": [0.0]}, r"weights must be above 0 for some sample\. Got 0\.0"),
        ({"weights": [[1.0, 2.0]]}, r"weights must be one-dimensional\. Got \(1, 2\)"),
        ({"losses": [1.0, 2.0]}, r"losses must be as many as weights\. Got \(2,\)"),
        ({"losses": [np.nan]}, "Input losses contains NaN"),
        ({"complexity": -1.0}, r"complexity must not be negative\. Got -1\.0"),
        ({"complexity": None}, r"complexity must be a number\. Got None"),
        ({"losses": [1.5]}, r"losses must lie in \[0, largest_loss\]\. Got \[1\.5\]"),
        ({"complexity": np.nan}, r"complexity must not be negative\. Got nan"),
        ({"largest_loss": 0.0}, r"largest_loss must be above 0\. Got 0\.0"),
        ({"delta": 1.0}, r"delta must lie in \(0, 1\)\. Got 1\.0"),
    ],
)
def test_what_makes_no_bound_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        risk_bound(**({"weights": [1.0], "complexity": 1.0} | arguments))
