"""The language of the rules that parts of a model must obey.

A rule is "fields: form", or several forms with "|" between them. Forms are "float n d" for
a matrix of finite numbers, "matrix n d" for one that may be sparse, "float? n" for a vector
that may have gaps, "bool n*" for one that may be empty, "float n >0" and "float n 0..1" for
vectors within bounds, "number 0.." for a single one, "whole n" for one of the sizes,
"tuple 2 number" for two numbers, the name of a part, or a word of ``_WORDS``. Where the
name of a size occurs again, in an object or in a part of it, it must be the same. "+name"
adds the rules of another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from probgap.io._parts import PARTS, RULES

Sizes = dict[str, int]

_KINDS = {"float": "f", "float?": "f", "matrix": "f", "int": "i", "any": "biufOSUT"}


def misfit(thing: object, rules: str, sizes: Sizes) -> str:
    """Return the first field that is not as the rules say, "" if all are."""
    for clause in filter(None, rules.split(";")):
        names, _, forms = clause.partition(":")
        if not forms:
            wrong = misfit(thing, RULES[clause.strip(" +")], sizes)
            if wrong:
                return wrong
        for name in names.split() if forms else ():
            value: Any = thing
            for attribute in name.split("."):
                value = getattr(value, attribute, None)
            if not any(_has_form(value, f.split(), sizes) for f in forms.split("|")):
                return name
    return ""


def _has_form(value: Any, words: list[str], sizes: Sizes) -> bool:
    kind, *names = words
    if kind in PARTS:
        return type(value) is PARTS[kind] and not misfit(value, RULES[kind], sizes)
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
