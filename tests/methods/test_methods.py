"""All methods: what they share; the older ones by hand and by formula."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from probgap.datasets import hide_labels, make_square
from probgap.exceptions import ProbgapWarning
from probgap.gap import ObservedGapEstimator
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
from probgap.methods._closed import label_frequency, unlabelled_positive_chance
from probgap.methods._noise import importance

ALL = [
    NaiveClassifier(),
    ElkanNotoClassifier(),
    ElkanNotoClassifier(form="weighted"),
    NatarajanClassifier(),
    LiuTaoClassifier(),
    PGlinClassifier(),
    SpyClassifier(),
    NNPUClassifier(),
    PUSBClassifier(),
    SAREMClassifier(tol=1e-3),  # hundreds of rounds show no more
    PropensityWeightedClassifier(),
    PUBaggingClassifier(),
    NatarajanClassifier(rho_plus="cv"),
]
FORMS = [
    NNPUClassifier(risk="upu", loss="sigmoid", kernel="linear"),
    PropensityWeightedClassifier(0.9, estimator=LogisticRegression()),
]


@pytest.fixture(scope="module")
def at_random():
    """The square, with three positives in ten unlabelled, whichever they are."""
    X, y_true, posterior = make_square(800, random_state=0)
    gap = 2.0 * posterior - 1.0
    return X, y_true, hide_labels(X, y_true, gap, ("constant", 0.3), random_state=1)


def test_bagging_takes_all_labelled_and_as_many_unlabelled(at_random):
    X, y_true, s = at_random
    model = PUBaggingClassifier(LogisticRegression(), n_estimators=20, random_state=0)
    model.fit(X, s)
    assert len(model.estimators_) == 20
    votes = [one.predict_proba(X)[:, 1] for one in model.estimators_]
    assert_array_equal(model.predict(X), (np.mean(votes, axis=0) > 0.5).astype(int))
    # Balanced samples: more rows are called positive than by the naive classifier.
    naive = NaiveClassifier(LogisticRegression()).fit(X, s)
    assert model.predict(X).sum() > naive.predict(X).sum()
    again = PUBaggingClassifier(LogisticRegression(), n_estimators=20, random_state=0)
    assert_array_equal(again.fit(X, s).decision_function(X), model.decision_function(X))
    assert model.score(X, y_true) > naive.score(X, y_true)


def test_naive_is_the_support_vector_machine(at_random):
    X, _, s = at_random
    naive = NaiveClassifier().fit(X, s)
    assert_array_equal(naive.predict(X), SVC().fit(X, s).predict(X))


def test_label_frequency_by_hand():
    chance = np.array([0.8, 0.6, 0.1, 0.5])
    labelled = np.array([True, True, False, False])
    assert label_frequency(chance, labelled, "e1") == pytest.approx(0.7)
    assert label_frequency(chance, labelled, "e2") == pytest.approx(1.4 / 2.0)
    assert label_frequency(chance, labelled, "e3") == pytest.approx(0.8)
    assert label_frequency(np.zeros(2), np.array([True, False]), "e2") > 0.0


def test_weight_of_an_unlabelled_sample_by_hand():
    # c = 0.5, p = 0.25: P(Y=1 | x) = 0.5, of which half are labelled; of the 0.75
    # unlabelled 0.25 are positive.
    weight = unlabelled_positive_chance(np.array([0.25, 0.0, 0.5, 0.9]), 0.5)
    assert_allclose(weight, [1.0 / 3.0, 0.0, 1.0, 1.0])


def test_importance_undoes_the_noise_in_expectation():
    # E[weight * 1(s)] over s must be P(Y | x), whatever the posterior and the rates.
    assert importance(np.array([0.6]), np.array([False]), 0.4, 0.0) == 0.0
    posterior = np.linspace(0.05, 0.95, 19)
    plus, minus = 0.3, 0.1
    chance = posterior * (1 - plus) + (1 - posterior) * minus
    positive = importance(chance, np.ones(19, dtype=bool), plus, minus) * chance
    negative = importance(chance, np.zeros(19, dtype=bool), plus, minus) * (1 - chance)
    assert_allclose(positive, posterior)
    assert_allclose(negative, 1 - posterior)


def test_natarajan_weighs_errors_by_hand(at_random):
    X, _, s = at_random
    fitted = NatarajanClassifier(rho_plus=0.4).fit(X, s)
    assert fitted.alpha_ == pytest.approx(0.3)
    by_hand = SVC().fit(X, s, sample_weight=np.where(s == 1, 1.4, 0.6))
    assert_array_equal(fitted.predict(X), by_hand.predict(X))
    both = NatarajanClassifier(rho_plus=0.4, rho_minus=0.2).fit(X, s)
    assert both.alpha_ == pytest.approx(0.4)


@pytest.mark.parametrize("rule", ["e1", "e2", "e3"])
@pytest.mark.parametrize("form", ["scaling", "weighted"])
def test_elkan_noto_finds_the_frequency_when_labels_fell_at_random(
    at_random, form, rule
):
    X, y_true, s = at_random
    fitted = ElkanNotoClassifier(form=form, rule=rule, random_state=0).fit(X, s)
    assert fitted.label_frequency_ == pytest.approx(0.7, abs=0.15)
    # The maximum is noisy, and above c.
    slack = 0.03 if rule == "e3" else 0.005
    assert fitted.score(X, y_true) > SVC().fit(X, s).score(X, y_true) - slack


@pytest.mark.parametrize("model", ALL[1:])
def test_no_worse_than_naive_where_the_assumption_holds(at_random, model):
    X, y_true, s = at_random
    fitted = clone(model).set_params(random_state=0).fit(X, s)
    assert fitted.score(X, y_true) > NaiveClassifier().fit(X, s).score(X, y_true) - 0.02


@pytest.mark.parametrize("model", ALL)
def test_a_row_is_scored_the_same_whatever_stands_beside_it(at_random, model):
    X, _, s = at_random
    fitted = clone(model).set_params(random_state=0).fit(X[:300], s[:300])
    alone = np.concatenate([fitted.decision_function(X[i : i + 1]) for i in range(9)])
    assert_allclose(alone, fitted.decision_function(X)[:9], atol=1e-10)


@pytest.mark.parametrize("model", ALL)
def test_names_seeds_and_frames(at_random, model):
    X, _, s = at_random
    frame = pd.DataFrame(X[:300], columns=["a", "b"])
    y = np.where(s[:300] == 1, "fraud", "unknown")
    model = clone(model).set_params(random_state=0, pos_label="fraud")
    first, second = (clone(model).fit(frame, y) for _ in range(2))
    assert first.classes_.tolist() == ["fraud", "unknown"]
    assert_array_equal(first.decision_function(frame), second.decision_function(frame))
    positive = first.decision_function(frame) < 0  # of classes_[0]
    assert_array_equal(first.predict(frame) == "fraud", positive)


@pytest.mark.parametrize("model", [*ALL[:-2], *FORMS])
def test_probabilities_agree_with_decisions_and_sparse_with_dense(at_random, model):
    X, _, s = (part[:300] for part in at_random)
    fitted = clone(model).set_params(random_state=0).fit(X, s)
    sparse = clone(fitted).fit(csr_matrix(X), s)
    same = sparse.predict(csc_matrix(X)) == fitted.predict(X)
    assert same.mean() > 0.9  # NNPUClassifier does not centre sparse columns
    if not hasattr(fitted, "predict_proba"):
        return
    proba = fitted.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert ((proba >= 0.0) & (proba <= 1.0)).all()
    assert_array_equal(proba[:, 1] > 0.5, fitted.decision_function(X) > 0.0)
    # The labels of the other class: the columns follow classes_.
    turned = clone(model).set_params(random_state=0, pos_label=0).fit(X, 1 - s)
    assert_allclose(turned.predict_proba(X)[:, 0], proba[:, 1])


def test_which_methods_give_probabilities():
    have = {type(model).__name__ for model in ALL if hasattr(model, "predict_proba")}
    assert have == {
        "ElkanNotoClassifier",
        "NNPUClassifier",
        "PGlinClassifier",
        "PropensityWeightedClassifier",
        "SAREMClassifier",
    }
    assert hasattr(NaiveClassifier(LogisticRegression()), "predict_proba")
    assert not hasattr(NNPUClassifier(loss="sigmoid"), "predict_proba")


@pytest.mark.parametrize(
    "model",
    [
        PUSBClassifier(gap_estimator=ObservedGapEstimator(pos_label="fraud")),
        SpyClassifier(estimator=NNPUClassifier(pos_label="fraud")),
    ],
)
def test_a_positive_label_of_an_estimator_inside_does_not_matter(at_random, model):
    X, _, s = (part[:200] for part in at_random)
    fitted = model.set_params(random_state=0).fit(X, s)
    clean = {name for name in model.get_params() if name.endswith("__pos_label")}
    plain = clone(model).set_params(**dict.fromkeys(clean)).fit(X, s)
    assert_array_equal(fitted.decision_function(X), plain.decision_function(X))


def test_other_estimators_will_do(at_random):
    X, y_true, s = at_random
    for final in (LogisticRegression(), RandomForestClassifier(20)):
        for model in (NaiveClassifier(), LiuTaoClassifier(gap_estimator=final)):
            fitted = clone(model).set_params(estimator=final, random_state=0).fit(X, s)
            assert fitted.score(X, y_true) > 0.8


def test_rates_are_estimated_from_the_surest_samples(at_random):
    X, _, s = at_random
    fitted = LiuTaoClassifier(rho_minus=None, random_state=0).fit(X, s)
    assert 0.0 <= fitted.rho_plus_ < 0.4
    assert 0.0 <= fitted.rho_minus_ < 0.2
    searched = NatarajanClassifier(rho_plus="cv", cv=3, random_state=0).fit(X, s)
    assert searched.rho_plus_ in np.round(np.linspace(0, 0.9, 10), 1)


def test_a_kind_that_looks_like_noise_keeps_its_weight():
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    s = (X[:, 0] > -0.9).astype(int)
    model = LiuTaoClassifier(rho_plus=0.95, gap_estimator=LogisticRegression())
    fitted = model.fit(X, s)
    assert (fitted.sample_weight_[s == 0] > 0).any()


@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_two_of_a_kind_are_enough(rng):
    X, s = rng.normal(size=(30, 2)), np.arange(30) < 2
    for model in ALL[:-2]:
        fitted = clone(model).set_params(random_state=0).fit(X, s)
        assert np.isfinite(fitted.decision_function(X)).all()


def test_the_weighted_form_says_when_it_has_no_negatives(rng):
    X, s = rng.normal(size=(60, 1)), np.arange(60) < 4
    chance = LogisticRegression(class_weight={0: 1.0, 1: 200.0})
    model = ElkanNotoClassifier(form="weighted", rule="e2", gap_estimator=chance)
    with pytest.warns(ProbgapWarning, match=r"leaves no negatives .* label frequency"):
        fitted = model.set_params(random_state=0).fit(X, s)
    assert np.isfinite(fitted.decision_function(X)).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NaiveClassifier(KNeighborsClassifier()), r"must accept sample_weight"),
        (PUBaggingClassifier(SVC()), r"^estimator must have predict_proba"),
        (
            LiuTaoClassifier(gap_estimator=SVC()),
            r"^gap_estimator must have predict_proba",
        ),
        (NatarajanClassifier(rho_plus=1.0), r"'rho_plus' .* Got 1\.0"),
        (NatarajanClassifier(rho_plus=0.7, rho_minus=0.4), r"below 1.*0\.7 \+ 0\.4"),
        (LiuTaoClassifier(rho_plus=0.7, rho_minus=0.4), r"below 1.*0\.7 \+ 0\.4"),
        (LiuTaoClassifier(rho_plus=-0.1), r"'rho_plus' .* Got -0\.1"),
        (ElkanNotoClassifier(form="both"), r"'form' .* Got 'both'"),
        (ElkanNotoClassifier(hold_out=1.5), r"'hold_out' .* Got 1\.5"),
        (NNPUClassifier(0.1), r"at least the share of labelled .* Got 0\.1"),
        (NNPUClassifier(loss="hinge"), r"'loss' .* Got 'hinge'"),
        (PUSBClassifier(1.0), r"'class_prior' .* Got 1\.0"),
        (SpyClassifier(LinearRegression()), r"spy_estimator must have decision_"),
        (SpyClassifier(noise=1.0), r"'noise' .* Got 1\.0"),
        (SAREMClassifier(SVC()), r"estimator must have predict_proba"),
        (
            SAREMClassifier(propensity_estimator=KNeighborsClassifier()),
            r"propensity_estimator must accept sample_weight",
        ),
        (SAREMClassifier(propensity_features=[2]), r"some of the 2 columns .* \[2\]"),
        (SAREMClassifier(propensity_features=["a"]), r"some of the 2 .* \['a'\]"),
        (PropensityWeightedClassifier(1.5), r"'propensity' .* Got 1\.5"),
        (PropensityWeightedClassifier(0.1), r"room for negatives: .* below 100,"),
        (
            PropensityWeightedClassifier(LogisticRegression()),
            r"must be fitted; in a FrozenEstimator .* Got a LogisticRegression",
        ),
        (
            PropensityWeightedClassifier(lambda X: X[:, 0]),
            r"propensity must be above 0 .* Got -",
        ),
        (
            PropensityWeightedClassifier(lambda _: None),
            r"propensity must be above 0 .* Got nan",
        ),
    ],
)
def test_bad_parameters_are_refused(at_random, model, message):
    X, _, s = at_random
    with pytest.raises(ValueError, match=message):
        model.fit(X[:100], s[:100])
