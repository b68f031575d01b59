"""Estimate the class prior: checks, dispatch to a method, and the result."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from probgap._core.checks import check_labelled, check_scores, in_double
from probgap._core.errors import refuse, warn
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, one_thread
from probgap._core.types import Mask, Matrix, Vector
from probgap.gap import MixedGapEstimator
from probgap.priors import _from_features, _from_scores
from probgap.priors._result import ClassPrior, FoundPrior
from probgap.reading.network import calibrated_log_odds

FROM_SCORES: dict[str, Callable[[Vector, Mask], FoundPrior]] = {
    "estimate": _from_scores.from_estimate,
    "consensus": _from_scores.consensus,
    "two_means": _from_scores.two_means,
    "elkan_noto": _from_scores.elkan_noto,
    "dedpul": _from_scores.dedpul,
    "bbe": _from_scores.bbe,
    "alphamax": _from_scores.alphamax,
}
FROM_FEATURES: dict[str, Callable[[Any, Mask, Generator], FoundPrior]] = {
    "tice": _from_features.tice,
    "km1": partial(_from_features.kernel_means, second=False),
    "km2": partial(_from_features.kernel_means, second=True),
}


def estimate_class_prior(
    X: Matrix,
    y: ArrayLike,
    method: str = "estimate",
    *,
    pos_label: object = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> ClassPrior:
    """Estimate the share of positives where only some positives are labelled.

    Positive and unlabelled data do not determine this share. Each method assumes something
    that data cannot confirm, and is wrong where that fails:

    - "elkan_noto" [1]_, "dedpul" [2]_, "bbe" [3]_, "alphamax" [4]_, "tice" [5]_, "km1" and
      "km2" [6]_ assume that labels are missing completely at random. If easy positives were
      labelled first, their estimates are too low. Elkan-Noto also assumes that classes do
      not overlap, the others that some region holds positives only; otherwise estimates are
      too high.
    - "estimate", the default, assumes that the task resembles the simulated ones of
      :func:`probgap.reading.read`, where labels are missing at random or easy positives
      were labelled first. It is the number of a :class:`~probgap.PGPUClassifier` with the
      same ``random_state``: ``estimate_.class_prior``.
    - "two_means" assumes that scores of positives and of negatives form two groups.
    - "consensus" is the mean of the last two, weighted by their precision: that of two means
      grows with the separation of the groups.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples. "tice" does not take sparse ones.
    y : array-like of shape (n_samples,)
        Observed labels: two values, or one beside missing entries.
    method : str, default="estimate"
        One of the names above.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive. ``None`` takes the greater.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the folds of the scores and of "tice", and the samples of "km1" and "km2".
    n_jobs : int, default=None
        Number of learners of the scores to fit at once, each in a thread.

    Returns
    -------
    ClassPrior
        The share among all samples and among the unlabelled ones, its interval where the
        method gives one, and the method's evidence.

    See Also
    --------
    estimate_class_prior_from_scores : The same from scores of your own.

    Notes
    -----
    "tice", "km1" and "km2" work on the features, the latter two on at most 400 labelled and
    400 unlabelled samples, which are drawn at random. All others work on the out-of-fold
    log-odds of :class:`~probgap.gap.MixedGapEstimator`.

    References
    ----------
    .. [1] Elkan, Noto, "Learning Classifiers from Only Positive and Unlabeled Data", KDD
       2008.
    .. [2] Ivanov, "DEDPUL: Difference-of-Estimated-Densities-based Positive-Unlabeled
       Learning", ICMLA 2020.
    .. [3] Garg, Wu, Smola, Balakrishnan, Lipton, "Mixture Proportion Estimation and PU
       Learning: A Modern Approach", NeurIPS 2021.
    .. [4] Jain, White, Trosset, Radivojac, "Nonparametric Semi-Supervised Learning of Class
       Proportions", 2016.
    .. [5] Bekker, Davis, "Estimating the Class Prior in Positive and Unlabeled Data through
       Decision Tree Induction", AAAI 2018.
    .. [6] Ramaswamy, Scott, Tewari, "Mixture Proportion Estimation via Kernel Embeddings of
       Distributions", ICML 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.priors import estimate_class_prior
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(400) < 0.5
    >>> X = rng.normal(size=(400, 2)) + 3.0 * positive[:, None]
    >>> y = positive & (rng.random(400) < 0.4)
    >>> prior = estimate_class_prior(X, y, "km2", random_state=0)
    >>> bool(abs(prior.value - positive.mean()) < 0.05)
    True
    >>> bool(prior.unlabelled_share < prior.value)
    True
    """
    _check_method(method, {**FROM_SCORES, **FROM_FEATURES})
    rng = as_generator(random_state)
    gap = MixedGapEstimator(pos_label=pos_label, n_jobs=n_jobs)
    samples, labels = gap._check_fit(X, y)
    samples, labelled = in_double(samples), labels.labelled
    if method in FROM_SCORES:
        gap.set_params(random_state=draw_seed(rng))
        scores = gap._fit_checked(samples, labelled).log_odds_
        return estimate_class_prior_from_scores(scores, labelled, method)
    if method == "tice" and issparse(samples):
        refuse('X must be dense for method="tice". Got a sparse matrix.')
    with one_thread():
        found = FROM_FEATURES[method](samples, labelled, rng)
    return _as_class_prior(found, method, labelled)


def estimate_class_prior_from_scores(
    scores: ArrayLike, labelled: ArrayLike, method: str = "estimate"
) -> ClassPrior:
    """Estimate the share of positives from scores of labelled and unlabelled rows.

    Scores are turned into log-odds of being labelled by Platt scaling, so that any score
    that rises with P(s=1 | x) will do. What each method assumes, and where it fails, is in
    :func:`estimate_class_prior`.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        Scores, such as log-odds of being labelled, from models that have not seen the row:
        in-sample scores separate labelled from unlabelled rows too well.
    labelled : array-like of shape (n_rows,)
        True for labelled positives.
    method : str, default="estimate"
        "estimate", "consensus", "two_means", "elkan_noto", "dedpul", "bbe" or "alphamax".

    Returns
    -------
    ClassPrior
        As for :func:`estimate_class_prior`.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.priors import estimate_class_prior_from_scores
    >>> rng = np.random.default_rng(0)
    >>> positive = np.arange(1000) < 400
    >>> scores = rng.normal(4.0 * positive)
    >>> labelled = positive & (rng.random(1000) < 0.5)
    >>> prior = estimate_class_prior_from_scores(scores, labelled, "dedpul")
    >>> bool(abs(prior.value - 0.4) < 0.05)
    True
    """
    _check_method(method, FROM_SCORES)
    values = check_scores(scores)
    mask = check_labelled(labelled, values.size, both=True)
    if method != "estimate":  # which calibrates scores itself
        values = calibrated_log_odds(values, mask, np.ones(values.size))
    return _as_class_prior(FROM_SCORES[method](values, mask), method, mask)


def _check_method(method: str, known: dict[str, Any]) -> None:
    if method not in list(known):
        names = ", ".join(map(repr, known))
        refuse(f"method must be one of {names}. Got {method!r}.")


def _as_class_prior(found: FoundPrior, method: str, labelled: Mask) -> ClassPrior:
    if not found.converged:
        warn(f"{method!r} has not converged: {dict(found.evidence)}.")
    return ClassPrior.of(found, method, labelled)
