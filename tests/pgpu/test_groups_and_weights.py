"""Rows that stand for several, and rows that belong together."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core.learners import (
    LearnerTask,
    fit_boosting,
    fit_forest,
    fit_kernel,
    fit_linear,
    stratified_folds,
)
from probgap.exceptions import InvalidInputError
from probgap.gap import ObservedGapEstimator
from probgap.model_selection import PUStratifiedGroupKFold

DEFAULT = PGPUClassifier(random_state=0)
QUICK = PGPUClassifier(
    gap_estimator=LogisticRegression(), estimator=LogisticRegression(), random_state=0
)
PAPER = PGPUClassifier.paper(strict=False, random_state=0)
PER_ROW = ["observed_gap_", "posterior_", "probability_", "sample_weight_"]
N_COPIES = 3


@pytest.fixture(scope="module")
def some(square):
    """Return rows, labels and whole weights, of which some are 0."""
    X, _, _, s = square
    rng = np.random.default_rng(0)
    return X[:250], s[:250], rng.integers(0, 4, 250)


@pytest.fixture(scope="module")
def copies():
    """Return groups of rows that are copies but for noise; labels are a coin's."""
    rng = np.random.default_rng(0)
    s, group = rng.random(120) < 0.4, np.repeat(np.arange(120), N_COPIES)
    X = np.repeat(rng.normal(size=(120, 6)), N_COPIES, axis=0)
    return X + 0.05 * rng.normal(size=X.shape), s[group], group


@pytest.mark.parametrize("model", [DEFAULT, QUICK, PAPER])
@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_array])
def test_whole_weights_do_what_repeated_rows_do(some, model, as_given):
    X, s, weight = some
    order = np.random.default_rng(1).permutation(weight.sum())
    rows = np.repeat(np.arange(s.size), weight)[order]
    weighted = clone(model).fit(as_given(X), s, sample_weight=weight)
    repeated = clone(model).fit(as_given(X[rows]), s[rows])
    assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert weighted.estimate_.n_hidden == repeated.estimate_.n_hidden
    assert weighted.n_labelled_ == s[rows].sum()
    for name in PER_ROW[:2]:
        of_rows = getattr(repeated, name)
        mean = np.bincount(rows, of_rows, s.size)[weight > 0] / weight[weight > 0]
        assert_allclose(getattr(weighted, name)[weight > 0], mean)


@pytest.mark.parametrize("model", [DEFAULT, PAPER, PGPUClassifier.paper()])
def test_weights_of_0_leave_rows_out(some, model):
    X, s, weight = some
    used = weight > 0
    weighted = clone(model).set_params(random_state=0)
    weighted.fit(X, s, sample_weight=used)
    without = clone(model).set_params(random_state=0).fit(X[used], s[used])
    assert_array_equal(weighted.predict_proba(X), without.predict_proba(X))
    for name in PER_ROW:
        assert_array_equal(getattr(weighted, name)[used], getattr(without, name))
        assert np.isfinite(getattr(weighted, name)).all()
    posterior = weighted.predict_proba(X[~used])[:, 1]
    assert_allclose(weighted.posterior_[~used], posterior)
    assert (weighted.probability_[s == 1] == 1.0).all()
    assert_array_equal(weighted.sample_weight_[~used], 0.0)
    assert_array_equal(weighted.relabelling_.labels[~used], -1)


def test_weights_of_1_and_groups_of_their_own_change_nothing_of_a_plain_fit(some):
    X, s, _ = some
    plain = clone(DEFAULT).fit(X, s).decision_function(X)
    weighted = clone(DEFAULT).fit(X, s, sample_weight=np.ones(s.size))
    assert_array_equal(weighted.decision_function(X), plain)


def test_counts_are_sums_of_weights(some):
    X, s, _ = some
    weight = np.random.default_rng(0).gamma(2.0, size=s.size)
    fitted = clone(DEFAULT).fit(X, s, sample_weight=weight)
    estimate = fitted.estimate_
    assert estimate.n_labelled == pytest.approx(weight[s == 1].sum())
    assert estimate.n_unlabelled == pytest.approx(weight[s == 0].sum())
    hidden = weight[s == 0] @ fitted.probability_[s == 0]
    assert hidden == pytest.approx(estimate.n_hidden)


