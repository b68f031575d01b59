"""Forests and boosted trees of the default, as files have them.

A file holds what predictions need, as arrays. Nodes are in depth-first order, so that the
leaves determine the shape of every tree: there is no index of a node that could be out of
range, and no object of scikit-learn. These are built anew when a model is loaded, by the
installed version.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from probgap._core import learners
from probgap._core._sklearn import HalfBinomialLoss
from probgap._core.types import Mask, Vector
from probgap.io._archive import refuse

Table = NDArray[Any]

NO_CHILD = -1
# Fields of scikit-learn's tables of nodes, in trees and in rounds of boosting.
OF_TREE = ("left_child", "right_child", "feature", "threshold", "missing_go_to_left")
OF_ROUND = ("left", "right", "feature_idx", "num_threshold", "missing_go_to_left")


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Nodes of trees, one tree after the other, depth first.

    ``feature``, ``threshold`` and ``missing_left`` are those of the inner nodes, ``value``
    that of the leaves. A sample goes left where its feature is at most the threshold, and
    where it is missing and ``missing_left`` is true.
    """

    is_leaf: Mask
    feature: NDArray[np.int32]
    threshold: Vector
    missing_left: Mask
    value: Vector

    @classmethod
    def of(cls, tables: list[Table], value: Vector, names: tuple[str, ...]) -> Self:
        """Take the nodes out of scikit-learn's tables."""
        nodes = np.concatenate(tables)
        is_leaf = nodes[names[1]] <= 0  # the first node is nobody's child
        place = np.concatenate([np.arange(table.size) for table in tables])
        left, _, feature, threshold, missing = (nodes[n][~is_leaf] for n in names)
        if not np.array_equal(left, place[~is_leaf] + 1):
            refuse("model has trees whose nodes are not in depth-first order.")
        kinds = feature.astype(np.int32), threshold, missing.astype(np.bool_)
        return cls(is_leaf, *kinds, value[is_leaf])

    @property
    def balance(self) -> NDArray[np.int64]:
        """Number of inner nodes less that of leaves, before each node and of all."""
        return np.concatenate([[0], np.cumsum(np.where(self.is_leaf, -1, 1))])

    def count(self, n_features: int) -> int:
        """Return the number of trees; 0 if these are not trees of that many features."""
        balance = self.balance
        sound = (
            np.count_nonzero(self.is_leaf) == self.value.size
            and self.feature.size == self.is_leaf.size - self.value.size
            and bool(((self.feature >= 0) & (self.feature < n_features)).all())
            # The last node ends the last tree.
            and bool((balance[:-1] > balance[-1]).all())
        )
        return -int(balance[-1]) if sound else 0

    def to_tables(
        self, leaf: Table, names: tuple[str, ...]
    ) -> list[tuple[Table, Vector]]:
        """Return scikit-learn's table of each tree, and the values of its nodes.

        A tree ends where the balance reaches a new minimum. A right child is the first
        node after its parent with the same balance.
        """
        balance = self.balance
        ends = np.flatnonzero(np.diff(np.minimum.accumulate(balance))) + 1
        order = np.argsort(balance[:-1], kind="stable")
        again = np.flatnonzero(np.diff(balance[order]) == 0)
        right = np.zeros(order.size, dtype=np.intp)
        right[order[again]] = order[again + 1]
        inner = np.flatnonzero(~self.is_leaf)
        start = np.repeat(np.append(0, ends[:-1]), np.diff(ends, prepend=0))[inner]
        table = np.repeat(leaf, self.is_leaf.size)
        children = inner + 1 - start, right[inner] - start
        parts = (*children, self.feature, self.threshold, self.missing_left)
        for name, part in zip(names, parts, strict=True):
            table[name][inner] = part
        value = np.zeros(self.is_leaf.size)
        value[self.is_leaf] = self.value
        return list(
            zip(np.split(table, ends[:-1]), np.split(value, ends[:-1]), strict=True)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """A forest, without what only its fit needed."""

    nodes: Trees
    n_features: int
    frequency: float
    margin: float

    @classmethod
    def of(cls, forest: learners.Forest) -> Self:
        """Take the nodes out of a forest."""
        trees = [one.tree_ for one in forest.trees.estimators_]
        tables = [tree.__getstate__()["nodes"] for tree in trees]
        value = np.concatenate([tree.value[:, 0, 0] for tree in trees])
        numbers = float(forest.frequency), float(forest.margin)
        nodes = Trees.of(tables, value, OF_TREE)
        return cls(nodes, int(forest.trees.n_features_in_), *numbers)

    def restore(self) -> learners.Forest:
        """Build the forest again."""
        from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 (slow to load)

        # Fitted, so that it has all that its version of scikit-learn asks for.
        forest = ExtraTreesRegressor(1, random_state=0, n_jobs=1).fit([[0.0]], [0.0])
        first = forest.estimators_.pop()
        state = first.tree_.__getstate__()
        leaf = np.zeros(1, dtype=state["nodes"].dtype)
        leaf["left_child"] = leaf["right_child"] = NO_CHILD
        leaf["feature"] = leaf["threshold"] = -2  # as scikit-learn has it for leaves
        for table, value in self.nodes.to_tables(leaf, OF_TREE):
            state |= {"nodes": table, "values": value[:, None, None]}
            state["node_count"] = table.size
            one = copy.copy(first)
            one.n_features_in_ = self.n_features
            one.tree_ = type(first.tree_)(self.n_features, np.ones(1, dtype=np.intp), 1)
            one.tree_.__setstate__(state)
            one.tree_.max_depth = one.tree_.compute_node_depths().max() - 1
            forest.estimators_.append(one)
        forest.n_estimators = len(forest.estimators_)
        forest.n_features_in_ = self.n_features
        return learners.Forest(forest, self.frequency, self.margin)


@dataclass(frozen=True, slots=True, eq=False)
class Boosting:
    """Boosted trees, without what only their fit needed."""

    nodes: Trees
    n_features: int
    n_rounds: tuple[int, ...]
    baseline: Vector
    margin: float

    @classmethod
    def of(cls, boosting: learners.Boosting) -> Self:
        """Take the nodes out of boosted trees."""
        models = boosting.models
        tables = [tree.nodes for model in models for (tree,) in model._predictors]
        value = np.concatenate([table["value"] for table in tables])
        return cls(
            Trees.of(tables, value, OF_ROUND),
            int(models[0].n_features_in_),
            tuple(len(model._predictors) for model in models),
            np.array([model._baseline_prediction.item() for model in models]),
            float(boosting.margin),
        )

    def restore(self) -> learners.Boosting:
        """Build the models again."""
        from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415

        # Fitted, so that it has all that its version of scikit-learn asks for.
        first = HistGradientBoostingRegressor(
            loss=HalfBinomialLoss(), max_iter=1, early_stopping=False, random_state=0
        ).fit([[0.0], [1.0]], [0.0, 1.0])
        like = first._predictors[0][0]
        bits = like.binned_left_cat_bitsets, like.raw_left_cat_bitsets
        leaf = np.zeros(1, dtype=like.nodes.dtype)
        rounds = []
        for table, value in self.nodes.to_tables(leaf, OF_ROUND):
            table["value"], table["is_leaf"] = value, table["right"] == 0
            rounds.append([type(like)(table, *bits)])
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
        return learners.Boosting(tuple(models), self.margin)
