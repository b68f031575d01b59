"""What scikit-learn, pandas and the user's own code may rely on."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap.exceptions import InvalidInputError
from probgap.gap import ObservedGapEstimator

# Where a test is about labels, names or formats, any quick stages will do.
LIGHT = {"gap_estimator": LogisticRegression(), "estimator": LogisticRegression()}
QUICK_CV = {"boundaries": [-0.8, -0.6], "cv": 3}
BOTH = [
    pytest.param(PGPUClassifier(random_state=0, **LIGHT), id="PGPUClassifier"),
    pytest.param(
        PGPUClassifierCV(random_state=0, **LIGHT, **QUICK_CV), id="PGPUClassifierCV"
    ),
]


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_array])
def test_numbers_too_large_to_be_squared_are_refused(square, as_given):
    X, _, _, s = square
    with pytest.raises(InvalidInputError, match="must hold numbers whose squares"):
        PGPUClassifier().fit(as_given(1e200 * X), s)


@pytest.mark.parametrize("name", ["default", "search"])
def test_probability_decision_and_prediction_agree(square, square_model, name):
    X, y_true, _, s = square
    search = PGPUClassifierCV.paper(random_state=0, **QUICK_CV)
    fitted = square_model if name == "default" else search.fit(X, s)
    proba, decision = fitted.predict_proba(X), fitted.decision_function(X)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert ((proba >= 0.0) & (proba <= 1.0)).all()
    assert_array_equal(fitted.predict(X), (decision > 0).astype(int))
    assert_array_equal(proba.argmax(axis=1), (decision > 0).astype(int))
    assert fitted.score(X, y_true) > 0.93


@pytest.mark.parametrize(
    "final", [LogisticRegression(), RandomForestClassifier(30, random_state=0)]
)
def test_a_final_classifier_with_probabilities_is_believed(square, final):
    X, y_true, _, s = square
    fitted = PGPUClassifier(estimator=final, random_state=0).fit(X, s)
    assert_allclose(fitted.predict_proba(X), fitted.estimator_.predict_proba(X))
    positive = fitted.decision_function(X) > 0
    assert_array_equal(fitted.predict_proba(X)[:, 1] > 0.5, positive)
    assert fitted.score(X, y_true) > 0.9
    assert not hasattr(final, "classes_")


def test_probabilities_are_about_the_truth_not_the_label(square):
    X, y_true, _, _ = square
    few = np.where(np.random.default_rng(0).random(len(y_true)) < 0.3, y_true, 0)
    fitted = PGPUClassifier(random_state=0).fit(X, few)
    assert fitted.predict_proba(X)[:, 1].mean() == pytest.approx(
        y_true.mean(), abs=0.08
    )
    observed = fitted.gap_estimator_.predict_proba(X)[:, 1]
    assert observed.mean() == pytest.approx(few.mean(), abs=0.08)


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize(
    ("negative", "positive"),
    [(0, 1), (-1, 1), (1, 2), (False, True), ("no", "yes"), (0.0, 1.0)],
)
def test_the_names_of_labels_change_nothing_but_names(
    square, model, negative, positive
):
    X, _, _, s = square
    plain = clone(model).fit(X, s)
    named = clone(model).fit(X, np.where(s == 1, positive, negative))
    assert_array_equal(named.decision_function(X), plain.decision_function(X))
    assert named.classes_.tolist() == [negative, positive]
    assert set(named.predict(X).tolist()) <= {negative, positive}


@pytest.mark.parametrize(
    ("y_of", "classes"),
    [
        (lambda s: np.where(s == 1, 1.0, np.nan), [0.0, 1.0]),
        (lambda s: np.array([1 if v else None for v in s], dtype=object), [0, 1]),
        (lambda s: pd.Series(s).where(s == 1).astype("Int64"), [0, 1]),
        (lambda s: ["spam" if v else None for v in s], ["not spam", "spam"]),
        (lambda s: ["fraud" if v else None for v in s], ["fraud", "not fraud"]),
    ],
)
def test_missing_labels_mean_unlabelled(square, y_of, classes):
    X, _, _, s = square
    plain = PGPUClassifier(random_state=0, **LIGHT).fit(X, s)
    fitted = PGPUClassifier(random_state=0, **LIGHT).fit(X, y_of(s))
    sign = 1 if fitted.positive_index_ == 1 else -1
    assert_array_equal(sign * fitted.decision_function(X), plain.decision_function(X))
    assert fitted.classes_.tolist() == classes
    positive = fitted.classes_[fitted.positive_index_]
    assert_array_equal(fitted.predict(X) == positive, plain.predict(X) == 1)


def test_pos_label_chooses_the_labelled_value(square, square_model):
    X, y_true, _, s = square
    y = np.where(s == 1, "fraud", "unknown")
    fitted = PGPUClassifier(pos_label="fraud", random_state=0).fit(X, y)
    plain = square_model
    assert_array_equal(fitted.predict(X) == "fraud", plain.predict(X) == 1)
    # Classes are in scikit-learn's order, and everything else follows them.
    assert fitted.classes_.tolist() == ["fraud", "unknown"]
    proba = fitted.predict_proba(X)
    assert_allclose(proba[:, 0], plain.predict_proba(X)[:, 1])
    assert_array_equal(fitted.classes_[proba.argmax(axis=1)], fitted.predict(X))
    truth = np.where(y_true == 1, "fraud", "unknown")
    assert get_scorer("roc_auc")(fitted, X, truth) > 0.95
    assert get_scorer("neg_log_loss")(fitted, X, truth) > -0.2
    light = PGPUClassifier(pos_label="fraud", random_state=0, **LIGHT)
    calibrated = CalibratedClassifierCV(light, cv=2).fit(X, y)
    assert (calibrated.predict(X) == truth).mean() > 0.8


def test_output_of_transformers_set_to_pandas(square, square_model):
    X, _, _, s = square
    with config_context(transform_output="pandas"):
        inside = PGPUClassifier(random_state=0).fit(X, s).decision_function(X)
    assert_array_equal(inside, square_model.decision_function(X))


def test_meta_estimators_will_do_at_the_end(square):
    X, y_true, _, s = square
    gap = LogisticRegression()
    vote = VotingClassifier([("a", LogisticRegression()), ("b", SVC())])
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2)
    soft = VotingClassifier([("a", LogisticRegression())], voting="soft")
    for final in (soft, search):
        model = PGPUClassifier(gap_estimator=gap, estimator=final)
        assert model.fit(X, s).score(X, y_true) > 0.9
    for final in (vote, LinearRegression()):
        with pytest.raises(
            ValueError, match=r"must have decision_function or predict_"
        ):
            PGPUClassifier(estimator=final).fit(X, s)
    with pytest.raises(ValueError, match=r"before the whole classifier\. Got Pipeline"):
        PGPUClassifier(estimator=make_pipeline(StandardScaler(), SVC())).fit(X, s)


def test_same_seed_same_bits(square, square_model):
    X, _, _, s = square
    first = square_model.decision_function(X)
    parallel = clone(square_model).set_params(n_jobs=2).fit(X, s)
    assert_array_equal(first, parallel.decision_function(X))
    thawed = pickle.loads(pickle.dumps(square_model))
    assert_array_equal(first, thawed.decision_function(X))
    other = clone(square_model).set_params(random_state=1).fit(X, s)
    assert not np.array_equal(first, other.decision_function(X))


def test_same_seed_same_bits_of_a_search(square):
    X, _, _, s = square
    model = PGPUClassifierCV.paper(random_state=0, **QUICK_CV)
    fitted = [clone(model).set_params(random_state=k).fit(X, s) for k in (0, 0, 1)]
    fitted.append(pickle.loads(pickle.dumps(fitted[0])))
    first, again, other, thawed = (each.decision_function(X) for each in fitted)
    assert_array_equal(first, again)
    assert_array_equal(first, thawed)
    assert not np.array_equal(first, other)


def test_same_seed_same_bits_in_another_process(square, square_model):
    X = square[0]
    script = (
        "import sys, numpy as np; from probgap import PGPUClassifier;"
        "from probgap.datasets import make_square, hide_labels;"
        "X, y, p = make_square(400, random_state=3);"
        "s = hide_labels(X, y, 2 * p - 1, ('linear', 0.6), random_state=4);"
        "d = PGPUClassifier(random_state=0).fit(X, s).decision_function(X);"
        "sys.stdout.write(d.tobytes().hex())"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert out.stdout == square_model.decision_function(X).tobytes().hex()


@pytest.mark.parametrize("model", BOTH)
def test_fit_changes_none_of_its_arguments(square, model):
    X, s = square[0].copy(), square[3].copy()
    estimator = clone(model)
    before = {k: repr(v) for k, v in estimator.get_params().items()}
    estimator.fit(X, s)
    assert {k: repr(v) for k, v in estimator.get_params().items()} == before
    assert_array_equal(X, square[0])
    assert_array_equal(s, square[3])


def test_frames_sparse_and_narrow_input(square, square_model):
    X, _, _, s = square
    fitted = square_model
    frame = pd.DataFrame(X, columns=["left", "right"])
    named = PGPUClassifier(random_state=0).fit(frame, pd.Series(s))
    assert named.feature_names_in_.tolist() == ["left", "right"]
    assert_array_equal(named.decision_function(frame), fitted.decision_function(X))
    assert named.gap_estimator_.predict_proba(frame).shape == (len(s), 2)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame.rename(columns={"left": "up"}))
    sparse = PGPUClassifier(random_state=0).fit(sp.csr_matrix(X), s)
    agree = sparse.predict(sp.csc_matrix(X)) == fitted.predict(X)
    assert agree.mean() > 0.99
    narrow = PGPUClassifier(random_state=0).fit(X.astype(np.float32), s)
    assert (narrow.predict(X) == fitted.predict(X)).mean() > 0.99


def test_pipelines_searches_and_scores(square):
    X, _, _, s = square
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, PGPUClassifier(random_state=0, **LIGHT))
    search = GridSearchCV(
        pipeline, {"pgpuclassifier__boundary": ["auto", -0.7]}, cv=2
    ).fit(X, s)
    assert search.best_score_ > 0.5
    assert cross_val_score(pipeline, X, s, cv=2).shape == (2,)
    assert "PGPUClassifier" in repr(pipeline)


@pytest.mark.parametrize(
    "gap",
    [
        ObservedGapEstimator(),
        LogisticRegression(),
        RandomForestClassifier(30),
        ObservedGapEstimator(LogisticRegression(), method="in_sample"),
    ],
)
def test_any_gap_estimator_will_do(square, gap):
    X, y_true, _, s = square
    final = LogisticRegression()
    model = PGPUClassifier(gap_estimator=gap, estimator=final, random_state=0)
    first, again = (clone(model).fit(X, s) for _ in range(2))
    assert first.score(X, y_true) > 0.9
    assert_array_equal(first.decision_function(X), again.decision_function(X))
