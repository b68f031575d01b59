"""Checks of what users pass: samples, observed labels, numbers and folds."""

import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import PredefinedSplit, StratifiedKFold, check_cv
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from probgap._core._sklearn import num_samples
from probgap._core.defaults import DEFAULTS, WORDS_FOR_NO, WORDS_FOR_UNLABELLED
from probgap._core.errors import InvalidInputError, refuse, warn
from probgap._core.runtime import draw_seed
from probgap._core.types import Mask, Matrix, Rows, Vector

Fold = tuple[Rows, Rows]

# A gap is computed as 2 P - 1: rounding may carry it this far outside [-1, 1].
_ROUNDING = 1e-9
# Row-major, because sums over a column-major copy of the same data round differently.
_SAMPLES: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
}
# What errors say where a cell is no number.
_NO_NUMBER = re.compile("(?i)nan|convert|argument|dtype")
_NUMERALS = ["zero", "one", "two", "three", "four", "five"]


def check_unit_interval(values: ArrayLike, name: str, n_samples: int) -> Vector:
    """Return one probability for each sample, or raise if some are not in [0, 1]."""
    checked = np.asarray(values, dtype=np.float64)
    if checked.shape != (n_samples,):
        refuse(
            f"{name} must have one value for each of the {n_samples} samples. Got shape {checked.shape}."
        )
    if not ((checked >= 0.0) & (checked <= 1.0)).all():
        refuse(
            f"{name} must lie in [0, 1]. Got {checked.min():.6g} to {checked.max():.6g}."
        )
    return checked


def check_scores(scores: ArrayLike) -> Vector:
    """Return the scores as a float array, or raise if they are not one."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        odd = f"{np.count_nonzero(~np.isfinite(values))} that are not finite"
        wrong = odd if values.ndim == 1 else f"shape {values.shape}"
        refuse(
            f"scores must be a one-dimensional array of finite numbers. Got {wrong}."
        )
    return values


def check_gap(observed_gap: ArrayLike) -> Vector:
    """Return the gap as a float array, or raise if it is not one."""
    gap: Vector = check_array(
        observed_gap, ensure_2d=False, dtype=np.float64, input_name="observed_gap"
    )
    if gap.ndim != 1:
        refuse(f"observed_gap must be one-dimensional. Got shape {gap.shape}.")
    largest = float(np.abs(gap).max())
    if largest > 1.0 + _ROUNDING:
        refuse(f"observed_gap must lie in [-1, 1]. Got a value of size {largest:.6g}.")
    return gap


def check_labelled(
    labelled: ArrayLike, n_samples: int, *, both: bool = False, name: str = "labelled"
) -> Mask:
    """Return the mask of labelled positives; with ``both``, both kinds must occur."""
    mask = np.asarray(labelled)
    if mask.shape != (n_samples,):
        refuse(
            f"{name} must have one entry for each of the {n_samples} samples. Got shape {mask.shape}."
        )
    if mask.dtype != np.bool_ and not np.isin(mask, (0, 1)).all():
        refuse(
            f"{name} must hold booleans, or 0 and 1. Got {np.unique(mask)[:5].tolist()!r}."
        )
    mask = mask.astype(bool)
    if both and (not mask.any() or mask.all()):
        kind = "unlabelled" if mask.any() else "labelled"
        refuse(
            f"labelled must mark some samples and leave others. Got no {kind} sample."
        )
    return mask


@dataclass(frozen=True, slots=True)
class ObservedLabels:
    """Which samples are labelled, the two classes, and which means positive."""

    labelled: Mask
    classes: NDArray[Any]
    positive: int
    negative: Mask | None = None  # checked, and not positive
    looked: Any = None  # the declared columns that say who was looked at
    weight: Vector | None = None  # how many rows each stands for
    group: Rows | None = None  # which rows are held out together, numbered from 0

    def as_values(self) -> NDArray[Any]:
        """Return the class of each sample; None if it is neither labelled nor negative."""
        values = self.classes[np.where(self.labelled, self.positive, 1 - self.positive)]
        if self.negative is None:
            return values
        values = values.astype(object)
        values[~(self.labelled | self.negative)] = None
        return values

    def name_of(self, kind: str) -> Any:
        """Return the user's value for "labelled" or "unlabelled"."""
        at = self.positive if kind == "labelled" else 1 - self.positive
        return self.classes.tolist()[at]


