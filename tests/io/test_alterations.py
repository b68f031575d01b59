"""Numbers of a saved model that were changed: refused at load, with one sentence.

Digests are right in every file, as someone would write it who knows the format.
"""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from probgap import PGPUClassifier
from probgap.gap import MixedGapEstimator
from probgap.io import load

# Not fitted, or not used after the fit: what random numbers are drawn by.
FREE = re.compile(
    r"random_state|_feature_subsample_rng|_num_iter|n_iter_|class_weight_"
)
SMALL = {
    "default": PGPUClassifier(random_state=0),
    "paper": PGPUClassifier.paper(random_state=0),
}


def changed(value, at=-1):
    def change(old):
        new = old.copy()
        new.flat[at] = value
        return new

    return change


ALTERATIONS = {
    "NaN": lambda a: changed(np.nan)(a) if a.dtype.kind == "f" else None,
    "cut": lambda a: a[:-1],
    "another axis": lambda a: a[None],
    "text": lambda a: a.astype(str),
}
# As other models have it: labels of text, another number of samples, samples left out.
FINE = {
    "classes_: text",
    "classifiers_.0.classes: text",
    "kmm_.weights: cut",
    "reading_.scores: cut",
    "relabelling_.positive_share: NaN",
}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SMALL)
def test_no_altered_array_is_loaded(name, altered, data, every):
    """Each array is altered in one way, the next in another; in all ways if slow."""
    file = altered(SMALL[name].fit(data[0][:100], data[1][:100]))
    taken = []
    for place, (path, value) in enumerate(file.arrays()):
        for turn, (how, alter) in enumerate(ALTERATIONS.items()):
            if not every and (place + turn) % len(ALTERATIONS):
                continue
            other = None if FREE.search(path) or value.size < 2 else alter(value)
            if other is None or f"{path}: {how}".endswith(tuple(FINE)):
                continue
            why = file.reason(path, other)
            if not why:
                taken.append(f"{path}: {how}")
            else:
                assert re.search(r"Cannot load .+: .+\.$", why)
    assert taken == [], "\n".join(taken)


# Numbers and arrays of the right form, but for what they say. Paths of the default model.

MIXTURE = "gap_estimator_.mixture_"
KERNEL, LINEAR, FOREST, BOOSTING = (f"{MIXTURE}.learners.{k}" for k in range(4))
NO_NUMBER = [float("nan"), "1", True]


def resized(n):
    return lambda old: np.resize(old, n)


