"""The trees of the default: what comes back, and what is not saved."""

import copy
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor

from probgap.exceptions import ModelFileError
from probgap.gap import MixedGapEstimator
from probgap.io import load, save


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    labelled = rng.random(300) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
    return X, labelled, np.where(labelled, 1.0, 0.3 * rng.random(300))


@pytest.fixture(scope="module")
def fitted(task):
    """A model that uses all of its learners."""
    model = MixedGapEstimator(random_state=0).fit(*task[:2])
    model.mixture_ = replace(model.mixture_, weights=np.array([0.2, 0.3, 0.4, 0.1]))
    return model


@pytest.fixture
def round_trip(fitted, tmp_path):
    """Save and load a model with other learners; return what they say, before and after."""

    def trip(rows, *learners):
        model = copy.copy(fitted)
        model.mixture_ = replace(
            fitted.mixture_, learners=learners, weights=np.ones(len(learners))
        )
        save(model, tmp_path / "m.skops")
        back = load(tmp_path / "m.skops")
        return [model.mixture_.log_odds(rows), back.mixture_.log_odds(rows)]

    return trip


def test_every_learner_comes_back_to_the_last_bit(fitted, tmp_path):
    save(fitted, tmp_path / "m.skops")
    back = load(tmp_path / "m.skops")
    for rows in (
        np.random.default_rng(9).normal(size=(999, 3)) * 2.0,
        np.zeros((1, 3)),
    ):
        assert_array_equal(back.predict_proba(rows), fitted.predict_proba(rows))
        for one, other in zip(
            back.mixture_.learners, fitted.mixture_.learners, strict=True
        ):
            assert type(one) is type(other)
            assert_array_equal(one.log_odds(rows), other.log_odds(rows))
    once = (tmp_path / "m.skops").read_bytes()
    save(back, tmp_path / "m.skops")
    assert (tmp_path / "m.skops").read_bytes() == once


def trees_of(fitted, X, target):
    """Fit a forest and boosted trees as the default has them, to other samples."""
    _, _, forest, boosting = fitted.mixture_.learners
    trees = ExtraTreesRegressor(5, bootstrap=True, random_state=0).fit(X, target)
    boosted = copy.copy(boosting.models[0]).fit(X, target)
    return replace(forest, trees=trees), replace(boosting, models=(boosted, boosted))


def test_samples_without_a_value_go_the_same_way(fitted, task, round_trip):
    X = np.where(np.random.default_rng(0).random((300, 3)) < 0.2, np.nan, task[0])
    learners = trees_of(fitted, X, task[2])
    # A mixture would clip samples, which no forest needs.
    before, after = round_trip(task[0], *learners)
    assert_array_equal(before, after)


@pytest.mark.parametrize("n_rows", [2, 40])
def test_trees_of_one_leaf_come_back(n_rows, fitted, round_trip):
    X = np.zeros((n_rows, 3))
    assert_array_equal(*round_trip(X, *trees_of(fitted, X, np.full(n_rows, 0.25))))


def test_files_are_small(fitted, tmp_path):
    save(fitted, tmp_path / "m.skops")
    forest, boosting = fitted.mixture_.learners[2:]
    n_nodes = sum(tree.tree_.node_count for tree in forest.trees)
    n_nodes += sum(len(t.nodes) for m in boosting.models for (t,) in m._predictors)
    rest = 8 * 300 * (300 + 20) + 50_000  # of the kernel, and of the plan
    assert (tmp_path / "m.skops").stat().st_size < 14 * n_nodes + rest


def test_a_reading_comes_back(model, tmp_path):
    scores = np.linspace(-5.0, 5.0, 50)
    for before in (model.reading_, model.reading_.update(class_prior=0.95)):
        forged = copy.copy(model)
        forged.reading_ = before
        save(forged, tmp_path / "m.skops")
        after = load(tmp_path / "m.skops").reading_
        assert type(after) is type(before)
        assert_array_equal(after.posterior(scores), before.posterior(scores))
        assert after.scenarios() == before.scenarios()
        for field in fields(before):
            if field.name not in ("curves", "scores"):
                assert getattr(after, field.name) == getattr(before, field.name)


@pytest.mark.parametrize("part", ["estimator_", "gap_estimator_"])
def test_a_classifier_gives_its_mixtures_the_columns_they_need(
    part, model, fitted, tmp_path
):
    # Trees do not count columns: they would read what lies beyond the sample.
    forged = copy.copy(model)
    setattr(forged, part, fitted)
    save(forged, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="its PGPUClassifier was altered"):
        load(tmp_path / "m.skops")