def decode_labels(
    y: ArrayLike,
    pos_label: object = None,
    neg_label: object = None,
    *,
    ask: bool = True,
) -> ObservedLabels:
    """Find the labelled positives in ``y``.

    Two values: the greater marks a labelled positive, or the one that ``pos_label``
    names; without ``ask``, it need not between two strings of which none means
    unlabelled. One value beside missing entries (``NaN``, ``None``, ``pandas.NA``): the
    value marks a labelled positive and the missing entries are unlabelled.

    Of several values that ``pos_label`` names each marks a labelled positive. Beside all
    these, ``neg_label`` marks samples that were checked and are not positive.
    """
    values = column_or_1d(y, warn=True)
    if values.dtype.kind == "U" and not hasattr(y, "dtype"):
        # numpy has turned a NaN in a list of strings into the string "nan".
        values = column_or_1d(np.asarray(y, dtype=object))
    missing = is_missing(values)
    if neg_label is not None or isinstance(pos_label, tuple | list):
        return _decode_several(values, missing, pos_label, neg_label, ask=ask)
    if missing.any():
        return _read_value_beside_missing(values, missing, pos_label)
    classes = _require_two_classes(values)
    if pos_label is not None:
        positive = _index_of(pos_label, classes)
    else:
        positive = int(not ask or _second_is_greater(classes))
    if pos_label is None and str(classes[1]).casefold() in WORDS_FOR_UNLABELLED:
        lesser, greater = classes.tolist()
        warn(
            f"{greater!r}, the greater of two labels, is taken as the labelled positive "
            f"class. Pass pos_label={lesser!r} if {greater!r} means unlabelled."
        )
    return ObservedLabels(values == classes[positive], classes, positive)


def _decode_several(
    values: NDArray[Any],
    missing: Mask,
    pos_label: object,
    neg_label: object,
    *,
    ask: bool,
) -> ObservedLabels:
    """Read labels that several values mark as positive, or one as checked and negative."""
    kinds, codes = np.unique(np.asarray(values[~missing].tolist()), return_inverse=True)
    code = np.full(values.size, -1)
    code[~missing] = codes
    several = pos_label if isinstance(pos_label, tuple | list) else [pos_label]
    several = list(dict.fromkeys(several))
    if not several:
        refuse(f"pos_label must name a value of y. Got {pos_label!r}.")
    marks = [_index_of(one, kinds) for one in several if one is not None]
    negative = np.zeros(values.size, dtype=bool)
    given = np.array(neg_label, dtype=object)
    if neg_label is not None and (given.ndim or is_missing(given[None])[0]):
        refuse(f"neg_label must be one value of y, or None. Got {neg_label!r}.")
    if neg_label is not None and not np.any(kinds == neg_label):
        warn(f"neg_label={neg_label!r} is no value of y: no sample counts as checked.")
        neg_label = None
    if neg_label is not None:
        negative = code == _index_of(neg_label, kinds)
    if negative[np.isin(code, marks)].any():
        refuse(f"neg_label must not be one of pos_label. Got {neg_label!r} for both.")
    values = values.astype(object)
    values[np.isin(code, marks)] = several[0]
    kept = values[~negative].tolist()
    # If nothing is unlabelled, the one value left marks positives all the same.
    alone = negative.any() and len(set(kept)) == 1
    beside = [None] if alone and not missing.any() else []
    found = decode_labels(kept + beside, several[0], ask=ask)
    labelled = np.zeros(values.size, dtype=bool)
    labelled[~negative] = found.labelled[: len(kept)]
    names = [found.name_of(kind) for kind in ("unlabelled", "labelled")]
    if neg_label is not None:
        names[0] = neg_label
    if len(several) > 1 and all(isinstance(one, str) for one in several):
        names[1] = " or ".join(map(str, several))
        if neg_label is None and missing.any():
            names[0] = f"not {names[1]}"
    classes = np.unique(np.array(names))
    return ObservedLabels(
        labelled,
        classes,
        _index_of(names[1], classes),
        negative if neg_label is not None else None,
    )


