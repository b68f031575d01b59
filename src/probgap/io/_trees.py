"""Trees as files have them, and judges of scikit-learn's: compiled code follows indices.

Of a forest and of boosted trees a file holds what predictions need, as arrays. Nodes lie
depth first, so that which of them are leaves tells the shape of every tree: there is no
index of a node that could point outside, and no object of scikit-learn. Those are built
anew when a model is read, by the version that is there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from probgap._core.learners import Boosting, Forest
from probgap._core.types import Mask, Vector
from probgap.io._archive import refuse

Indices = NDArray[np.intp]
Table = NDArray[Any]

_NO_CHILD = -1
# Fields of scikit-learn's tables of nodes.
_OF_TREE = ("left_child", "right_child", "feature", "threshold", "missing_go_to_left")
_OF_ROUND = ("left", "right", "feature_idx", "num_threshold", "missing_go_to_left")


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Nodes of one tree, or of several one after the other, depth first.

    ``feature``, ``threshold`` and ``missing_left`` are of the inner nodes alone, ``value``
    of the leaves. A sample goes left where its feature is at most the threshold, and
    where it is missing and ``missing_left`` says so.
    """

    is_leaf: Mask
    feature: NDArray[np.int32]
    threshold: Vector
    missing_left: Mask
    value: Vector

    @classmethod
    def of_table(
        cls, table: Table, is_leaf: Mask, value: Vector, names: tuple[str, ...]
    ) -> Self:
        """Take the nodes out of one tree of scikit-learn's."""
        left, right = table[names[0]].tolist(), table[names[1]].tolist()
        order, waiting, leaves = [], [0], is_leaf.tolist()
        while waiting:
            node = waiting.pop()
            order.append(node)
            if not leaves[node]:
                waiting += (right[node], left[node])
        at = np.array(order)
        leaf = is_leaf[at]
        feature, threshold, missing = (table[name][at[~leaf]] for name in names[2:])
        kinds = feature.astype(np.int32), threshold, missing.astype(np.bool_)
        return cls(leaf, *kinds, value[at[leaf]])

    @classmethod
    def joined(cls, trees: Iterable[Self]) -> Self:
        """Put the nodes of several trees one after the other."""
        each = list(trees)
        parts = ([getattr(tree, field.name) for tree in each] for field in fields(cls))
        return cls(*map(np.concatenate, parts))

    @property
    def to_come(self) -> NDArray[np.int64]:
        """How many nodes are still to come, but for the first, before each and last."""
        return np.concatenate([[0], np.cumsum(np.where(self.is_leaf, -1, 1))])

    def to_tables(self, leaf: Table, names: tuple[str, ...]) -> list[Table]:
        """Return scikit-learn's table of the nodes of each tree.

        Nodes to come are one more after an inner node and one less after a leaf. A right
        child is where there are as many as before its parent, for the first time.
        """
        to_come = self.to_come
        ends = np.flatnonzero(np.diff(np.minimum.accumulate(to_come))) + 1
        few = np.abs(to_come).max() < 2**15  # which numpy sorts faster
        order = np.argsort(
            to_come[:-1].astype(np.int16 if few else None), kind="stable"
        )
        again = np.flatnonzero(np.diff(to_come[order]) == 0)
        right = np.zeros(order.size, dtype=np.intp)
        right[order[again]] = order[again + 1]
        inner = np.flatnonzero(~self.is_leaf)
        start = np.repeat(np.append(0, ends[:-1]), np.diff(ends, prepend=0))[inner]
        table = np.repeat(leaf, self.is_leaf.size)
        if names == _OF_ROUND:
            table["is_leaf"] = self.is_leaf
            table["value"][self.is_leaf] = self.value
        children = inner + 1 - start, right[inner] - start
        parts = (*children, self.feature, self.threshold, self.missing_left)
        for name, part in zip(names, parts, strict=True):
            table[name][inner] = part
        return np.split(table, ends[:-1])

    def count(self, n_features: int) -> int:
        """Return how many trees these are; 0 if not trees alone, of that many features."""
        to_come = self.to_come
        sound = (
            np.count_nonzero(self.is_leaf) == self.value.size
            and self.feature.size == self.is_leaf.size - self.value.size
            and bool(((self.feature >= 0) & (self.feature < n_features)).all())
            # The last node ends the last tree.
            and bool((to_come[:-1] > to_come[-1]).all())
        )
        return -int(to_come[-1]) if sound else 0


@dataclass(frozen=True, slots=True, eq=False)
class StoredForest:
    """A forest, without what only its fit needed."""

    nodes: Trees
    n_features: int
    frequency: float
    margin: float

    @classmethod
    def of(cls, forest: Forest) -> Self:
        """Take the nodes out of a forest."""
        trees = [one.tree_ for one in forest.trees.estimators_]
        each = (
            Trees.of_table(
                tree.__getstate__()["nodes"],
                tree.children_left == _NO_CHILD,
                tree.value[:, 0, 0],
                _OF_TREE,
            )
            for tree in trees
        )
        numbers = float(forest.frequency), float(forest.margin)
        return cls(Trees.joined(each), int(forest.trees.n_features_in_), *numbers)

    def restore(self) -> Forest:
        """Build the forest again."""
        from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 (slow to load)

        # Fitted, so that it has all that its version of scikit-learn asks for.
        forest = ExtraTreesRegressor(1, random_state=0, n_jobs=1).fit([[0.0]], [0.0])
        first = forest.estimators_.pop()
        state = first.tree_.__getstate__()
        leaf = np.zeros(1, dtype=state["nodes"].dtype)
        leaf["left_child"] = leaf["right_child"] = _NO_CHILD
        leaf["feature"] = leaf["threshold"] = -2  # as scikit-learn has it for leaves
        values = np.zeros((self.nodes.is_leaf.size, 1, 1))
        values[self.nodes.is_leaf, 0, 0] = self.nodes.value
        for table in self.nodes.to_tables(leaf, _OF_TREE):
            own, values = np.split(values, [table.size])
            state.update(nodes=table, values=own, node_count=table.size)
            state["max_depth"] = _depth(table["left_child"], table["right_child"])
            one = copy.copy(first)
            one.n_features_in_ = self.n_features
            one.tree_ = type(first.tree_)(self.n_features, np.ones(1, dtype=np.intp), 1)
            one.tree_.__setstate__(state)
            forest.estimators_.append(one)
        forest.n_estimators = len(forest.estimators_)
        forest.n_features_in_ = self.n_features
        return Forest(forest, self.frequency, self.margin)


