"""Checks that a loaded model is complete and safe to compute with.

Compiled code in scikit-learn and scipy follows the indices in a model without checking
their range. A malicious file may have indices out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from inspect import Parameter, signature
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from probgap._core.types import Mask
from probgap.io._archive import refuse
from probgap.io._parts import PARTS, RULES, SCIKIT_LEARN, public_name
from probgap.io._trees import NO_CHILD, OF_ROUND, OF_TREE, Table

Sizes = dict[str, int]

_NAMES = {kind: name for name, kind in PARTS.items()}


def walk(model: object) -> Iterator[Any]:
    """Return every object that a model consists of, once each, the outer first."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        thing: Any = waiting.pop()
        if isinstance(thing, str | bytes | int | float | type) or id(thing) in seen:
            continue
        seen.add(id(thing))
        yield thing
        if isinstance(thing, dict):
            waiting += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            waiting += thing
        elif isinstance(thing, np.ndarray):
            waiting += list(thing.ravel()) if thing.dtype == object else []
        elif is_dataclass(thing):
            waiting += [getattr(thing, f.name, None) for f in fields(thing)]
        else:
            waiting += getattr(thing, "__dict__", {}).values()


def require_sound_parts(model: object) -> None:
    """Refuse a model that lacks something, or whose numbers do not fit together."""
    trees: set[int] = set()
    owned: set[int] = set()  # trees that are judged with an estimator
    for thing in walk(model):
        name = _NAMES.get(type(thing), type(thing).__name__)
        try:
            fault = _find_fault(thing)
        except Exception as e:  # noqa: BLE001 (whatever a strange model leads to)
            refuse(f"its {name} is not sound ({e})", e)
        if fault:
            refuse(f"its {name} {fault}")
        if name in ("Tree", "TreePredictor"):
            trees.add(id(thing))
        bases = {base.__name__ for base in type(thing).__mro__}
        if "BaseDecisionTree" in bases:
            owned.add(id(getattr(thing, "tree_", None)))
        if "BaseHistGradientBoosting" in bases:
            owned.update(map(id, chain(*getattr(thing, "_predictors", ()))))
    if not trees <= owned:
        refuse("it has a tree that belongs to no forest")


def _find_fault(thing: Any) -> str:
    """Return what is wrong with a thing, "" if nothing is."""
    kind, own = type(thing), getattr(thing, "__dict__", {})
    if issparse(thing):
        thing.check_format(full_check=True)
    if kind.__module__.startswith(("probgap.", "sklearn.")):
        hidden = [str(n) for n in own if callable(getattr(kind, str(n), None))]
        if hidden:
            return f"overrides {', '.join(hidden)}"
    names = [_NAMES.get(kind, ""), *(base.__name__ for base in kind.__mro__)]
    if isinstance(thing, BaseEstimator):
        if names[0]:
            _fill_in(thing)
        # An estimator that is not fitted raises before anything is computed.
        if not any(str(name).endswith("_") for name in own):
            return ""
    if public_name("ObjectNode", kind.__module__, kind.__name__) in SCIKIT_LEARN:
        names[0] = "scikit-learn"
    for name in dict.fromkeys(names):
        sizes: Sizes = {}
        wrong = _misfit(thing, name, sizes)
        if wrong:
            return f"was altered: {wrong} is invalid"
        if name in _JUDGES and not _JUDGES[name](thing, sizes):
            return "was altered: indices are out of range, or sizes do not match"
    return ""


def _fill_in(estimator: Any) -> None:
    """Set parameters that an older file lacks to their defaults."""
    for name, parameter in signature(type(estimator)).parameters.items():
        if not hasattr(estimator, name):
            if parameter.default is Parameter.empty:
                refuse(f"it lacks {name}")
            setattr(estimator, name, parameter.default)


# The language of the rules, which ``parts.toml`` explains.
_KINDS = {"float": "f", "float?": "f", "matrix": "f", "int": "i", "any": "biufOSUT"}