def require_labelled_and_unlabelled(
    labels: ObservedLabels,
    *,
    n_folds: int | None = None,
    counts: Sequence[int] | None = None,
) -> None:
    """Check that there are enough rows of both kinds to fit anything.

    ``counts`` are the numbers of labelled and unlabelled rows, if not those of the mask.
    """
    if counts is None:
        n_labelled = int(labels.labelled.sum())
        counts = n_labelled, labels.labelled.size - n_labelled
    needed = 2 if n_folds is None else n_folds
    reason = "" if n_folds is None else ", one for each fold"
    for kind, count in zip(("labelled", "unlabelled"), counts, strict=True):
        if count < needed:
            refuse(
                f"y must hold at least {needed} {kind} samples{reason}. Got {count} of "
                f"class {labels.name_of(kind)!r} among {sum(counts)} samples."
            )


def is_missing(values: NDArray[Any]) -> Mask:
    """Tell which entries are missing: NaN, None or pandas.NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    return np.fromiter(map(_is_missing_value, values), bool, values.size)


def _is_missing_value(value: object) -> bool:
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, numbers.Real) and bool(value != value)  # noqa: PLR0124 (NaN)


def _read_value_beside_missing(
    values: NDArray[Any], missing: Mask, pos_label: object
) -> ObservedLabels:
    present = np.unique(np.asarray(values[~missing].tolist()))
    if present.size != 1:
        found = "no value" if present.size == 0 else f"{present.size} values"
        more = (
            " Several may mean positive (a tuple as pos_label), and one may mean checked "
            "and found negative (neg_label of PGPUClassifier and TableClassifier)."
        )
        refuse(
            "y must hold exactly one value, the labelled positive class, beside "
            f"missing entries. Got {found}: {present[:5].tolist()!r}."
            f"{more if present.size else ''}"
        )
    positive = present[0]
    _index_of(positive if pos_label is None else pos_label, present)  # must be in y
    # No value of y names the other class.
    negative: object = f"not {positive}"
    if isinstance(positive, np.bool_):
        negative = not positive
    elif isinstance(positive, np.number):
        negative = 0 if positive != 0 else -1
    classes = np.sort(np.array([negative, positive]))
    return ObservedLabels(~missing, classes, _index_of(positive, classes))


def _require_two_classes(values: NDArray[Any]) -> NDArray[Any]:
    kind = type_of_target(values, input_name="y", raise_unknown=True)
    classes = np.unique(values)
    shown = classes[:5].tolist()
    if kind != "binary":
        refuse(
            "Only binary classification is supported. The type of the target is "
            f"{kind}. y must hold two values, labelled and unlabelled. "
            f"Got {classes.size} values: {shown!r}{', ...' if classes.size > 5 else ''}."
        )
    if classes.size != 2:
        refuse(
            "y must hold two classes, one for labelled positives and one for "
            f"unlabelled samples. Got one class: {shown!r}."
        )
    return classes


def _second_is_greater(classes: NDArray[Any]) -> bool:
    """Compare two values, of which the second comes later in the alphabet."""
    words = [str(value).strip().casefold() for value in classes.tolist()]
    if not all(isinstance(value, str) for value in classes.tolist()):
        return True
    if all(word in _NUMERALS or is_number(word) for word in words):
        first, second = (
            _NUMERALS.index(word) if word in _NUMERALS else float(word)
            for word in words
        )
        return first <= second
    if WORDS_FOR_NO.isdisjoint(words):
        refuse(
            "pos_label must say which of two strings in y marks the labelled positives. "
            f"Got None, and y holds {' and '.join(map(repr, classes.tolist()))}."
        )
    return True


def is_number(value: Any) -> bool:
    """Return whether a value, or a string, is a number other than NaN."""
    try:
        return not np.isnan(float(value))
    except (TypeError, ValueError):
        return False


def _index_of(label: object, classes: NDArray[Any]) -> int:
    same = np.asarray(classes == label)
    if not same.any():
        refuse(
            f"pos_label must be a value found in y. Got {label!r}, y holds {classes.tolist()!r}."
        )
    return int(same.argmax())


def in_double(samples: Matrix, device: str | None = None) -> Matrix:
    """Convert samples to double precision, unless a copy would cost much memory."""
    if samples.shape[0] <= DEFAULTS.most_rows or device is not None:
        return samples.astype(np.float64, copy=False)
    return samples


def check_observed_labels(
    estimator: Any,
    y: ArrayLike | None,
    n_samples: int,
    pos_label: object,
    neg_label: object = None,
) -> ObservedLabels:
    """Check the labels of ``fit``, some of which must be positive and some unlabelled."""
    if y is None:
        name = type(estimator).__name__
        refuse(f"{name} requires y to be passed, but the target y is None.")
    n_labels = num_samples(y)
    if n_labels != n_samples:
        refuse(
            f"y must have one label for each of the {n_samples} samples. Got {n_labels}."
        )
    if isinstance(y, np.ndarray) and y.dtype.kind == "f":
        # NaN means unlabelled; infinity is an error.
        assert_all_finite(y, allow_nan=True, input_name="y")
    labels = decode_labels(y, pos_label, neg_label)
    require_labelled_and_unlabelled(labels)
    return labels


def check_two_classes(
    estimator: Any, X: Matrix, y: ArrayLike
) -> tuple[Matrix, NDArray[np.intp]]:
    """Check the input of ``fit`` of a plain classifier; return classes as 0 and 1."""
    samples, labels = validate_data(estimator, X, y, **_SAMPLES)
    check_classification_targets(labels)
    estimator.classes_, which = np.unique(labels, return_inverse=True)
    if estimator.classes_.size != 2:
        msg = (
            "Only binary classification is supported. y must have two classes. "
            f"Got {estimator.classes_.size} class(es)."
        )
        raise ValueError(msg)
    return samples, which


def check_predict_input(estimator: Any, X: Matrix) -> Matrix:
    """Check the input of ``predict`` and its like."""
    check_is_fitted(estimator)
    return check_samples(estimator, X, reset=False)


def check_samples(estimator: Any, X: Matrix, **how: Any) -> Matrix:
    """Check samples; where cells are no numbers, name a class that prepares them."""
    try:
        return validate_data(estimator, X, **_SAMPLES, **how)
    except (TypeError, ValueError) as error:
        if _NO_NUMBER.search(str(error)) and (found := _find_no_number(X)):
            msg = (
                f"Input X contains {found}, but {type(estimator).__name__} needs a number "
                "in every cell; probgap.tables.TableClassifier takes tables with text, "
                "categories, dates and missing values as they are."
            )
            raise InvalidInputError(msg) from error
        raise


def _find_no_number(X: Any) -> str:
    """Describe the first cell that is text, a date or missing; "" if there is none."""
    if hasattr(X, "columns"):
        columns = ((repr(name), np.asarray(X[name])) for name in X.columns)
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        columns = ((str(at), column) for at, column in enumerate(X.T))
    else:
        return ""
    for name, cells in columns:
        where = f"in column {name}"
        if cells.dtype.kind == "M":
            return f"dates {where}"
        if is_missing(cells).any():
            return f"NaN {where}"
        for cell in cells if cells.dtype.kind in "OUT" else ():
            if hasattr(cell, "isoformat"):
                return f"dates {where}"
            if isinstance(cell, str) and not is_number(cell):
                return f"{cell[:40]!r} {where}"
    return ""


# --- folds -----------------------------------------------------------------------------

DEFAULT_FOLDS = 5
# Platt scaling needs two labelled and two unlabelled samples in each training part, which
# takes three of each in all.
_FEWEST_FOR_OUT_OF_FOLD = 3


def make_splitter(cv: Any, labels: ObservedLabels, rng: np.random.Generator) -> Any:
    """Return a splitter that keeps the share of labelled positives in every fold.

    ``None`` means five folds, or as many as the smaller group, labelled or unlabelled, has
    samples. An integer above that raises an error. If rows belong to groups, none of these
    is split.
    """
    if cv is not None and not isinstance(cv, int | np.integer):
        return check_cv(cv, labels.labelled, classifier=True)
    if labels.group is not None:
        n_folds = DEFAULT_FOLDS if cv is None else int(cv)
        return PredefinedSplit(group_folds(labels.labelled, labels.group, n_folds, rng))
    if cv is None:
        cv = min(DEFAULT_FOLDS, smaller_group(labels.labelled))
    require_labelled_and_unlabelled(labels, n_folds=int(cv))
    return StratifiedKFold(int(cv), shuffle=True, random_state=draw_seed(rng))


def read_groups(groups: ArrayLike, n_samples: int) -> Rows:
    """Return the number of each row's group, -1 where it is missing."""
    names = np.asarray(groups)
    if names.shape != (n_samples,):
        refuse(
            f"groups must have one entry for each of the {n_samples} samples. "
            f"Got shape {names.shape}."
        )
    missing, group = is_missing(names), np.full(n_samples, -1, dtype=np.intp)
    present = names[~missing]
    if present.dtype.kind == "O":
        present = present.astype(str)
    group[~missing] = np.unique(present, return_inverse=True)[1]
    return group


