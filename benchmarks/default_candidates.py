"""Candidates for the default that were measured and not taken: see docs/research/default.md.

    PROBGAP_DATA=folder python benchmarks/default.py --also benchmarks/default_candidates.py

Each is the default with one thing done otherwise, or a rule of its own. All see only
observed labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from probgap import PGPUClassifier
from probgap.diagnostics import scar_test
from probgap.exceptions import InvalidInputError
from probgap.relabel import relabel_in_expectation

_last = {}


def default_fit(X, s, seed):
    """Fit the default once for all candidates that begin with it."""
    key = (X.tobytes(), s.tobytes(), seed)
    if _last.get("key") != key:
        _last["key"] = key
        _last["model"] = PGPUClassifier(random_state=seed).fit(X, s)
    return _last["model"]


def machine_on(X, share, C=1.0, seed=0, weight=None, gamma="scale"):
    """Fit a support vector machine to shares of positive."""
    n = share.size
    weight = np.ones(n) if weight is None else weight
    both = np.concatenate([share * weight, (1.0 - share) * weight])
    used = both > 0.02
    rows = np.concatenate([np.arange(n), np.arange(n)])[used]
    side = np.repeat([1, 0], n)[used]
    if np.unique(side).size < 2:
        return Constant(side[0])
    machine = SVC(C=C, gamma=gamma, random_state=seed)
    return machine.fit(X[rows], side, sample_weight=both[used])


class Constant:
    """Say the same of all."""

    def __init__(self, value):
        self.value = value

    def predict(self, X):
        """Give 1 or 0."""
        return np.full(len(X), self.value)

    def decision_function(self, X):
        """Give the side."""
        return np.full(len(X), 2.0 * self.value - 1.0)


class Candidate:
    """Fit and predict, from a function that fits."""

    def __init__(self, fit, seed):
        self.function, self.seed = fit, seed

    def fit(self, X, s):
        """Fit."""
        self.predictor_ = self.function(X, s, self.seed)
        return self

    def predict(self, X):
        """Give 1 or 0."""
        return np.asarray(self.predictor_(X)).astype(np.int64)


def plain_score(X, s, seed):
    """P(s|x) as METHOD.md has it: kernel logistic and a forest, held out, in log-odds."""
    few = int(min(5, s.sum(), (1 - s).sum()))
    folds = StratifiedKFold(max(2, few), shuffle=True, random_state=seed)
    logistic = make_pipeline(
        Nystroem(
            n_components=min(300, len(X) // 2),
            gamma=1.0 / (X.shape[1] * X.var()),
            random_state=seed,
        ),
        LogisticRegression(C=10.0, max_iter=300),
    )
    kernels = cross_val_predict(logistic, X, s, cv=folds, method="predict_proba")[:, 1]
    forest = RandomForestClassifier(
        200, min_samples_leaf=3, oob_score=True, random_state=seed
    )
    trees = forest.fit(X, s).oob_decision_function_[:, 1]
    trees = np.where(np.isfinite(trees), trees, s.mean())
    return expit(0.5 * sum(logit(np.clip(p, 1e-3, 1 - 1e-3)) for p in (kernels, trees)))


def recipe(X, s, seed, *, exponent=None):
    """METHOD.md, point 6, as it stands; or with another bias exponent."""
    chance = plain_score(X, s, seed)
    known = s == 1
    ceiling = np.quantile(chance[known], 0.8)
    floor = min(np.quantile(chance[~known], 0.25), ceiling / 2)
    k = 1.0 - ceiling if exponent is None else exponent(X, s, seed, ceiling)
    eta = np.clip((chance - floor) / (ceiling - floor), 0.0, 1.0) ** (1 / (1 + k))
    positive = eta >= 0.5
    rate = ceiling * eta**k
    hidden = eta * (1 - rate) / np.maximum(1 - eta * rate, 1e-9)
    relabelled = ~known & positive & (hidden > 0.5)
    t = min(1.0, (known & ~positive).sum() / max(1, (~known & positive).sum()))
    rows = np.concatenate(
        [
            np.flatnonzero(known),
            np.flatnonzero(relabelled),
            np.flatnonzero(~known & ~positive),
            np.flatnonzero(~known & positive),
        ]
    )
    side = np.concatenate(
        [
            np.ones(known.sum()),
            np.ones(relabelled.sum()),
            np.zeros((~known & ~positive).sum()),
            np.zeros((~known & positive).sum()),
        ]
    )
    weight = np.ones(rows.size)
    weight[rows.size - (~known & positive).sum() :] = t
    used = weight > 1e-6
    if np.unique(side[used]).size < 2:
        return Constant(1).predict
    return (
        SVC(random_state=seed)
        .fit(X[rows[used]], side[used], sample_weight=weight[used])
        .predict
    )


def by_test(X, s, seed, ceiling):
    """No bias where labels seem to fall at random."""
    try:
        test = scar_test(X, s == 1, n_resamples=39, max_rows=600, random_state=seed)
    except InvalidInputError:
        return 1.0 - ceiling
    return 1.0 - ceiling if test.p_value <= 0.05 else 0.0


def isotonic_rate(X, s, seed):
    """EM for a monotone labelling rate of the posterior: P(s|x) = eta * rate(eta)."""
    model = default_fit(X, s, seed)
    known = s == 1
    chance = 0.5 * (1 + model.observed_gap_)
    eta = model.gap_estimator_.posterior_.copy()
    for _ in range(20):
        hidden = np.where(
            known, 1.0, np.clip((eta - chance) / np.maximum(1 - chance, 1e-9), 0, 1)
        )
        rate = IsotonicRegression(y_min=0.01, y_max=1.0, out_of_bounds="clip")
        # Of the positives (each by its chance to be one), who is labelled.
        rate = rate.fit(
            chance, known / np.maximum(hidden, 1e-9), sample_weight=hidden + 1e-9
        ).predict(chance)
        eta = np.clip(chance / rate, 0, 1)
    boundary = np.clip(eta, 0, 1)
    share = relabel_in_expectation(
        model.observed_gap_, known, boundary, hardness=model.boundary_.separability
    ).positive_share
    return machine_on(X, share, C=model.estimator_.C, seed=seed).predict


def prior_quantile(X, s, seed):
    """Elkan and Noto's prior, and as many of the highest scores are positive."""
    model = default_fit(X, s, seed)
    known = s == 1
    chance = 0.5 * (1 + model.observed_gap_)
    prior = min(1.0, known.mean() / chance[known].mean())
    threshold = np.quantile(chance, 1 - prior)
    share = np.where(known | (chance > threshold), 1.0, 0.0)
    return machine_on(X, share, C=model.estimator_.C, seed=seed).predict