def _misfit(thing: object, name: str, sizes: Sizes) -> str:
    """Return the first field that is not as the rules say, "" if all are."""
    for field, forms in RULES.get(name, ()):
        value: Any = thing
        for attribute in field.split("."):
            value = getattr(value, attribute, None)
        if not any(_has_form(value, form.split(), sizes) for form in forms.split("|")):
            return field
    return ""


def _has_form(value: Any, words: list[str], sizes: Sizes) -> bool:
    kind, *names = words
    if kind in PARTS:
        return type(value) is PARTS[kind] and not _misfit(value, kind, sizes)
    if kind in _WORDS:
        return bool(_WORDS[kind](value, sizes))
    if kind == "tuple":
        return (
            isinstance(value, tuple | list)
            and _agree(names[:1], (len(value),), sizes)
            and all(_has_form(item, names[1:], sizes) for item in value)
        )
    bound = names.pop() if names and set(names[-1]) & set(">.") else ""
    if kind == "number":
        known = isinstance(value, float | int) and not isinstance(value, bool)
    elif kind == "whole":
        known = type(value) is int and value < 2**31
        known = known and all(_agree([name], (value,), sizes) for name in names)
    else:
        known = type(value) is np.ndarray or (kind == "matrix" and issparse(value))
        known = known and _agree(names, value.shape, sizes)
        known = known and value.dtype.kind in _KINDS.get(kind, value.dtype.kind)
        known = known and (kind in _KINDS or value.dtype == kind)
    if not known or kind == "any":
        return known
    return _is_within(value.data if issparse(value) else value, bound, kind[-1] == "?")


def _is_within(value: Any, bound: str, gaps: bool) -> bool:
    least, _, most = bound.lstrip(">").partition("..")
    low, high = float(least or -np.inf), float(most or np.inf)
    within = (value > low if bound[:1] == ">" else value >= low) & (value <= high)
    if "inf" not in bound:
        within &= np.isfinite(value)
    return bool(np.all(within | np.isnan(value) if gaps else within))


def _agree(names: list[str], shape: tuple[int, ...], sizes: Sizes) -> bool:
    return len(names) == len(shape) and all(
        size == (int(name) if name.isdigit() else sizes.setdefault(name, size))
        and (size > 0 or name.endswith("*"))
        for name, size in zip(names, shape, strict=True)
    )


def _is_learner(value: Any, sizes: Sizes) -> bool:
    """Judge a learner of a mixture: all see as many columns, those of the view if any."""
    width = "c" if "c" in sizes else "d"
    own = {"d": sizes[width]} if width in sizes else {}
    names = ("KernelLogistic", "LinearLogistic", "Forest", "Boosting")
    known = any(_has_form(value, [name], own) for name in names)
    return known and sizes.setdefault(width, own["d"]) == own["d"]


_WORDS: dict[str, Callable[[Any, Sizes], bool]] = {
    "None": lambda value, _: value is None,
    "other": lambda value, _: not isinstance(value, np.ndarray),
    "flag": lambda value, _: type(value) is bool,
    # An estimator, if any, expects the columns that its owner has.
    "fed": lambda v, sizes: getattr(v, "n_features_in_", sizes["d"]) == sizes["d"],
    "learner": _is_learner,
}


def _svm_is_sound(svm: Any, sizes: Sizes) -> bool:
    """Judge an SVM of libsvm, of two classes: every count fits the arrays it counts."""
    coef = svm._dual_coef_
    kinds = {issparse(part) for part in (coef, svm.dual_coef_, svm.support_vectors_)}
    return bool(
        svm._n_support.sum() == sizes["v"]
        and sizes["q*"] < 2
        and svm.shape_fit_[1] == sizes["d"]
        and kinds == {svm._sparse}
        and (not svm._sparse or coef.nnz == sizes["v"])
        and isinstance(svm.kernel, str)
    )


def _vocabulary_is_sound(vectorizer: Any, _: Sizes) -> bool:
    places = sorted(vectorizer.vocabulary_.values())
    return all(type(p) is int for p in places) and places == list(range(len(places)))