@pytest.mark.parametrize("factor", [0.01, 20.0])
def test_heavy_rows_pull_the_answer_their_way(square, factor):
    X, y, _, s = square
    left = X[:, 0] < 0.0
    light = clone(DEFAULT).fit(X, s)
    heavy = clone(DEFAULT).fit(X, s, sample_weight=np.where(left, factor, 1.0))
    share = [m.estimate_.class_prior for m in (light, heavy)]
    moved = share[1] - share[0]
    expected = y[left].mean() - y[~left].mean()
    assert moved * expected * (factor - 1.0) > 0.0
    assert heavy.score(X, y) > 0.9


def test_weights_that_cannot_be_used_are_refused(some):
    X, s, weight = some
    with pytest.raises(ValueError, match="zero"):
        clone(QUICK).fit(X, s, sample_weight=0 * weight)
    with pytest.raises(ValueError, match="Negative values"):
        clone(QUICK).fit(X, s, sample_weight=-weight)
    with pytest.raises(InvalidInputError, match=r"at most 1e\+09 .* Got 1e\+300\."):
        clone(QUICK).fit(X, s, sample_weight=np.full(len(X), 1e300))
    for model in (QUICK, PAPER):
        with pytest.raises(InvalidInputError, match=r"must hold whole numbers for a"):
            clone(model).fit(X, s, sample_weight=weight + 0.5)
    with pytest.raises(InvalidInputError, match="at least 2 labelled samples"):
        clone(QUICK).fit(X, s, sample_weight=1 - s)


def test_equal_rows_in_a_table_of_few_values_stay_cases_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(600, 2)).astype(float)
    y = rng.random(600) < np.where(X[:, 0] == 1, 0.9, 0.05)
    s = y & (rng.random(600) < 0.6)
    fitted = clone(DEFAULT).fit(X, s)
    held_out = 0.5 * (1.0 + fitted.observed_gap_)
    for value in (0.0, 1.0):
        of_value = X[:, 0] == value
        assert held_out[of_value].mean() == pytest.approx(s[of_value].mean(), abs=0.03)
    low, high = fitted.estimate_.n_hidden_interval
    assert low <= (y & ~s).sum() <= high


@pytest.mark.parametrize(
    "gap",
    [
        None,
        LogisticRegression(C=1e6),
        ObservedGapEstimator(),
        ObservedGapEstimator(method="in_sample"),
    ],
)
@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_nothing_is_learnt_of_a_row_from_its_group(copies, gap):
    X, s, group = copies
    model = PGPUClassifier(gap_estimator=gap, random_state=0)
    apart = clone(model).fit(X, s).observed_gap_
    together = clone(model).fit(X, s, groups=group).observed_gap_
    if getattr(gap, "method", "") == "in_sample":
        # Platt's folds decide how far apart the chances of both kinds are.
        assert np.ptp(together) < 0.5 * np.ptp(apart)
        return
    assert roc_auc_score(s, together) < 0.65
    if gap is None:
        assert roc_auc_score(s, apart) > 0.9


@pytest.mark.parametrize("fit", [fit_kernel, fit_linear, fit_forest, fit_boosting])
def test_each_learner_holds_groups_out(copies, fit):
    X, s, group = copies
    for together, most in ((None, 1.0), (group, 0.65)):
        fold = stratified_folds(s, 5, 0, together)
        grouped = together is not None
        task = LearnerTask(X, s * 1.0, np.ones(s.size), fold, 0, grouped=grouped)
        assert roc_auc_score(s, fit(task).held_out) < most
    held_out = [np.unique(group[fold[:, 0] == k]) for k in range(fold.max() + 1)]
    assert sum(map(len, held_out)) == 120
    shares = [s[fold[:, 0] == k].mean() for k in range(fold.max() + 1)]
    assert np.ptp(shares) < 0.1


def test_heavy_rows_are_held_out_by_the_forest(copies):
    X, s, _ = copies
    weight = np.where(np.arange(s.size) < 5, 50.0, 1.0)
    task = LearnerTask(X, s * 1.0, weight, stratified_folds(s, 5, 0), 0)
    held_out = fit_forest(task).held_out
    assert np.isfinite(held_out).all()
    assert np.abs(held_out).max() < 5.0


