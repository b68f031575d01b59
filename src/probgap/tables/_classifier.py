"""A classifier that takes tables as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from probgap._core._sklearn import HasMethods, fit_context, num_samples
from probgap._core.checks import ObservedLabels, check_observed_labels
from probgap._core.errors import refuse
from probgap._core.types import Vector
from probgap.labelling import Declared, make_factor
from probgap.pgpu import PGPUClassifier
from probgap.pgpu.classifier import fit_table
from probgap.tables._cells import Frame, check_columns, pa, pd, to_frame
from probgap.tables._drift import describe_ranges
from probgap.tables._kinds import plain_values
from probgap.tables._labels import LabelColumn, read_labels, require_labels
from probgap.tables._plan import plan_columns
from probgap.tables._steps import make_preprocessor, read_inputs

# Parameters of an estimator that it may leave open.
_HANDED_ON = ("class_prior", "random_state", "n_jobs")


def _estimator_has(method: str) -> Any:
    def check(self: TableClassifier) -> bool:
        own = self.pipeline_[-1] if hasattr(self, "pipeline_") else self.estimator
        return own is None or hasattr(own, method)

    return check


@dataclass(eq=False, repr=False)
class TableClassifier(ClassifierMixin, BaseEstimator):
    """Classify rows of a table from positive and unlabelled labels.

    Takes a table with text, categories, dates and missing values as it is, prepares its
    columns as ``probgap fit`` does (:func:`plan_columns`, :func:`make_preprocessor`), and
    fits a classifier to what results: by default :class:`probgap.PGPUClassifier`.

    Parameters
    ----------
    estimator : classifier, default=None
        Fitted to the prepared columns. ``None`` takes :class:`probgap.PGPUClassifier`.
    id : str, default=None
        A column that names the rows, which is not learnt from.
    group : str, default=None
        A column that names what several rows belong to: a patient, a customer, a site.
        Rows of one value are held out together. Not learnt from unless it is kept, too.
    drop : iterable of str, default=()
        Columns to leave out.
    category : iterable of str, default=()
        Columns to take for categories: codes that happen to be numbers.
    keep : iterable of str, default=()
        Columns to learn from although they would be left out, as codes, ids and the columns
        of ``labelled_by`` are.
    labelled_by : iterable of str, default=()
        Columns that say who was looked at: a clinic, a year, who labelled. They leave the
        model of the truth, unless they are kept, too, and how often positives of each of
        their groups were labelled is estimated (``labelling_``), as
        :class:`probgap.PGPUClassifier` does it and under its assumptions. New rows need not
        have them.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive, or a tuple of several that do;
        handed on to an estimator that leaves it open. ``None`` takes the greater of the
        two; between two strings such as "fraud" and "ok", of which none is known to mean
        unlabelled, ``fit`` asks for it.
    neg_label : object, default=None
        The value of ``y`` that marks rows that were checked and are not positive, beside
        positive and unlabelled ones, for an estimator that takes it, as the default does
        (:class:`probgap.PGPUClassifier`). Without it "no" beside empty cells is unlabelled.
    class_prior, random_state, n_jobs : object, default=None
        Handed on to an estimator that leaves them open, as the default does.

    Attributes
    ----------
    plan_ : ColumnPlan
        How each column is used, and why.
    label_ : str or None
        Name of the label column, if it is one of the table.
    labels_ : LabelColumn or None
        How its values were read.
    pipeline_ : Pipeline
        The preparation of the columns and the fitted classifier, for those functions of
        :mod:`probgap.diagnostics` and :mod:`probgap.inspection` that take a pipeline.
    estimate_ : HiddenEstimate
        How many positives are hidden, if the classifier tells, as the default does.
    labelling_ : Labelling or None
        Who was looked at: rates and hidden positives of each group of ``labelled_by``.
    ranges_ : dict
        What is usual in each column, by which ``probgap predict`` notices drift.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order.
    n_features_in_, feature_names_in_ : int, ndarray
        Columns of a frame that are learnt from, or all columns of an array.

    See Also
    --------
    probgap.PGPUClassifier : The classifier, for a matrix of numbers.

    Notes
    -----
    Columns that a model should not learn from are left out: names of rows, constants, and
    columns that mirror the label. ``plan_`` says which and why.

    :func:`probgap.io.save` writes it to a file that ``probgap predict`` takes, too, and
    notices columns that left their training range. New rows need the columns that are
    learnt from, in the order of ``fit``; others may lie between them.

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
    >>> low, high = model.estimate_.n_hidden_interval
    >>> low < model.estimate_.n_hidden < high
    True
    >>> new = pd.DataFrame({"age": [60, 30], "team": ["red", "blue"]})
    >>> model.predict(new).tolist()
    ['fraud', 'not fraud']

    The labels may also be a column of the table, which is named:

    >>> model = TableClassifier(random_state=0).fit(X.assign(known=y), "known")
    >>> model.labels_.sentence
    "Reading 'fraud' (29 rows) as labelled positive, empty cells as unlabelled."
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "id": [str, None],
        "group": [str, None],
        "drop": "no_validation",  # checked by plan_columns
        "category": "no_validation",
        "keep": "no_validation",
        "labelled_by": "no_validation",
        "pos_label": "no_validation",
        "neg_label": "no_validation",
        "class_prior": "no_validation",  # checked by the estimator
        "random_state": "no_validation",
        "n_jobs": "no_validation",
    }

    estimator: Any = None
    _: KW_ONLY
    id: str | None = None
    group: str | None = None
    drop: Iterable[str] = ()
    category: Iterable[str] = ()
    keep: Iterable[str] = ()
    labelled_by: Iterable[str] = ()
    pos_label: object = None
    neg_label: object = None
    class_prior: float | tuple[float, float] | None = None
    random_state: Any = None
    n_jobs: int | None = None

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: str | ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Decide how columns are used, prepare them, and fit the classifier.

        There are no sample weights: medians, scales and rare levels of columns go by rows.
        For weights, fit :class:`probgap.PGPUClassifier` to what
        :func:`make_preprocessor` returns.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Arrow table or array
            The table: one row for each case. Another library's frame is taken if it can
            be read as an Arrow table.
        y : str or array-like of shape (n_samples,)
            *Observed* labels: labelled positive, or unlabelled. The name of a column of
            ``X``, whose cells are understood as by :func:`read_labels`; or the labels
            themselves: two values, of which the greater is positive (or see
            ``pos_label``), or one value beside NaN, None or pandas.NA.
        groups : array-like of shape (n_samples,), default=None
            What each row belongs to, if that is no column of ``X`` (``group``).

        Returns
        -------
        TableClassifier
            The fitted classifier.
        """
        if groups is not None and self.group is not None:
            refuse(f"groups must be None if group names a column. Got {self.group!r}.")
        return self._fit_rows(self._as_frame(X, reset=True), y, groups=groups)

    def _fit_weighted(self, frame: Frame, y: str, weight: Vector | None) -> Self:
        """Fit to rows drawn from a larger table, which their index numbers."""
        validate_data(self, frame, skip_check_array=True)
        return self._fit_rows(frame, y, weight)

    def _fit_rows(
        self,
        frame: Frame,
        y: str | ArrayLike,
        weight: Vector | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit to rows, each of which represents as many as ``weight`` says."""
        self.label_ = y if isinstance(y, str) else None
        self.labels_: LabelColumn | None = None
        estimator, *named = self._make_estimator()
        if isinstance(y, str):
            labels = self._read_column(frame, y, *named)
        else:
            labels = check_observed_labels(self, y, len(frame), *named)
        if "pos_label" in estimator.get_params(deep=False):
            estimator.set_params(pos_label=labels.name_of("labelled"))
        if labels.negative is not None:
            estimator.set_params(neg_label=labels.name_of("unlabelled"))
        observed = labels.as_values()
        self.plan_ = plan_columns(
            frame,
            labelled=labels.labelled,
            label=self.label_,
            id=self.id,
            group=self.group,
            drop=self.drop,
            category=self.category,
            keep=self.keep,
            labelled_by=self.labelled_by,
        )
        inputs = read_inputs(frame, self.plan_)
        if hasattr(self, "feature_names_in_"):  # of a frame, those alone are needed
            validate_data(self, frame[list(self.plan_.inputs)], skip_check_array=True)
        steps = [
            ("columns", make_preprocessor(self.plan_)),
            ("classifier", estimator),
        ]
        self.pipeline_ = Pipeline(steps)
        if self.group is not None:
            groups = frame[self.group].to_numpy(dtype=object)
        if weight is None and groups is None and not self.labelled_by:
            self.pipeline_.fit(inputs, observed)
        else:
            if groups is not None and not has_fit_parameter(estimator, "groups"):
                refuse(
                    "estimator must take groups in fit to hold them out together. "
                    f"Got {estimator!r}."
                )
            samples = steps[0][1].fit_transform(inputs)
            declared = self._declare(frame, inputs)
            if weight is not None:
                estimator._fit_weighted(samples, observed, weight, groups, declared)
            elif declared is None:
                estimator.fit(samples, observed, groups=groups)
            else:
                known: Any = {"groups": groups, "looked": declared}
                estimator._fit_known(samples, observed, **known)
        self.classes_ = self.pipeline_.classes_
        self.ranges_ = describe_ranges(inputs, self.plan_)
        return self

    def _declare(self, frame: Frame, inputs: Frame) -> Declared | None:
        """Read the declared columns, and find those that are kept among the samples."""
        names = list(dict.fromkeys(self.labelled_by))
        if not names:
            return None
        prepare, kept = self.pipeline_[0].transform, set(self.keep).intersection(names)
        samples = prepare(inputs) if kept else None
        found, later = {}, np.roll(np.arange(len(inputs)), 1)
        for name in sorted(kept):
            moved = prepare(inputs.assign(**{name: inputs[name].to_numpy()[later]}))
            found[name] = np.flatnonzero((moved != samples).any(axis=0))
        factors = tuple(
            make_factor(name, plain_values(frame[name], text=name in self.category))
            for name in names
        )
        return Declared(factors, found)

    def _make_estimator(self) -> tuple[Any, object, object]:
        """Return the classifier to fit, and labels that are said to mean what they mean."""
        estimator = (
            PGPUClassifier() if self.estimator is None else clone(self.estimator)
        )
        own = estimator.get_params(deep=False)
        ours = {name: getattr(self, name) for name in _HANDED_ON}
        left_open = {name: ours[name] for name in ours if own.get(name, 0) is None}
        estimator.set_params(**left_open)
        declares = getattr(estimator, "labelled_by", "unknown") is None
        if self.labelled_by and not declares:
            refuse(
                "estimator must be None or a PGPUClassifier without labelled_by where "
                f"labelled_by is given. Got {estimator!r}."
            )
        named = [own.get(name) for name in ("pos_label", "neg_label")]
        given = zip(named, (self.pos_label, self.neg_label), strict=True)
        pos_label, neg_label = (ours if one is None else one for one, ours in given)
        if neg_label is not None and "neg_label" not in own:
            kind = type(estimator).__name__
            refuse(
                f"estimator must have neg_label to learn from negatives. Got {kind}."
            )
        return estimator, pos_label, neg_label

    def _read_column(
        self, frame: Frame, name: str, positive: object, negative: object
    ) -> ObservedLabels:
        """Return which rows are labelled, and what unlabelled and labelled are called."""
        check_columns([name], list(frame.columns), "The table")
        given = positive if isinstance(positive, tuple | list) else (positive,)
        named = None if positive is None else tuple(map(str, given))
        checked = None if negative is None else str(negative)
        self.labels_ = labels = read_labels(frame[name], named, checked)
        require_labels(labels.n_labelled, len(frame), name)
        known = labels.find_negatives(frame[name]) if checked is not None else None
        found, classes = labels.find(frame[name]), np.array(labels.values)
        return ObservedLabels(found, classes, 1, known)

    @property
    def estimate_(self) -> Any:
        """How many positives are hidden, by the classifier."""
        return self.pipeline_[-1].estimate_

    @property
    def labelling_(self) -> Any:
        """Who was looked at, by the columns of ``labelled_by``; None without."""
        return self.pipeline_[-1].labelling_

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the true label of each row.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Arrow table or array
            Rows with the columns of ``fit``, in its order.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        inputs = self.read_inputs(X)
        return self.pipeline_.predict(inputs)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities that the classifier gives: by default P(Y | x).

        Parameters
        ----------
        X : DataFrame of pandas or polars, Arrow table or array
            Rows with the columns of ``fit``, in its order.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        inputs = self.read_inputs(X)
        return self.pipeline_.predict_proba(inputs)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return a score that is above 0 exactly where ``predict`` is ``classes_[1]``.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Arrow table or array
            Rows with the columns of ``fit``, in its order.

        Returns
        -------
        ndarray of shape (n_samples,)
            The score of the classifier.
        """
        inputs = self.read_inputs(X)
        return self.pipeline_.decision_function(inputs)

    def read_inputs(self, X: Any) -> Frame:
        """Return what the classifier learns from, as ``pipeline_`` takes it.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Arrow table or array
            Rows with the columns of ``fit``, in its order; others are left out.

        Returns
        -------
        DataFrame
            The columns that are used, with numbers parsed.
        """
        check_is_fitted(self)
        return read_inputs(self._as_frame(X), self.plan_)

    def _as_frame(self, X: Any, *, reset: bool = False) -> Frame:
        """Return a table as a pandas DataFrame, its rows numbered from 0."""
        by_name = reset or hasattr(self, "feature_names_in_")
        if not (by_name and hasattr(X, "columns")):
            how: Any = {"dtype": None, "ensure_all_finite": False}
            cells = validate_data(self, X, reset=reset, **how)
            numbered = [f"x{k}" for k in range(cells.shape[1])]
            names = getattr(self, "feature_names_in_", numbered)
            return pd.DataFrame(cells, columns=names)
        if not num_samples(X):
            refuse("X must hold rows. Got none.")
        if not isinstance(X, pd.DataFrame):
            X = to_frame(pa.table(X).to_batches(), start=0)
        columns = [str(name) for name in X.columns]
        frame = X.set_axis(columns, axis=1).set_axis(pd.RangeIndex(len(X)), axis=0)
        if reset:
            validate_data(self, frame, skip_check_array=True)
            return frame
        known = set(self.feature_names_in_)
        ours = [name for name in columns if name in known]
        seen = frame[ours] if known.issubset(ours) else frame
        validate_data(self, seen, reset=False, skip_check_array=True)
        return frame

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()
        return diagram + self._found()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._found()
        return bundle

    def _found(self) -> str:
        return fit_table(self.pipeline_[-1]) if hasattr(self, "pipeline_") else ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags
