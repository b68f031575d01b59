"""Checks of trees and sparse matrices, whose indices compiled code follows blindly."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from probgap._core.errors import ModelFileError

_NO_CHILD = -1
_WORDS = 8  # of a set of categories
_OF_TREE = ("left_child", "right_child", "feature")
_OF_ROUND = ("left", "right", "feature_idx")


def require_sound_call(maker: Any, arguments: list[Any]) -> None:
    """Refuse arguments with which a tree would read outside of an array."""
    if maker.__name__ == "Tree" and np.size(arguments[1]) != arguments[2]:
        _refuse_array("Tree")


def require_sound(thing: Any) -> None:
    """Refuse an object with an index out of range."""
    if issparse(thing):
        thing.check_format(full_check=True)
    for name, is_sound in _JUDGES.items():
        if name in getattr(thing, "__dict__", {}) and not is_sound(thing):
            _refuse_array(type(thing).__name__)


def _refuse_array(name: str) -> None:
    msg = f"its {name} was altered: an index is out of range, or sizes differ"
    raise ModelFileError(msg)


def _is_sound_tree(model: Any) -> bool:
    nodes = model.tree_.__getstate__()["nodes"]
    is_leaf = nodes["left_child"] == _NO_CHILD
    if not _are_sound(nodes, _OF_TREE, is_leaf, model.n_features_in_):
        return False
    # Memory for the path of a sample is allocated by the depth.
    return bool(model.tree_.compute_node_depths().max() - 1 == model.tree_.max_depth)


def _is_sound_forest(model: Any) -> bool:
    """Judge trees in one model, which does not look at samples again for each."""
    parts = getattr(model.estimators_, "flat", model.estimators_)
    trees = (part for part in parts if hasattr(part, "tree_"))
    return all(tree.n_features_in_ <= model.n_features_in_ for tree in trees)


def _is_sound_boosting(model: Any) -> bool:
    width = model._n_features
    for tree in (tree for trees in model._predictors for tree in trees):
        nodes, sets = tree.nodes, tree.raw_left_cat_bitsets
        chosen = nodes["bitset_idx"][nodes["is_categorical"] != 0]
        if sets.shape[1] != _WORDS or (chosen >= len(sets)).any():
            return False
        if not _are_sound(nodes, _OF_ROUND, nodes["is_leaf"] != 0, width):
            return False
    return bool(model._bin_mapper.is_categorical_.size == width)


def _are_sound(nodes: Any, names: tuple[str, ...], is_leaf: Any, width: int) -> bool:
    """Return whether each child comes after its parent, and each feature exists."""
    inner = np.flatnonzero(~is_leaf)
    left, right, feature = (nodes[name][inner] for name in names)
    children = np.concatenate([left, right])
    behind = (children > np.tile(inner, 2)) & (children < nodes.size)
    known = (feature >= 0) & (feature < width)
    return bool(nodes.size > 0 and behind.all() and known.all())


# By the attribute that shows what a model is.
_JUDGES = {
    "tree_": _is_sound_tree,
    "estimators_": _is_sound_forest,
    "_predictors": _is_sound_boosting,
}
