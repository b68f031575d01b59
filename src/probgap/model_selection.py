"""Choosing models by observed labels: scorers, and folds that keep the labelled share."""

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import make_scorer
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold

from probgap._core.checks import (
    Fold,
    decode_labels,
    group_folds,
    is_missing,
    number_alone,
    read_groups,
)
from probgap._core.errors import ProbgapWarning, refuse
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed
from probgap._core.types import Rows
from probgap.metrics import BY_RANK, check_metric, pu_score

__all__ = ["PUStratifiedGroupKFold", "PUStratifiedKFold", "make_pu_scorer"]

_MOST_KINDS = 20  # values of y that folds have a share of


def make_pu_scorer(
    metric: str = "accuracy",
    *,
    class_prior: float | None = None,
    pos_label: object = None,
    neg_label: object = None,
) -> Any:
    """Make a scorer that estimates a score against true labels from observed ones.

    For ``scoring`` of ``cross_val_score``, ``GridSearchCV`` and the like. Accuracy
    against observed labels rewards a model for predicting hidden positives as negative;
    this scorer does not, if labelled positives are a random sample of the positives and
    ``class_prior`` is right. Where easy positives are labelled first, all scores are too
    high and favour models that find only those: do not trust differences between models
    that find different positives.

    Parameters
    ----------
    metric, class_prior, pos_label, neg_label : str, float, object, object
        As in :func:`probgap.metrics.pu_score`. "recall" is highest for a model that
        predicts every sample as positive.

    Returns
    -------
    callable
        The scorer, of estimator, X and y. It takes ``sample_weight`` if
        ``set_score_request(sample_weight=True)`` asks for it, with metadata routing.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> from probgap.datasets import hide_labels, make_square
    >>> from probgap.model_selection import PUStratifiedKFold, make_pu_scorer
    >>> X, y_true, _ = make_square(300, random_state=0)
    >>> s = hide_labels(X, y_true, rate=("constant", 0.6), random_state=1)
    >>> search = GridSearchCV(
    ...     SVC(class_weight="balanced"),
    ...     {"C": [0.01, 1.0]},
    ...     scoring=make_pu_scorer("accuracy", class_prior=0.5),
    ...     cv=PUStratifiedKFold(3),
    ... )
    >>> bool(search.fit(X, s).score(X, s) > 0.85)
    True
    """
    check_metric(metric, class_prior)
    how: dict[str, Any] = {"metric": metric, "class_prior": class_prior}
    # Not as pos_label, which scikit-learn looks for among the classes.
    named = {"positive": pos_label, "negative": neg_label}
    how |= {name: label for name, label in named.items() if label is not None}
    ranks = metric in BY_RANK
    methods = ("decision_function", "predict_proba") if ranks else "predict"
    return make_scorer(_score, response_method=methods, **how)


def _score(
    y: ArrayLike,
    y_pred: ArrayLike,
    *,
    metric: str,
    positive: object = None,
    negative: object = None,
    **how: Any,
) -> float:
    # scikit-learn passes the scores of the last class.
    if metric in BY_RANK and decode_labels(y, positive, negative).positive == 0:
        y_pred = -np.asarray(y_pred)
    how |= {"pos_label": positive, "neg_label": negative}
    return pu_score(y, y_pred, metric, **how)


