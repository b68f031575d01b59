"""Unbiased and non-negative estimates of the risk, and a classifier that minimises them."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from probgap._core._sklearn import Interval, StrOptions
from probgap._core.checks import ObservedLabels, check_predict_input
from probgap._core.errors import warn
from probgap._core.kernels import KernelFeatures, default_n_landmarks, scale_gamma
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, one_thread
from probgap._core.types import Matrix, Vector
from probgap.methods.base import PriorMethod

Loss = Literal["logistic", "sigmoid"]

# Most bisection steps for the factor of the negative part.
_HALVINGS = 40
# Share of the tolerance at which L-BFGS stops: the bisection needs more precise solutions
# than the result.
_SHARPER = 1e-4


class RiskTerms(NamedTuple):
    """The two parts of a risk, and their derivatives by the scores."""

    positive: float
    negative: float
    positive_slope: Vector
    negative_slope: Vector


def risk_terms(score: Vector, cost: Vector, loss: Loss) -> RiskTerms:
    r"""Return the parts of the risk of positives and of negatives.

    With ``cost`` the weight of each sample as a positive, 0 if unlabelled, they are the
    sums of cost * loss(g), and of (1/n - cost) * loss(-g).
    """
    chance: Vector = expit(score)
    if loss == "logistic":
        as_positive, as_negative = -log_expit(score), -log_expit(-score)
        slopes = chance - 1.0, chance
    else:
        as_positive, as_negative = 1.0 - chance, chance
        slopes = -chance * (1.0 - chance), chance * (1.0 - chance)
    rest = 1.0 / score.size - cost
    return RiskTerms(
        float(cost @ as_positive),
        float(rest @ as_negative),
        cost * slopes[0],
        rest * slopes[1],
    )


class RiskFit(NamedTuple):
    """A linear model of least positive + kept * negative risk, and the risk there.

    ``kept`` is 1 where the negative part is above 0, less where its lower bound of 0 is
    active.
    """

    coef: Vector  # the intercept is the last
    kept: float
    objective: float
    negative: float
    converged: bool
    n_iter: int


def minimise_risk(
    features: Matrix,
    cost: Vector,
    alpha: float,
    *,
    loss: Loss = "logistic",
    non_negative: bool = True,
    max_iter: int = 1000,
    tol: float = 1e-5,
) -> RiskFit:
    """Minimise the risk of a linear model plus alpha / 2 times its squared coefficients.

    With ``non_negative`` the risk is positive + max(0, negative). That is the larger of two
    smooth functions, positive and positive + negative, so its minimiser is that of positive
    + kept * negative for some factor in [0, 1]: 1 if the negative part is above 0 then,
    otherwise the factor at which it is 0, found by bisection. The logistic loss makes all
    of these convex, the sigmoid loss does not: there the minimum is a local one.
    """
    n_iter = 0

    def solve(kept: float, start: Vector) -> RiskFit:
        nonlocal n_iter

        def penalised(parameters: Vector) -> tuple[float, Vector]:
            coef = parameters[:-1]
            terms = risk_terms(features @ coef + parameters[-1], cost, loss)
            slope = terms.positive_slope + kept * terms.negative_slope
            value = terms.positive + kept * terms.negative
            value += 0.5 * alpha * float(coef @ coef)
            return value, np.append(features.T @ slope + alpha * coef, slope.sum())

        options = {"maxiter": max_iter - n_iter, "gtol": _SHARPER * tol, "ftol": 0.0}
        found = minimize(penalised, start, jac=True, method="L-BFGS-B", options=options)
        n_iter += int(found.nit)
        coef = found.x[:-1]
        terms = risk_terms(features @ coef + found.x[-1], cost, loss)
        negative = max(terms.negative, 0.0) if non_negative else terms.negative
        objective = terms.positive + negative + 0.5 * alpha * float(coef @ coef)
        stationary = bool(np.abs(found.jac).max() <= tol)
        return RiskFit(found.x, kept, objective, terms.negative, stationary, n_iter)

    best = solve(1.0, np.zeros(features.shape[1] + 1))
    converged = best.converged
    if non_negative and best.negative < 0.0:
        # Each solution starts from the last with a negative part below 0: at the other
        # end the sigmoid loss may have left all scores where it is flat.
        low, high, start, converged = 0.0, 1.0, best.coef, False
        for _ in range(_HALVINGS):
            if n_iter >= max_iter or converged:
                break
            found = solve(0.5 * (low + high), start)
            solved = found.converged and abs(found.negative) <= tol
            converged = solved and found.objective <= best.objective + tol
            if converged or found.objective < best.objective:
                best = found
            if found.negative > 0.0:
                low = found.kept
            else:
                high, start = found.kept, found.coef
    return best._replace(converged=converged, n_iter=n_iter)


@dataclass(eq=False, repr=False)
class NNPUClassifier(PriorMethod):
    r"""Minimise an estimate of the risk on true labels, not below 0.

    With g the score, pi the class prior and the loss l, the risk of a classifier is

    .. math::
        \pi E_+ l(g(x)) + [E \, l(-g(x)) - \pi E_+ l(-g(x))],

    where the second part is the risk of negatives. ``risk="upu"`` minimises the average
    over the samples [1]_; ``"nnpu"`` replaces a negative second part by 0, since no risk is
    below 0 [2]_. E is over *all* samples, since the labelled ones come from the same table;
    in the papers they are a sample apart, and E is over the unlabelled ones.

    It assumes that labels are missing at random, and it is only as good as the class prior:
    if that is a little too high, the bound is active, and far too many samples are predicted
    positive. If easy positives were labelled first, the hard ones are learnt as negatives.

    Parameters
    ----------
    class_prior : float, default=None
        Share of all samples that are positive, labelled or not. ``None`` estimates it by
        :func:`probgap.reading.read` from held-out scores of ``gap_estimator``.
    risk : {"nnpu", "upu"}, default="nnpu"
        Whether the estimated risk of negatives is bounded below by 0.
    loss : {"logistic", "sigmoid"}, default="logistic"
        l(z) = log(1 + exp(-z)), which gives probabilities, or 1 / (1 + exp(z)), which is
        more robust to outliers, and may end in a local minimum.
    kernel : {"rbf", "linear"}, default="rbf"
        Whether g is linear in Nystroem features of the RBF kernel, or in the columns. These
        are scaled to unit variance first and, if dense, centred.
    gamma : float, default=None
        Width of the kernel, in scaled columns. ``None`` takes 1 / n_features.
    n_components : int, default=None
        Number of landmarks of the kernel. ``None`` takes a multiple of the root of the
        number of samples.
    alpha : float, default=3e-3
        Factor of the squared coefficients, which are added to the risk.
    max_iter : int, default=2000
        Most steps of L-BFGS in all.
    tol : float, default=1e-5
        Largest entry of the gradient at the solution, and of a risk of negatives held at 0.
    gap_estimator : classifier with decision_function or predict_proba, default=None
        Scores samples for the class prior. ``None`` takes an RBF SVM.
    pos_label, random_state, n_jobs : object
        As in :class:`PUSBClassifier`.

    Attributes
    ----------
    class_prior_, estimate_ : float, HiddenEstimate or None
        As in :class:`PUSBClassifier`.
    objective_ : float
        The risk, with its penalty, at the solution.
    kept_ : float
        Factor of the gradient of the negatives' risk at the solution: 1 for uPU, and where
        the bound of 0 is not active.
    n_iter_, converged_ : int, bool
        Steps of L-BFGS, and whether the solution meets ``tol``.
    coef_, intercept_ : ndarray of shape (n_components,), float
        Coefficients and intercept of g in the features.
    scaler_, feature_map_ : StandardScaler, object or None
        Map samples to features.

    References
    ----------
    .. [1] du Plessis, Niu, Sugiyama, "Convex Formulation for Learning from Positive and
       Unlabeled Data", ICML 2015.
    .. [2] Kiryo, Niu, du Plessis, Sugiyama, "Positive-Unlabeled Learning with Non-Negative
       Risk Estimator", NIPS 2017. They take stochastic steps.

    Examples
    --------
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.methods import NNPUClassifier
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("constant", 0.5), random_state=1)
    >>> model = NNPUClassifier(class_prior=0.44, random_state=0).fit(X, s)
    >>> bool(model.score(X, y_true) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PriorMethod._parameter_constraints,
        "risk": [StrOptions({"nnpu", "upu"})],
        "loss": [StrOptions({"logistic", "sigmoid"})],
        "kernel": [StrOptions({"rbf", "linear"})],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "alpha": [Interval(Real, 0, None, closed="neither")],
    }

    class_prior: float | None = None
    _: KW_ONLY
    risk: Literal["nnpu", "upu"] = "nnpu"
    loss: Loss = "logistic"
    kernel: Literal["rbf", "linear"] = "rbf"
    gamma: float | None = None
    n_components: int | None = None
    alpha: float = 3e-3
    max_iter: int = 2000
    tol: float = 1e-5
    gap_estimator: Any = None
    pos_label: object = None
    random_state: RandomStateLike = None
    n_jobs: int | None = None

    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        scale_gamma(samples)  # raises if squares would overflow
        labelled = labels.labelled
        self._find_prior(labelled, lambda: self._held_out_scores(samples, labels, rng))
        cost = np.where(labelled, self.class_prior_ / labelled.sum(), 0.0)
        self._minimise(samples, cost, rng)

    def _fit_costs(self, samples: Matrix, cost: Vector) -> Self:
        """Fit to the weight of each sample as a positive, in place of labels and prior."""
        self.classes_, self.n_features_in_ = np.array([0, 1]), samples.shape[1]
        self.class_prior_, self.estimate_ = float(cost.sum()), None
        self._minimise(samples, cost, as_generator(self.random_state))
        return self

    def _minimise(self, samples: Matrix, cost: Vector, rng: Generator) -> None:
        self.scaler_ = StandardScaler(with_mean=not issparse(samples)).fit(samples)
        scaled = self.scaler_.transform(samples)
        self.feature_map_, features = None, scaled
        with one_thread():
            if self.kernel == "rbf":
                few = self.n_components or default_n_landmarks(samples.shape[0])
                gamma = self.gamma or 1.0 / samples.shape[1]
                seed = draw_seed(rng)
                self.feature_map_ = KernelFeatures.fit(scaled, few, gamma, seed)
                features = self.feature_map_.transform(scaled).astype(np.float64)
            found = minimise_risk(
                features,
                cost,
                self.alpha,
                loss=self.loss,
                non_negative=self.risk == "nnpu",
                max_iter=self.max_iter,
                tol=self.tol,
            )
        self.coef_, self.intercept_ = found.coef[:-1], float(found.coef[-1])
        self.objective_, self.kept_ = found.objective, found.kept
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        if not found.converged:
            what = f"The risk had not converged after {found.n_iter} steps."
            what += " Raise max_iter, alpha or tol."
            warn(what, ConvergenceWarning)

    def _gives_probabilities(self) -> bool:
        return self.loss == "logistic"

    def _chance(self, X: Matrix) -> Vector:
        return expit(self._decide(X))

    def _decide(self, X: Matrix) -> Vector:
        samples = check_predict_input(self, X)
        scaled = self.scaler_.transform(samples)
        if self.feature_map_ is None:
            return np.asarray(scaled @ self.coef_, dtype=np.float64) + self.intercept_
        with one_thread():
            score = self.feature_map_.score(scaled, self.coef_, np.float64)
        return score + self.intercept_
