"""Fitted models that several tests look at."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from probgap import PGPUClassifier


@pytest.fixture(scope="session")
def fitted(square, square_model):
    """The square: model, X, labelled, true labels."""
    X, y_true, _, s = square
    return square_model, X, s == 1, y_true == 1


@pytest.fixture(scope="session")
def light(fitted):
    """A model that is quickly fitted again, where any will do."""
    _, X, labelled, _ = fitted
    gap, final = LogisticRegression(), LogisticRegression()
    model = PGPUClassifier(gap_estimator=gap, estimator=final, random_state=0)
    return model.fit(X, labelled)


@pytest.fixture(scope="session")
def framed(square):
    """The same in a frame with a category, noise, and columns that no model sees."""
    pd = pytest.importorskip("pandas")
    X, _, _, s = square
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "noise": rng.normal(size=len(X))})
    frame["kind"] = rng.choice(["a", "b", "c"], len(X))
    frame["answer"] = np.where(s == 1, "yes", "")
    numbers, kinds = ["x", "y", "noise"], ["kind"]
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), numbers), ("kinds", OneHotEncoder(), kinds)]
    )
    classifier = PGPUClassifier(random_state=0, pos_label="yes")
    model = Pipeline([("columns", columns), ("classifier", classifier)])
    return model.fit(frame, np.where(s == 1, "yes", "no")), frame, s == 1
