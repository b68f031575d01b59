"""Labels asked for: rows that teach, and what answers do to a model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probgap import PGPUClassifier
from probgap.audit import correct, suggest
from probgap.audit._process import Belief, Points, covariance, learn, see_rows
from probgap.audit._teach import draw_candidates, teach_most
from probgap.datasets import hide_labels, make_square
from probgap.exceptions import InvalidInputError

# Where a test is about labels or formats, any quick stages will do.
LIGHT = {"gap_estimator": LogisticRegression(), "estimator": LogisticRegression()}


@pytest.fixture(scope="module")
def fitted():
    """Three columns of which the last matters not, behind a scaler."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1.0, 5.0, 10.0]
    truth = X[:, 0] + 0.2 * X[:, 1] > 0.5
    s = truth & (rng.random(300) < 0.7)
    model = make_pipeline(StandardScaler(), PGPUClassifier(random_state=0))
    return model.fit(X, s), X, s, truth


@pytest.fixture
def points(rng):
    return Points(rng.normal(size=(25, 2)), rng.normal(size=25))


# Which rows


def test_suggestions_are_unlabelled_in_doubt_and_differ(fitted):
    model, X, s, _ = fitted
    rows = suggest(model, X, 10, labelled=s)
    assert np.unique(rows).size == 10
    assert not s[rows].any()
    p = model.predict_proba(X)[:, 1]
    assert np.abs(p[rows] - 0.5).mean() < np.abs(p[~s] - 0.5).mean()
    assert_array_equal(rows, suggest(model, X, 10, labelled=s))


def test_no_more_are_suggested_than_are_unlabelled(fitted):
    model, X, s, _ = fitted
    rows = suggest(model, X, 1000, labelled=s)
    assert_array_equal(np.sort(rows), np.flatnonzero(~s))
    assert suggest(model, X, 5, labelled=s | True).size == 0
    assert suggest(model, X[:7], 3).size == 3


def test_a_zone_asks_only_about_what_the_gap_leaves_undecided(fitted):
    model, X, s, _ = fitted
    gap = model[-1].gap_estimator_.decision_function(model[0].transform(X))
    undecided = (gap > model[-1].boundary_.value) & (gap <= 0.0) & ~s
    rows = suggest(model, X, 1000, labelled=s, zone="undecided")
    assert_array_equal(np.sort(rows), np.flatnonzero(undecided))
    better = correct(model, X[rows], np.ones(rows.size, dtype=bool))
    assert set(suggest(better, X, 5, zone="undecided", labelled=s)) <= set(rows)
    with pytest.raises(InvalidInputError, match=r"gap in \(-0.* Got none among"):
        suggest(model, X, 5, labelled=s | undecided, zone="undecided")
    with pytest.raises(InvalidInputError, match="zone must be 'undecided' or None"):
        suggest(model, X, zone="all")


def test_copies_of_a_row_are_not_suggested_in_a_row(fitted):
    model, X, *_ = fitted
    doubtful = np.abs(model.predict_proba(X)[:, 1] - 0.5).argmin()
    rows = np.concatenate([np.full(30, doubtful), np.arange(300)])
    chosen = rows[suggest(model, X[rows], 5)]
    assert np.count_nonzero(chosen == doubtful) <= 1


def test_the_first_row_makes_all_calls_surest(points):
    """By hand: for each row, the variances that an answer about it would leave."""
    belief = Belief(0.7)
    prior = covariance(points, points, 0.7)
    spread = np.diag(prior)
    even = expit(points.score) * expit(-points.score)
    slope = np.exp(-0.5 * points.score**2 / spread) / np.sqrt(2.0 * np.pi * spread)
    chance = expit(points.score / np.sqrt(1.0 + np.pi / 8.0 * spread))
    noise = 1.0 / (chance * (1.0 - chance))
    gain = [
        even * slope @ (prior[:, k] ** 2 / (spread[k] + noise[k])) for k in range(25)
    ]
    chosen = teach_most(belief, points, points, 25)
    assert chosen[0] == np.argmax(gain)
    assert_array_equal(np.sort(chosen), np.arange(25))


def test_of_many_rows_some_are_thought_of(fitted):
    model, X, s, _ = fitted
    (points, *_), unlabelled = see_rows(model, X, None), np.flatnonzero(~s)
    first, second = (
        draw_candidates(
            Belief(0.5), points, unlabelled, np.random.default_rng(seed), most=40
        )
        for seed in (0, 1)
    )
    assert np.unique(first).size == 40
    assert not s[first].any()
    p = model.predict_proba(X)[:, 1]
    assert np.abs(p[first] - 0.5).mean() < np.abs(p[~s] - 0.5).mean()
    assert set(first) != set(second)


