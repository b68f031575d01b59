"""Other methods in the benchmark of the default, fitted without any tuning: see default.py.

Each has ``posterior_``, the posterior of training rows by models that were fitted without
them, except the paper's algorithm, which has none. "same learners, clean" is fitted to true
labels: what the default's learners can do where nothing is hidden.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from probgap import PGPUClassifier
from probgap._core.mixture import MixedClassifier


class NaiveForest(ExtraTreesClassifier):
    """Trees that take unlabelled rows as negative, with out-of-bag posteriors."""

    def fit(self, X, s):
        """Fit the trees."""
        super().fit(X, s)
        self.posterior_ = np.nan_to_num(self.oob_decision_function_[:, 1])
        return self


class OutOfFold(ClassifierMixin, BaseEstimator):
    """A classifier of labelled against unlabelled, with out-of-fold posteriors.

    As PGlin (Gerych et al., AAAI 2022) it takes the rate of labelling to be linear in the
    posterior, so that P(s=1 | x) = max P(s=1) P(y=1 | x)^2, which is solved for P(y=1 | x).
    Otherwise the posterior is taken to be the probability of a label.
    """

    def __init__(self, estimator, seed, *, pg_lin=False):
        self.estimator, self.seed, self.pg_lin = estimator, seed, pg_lin

    def fit(self, X, s):
        """Fit the classifier, and one for each fold."""
        n_folds = min(5, np.count_nonzero(s))
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=self.seed)
        held_out = cross_val_predict(
            self.estimator, X, s, cv=folds, method="predict_proba"
        )[:, 1]
        self.classes_, self.fitted_ = np.unique(s), clone(self.estimator).fit(X, s)
        self.highest_ = self.fitted_.predict_proba(X)[:, 1].max()
        self.posterior_ = self._posterior(held_out, held_out.max())
        return self

    def _posterior(self, chance, highest):
        return np.sqrt(np.minimum(chance / highest, 1.0)) if self.pg_lin else chance

    def predict_proba(self, X):
        """Return the posterior of both classes."""
        chance = self.fitted_.predict_proba(X)[:, 1]
        posterior = self._posterior(chance, self.highest_)
        return np.column_stack([1.0 - posterior, posterior])

    def predict(self, X):
        """Return 1 or 0."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)


class BaggedTrees(OutOfFold):
    """PU bagging (Mordelet and Vert): trees of the labelled and as many unlabelled."""

    def __init__(self, seed, n_trees=100):
        self.seed, self.n_trees = seed, n_trees

    def fit(self, X, s):
        """Fit the trees; a row's posterior is that of trees without it."""
        rng = np.random.default_rng(self.seed)
        known, other = np.flatnonzero(s == 1), np.flatnonzero(s != 1)
        self.classes_, self.trees_ = np.unique(s), []
        votes, counts = np.zeros(s.size), np.zeros(s.size)
        for _ in range(self.n_trees):
            drawn = rng.choice(other, min(known.size, other.size))
            rows = np.append(known, drawn)
            tree = DecisionTreeClassifier(random_state=int(rng.integers(2**31)))
            self.trees_.append(tree.fit(X[rows], s[rows]))
            out = np.setdiff1d(other, drawn)
            votes[out] += tree.predict_proba(X[out])[:, 1]
            counts[out] += 1
        seen = self.predict_proba(X)[:, 1]  # of labelled rows, which all trees have
        self.posterior_ = np.where(counts > 0, votes / np.maximum(counts, 1), seen)
        return self

    def predict_proba(self, X):
        """Return the mean vote for both classes."""
        return np.mean([tree.predict_proba(X) for tree in self.trees_], axis=0)


def naive_forest(seed):
    settings = {"min_samples_leaf": 3, "bootstrap": True, "oob_score": True}
    return NaiveForest(300, random_state=seed, **settings)


def naive_boosting(seed):
    return OutOfFold(HistGradientBoostingClassifier(random_state=seed), seed)


def pg_lin(seed):
    features = Nystroem(n_components=300, random_state=seed)
    model = make_pipeline(features, LogisticRegression(C=10.0, max_iter=1000))
    return OutOfFold(model, seed, pg_lin=True)


OTHERS = {
    "naive ExtraTrees": naive_forest,
    "naive boosting": naive_boosting,
    "PU bagging": BaggedTrees,
    "PGlin": pg_lin,
    "paper": lambda seed: PGPUClassifier.paper(random_state=seed),
    "same learners, clean": lambda seed: MixedClassifier(random_state=seed),
}
