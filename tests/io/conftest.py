"""Small fitted models of every kind, and files of them."""

import io
import json
import zipfile

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, RobustScaler

from probgap import PGPUClassifier
from probgap.datasets import hide_labels, make_square
from probgap.io import save
from probgap.io._archive import HEADER, SCHEMA, pack


@pytest.fixture(scope="session")
def data():
    X, y_true, posterior = make_square(200, random_state=0)
    labels = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    X.setflags(write=False)
    return X, labels


@pytest.fixture(scope="session")
def frame(data):
    pandas = pytest.importorskip("pandas")
    X, _ = data
    rng = np.random.default_rng(0)
    n = X.shape[0]
    names = ["red", "green", "blue", "rare", "rarer"]
    colours = rng.choice(names, n, p=[0.4, 0.3, 0.25, 0.03, 0.02])
    words = rng.choice(["a good day", "one bad night", "so it goes on"], n)
    holes = np.where(rng.random(n) < 0.1, np.nan, X[:, 1])
    return pandas.DataFrame(
        {"a": X[:, 0], "b": holes, "colour": colours, "words": words}
    )


def table_pipeline():
    numbers = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True), RobustScaler()
    )
    levels = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=10, sparse_output=False
    )
    words = make_pipeline(TfidfVectorizer(), TruncatedSVD(2, random_state=0))
    columns = ColumnTransformer(
        [
            ("numbers", numbers, ["a", "b"]),
            ("levels", levels, ["colour"]),
            ("words", words, "words"),
        ]
    )
    return make_pipeline(columns, PGPUClassifier(random_state=0))


@pytest.fixture(scope="session")
def table_model(frame, data):
    return table_pipeline().fit(frame, data[1])


@pytest.fixture(scope="session")
def model(data):
    return PGPUClassifier(random_state=0).fit(*data)


@pytest.fixture(scope="session")
def forest(data):
    """A forest of scikit-learn's for the gap, and an SVM."""
    gap = ExtraTreesClassifier(30, min_samples_leaf=3, random_state=0)
    return PGPUClassifier(gap_estimator=gap, boundary=-0.5, random_state=0).fit(*data)


@pytest.fixture(scope="session")
def boosted(data):
    """Boosted trees of scikit-learn's for the gap."""
    gap = HistGradientBoostingClassifier(max_iter=10, random_state=0)
    return PGPUClassifier(gap_estimator=gap, boundary=-0.5, random_state=0).fit(*data)


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "model.skops"
    save(model, path, metadata={"columns": ["a", "b"]})
    return path


@pytest.fixture
def saved_trees(forest, tmp_path):
    path = tmp_path / "model.skops"
    save(forest, path)
    return path


def members_of(path):
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forge_file(path, *, change=None, header=None, members=None):
    """Write a file again as someone would who knows the format: digests are right."""
    parts = members_of(path)
    about = json.loads(parts.pop(HEADER))
    about.pop("sha256")
    if change is not None:
        schema = json.loads(parts[SCHEMA])
        change(schema)
        parts[SCHEMA] = json.dumps(schema).encode()
    path.write_bytes(pack({**parts, **(members or {})}, {**about, **(header or {})}))
    return path


@pytest.fixture
def forge():
    return forge_file