def groups_of(groups: ArrayLike | None, rows: Rows, n_samples: int) -> Rows | None:
    """Return the numbers of the groups of some rows; None if there are no groups."""
    if groups is None:
        return None
    return number_alone(read_groups(groups, n_samples)[rows])


def number_alone(group: Rows) -> Rows:
    """Return groups with a number of its own for each row that has none."""
    alone = group < 0
    first = int(group.max(initial=-1)) + 1
    return np.where(alone, first + np.cumsum(alone) - 1, group)


def group_folds(
    labelled: Mask, group: Rows, most: int, rng: np.random.Generator | None
) -> Rows:
    """Return the fold of each row, so that no group is split and shares are even.

    The largest groups come first, each into the fold where it adds least to the unevenness
    of labelled and unlabelled rows; ties are drawn. At most as many folds as there are groups
    with labelled rows, and with unlabelled ones.
    """
    counts = np.stack([np.bincount(group, kind) for kind in (labelled, ~labelled)])
    n_folds = min(most, *(counts > 0.0).sum(axis=1).tolist())
    if n_folds < 2:
        refuse(
            "groups must leave labelled rows, and unlabelled ones, in at least two groups "
            f"to hold one out. Got {n_folds}."
        )
    share = counts / counts.sum(axis=1, keepdims=True)
    order = (
        np.arange(share.shape[1]) if rng is None else rng.permutation(share.shape[1])
    )
    order = order[np.argsort(-share[:, order].sum(axis=0), kind="stable")]
    held, fold = np.zeros((n_folds, 2)), np.zeros(share.shape[1], dtype=np.intp)
    for g, own in zip(order.tolist(), share.T[order], strict=True):
        fold[g] = k = int(np.argmin(held @ own))
        held[k] += own
    return fold[group]


