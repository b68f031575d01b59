"""What classifiers share: decisions by sign, soft labels, access to fitted models."""

import warnings
from abc import abstractmethod
from inspect import Parameter, signature
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from probgap._core._sklearn import (
    HasMethods,
    check_parameters,
    num_samples,
    safe_indexing,
)
from probgap._core.checks import (
    ObservedLabels,
    check_labelled,
    check_observed_labels,
    check_samples,
)
from probgap._core.errors import refuse
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, one_thread
from probgap._core.types import Array, Mask, Matrix, Rows, Vector


class SignClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of two classes by the sign of a score."""

    classes_: NDArray[Any]
    positive_index_: int = 1

    @abstractmethod
    def _decide(self, X: Matrix) -> Vector:
        """Return a score that is above 0 where the sample looks positive."""

    def decision_function(self, X: Matrix) -> Vector:
        """Return a score that is above 0 exactly where ``predict`` is ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The score: the observed gap for a gap estimator; otherwise the decision of the
            final classifier or, if that has probabilities, their difference.
        """
        decision = self._decide(X)
        return decision if self.positive_index_ == 1 else -decision

    def predict(self, X: Matrix) -> NDArray[Any]:
        """Predict the true label of each sample (a gap estimator: the observed one).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        positive = self._decide(X) > 0.0
        at = np.where(positive, self.positive_index_, 1 - self.positive_index_)
        return self.classes_[at]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


class PUClassifier(SignClassifier):
    """A classifier with probabilities that is fitted to observed labels."""

    # Those of all such classifiers; names that one lacks are ignored.
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"]), None],
        "cv": ["cv_object"],
        "device": [str, None],
        "pos_label": "no_validation",
        "random_state": "no_validation",
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    pos_label: object
    random_state: RandomStateLike
    # Whether samples in single precision are left as they are.
    _keeps_single: ClassVar[bool] = False

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Fit to observed labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            *Observed* labels: labelled positive, or unlabelled. Two values, of which the
            greater is positive (or see ``pos_label``), or one value beside NaN, None or
            pandas.NA.

        Returns
        -------
        Self
            The fitted estimator.
        """
        check_parameters(self)
        self._fit(*self._check_fit(X, y), as_generator(self.random_state))
        return self

    def _check_fit(self, X: Matrix, y: ArrayLike) -> tuple[Matrix, ObservedLabels]:
        """Check the input of ``fit``, and keep the classes."""
        samples = check_samples(self, X)
        if not self._keeps_single:
            samples = samples.astype(np.float64, copy=False)
        given = self.pos_label, getattr(self, "neg_label", None)
        labels = check_observed_labels(self, y, samples.shape[0], *given)
        self.classes_, self.positive_index_ = labels.classes, labels.positive
        return samples, labels

    @abstractmethod
    def _fit(self, samples: Matrix, labels: ObservedLabels, rng: Generator) -> None:
        """Fit to checked input."""

    @abstractmethod
    def _chance(self, X: Matrix) -> Vector:
        """Return the probability of being positive, or labelled for a gap estimator."""

    def predict_proba(self, X: Matrix) -> Array:
        """Return the probabilities of both classes.

        Those of the true label, P(Y | x), which are only as good as the assumption of the
        method: where few positives are labelled, or classes overlap, they may be off by as
        much as the estimated share of positives. Of a gap estimator those of the observed
        label. A method without probabilities of the true label lacks this function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        positive = self._chance(X)
        columns = [1.0 - positive, positive]
        return np.column_stack(columns if self.positive_index_ == 1 else columns[::-1])


# Copies of samples below this share of the largest weight, and shares of a sample below
# this one, are dropped: they change little but the run time.
_NEGLIGIBLE = 1e-3
_SMALLEST_PART = 0.02


