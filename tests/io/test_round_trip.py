"""A model that comes back predicts as before, to the last bit."""

import os
import stat

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, csr_matrix
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import Birch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core.svm import NystroemSVM
from probgap._device.estimators import DevicePlatt, DeviceSVM
from probgap.audit import correct, suggest
from probgap.boundary import Quantile
from probgap.exceptions import InvalidInputError, ModelFileError
from probgap.gap import MixedGapEstimator, ObservedGapEstimator
from probgap.io import load, read_metadata, save
from probgap.methods import (
    ElkanNotoClassifier,
    LiuTaoClassifier,
    NaiveClassifier,
    NatarajanClassifier,
    NNPUClassifier,
    PGlinClassifier,
    PropensityWeightedClassifier,
    PUBaggingClassifier,
    PUSBClassifier,
    SAREMClassifier,
    SpyClassifier,
)
from probgap.reweight import KernelMeanMatching

MODELS = {
    "default": PGPUClassifier(random_state=0),
    "paper": PGPUClassifier.paper(random_state=0),
    "known prior": PGPUClassifier(class_prior=(0.4, 0.6), random_state=0),
    "mixed gap": PGPUClassifier(
        gap_estimator=MixedGapEstimator(), boundary=-0.5, random_state=0
    ),
    "rules": PGPUClassifier(
        boundary=Quantile(0.05),
        gap_estimator=ObservedGapEstimator(),
        reweight=KernelMeanMatching(upper=5.0),
        random_state=0,
    ),
    "search": PGPUClassifierCV(boundaries=[-0.8, -0.6], cv=3, random_state=0),
    "own classifier": PGPUClassifier(estimator=LogisticRegression(), random_state=0),
    "own gap": PGPUClassifier(gap_estimator=LogisticRegression(), random_state=0),
    "calibrated": PGPUClassifier(
        estimator=CalibratedClassifierCV(SVC(), ensemble=False), random_state=0
    ),
    "generator": PGPUClassifier.paper(random_state=np.random.default_rng(3)),
    "pipeline": make_pipeline(
        FunctionTransformer(np.sinh), StandardScaler(), PGPUClassifier.paper()
    ),
    "naive": NaiveClassifier(random_state=np.random.RandomState(3)),
    "Elkan-Noto": ElkanNotoClassifier(random_state=0),
    "Natarajan": NatarajanClassifier(),
    "Liu-Tao": LiuTaoClassifier(),
    "PGlin": PGlinClassifier(random_state=0),
    "spy": SpyClassifier(random_state=0),
    "nnPU": NNPUClassifier(random_state=0),
    "uPU": NNPUClassifier(0.6, risk="upu", kernel="linear", gap_estimator=SVC()),
    "PUSB": PUSBClassifier(random_state=0),
    "SAR-EM": SAREMClassifier(propensity_features=[1], tol=1e-3),
    "propensity": PropensityWeightedClassifier(random_state=0),
    "rate": PropensityWeightedClassifier(0.9, estimator=SVC()),
    "observed gap": ObservedGapEstimator(random_state=0),
}


def assert_same(before, after, X):
    assert_array_equal(before.predict(X), after.predict(X))
    for name in ("decision_function", "predict_proba"):
        if hasattr(before, name):
            assert_array_equal(getattr(before, name)(X), getattr(after, name)(X))


def round_trip(model, folder, X):
    save(model, folder / "m.skops")
    back = load(folder / "m.skops")
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


def test_bagged_trees_come_back_where_trees_are_trusted(data, tmp_path):
    X, labels = data
    model = PUBaggingClassifier(n_estimators=5, random_state=0).fit(X, labels)
    save(model, tmp_path / "m.skops")
    assert_same(model, load(tmp_path / "m.skops", trusted=[DecisionTreeClassifier]), X)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_a_corrected_classifier_comes_back(form, data, tmp_path):
    X, labels = form(data[0]), data[1]
    model = make_pipeline(FunctionTransformer(), PGPUClassifier(random_state=0))
    answers = np.arange(20) % 2 == 0
    before = correct(model.fit(X, labels), X[:20], answers)
    save(before, tmp_path / "m.skops")
    after = load(tmp_path / "m.skops")
    assert_same(before, after, X)
    assert_array_equal(suggest(after, X, 5), suggest(before, X, 5))
    assert after.reading.n_hidden_interval == before.reading.n_hidden_interval
    before.belief.answers.dual[0] = np.nan
    save(before, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="was altered"):
        load(tmp_path / "m.skops")


@pytest.mark.parametrize("form", [csr_matrix, csr_array, np.asarray])
def test_kernel_features_come_back(form, data, tmp_path):
    X, labels = data
    samples = form(np.where(np.abs(X) < 0.2, 0.0, X))
    model = NystroemSVM(n_components=40, random_state=0).fit(samples, labels)
    round_trip(model, tmp_path, samples)


def test_what_was_fitted_on_a_device_comes_back(data, tmp_path):
    """As it is after a fit with torch, which need not be there to read it."""
    X, labels = data
    svm = DeviceSVM()
    svm.support_vectors_, svm.dual_coef_ = X[:5], np.linspace(-1.0, 1.0, 5)[None]
    svm.intercept_, svm.gamma_, svm.n_features_in_ = np.zeros(1), 0.5, 2
    svm.classes_ = np.array([0, 1])
    model = ObservedGapEstimator(random_state=0).fit(X, labels)
    model.estimator_ = DevicePlatt(svm, -1.0, 0.1)
    round_trip(model, tmp_path, X)
    svm.dual_coef_ = np.full((1, 5), np.nan)
    save(model, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="its DeviceSVM was altered: dual_coef_"):
        load(tmp_path / "m.skops")