def test_answers_change_what_is_asked_next(fitted):
    model, X, s, truth = fitted
    first = suggest(model, X, 20, labelled=s)
    better = correct(model, X[first], truth[first])
    known = s.copy()
    known[first] = True
    assert set(suggest(better, X, 20, labelled=known)) != set(
        suggest(model, X, 20, labelled=known)
    )


def test_sparse_rows_are_taken(fitted):
    _, X, s, truth = fitted
    sparse = csr_matrix(np.where(np.abs(X) < 1.0, 0.0, X))
    model = PGPUClassifier(random_state=0, **LIGHT).fit(sparse, s)
    rows = suggest(model, sparse, 3, labelled=s)
    assert rows.size == 3
    dense = PGPUClassifier(random_state=0, **LIGHT).fit(sparse.toarray(), s)
    assert_allclose(
        correct(model, sparse[rows], truth[rows]).decision_function(sparse),
        correct(dense, sparse[rows].toarray(), truth[rows]).decision_function(
            sparse.toarray()
        ),
        atol=0.05,
    )


# What answers do


def test_the_correction_is_the_most_likely_one(points, rng):
    positive = rng.random(25) < 0.4
    prior = covariance(points, points, 0.7)
    sign = np.where(positive, 1.0, -1.0)

    def loss(dual):
        moved = points.score + prior @ dual
        return 0.5 * dual @ prior @ dual + np.logaddexp(0.0, -sign * moved).sum()

    belief = Belief(0.7, learn(points, positive, 0.7))
    found = minimize(loss, np.zeros(25), method="BFGS", options={"gtol": 1e-8})
    assert loss(belief.answers.dual) <= found.fun + 1e-9
    assert_allclose(
        belief.mean(points), points.score + prior @ found.x, atol=1e-3, rtol=0
    )


def test_the_variance_is_that_of_laplace(points, rng):
    positive = rng.random(25) < 0.4
    belief = Belief(0.7, learn(points, positive, 0.7))
    chance = expit(belief.mean(points))
    prior = covariance(points, points, 0.7)
    precision = np.linalg.inv(prior) + np.diag(chance * (1.0 - chance))
    expected = np.linalg.inv(precision)
    assert_allclose(belief.covariance(points, points), expected, rtol=1e-5, atol=1e-7)
    assert_allclose(belief.variance(points), np.diag(expected), rtol=1e-5)
    assert (belief.variance(points) < Belief(0.7).variance(points)).all()


def test_suggestions_go_by_probabilities_that_are_given(fitted):
    model, X, s, _ = fitted
    posterior = model[-1].posterior_
    rows = suggest(model, X, 10, labelled=s, probability=posterior)
    assert_array_equal(rows, suggest(model, X, 10, labelled=s, probability=posterior))
    assert np.abs(posterior[rows] - 0.5).mean() < np.abs(posterior[~s] - 0.5).mean()
    with pytest.raises(InvalidInputError, match="probability must"):
        suggest(model, X, 10, probability=2.0 * posterior)
    with pytest.raises(InvalidInputError, match="Got 0"):
        suggest(model, X, 0)


def test_answers_right_a_model_that_errs(fitted):
    _, X, _, truth = fitted
    s = truth & (X[:, 0] > 1.0) & (np.arange(300) % 2 == 0)
    model = make_pipeline(StandardScaler(), PGPUClassifier(random_state=0)).fit(X, s)
    before = (model.predict(X) == truth).mean()
    assert before < 0.95
    rows = suggest(model, X, 30, labelled=s)
    better = correct(model, X[rows], truth[rows])
    assert (better.predict(X) == truth).mean() > before
    assert (better.predict(X[rows]) == truth[rows]).mean() > 0.9


