"""A model that comes back predicts as before, to the last bit."""

import os
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, csr_matrix
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from probgap import PGPUClassifier, PGPUClassifierCV, methods
from probgap._core.svm import NystroemSVM
from probgap.audit import correct, suggest
from probgap.boundary import Quantile
from probgap.exceptions import InvalidInputError, ModelFileError
from probgap.gap import ObservedGapEstimator
from probgap.io import load, read_metadata, save
from probgap.reweight import KernelMeanMatching

MODELS = {
    "default": PGPUClassifier(random_state=0),
    "paper": PGPUClassifier.paper(random_state=0),
    "rules": PGPUClassifier(
        boundary=Quantile(0.05),
        gap_estimator=ObservedGapEstimator(),
        reweight=KernelMeanMatching(upper=5.0),
        random_state=0,
    ),
    "search": PGPUClassifierCV(boundaries=[-0.8, -0.6], cv=3, random_state=0),
    "own classifier": PGPUClassifier(estimator=LogisticRegression(), random_state=0),
    "own gap": PGPUClassifier(gap_estimator=LogisticRegression(), random_state=0),
    "vote": PGPUClassifier(
        estimator=VotingClassifier(
            [("linear", LogisticRegression()), ("tree", DecisionTreeClassifier())],
            voting="soft",
        ),
        random_state=0,
    ),
    "generator": PGPUClassifier.paper(random_state=np.random.default_rng(3)),
    "pipeline": make_pipeline(
        FunctionTransformer(np.sinh),
        ColumnTransformer(
            [
                ("scaled", StandardScaler(), [0]),
                ("levels", OneHotEncoder(handle_unknown="ignore"), [1]),
            ]
        ),
        TruncatedSVD(2),
        PGPUClassifier.paper(),
    ),
    "state": methods.NaiveClassifier(random_state=np.random.RandomState(3)),
    "uPU": methods.NNPUClassifier(
        0.6, risk="upu", kernel="linear", gap_estimator=SVC()
    ),
    "SAR-EM": methods.SAREMClassifier(propensity_features=[1], tol=1e-3),
    "rate": methods.PropensityWeightedClassifier(0.9, estimator=SVC()),
    "observed gap": ObservedGapEstimator(random_state=0),
    "kernel features": NystroemSVM(n_components=40, random_state=0),
    **{name: getattr(methods, name)() for name in methods.__all__},
}


def assert_same(before, after, X):
    assert_array_equal(before.predict(X), after.predict(X))
    for name in ("decision_function", "predict_proba"):
        if hasattr(before, name):
            assert_array_equal(getattr(before, name)(X), getattr(after, name)(X))


def round_trip(model, folder, X):
    save(model, folder / "m.probgap")
    back = load(folder / "m.probgap")
    assert type(back) is type(model)
    assert back.get_params().keys() == model.get_params().keys()
    assert_same(model, back, X)
    return back


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::probgap.boundary.BoundaryWarning")
def test_every_model_comes_back(name, data, tmp_path):
    X, labels = data
    model = MODELS[name].fit(X, labels)
    back = round_trip(model, tmp_path, X)
    fresh = np.random.default_rng(5).uniform(-1, 1, size=(500, 2))
    assert_same(model, back, fresh)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_a_corrected_classifier_comes_back(form, data, tmp_path):
    X, labels = form(data[0]), data[1]
    model = make_pipeline(FunctionTransformer(), PGPUClassifier(random_state=0))
    answers = np.arange(20) % 2 == 0
    before = correct(model.fit(X, labels), X[:20], answers)
    save(before, tmp_path / "m.probgap")
    after = load(tmp_path / "m.probgap")
    assert_same(before, after, X)
    assert_array_equal(suggest(after, X, 5), suggest(before, X, 5))
    assert after.estimate.n_hidden_interval == before.estimate.n_hidden_interval


def test_a_table_classifier_comes_back_in_another_process(data, tmp_path):
    tables = pytest.importorskip("probgap.tables")
    frame = pytest.importorskip("pandas").DataFrame({"a": data[0][:, 0]})
    frame["colour"] = np.where(data[0][:, 1] > 0, "red", "green")
    words = np.random.default_rng(0).choice(["good", "bad", "day", "night"], (200, 9))
    frame["words"] = [" ".join(row) for row in words]
    frame["day"] = [f"2024-{1 + n % 12:02}-{1 + n % 28:02}" for n in range(len(frame))]
    model = tables.TableClassifier(random_state=0).fit(frame, data[1])
    uses = {column.name: column.use for column in model.plan_.columns}
    assert sorted(uses.values()) == ["category", "date", "number", "text"]
    places = [str(tmp_path / name) for name in ("m.probgap", "frame.pkl", "out.npy")]
    save(model, places[0])
    frame.to_pickle(places[1])
    script = (
        "import sys, numpy, pandas; from probgap.io import load; "
        "frame = pandas.read_pickle(sys.argv[2]); "
        "numpy.save(sys.argv[3], load(sys.argv[1]).predict_proba(frame))"
    )
    subprocess.run([sys.executable, "-c", script, *places], check=True, timeout=120)
    assert_array_equal(np.load(places[2]), model.predict_proba(frame))
    assert load(places[0]).plan_ == model.plan_


