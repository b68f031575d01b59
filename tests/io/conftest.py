"""Small fitted models of every kind, and files of them."""

import hashlib
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
from probgap.exceptions import ModelFileError
from probgap.io import load, save

HEADER, SCHEMA = "probgap.json", "schema.json"


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
    return make_pipeline(columns, PGPUClassifier.paper(random_state=0))


@pytest.fixture(scope="session")
def table_model(frame, data):
    return table_pipeline().fit(frame, data[1])


@pytest.fixture(scope="session")
def model(data):
    return PGPUClassifier(random_state=0).fit(*data)


@pytest.fixture(scope="session")
def forest(data):
    """A forest of scikit-learn's for the gap, and an SVM."""
    gap = ExtraTreesClassifier(6, min_samples_leaf=3, random_state=0)
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


def write_file(path, about, members, digests=None):
    """Write a file as someone would who knows the format: digests are right."""
    digests = digests or {name: digest(data) for name, data in members.items()}
    header = json.dumps({"format": 2, **about, "sha256": digests})
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {HEADER: header, **members}.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return path


def digest(data):
    return hashlib.sha256(data).hexdigest()


def forge_file(path, *, change=None, header=None, members=None, to=None):
    """Write a file again, with its plan, its header or some parts changed."""
    parts = members_of(path)
    about = json.loads(parts.pop(HEADER))
    if change is not None:
        schema = json.loads(parts[SCHEMA])
        change(schema)
        parts[SCHEMA] = json.dumps(schema).encode()
    return write_file(
        to or path, {**about, **(header or {})}, {**parts, **(members or {})}
    )


@pytest.fixture
def forge():
    return forge_file


@pytest.fixture
def write():
    return write_file


def inner_nodes(node):
    """Return what a node of a plan holds, by name or number."""
    inner = node.get("fields", node.get("content"))
    if isinstance(inner, dict) and "__loader__" in inner:
        inner = inner_nodes(inner)
    if isinstance(inner, list):
        inner = dict(enumerate(inner))
    return inner if isinstance(inner, dict) else {}


def nodes_by_path(node, path=""):
    """Return all nodes of a plan by where they are, as in "reading_.curves.share"."""
    found = {path: node}
    for name, inner in inner_nodes(node).items():
        if isinstance(inner, dict) and "__loader__" in inner:
            found |= nodes_by_path(inner, f"{path}.{name}".lstrip("."))
    return found


class Altered:
    """A saved model, and whether files with something changed in it load."""

    def __init__(self, model, folder):
        self.path, self.forged = folder / "m.skops", folder / "forged.skops"
        save(model, self.path)
        self.members = members_of(self.path)
        self.header = json.loads(self.members.pop(HEADER))
        self.schema = json.loads(self.members[SCHEMA])
        self.nodes = nodes_by_path(self.schema)

    def arrays(self):
        """Return the path and the value of every array."""
        for path, node in self.nodes.items():
            if str(node.get("file")).endswith(".npy"):
                yield path, np.load(io.BytesIO(self.members[node["file"]]))

    def reason(self, path, value):
        """Return why a file is refused with another value in one place, "" if it loads."""
        node = self.nodes[path]
        if isinstance(value, np.ndarray):
            name, buffer = "1234567.npy", io.BytesIO()
            np.save(buffer, value)
            if sum(n.get("file") == node["file"] for n in self.nodes.values()) == 1:
                name = node["file"]
            new, members = {"file": name}, {name: buffer.getvalue()}
        else:
            content = value if isinstance(value, list) else json.dumps(value)
            new, members = {"content": content}, {}
        before = dict(node)
        node.update(new)
        members[SCHEMA] = json.dumps(self.schema).encode()
        node.clear()
        node.update(before)
        digests = {name: digest(data) for name, data in members.items()}
        digests = {**self.header["sha256"], **digests}
        write_file(self.forged, self.header, {**self.members, **members}, digests)
        try:
            load(self.forged)
        except ModelFileError as error:
            return str(error)
        return ""


@pytest.fixture
def altered(tmp_path):
    return lambda model: Altered(model, tmp_path)
