"""Learners made of trees, as files have them: only what predictions need.

Nodes lie depth first, so that which of them are leaves tells the shape of every tree: a
file holds no index of a node that could point outside. Neither it holds an object of
scikit-learn. Those are built anew when a model is read, by the version that is there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probgap._core.errors import ModelFileError
from probgap._core.learners import Boosting, Forest
from probgap._core.types import Mask, Matrix, Vector
from probgap.io._trees import depth_of, features_exist
from probgap.io._walk import inner_of, walk

Indices = NDArray[np.intp]

_MOST_FEATURES = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """Nodes of one tree, or of several one after the other, depth first.

    Attributes
    ----------
    is_leaf : ndarray of shape (n_nodes,)
        Which nodes are leaves.
    feature, threshold, missing_left : ndarray of shape (n_nodes - n_leaves,)
        A sample goes left where its feature is at most the threshold, and where it is
        missing and ``missing_left`` says so.
    value : ndarray of shape (n_leaves,)
        What leaves predict.
    """

    is_leaf: Mask
    feature: NDArray[np.int32]
    threshold: Vector
    missing_left: Mask
    value: Vector

    @classmethod
    def joined(cls, trees: Iterable[Nodes]) -> Nodes:
        """Put the nodes of several trees one after the other."""
        each = list(trees)
        return cls(
            *(
                np.concatenate([getattr(tree, name) for tree in each])
                for name in ("is_leaf", "feature", "threshold", "missing_left", "value")
            )
        )

    @property
    def inner(self) -> Indices:
        """Which nodes are no leaves."""
        return np.flatnonzero(~self.is_leaf)

    def children(self) -> tuple[Indices, Indices]:
        """Return the left and the right child of each inner node of one tree.

        Nodes still to come are one more after an inner node and one less after a leaf.
        A right child is where there are as many as before its parent, for the first
        time.
        """
        to_come = _to_come(self.is_leaf)[:-1]
        order = np.argsort(to_come, kind="stable")
        again = np.flatnonzero(np.diff(to_come[order]) == 0)
        right = np.zeros(to_come.size, dtype=np.intp)
        right[order[again]] = order[again + 1]
        return self.inner + 1, right[self.inner]

    def trees(self) -> Iterator[Nodes]:
        """Give the nodes of each tree."""
        least = np.minimum.accumulate(_to_come(self.is_leaf))
        ends = np.flatnonzero(np.diff(least)) + 1
        leaves = np.cumsum(self.is_leaf)[ends - 1]
        start, inner_start, leaf_start = 0, 0, 0
        for end, leaf_end in zip(ends.tolist(), leaves.tolist(), strict=True):
            inner = slice(inner_start, end - leaf_end)
            yield Nodes(
                self.is_leaf[start:end],
                self.feature[inner],
                self.threshold[inner],
                self.missing_left[inner],
                self.value[leaf_start:leaf_end],
            )
            start, inner_start, leaf_start = end, end - leaf_end, leaf_end


def _to_come(is_leaf: Mask) -> NDArray[np.int64]:
    """Return how many nodes are still to come, but for the first, before each and last."""
    steps = np.where(is_leaf, -1, 1)
    return np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)


def _depth_first(left: NDArray[Any], right: NDArray[Any], is_leaf: Mask) -> Indices:
    """Return the nodes of a tree in the order that files have them in."""
    lefts, rights, leaves = left.tolist(), right.tolist(), is_leaf.tolist()
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if not leaves[node]:
            waiting += (rights[node], lefts[node])
    return np.array(order, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class StoredForest:
    """A forest, without what only its fit needed."""

    nodes: Nodes
    n_features: int
    frequency: float
    margin: float

    @classmethod
    def of(cls, forest: Forest) -> StoredForest:
        """Take the nodes out of a forest."""
        return cls(
            Nodes.joined(_nodes_of_tree(one.tree_) for one in forest.trees.estimators_),
            int(forest.trees.n_features_in_),
            float(forest.frequency),
            float(forest.margin),
        )

    def restore(self) -> Forest:
        """Build the forest again."""
        from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 (slow to load)

        # Fitted, so that it has all that its version of scikit-learn asks for.
        forest = ExtraTreesRegressor(1, random_state=0, n_jobs=1).fit([[0.0]], [0.0])
        first = forest.estimators_[0]
        forest.estimators_ = []
        for nodes in self.nodes.trees():
            one = copy.copy(first)
            one.tree_ = _tree_of_nodes(nodes, self.n_features, first.tree_)
            one.n_features_in_ = self.n_features
            forest.estimators_.append(one)
        forest.n_estimators = len(forest.estimators_)
        forest.n_features_in_ = self.n_features
        return Forest(forest, self.frequency, self.margin)

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        return self.restore().log_odds(samples)


def _nodes_of_tree(tree: Any) -> Nodes:
    is_leaf = tree.children_left == -1
    order = _depth_first(tree.children_left, tree.children_right, is_leaf)
    inner, leaves = order[~is_leaf[order]], order[is_leaf[order]]
    return Nodes(
        is_leaf[order],
        tree.feature[inner].astype(np.int32),
        tree.threshold[inner],
        tree.missing_go_to_left[inner].astype(np.bool_),
        tree.value[leaves, 0, 0],
    )


def _tree_of_nodes(nodes: Nodes, n_features: int, like: Any) -> Any:
    left, right, inner = *nodes.children(), nodes.inner
    state = like.__getstate__()
    table = np.zeros(nodes.is_leaf.size, dtype=state["nodes"].dtype)
    table["left_child"] = table["right_child"] = -1
    table["feature"] = table["threshold"] = -2  # as scikit-learn has it for leaves
    table["left_child"][inner], table["right_child"][inner] = left, right
    table["feature"][inner] = nodes.feature
    table["threshold"][inner] = nodes.threshold
    table["missing_go_to_left"][inner] = nodes.missing_left
    values = np.zeros((table.size, 1, 1))
    values[nodes.is_leaf, 0, 0] = nodes.value
    tree = type(like)(n_features, np.ones(1, dtype=np.intp), 1)
    depth = depth_of(table["left_child"], table["right_child"])
    tree.__setstate__(
        {
            **state,
            "max_depth": depth,
            "node_count": table.size,
            "nodes": table,
            "values": values,
        }
    )
    return tree


@dataclass(frozen=True, slots=True, eq=False)
class StoredBoosting:
    """Boosted trees, without what only their fit needed."""

    nodes: Nodes
    n_features: int
    n_rounds: tuple[int, ...]
    baseline: Vector
    margin: float

    @classmethod
    def of(cls, boosting: Boosting) -> StoredBoosting:
        """Take the nodes out of boosted trees."""
        losses = {type(model._loss).__name__ for model in boosting.models}
        if losses != {"HalfBinomialLoss"}:
            msg = f"model must boost log-loss. Got {', '.join(sorted(losses))}."
            raise ModelFileError(msg)
        rounds = [tree for model in boosting.models for tree in model._predictors]
        return cls(
            Nodes.joined(_nodes_of_predictor(tree) for (tree,) in rounds),
            int(boosting.models[0].n_features_in_),
            tuple(len(model._predictors) for model in boosting.models),
            np.array([model._baseline_prediction.item() for model in boosting.models]),
            float(boosting.margin),
        )

    def restore(self) -> Boosting:
        """Build the models again."""
        from sklearn._loss.loss import HalfBinomialLoss  # noqa: PLC0415
        from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415

        # Fitted, so that it has all that its version of scikit-learn asks for.
        first = HistGradientBoostingRegressor(
            loss=HalfBinomialLoss(), max_iter=1, early_stopping=False, random_state=0
        ).fit([[0.0], [1.0]], [0.0, 1.0])
        like = first._predictors[0][0]
        trees = self.nodes.trees()
        models = []
        for n_rounds, baseline in zip(self.n_rounds, self.baseline, strict=True):
            model = copy.copy(first)
            model._predictors = [
                [_predictor_of_nodes(next(trees), like)] for _ in range(n_rounds)
            ]
            model._baseline_prediction = np.full_like(
                first._baseline_prediction, baseline
            )
            model.max_iter = n_rounds
            model.n_features_in_ = model._n_features = self.n_features
            models.append(model)
        return Boosting(tuple(models), self.margin)

    def log_odds(self, samples: Matrix) -> Vector:
        """Return the log-odds of the target for each sample."""
        return self.restore().log_odds(samples)


def _nodes_of_predictor(predictor: Any) -> Nodes:
    table = predictor.nodes
    table = table[_depth_first(table["left"], table["right"], table["is_leaf"])]
    is_leaf = table["is_leaf"].astype(np.bool_)
    split = table[~is_leaf]
    if split["is_categorical"].any():
        msg = "model must have trees of numbers. Got one that splits categories."
        raise ModelFileError(msg)
    return Nodes(
        is_leaf,
        split["feature_idx"].astype(np.int32),
        split["num_threshold"].copy(),
        split["missing_go_to_left"].astype(np.bool_),
        table["value"][is_leaf],
    )


def _predictor_of_nodes(nodes: Nodes, like: Any) -> Any:
    left, right, inner = *nodes.children(), nodes.inner
    table = np.zeros(nodes.is_leaf.size, dtype=like.nodes.dtype)
    table["is_leaf"] = nodes.is_leaf
    table["left"][inner], table["right"][inner] = left, right
    table["feature_idx"][inner] = nodes.feature
    table["num_threshold"][inner] = nodes.threshold
    table["missing_go_to_left"][inner] = nodes.missing_left
    table["value"][nodes.is_leaf] = nodes.value
    return type(like)(table, like.binned_left_cat_bitsets, like.raw_left_cat_bitsets)


def forest_is_whole(forest: StoredForest) -> bool:
    """Judge a stored forest: its nodes make trees, of features that there are."""
    return bool(
        _count_trees(forest.nodes, forest.n_features) > 0
        and type(forest.frequency) is float
        and 0.0 <= forest.frequency <= 1.0
        and _is_margin(forest.margin)
    )


def boosting_is_whole(boosting: StoredBoosting) -> bool:
    """Judge stored boosting: its nodes make trees, as many as its models have."""
    rounds, baseline = boosting.n_rounds, boosting.baseline
    return bool(
        type(rounds) is tuple
        and len(rounds) > 0
        and all(type(count) is int and count > 0 for count in rounds)
        and _count_trees(boosting.nodes, boosting.n_features) == sum(rounds)
        and baseline.shape == (len(rounds),)
        and baseline.dtype == np.float64
        and np.isfinite(baseline).all()
        and _is_margin(boosting.margin)
    )


def _is_margin(value: object) -> bool:
    """Judge how far probabilities stay from 0 and 1."""
    return type(value) is float and 0.0 < value < 0.5


def _count_trees(nodes: Nodes, n_features: int) -> int:
    """Count the trees that nodes make; 0 where they make none, or not only trees."""
    n_leaves = np.count_nonzero(nodes.is_leaf)
    sizes = {
        "is_leaf": (np.bool_, nodes.is_leaf.size),
        "feature": (np.int32, nodes.is_leaf.size - n_leaves),
        "threshold": (np.float64, nodes.is_leaf.size - n_leaves),
        "missing_left": (np.bool_, nodes.is_leaf.size - n_leaves),
        "value": (np.float64, n_leaves),
    }
    if type(nodes) is not Nodes or not all(
        isinstance(array := getattr(nodes, name), np.ndarray)
        and array.dtype == kind
        and array.shape == (size,)
        for name, (kind, size) in sizes.items()
    ):
        return 0
    to_come = _to_come(nodes.is_leaf)
    sound = (
        type(n_features) is int
        and n_features <= _MOST_FEATURES
        and features_exist(nodes.feature, n_features)
        # Samples without a value may be split off by an infinite threshold.
        and not np.isnan(nodes.threshold).any()
        and np.isfinite(nodes.value).all()
        # The last node ends the last tree.
        and bool((to_come[:-1] > to_come[-1]).all())
    )
    return -int(to_come[-1]) if sound else 0


def store_learners(model: Any) -> Any:
    """Return a model with learners made of trees as files have them, the rest as it is."""
    return _exchange(
        model,
        {
            id(thing): (StoredForest if type(thing) is Forest else StoredBoosting).of(
                thing  # type: ignore[arg-type]
            )
            for thing in walk(model)
            if type(thing) in (Forest, Boosting)
        },
    )


def restore_learners(model: Any) -> Any:
    """Return a model that was read with its learners built again."""
    return _exchange(
        model,
        {
            id(thing): thing.restore()
            for thing in walk(model)
            if isinstance(thing, StoredForest | StoredBoosting)
        },
    )


def _exchange(model: Any, others: dict[int, Any]) -> Any:
    """Copy a model, but for its arrays, with others in the place of some things."""
    if not others:
        return model
    kept = {id(thing): thing for thing in walk(model) if not inner_of(thing)}
    return copy.deepcopy(model, {**kept, **others})
