import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from probgap import PGPUClassifier
from probgap._core.losses import in_standard_errors, log_likelihoods, log_loss
from probgap._core.values import HeldValues
from probgap.datasets import hide_labels
from probgap.gap import LabellingModel
from probgap.gap._doubt import doubt, evidence, highest_even_score
from probgap.gap._forest import heed
from probgap.gap._plain import _margin
from probgap.gap._rate import boundary_at, rate_prior
from probgap.gap._reading import read_chances

RATE = {"level": -1.0, "slope": 0.5}


def faint(n, share, apart, seed, hidden=0.7):
    """Draw a rare class that hardly parts, labelled at random."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 5))
    X[:, 0] += apart * y
    s = hide_labels(X, y, np.zeros(n), ("constant", hidden), random_state=rng)
    return X, y, s


def test_clear_chances_raise_no_doubt():
    labelled = np.arange(200) < 50
    chance = HeldValues(np.where(np.arange(200) < 100, 0.5, 1e-9), labelled)
    assert read_chances(chance, 150).floor == pytest.approx(0.0, abs=1e-6)
    found = doubt(chance, ceiling=0.5, floor=0.0, errors=9.0, **RATE)
    assert found == pytest.approx(0.0, abs=1e-3)


def test_doubt_grows_with_the_floor_with_faintness_and_with_want_of_evidence(rng):
    labelled = np.arange(200) < 50
    near = expit(-2.0 + 0.3 * rng.normal(size=200) + 0.2 * labelled)
    far = expit(-2.0 + 0.3 * rng.normal(size=200) + 2.0 * labelled)
    ceiling = float(np.quantile(near[labelled], 0.8))

    def of(chance, floor, errors):
        held = HeldValues(chance, labelled)
        return doubt(held, ceiling=ceiling, floor=floor, errors=errors, **RATE)

    assert of(near, 0.5 * ceiling, 9.0) > of(near, 0.0, 9.0)
    assert of(near, 0.0, 9.0) > of(far, 0.0, 9.0)
    # A quarter of the root of 50 labels is asked for.
    assert of(far, 0.0, 1.0) == pytest.approx(of(far, 0.0, 9.0) + np.sqrt(50) / 4 - 1.0)


def test_few_labels_need_little_evidence():
    labelled = np.arange(200) < 5
    chance = HeldValues(np.where(np.arange(200) < 100, 0.5, 1e-9), labelled)
    sure, unsure = (
        doubt(chance, ceiling=0.5, floor=0.0, errors=errors, **RATE)
        for errors in (1.5, 1.0)
    )
    assert unsure == pytest.approx(sure + 0.5)


def test_a_faint_score_is_doubted_the_more_the_more_are_labelled(rng):
    labelled = np.arange(200) < 50
    chance = expit(0.3 * rng.normal(size=200) + 0.2 * labelled)
    # What is rare is so by its share of the ceiling: the same for both.
    low, high = (
        doubt(
            HeldValues(share * chance, labelled),
            ceiling=share * 0.6,
            floor=0.0,
            errors=9.0,
            **RATE,
        )
        for share in (0.2, 1.0)
    )
    assert high > low


def test_few_labels_presume_a_smooth_score():
    assert _margin(5) == -1.0
    assert _margin(40) == pytest.approx(0.0)
    assert _margin(1000) == 1.0


def test_doubt_of_constant_chances_is_finite():
    chance = HeldValues(np.full(20, 0.25), np.arange(20) < 5)
    assert evidence(chance) == 0.0
    found = doubt(chance, ceiling=0.25, floor=0.25, errors=0.0, **RATE)
    assert np.isfinite(found)
    assert found > 1.0


def test_the_boundary_stays_below_an_even_gap():
    highest = highest_even_score(3.0, 0.1)
    assert -0.02 < boundary_at(highest, 3.0, 0.1) < 0.0


def test_likelihoods_are_those_of_the_formula_and_weights_repeat_samples(rng):
    chance, labelled = rng.uniform(0.1, 0.9, 30), rng.random(30) < 0.5
    each = np.where(labelled, np.log(chance), np.log(1.0 - chance))
    assert_allclose(log_likelihoods(chance, labelled), each)
    weight = rng.integers(1, 4, 30).astype(float)
    repeated = np.repeat(each, weight.astype(int))
    assert log_loss(chance, labelled, weight) == pytest.approx(-repeated.mean())
    peer = each.mean() / (each.std() / np.sqrt(30))
    assert in_standard_errors(each) == pytest.approx(peer)
    assert in_standard_errors(each, np.full(30, 2.0)) == pytest.approx(peer)


@pytest.mark.filterwarnings("ignore::probgap.exceptions.UnreliableFitWarning")
def test_few_labels_of_a_rare_and_faint_class_do_not_flood_the_answer():
    called = []
    for seed in range(3):
        X, _, s = faint(1200, 0.1, 1.0, seed)
        model = PGPUClassifier(gap_estimator="labelling", random_state=0).fit(X, s)
        assert model.gap_estimator_.doubt_ > 0.3
        called.append(model.predict(X).mean())
    assert np.mean(called) < 0.4


def test_labels_that_say_nothing_get_the_stronger_penalty(rng):
    X = rng.normal(size=(400, 5))
    nothing = LabellingModel(random_state=0).fit(X, (rng.random(400) < 0.2).astype(int))
    assert nothing.shrinkage_ < 1.0
    assert nothing.evidence_ < 2.0
    clear = LabellingModel(random_state=0).fit(X, (X[:, 0] > 0.3).astype(int))
    assert clear.shrinkage_ == 1.0
    assert clear.evidence_ > 5.0
    assert clear.doubt_ < nothing.doubt_


def test_a_forest_joins_as_far_as_classes_overlap(square):
    X, _, _, s = square
    model = LabellingModel(random_state=0).fit(X, s)
    without = LabellingModel(forest=False, random_state=0).fit(X, s)
    assert without.forest_ is None
    assert model.forest_ is not None
    assert model.forest_.share == pytest.approx(0.5 * (1.0 - model.separability_))
    assert not np.array_equal(model.observed_gap_, without.observed_gap_)
    again = LabellingModel(random_state=0, n_jobs=2).fit(X, s)
    assert_array_equal(again.observed_gap_, model.observed_gap_)
    inside = LabellingModel(method="in_sample", random_state=0).fit(X, s)
    assert_allclose(inside.observed_gap_, inside.decision_function(X), atol=1e-4)
    assert heed(model.forest_.chance, 1.0, rate_prior(0.5)) is None


def test_beyond_so_many_samples_there_is_no_forest(square, monkeypatch):
    X, _, _, s = square
    monkeypatch.setattr("probgap.gap._forest._FOR_FOREST", range(100, 400))
    assert LabellingModel(random_state=0).fit(X, s).forest_ is None
