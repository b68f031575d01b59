"""Random numbers, progress and threads of a fit."""

import re
from threading import Event, Thread

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core.estimators import clone_with_seed
from probgap._core.runtime import as_generator, draw_seed, one_thread, remark, stage
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


def test_what_a_random_state_stands_for():
    assert as_generator(3).random() == as_generator(np.int64(3)).random()
    assert as_generator(3).random() != as_generator(4).random()
    rng, state = np.random.default_rng(0), np.random.RandomState(0)
    assert as_generator(rng) is rng
    assert as_generator(state).random() != as_generator(state).random()
    assert as_generator(None).random() != as_generator(None).random()
    for bad in (-1, 0.5, "seed"):
        with pytest.raises(InvalidInputError, match=r"random_state must be .* Got"):
            as_generator(bad)


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


def test_cloning_fills_in_missing_seeds_and_keeps_chosen_ones(rng):
    model = make_pipeline(StandardScaler(), RandomForestClassifier())
    copy = clone_with_seed(model, rng)
    assert isinstance(copy[-1].random_state, int)
    assert model[-1].random_state is None
    chosen = clone_with_seed(RandomForestClassifier(random_state=7), rng)
    assert chosen.random_state == 7
    assert 0 <= draw_seed(rng) < 2**31


def test_a_stage_is_announced_before_it_begins_and_timed_when_it_ends(capsys):
    with stage(1, "long work"):
        assert capsys.readouterr().err == "[probgap] long work ..."
    assert re.fullmatch(r" \d+\.\d s\n", capsys.readouterr().err)
    with stage(0, "long work"):  # nobody asked
        pass
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_remarks_are_lines_of_their_own_and_the_stage_is_said_again(capsys):
    with stage(1, "one"):
        remark("a plan")
        remark("another")
    with stage(1, "two"):
        pass
    remark("alone")
    said = re.sub(r"\d+\.\d s", "0.0 s", capsys.readouterr().err)
    assert said.splitlines() == [
        "[probgap] one ...",
        "[probgap] a plan",
        "[probgap] another",
        "[probgap] one ... 0.0 s",
        "[probgap] two ... 0.0 s",
        "[probgap] alone",
    ]


def n_threads():
    return [library["num_threads"] for library in threadpool_info()]


def test_one_thread_is_one_and_ends():
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2):
        before = n_threads()
        assert 2 in before
        with one_thread():
            assert set(n_threads()) == {1}
            with one_thread():
                assert set(n_threads()) == {1}
            assert set(n_threads()) == {1}
        assert n_threads() == before


def test_threads_that_overlap_leave_no_limit_behind():
    entered, leave = Event(), Event()

    def stay():
        with one_thread():
            entered.set()
            leave.wait(10)

    with threadpool_limits(2):
        before = n_threads()
        other = Thread(target=stay)
        with one_thread():
            other.start()
            assert entered.wait(10)
        leave.set()
        other.join()
        assert n_threads() == before
