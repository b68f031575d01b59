import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import ShuffleSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

from probgap._core.kernels import scale_gamma
from probgap.datasets import hide_labels, make_square
from probgap.gap import LabellingModel, _product
from probgap.gap._product import RatePrior, fit_product


@parametrize_with_checks([LabellingModel()])
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


def test_the_gradient_is_the_gradient(rng, monkeypatch):
    caught = {}

    def catch(loss, start, **_):
        caught["loss"] = loss
        caught["start"] = start
        raise StopIteration

    monkeypatch.setattr(_product, "minimize", catch)
    features, labelled = rng.normal(size=(50, 4)), rng.random(50) < 0.4
    with pytest.raises(StopIteration):
        fit_product(features, labelled, C=3.0, prior=RatePrior(0.4, 0.2, 0.5))
    loss = caught["loss"]
    for _ in range(5):
        at = rng.normal(size=6)
        error = check_grad(lambda v: loss(v)[0], lambda v: loss(v)[1], at)
        assert error < 1e-4


def test_with_every_positive_labelled_it_is_logistic_regression(rng):
    features = rng.normal(size=(400, 3))
    labelled = rng.random(400) < expit(features @ [1.0, -2.0, 0.5] + 0.3)
    # A rate of expit(30), sloping nowhere, is 1.
    fitted = fit_product(features, labelled, C=2.0, prior=RatePrior(0.0, 30.0, 1e-3))
    peer = LogisticRegression(C=2.0, tol=1e-8).fit(features, labelled)
    assert_allclose(fitted.coef, peer.coef_[0], atol=1e-3)
    assert fitted.intercept == pytest.approx(peer.intercept_[0], abs=1e-3)
    assert fitted.converged


def test_the_truth_is_recovered_when_the_rate_is_known(rng):
    features = rng.normal(size=(20000, 2))
    score = features @ [2.0, -1.0] + 0.5
    chance = expit(score) * expit(-0.5 + 0.6 * score)
    labelled = rng.random(20000) < chance
    fitted = fit_product(features, labelled, C=1e6, prior=RatePrior(0.6, -0.5, 0.01))
    assert_allclose(fitted.coef, [2.0, -1.0], atol=0.2)
    assert fitted.intercept == pytest.approx(0.5, abs=0.2)
    assert_allclose(fitted.score(features), features @ fitted.coef + fitted.intercept)


def test_gap_posterior_and_boundary_agree_with_one_another(square):
    X, y_true, _, s = square
    model = LabellingModel(random_state=0).fit(X, s)
    assert -1.0 < model.boundary_ < 0.0
    assert_array_equal(model.observed_gap_ > model.boundary_, model.posterior_ > 0.5)
    # A labelled sample is positive: P(s=1 | x) never exceeds P(Y=1 | x).
    assert (0.5 * (1.0 + model.observed_gap_) <= model.posterior_ + 1e-12).all()
    assert ((model.posterior_ > 0.5) == (y_true == 1)).mean() > 0.95
    assert model.boundary_spread_ >= 0.0
    new = model.predict_posterior(X[:7])
    assert new.shape == (7,)
    assert ((new > 0.5) == (model.decision_function(X[:7]) > model.boundary_)).all()


def test_overlap_is_noticed(rng):
    X = rng.normal(size=(400, 2))
    apart = (X[:, 0] > 0).astype(int)
    mixed = (rng.random(400) < expit(1.5 * X[:, 0])).astype(int)
    assert LabellingModel(random_state=0).fit(X, apart).separability_ > 0.5
    assert LabellingModel(random_state=0).fit(X, mixed).separability_ < 0.3


def test_fewer_labels_lower_the_ceiling_and_the_boundary(square, rng):
    X, y_true, _, _ = square
    few = (y_true == 1) & (rng.random(len(y_true)) < 0.2)
    many = LabellingModel(random_state=0).fit(X, y_true)
    sparse = LabellingModel(random_state=0).fit(X, few)
    assert sparse.ceiling_ < 0.5 < many.ceiling_
    assert sparse.boundary_ < many.boundary_


def test_in_sample_scores_are_those_of_the_fitted_model(square):
    X, _, _, s = square
    model = LabellingModel(method="in_sample", random_state=0).fit(X, s)
    assert_allclose(model.observed_gap_, model.decision_function(X), atol=1e-10)
    assert_allclose(model.posterior_, model.predict_posterior(X), atol=1e-10)


def test_same_seed_same_bits_whatever_n_jobs(square):
    X, _, _, s = square
    model = LabellingModel(n_components=50, random_state=3)
    first = clone(model).fit(X, s).observed_gap_
    assert_array_equal(first, clone(model).set_params(n_jobs=2).fit(X, s).observed_gap_)


def test_a_fit_cut_short_is_said_aloud(square, monkeypatch):
    X, _, _, s = square
    monkeypatch.setattr(_product, "_MAX_ITER", 2)
    with pytest.warns(ConvergenceWarning, match=r"after 2 iterations .* smaller C"):
        model = LabellingModel(random_state=0).fit(X, s)
    assert not model.converged_


def test_folds_must_be_a_partition(square):
    X, _, _, s = square
    with pytest.raises(ValueError, match=r"cv must hold out every sample exactly once"):
        LabellingModel(cv=ShuffleSplit(3, random_state=0)).fit(X, s)


def test_spread_is_of_the_size_of_what_other_samples_would_give():
    def fit(seed):
        X, y, posterior = make_square(400, random_state=seed)
        gap = 2.0 * posterior - 1.0
        s = hide_labels(X, y, gap, ("linear", 0.6), random_state=seed + 100)
        return LabellingModel(random_state=0).fit(X, s)

    models = [fit(seed) for seed in range(12)]
    truth = np.std([model.boundary_ for model in models])
    said = np.mean([model.boundary_spread_ for model in models])
    assert truth / 4 < said < 4 * truth


def test_width_is_scikit_learns_scale(rng):
    X = rng.normal(size=(30, 4))
    assert scale_gamma(X) == pytest.approx(1.0 / (4 * X.var()))
    assert scale_gamma(sp.csr_array(X)) == pytest.approx(1.0 / (4 * X.var()))
    assert scale_gamma(X + 1e7) == pytest.approx(scale_gamma(X), rel=1e-6)
    assert scale_gamma(np.ones((3, 2))) == 1.0
    given_width = LabellingModel(gamma=0.7, random_state=0).fit(X, np.arange(30) % 2)
    basis = given_width.feature_map_
    approximated = basis.transform(X) @ basis.transform(X).T
    assert_allclose(approximated, rbf_kernel(X, gamma=0.7), atol=1e-6)
