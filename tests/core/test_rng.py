import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probgap._core.errors import InvalidInputError
from probgap._core.estimators import clone_with_seed
from probgap._core.rng import as_generator, draw_seed


def test_the_same_seed_gives_the_same_stream():
    assert as_generator(3).random() == as_generator(np.int64(3)).random()
    assert as_generator(3).random() != as_generator(4).random()


def test_a_generator_is_passed_on():
    rng = np.random.default_rng(0)
    assert as_generator(rng) is rng


def test_a_random_state_gives_another_stream_each_time():
    state = np.random.RandomState(0)
    assert as_generator(state).random() != as_generator(state).random()


def test_nothing_reads_or_moves_the_global_state():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert as_generator(None).random() != as_generator(None).random()
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


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
