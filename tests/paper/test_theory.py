"""The theorems of the paper, on data whose posterior is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from probgap import PGPUClassifier
from probgap.boundary import MeanSmallest, estimate_boundary
from probgap.datasets import hide_labels, make_rate, make_square
from probgap.relabel import relabel

true_gaps = arrays(np.float64, st.integers(2, 60), elements=st.floats(-1.0, 1.0))
below_one = st.floats(0.01, 0.99)
rates = st.one_of(
    st.tuples(st.just("inverse"), st.floats(0.01, 5.0), st.floats(0.01, 5.0)).map(
        make_rate
    ),
    st.tuples(st.sampled_from(["linear", "constant"]), below_one).map(make_rate),
    # Any decreasing function of the gap will do; these two are not of the paper.
    st.builds(
        lambda r, k: lambda gap: r * np.exp(-k * (gap + 1.0)),
        below_one,
        st.floats(0.0, 5.0),
    ),
    st.builds(
        lambda r, k: lambda gap: r / (1.0 + np.exp(k * gap)),
        below_one,
        st.floats(0.0, 20.0),
    ),
)


def observe(gap, rate):
    """Give the observed gap and the true boundary: the identity of the paper."""
    rho = np.asarray(rate(gap), dtype=np.float64)
    boundary = -float(np.asarray(rate(np.zeros(1)))[0])
    return (1.0 - rho) * (gap + 1.0) - 1.0, boundary


@given(true_gaps, rates)
def test_relabelling_is_the_bayes_label_wherever_it_decides(gap, rate):
    # Rounding may put a sample with a true gap of 1e-17 on either side.
    gap = gap[np.abs(gap) > 1e-9]
    if gap.size == 0:
        return
    observed, boundary = observe(gap, rate)
    bayes = (gap > 0).astype(int)
    weak = relabel(observed, lower=boundary)
    np.testing.assert_array_equal(weak.labels[weak.decided], bayes[weak.decided])
    strong = relabel(observed, lower=boundary, upper=boundary)
    assert strong.decided.all()
    np.testing.assert_array_equal(strong.labels, bayes)


def test_relabelling_is_the_bayes_label_on_every_decided_point_of_the_square():
    X, _, posterior = make_square(5000, random_state=0)
    gap = 2.0 * posterior - 1.0
    for rate in (
        make_rate(("inverse", 0.2, 1.0)),
        make_rate(("linear", 0.6)),
        make_rate(("constant", 0.3)),
        lambda gap: 0.4 * (1.0 - gap),
    ):
        observed, boundary = observe(gap, rate)
        result = relabel(observed, lower=boundary)
        assert result.n_undecided < len(X) // 10
        assert (result.labels == (gap > 0))[result.decided & (gap != 0)].all()


def test_the_boundary_stage_finds_it_among_true_gaps():
    X, y, posterior = make_square(20000, random_state=0)
    gap = 2.0 * posterior - 1.0
    kept = (gap > 0) | (y == 0)  # no positive in negative ground
    s = hide_labels(X, y, gap, make_rate(("linear", 0.6)), random_state=1)[kept]
    observed, boundary = observe(gap[kept], make_rate(("linear", 0.6)))
    found = estimate_boundary(observed, s, rule=MeanSmallest(3))
    assert found.value == pytest.approx(boundary, abs=0.05)


def excess_error(n, seed):
    """Disagreement with the Bayes classifier on a dense grid."""
    X, y, posterior = make_square(n, random_state=seed)
    gap = 2.0 * posterior - 1.0
    s = hide_labels(X, y, gap, ("inverse", 0.2, 0.5), random_state=seed + 1000)
    side = np.linspace(-1.0, 1.0, 101)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    bayes = grid[:, 0] < grid[:, 1]
    wrong = PGPUClassifier(random_state=0).fit(X, s).predict(grid) != bayes
    true_gap = np.abs(np.clip(-20.0 * (grid[:, 0] - grid[:, 1]), -1.0, 1.0))
    return float((wrong * true_gap).mean())


def test_the_classifier_approaches_bayes():
    few, many = (np.mean([excess_error(n, k) for k in range(2)]) for n in (100, 800))
    assert many < few
    assert many < 0.02


def disagreement(n, seed):
    """Share of a dense grid on which Algorithm 1 differs from the Bayes classifier."""
    X, y, posterior = make_square(n, random_state=seed)
    gap = 2.0 * posterior - 1.0
    s = hide_labels(X, y, gap, ("inverse", 0.2, 0.5), random_state=seed + 1000)
    side = np.linspace(-1.0, 1.0, 101)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    predicted = PGPUClassifier.paper(random_state=0).fit(X, s).predict(grid)
    return np.mean(predicted != (grid[:, 0] < grid[:, 1]))


@pytest.mark.parametrize(
    ("sizes", "n_seeds"),
    [((300, 1500), 3), pytest.param((500, 2000, 5000), 10, marks=pytest.mark.slow)],
)
def test_algorithm_1_approaches_bayes(sizes, n_seeds):
    each = [np.mean([disagreement(n, k) for k in range(n_seeds)]) for n in sizes]
    assert (np.diff(each) < 0).all()
    assert each[-1] < 0.025


def test_under_overlap_the_infimum_sinks_even_with_exact_gaps():
    rng, lowest = np.random.default_rng(0), []
    for n in (1000, 10_000, 100_000):
        _, y, posterior = make_square(n, random_state=0)
        labelled = (y == 1) & (rng.random(n) > 0.6)
        observed, boundary = observe(2.0 * posterior - 1.0, lambda gap: 0.6 + 0.0 * gap)
        lowest.append(np.sort(observed[labelled])[:3].mean())
    assert boundary == -0.6
    assert (np.diff(lowest) < 0).all()
    assert lowest[-1] < -0.9