def _categories_are_sound(encoder: Any, _: Sizes) -> bool:
    """Judge a one-hot encoder: every level has a column of its own, or a shared one."""
    sizes = [len(levels) for levels in encoder.categories_]
    if encoder._infrequent_enabled:
        for column, mapping in enumerate(encoder._default_to_infrequent_mappings):
            rare = encoder._infrequent_indices[column]
            if mapping is None and rare is None:
                continue
            if mapping.size != sizes[column] or not _within(rare, sizes[column]):
                return False
            sizes[column] -= rare.size - 1
            if not _within(mapping, sizes[column]):
                return False
    dropped = encoder._drop_idx_after_grouping
    for column, at in enumerate([] if dropped is None else dropped):
        if at is not None:
            if not 0 <= at < sizes[column]:
                return False
            sizes[column] -= 1
    return list(encoder._n_features_outs) == sizes


def _within(places: Table, size: int) -> bool:
    return bool(((places >= 0) & (places < size)).all())


def _boosting_is_sound(boosting: Any, sizes: Sizes) -> bool:
    """Judge scikit-learn's boosted trees; trees with categorical splits are refused."""
    tables = [tree.nodes for trees in boosting._predictors for tree in trees]
    return (
        not getattr(boosting, "_in_fit", False)
        and not np.any(boosting._bin_mapper.is_categorical_)
        and all(
            not nodes["is_categorical"].any()
            and _are_sound(nodes, nodes["is_leaf"] != 0, sizes["d"], OF_ROUND)
            and np.isfinite(nodes["value"]).all()
            for nodes in tables
        )
    )


def _forest_is_sound(forest: Any, sizes: Sizes) -> bool:
    """Judge a forest, which does not check features again for each tree."""
    n_classes = getattr(forest, "n_classes_", 1)  # a regressor has none
    return len(forest.estimators_) > 0 and all(
        tree.n_features_in_ == sizes["d"]
        and tree.n_outputs_ == sizes["o"]
        and np.array_equal(getattr(tree, "n_classes_", 1), n_classes)
        for tree in forest.estimators_
    )


def _tree_is_sound(estimator: Any, sizes: Sizes) -> bool:
    """Judge an estimator that is one tree: its attributes must agree with the tree's.

    Depth matters, as scikit-learn allocates memory for a sample's path by it.
    """
    tree = estimator.tree_
    n_classes = np.broadcast_to(getattr(estimator, "n_classes_", 1), sizes["o"])
    left, right = tree.children_left, tree.children_right
    nodes, is_leaf = tree.__getstate__()["nodes"], left == NO_CHILD
    return bool(
        np.array_equal(tree.n_classes, n_classes)
        and sizes["c"] == n_classes.max()
        and np.array_equal(is_leaf, right == NO_CHILD)
        and _are_sound(nodes, is_leaf, sizes["d"], OF_TREE)
        and tree.compute_node_depths().max() - 1 == tree.max_depth
    )


def _are_sound(
    nodes: Table, is_leaf: Mask, n_features: int, names: tuple[str, ...]
) -> bool:
    """Judge a table of nodes: every node but the first has one parent, before it."""
    inner = np.flatnonzero(~is_leaf)
    left, right, feature, threshold = (nodes[name][inner] for name in names[:4])
    children = np.concatenate([left, right]).astype(np.int64)
    return bool(
        nodes.ndim == 1
        and nodes.size > 0
        and (children > np.tile(inner, 2)).all()
        and np.array_equal(np.sort(children), np.arange(1, nodes.size))
        and _within(feature, n_features)
        and not np.isnan(threshold).any()
    )


# Conditions beyond the rules, many of which compiled code takes for granted.
_JUDGES: dict[str, Callable[[Any, Sizes], bool]] = {
    "Curves": lambda curves, _: abs(curves.weights.sum() - 1.0) < 1e-6,
    "Forest": lambda forest, sizes: forest.nodes.count(sizes["d"]) > 0,
    "Boosting": lambda b, sizes: 0 < sum(b.n_rounds) == b.nodes.count(sizes["d"]),
    "BaseDecisionTree": _tree_is_sound,
    "BaseForest": _forest_is_sound,
    "BaseHistGradientBoosting": _boosting_is_sound,
    "BaseLibSVM": _svm_is_sound,
    "CountVectorizer": _vocabulary_is_sound,
    "OneHotEncoder": _categories_are_sound,
}
