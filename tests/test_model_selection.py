import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.exceptions import InvalidInputError
from probgap.methods import NaiveClassifier
from probgap.metrics import pu_score
from probgap.model_selection import (
    PUStratifiedGroupKFold,
    PUStratifiedKFold,
    make_pu_scorer,
)

METRICS = ("accuracy", "balanced_accuracy", "f1", "lee_liu", "precision", "recall")
METRICS += ("average_precision", "roc_auc")


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.4).astype(int)
    X = rng.normal(size=(400, 2)) + 1.5 * y[:, None]
    return X, y * (rng.random(400) < 0.5), y


@pytest.mark.parametrize("metric", METRICS)
def test_a_scorer_scores_what_was_held_out(task, metric):
    X, s, _ = task
    folds = PUStratifiedKFold(3)
    scorer = make_pu_scorer(metric, class_prior=0.4)
    scores = cross_val_score(LogisticRegression(), X, s, scoring=scorer, cv=folds)
    for score, (train, test) in zip(scores, folds.split(X, s), strict=True):
        model = LogisticRegression().fit(X[train], s[train])
        ranks = metric in {"roc_auc", "average_precision"}
        output = (model.decision_function if ranks else model.predict)(X[test])
        assert score == pu_score(s[test], output, metric, class_prior=0.4)


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
@pytest.mark.parametrize(
    ("values", "pos_label"),
    [(("fraud", "open"), "fraud"), (("two", "zero"), None), ((2, 7), 2)],
)
def test_a_scorer_knows_which_value_is_positive(task, metric, values, pos_label):
    X, s, _ = task
    scorer = make_pu_scorer(metric, class_prior=0.4)
    plain = cross_val_score(LogisticRegression(), X, s, scoring=scorer, cv=3)
    named = np.where(s == 1, *values)
    scorer = make_pu_scorer(metric, class_prior=0.4, pos_label=pos_label)
    found = cross_val_score(LogisticRegression(), X, named, scoring=scorer, cv=3)
    assert found == pytest.approx(plain)


def test_folds_have_their_share_of_every_kind():
    y = np.array(["card"] * 6 + ["identity"] * 4 + ["no"] * 9 + [None] * 21, object)
    for _, test in PUStratifiedKFold(4, shuffle=True, random_state=0).split(y, y):
        kinds = [np.count_nonzero(y[test] == k) for k in ("card", "identity", "no")]
        assert 1 <= kinds[0] <= 2
        assert kinds[1] == 1
        assert 2 <= kinds[2] <= 3
    assert PUStratifiedKFold(5).get_n_splits(y=y) == 4
    with pytest.raises(InvalidInputError, match="2 of any third kind"):
        PUStratifiedKFold(5).get_n_splits(y=np.append(y, "other"))
    with pytest.raises(InvalidInputError, match="two values"):
        PUStratifiedKFold(5).get_n_splits(y=np.arange(100) // 4)


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_a_scorer_takes_several_values_as_positive(task, metric):
    X, s, _ = task
    kinds = np.where(s == 1, np.where(X[:, 0] > 0.0, "card", "identity"), "open")
    plain = make_pu_scorer(metric, class_prior=0.4)
    several = make_pu_scorer(metric, class_prior=0.4, pos_label=("card", "identity"))
    model = NaiveClassifier(LogisticRegression(), random_state=0)
    named = clone(model).set_params(pos_label=("card", "identity")).fit(X, kinds)
    assert several(named, X, kinds) == pytest.approx(plain(model.fit(X, s), X, s))


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_to_a_scorer_checked_samples_are_not_labelled(task, metric):
    X, s, y = task
    told = np.where((y == 0) & (X[:, 0] > 0.0), -1, s)
    model = LogisticRegression().fit(X, np.where(s == 1, 1, -1))
    how = {"class_prior": 0.4, "pos_label": 1}
    found = make_pu_scorer(metric, neg_label=-1, **how)(model, X, told)
    plain = LogisticRegression().fit(X, s)
    assert found == pytest.approx(make_pu_scorer(metric, **how)(plain, X, s))


def test_a_search_by_an_estimate_finds_more_than_one_by_observed_labels(task):
    X, s, y = task
    grid = {"class_weight": [{1: weight} for weight in (1.0, 2.0, 4.0, 50.0)]}
    best = {}
    for name, scoring in (
        ("observed", "accuracy"),
        ("estimate", make_pu_scorer("accuracy", class_prior=0.4)),
    ):
        search = GridSearchCV(
            LogisticRegression(), grid, scoring=scoring, cv=PUStratifiedKFold(3)
        )
        best[name] = search.fit(X, s).best_estimator_.score(X, y)
    assert best["estimate"] > best["observed"] + 0.05


def test_sample_weights_are_routed_to_the_scorer(task):
    X, s, _ = task
    weight = np.random.default_rng(1).random(400)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_pu_scorer("f1", class_prior=0.4)
        scorer = scorer.set_score_request(sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=False)
        folds, params = PUStratifiedKFold(3), {"sample_weight": weight}
        scores = cross_validate(model, X, s, scoring=scorer, cv=folds, params=params)
    predicted = cross_val_predict(LogisticRegression(), X, s, cv=folds)
    for score, (_, test) in zip(scores["test_score"], folds.split(X, s), strict=True):
        how = {"class_prior": 0.4, "sample_weight": weight[test]}
        assert score == pytest.approx(pu_score(s[test], predicted[test], "f1", **how))


def test_labels_with_missing_entries_go_through_a_search(task):
    X, s, _ = task
    gaps = np.where(s == 1, 1.0, np.nan)
    scorer = make_pu_scorer("lee_liu")
    folds = PUStratifiedKFold(2, shuffle=True, random_state=0)
    model = PGPUClassifier.paper(random_state=0)
    search = GridSearchCV(model, {"keep_labelled": [True]}, scoring=scorer, cv=folds)
    assert search.fit(X, gaps).best_score_ > 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("auc",), r"metric must be one of .* Got 'auc'"),
        (("f1",), r"class_prior must be a number .* metric='f1'\. Got None"),
        (("f1", 2.0), r"class_prior must be .* Got 2\.0"),
    ],
)
def test_a_scorer_is_refused_before_it_is_used(arguments, message):
    metric, *prior = arguments
    with pytest.raises(ValueError, match=message):
        make_pu_scorer(metric, class_prior=prior[0] if prior else None)
    assert "lee_liu" not in get_scorer_names()  # nothing is registered for everyone