def test_a_model_of_the_demo_is_small_and_loads_fast(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    labelled = (y == 0) & (np.random.default_rng(0).random(y.size) < 0.6)
    model = PGPUClassifier(random_state=0).fit(X, labelled)
    round_trip(model, tmp_path, X)
    assert (tmp_path / "m.probgap").stat().st_size < 5e6
    start = time.process_time()
    load(tmp_path / "m.probgap")
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("form", [csr_matrix, csr_array])
@pytest.mark.parametrize(
    "model",
    [PGPUClassifier(), PGPUClassifier.paper(), NystroemSVM(n_components=40)],
    ids=["default", "paper", "kernel features"],
)
def test_sparse_models_come_back(model, form, data, tmp_path):
    sparse = form(np.where(np.abs(data[0]) < 0.2, 0.0, data[0]))
    round_trip(model.fit(sparse, data[1]), tmp_path, sparse)


@pytest.mark.parametrize(
    "model",
    [
        PGPUClassifier(boundary=-0.5, random_state=0),
        PGPUClassifier.paper(reweight=KernelMeanMatching(), random_state=0),
        PGPUClassifierCV.paper(boundaries=[-0.9999, -0.6], cv=3, random_state=0),
    ],
    ids=["default", "paper", "search"],
)
def test_what_a_fit_says_of_itself_comes_back(model, data, tmp_path):
    X, labels = data
    before = model.set_params(pos_label="fraud")
    before.fit(X, np.where(labels == 1, "fraud", "none given"))
    after = round_trip(before, tmp_path, X)
    assert_array_equal(after.classes_, before.classes_)
    assert after.boundary_ == before.boundary_
    assert len(after.boundary_.scores) == len(after.boundary_.candidates) > 1
    for name in ("class_prior", "class_prior_interval", "labelling_rate"):
        assert getattr(after.estimate_, name) == getattr(before.estimate_, name)
    assert_array_equal(after.relabelling_.labels, before.relabelling_.labels)
    if before.kmm_ is not None:
        assert_array_equal(after.kmm_.weights, before.kmm_.weights)


def test_the_same_model_makes_the_same_bytes(data, saved, tmp_path):
    again = PGPUClassifier(random_state=0).fit(*data)
    # Nodes of trees have room between their fields, where memory holds anything.
    for number, model in enumerate((again, load(saved))):
        path = tmp_path / str(number)
        save(model, path, metadata={"columns": ["a", "b"]})
        assert path.read_bytes() == saved.read_bytes()


def test_metadata_come_back_alone(model, tmp_path):
    for noted in (
        {},
        {"naïve \U0001f600": [1, 2.5, None, True, {"<script>": "\u202e"}]},
    ):
        save(model, tmp_path / "m.probgap", metadata=noted)
        assert read_metadata(tmp_path / "m.probgap") == noted


@pytest.mark.parametrize("metadata", [{"a": {1, 2}}, {"a": np.ones(2)}, [1], "text"])
def test_metadata_must_be_json(metadata, model, tmp_path):
    with pytest.raises(ModelFileError, match=r"metadata must be .* Got"):
        save(model, tmp_path / "m.probgap", metadata=metadata)


@pytest.mark.parametrize("thing", [PGPUClassifier(), [1, 2], "model", None])
def test_only_fitted_models_are_saved(thing, tmp_path):
    with pytest.raises(InvalidInputError, match=r"model must be .* Got"):
        save(thing, tmp_path / "m.probgap")


def test_what_no_file_can_hold_is_not_saved(data, tmp_path):
    steps = FunctionTransformer(lambda X: X), methods.NaiveClassifier()
    endless = methods.NaiveClassifier().fit(*data)
    endless.itself_ = [endless]
    for model, why in (
        (make_pipeline(*steps).fit(*data), r"has .*<lambda>, which no other process"),
        (endless, r"a part that cannot be saved: .*recursion"),
    ):
        with pytest.raises(ModelFileError, match=why):
            save(model, tmp_path / "m.probgap")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("problem", "raised"),
    [
        (OSError(28, "No space left on device"), ModelFileError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_failed_write_leaves_what_was_there(
    problem, raised, model, saved, monkeypatch
):
    before = saved.read_bytes()

    def fail(_):
        raise problem

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(raised, match=r"No space left|^$"):
        save(model, saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_places_that_cannot_be_written(model, tmp_path):
    for place in (tmp_path, tmp_path / "no" / "m.probgap", "/proc/m.probgap"):
        with pytest.raises(ModelFileError, match=r"Cannot write"):
            save(model, place)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_with_its_permissions(model, saved):
    plain = saved.with_name("plain")
    plain.touch()
    assert stat.S_IMODE(saved.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    saved.chmod(0o600)
    save(model, saved)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
