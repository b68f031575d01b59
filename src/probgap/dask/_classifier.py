"""PGPU on dask arrays and dataframes: fit on a sample of rows, predict all."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from probgap._core._sklearn import Interval, fit_context
from probgap._core.defaults import DEFAULTS
from probgap._core.errors import load_library
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, stage
from probgap.dask._blocks import Lazy, dask, draw_sample
from probgap.pgpu import PGPUClassifier


@dataclass(eq=False, repr=False)
class DaskPGPUClassifier(ClassifierMixin, BaseEstimator):
    """Classify from positive and unlabelled data in blocks, on one machine or many.

    One pass over the blocks checks every value and draws a sample: all labelled rows, and
    as many others as ``max_memory`` holds, weighted to represent all.
    :class:`probgap.PGPUClassifier`, whose assumptions are the same, is fitted to the sample,
    and all rows are predicted lazily, block by block. Results are the same for any blocks
    and any workers and, if all rows fit, those of :class:`probgap.PGPUClassifier`.

    Parameters
    ----------
    classifier : PGPUClassifier, default=None
        Fitted to the sample; ``None`` takes the default.
    max_memory : float, default=64e6
        Bytes that the rows drawn may take, in double precision; a fit takes about twenty
        times as much. Labelled rows that would take more than half are sampled, too.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the sample, and a classifier that leaves its own open.

    Attributes
    ----------
    model_ : probgap.PGPUClassifier
        The fitted classifier, which is what to save. Its attributes about training samples
        are about the rows drawn, its counts about all rows.
    sample_rows_ : ndarray of shape (n_drawn,)
        Indices of the rows drawn.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order.
    n_features_in_ : int
        Number of columns.

    Warns
    -----
    UnreliableFitWarning, BoundaryWarning
        By ``fit``, as for :class:`probgap.PGPUClassifier`.
    ProbgapWarning
        By ``fit``, if labelled rows had to be sampled, too.

    See Also
    --------
    probgap.PGPUClassifier : The same for what fits into memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from probgap.dask import DaskPGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> blocks = da.from_array(X, chunks=(100, 2))
    >>> labels = da.from_array(s, chunks=100)
    >>> model = DaskPGPUClassifier(random_state=0).fit(blocks, labels)
    >>> bool((model.predict(blocks).compute() == y_true).mean() > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "classifier": [PGPUClassifier, None],
        "max_memory": [Interval(Real, 0, None, closed="neither")],
        "random_state": "no_validation",
    }

    classifier: PGPUClassifier | None = None
    _: KW_ONLY
    max_memory: float = float(DEFAULTS.sample_bytes)
    random_state: RandomStateLike = None

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Lazy, y: Lazy) -> Self:
        """Fit the classifier to blocks of rows.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples: finite numbers. Data in memory are fitted whole.
        y : dask array or series of shape (n_samples,)
            *Observed* labels, in blocks that match those of ``X``.

        Returns
        -------
        DaskPGPUClassifier
            The fitted classifier.
        """
        seed = self._draw_seed()
        model = PGPUClassifier() if self.classifier is None else clone(self.classifier)
        if model.random_state is None:
            model.set_params(random_state=seed)
        if hasattr(X, "to_delayed") or hasattr(y, "to_delayed"):
            self.sample_rows_ = self._fit_blocks(model, X, y, seed)
        else:
            model.fit(X, y)
            self.sample_rows_ = np.arange(model.observed_gap_.size)
        self.model_, self.classes_ = model, model.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return self

    def _fit_blocks(self, model: PGPUClassifier, X: Lazy, y: Lazy, seed: int) -> Any:
        with stage(model.verbose, "reading all blocks"):
            named = model.pos_label, model.neg_label
            sample = draw_sample(X, y, named, self.max_memory, seed)
        seen, labels = sample.samples, sample.labels
        if names := list(getattr(X, "columns", ())):
            seen = pandas().DataFrame(seen, columns=names)
        model.set_params(pos_label=labels.name_of("labelled"))
        if labels.negative is not None:
            model.set_params(neg_label=labels.name_of("unlabelled"))
        model._fit_weighted(seen, labels.as_values(), sample.weight)
        return sample.rows

    def _draw_seed(self) -> int:
        if isinstance(self.random_state, Integral):
            as_generator(self.random_state)  # raises if it is negative
            return int(self.random_state)
        return draw_seed(as_generator(self.random_state))

    def predict(self, X: Lazy) -> Lazy:
        """Predict the true label of each row, lazily.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array or series of shape (n_samples,)
            Values of ``classes_``.
        """
        return self._apply(X, "predict")

    def decision_function(self, X: Lazy) -> Lazy:
        """Return a score that is above 0 exactly where ``predict`` is ``classes_[1]``.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array or series of shape (n_samples,)
            The decision of the final classifier.
        """
        return self._apply(X, "decision_function")

    def predict_proba(self, X: Lazy) -> Lazy:
        """Return P(Y | x), the probabilities of being negative and of being positive.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        dask array or dataframe of shape (n_samples, 2)
            Probabilities of the true label, in the order of ``classes_``.
        """
        return self._apply(X, "predict_proba")

    def _apply(self, X: Lazy, method: str) -> Lazy:
        check_is_fitted(self)
        if not hasattr(X, "to_delayed"):
            return getattr(self.model_, method)(X)
        empty = np.empty(0, self.classes_.dtype if method == "predict" else np.float64)
        if method == "predict_proba":
            empty = np.empty((0, 2))
        model = dask.delayed(self.model_)  # sent to a worker once, for all blocks
        how: dict[str, Any] = {"method": method, "empty": empty}
        if hasattr(X, "map_partitions"):
            meta = _predict_frame(X._meta, self.model_, **how)
            return X.map_partitions(_predict_frame, model, **how, meta=meta)
        X = X.rechunk({1: -1})
        form: dict[str, Any] = {"drop_axis": 1}
        if empty.ndim == 2:
            form = {"chunks": (X.chunks[0], (2,))}
        return X.map_blocks(_predict, model=model, **how, dtype=empty.dtype, **form)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def _predict(block: Any, model: Any, method: str, empty: NDArray[Any]) -> NDArray[Any]:
    return empty if block.shape[0] == 0 else getattr(model, method)(block)


def _predict_frame(frame: Any, model: Any, method: str, empty: NDArray[Any]) -> Any:
    found = _predict(frame, model, method, empty)
    if found.ndim == 1:
        return pandas().Series(found, index=frame.index, name=method)
    return pandas().DataFrame(found, index=frame.index, columns=model.classes_.tolist())


def pandas() -> Any:
    """Return the library, which dask dataframes need."""
    return load_library("pandas", extra="dask", purpose="dask dataframes")
