import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.exceptions import InvalidInputError
from probgap.gap import MixedGapEstimator, ObservedGapEstimator
from probgap.methods import PUSBClassifier


def test_gaps_lie_between_minus_one_and_one_and_follow_the_truth(square):
    X, _, gap, s = square
    for method in ("out_of_fold", "in_sample"):
        model = ObservedGapEstimator(method=method, random_state=0).fit(X, s)
        assert model.observed_gap_.shape == s.shape
        assert np.abs(model.observed_gap_).max() <= 1.0
        assert np.corrcoef(model.observed_gap_, gap)[0, 1] > 0.8


def test_in_sample_gaps_are_those_of_the_fitted_model(square):
    X, _, _, s = square
    model = ObservedGapEstimator(method="in_sample", random_state=0).fit(X, s)
    assert_array_equal(model.observed_gap_, model.decision_function(X))
    assert_array_equal(model.transform(X)[:, 0], model.decision_function(X))
    proba = model.predict_proba(X)
    assert_allclose(model.decision_function(X), 2.0 * proba[:, 1] - 1.0, atol=1e-12)
    assert_array_equal(model.predict(X), (proba[:, 1] > 0.5).astype(int))


def test_mixed_gaps_follow_the_truth_in_any_folds(square):
    X, _, gap, s = (rows[:200] for rows in square)
    usual = MixedGapEstimator(random_state=0).fit(X, s)
    other = MixedGapEstimator(cv=3, random_state=0).fit(X, s)
    for model in (usual, other):
        assert np.corrcoef(model.observed_gap_, gap)[0, 1] > 0.8
        assert_allclose(model.observed_gap_, np.tanh(model.log_odds_ / 2.0))
        decision = model.decision_function(X)
        assert_allclose(decision, np.tanh(model._log_odds_at(X) / 2.0), atol=1e-12)
    assert not np.array_equal(usual.observed_gap_, other.observed_gap_)


@pytest.mark.parametrize(
    "gap", [MixedGapEstimator(), ObservedGapEstimator(LogisticRegression())]
)
def test_a_threshold_on_training_samples_holds_for_others(square, gap):
    X, _, _, s = square
    model = PUSBClassifier(0.6, gap_estimator=gap, random_state=0).fit(X[:300], s[:300])
    assert model.predict(X).mean() == pytest.approx(0.6, abs=0.1)


def test_out_of_fold_gaps_do_not_know_the_label_they_are_for():
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)  # nothing to learn
    forest = RandomForestClassifier(50, random_state=0)
    seen = ObservedGapEstimator(forest, method="in_sample").fit(X, s).observed_gap_
    unseen = ObservedGapEstimator(forest, random_state=0).fit(X, s).observed_gap_
    assert roc_auc_score(s, seen) > 0.95
    assert roc_auc_score(s, unseen) < 0.65


def test_swapping_the_classes_turns_the_gap_round(square):
    X, _, _, s = square
    model = LogisticRegression()
    one = ObservedGapEstimator(model, random_state=0).fit(X, s)
    other = ObservedGapEstimator(model, random_state=0, pos_label=0).fit(X, s)
    assert other.classes_.tolist() == [0, 1]
    assert_allclose(other.decision_function(X), one.decision_function(X), atol=1e-3)
    assert_allclose(other.transform(X), -one.transform(X), atol=1e-3)
    assert_array_equal(other.predict(X), one.predict(X))
    assert_allclose(other.observed_gap_, -one.observed_gap_, atol=1e-4)


def test_same_seed_same_bits_whatever_n_jobs(square):
    X, _, _, s = square
    model = ObservedGapEstimator(RandomForestClassifier(10), random_state=3)
    first = clone(model).fit(X, s).observed_gap_
    assert_array_equal(first, clone(model).set_params(n_jobs=2).fit(X, s).observed_gap_)
    other = clone(model).set_params(random_state=4).fit(X, s).observed_gap_
    assert not np.array_equal(first, other)


def test_set_output_gives_a_named_column(square):
    X, _, _, s = square
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = ObservedGapEstimator(LogisticRegression()).set_output(transform="pandas")
    assert list(model.fit_transform(frame, s).columns) == ["observed_gap"]
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.get_feature_names_out().tolist() == ["observed_gap"]


def test_sparse_input_and_any_splitter(square):
    X, _, _, s = square
    folds = KFold(3)
    dense = ObservedGapEstimator(LogisticRegression(), cv=folds).fit(X, s)
    sparse = ObservedGapEstimator(LogisticRegression(), cv=folds).fit(
        sp.csr_array(X), s
    )
    assert_allclose(sparse.observed_gap_, dense.observed_gap_, atol=1e-6)


@pytest.mark.parametrize("n_labelled", [2, 3, 4, 6])
def test_few_labelled_positives_are_enough(rng, n_labelled):
    X = rng.normal(size=(40, 2))
    s = (np.arange(40) < n_labelled).astype(int)
    model = ObservedGapEstimator(random_state=0).fit(X, s)
    assert np.isfinite(model.observed_gap_).all()


def test_the_users_estimator_is_not_touched(square):
    X, _, _, s = square
    mine = LogisticRegression()
    ObservedGapEstimator(mine).fit(X, s)
    assert not hasattr(mine, "coef_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimator": SVC()}, r"estimator must have predict_proba; .* Got SVC\(\)"),
        ({"method": "by_magic"}, r"'method' .* Got 'by_magic'"),
        ({"cv": 300}, r"y must hold at least 300 labelled samples, one for each fold"),
        ({"random_state": "x"}, r"random_state must be .* Got 'x'"),
    ],
)
def test_bad_parameters_are_refused(square, parameters, message):
    X, _, _, s = square
    with pytest.raises(ValueError, match=message):
        ObservedGapEstimator(**parameters).fit(X, s)


@pytest.mark.parametrize(
    "gap",
    [
        MixedGapEstimator(random_state=0),
        ObservedGapEstimator(random_state=0),
        ObservedGapEstimator(method="in_sample", random_state=0),
        ObservedGapEstimator(LogisticRegression(), random_state=0),
    ],
    ids=["mixed", "out of fold", "in sample", "given"],
)
def test_groups_are_held_out_together(square, gap):
    """Each row twice: without groups a copy tells the label of the other."""
    X, _, truth, s = (np.repeat(rows[:120], 2, axis=0) for rows in square)
    group = np.repeat(np.arange(120), 2)
    apart, together = (clone(gap).fit(X, s, groups=g) for g in (None, group))
    assert not np.array_equal(apart.observed_gap_, together.observed_gap_)
    assert np.corrcoef(together.observed_gap_, truth)[0, 1] > 0.7


def test_soft_labels_of_who_was_looked_at_need_the_mixture(square):
    X, _, _, s = (rows[:120] for rows in square)
    clinic = np.arange(120) % 2
    model = PGPUClassifier.paper(labelled_by=[2], strict=False)
    with pytest.raises(InvalidInputError, match="None or a MixedGapEstimator"):
        model.fit(np.column_stack([X, clinic]), s * (clinic == 0))