def fold_of_rows(splitter: Any, samples: Any, labels: ObservedLabels) -> Rows:
    """Return the fold that holds out each row; each must be held out exactly once."""
    labelled = labels.labelled
    group = None if isinstance(splitter, PredefinedSplit) else labels.group
    fold, times = np.zeros((2, labelled.size), dtype=np.intp)
    for k, (_, test) in enumerate(splitter.split(samples, labelled, group)):
        fold[test] = k
        times[test] += 1
    if not (times == 1).all():
        refuse(
            "cv must hold out every sample exactly once. Got "
            f"{np.count_nonzero(times == 0)} of {times.size} samples never held out and "
            f"{np.count_nonzero(times > 1)} more than once."
        )
    if labels.group is not None and (k := _first_split(fold, labels.group)) >= 0:
        refuse(
            f"cv must keep the rows of a group in one fold. Got group {k} in several."
        )
    return fold


def _first_split(fold: Rows, group: Rows) -> int:
    """Return the first group whose rows are in several folds, -1 if there is none."""
    of_group = np.zeros(int(group.max()) + 1, dtype=np.intp)
    of_group[group] = fold
    split = group[of_group[group] != fold]
    return int(split.min(initial=of_group.size)) if split.size else -1


def smaller_group(labelled: Mask) -> int:
    """Count the labelled or the unlabelled samples, whichever are fewer."""
    n_labelled = int(labelled.sum())
    return min(n_labelled, labelled.size - n_labelled)


def require_groups(labelled: Mask, fewest: int, purpose: str) -> None:
    """Refuse labels of which too few, or all but too few, mark a row."""
    if smaller_group(labelled) < fewest:
        refuse(
            f"labelled must mark at least {fewest} rows and leave as many, to {purpose}. "
            f"Got {int(labelled.sum()):,} of {labelled.size:,}."
        )


def can_hold_out(smallest: int) -> bool:
    """Return whether the smaller group is large enough for out-of-fold gaps."""
    return smallest >= _FEWEST_FOR_OUT_OF_FOLD


def observed_accuracy(labelled: Mask, predicted: Mask) -> float:
    """Return the share of samples whose prediction agrees with the observed label."""
    return float(np.mean(labelled == predicted))