@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_groups_may_have_any_names_and_miss_some(copies):
    X, s, group = copies
    named = np.array([f"patient {g}" for g in group], dtype=object)
    codes = np.unique(named.astype(str), return_inverse=True)[1]
    first = clone(QUICK).fit(X, s, groups=named)
    again = clone(QUICK).fit(X, s, groups=codes)
    assert_array_equal(first.observed_gap_, again.observed_gap_)
    named[::2] = None
    assert clone(QUICK).fit(X, s, groups=named).observed_gap_.size == s.size


def test_folds_of_the_user_must_not_split_groups(copies):
    X, s, group = copies
    by_group = clone(DEFAULT).set_params(cv=GroupKFold(4))
    assert roc_auc_score(s, by_group.fit(X, s, groups=group).observed_gap_) < 0.65
    split = clone(DEFAULT).set_params(cv=StratifiedKFold(4, shuffle=True))
    with (
        pytest.raises(InvalidInputError, match="keep the rows of a group in one fold"),
        pytest.warns(UserWarning, match="groups parameter is ignored"),
    ):
        split.fit(X, s, groups=group)


@pytest.mark.parametrize(
    ("groups", "message"),
    [([1, 2, 3], "one entry for each"), (np.zeros(360), "in at least two groups")],
)
def test_groups_that_cannot_be_used_are_refused(copies, groups, message):
    X, s, _ = copies
    with pytest.raises(InvalidInputError, match=message):
        clone(DEFAULT).fit(X, s, groups=groups)


@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_a_search_of_the_boundary_holds_groups_out(copies):
    X, s, group = copies
    search = PGPUClassifierCV.paper(
        boundaries=[-0.8, -0.5], cv=3, strict=False, random_state=0
    )
    apart = clone(search).fit(X, s).best_score_
    assert clone(search).fit(X, s, groups=group).best_score_ < apart
    with pytest.raises(TypeError, match="sample_weight"):
        search.fit(X, s, sample_weight=s)


@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_scikit_learn_routes_groups_and_weights(copies):
    X, s, group = copies
    weight = np.random.default_rng(0).integers(1, 3, s.size)
    known = {"groups": group, "sample_weight": weight}
    with config_context(enable_metadata_routing=True):
        model = clone(QUICK).set_fit_request(sample_weight=True, groups=True)
        scaler = StandardScaler(with_mean=False, with_std=False)
        direct = clone(model).fit(X, s, **known).observed_gap_
        pipe = make_pipeline(scaler.set_fit_request(sample_weight=False), model)
        assert_array_equal(pipe.fit(X, s, **known)[-1].observed_gap_, direct)
        scorer = get_scorer("roc_auc").set_score_request(sample_weight=False)
        how = {"cv": PUStratifiedGroupKFold(3), "scoring": scorer}
        search = GridSearchCV(model, {"class_prior": [0.5, 0.6]}, **how)
        search.fit(X, s, **known)
        assert_array_equal(search.best_estimator_.observed_gap_, direct)
        scores = cross_val_score(model, X, s, params=known, **how)
        assert scores.mean() < 0.65


@pytest.mark.parametrize("keep", [None, ["clinic"]])
def test_weights_and_groups_beside_columns_that_say_who_was_looked_at(square, keep):
    X, y, _, _ = square
    rng = np.random.default_rng(0)
    clinic = rng.integers(0, 2, y.size)
    s = (y == 1) & (rng.random(y.size) < np.where(clinic == 1, 0.7, 0.1))
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "clinic": clinic})
    weight = rng.integers(0, 3, y.size)
    rows = np.repeat(np.arange(y.size), weight)
    model = PGPUClassifier(labelled_by=["clinic"], keep=keep, random_state=0)
    weighted = clone(model).fit(frame, s, sample_weight=weight)
    repeated = clone(model).fit(frame.iloc[rows], s[rows])
    assert_array_equal(weighted.predict_proba(frame), repeated.predict_proba(frame))
    for one, other in zip(
        weighted.labelling_.groups, repeated.labelling_.groups, strict=True
    ):
        assert one == other
    assert weighted.labelling_.rate.size == y.size
    grouped = clone(model).fit(frame, s, groups=np.arange(y.size) // 2)
    assert grouped.labelling_.rate.min() < 0.5
