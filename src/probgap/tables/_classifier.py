"""A classifier that takes tables as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from probgap._core._sklearn import HasMethods, fit_context, num_samples
from probgap._core.checks import check_observed_labels
from probgap.pgpu import PGPUClassifier
from probgap.pgpu.html import fit_table
from probgap.tables._base import Frame, pa, pd, refuse
from probgap.tables._cells import to_frame
from probgap.tables._drift import describe_ranges
from probgap.tables._plan import plan_columns
from probgap.tables._steps import make_preprocessor


def _estimator_has(method: str) -> Any:
    """Return a check that the estimator, fitted or not, has a method."""

    def check(self: TableClassifier) -> bool:
        own = self.pipeline_[-1] if hasattr(self, "pipeline_") else self.estimator
        return own is None or hasattr(own, method)

    return check


class TableClassifier(ClassifierMixin, BaseEstimator):
    """Classify rows of a table from positive and unlabelled labels.

    Takes a table with text, categories, dates and missing values as it is, prepares its
    columns as ``probgap fit`` does (:func:`plan_columns`, :func:`make_preprocessor`), and
    fits a classifier to what results: by default :class:`probgap.PGPUClassifier`.

    Parameters
    ----------
    estimator : classifier, default=None
        Fitted to the prepared columns. ``None`` takes :class:`probgap.PGPUClassifier`.
    drop : iterable of str, default=()
        Columns to leave out.
    category : iterable of str, default=()
        Columns to take for categories: codes that happen to be numbers.
    keep : iterable of str, default=()
        Columns to learn from although they would be left out, as codes and ids are.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive; handed on to an estimator that
        leaves it open. ``None`` takes the greater of the two; between two strings such
        as "fraud" and "ok", of which none is known to mean unlabelled, ``fit`` asks for it.
    random_state : int, Generator, RandomState or None, default=None
        Handed on to an estimator that leaves it open.

    Attributes
    ----------
    plan_ : ColumnPlan
        How each column is used, and why.
    pipeline_ : Pipeline
        The preparation of the columns and the fitted classifier, for those functions of
        :mod:`probgap.diagnostics` and :mod:`probgap.inspection` that take a pipeline.
    reading_ : Reading
        How many positives are hidden, if the classifier tells, as the default does.
    ranges_ : dict
        What is usual in each column, by which ``probgap predict`` notices drift.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order.
    n_features_in_, feature_names_in_ : int, ndarray
        Columns seen in ``fit``, and their names if they were all strings.

    See Also
    --------
    probgap.PGPUClassifier : The classifier, for a matrix of numbers.

    Notes
    -----
    Columns that a model should not learn from are left out: names of rows, constants, and
    columns that mirror the label. ``plan_`` says which and why.

    :func:`probgap.io.save` writes it to a file that ``probgap predict`` takes, too, and
    notices columns that left their training range.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from probgap.tables import TableClassifier
    >>> rng = np.random.default_rng(0)
    >>> age, team = rng.integers(20, 70, 300), rng.choice(["red", "blue", None], 300)
    >>> X = pd.DataFrame({"age": age, "team": team})
    >>> known = (age > 45) & (team == "red") & (rng.random(300) < 0.7)
    >>> y = np.where(known, "fraud", None)
    >>> model = TableClassifier(random_state=0).fit(X, y)
    >>> [f"{column.name}: {column.use}" for column in model.plan_.columns]
    ['age: number', 'team: category']
    >>> low, high = model.reading_.n_hidden_interval
    >>> low < model.reading_.n_hidden < high
    True
    >>> new = pd.DataFrame({"age": [60, 30], "team": ["red", "blue"]})
    >>> model.predict(new).tolist()
    ['fraud', 'not fraud']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "drop": "no_validation",  # checked by plan_columns
        "category": "no_validation",
        "keep": "no_validation",
        "pos_label": "no_validation",
        "random_state": "no_validation",
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        drop: Iterable[str] = (),
        category: Iterable[str] = (),
        keep: Iterable[str] = (),
        pos_label: object = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.drop = drop
        self.category = category
        self.keep = keep
        self.pos_label = pos_label
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Decide how columns are used, prepare them, and fit the classifier.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Arrow table or array
            The table, without the label column: one row for each case. Another library's
            frame is taken if it can be read as an Arrow table.
        y : array-like of shape (n_samples,)
            *Observed* labels: labelled positive, or unlabelled. Two values, of which
            the greater is positive (or see ``pos_label``), or one value beside NaN,
            None or pandas.NA.

        Returns
        -------
        TableClassifier
            The fitted classifier.
        """
        frame = self._as_frame(X, reset=True)
        estimator = (
            PGPUClassifier() if self.estimator is None else clone(self.estimator)
        )
        own = estimator.get_params(deep=False)
        pos_label = own.get("pos_label", self.pos_label)
        if pos_label is None:
            pos_label = self.pos_label
        labels = check_observed_labels(self, y, len(frame), pos_label)
        ours = {"pos_label": labels.name_of("labelled")}
        if own.get("random_state", 0) is None:
            ours["random_state"] = self.random_state
        estimator.set_params(**{name: ours[name] for name in ours if name in own})
        label = str(getattr(y, "name", None) or "y")
        while label in frame:
            label += "_"
        plan = plan_columns(
            frame.assign(**{label: labels.labelled.astype(int)}),
            label=label,
            drop=self.drop,
            category=self.category,
            keep=self.keep,
        )
        uses = tuple(column for column in plan.columns if column.use != "label")
        self.plan_ = replace(plan, columns=uses)
        steps = [("columns", make_preprocessor(plan)), ("classifier", estimator)]
        at = np.where(labels.labelled, labels.positive, 1 - labels.positive)
        self.pipeline_ = Pipeline(steps).fit(frame, labels.classes[at])
        self.classes_ = self.pipeline_.classes_
        self.ranges_ = describe_ranges(frame, self.plan_)
        return self

    @property
    def reading_(self) -> Any:
        """How many positives are hidden, by the classifier."""
        return self.pipeline_[-1].reading_

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the true label of each row.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Arrow table or array
            Rows with the columns of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        frame = self._as_frame(X)
        return self.pipeline_.predict(frame)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities that the classifier gives: by default P(Y | x).

        Parameters
        ----------
        X : DataFrame of pandas or polars, Arrow table or array
            Rows with the columns of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        frame = self._as_frame(X)
        return self.pipeline_.predict_proba(frame)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return a score that is above 0 exactly where ``predict`` is ``classes_[1]``.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Arrow table or array
            Rows with the columns of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            The score of the classifier.
        """
        frame = self._as_frame(X)
        return self.pipeline_.decision_function(frame)

    def _as_frame(self, X: Any, *, reset: bool = False) -> Frame:
        """Return a table as a pandas DataFrame, its rows numbered from 0."""
        if not reset:
            check_is_fitted(self)
        if not hasattr(X, "columns"):
            how: Any = {"dtype": None, "ensure_all_finite": False}
            cells = validate_data(self, X, reset=reset, **how)
            return pd.DataFrame(cells, columns=[f"x{k}" for k in range(cells.shape[1])])
        validate_data(self, X, reset=reset, skip_check_array=True)
        if not num_samples(X):
            refuse("X must hold rows. Got none.")
        if not isinstance(X, pd.DataFrame):
            return to_frame(pa.table(X).to_batches(), start=0)
        names = [str(name) for name in X.columns]
        return X.set_axis(names, axis=1).set_axis(pd.RangeIndex(len(X)), axis=0)

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()
        return diagram + self._found()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._found()
        return bundle

    def _found(self) -> str:
        """Return what the classifier found, as a notebook shows it."""
        return fit_table(self.pipeline_[-1]) if hasattr(self, "pipeline_") else ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags
