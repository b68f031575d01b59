"""Rates at which groups were looked at, by labels whose chance is known."""

import numpy as np
import pytest

from probgap.labelling import Declared, fit_clear_rates, fit_rates, make_factor


def draw(rates, n=4000, seed=0):
    """Draw a group and a chance for each row, and label it at the rate of its group."""
    rng = np.random.default_rng(seed)
    group, chance = rng.integers(len(rates), size=n), rng.beta(0.5, 1.0, n)
    labelled = rng.random(n) < chance * np.asarray(rates)[group]
    return group, chance, labelled


def fit(group, chance, labelled):
    declared = Declared((make_factor("clinic", group),), {})
    return fit_rates(declared, chance, labelled, np.ones(chance.size), 0)


def relative(rates, group):
    return np.exp([rates.log_rate()[group == k][0] for k in range(group.max() + 1)])


@pytest.mark.parametrize("names", [False, True])
def test_rates_are_recovered_up_to_a_factor(names):
    group, chance, labelled = draw([0.8, 0.4, 0.1, 0.02])
    given = np.array(["a", "b", "c", "d"])[group] if names else group
    found = relative(fit(given, 0.3 * chance, labelled), group)
    assert found == pytest.approx([1.0, 0.5, 0.125, 0.025], abs=0.07)


def test_rates_are_equal_unless_labels_say_otherwise():
    group, chance, labelled = draw([0.5] * 5)
    rates = fit(group, chance, labelled)
    assert rates.evidence == 0.0
    assert relative(rates, group) == pytest.approx(1.0, abs=1e-4)


def test_intervals_hold():
    """Those of relative rates, of which one is small, and one 0."""
    held = []
    for seed in range(12):
        truth = np.array([0.7, 0.5, 0.2, 0.05])
        group, chance, labelled = draw(truth, n=1500, seed=seed)
        rates = fit(group, 0.5 * chance, labelled)
        drawn = [
            np.exp([rates.log_rate(each)[group == k][0] for k in range(4)])
            for each in rates.drawn
        ]
        low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
        held += ((low <= truth / truth.max()) & (truth / truth.max() <= high)).tolist()
    assert np.mean(held) >= 0.85


def test_numbers_and_dates_are_cut_where_they_have_too_many_values():
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + rng.integers(0, 700, 500)
    for cells in (rng.normal(size=500), days, days.astype(object)):
        factor = make_factor("when", cells)
        assert len(factor.levels) == 10
        assert factor.ordered
    assert make_factor("site", np.arange(1000) % 50).levels[49] == "49"
    assert "(missing)" in make_factor("site", np.array(["a", None, "b"] * 9)).levels


@pytest.mark.parametrize("rate", [0.2, 0.8])
def test_of_columns_in_both_roles_the_clearest_rows_tell_the_rates(rate):
    """Rows of the second group are positive half as often or less, unless they are clear."""
    rng = np.random.default_rng(1)
    group, clear = rng.integers(2, size=6000), rng.random(6000)
    positive = clear > np.where(group == 0, 0.4, 0.6)
    labelled = positive & (rng.random(6000) < np.array([0.8, rate])[group])
    others, observed = clear, np.where(positive, np.array([0.8, rate])[group], 0.0)
    declared = Declared((make_factor("clinic", group),), {"clinic": np.array([0])})
    known = labelled, np.ones(6000), 0
    clearest = fit_clear_rates(declared, others, observed, *known)
    everywhere = fit(group, 0.8 * clear, labelled)
    assert relative(everywhere, group)[1] < 0.85 * rate / 0.8
    assert relative(clearest, group)[1] == pytest.approx(rate / 0.8, rel=0.3)
