"""Data that several tests use. Arrays are read-only: no test may change another's."""

from __future__ import annotations

import signal
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import settings

from probgap.datasets import hide_labels, make_square
from probgap.gap import _forest

settings.register_profile("probgap", deadline=None, max_examples=40)
settings.load_profile("probgap")

# In the background of a shell interrupts are ignored, also by the processes that tests
# start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def growing_few_trees():
    """Let forests be small, where a test does not look at what they say."""

    @contextmanager
    def patched():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_forest, "_N_TREES", 30)
            yield

    return patched


@pytest.fixture
def few_trees(growing_few_trees):
    with growing_few_trees():
        yield


def read_only(*arrays):
    for array in arrays:
        array.setflags(write=False)
    return arrays


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def square():
    """The square with labels hidden by a linear rate: X, y_true, gap, s."""
    X, y_true, posterior = make_square(400, random_state=3)
    gap = 2.0 * posterior - 1.0
    s = hide_labels(X, y_true, gap, ("linear", 0.6), random_state=4)
    return read_only(X, y_true, gap, s)


SMALL_TABLE = """
table = "small"
title = "A table that takes seconds"
splits = 2
test_share = 0.25

[svm]
C = 1.0
gamma = "auto"

[[block]]
data = ["triangles", "square"]
rates = [["inverse", 0.3, 0.5], ["constant", 0.3]]

[block.methods]
SVM = {}
Liu = {}
PGPU = { n_smallest = 3 }
PGPUcv = { boundaries = [-0.8, -0.6], cv = 2 }
clean = {}
"""


@pytest.fixture(scope="session")
def small_table():
    """A table of experiments that takes seconds, as TOML."""
    return SMALL_TABLE


@pytest.fixture
def small_spec(small_table, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(small_table)
    return path
