"""The points of the paper's Figure 1, kept in a row so that a report can draw them."""

from __future__ import annotations

from typing import Any

import numpy as np

from probgap.experiments._problem import Split

_DIGITS = 4


def picture(model: Any, split: Split) -> dict[str, Any]:
    """Give the training points with their true, observed and new labels, and the gaps."""
    relabelling = model.relabelling_
    labels = np.where(relabelling.decided, relabelling.labels, -1)
    first, second = split.X_train[:, 0], split.X_train[:, 1]
    return {
        "panels": {
            "x1": first.round(_DIGITS).tolist(),
            "x2": second.round(_DIGITS).tolist(),
            "true": split.y_train.astype(int).tolist(),
            "observed": split.s_train.astype(int).tolist(),
            "relabelled": labels.astype(int).tolist(),
        },
        "gap": model.observed_gap_.round(_DIGITS).tolist(),
    }
