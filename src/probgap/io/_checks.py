"""Checks of a model that was read: whether it is whole, and safe to compute with.

Compiled code in scikit-learn and scipy follows indices that it finds in a model without
asking whether they point anywhere. In a file made to harm they may not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from probgap.io._archive import refuse
from probgap.io._parts import PARTS, RULES, SCIKIT_LEARN, misfit, public_name
from probgap.io._trees import boosting_is_sound, forest_is_sound, tree_is_sound

_NAMES = {kind: name for name, kind in PARTS.items()}


def walk(model: object) -> Iterator[Any]:
    """Return everything that a model consists of, once each, the outer first."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        thing = waiting.pop()
        plain = isinstance(thing, str | bytes | int | float | type)
        if not plain and id(thing) not in seen:
            seen.add(id(thing))
            yield thing
            waiting.extend(inner_of(thing))


def inner_of(thing: Any) -> list[object]:
    """Return what a thing holds; nothing where it is compiled, or an array of numbers."""
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    if isinstance(thing, np.ndarray):
        return list(thing.ravel()) if thing.dtype == object else []
    if is_dataclass(thing) and not isinstance(thing, type):
        return [getattr(thing, f.name, None) for f in fields(thing)]
    return list(vars(thing).values()) if hasattr(thing, "__dict__") else []


def require_sound_parts(model: object) -> None:
    """Refuse a model that lacks something, or whose numbers do not fit together."""
    trees: set[int] = set()
    owned: set[int] = set()
    for thing in walk(model):
        name = _NAMES.get(type(thing), type(thing).__name__)
        try:
            fault = _find_fault(thing)
            owned.update(map(id, _trees_of(thing)))
        except Exception as e:  # noqa: BLE001 (whatever a strange model leads to)
            refuse(f"its {name} is not sound ({e})", e)
        if fault:
            refuse(f"its {name} {fault}")
        if name in ("Tree", "TreePredictor"):
            trees.add(id(thing))
    if not trees <= owned:
        refuse("it has a tree that belongs to no forest")


def _trees_of(thing: Any) -> list[Any]:
    """Return the trees that are judged with a thing."""
    bases = [base.__name__ for base in type(thing).__mro__]
    if "BaseDecisionTree" in bases:
        return [getattr(thing, "tree_", None)]
    boosts = "BaseHistGradientBoosting" in bases
    rounds = getattr(thing, "_predictors", ()) if boosts else ()
    return [tree for trees in rounds for tree in trees]


def _find_fault(thing: Any) -> str:
    """Return what is wrong with a thing, "" if nothing is."""
    kind, own = type(thing), getattr(thing, "__dict__", {})
    if issparse(thing):
        return "" if _sparse_is_sound(thing) else "was altered: indices point outside"
    if kind.__module__.startswith(("probgap.", "sklearn.")):
        hidden = [str(n) for n in own if callable(getattr(kind, str(n), None))]
        if hidden:
            return f"brings {', '.join(hidden)} of its own"
    known = _NAMES.get(kind, "")
    if known and isinstance(thing, BaseEstimator):
        lacking = _fill_in(thing)
        if lacking:
            return f"lacks {', '.join(lacking)}"
    if public_name("ObjectNode", kind.__module__, kind.__name__) in SCIKIT_LEARN:
        known = "scikit-learn"
    # What is not fitted, a parameter, fails before anything is computed.
    if is_dataclass(thing) or any(str(name).endswith("_") for name in own):
        wrong = misfit(thing, RULES.get(known, ""), {})
        if wrong:
            return f"was altered: {wrong} is not what it must be"
    for base in kind.__mro__:
        learnt, is_sound = _COMPILED.get(base.__name__, ("", bool))
        if learnt in own and not is_sound(thing):
            return "was altered: indices in it point outside, or numbers do not fit"
    return ""


def _fill_in(estimator: Any) -> list[str]:
    """Give parameters that an older file lacks their defaults; return those without."""
    known = signature(type(estimator)).parameters.values()
    lacking = [each for each in known if not hasattr(estimator, each.name)]
    for each in lacking:
        if each.default is not Parameter.empty:
            setattr(estimator, each.name, each.default)
    return [each.name for each in lacking if each.default is Parameter.empty]


def _sparse_is_sound(matrix: Any) -> bool:
    parts = (matrix.data, matrix.indices, matrix.indptr)
    if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
        return False
    matrix.check_format(full_check=True)
    return bool(matrix.indptr[-1] <= min(matrix.indices.size, matrix.data.size))


def _svm_is_sound(svm: Any) -> bool:
    """Judge an SVM of libsvm: every count fits the arrays that it counts."""
    sizes: dict[str, int] = {}
    if misfit(svm, RULES["libsvm"], sizes):
        return False
    n_classes, n_vectors = sizes["k"], sizes["v"]
    n_pairs = n_classes * (n_classes - 1) // 2
    coef = svm._dual_coef_
    kinds = {issparse(part) for part in (coef, svm.dual_coef_, svm.support_vectors_)}
    return bool(
        n_classes > 1
        and svm._n_support.sum() == n_vectors
        and (sizes["c"], sizes["p"]) == (n_classes - 1, n_pairs)
        and sizes["q*"] in (0, n_pairs)
        and svm.shape_fit_[1] == sizes["d"]
        and kinds == {svm._sparse}
        and (not svm._sparse or coef.nnz == (n_classes - 1) * n_vectors)
        and isinstance(svm.kernel, str)
    )


def _vocabulary_is_sound(vectorizer: Any) -> bool:
    places = sorted(vectorizer.vocabulary_.values())
    return all(type(p) is int for p in places) and places == list(range(len(places)))


def _categories_are_sound(encoder: Any) -> bool:
    """Judge a one-hot encoder: every level has a column of its own, or a shared one."""
    sizes = [len(levels) for levels in encoder.categories_]
    if encoder._infrequent_enabled:
        for column, mapping in enumerate(encoder._default_to_infrequent_mappings):
            rare = encoder._infrequent_indices[column]
            if mapping is None and rare is None:
                continue
            if mapping.size != sizes[column] or not (
                0 <= rare.min() <= rare.max() < sizes[column]
            ):
                return False
            sizes[column] -= rare.size - 1
            if not 0 <= mapping.min() <= mapping.max() < sizes[column]:
                return False
    if encoder._drop_idx_after_grouping is not None:
        for column, dropped in enumerate(encoder._drop_idx_after_grouping):
            if dropped is not None:
                if not 0 <= dropped < sizes[column]:
                    return False
                sizes[column] -= 1
    return list(encoder._n_features_outs) == sizes


def _calibrated_is_sound(calibrated: Any) -> bool:
    n_classes = calibrated.classes.size
    n_needed = 1 if n_classes == 2 else n_classes
    return (
        n_classes > 1
        and calibrated.classes.ndim == 1
        and len(calibrated.calibrators) == n_needed
    )


# By class of scikit-learn: the attribute without which it is not fitted, and the judge.
_COMPILED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "BaseDecisionTree": ("tree_", tree_is_sound),
    "BaseForest": ("estimators_", forest_is_sound),
    "BaseHistGradientBoosting": ("_predictors", boosting_is_sound),
    "BaseLibSVM": ("support_vectors_", _svm_is_sound),
    "CountVectorizer": ("vocabulary_", _vocabulary_is_sound),
    "_CalibratedClassifier": ("calibrators", _calibrated_is_sound),
    "OneHotEncoder": ("categories_", _categories_are_sound),
}
