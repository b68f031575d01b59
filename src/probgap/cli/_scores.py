"""The scores of rows as columns of a table, and what was warned of on the way."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from probgap._core.errors import ProbgapWarning
from probgap._core.types import Mask, Vector

_DECIMALS = 8  # more have no meaning
# The word for "not positive" beside a word for positive, so that predictions read like
# the label column.
_OPPOSITES = {"yes": "no", "y": "n", "true": "false", "t": "f"}


def label_values(positive: str) -> tuple[Any, Any]:
    """Return the two values that the model predicts: negative, positive."""
    word = positive.strip()
    try:
        number = float(word)
    except ValueError:
        number = np.nan
    if number == 1.0:
        return 0, 1
    if word.lower() in {"true", "false"}:
        return word.lower() != "true", word.lower() == "true"
    opposite = _OPPOSITES.get(word.lower())
    if opposite is None:
        return f"not {positive}", positive
    if word.isupper():
        return opposite.upper(), positive
    return (opposite.capitalize() if word[:1].isupper() else opposite), positive


def score_rows(
    classifier: Any, gap: Vector, probability: Vector, labelled: Mask | None = None
) -> pd.DataFrame:
    """Return gap, what it decides, probability and predicted label of each row."""
    positive = classifier.positive_index_
    # predict would compute the kernel once more for the same answer.
    called = np.where(probability > 0.5, positive, 1 - positive)
    return pd.DataFrame(
        {
            "gap": np.round(gap, _DECIMALS),
            "decided": decide(gap, classifier.boundary_.value, labelled),
            "probability": np.round(probability, _DECIMALS),
            "predicted_label": classifier.classes_[called],
        }
    )


def decide(gap: Vector, lower: float, labelled: Mask | None = None) -> NDArray[Any]:
    """Return what the gap alone decides: positive above 0, negative at or below l."""
    decided = np.select(
        [gap <= lower, gap > max(0.0, lower)],
        ["negative", "positive"],
        default="undecided",
    )
    if labelled is not None:
        decided[labelled] = "positive"
    return decided


@contextmanager
def caught_warnings() -> Iterator[list[Warning]]:
    """Collect what the library warns of, once each; other people's warnings are not ours."""
    from sklearn.exceptions import ConvergenceWarning

    heard: list[Warning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield heard
    first: dict[str, Any] = {}
    for warning in caught:
        if issubclass(warning.category, ProbgapWarning | ConvergenceWarning):
            first.setdefault(str(warning.message), warning.message)
    heard += first.values()