def clone_with_seed(estimator: Any, rng: Generator) -> Any:
    """Clone an estimator and fill in each ``random_state`` that was left at None."""
    copy = clone(estimator)
    unset = {
        name: draw_seed(rng)
        for name, value in sorted(copy.get_params(deep=True).items())
        if name.rpartition("__")[2] == "random_state" and value is None
    }
    return copy.set_params(**unset) if unset else copy


def require_predict_proba(estimator: Any, name: str) -> None:
    """Refuse an estimator that gives no probabilities."""
    if not hasattr(estimator, "predict_proba"):
        refuse(
            f"{name} must have predict_proba; wrap it in CalibratedClassifierCV to "
            f"give it one. Got {estimator!r}."
        )


def require_sample_weight(estimator: Any, name: str) -> None:
    """Refuse an estimator without sample weights, or without scores to decide by."""
    # Meta-estimators accept any keyword and pass it on.
    takes_weights = has_fit_parameter(estimator, "sample_weight") or any(
        parameter.kind is Parameter.VAR_KEYWORD
        for parameter in signature(estimator.fit).parameters.values()
    )
    if isinstance(estimator, Pipeline) or not takes_weights:
        refuse(
            f"{name} must accept sample_weight in fit; put scalers before the whole "
            f"classifier. Got {estimator!r}."
        )
    require_score(estimator, name)


def require_score(estimator: Any, name: str) -> None:
    """Refuse an estimator without scores to decide by."""
    if not any(hasattr(estimator, m) for m in ("decision_function", "predict_proba")):
        refuse(
            f"{name} must have decision_function or predict_proba. Got {estimator!r}."
        )


def fit_on_shares(
    estimator: Any, samples: Matrix, share: Vector, weight: Vector
) -> None:
    """Fit to soft labels, by weighted copies of samples as positives and negatives."""
    positive, negative = weigh_copies(share, weight)
    rows = np.flatnonzero(positive), np.flatnonzero(negative)
    y = np.repeat([1, 0], [rows[0].size, rows[1].size])
    weights = np.concatenate([positive[rows[0]], negative[rows[1]]])
    estimator.fit(samples[np.concatenate(rows)], y, sample_weight=weights)


def weigh_copies(share: Vector, weight: Vector) -> tuple[Vector, Vector]:
    """Return the weight of each sample as a positive, and as a negative."""
    part = np.where(np.isfinite(share), share, 0.0)
    if min((weight * part).max(), (weight * (1.0 - part)).max()) <= 0.0:
        # The weights are 0 for a whole class: ignore them.
        weight = np.isfinite(share).astype(np.float64)
    copies = weight * part, weight * (1.0 - part)
    positive, negative = (
        np.where(copy > _NEGLIGIBLE * copy.max(), copy, 0.0) for copy in copies
    )
    return positive, negative


def round_shares(share: Vector) -> Vector:
    """Round shares near 0 or 1, unless that would leave a single class.

    Fewer copies of samples take far less time.
    """
    rounded = np.where(share < _SMALLEST_PART, 0.0, share)
    rounded = np.where(share > 1.0 - _SMALLEST_PART, 1.0, rounded)
    both = np.nanmin(rounded) < 1.0 and np.nanmax(rounded) > 0.0
    return rounded if both else share


# Log-odds are clipped here, where a probability is 0 or 1 for all purposes.
_FARTHEST = 30.0


def classifier_of(model: Any) -> Any:
    """Return the fitted classifier: the model itself, or the last step of a pipeline."""
    model = getattr(model, "pipeline_", model)  # of a TableClassifier
    classifier = model[-1] if isinstance(model, Pipeline) else model
    check_is_fitted(classifier)
    return classifier


def samples_of(model: Any, X: Any) -> Matrix:
    """Return rows as the classifier learns from them, after the other steps of a pipeline.

    Columns that it was told to say who was looked at are left out.
    """
    if hasattr(model, "pipeline_"):  # a TableClassifier
        model, X = model.pipeline_, model.read_inputs(X)
    if isinstance(model, Pipeline):
        X = model[:-1].transform(X) if len(model) > 1 else X
        model = model[-1]
    samples = X if hasattr(X, "shape") else np.asarray(X)
    if getattr(model, "taken_out_", None) is None:
        return samples
    samples = model._without_declared(samples)
    is_mixed = getattr(samples, "dtype", None) == object
    return samples.astype(float) if is_mixed else samples


