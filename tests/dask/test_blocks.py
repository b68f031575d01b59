"""Which rows are drawn from blocks."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from probgap.dask._blocks import draw_sample
from probgap.exceptions import InvalidInputError, ProbgapWarning


def cut(n, cuts):
    edges = [0, *sorted({c for c in cuts if 0 < c < n}), n]
    return tuple(np.diff(edges).tolist())


def draw(labelled, chunks, n_rows, seed=0):
    X = np.column_stack([np.arange(labelled.size), np.ones(labelled.size)])
    blocks = da.from_array(X, chunks=(chunks, 1))
    labels = da.from_array(labelled, chunks=(chunks,))
    return draw_sample(blocks, labels, (None, None), 8 * 2 * n_rows, seed)


@settings(max_examples=15, deadline=None)
@given(
    n_labelled=st.integers(2, 20),
    cuts=st.lists(st.integers(1, 99), max_size=6),
    room=st.integers(45, 120),
    seed=st.integers(0, 2**31),
)
def test_the_sample_depends_on_rows_and_seed_alone(n_labelled, cuts, room, seed):
    rng = np.random.default_rng(n_labelled)
    labelled = rng.permutation(np.arange(100) < n_labelled)
    whole = draw(labelled, (100,), room, seed)
    parts = draw(labelled, cut(100, cuts), room, seed)
    assert_array_equal(parts.samples, whole.samples)
    assert_array_equal(parts.rows, whole.rows)
    assert_array_equal(whole.samples[:, 0], whole.rows)
    assert_array_equal(labelled[whole.rows], whole.labels.labelled)
    assert (np.diff(whole.rows) > 0).all()
    assert whole.rows.size == min(room, 100)
    assert whole.labels.labelled.sum() == n_labelled
    if room >= 100:
        assert whole.weight is None
    else:
        assert_array_equal(whole.weight[whole.labels.labelled], 1.0)
        assert whole.weight.sum() == pytest.approx(100)
        assert len(np.unique(whole.weight[~whole.labels.labelled])) == 1


def test_another_seed_draws_other_rows():
    labelled = np.arange(1000) % 50 == 0
    one, other = (draw(labelled, (400, 600), 300, seed) for seed in (0, 1))
    assert not np.array_equal(one.rows, other.rows)
    assert abs(one.rows.mean() - 500) < 60


def test_labelled_rows_beyond_the_room_are_drawn_from_and_one_sentence_says_so():
    labelled = np.arange(100) < 60
    with pytest.warns(
        ProbgapWarning, match=r"The 60 labelled rows take more.* 20 of them are drawn"
    ):
        some = draw(labelled, (50, 50), 40)
    assert (some.labels.labelled.sum(), (~some.labels.labelled).sum()) == (20, 20)
    assert_array_equal(some.weight, np.where(some.labels.labelled, 3.0, 2.0))
    with pytest.warns(ProbgapWarning, match="80 of them"):
        some = draw(np.arange(100) < 90, (50, 50), 90)
    assert some.labels.labelled.sum() == 80


def test_room_for_no_row_is_refused():
    with pytest.raises(InvalidInputError, match=r"max_memory must hold .* 64 bytes"):
        draw(np.arange(100) < 60, (100,), 3)


def test_many_labels_are_too_many():
    with pytest.raises(InvalidInputError, match="two values"):
        draw(np.arange(100) % 11, (50, 50), 40)


def test_blocks_without_rows_are_refused_in_a_sentence():
    with pytest.raises(InvalidInputError, match=r"X must hold rows\. Got none"):
        draw_sample(da.zeros((0, 2)), da.zeros(0), (None, None), 64, 0)
