"""Read observed labels: which value marks a positive, which rows carry it."""

from __future__ import annotations

import numbers
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from probgap._core.errors import InvalidInputError, ProbgapWarning

# Of two strings the greater is the later in the alphabet, which is seldom the meaning.
_WORDS_FOR_UNLABELLED = frozenset(
    [
        "unlabelled",
        "unlabeled",
        "unknown",
        "unlabel",
        "unl",
        "u",
        "none",
        "null",
        "na",
        "nan",
        "no",
        "not",
        "negative",
        "neg",
        "n",
        "false",
        "missing",
        "other",
        "rest",
        "unchecked",
        "unverified",
        "untested",
    ]
)


@dataclass(frozen=True, slots=True)
class ObservedLabels:
    """Observed labels in the form the stages use.

    Attributes
    ----------
    labelled : ndarray of shape (n_samples,)
        True where the sample is a labelled positive, False where it is unlabelled.
    classes : ndarray of shape (2,)
        The two values in ascending order, as scikit-learn wants them.
    positive : int
        Which of the two means positive: 1, unless ``pos_label`` says otherwise.
    """

    labelled: NDArray[np.bool_]
    classes: NDArray[Any]
    positive: int

    def name_of(self, kind: str) -> Any:
        """Give the user's value for "labelled" or "unlabelled"."""
        at = self.positive if kind == "labelled" else 1 - self.positive
        return self.classes.tolist()[at]


def read_labels(y: ArrayLike, pos_label: object = None) -> ObservedLabels:
    """Find the labelled positives in ``y``.

    Two values: the greater marks a labelled positive, or the one that ``pos_label``
    names. One value beside missing entries (``NaN``, ``None``, ``pandas.NA``): the
    value marks a labelled positive and the missing entries are unlabelled.
    """
    values = column_or_1d(y, warn=True)
    if values.dtype.kind == "U" and not hasattr(y, "dtype"):
        # In a list of strings numpy turns NaN into the string "nan": look again.
        values = column_or_1d(np.asarray(y, dtype=object))
    missing = is_missing(values)
    if missing.any():
        return _read_value_beside_missing(values, missing, pos_label)
    _require_two_classes(values)
    classes = np.unique(values)
    positive = 1
    if pos_label is not None:
        positive = _index_of(pos_label, classes)
    elif str(classes[1]).casefold() in _WORDS_FOR_UNLABELLED:
        warnings.warn(
            f"pos_label must be given where the greater of the two labels does not mean "
            f"positive. Got {classes.tolist()!r}: {classes.tolist()[1]!r} is taken as "
            f"the labelled positive class. Say pos_label={classes.tolist()[0]!r} if it "
            "is the other way round.",
            ProbgapWarning,
            stacklevel=2,
        )
    return ObservedLabels(values == classes[positive], classes, positive)


def require_labelled_and_unlabelled(
    labels: ObservedLabels, *, n_folds: int | None = None
) -> None:
    """Check that there are enough rows of both kinds to fit anything."""
    n_labelled = int(labels.labelled.sum())
    n_unlabelled = labels.labelled.size - n_labelled
    needed = 2 if n_folds is None else n_folds
    for kind, count in (("labelled", n_labelled), ("unlabelled", n_unlabelled)):
        if count < needed:
            reason = "" if n_folds is None else ", one for each fold"
            msg = (
                f"y must hold at least {needed} {kind} samples{reason}. "
                f"Got {count} of class {labels.name_of(kind)!r} "
                f"among {labels.labelled.size} samples."
            )
            raise InvalidInputError(msg)


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which entries are missing: NaN, None or pandas.NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    # NaN and pandas.NA are the values that are not equal to themselves; pandas.NA
    # answers NA to the question, and NA has no truth value.
    return np.fromiter((_is_missing_value(v) for v in values), bool, values.size)


def _is_missing_value(value: object) -> bool:
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, numbers.Real) and bool(value != value)  # noqa: PLR0124 (NaN)


def _read_value_beside_missing(
    values: NDArray[Any], missing: NDArray[np.bool_], pos_label: object
) -> ObservedLabels:
    present = np.unique(np.asarray(values[~missing].tolist()))
    if present.size != 1:
        found = "no value" if present.size == 0 else f"{present.size} values"
        msg = (
            "y must hold exactly one value, the labelled positive class, beside "
            f"missing entries. Got {found}: {present[:5].tolist()!r}."
        )
        raise InvalidInputError(msg)
    positive = present[0]
    if pos_label is not None and pos_label != positive:
        msg = f"pos_label must be a value found in y. Got {pos_label!r}, y holds {positive!r}."
        raise InvalidInputError(msg)
    classes = np.sort(np.array([_negative_of(positive), positive]))
    return ObservedLabels(~missing, classes, _index_of(positive, classes))


def _negative_of(positive: Any) -> object:
    """Name the class that has no name of its own because y leaves it missing."""
    if isinstance(positive, np.bool_):
        return not positive
    if isinstance(positive, np.number):
        return 0 if positive != 0 else -1
    return f"not {positive}"


def _require_two_classes(values: NDArray[Any]) -> None:
    kind = type_of_target(values, input_name="y", raise_unknown=True)
    classes = np.unique(values)
    shown = classes[:5].tolist()
    if kind != "binary":
        msg = (
            "Only binary classification is supported. The type of the target is "
            f"{kind}. y must hold two values, labelled and unlabelled. "
            f"Got {classes.size} values: {shown!r}{', ...' if classes.size > 5 else ''}."
        )
        raise InvalidInputError(msg)
    if classes.size != 2:
        msg = (
            "y must hold two classes, one for labelled positives and one for "
            f"unlabelled samples. Got one class: {shown!r}."
        )
        raise InvalidInputError(msg)


def _index_of(pos_label: object, classes: NDArray[Any]) -> int:
    is_positive = np.asarray(classes == pos_label)
    if not is_positive.any():
        msg = f"pos_label must be a value found in y. Got {pos_label!r}, y holds {classes.tolist()!r}."
        raise InvalidInputError(msg)
    return int(is_positive.argmax())
