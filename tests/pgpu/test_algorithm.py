"""The algorithm, step by step, and the choices one can make at each."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.svm import SVC, LinearSVC

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core.estimators import fit_on_shares
from probgap.boundary import Quantile
from probgap.exceptions import (
    BoundaryWarning,
    InvalidInputError,
    ProbgapWarning,
    UnreliableFitWarning,
)
from probgap.gap import ObservedGapEstimator
from probgap.reading import read
from probgap.relabel import relabel
from probgap.reweight import KernelMeanMatching, kernel_mean_matching

# Where a test is about a parameter, any quick stages will do.
LIGHT = {"gap_estimator": LogisticRegression(), "estimator": LogisticRegression()}


def test_the_papers_algorithm_is_the_paper_step_by_step(square):
    X, _, _, s = square
    fitted = PGPUClassifier.paper(random_state=0).fit(X, s)
    gap = fitted.observed_gap_
    # Step 1: in-sample Platt scaling.
    assert isinstance(fitted.gap_estimator_, ObservedGapEstimator)
    assert_array_equal(gap, fitted.gap_estimator_.decision_function(X))
    # Step 2: the mean of the three smallest gaps of labelled positives.
    assert fitted.boundary_.value == pytest.approx(np.sort(gap[s == 1])[:3].mean())
    # Step 3: by the gap alone; no labelled sample becomes a negative.
    negative = (gap < fitted.boundary_.value) & (s == 0)
    expected = np.where(gap > 0, 1, np.where(negative, 0, -1))
    assert_array_equal(fitted.relabelling_.labels, expected)
    # Step 4: kernel mean matching of the chosen samples to all.
    chosen = expected >= 0
    weights = kernel_mean_matching(X[chosen], X).weights
    assert_allclose(fitted.sample_weight_[chosen], weights)
    assert (fitted.sample_weight_[~chosen] == 0.0).all()
    assert fitted.kmm_.converged
    # Step 5: a weighted support vector machine.
    by_hand = SVC(gamma="auto").fit(X[chosen], expected[chosen], sample_weight=weights)
    decision = fitted.decision_function(X)
    assert_allclose(decision, by_hand.decision_function(X), atol=1e-2)


def test_the_default_is_its_steps(square, square_model):
    X, _, _, s = square
    labelled = s == 1
    fitted = square_model
    gap, estimate = fitted.gap_estimator_, fitted.estimate_
    expected = read(gap.log_odds_, labelled)
    assert fitted.boundary_.rule == "auto"
    assert fitted.boundary_.value == expected.boundary == estimate.boundary
    hidden = expected.hidden_probability(gap.log_odds_)
    share = fitted.relabelling_.positive_share
    assert_array_equal(share, np.where(labelled, 1.0, hidden))
    assert fitted.relabelling_.decided.all()
    assert_array_equal(fitted.sample_weight_, 1.0)
    # The posterior averages what was read off the gap and the final classifier.
    odds = [logit(expected.posterior(gap.log_odds_)), fitted.estimator_.held_out_]
    inside = np.clip(odds, logit(1e-4), -logit(1e-4))
    assert_allclose(fitted.posterior_, expit(inside.mean(axis=0)), atol=1e-12)
    new = [
        expected.posterior(gap._log_odds_at(X)),
        fitted.estimator_.predict_proba(X)[:, 1],
    ]
    mean = expit(logit(np.clip(new, 1e-4, 1 - 1e-4)).mean(axis=0))
    assert_allclose(fitted.predict_proba(X)[:, 1], mean, atol=1e-12)
    assert fitted.estimate_.class_prior == expected.class_prior
    assert fitted.estimate_.class_prior_interval == expected.class_prior_interval


def test_a_known_class_prior_is_kept_and_moves_the_answer(square):
    X, _, _, s = square
    few, many = (
        PGPUClassifier(class_prior=prior, random_state=0, **LIGHT).fit(X, s)
        for prior in (s.mean() + 0.01, (0.7, 0.8))
    )
    assert few.estimate_.class_prior == pytest.approx(s.mean() + 0.01, abs=1e-3)
    assert 0.69 < many.estimate_.class_prior < 0.81
    assert (few.predict(X) == 1).sum() < (many.predict(X) == 1).sum()


@pytest.mark.parametrize("prior", [0.0, 1.0, 1.5, (0.5, 0.2), (0.1, 0.2, 0.3), ()])
def test_what_is_no_class_prior_is_refused(square, prior):
    X, _, _, s = square
    with pytest.raises(ValueError, match=r"class_prior must be a share .* Got"):
        PGPUClassifier(class_prior=prior, **LIGHT).fit(X, s)


def test_a_class_prior_below_the_labelled_share_is_refused(square):
    X, _, _, s = square
    with pytest.raises(ValueError, match=r"class_prior must be at least .* Got 0.01"):
        PGPUClassifier(class_prior=0.01, **LIGHT).fit(X, s)


def test_options_reach_their_stage(square):
    X, _, _, s = square
    settings = {"gap_estimator": LogisticRegression(), "random_state": 0}
    fixed = PGPUClassifier(boundary=-0.6, **settings).fit(X, s)
    assert (fixed.boundary_.value, fixed.boundary_.rule) == (-0.6, "fixed")
    assert_array_equal(
        fixed.relabelling_.labels, relabel(fixed.observed_gap_, s, lower=-0.6).labels
    )
    strong = fixed.set_params(relabelling="theorem").fit(X, s)
    assert strong.relabelling_.decided.all()
    by_chance = fixed.set_params(relabelling="expectation").fit(X, s)
    share = by_chance.relabelling_.positive_share
    assert ((share > 0) & (share < 1)).any()
    assert fixed.kmm_ is None
    assert set(strong.sample_weight_.tolist()) <= {0.0, 1.0}
    matching = KernelMeanMatching(kernel="laplacian", upper=1.5, slack=0.1)
    bounded = PGPUClassifier(boundary=-0.6, reweight=matching, **settings).fit(X, s)
    chosen = bounded.relabelling_.decided
    bounds = {"kernel": "laplacian", "upper": 1.5, "slack": 0.1}
    expected = kernel_mean_matching(X[chosen], X, **bounds)
    assert_array_equal(bounded.sample_weight_[chosen], expected.weights)
    quantile = PGPUClassifier(boundary=Quantile(0.01), **settings)
    gap = quantile.fit(X, s).observed_gap_
    assert quantile.boundary_.value == pytest.approx(np.quantile(gap[s == 1], 0.01))


def test_searches_reach_into_rules_and_weights(square):
    X, _, _, s = square
    model = PGPUClassifier.paper(gap_estimator=LogisticRegression(), random_state=0)
    model.set_params(boundary__n_smallest=2, reweight__gamma=0.5, reweight__upper=9.0)
    fitted = model.fit(X, s)
    gap = np.sort(fitted.observed_gap_[s == 1])
    assert fitted.boundary_.value == pytest.approx(gap[:2].mean())
    assert fitted.kmm_.gamma == 0.5
    model.set_params(boundary=Quantile(0.05))
    grid = {"boundary__quantile": [0.01, 0.1], "reweight__gamma": [0.5, 2.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbgapWarning)
        search = GridSearchCV(model, grid, cv=2).fit(X, s)
    assert set(search.best_params_) == set(grid)
    assert len(search.cv_results_["params"]) == 4


def test_a_gap_estimator_of_ones_own_is_read_too(square):
    X, _, _, s = square
    fitted = PGPUClassifier(gap_estimator=ObservedGapEstimator(), random_state=0)
    fitted.fit(X, s)
    chance = 0.5 * (1.0 + fitted.observed_gap_)
    expected = read(logit(np.clip(chance, 1e-4, 1.0 - 1e-4)), s == 1)
    assert fitted.boundary_.value == expected.boundary


def test_no_positive_gap_keeps_the_labelled_positives(square):
    X, y_true, _, _ = square
    few = np.where(np.random.default_rng(0).random(len(y_true)) < 0.2, y_true, 0)
    with pytest.raises(InvalidInputError, match="letter leaves no positive"):
        PGPUClassifier.paper(random_state=0).fit(X, few)
    with pytest.warns(ProbgapWarning, match="using keep_labelled=True instead"):
        fitted = PGPUClassifier.paper(strict=False, random_state=0).fit(X, few)
    assert fitted.relabelling_.n_positive >= few.sum()


def test_a_fallback_of_the_default_is_a_classifier_all_the_same(rng):
    X = np.ones((30, 2))  # nothing to go by
    s = np.arange(30) < 25
    fitted = PGPUClassifier(boundary=-0.9, random_state=0)
    with pytest.warns(BoundaryWarning), pytest.warns(UnreliableFitWarning):
        fitted.fit(X, s)
    assert fitted.boundary_.fallback is not None
    assert np.isfinite(fitted.predict_proba(rng.normal(size=(5, 2)))).all()


def test_a_class_without_weight_is_learnt_without_weights():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = SVC()
    fit_on_shares(model, X, np.array([1.0, 1.0, 0.0, np.nan]), np.array([1.0, 1, 0, 0]))
    assert_array_equal(model.classes_, [0, 1])
    assert model.shape_fit_ == (3, 1)


def test_posterior_passes_through_what_is_known(square):
    X, _, _, s = square
    fitted = PGPUClassifier(boundary=-0.6, random_state=0, **LIGHT).fit(X, s)
    gap = fitted.observed_gap_
    clearest = np.quantile(gap[s == 1], 0.9)
    expected = np.interp(gap, [-1.0, -0.6, clearest], [0.0, 0.5, 1.0])
    assert_allclose(fitted.posterior_, expected)


def test_decisions_become_probabilities_by_the_best_slope(square):
    X, _, _, s = square
    gap = LogisticRegression()
    fitted = PGPUClassifier(gap_estimator=gap, boundary=-0.6, random_state=0).fit(X, s)
    decision, posterior = fitted.decision_function(X), fitted.posterior_
    odds = logit(fitted.predict_proba(X)[:, 1])
    slope = odds[0] / decision[0]
    assert_allclose(odds, slope * decision)

    def loss(a):
        p = expit(a * decision)
        return -np.mean(posterior * np.log(p) + (1.0 - posterior) * np.log1p(-p))

    assert loss(slope) < min(loss(0.99 * slope), loss(1.01 * slope))


def test_a_classifier_that_decides_nothing_gives_even_probabilities(square):
    class Undecided(LinearSVC):
        def decision_function(self, X):
            return np.zeros(len(X))

    X, _, _, s = square
    stages = {"gap_estimator": LogisticRegression(), "estimator": Undecided()}
    model = PGPUClassifier(boundary=-0.6, random_state=0, **stages)
    assert_array_equal(model.fit(X, s).predict_proba(X), 0.5)


def test_cross_validation_finds_the_best_boundary_and_shows_its_work(square):
    X, _, _, s = square
    grid = [-0.9, -0.7, -0.5]
    fitted = PGPUClassifierCV(boundaries=grid, cv=3, random_state=0).fit(X, s)
    table = fitted.cv_results_
    assert_array_equal(table["boundary"], grid)
    splits = np.array([table[f"split{k}_test_score"] for k in range(3)])
    assert_allclose(table["mean_test_score"], splits.mean(axis=0))
    assert fitted.best_score_ == table["mean_test_score"].max()
    assert fitted.boundary_.value in grid
    assert fitted.boundary_.rule == "cross_validated"
    assert fitted.boundary_.spread >= 0.0


@pytest.mark.parametrize(
    ("scoring", "relabelling"),
    [
        ("observed_accuracy", "corollary"),
        ("observed_accuracy", "theorem"),
        ("observed_accuracy", "expectation"),
        ("lee_liu", "theorem"),
        (lambda _, p: -p.mean(), "corollary"),
    ],
)
def test_sharing_work_changes_no_score(square, scoring, relabelling):
    X, _, _, s = square
    grid = np.array([-0.8, -0.79, -0.6])
    settings = {
        "scoring": scoring,
        "relabelling": relabelling,
        "cv": 2,
        "random_state": 0,
        "gap_estimator": LogisticRegression(),
    }
    together = PGPUClassifierCV(boundaries=grid, **settings).fit(X, s).cv_results_
    for i, value in enumerate(grid):
        alone = PGPUClassifierCV(boundaries=[value], **settings).fit(X, s)
        assert alone.best_score_ == together["mean_test_score"][i]


def test_equally_good_boundaries_give_the_middle_one(square):
    X, _, _, s = square
    fitted = PGPUClassifierCV(
        boundaries=[-0.9, -0.7, -0.5],
        scoring=lambda *_: 1.0,
        cv=2,
        random_state=0,
        **LIGHT,
    ).fit(X, s)
    assert fitted.boundary_.value == -0.7


def test_boundaries_that_leave_no_negatives_are_not_chosen(square):
    X, _, _, s = square
    fitted = PGPUClassifierCV(
        boundaries=[-0.99999999, -0.5],
        cv=2,
        gap_estimator=ObservedGapEstimator(),
        random_state=0,
    ).fit(X, s)
    assert fitted.boundary_.value == -0.5
    assert fitted.cv_results_["mean_test_score"][0] == -np.inf
    assert np.isnan(fitted.cv_results_["std_test_score"][0])


def test_the_papers_grid():
    model = PGPUClassifierCV.paper()
    assert (model.cv, model.keep_labelled) == (5, False)
    assert model.gap_estimator.method == "in_sample"


def test_weights_that_rest_on_a_few_samples_are_pointed_out(rng):
    # One of the chosen stands where most samples are; the other 200 stand elsewhere.
    X = np.concatenate([rng.normal(-9.0, 0.1, 200), [0.0], rng.normal(0.0, 0.3, 999)])
    chosen = np.arange(X.size) <= 200
    with pytest.warns(
        ProbgapWarning, match=r"effective sample size is \d.* out of 201"
    ):
        KernelMeanMatching(gamma=1.0).match(X[:, None], chosen)


@pytest.mark.parametrize(
    "parameters", [{"cv": 3}, {"cv": KFold(4)}, {"reweight": KernelMeanMatching()}]
)
def test_parameters_of_the_steps_change_the_default(square, square_model, parameters):
    X, _, _, s = square
    usual = square_model
    other = PGPUClassifier(random_state=0, **parameters).fit(X, s)
    assert not np.array_equal(other.decision_function(X), usual.decision_function(X))
    if "cv" in parameters:
        assert not np.array_equal(other.observed_gap_, usual.observed_gap_)
    else:
        assert other.relabelling_.n_undecided > 0
        assert other.kmm_.converged


@pytest.mark.parametrize("cv", [10_000, ShuffleSplit(3)])
def test_folds_that_cannot_hold_out_each_sample_once_are_refused(square, cv):
    X, _, _, s = square
    with pytest.raises(InvalidInputError):
        PGPUClassifier(cv=cv).fit(X, s)