@pytest.fixture(scope="module")
def audited():
    """A model that does not know half of the table, and answers about 100 random rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 2))
    truth = X[:, 0] + 0.5 * rng.normal(size=800) > 0.3
    s = truth & (X[:, 1] < 0.0) & (rng.random(800) < 0.5)
    model = PGPUClassifier(random_state=0).fit(X, s)
    rows = rng.choice(np.flatnonzero(~s), 100, replace=False)
    held_out = model.posterior_
    better = correct(model, X[rows], truth[rows], probability=held_out[rows])
    rest = ~s
    rest[rows] = False
    return model, better, X, truth, s, rest


def test_answers_weight_the_curves_of_the_reading(audited):
    model, better, _, truth, s, _ = audited
    (low, high), (least, most) = (
        each.n_hidden_interval for each in (better.estimate, model.estimate_)
    )
    assert high - low < 0.7 * (most - least)
    assert low < (truth & ~s).sum() < high


def test_answers_recalibrate_probabilities_and_correct_the_ranking(audited):
    model, better, X, truth, _, rest = audited
    held_out, y = model.posterior_, truth[rest]
    before = model.probability_
    after = better.hidden_probability(X, held_out)
    assert log_loss(y, after[rest]) < 0.9 * log_loss(y, before[rest])
    assert (
        average_precision_score(y, after[rest])
        > average_precision_score(y, held_out[rest]) + 0.02
    )


def test_of_rows_that_may_be_labelled_some_are(audited):
    model, better, X, *_ = audited
    estimate, chance = model.estimate_, model.predict_proba(X)[:, 1]
    labelled = expit(estimate.log_odds(estimate.find_scores(chance)))
    hidden = better.hidden_probability(X)
    assert_allclose(
        better.predict_proba(X)[:, 1], labelled + (1.0 - labelled) * hidden, atol=1e-9
    )


def test_where_curves_are_flat_rows_stay_in_their_order(audited):
    """Three answers of one kind change levels, but hardly any order."""
    model, _, X, _, s, _ = audited
    held_out, rows = model.posterior_, np.argsort(model.posterior_)[:3]
    better = correct(model, X[rows], [False] * 3, probability=held_out[rows])
    after = better.hidden_probability(X, held_out)[~s]
    assert spearmanr(after, held_out[~s]).statistic > 0.999


def test_a_boundary_of_ones_own_has_no_curves_to_weight(fitted):
    _, X, s, truth = fitted
    model = PGPUClassifier(boundary=-0.5, random_state=0, **LIGHT).fit(X, s)
    better = correct(model, X[:40], truth[:40])
    assert better.estimate is None
    assert_allclose(better.hidden_probability(X), better.predict_proba(X)[:, 1])


@pytest.mark.parametrize(
    ("names", "pos_label"),
    [(("none", "yes"), None), (("yes", "zero"), "yes"), ((0, 1), None), ((1, 2), 1)],
)
def test_classes_are_those_of_the_model(names, pos_label, fitted):
    _, X, s, truth = fitted
    positive = names[1] if pos_label is None else pos_label
    negative = names[0] if positive == names[1] else names[1]
    y = np.where(s, positive, negative)
    model = PGPUClassifier(pos_label=pos_label, random_state=0, **LIGHT).fit(X, y)
    answers = np.where(truth[:40], positive, negative)
    better = correct(model, X[:40], answers)
    assert_array_equal(better.classes_, model.classes_)
    score, proba = better.decision_function(X), better.predict_proba(X)
    assert_array_equal(better.predict(X) == positive, score > 0.0)
    column = list(model.classes_).index(positive)
    assert_allclose(proba[:, column], expit(score))
    assert_allclose(proba.sum(axis=1), 1.0)
    mask = correct(model, X[:40], truth[:40])
    assert_array_equal(mask.decision_function(X), score)


@pytest.mark.parametrize(
    ("n_rows", "answers", "message"),
    [
        (2, [True], "Got 1 for 2 rows"),
        (0, [], "Got 0 for 0 rows"),
        (2, ["yes", "no"], "False, True. Got 'yes'"),
        (2, [0.0, 2.0], "Got 2.0"),
    ],
)
def test_bad_answers_are_refused(n_rows, answers, message, fitted):
    model, X, *_ = fitted
    with pytest.raises(InvalidInputError, match=message):
        correct(model, X[:n_rows], answers)


# Eight or so labels look like nothing yet, and fit says so.
@pytest.mark.filterwarnings("ignore::probgap.exceptions.UnreliableFitWarning")
def test_asking_what_teaches_beats_asking_at_random():
    """The claim of docs/design/audit.md, small: 30 answers on a draw."""
    gained = {}
    X, y, posterior = make_square(400, random_state=0)
    few = lambda gap: 1.0 - 0.05 * gap.clip(0.0)
    s = hide_labels(X, y, 2 * posterior - 1, few, random_state=0)
    model = PGPUClassifier(random_state=0).fit(X, s)
    rng = np.random.default_rng(0)
    for name in ("suggest", "random"):
        known, asked, now = s == 1, np.zeros(0, dtype=int), model
        for _ in range(3):
            rows = (
                suggest(now, X, 10, labelled=known)
                if name == "suggest"
                else rng.choice(np.flatnonzero(~known), 10, replace=False)
            )
            known[rows] = True
            asked = np.append(asked, rows)
            now = correct(model, X[asked], y[asked])
        gained[name] = (now.predict(X) == y).mean() - (model.predict(X) == y).mean()
    assert gained["suggest"] > gained["random"] > 0.0
