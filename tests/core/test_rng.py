import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core.estimators import clone_with_seed
from probgap._core.runtime import as_generator, draw_seed
from probgap.exceptions import InvalidInputError
from probgap.gap import ObservedGapEstimator
from probgap.methods import (
    ElkanNotoClassifier,
    LiuTaoClassifier,
    NaiveClassifier,
    NatarajanClassifier,
    PropensityWeightedClassifier,
    PUBaggingClassifier,
    PUSBClassifier,
    SpyClassifier,
)


def test_the_same_seed_gives_the_same_stream():
    assert as_generator(3).random() == as_generator(np.int64(3)).random()
    assert as_generator(3).random() != as_generator(4).random()


def test_a_generator_is_passed_on():
    rng = np.random.default_rng(0)
    assert as_generator(rng) is rng


def test_a_random_state_gives_another_stream_each_time():
    state = np.random.RandomState(0)
    assert as_generator(state).random() != as_generator(state).random()


@pytest.mark.parametrize(
    "model",
    [
        PGPUClassifier(),
        PGPUClassifier.paper(),
        PGPUClassifierCV(boundaries=[-0.7], cv=3),
        ObservedGapEstimator(),
        ElkanNotoClassifier(form="weighted"),
        LiuTaoClassifier(),
        NatarajanClassifier(rho_plus=0.2),
        NaiveClassifier(),
        PropensityWeightedClassifier(),
        PUBaggingClassifier(n_estimators=3),
        PUSBClassifier(),
        SpyClassifier(),
    ],
)
def test_no_fit_reads_or_moves_the_global_state(square, model):
    X, _, _, s = square
    before = np.random.get_state()  # noqa: NPY002
    clone(model).set_params(random_state=0).fit(X, s)
    after = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]
    assert as_generator(None).random() != as_generator(None).random()


@pytest.mark.parametrize("bad", [-1, 0.5, "seed"])
def test_other_seeds_are_refused(bad):
    with pytest.raises(InvalidInputError, match=r"random_state must be .* Got"):
        as_generator(bad)


def test_cloning_fills_in_missing_seeds_and_keeps_chosen_ones():
    model = make_pipeline(StandardScaler(), RandomForestClassifier())
    copy = clone_with_seed(model, np.random.default_rng(0))
    assert isinstance(copy[-1].random_state, int)
    assert model[-1].random_state is None
    chosen = clone_with_seed(
        RandomForestClassifier(random_state=7), np.random.default_rng(0)
    )
    assert chosen.random_state == 7
    assert 0 <= draw_seed(np.random.default_rng(0)) < 2**31