@dataclass(frozen=True, slots=True, eq=False)
class StoredBoosting:
    """Boosted trees, without what only their fit needed."""

    nodes: Trees
    n_features: int
    n_rounds: tuple[int, ...]
    baseline: Vector
    margin: float

    @classmethod
    def of(cls, boosting: Boosting) -> Self:
        """Take the nodes out of boosted trees."""
        models = boosting.models
        losses = {type(model._loss).__name__ for model in models}
        if losses != {"HalfBinomialLoss"}:
            refuse(f"model must boost log-loss. Got {', '.join(sorted(losses))}.")
        tables = [tree.nodes for model in models for (tree,) in model._predictors]
        if any(table["is_categorical"].any() for table in tables):
            refuse("model must have trees of numbers. Got one that splits categories.")
        each = (
            Trees.of_table(table, table["is_leaf"] == 1, table["value"], _OF_ROUND)
            for table in tables
        )
        return cls(
            Trees.joined(each),
            int(models[0].n_features_in_),
            tuple(len(model._predictors) for model in models),
            np.array([model._baseline_prediction.item() for model in models]),
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
        leaf = np.zeros(1, dtype=like.nodes.dtype)
        bits = like.binned_left_cat_bitsets, like.raw_left_cat_bitsets
        tables = self.nodes.to_tables(leaf, _OF_ROUND)
        rounds = [[type(like)(table, *bits)] for table in tables]
        models = []
        for n_rounds, baseline in zip(self.n_rounds, self.baseline, strict=True):
            model = copy.copy(first)
            model._predictors, rounds = rounds[:n_rounds], rounds[n_rounds:]
            model._baseline_prediction = np.full_like(
                model._baseline_prediction, baseline
            )
            model.max_iter = n_rounds
            model.n_features_in_ = model._n_features = self.n_features
            models.append(model)
        return Boosting(tuple(models), self.margin)


def store(learner: Any) -> Any:
    """Return a learner as files have it."""
    kind: Any = {Forest: StoredForest, Boosting: StoredBoosting}.get(type(learner))
    return kind.of(learner) if kind else learner


def restore(learner: Any) -> Any:
    """Return a learner of a file as it was."""
    return learner.restore() if hasattr(learner, "restore") else learner


def boosting_is_sound(boosting: Any) -> bool:
    """Judge boosted trees of scikit-learn's: none splits categories."""
    n_features = boosting.n_features_in_
    return (
        not getattr(boosting, "_in_fit", False)
        and not np.any(boosting._bin_mapper.is_categorical_)
        and type(n_features) is int
        and all(
            nodes.ndim == 1
            and not nodes["is_categorical"].any()
            and _are_sound(nodes, nodes["is_leaf"] != 0, n_features, _OF_ROUND)
            and np.isfinite(nodes["value"]).all()
            for nodes in (
                tree.nodes for trees in boosting._predictors for tree in trees
            )
        )
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
    """Judge an estimator that is one tree: it says of the tree what holds of it.

    Its depth matters, as room for the path of a sample is made by it.
    """
    tree = estimator.tree_
    n_classes = np.broadcast_to(getattr(estimator, "n_classes_", 1), tree.n_outputs)
    if tree.node_count < 1:  # then there is no array to look at
        return False
    left, right = tree.children_left, tree.children_right
    nodes, is_leaf = tree.__getstate__()["nodes"], left == _NO_CHILD
    return bool(
        type(estimator.n_features_in_) is int
        and estimator.n_features_in_ == tree.n_features
        and estimator.n_outputs_ == tree.n_outputs > 0
        and tree.max_n_classes == n_classes.max()
        and np.array_equal(tree.n_classes, n_classes)
        and np.array_equal(is_leaf, right == _NO_CHILD)
        and _are_sound(nodes, is_leaf, tree.n_features, _OF_TREE)
        and _depth(left, right) == tree.max_depth
        and np.isfinite(tree.value).all()
    )


def _are_sound(
    nodes: Table, is_leaf: Mask, n_features: int, names: tuple[str, ...]
) -> bool:
    """Judge a table of nodes: all hang from the first, each from one before it."""
    inner = np.flatnonzero(~is_leaf)
    left, right, feature, threshold = (nodes[name][inner] for name in names[:4])
    children = np.concatenate([left, right]).astype(np.int64)
    return bool(
        nodes.size > 0
        and (children > np.tile(inner, 2)).all()
        and np.array_equal(np.sort(children), np.arange(1, nodes.size))
        and ((feature >= 0) & (feature < n_features)).all()
        and not np.isnan(threshold).any()
    )


def _depth(left: Indices, right: Indices) -> int:
    """Return the depth of a tree whose leaves have -1 for children."""
    depth, level = 0, np.zeros(1, dtype=np.intp)
    while True:
        inner = level[left[level] != _NO_CHILD]
        if inner.size == 0:
            return depth
        depth, level = depth + 1, np.concatenate([left[inner], right[inner]])