@pytest.mark.parametrize("form", [csr_matrix, csr_array])
def test_sparse_models_come_back(form, data, tmp_path):
    X, labels = data
    sparse = form(np.where(np.abs(X) < 0.2, 0.0, X))
    dense_inside = PGPUClassifier(random_state=0)
    model = dense_inside if form is csr_array else PGPUClassifier.paper()
    round_trip(model.fit(sparse, labels), tmp_path, sparse)


@pytest.mark.parametrize("name", ["forest", "boosted"])
def test_trees_come_back(name, data, tmp_path, request):
    round_trip(request.getfixturevalue(name), tmp_path, data[0])


def test_a_pipeline_from_a_table_comes_back(table_model, frame, tmp_path):
    back = round_trip(table_model, tmp_path, frame)
    strange = frame.assign(colour="never seen", words="nor this", b=np.nan)
    assert_same(table_model, back, strange)


def test_labels_and_evidence_come_back(data, tmp_path):
    X, labels = data
    names = np.where(labels == 1, "fraud", "none given")
    matching = KernelMeanMatching()
    model = PGPUClassifier.paper(pos_label="fraud", reweight=matching)
    model.fit(X, names)
    back = round_trip(model, tmp_path, X)
    assert_array_equal(back.classes_, model.classes_)
    assert back.boundary_ == model.boundary_
    assert_array_equal(back.relabelling_.labels, model.relabelling_.labels)
    assert_array_equal(back.kmm_.weights, model.kmm_.weights)
    assert back.kmm_.effective_sample_size == model.kmm_.effective_sample_size


def test_the_same_model_makes_the_same_bytes(data, saved, tmp_path):
    again = PGPUClassifier(random_state=0).fit(*data)
    save(again, tmp_path / "again.skops", metadata={"columns": ["a", "b"]})
    assert (tmp_path / "again.skops").read_bytes() == saved.read_bytes()


def test_a_model_that_comes_back_makes_the_same_bytes(saved, tmp_path):
    # Nodes of trees have room between their fields, where memory holds anything.
    save(load(saved), tmp_path / "again.skops", metadata={"columns": ["a", "b"]})
    assert (tmp_path / "again.skops").read_bytes() == saved.read_bytes()


def test_metadata_come_back_alone(saved, tmp_path, model):
    assert read_metadata(saved) == {"columns": ["a", "b"]}
    save(model, tmp_path / "none.skops")
    assert read_metadata(tmp_path / "none.skops") == {}
    odd = {"naïve \U0001f600": [1, 2.5, None, True, {"<script>": "\u202e"}]}
    save(model, tmp_path / "odd.skops", metadata=odd)
    assert read_metadata(tmp_path / "odd.skops") == odd


@pytest.mark.parametrize("metadata", [{"a": {1, 2}}, {"a": np.ones(2)}, [1], "text"])
def test_metadata_must_be_json(metadata, model, tmp_path):
    with pytest.raises(ModelFileError, match=r"metadata must be .* Got"):
        save(model, tmp_path / "m.skops", metadata=metadata)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("thing", [PGPUClassifier(), [1, 2], "model", None])
def test_only_fitted_models_are_saved(thing, tmp_path):
    with pytest.raises(InvalidInputError, match=r"model must be .* Got"):
        save(thing, tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_imported_is_not_saved(data, tmp_path):
    model = make_pipeline(FunctionTransformer(lambda X: X), NaiveClassifier())
    with pytest.raises(ModelFileError, match=r"cannot be imported: .*<lambda>"):
        save(model.fit(*data), tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


def test_what_skops_cannot_take_is_not_saved(data, tmp_path):
    model = NaiveClassifier().fit(*data)
    model.note_ = Birch()
    with pytest.raises(ModelFileError, match=r"skops cannot save: .*Birch"):
        save(model, tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_what_was_there(model, saved, monkeypatch):
    before = saved.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileError, match=r"No space left"):
        save(model, saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_an_interrupted_write_leaves_what_was_there(model, saved, monkeypatch):
    before = saved.read_bytes()

    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        save(model, saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_places_that_cannot_be_written(model, tmp_path):
    for place in (tmp_path, tmp_path / "no" / "m.skops", "/proc/m.skops"):
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


def test_a_link_stays_a_link(model, tmp_path, data):
    target = tmp_path / "real.skops"
    link = tmp_path / "link.skops"
    link.symlink_to(target)
    save(model, str(link))
    assert link.is_symlink()
    assert_same(model, load(str(link)), data[0])


@pytest.mark.parametrize(
    "model",
    [
        PGPUClassifier(boundary=-0.5, random_state=0),
        PGPUClassifier.paper(random_state=0),
        PGPUClassifierCV.paper(boundaries=[-0.9999, -0.6], cv=3, random_state=0),
    ],
    ids=["default", "paper", "search"],
)
def test_what_a_fit_says_of_itself_comes_back(model, data, tmp_path):
    X, labels = data
    before = model.fit(X, labels)
    after = round_trip(before, tmp_path, X)
    assert after.boundary_ == before.boundary_
    assert len(after.boundary_.scores) == len(after.boundary_.candidates) > 1
    for name in ("class_prior", "labelling_rate"):
        for attribute in (name, f"{name}_interval"):
            ours, theirs = (getattr(m.reading_, attribute) for m in (after, before))
            assert ours == theirs