def as_matrix(samples: Any) -> Matrix:
    """Return samples as a plain array or CSR matrix."""
    return samples.tocsr() if issparse(samples) else np.asarray(samples, dtype=float)


def take_rows(X: Any, rows: Rows) -> Any:
    """Take rows of an array, a sparse matrix or a frame."""
    return safe_indexing(X, rows)


def check_rows(X: Any, labelled: ArrayLike) -> Mask:
    """Check the mask of labelled rows; some must be labelled, and some not."""
    return check_labelled(labelled, num_samples(X), both=True)


def refit(
    classifier: Any,
    samples: Matrix,
    labelled: Mask,
    seed: int,
    group: Rows | None = None,
    looked: Any = None,
) -> Any:
    """Fit a copy on other rows with labels 0 and 1, quietly and on one thread.

    If it can, it holds rows of a ``group`` out together. ``looked`` are the columns that say
    who was looked at, which samples are without.
    """
    copy = clone(classifier)
    known = copy.get_params(deep=False)
    ours: dict[str, Any] = {"random_state": seed, "verbose": 0}
    ours |= dict.fromkeys(("pos_label", "neg_label", "n_jobs", "labelled_by", "keep"))
    copy.set_params(**{name: value for name, value in ours.items() if name in known})
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        observed = labelled.astype(np.int8)
        how: dict[str, Any] = {}
        if group is not None and has_fit_parameter(copy, "groups"):
            how["groups"] = group
        if looked is not None:
            return copy._fit_known(samples, observed, looked=looked, **how)
        return copy.fit(samples, observed, **how)


def chance_positive(classifier: Any, samples: Matrix) -> Vector:
    """Return P(Y=1 | x) of samples as the classifier sees them."""
    proba = classifier.predict_proba(samples)
    return proba[:, classifier.positive_index_]


def log_odds(probability: Vector) -> Vector:
    """Return log(p / (1 - p)), clipped where p is nearly 0 or 1."""
    with np.errstate(divide="ignore"):
        return np.clip(logit(probability), -_FARTHEST, _FARTHEST)


def sample_rows(labelled: Mask, most: int, rng: Generator) -> Rows:
    """Draw at most ``most`` rows, stratified; at least two labelled ones."""
    if labelled.size <= most:
        return np.arange(labelled.size)
    n_labelled = round(most * float(labelled.mean()))
    n_labelled = min(max(n_labelled, 2), int(labelled.sum()))
    drawn = [
        rng.choice(np.flatnonzero(labelled), n_labelled, replace=False),
        rng.choice(np.flatnonzero(~labelled), most - n_labelled, replace=False),
    ]
    return np.sort(np.concatenate(drawn))


def input_columns(model: Any, X: Any) -> list[Any]:
    """List the columns of X that the model uses: names for a frame, else indices."""
    first = model[0] if isinstance(model, Pipeline) else model
    names = list(X.columns) if hasattr(X, "columns") else list(range(X.shape[1]))
    taken = getattr(first, "taken_out_", None)  # they say who was looked at
    if taken is not None and len(names) == first.n_features_in_ + taken.size:
        names = [name for at, name in enumerate(names) if at not in taken]
    if not hasattr(X, "columns"):
        return names
    if not isinstance(first, ColumnTransformer):
        return names
    used: set[Any] = set()
    for _, transformer, columns in first.transformers_:
        if not (isinstance(transformer, str) and transformer == "drop"):
            for c in columns if isinstance(columns, list | tuple) else [columns]:
                used.add(names[c] if isinstance(c, int | np.integer) else c)
    return [name for name in names if name in used]