def grid_by(criterion):
    """Boundaries on a grid; the best by a criterion on held-out observed labels."""

    def fit(X, s, seed):
        model = default_fit(X, s, seed)
        known = s == 1
        score = logit(np.clip(model.gap_estimator_.posterior_, 1e-6, 1 - 1e-6))
        best = None
        for shift in np.linspace(-2, 2, 9):
            called = score > shift
            recall, share = called[known].mean(), called.mean()
            value = criterion(
                Called(recall, share, called[~known].mean(), known.mean())
            )
            if best is None or value > best[0]:
                best = value, shift
        eta = expit(score - best[1])
        share = relabel_in_expectation(
            model.observed_gap_, known, eta, hardness=model.boundary_.separability
        ).positive_share
        return machine_on(X, share, C=model.estimator_.C, seed=seed).predict

    return fit


@dataclass(frozen=True)
class Called:
    """Shares called positive: of labelled, all and unlabelled samples; and labelled."""

    recall: float
    share: float
    of_unlabelled: float
    known: float


def lee_liu(called):
    """Give Lee and Liu's criterion: recall squared by the share called positive."""
    return called.recall**2 / max(called.share, 1e-9)


def knee(called):
    """Give recall less the unlabelled called positive: the knee of the curve (Youden)."""
    return called.recall - called.of_unlabelled


def pu_risk(called):
    """Give the zero-one PU risk, negative; half of the unlabelled called are positive."""
    prior = called.known + 0.5 * max(0.0, called.share - called.known)
    false = max(0.0, called.share - prior * called.recall)
    return -(prior * (1.0 - called.recall) + false)