ATTACKS = {
    "classes_": [resized(3)],
    "n_features_in_": [3, 2.0, None],
    "positive_index_": [2, -1, None, "1"],
    "boundary_.value": NO_NUMBER,
    "observed_gap_": [changed(-1.1)],
    "posterior_": [changed(1.1)],
    "sample_weight_": [changed(-0.1)],
    "relabelling_.labels": [changed(2)],
    "relabelling_.positive_share": [changed(np.inf), changed(-0.1)],
    "reading_.boundary": NO_NUMBER,
    "reading_.slope": NO_NUMBER,
    "reading_.n_hidden": [-1.0, *NO_NUMBER],
    "reading_.class_prior_interval.0": NO_NUMBER,
    "reading_.n_hidden_interval": [[]],
    "reading_.curves.weights": [changed(-0.1), lambda old: 2.0 * old],
    "reading_.curves.ceiling": [changed(1.5)],
    "reading_.curves.share": [changed(-0.5)],
    "reading_.curves.middle": [changed(np.inf), np.transpose],
    "reading_.curves.width": [changed(0.0)],
    "reading_.curves.spread": [changed(0.0)],
    "gap_estimator_.n_features_in_": [3, 2.0, None],
    f"{MIXTURE}.weights": [changed(-0.1), resized(3), resized(5)],
    f"{MIXTURE}.intercept": NO_NUMBER,
    f"{MIXTURE}.learners": [[]],
    f"{KERNEL}.coef": [changed(np.inf), resized(2)],
    f"{KERNEL}.scale": [changed(0.0), resized(3)],
    f"{KERNEL}.intercept": NO_NUMBER,
    f"{KERNEL}.features.gamma": [-1.0, 0.0, *NO_NUMBER],
    f"{KERNEL}.features.landmarks": [lambda old: old[:, :1]],
    f"{KERNEL}.features.rotation": [lambda old: old[0]],
    # One learner needs other columns than the rest.
    f"{LINEAR}.coef": [resized(3)],
    f"{LINEAR}.intercept": NO_NUMBER,
    f"{FOREST}.n_features": [0, 1, 3, 2.0, 2**31, None],
    f"{FOREST}.frequency": [2.0, *NO_NUMBER],
    f"{FOREST}.margin": [0.0, 0.5, *NO_NUMBER],
    f"{FOREST}.nodes.feature": [
        changed(2),
        changed(-1),
        changed(10**9),
        lambda old: old.astype(np.int64),
    ],
    f"{FOREST}.nodes.value": [changed(np.inf), lambda old: old.astype(np.float32)],
    # A child that is not there.
    f"{FOREST}.nodes.is_leaf": [
        changed(False),
        changed(True, at=0),
        np.invert,
        lambda old: np.append(old, False),
        lambda old: old.astype(np.uint8),
    ],
    f"{BOOSTING}.n_features": [1, 3, 2**31 - 1],
    f"{BOOSTING}.margin": [0.5, None],
    f"{BOOSTING}.n_rounds.0": [41, 0, -1, 40.0, True],
    f"{BOOSTING}.n_rounds": [[]],
    f"{BOOSTING}.baseline": [resized(4)],
    f"{BOOSTING}.nodes.feature": [changed(2), changed(-1)],
    f"{BOOSTING}.nodes.value": [changed(-np.inf)],
    f"{BOOSTING}.nodes.is_leaf": [
        changed(False),
        changed(True, at=0),
        lambda old: np.roll(old, 1),
    ],
}


def test_what_does_not_fit_together_is_refused(altered, model):
    file = altered(model)
    values = dict(file.arrays())
    assert ATTACKS.keys() <= file.nodes.keys()
    taken = [
        f"{path}: {attack}"
        for path, attacks in ATTACKS.items()
        for attack in attacks
        if not file.reason(path, attack(values[path]) if callable(attack) else attack)
    ]
    assert taken == []


VIEWS = {
    "Columns": {"scale": [changed(0.0), resized(4)], "centre": [changed(np.inf)]},
    "Directions": {
        "basis": [changed(np.nan), lambda old: old[:, :2], lambda old: old.astype(int)],
        "scale": [changed(0.0), resized(599)],
        "offset": [changed(np.nan), resized(2)],
    },
    "Words": {
        "basis": [changed(np.nan), lambda old: old[:, :2]],
        "factor": [changed(np.nan), resized(599)],
        "counts": [1, None],
    },
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_come_back_or_are_refused(name, altered, rng):
    X = rng.normal(size=(80, 3 if name == "Columns" else 600))
    labels = (X[:, 0] + rng.normal(size=80) > 0.5).astype(int)
    if name == "Columns":
        X[:, 1] *= 1e40
    if name == "Words":
        X = csr_array(np.maximum(X - 1.5, 0.0))
    before = MixedGapEstimator(random_state=0).fit(X, labels)
    file = altered(before)
    assert file.nodes["mixture_.view"]["__class__"] == name
    after = load(file.path)
    assert_array_equal(after.predict_proba(X), before.predict_proba(X))
    values = {path: file.nodes[path] for path in file.nodes} | dict(file.arrays())
    for field, attacks in VIEWS[name].items():
        path = f"mixture_.view.{field}"
        for attack in attacks:
            value = attack(values[path]) if callable(attack) else attack
            assert "was altered" in file.reason(path, value)
