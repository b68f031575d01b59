"""What a model says of rows, as columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

_DECIMALS = 8
# What stands for "not positive" beside a word for positive, so that predictions read
# like the label column.
_OPPOSITES = {"yes": "no", "y": "n", "true": "false", "t": "f"}


def label_values(positive: str) -> tuple[Any, Any]:
    """Give the two values that the model predicts: negative, positive."""
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
    return opposite.upper() if word.isupper() else _like(word, opposite), positive


def _like(word: str, opposite: str) -> str:
    return opposite.capitalize() if word[:1].isupper() else opposite


def score_rows(
    model: Any,
    frame: pd.DataFrame,
    *,
    gap: NDArray[np.float64] | None = None,
    probability: NDArray[np.float64] | None = None,
    labelled: NDArray[np.bool_] | None = None,
) -> pd.DataFrame:
    """Return gap, what it decides, probability and predicted label of each row.

    Parameters
    ----------
    model : Pipeline
        Preparation of columns and a fitted PGPU classifier.
    frame : DataFrame
        The rows.
    gap, probability : ndarray, default=None
        Their observed gaps and probabilities of being positive, where they are known:
        those of training rows come from models that have not seen them.
    labelled : ndarray of bool, default=None
        Which of them are labelled positives, and so decided.

    Returns
    -------
    DataFrame
        Columns gap, decided, probability and predicted_label.
    """
    import pandas as pd

    classifier = model[-1]
    if gap is None or probability is None:
        samples = model[:-1].transform(frame)
        chances = classifier.predict_proba(samples)
        probability = chances[:, classifier.positive_index_]
        gap = classifier.gap_estimator_.transform(samples)[:, 0]
    # predict(samples) would go through the kernel once more for the same answer.
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


def shorten(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Leave off digits that mean nothing."""
    return np.round(values, _DECIMALS)


def decide(
    gap: NDArray[np.float64], lower: float, labelled: NDArray[np.bool_] | None = None
) -> NDArray[Any]:
    """Say what the gap alone decides: positive above 0, negative at or below l."""
    decided = np.select(
        [gap <= lower, gap > max(0.0, lower)],
        ["negative", "positive"],
        default="undecided",
    )
    if labelled is not None:
        decided[labelled] = "positive"
    return decided


def rank_hidden(
    probability: NDArray[np.float64],
    gap: NDArray[np.float64],
    labelled: NDArray[np.bool_],
) -> NDArray[np.intp]:
    """Order unlabelled rows, the likeliest positive first; ties by gap, then by row."""
    rows = np.flatnonzero(~labelled)
    order = np.lexsort((rows, -gap[rows], -probability[rows]))
    return rows[order]
