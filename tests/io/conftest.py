"""Small fitted models, and files of them that someone forged."""

import hashlib
import json
import zlib

import pytest

from probgap import PGPUClassifier
from probgap.datasets import hide_labels, make_square
from probgap.exceptions import ModelFileError
from probgap.io import load, save


@pytest.fixture(scope="session")
def data():
    X, y_true, posterior = make_square(200, random_state=0)
    labels = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    X.setflags(write=False)
    return X, labels


@pytest.fixture(scope="session")
def model(data):
    return PGPUClassifier(random_state=0).fit(*data)


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "model.probgap"
    save(model, path, metadata={"columns": ["a", "b"]})
    return path


@pytest.fixture
def forge():
    """Write a file again as someone would who knows the format: its digest is right."""

    def write(path, change=None, *, number=3, header=None, block=None):
        _, first, packed = path.read_bytes().split(b"\n", 2)
        start, _, arrays = zlib.decompress(packed).partition(b"\n")
        plan = json.loads(start)
        change(plan) if change else None
        content = (
            json.dumps(plan).encode() + b"\n" + (arrays if block is None else block)
        )
        about = {**json.loads(first), "size": len(content), **(header or {})}
        rest = json.dumps(about).encode() + b"\n" + zlib.compress(content)
        start = f"probgap model {number} {hashlib.sha256(rest).hexdigest()}\n"
        path.write_bytes(start.encode() + rest)
        return path

    return write


@pytest.fixture
def refused():
    def check(path, why, **options):
        with pytest.raises(ModelFileError, match=why) as caught:
            load(path, **options)
        assert str(caught.value).startswith(f"Cannot load {path}: ")
        assert str(caught.value).endswith(".")
        return str(caught.value)

    return check
