"""Judges of trees: compiled code walks from node to node without asking where to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_NO_CHILD = -1


def boosted_trees(forest: Any) -> list[Any]:
    """List the trees of boosting, of all rounds."""
    return [tree for trees in forest._predictors for tree in trees]


def boosting_is_sound(forest: Any) -> bool:
    """Judge boosted trees: a child comes after its parent, a feature is one of X's."""
    if getattr(forest, "_in_fit", False) or np.any(forest._bin_mapper.is_categorical_):
        return False
    n_features = forest.n_features_in_
    return type(n_features) is int and all(
        _boosted_tree_is_sound(tree.nodes, n_features) for tree in boosted_trees(forest)
    )


def _boosted_tree_is_sound(nodes: NDArray[Any], n_features: int) -> bool:
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    split = nodes[inner]
    children = np.stack([split["left"], split["right"]]).astype(np.int64)
    return bool(
        nodes.ndim == 1
        and nodes.size > 0
        and (children > inner).all()
        and (children < nodes.size).all()
        and features_exist(split["feature_idx"], n_features)
        and not nodes["is_categorical"].any()
    )


def forest_is_sound(forest: Any) -> bool:
    """Judge a forest: it hands samples to its trees without counting features again."""
    n_classes = getattr(forest, "n_classes_", 1)  # a regressor has none
    return bool(
        len(forest.estimators_) > 0
        and type(forest.n_features_in_) is int
        and all(
            tree.n_features_in_ == forest.n_features_in_
            and tree.n_outputs_ == forest.n_outputs_
            and np.array_equal(getattr(tree, "n_classes_", 1), n_classes)
            for tree in forest.estimators_
        )
    )


def tree_is_sound(estimator: Any) -> bool:
    """Judge an estimator that is one tree: it says of the tree what holds of it."""
    tree = estimator.tree_
    n_classes = np.broadcast_to(getattr(estimator, "n_classes_", 1), tree.n_outputs)
    return bool(
        type(estimator.n_features_in_) is int
        and estimator.n_features_in_ == tree.n_features
        and estimator.n_outputs_ == tree.n_outputs > 0
        and tree.max_n_classes == n_classes.max()
        and np.array_equal(tree.n_classes, n_classes)
        and _nodes_are_sound(tree)
    )


def _nodes_are_sound(tree: Any) -> bool:
    """Judge nodes: all hang from the first, each from one, none deeper than is said.

    The depth matters as room for the path of a sample is made by it.
    """
    if tree.node_count < 1:  # then there is no array to look at
        return False
    left, right = tree.children_left, tree.children_right
    inner = np.flatnonzero(left != _NO_CHILD)
    children = np.concatenate([left[inner], right[inner]])
    return bool(
        ((left == _NO_CHILD) == (right == _NO_CHILD)).all()
        and (children > np.tile(inner, 2)).all()
        and np.array_equal(np.sort(children), np.arange(1, tree.node_count))
        and features_exist(tree.feature[inner], tree.n_features)
        and depth_of(left, right) == tree.max_depth
    )


def features_exist(indices: NDArray[Any], n_features: int) -> bool:
    """Say whether all indices are of features that there are."""
    return bool((indices >= 0).all() and (indices < n_features).all())


def depth_of(left: NDArray[np.intp], right: NDArray[np.intp]) -> int:
    """Return the depth of a tree whose leaves have -1 for children."""
    depth, level = 0, np.zeros(1, dtype=np.intp)
    while True:
        inner = level[left[level] != _NO_CHILD]
        if inner.size == 0:
            return depth
        depth, level = depth + 1, np.concatenate([left[inner], right[inner]])
