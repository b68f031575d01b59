"""Looks into a model that was read: whether it is whole, and safe to compute with.

Compiled code in scikit-learn and scipy follows indices that it finds in a model without
asking whether they point anywhere. In a file made to harm they may not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from probgap._core.errors import ModelFileError
from probgap.io._mixtures import (
    MIXED,
    classifier_is_sound,
    columns_are_sound,
    curves_are_sound,
    directions_are_sound,
    kernel_is_sound,
    linear_is_sound,
    mixture_is_sound,
    owner_is_sound,
    reading_is_sound,
    words_are_sound,
)
from probgap.io._stored import boosting_is_whole, forest_is_whole
from probgap.io._trees import (
    boosted_trees,
    boosting_is_sound,
    forest_is_sound,
    tree_is_sound,
)
from probgap.io._walk import name_of, walk

TreesOf = Callable[[Any], list[Any]]

_INSIDE = ("probgap.", "sklearn.")
_BOOSTING = "sklearn.ensemble._hist_gradient_boosting"
_TREES = ("sklearn.tree._tree.Tree", f"{_BOOSTING}.predictor.TreePredictor")
# What classes of ours got since files of them were written, and what it was before.
_ADDED: dict[str, dict[str, Any]] = {
    "probgap.gap._observed.ObservedGapEstimator": {"device": None, "verbose": 0},
    "probgap.reweight._problem.KMMResult": {"n_passes": 0.0, "bytes_moved": 0.0},
}


def require_sound_parts(model: object) -> None:
    """Refuse a model that lacks something, or whose indices point outside of it."""
    things = list(walk(model))
    judged: set[int] = set()
    for thing in things:
        _require_whole(thing)
        if issparse(thing):
            _judge(_sparse_is_sound, thing)
        for kind in type(thing).__mro__:
            learnt, check = _CHECKS.get(name_of(kind), _NONE)
            # What is not fitted, a parameter, fails before compiled code runs.
            if hasattr(thing, learnt):
                _judge(check, thing)
                trees_of: TreesOf = _TREES_JUDGED_BY.get(check, _no_trees)
                judged.update(id(tree) for tree in trees_of(thing))
    if any(name_of(type(t)) in _TREES and id(t) not in judged for t in things):
        msg = "it has a tree that belongs to no forest"
        raise ModelFileError(msg)


def _judge(check: Callable[[Any], bool], thing: object) -> None:
    try:
        sound = check(thing)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        msg = f"its {type(thing).__name__} is not sound ({error})"
        raise ModelFileError(msg) from error
    if not sound:
        msg = (
            f"its {type(thing).__name__} was altered: indices in it point outside, or "
            "its numbers do not fit together"
        )
        raise ModelFileError(msg)


def _require_whole(thing: Any) -> None:
    """Refuse what another version left without something, and methods laid over."""
    kind = type(thing)
    if not kind.__module__.startswith(_INSIDE):
        return
    for name, value in _ADDED.get(f"{kind.__module__}.{kind.__name__}", {}).items():
        learnt = not name.endswith("_") or hasattr(thing, "estimator_")
        if learnt and not hasattr(thing, name):
            object.__setattr__(thing, name, value)  # results are frozen
    lacking: list[str] = []
    if kind.__module__.startswith("probgap."):
        names = [f.name for f in fields(kind)] if is_dataclass(kind) else []
        if isinstance(thing, BaseEstimator):
            names = kind._get_param_names()
        lacking = [name for name in names if not hasattr(thing, name)]
    if lacking:
        msg = f"its {kind.__name__} lacks {', '.join(lacking)}"
        raise ModelFileError(msg)
    hidden = [
        n
        for n in getattr(thing, "__dict__", ())
        if callable(getattr(kind, str(n), None))
    ]
    if hidden:
        msg = f"its {kind.__name__} brings {', '.join(map(str, hidden))} of its own"
        raise ModelFileError(msg)


def _sparse_is_sound(matrix: Any) -> bool:
    parts = (matrix.data, matrix.indices, matrix.indptr)
    if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
        return False
    matrix.check_format(full_check=True)
    return bool(matrix.indptr[-1] <= min(matrix.indices.size, matrix.data.size))


def _machine_is_sound(machine: Any) -> bool:
    """Judge a machine of libsvm: every count fits the arrays that it counts."""
    counts = np.asarray(machine._n_support)
    n_vectors, n_inputs = machine.support_vectors_.shape
    n_classes = counts.size
    n_pairs = n_classes * (n_classes - 1) // 2
    coef = machine._dual_coef_
    if machine._sparse != issparse(coef) or machine._sparse != issparse(
        machine.support_vectors_
    ):
        return False
    if machine._sparse and coef.nnz != (n_classes - 1) * n_vectors:
        return False
    return bool(
        counts.ndim == 1
        and n_classes > 1
        and (counts >= 0).all()
        and counts.sum() == n_vectors == machine.support_.size
        and n_inputs == machine.n_features_in_ == machine.shape_fit_[1]
        and coef.shape == (n_classes - 1, n_vectors)
        and machine._intercept_.size == n_pairs
        and machine._probA.size in (0, n_pairs)
        and machine._probB.size == machine._probA.size
        and isinstance(machine.kernel, str)
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


# By type: the attribute without which it is not fitted, and the judge.
_CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    f"{_BOOSTING}.gradient_boosting.BaseHistGradientBoosting": (
        "_predictors",
        boosting_is_sound,
    ),
    "probgap._core.learners.KernelLogistic": ("coef", kernel_is_sound),
    "probgap._core.learners.LinearLogistic": ("coef", linear_is_sound),
    "probgap._core.learners.Mixture": ("learners", mixture_is_sound),
    "probgap._core.views.Columns": ("scale", columns_are_sound),
    "probgap._core.views.Directions": ("basis", directions_are_sound),
    "probgap._core.views.Words": ("basis", words_are_sound),
    **dict.fromkeys(MIXED, ("mixture_", owner_is_sound)),
    "probgap.pgpu._base.BasePGPU": ("estimator_", classifier_is_sound),
    "probgap.io._stored.StoredBoosting": ("nodes", boosting_is_whole),
    "probgap.io._stored.StoredForest": ("nodes", forest_is_whole),
    "probgap.reading._curves.Curves": ("weights", curves_are_sound),
    "probgap.reading._reading.Reading": ("curves", reading_is_sound),
    "sklearn.ensemble._forest.BaseForest": ("estimators_", forest_is_sound),
    "sklearn.feature_extraction.text.CountVectorizer": (
        "vocabulary_",
        _vocabulary_is_sound,
    ),
    "sklearn.preprocessing._encoders.OneHotEncoder": (
        "categories_",
        _categories_are_sound,
    ),
    "sklearn.svm._base.BaseLibSVM": ("support_vectors_", _machine_is_sound),
    "sklearn.tree._classes.BaseDecisionTree": ("tree_", tree_is_sound),
}
_NONE: tuple[str, Callable[[Any], bool]] = ("__no_such_attribute__", bool)

_TREES_JUDGED_BY: dict[Callable[[Any], bool], TreesOf] = {
    boosting_is_sound: boosted_trees,
    tree_is_sound: lambda estimator: [estimator.tree_],
}


def _no_trees(_: object) -> list[Any]:
    return []