class PUStratifiedKFold(BaseCrossValidator):
    """Split into folds with the same share of labelled samples, up to one sample.

    ``y`` may be what the classifiers of this package take: two values, or one beside
    missing entries, or more, of which some mean positive or checked and negative: every
    fold then has its share of each. Where fewer samples are labelled than ``n_splits``, there
    are as many folds as labelled samples, so that every fold has some to score and some to
    learn from.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether to shuffle the samples of each kind before they are split.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the shuffling. The same integer gives the same folds.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.model_selection import PUStratifiedKFold
    >>> y = np.array([1, 0, 0, 1, 0, 0, 0, 0, 0, 1])
    >>> folds = PUStratifiedKFold(5)
    >>> folds.get_n_splits(y=y)
    3
    >>> [int(y[test].sum()) for _, test in folds.split(y, y)]
    [1, 1, 1]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: RandomStateLike = None,
    ) -> None:
        if not (isinstance(n_splits, int | np.integer) and n_splits >= 2):
            refuse(f"n_splits must be an integer of at least 2. Got {n_splits!r}.")
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(
        self, X: Any = None, y: ArrayLike | None = None, groups: Any = None
    ) -> int:
        """Return the number of folds, as far as ``y`` allows; without it, ``n_splits``.

        Parameters
        ----------
        X : object, default=None
            Ignored.
        y : array-like of shape (n_samples,), default=None
            The observed labels.
        groups : object, default=None
            Ignored.

        Returns
        -------
        int
            The number of folds.
        """
        del X, groups
        if y is None:
            return int(self.n_splits)
        fewest = int(np.bincount(_kinds(y)).min())
        if fewest < 2:
            rule = (
                "at least 2 labelled and 2 unlabelled samples, and 2 of any third kind"
            )
            refuse(f"y must hold {rule}. Got {fewest}.")
        return min(int(self.n_splits), fewest)

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: Any = None
    ) -> Iterator[Fold]:
        """Yield the samples to train on and those held out, by the observed labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Its number of rows alone matters.
        y : array-like of shape (n_samples,)
            The observed labels; without them, an error is raised.
        groups : object, default=None
            Ignored.

        Yields
        ------
        train, test : ndarray
            Indices of the samples to train on, and of those held out.
        """
        del groups
        if y is None:
            refuse("y must be given to keep the share of labelled samples. Got None.")
        n_splits = self.get_n_splits(y=y)
        seed = draw_seed(as_generator(self.random_state)) if self.shuffle else None
        folds = StratifiedKFold(n_splits, shuffle=self.shuffle, random_state=seed)
        yield from folds.split(X, _kinds(y))


class PUStratifiedGroupKFold(PUStratifiedKFold):
    """Split into folds with about the same share of labelled samples, and no group in two.

    For rows that belong together: of one patient, customer or site. A model that has seen
    some of them would know the others. Groups are dealt out, the largest first, each to the
    fold where it fits best; where one group holds most labelled samples, shares differ. There
    are at most as many folds as groups with labelled samples, and with unlabelled ones.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether groups of one size come in random order.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the order. The same integer gives the same folds.

    Examples
    --------
    >>> import numpy as np
    >>> from probgap.model_selection import PUStratifiedGroupKFold
    >>> y = np.array([1, 1, 0, 0, 1, 0, 0, 0])
    >>> patient = np.array(["a", "a", "b", "b", "c", "c", "d", "d"])
    >>> for _, test in PUStratifiedGroupKFold(2).split(y, y, patient):
    ...     print(patient[test].tolist(), y[test].tolist())
    ['a', 'a', 'b', 'b'] [1, 1, 0, 0]
    ['c', 'c', 'd', 'd'] [1, 0, 0, 0]
    """

    # What scikit-learn's metadata routing hands to ``split``.
    __metadata_request__split: ClassVar[dict[str, Any]] = {"groups": True}

    def get_n_splits(
        self, X: Any = None, y: ArrayLike | None = None, groups: Any = None
    ) -> int:
        """Return the number of folds that labels and groups allow; else ``n_splits``.

        Parameters
        ----------
        X : object, default=None
            Ignored.
        y : array-like of shape (n_samples,), default=None
            The observed labels.
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together.

        Returns
        -------
        int
            The number of folds.
        """
        if y is None or groups is None:
            return int(self.n_splits)
        return sum(1 for _ in self.split(X, y, groups))

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: Any = None
    ) -> Iterator[Fold]:
        """Yield the samples to train on and those held out.

        Parameters
        ----------
        X : object
            Ignored.
        y : array-like of shape (n_samples,)
            The observed labels.
        groups : array-like of shape (n_samples,)
            Which samples belong together; a missing entry is a group of its own.

        Yields
        ------
        train, test : ndarray, ndarray
            Positions of samples.
        """
        del X
        if y is None or groups is None:
            missing = "y" if y is None else "groups"
            refuse(f"{missing} must be given to split by groups. Got None.")
        labelled = _kinds(y) > 0
        group = number_alone(read_groups(groups, labelled.size))
        rng = as_generator(self.random_state) if self.shuffle else None
        fold = group_folds(labelled, group, int(self.n_splits), rng)
        for k in range(int(fold.max()) + 1):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def _kinds(y: ArrayLike) -> Rows:
    """Return the kind of each sample, from 0: missing, or a value of y.

    Beside labelled and unlabelled samples there may be checked ones, and several values that
    mean positive.
    """
    values = np.asarray(y, dtype=object).ravel()
    missing = is_missing(values)
    present, code = np.unique(
        np.asarray(values[~missing].tolist()), return_inverse=True
    )
    if not 2 < present.size + missing.any() <= _MOST_KINDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbgapWarning)
            return decode_labels(y, ask=False).labelled.astype(np.intp)
    kinds = np.zeros(values.size, dtype=np.intp)
    kinds[~missing] = code + int(missing.any())
    return kinds
