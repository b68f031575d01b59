"""One door for randomness: whatever the user passes becomes a numpy Generator."""

from __future__ import annotations

import numbers

import numpy as np

from probgap._core.errors import InvalidInputError

RandomStateLike = int | np.integer | np.random.RandomState | np.random.Generator | None

_SEED_RANGE = 2**31 - 1  # what scikit-learn accepts as an integer random_state


def as_generator(random_state: RandomStateLike) -> np.random.Generator:
    """Turn ``random_state`` into a Generator without touching global state.

    An integer gives the same stream each time. ``None`` gives fresh entropy. A
    ``Generator`` is used as it is, a ``RandomState`` gives up one draw as the seed: with
    either, two calls differ.
    """
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(_SEED_RANGE))
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return np.random.default_rng(int(random_state))
    msg = (
        "random_state must be a non-negative integer, a numpy Generator, a numpy "
        f"RandomState or None. Got {random_state!r}."
    )
    raise InvalidInputError(msg)


def draw_seed(rng: np.random.Generator) -> int:
    """Draw an integer that a scikit-learn estimator accepts as random_state."""
    return int(rng.integers(_SEED_RANGE))