def second_pass(rounds):
    """Estimate the posterior again from the shares, held out; relabel; once or more."""

    def fit(X, s, seed):
        model = default_fit(X, s, seed)
        known, gap = s == 1, model.observed_gap_
        share = model.relabelling_.positive_share
        n = len(X)
        features = Nystroem(
            n_components=min(300, n // 2),
            gamma=1.0 / (X.shape[1] * X.var()),
            random_state=seed,
        ).fit_transform(X)
        folds = np.random.default_rng(seed).integers(5, size=n)
        for _ in range(rounds):
            eta = np.empty(n)
            for k in range(5):
                train, test = folds != k, folds == k
                w = np.concatenate([share[train], 1 - share[train]])
                side = np.repeat([1, 0], train.sum())
                if min(w[side == 1].sum(), w[side == 0].sum()) <= 0:
                    eta[test] = share[test]
                    continue
                F = np.vstack([features[train]] * 2)
                lr = LogisticRegression(C=10.0, max_iter=200).fit(
                    F, side, sample_weight=w
                )
                eta[test] = lr.predict_proba(features[test])[:, 1]
            share = relabel_in_expectation(
                gap, known, eta, hardness=model.boundary_.separability
            ).positive_share
        return machine_on(X, share, C=model.estimator_.C, seed=seed).predict

    return fit


def spreading(X, s, seed):
    """Spread labels from decided samples to the undecided ones, those near even odds."""
    model = default_fit(X, s, seed)
    eta = model.gap_estimator_.posterior_
    known = s == 1
    seed_labels = np.where(known | (eta > 0.8), 1, np.where(eta < 0.2, 0, -1))
    if not {0, 1} <= set(seed_labels):
        return model.predict
    spread = LabelSpreading(kernel="knn", n_neighbors=10, max_iter=100).fit(
        X, seed_labels
    )
    share = model.relabelling_.positive_share.copy()
    undecided = seed_labels == -1
    share[undecided] = np.nan_to_num(
        spread.label_distributions_[undecided][:, 1], nan=0.5
    )
    return machine_on(X, share, C=model.estimator_.C, seed=seed).predict


def self_training(X, s, seed):
    """Leave the undecided out, then take the machine's word for them."""
    model = default_fit(X, s, seed)
    eta = model.gap_estimator_.posterior_
    known = s == 1
    share = model.relabelling_.positive_share.copy()
    decided = known | (eta > 0.8) | (eta < 0.2)
    C = model.estimator_.C
    if np.unique(share[decided] > 0.5).size < 2:
        return model.predict
    first = machine_on(X[decided], share[decided], C=C, seed=seed)
    share[~decided] = first.predict(X[~decided])
    return machine_on(X, share, C=C, seed=seed).predict


def bagged(X, s, seed):
    """Fifteen machines on bootstrap resamples of the relabelled, their mean decision."""
    model = default_fit(X, s, seed)
    share, rng = model.relabelling_.positive_share, np.random.default_rng(seed)
    machines = []
    for _ in range(15):
        rows = rng.integers(len(X), size=len(X))
        machines.append(
            machine_on(X[rows], share[rows], C=model.estimator_.C, seed=seed)
        )
    return lambda Z: np.mean([m.decision_function(Z) for m in machines], axis=0) > 0


def posterior_alone(X, s, seed):
    """No machine at the end: the labelling model's posterior decides."""
    model = default_fit(X, s, seed)
    return lambda Z: model.gap_estimator_.predict_posterior(Z) > 0.5


def posterior_and_machine(X, s, seed):
    """Mean of log-odds of the machine and of the labelling model."""
    model = default_fit(X, s, seed)

    def predict(Z):
        first = logit(np.clip(model.predict_proba(Z)[:, 1], 1e-6, 1 - 1e-6))
        return (
            first
            + logit(np.clip(model.gap_estimator_.predict_posterior(Z), 1e-6, 1 - 1e-6))
            > 0
        )

    return predict


def width(factor):
    """Another width of the final kernel."""

    def fit(X, s, seed):
        model = default_fit(X, s, seed)
        gamma = factor / (X.shape[1] * X.var())
        share = model.relabelling_.positive_share
        return machine_on(
            X, share, C=model.estimator_.C, seed=seed, gamma=gamma
        ).predict

    return fit


def free_C(C):
    """C fixed."""

    def fit(X, s, seed):
        model = default_fit(X, s, seed)
        return machine_on(X, model.relabelling_.positive_share, C=C, seed=seed).predict

    return fit


def forest_of_shares(X, s, seed):
    """Average the machine with a forest on the same shares."""
    model = default_fit(X, s, seed)
    share = model.relabelling_.positive_share
    n = len(X)
    rows, w = np.tile(np.arange(n), 2), np.concatenate([share, 1 - share])
    used = w > 0.02
    side = np.repeat([1, 0], n)[used]
    if np.unique(side).size < 2:
        return model.predict
    forest = ExtraTreesClassifier(100, min_samples_leaf=3, random_state=seed, n_jobs=1)
    forest.fit(X[rows[used]], side, sample_weight=w[used])

    def predict(Z):
        first = logit(np.clip(model.predict_proba(Z)[:, 1], 1e-3, 1 - 1e-3))
        return first + logit(np.clip(forest.predict_proba(Z)[:, 1], 1e-3, 1 - 1e-3)) > 0

    return predict


FUNCTIONS = {
    "recipe": recipe,
    "recipe, k by test": lambda X, s, seed: recipe(X, s, seed, exponent=by_test),
    "recipe, k = 0": lambda X, s, seed: recipe(X, s, seed, exponent=lambda *_: 0.0),
    "isotonic rate": isotonic_rate,
    "prior, quantile": prior_quantile,
    "by Lee-Liu": grid_by(lee_liu),
    "by knee": grid_by(knee),
    "by PU risk": grid_by(pu_risk),
    "second pass": second_pass(1),
    "five passes": second_pass(5),
    "label spreading": spreading,
    "self-training": self_training,
    "bagged machine": bagged,
    "no machine": posterior_alone,
    "machine and model": posterior_and_machine,
    "machine and forest": forest_of_shares,
    "gamma / 2": width(0.5),
    "gamma * 2": width(2.0),
    "C = 1": free_C(1.0),
    "C = 10": free_C(10.0),
}


def _maker(function):
    return lambda seed: Candidate(function, seed)


METHODS = {name: _maker(function) for name, function in FUNCTIONS.items()}
