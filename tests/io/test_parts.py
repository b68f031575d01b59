"""Indices that compiled code would follow: a model made to crash is refused.

Each test changes a fitted model and saves it: the file is in order, the model is not.
"""

import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import Tree

from probgap import PGPUClassifier
from probgap._core.svm import NystroemSVM
from probgap.exceptions import ModelFileError
from probgap.io import load, save
from probgap.methods import NaiveClassifier


def refused(model, path, why):
    save(model, path)
    with pytest.raises(ModelFileError, match=why):
        load(path)


def set_node(field, value):
    def change(forest):
        nodes = forest._predictors[0][0].nodes
        at = np.flatnonzero(nodes["is_leaf"] == 0)[-1]
        nodes[field][at] = value(at, nodes.size) if callable(value) else value

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_node("left", 10**9),
        set_node("right", lambda _, size: size),
        set_node("left", lambda at, _: at),
        set_node("right", 0),
        set_node("feature_idx", 10**9),
        set_node("feature_idx", 2),
        set_node("feature_idx", -1),
        set_node("is_categorical", 1),
        lambda forest: setattr(forest, "n_features_in_", 1),
        lambda forest: setattr(forest, "n_features_in_", 10.0**9),
        lambda forest: setattr(forest, "_in_fit", True),
        lambda forest: delattr(forest, "n_features_in_"),
        lambda forest: delattr(forest._predictors[0][0], "nodes"),
        lambda forest: setattr(
            forest._predictors[0][0], "nodes", forest._predictors[0][0].nodes[:0]
        ),
        lambda forest: setattr(forest, "_bin_mapper", None),
        lambda forest: setattr(
            forest._bin_mapper, "is_categorical_", np.ones(2, np.uint8)
        ),
    ],
)
def test_trees_point_at_their_own_nodes_and_features(change, boosted, tmp_path):
    model = copy.deepcopy(boosted)
    change(model.gap_estimator_.estimator_)
    refused(
        model, tmp_path / "m.skops", "HistGradientBoosting|TreePredictor|estimator_ is"
    )


def test_a_tree_outside_of_a_forest_is_refused(forest, boosted, tmp_path):
    stray = copy.deepcopy(forest)
    stray.slope_ = boosted.gap_estimator_.estimator_._predictors[0][0]
    refused(stray, tmp_path / "m.skops", "belongs to no forest")


def forest_of(model):
    return model.gap_estimator_.estimator_


def rebuild(change=dict, *, features=2, classes=(2,)):
    """Build the first tree again, as a file would have it."""

    def forge(forest):
        first = forest.estimators_[0]
        state = first.tree_.__getstate__()
        state = {
            k: np.copy(v) if k in ("nodes", "values") else v for k, v in state.items()
        }
        change(state)
        tree = Tree(features, np.array(classes, dtype=np.intp), len(classes))
        tree.__setstate__(state)
        first.tree_ = tree

    return forge


def set_in_tree(field, value):
    def change(state):
        nodes = state["nodes"]
        at = np.flatnonzero(nodes["left_child"] != -1)[-1]
        nodes[field][at] = value(at, nodes.size) if callable(value) else value

    return rebuild(change)


def cut(state):
    state.update(nodes=state["nodes"][:-1], values=state["values"][:-1])


def wide(state):
    state["values"] = np.repeat(state["values"], 3, axis=2)


def set_in_first(name, value):
    return lambda forest: setattr(forest.estimators_[0], name, value)


@pytest.mark.parametrize(
    "change",
    [
        set_in_tree("left_child", 10**9),
        set_in_tree("right_child", lambda _, size: size),
        set_in_tree("left_child", lambda at, _: at),
        set_in_tree("left_child", lambda _, size: size - 1),
        set_in_tree("right_child", 0),
        set_in_tree("right_child", -1),
        set_in_tree("left_child", -2),
        set_in_tree("feature", 10**9),
        set_in_tree("feature", 2),
        set_in_tree("feature", -1),
        rebuild(cut),
        rebuild(wide, classes=(6,)),
        rebuild(features=3),
        # Room for the path of a sample is made by it.
        rebuild(lambda state: state.update(max_depth=1)),
        rebuild(lambda state: state.update(node_count=3)),
        lambda forest: setattr(
            forest.estimators_[0], "tree_", Tree(2, np.array([2], dtype=np.intp), 1)
        ),
        set_in_first("n_features_in_", 3),
        set_in_first("n_features_in_", 2.0),
        set_in_first("n_outputs_", 2),
        set_in_first("n_classes_", 3),
        set_in_first("n_classes_", np.array([2, 2])),
        lambda forest: setattr(forest, "n_features_in_", 3),
        lambda forest: setattr(forest, "n_features_in_", 2.0),
        lambda forest: setattr(forest, "n_classes_", 10**9),
        lambda forest: setattr(forest, "n_outputs_", 2),
        lambda forest: setattr(forest, "estimators_", []),
        lambda forest: delattr(forest, "n_features_in_"),
    ],
)
def test_a_forest_points_at_its_own_nodes_and_features(change, forest, tmp_path):
    forged = copy.deepcopy(forest)
    change(forest_of(forged))
    refused(forged, tmp_path / "m.skops", "its Extra|estimator_ is")