def test_folds_are_stratified_and_hold_out_every_row_once(task):
    _, s, _ = task
    folds = PUStratifiedKFold(5, shuffle=True, random_state=3)
    tests = [test for _, test in folds.split(s, s)]
    assert sorted(np.concatenate(tests)) == list(range(400))
    counts = [s[test].sum() for test in tests]
    assert max(counts) - min(counts) <= 1
    again = PUStratifiedKFold(5, shuffle=True, random_state=3).split(s, s)
    assert all((a == b).all() for a, (_, b) in zip(tests, again, strict=True))
    other = PUStratifiedKFold(5, shuffle=True, random_state=4).split(s, s)
    assert any(a.tolist() != b.tolist() for a, (_, b) in zip(tests, other, strict=True))


def test_without_shuffling_folds_are_those_of_scikit_learn(task):
    _, s, _ = task
    ours, theirs = (
        [test.tolist() for _, test in folds.split(s, s)]
        for folds in (PUStratifiedKFold(4), StratifiedKFold(4))
    )
    assert ours == theirs


def test_few_labelled_rows_make_fewer_folds():
    words = ["unlabelled"] * 9 + ["fraud"] * 3
    folds = PUStratifiedKFold(5)
    assert folds.get_n_splits() == 5
    assert folds.get_n_splits(y=words) == 3
    held_out = [test for _, test in folds.split(words, words)]
    assert [sum(words[i] == "fraud" for i in test) for test in held_out] == [1, 1, 1]
    X = np.arange(12.0)[:, None]
    search = GridSearchCV(SVC(), {"C": [1.0]}, cv=folds, scoring="accuracy")
    assert search.fit(X, words).n_splits_ == 3


def test_folds_refuse_what_they_cannot_split():
    with pytest.raises(ValueError, match=r"n_splits must be an integer .* Got 1"):
        PUStratifiedKFold(1)
    with pytest.raises(ValueError, match=r"at least 2 labelled .* Got 1"):
        next(PUStratifiedKFold().split(range(4), [1, 0, 0, 0]))
    with pytest.raises(ValueError, match="y must be given"):
        next(PUStratifiedKFold().split(range(4)))


def test_folds_serve_as_cv_of_the_classifiers(task):
    X, s, y = task
    folds = PUStratifiedKFold(3, shuffle=True, random_state=0)
    model = PGPUClassifier(cv=folds, estimator=SVC(), random_state=0).fit(X, s)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("shuffle", [False, True])
def test_folds_of_groups_are_stratified_and_split_none(shuffle):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 80, 600)
    y = rng.random(600) < 0.1 + 0.3 * (group % 2)
    folds = PUStratifiedGroupKFold(4, shuffle=shuffle, random_state=0)
    named = np.char.add("customer ", group.astype(str)).astype(object)
    times, shares = np.zeros(600), []
    for train, test in folds.split(y, np.where(y, "yes", None), named):
        assert not np.intersect1d(group[train], group[test]).size
        assert train.size + test.size == 600
        times[test] += 1
        shares.append(y[test].mean())
    assert (times == 1).all()
    assert np.ptp(shares) < 0.02
    assert folds.get_n_splits(y, y, named) == 4


def test_there_are_no_more_folds_than_groups_with_labels():
    y, group = np.array([1, 1, 0, 0, 0, 1]), np.array([1, 1, 2, 3, 4, 5])
    folds = list(PUStratifiedGroupKFold(5).split(y, y, group))
    assert [int(y[test].sum()) for _, test in folds] == [2, 1]
    # Rows without a group stand alone.
    missing = np.array([1.0, 1.0, np.nan, np.nan, np.nan, np.nan])
    assert len(list(PUStratifiedGroupKFold(5).split(y, y, missing))) == 2
    for y_given, given, message in (
        (None, group, "y must be given"),
        (y, None, "groups must be given"),
        (y, np.zeros(6), "in at least two groups"),
    ):
        with pytest.raises(ValueError, match=message):
            list(PUStratifiedGroupKFold().split(y, y_given, given))


def test_scikit_learn_hands_groups_to_the_folds(task):
    X, s, _ = task
    group = np.arange(400) // 2
    scores = cross_val_score(
        LogisticRegression(), X, s, groups=group, cv=PUStratifiedGroupKFold(3)
    )
    with sklearn.config_context(enable_metadata_routing=True):
        how = {"cv": PUStratifiedGroupKFold(3), "params": {"groups": group}}
        routed = cross_val_score(LogisticRegression(), X, s, **how)
    assert routed.tolist() == scores.tolist()
    assert scores.size == 3
