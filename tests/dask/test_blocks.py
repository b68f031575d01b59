"""Summaries over blocks are those of the whole."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from probgap._core.folds import RowFolds
from probgap._core.values import HeldValues
from probgap.dask import _quantile
from probgap.dask._engine import constant
from probgap.dask._table import open_table
from probgap.dask._values import BlockValues


def cut(n, cuts):
    edges = [0, *sorted({c for c in cuts if 0 < c < n}), n]
    return tuple(np.diff(edges).tolist())


def in_blocks(values, labelled, chunks):
    X = da.from_array(np.arange(values.size, dtype=float)[:, None], chunks=(chunks, 1))
    table = open_table(X, da.from_array(labelled, chunks=(chunks,)), None, 2, 0)
    edges = np.cumsum(chunks)[:-1]
    return BlockValues(table, [constant(part) for part in np.split(values, edges)])


numbers = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 0.5, 1.0])


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(numbers, min_size=6, max_size=60),
    cuts=st.lists(st.integers(1, 59), max_size=5),
    q=st.floats(0.0, 1.0),
    shown=st.sampled_from([2, 3, 1024]),
    most=st.integers(1, 60),
    data=st.data(),
)
def test_summaries_do_not_depend_on_blocks(values, cuts, q, shown, most, data):
    values = np.array(values)
    labelled = np.array(
        data.draw(st.lists(st.booleans(), min_size=values.size, max_size=values.size))
    )
    labelled[:2], labelled[-2:] = True, False
    held = HeldValues(values, labelled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_quantile, "_SHOWN", shown)
        blocks = in_blocks(values, labelled, cut(values.size, cuts))
        for kind in (True, False):
            assert blocks.quantile(q, labelled=kind) == held.quantile(q, labelled=kind)
            assert blocks.count(labelled=kind) == held.count(labelled=kind)
            middle = float(np.median(values))
            assert blocks.count_at_most(middle, labelled=kind) == held.count_at_most(
                middle, labelled=kind
            )
            assert_array_equal(
                blocks.least(3, labelled=kind), np.sort(held.least(3, labelled=kind))
            )
            assert_array_equal(
                blocks.spread(most, labelled=kind), held.spread(most, labelled=kind)
            )
            places = blocks.table.places(np.arange(2), labelled=kind)
            assert_array_equal(places, np.flatnonzero(labelled == kind)[:2])
            scale = np.abs(values).max() + 1.0
            assert_allclose(
                blocks.total(labelled=kind),
                held.total(labelled=kind),
                atol=1e-10 * scale,
            )
            assert_allclose(
                blocks.mean(labelled=kind), held.mean(labelled=kind), atol=1e-12 * scale
            )
            assert_allclose(
                blocks.variance(labelled=kind),
                held.variance(labelled=kind),
                atol=1e-12 * scale**2,
            )
        assert blocks.frequency() == pytest.approx(held.frequency())
        assert_allclose(blocks.total(), values.sum(), atol=1e-10 * scale)


def test_a_mean_in_standard_errors_is_that_of_the_whole(rng):
    values, labelled = rng.normal(0.1, 1.0, 300), rng.random(300) < 0.5
    blocks = in_blocks(values, labelled, (100, 150, 50))
    expected = HeldValues(values, labelled).in_standard_errors()
    assert blocks.in_standard_errors() == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(
    labelled=st.lists(st.booleans(), min_size=1, max_size=80).map(np.array),
    at=st.integers(0, 80),
    n_splits=st.integers(2, 7),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_run_of_rows_finds_its_folds_by_itself(labelled, at, n_splits, seed):
    folds = RowFolds(n_splits, seed)
    whole = folds.fold_of(labelled, 0, 0)
    before = labelled[:at]
    rest = folds.fold_of(labelled[at:], int(before.sum()), int((~before).sum()))
    assert_array_equal(rest, whole[at:])
    for kind in (True, False):
        counts = np.bincount(whole[labelled == kind], minlength=n_splits)
        assert counts.max() - counts.min() <= 1


def test_folds_are_drawn_anew_by_another_seed_and_hold_out_every_row_once(rng):
    y = rng.random(200) < 0.3
    one, other = (RowFolds(5, seed).fold_of(y, 0, 0) for seed in (0, 1))
    assert (one != other).mean() > 0.5
    held_out = np.concatenate([test for _, test in RowFolds(5, 0).split(y, y)])
    assert_array_equal(np.sort(held_out), np.arange(200))
    assert RowFolds(4).get_n_splits() == 4
    assert repr(RowFolds(4)) == "RowFolds(n_splits=4, random_state=0)"
    # Neither the place in a group of five nor the neighbour tells the fold.
    assert len({tuple(one[~y][k : k + 5]) for k in range(0, 100, 5)}) > 10