def test_a_tree_that_nothing_has_judged_is_refused(forest, tmp_path):
    for name in ("slope_", "tree_"):
        stray = copy.deepcopy(forest)
        setattr(stray, name, forest_of(stray).estimators_[0].tree_)
        forest_of(stray).estimators_[0] = forest_of(stray).estimators_[1]
        refused(stray, tmp_path / "m.skops", "belongs to no forest")


@pytest.mark.parametrize(
    "kind", [RandomForestClassifier, RandomForestRegressor, DecisionTreeClassifier]
)
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("leaves", [None, 9])
def test_sound_forests_pass(kind, n_outputs, leaves, rng, tmp_path):
    X = rng.normal(size=(80, 3))
    Y = (X[:, :n_outputs] + rng.normal(size=(80, n_outputs))).round().clip(-1, 1)
    forest = kind(max_leaf_nodes=leaves, random_state=0, ccp_alpha=0.01)
    if hasattr(forest, "n_estimators"):
        forest.set_params(n_estimators=5)
    save(forest.fit(X, Y[:, 0] if n_outputs == 1 else Y), tmp_path / "m.skops")
    trusted = [kind, DecisionTreeClassifier, DecisionTreeRegressor]
    back = load(tmp_path / "m.skops", trusted=trusted)
    assert_array_equal(back.predict(X), forest.predict(X))


WITH_SVM = PGPUClassifier(boundary=-0.5, random_state=0)
SHAPES = {
    "_n_support": np.array([-5, 10**6], dtype=np.int32),
    "support_": np.arange(3, dtype=np.int32),
    "support_vectors_": np.ones((3, 2)),
    "_dual_coef_": np.ones((1, 2)),
    "_intercept_": np.ones(0),
    "_probA": np.ones(5),
    "_probB": np.ones(5),
    "n_features_in_": 3,
    "shape_fit_": (200, 3),
    "_sparse": True,
    "kernel": np.exp,
}


@pytest.fixture(scope="module", params=[WITH_SVM, NaiveClassifier()], ids=str)
def with_svm(request, data):
    return clone(request.param).fit(*data)


@pytest.mark.parametrize("name", SHAPES)
def test_counts_of_support_vectors_fit_their_arrays(name, with_svm, tmp_path):
    model = copy.deepcopy(with_svm)
    setattr(model.estimator_, name, SHAPES[name])
    refused(model, tmp_path / "m.skops", "its (SVC|SVM)|estimator_ is")


def test_sparse_svms_are_looked_into_too(data, tmp_path):
    X, labels = data
    model = clone(WITH_SVM).fit(csr_matrix(X), labels)
    svm = model.estimator_
    coef = svm._dual_coef_
    svm._dual_coef_ = csr_matrix(coef.shape)
    refused(model, tmp_path / "m.skops", "its SVM")
    svm._dual_coef_ = coef
    svm.support_vectors_.indices[0] = 10**6
    refused(model, tmp_path / "m.skops", "csr_")


def test_sparse_landmarks_point_at_their_own_columns(data, tmp_path):
    X, labels = data
    model = NystroemSVM(n_components=20, random_state=0).fit(csr_matrix(X), labels)
    model.feature_map_.landmarks.indices[-1] = 2
    refused(model, tmp_path / "m.skops", "csr_matrix is not sound|csr_matrix was")


@pytest.mark.parametrize("place", [10**9, -1, 0, 1.0, True])
def test_words_have_columns(place, table_model, tmp_path):
    model = copy.deepcopy(table_model)
    words = model[0].named_transformers_["words"][0]
    words.vocabulary_[max(words.vocabulary_, key=words.vocabulary_.get)] = place
    refused(model, tmp_path / "m.skops", "its TfidfVectorizer")


def test_levels_have_columns(table_model, tmp_path):
    def levels(model):
        return model[0].named_transformers_["levels"]

    sound = levels(table_model)
    assert sound._infrequent_enabled
    for name, value in {
        "_n_features_outs": [1],
        "_default_to_infrequent_mappings": [np.array([0, 1, 10**6, 2, 2])],
        "_infrequent_indices": [np.array([10**6])],
        "categories_": [np.array(list("abcdefgh"), dtype=object)],
        "_infrequent_enabled": False,
        "_drop_idx_after_grouping": np.array([7], dtype=object),
    }.items():
        model = copy.deepcopy(table_model)
        setattr(levels(model), name, value)
        refused(model, tmp_path / "m.skops", "its OneHotEncoder")


@pytest.mark.parametrize("drop", [None, "first", "if_binary"])
@pytest.mark.parametrize("least", [None, 3])
def test_sound_encoders_pass(drop, least, rng, tmp_path):
    X = rng.choice(list("aaaabbbbccd"), size=(60, 2)).astype(object)
    X[:, 1] = np.where(X[:, 1] == "a", "a", "b")
    encoder = OneHotEncoder(drop=drop, min_frequency=least, handle_unknown="ignore")
    model = make_pipeline(encoder, NaiveClassifier()).fit(X, rng.random(60) < 0.5)
    save(model, tmp_path / "m.skops")
    assert_array_equal(load(tmp_path / "m.skops").predict(X), model.predict(X))
    encoder._n_features_outs = [1, 1]
    refused(model, tmp_path / "m.skops", "its OneHotEncoder was altered")
