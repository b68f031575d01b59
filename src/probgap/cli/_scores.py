"""The scores of rows, as columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from probgap._core.types import Mask, Vector

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

_DECIMALS = 8
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
    model: Any,
    frame: pd.DataFrame,
    *,
    gap: Vector | None = None,
    probability: Vector | None = None,
    labelled: Mask | None = None,
) -> pd.DataFrame:
    """Return gap, what it decides, probability and predicted label of each row.

    Gaps and probabilities of training rows are passed in: they come from models that
    have not seen the rows.
    """
    import pandas as pd

    classifier = model[-1]
    if gap is None or probability is None:
        samples = model[:-1].transform(frame)
        chances = classifier.predict_proba(samples)
        probability = chances[:, classifier.positive_index_]
        gap = classifier.gap_estimator_.transform(samples)[:, 0]
    # predict(samples) would compute the kernel once more for the same answer.
    positive = probability > 0.5
    at = np.where(positive, classifier.positive_index_, 1 - classifier.positive_index_)
    return pd.DataFrame(
        {
            "gap": shorten(gap),
            "decided": decide(gap, classifier.boundary_.value, labelled),
            "probability": shorten(probability),
            "predicted_label": classifier.classes_[at],
        }
    )


def shorten(values: Vector) -> Vector:
    """Round off digits without meaning."""
    return np.round(values, _DECIMALS)


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


def rank_hidden(probability: Vector, gap: Vector, labelled: Mask) -> NDArray[np.intp]:
    """Order unlabelled rows, the likeliest positive first; ties by gap, then by row."""
    rows = np.flatnonzero(~labelled)
    order = np.lexsort((rows, -gap[rows], -probability[rows]))
    return rows[order]
