"""PGPU on dask arrays and dataframes: fit on a sample of rows, predict all."""

from __future__ import annotations

import copy
import pickle
import zlib
from dataclasses import replace
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from probgap import pgpu
from probgap._core._sklearn import Interval, fit_context
from probgap._core.checks import check_fit_inputs
from probgap._core.defaults import LIMITS
from probgap._core.errors import load_library
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, stage
from probgap.boundary import BoundaryRule
from probgap.dask.blocks import Blocks, Sample, as_blocks, draw_sample, open_blocks
from probgap.dask.engine import Lazy
from probgap.pgpu.classifier import BasePGPU
from probgap.reweight import KernelMeanMatching

# Attributes about training rows, and those of the gap, which few predictions need.
_OF_ROWS = {
    "observed_gap_",
    "posterior_",
    "probability_",
    "relabelling_",
    "row_weight_",
    "sample_weight_",
}
_OF_GAP = {"gap_estimator_", "reading_"}


class PGPUClassifier(ClassifierMixin, BaseEstimator):
    """Classify from positive and unlabelled data in blocks, on one machine or many.

    One pass over the blocks checks every value and draws a sample: all labelled rows, and
    as many others as ``max_memory`` holds, weighted to represent all.
    :class:`probgap.PGPUClassifier`, whose assumptions are the same, is fitted to the sample,
    and all rows are predicted lazily, block by block. Results are the same for any blocks
    and any workers and, if all rows fit, those of :class:`probgap.PGPUClassifier`.

    Parameters
    ----------
    boundary, class_prior, gap_estimator, relabelling, keep_labelled, reweight : object
        As in :class:`probgap.PGPUClassifier`.
    estimator, device, cv, pos_label, random_state, n_jobs, verbose : object
        As in :class:`probgap.PGPUClassifier`.
    max_memory : float, default=64e6
        Bytes that the rows drawn may take, in double precision; a fit takes about twenty
        times as much. Labelled rows that would take more than half are sampled, too.

    Attributes
    ----------
    model_ : probgap.PGPUClassifier
        The fitted in-memory classifier, which is what to save. Its attributes about
        training samples are about the rows drawn.
    sample_rows_ : ndarray of shape (n_drawn,)
        Indices of the rows drawn.
    seed_ : int
        The seed: ``random_state`` if that is an integer, or else drawn from it.
    n_samples_ : int
        Number of rows.
    reading_, boundary_, n_labelled_, classes_, n_features_in_, feature_names_in_ : object
        As in :class:`probgap.PGPUClassifier`, counted over all rows.

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
    >>> from probgap.dask import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(400, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> blocks = da.from_array(X, chunks=(100, 2))
    >>> model = PGPUClassifier(random_state=0).fit(blocks, da.from_array(s, chunks=100))
    >>> bool((model.predict(blocks).compute() == y_true).mean() > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BasePGPU._parameter_constraints,
        "max_memory": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        boundary: Literal["auto"] | float | BoundaryRule = "auto",
        class_prior: float | tuple[float, float] | None = None,
        gap_estimator: Any = None,
        relabelling: Literal["auto", "expectation", "corollary", "theorem"] = "auto",
        keep_labelled: bool = True,
        reweight: KernelMeanMatching | None = None,
        estimator: Any = None,
        device: str | None = None,
        cv: Any = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        max_memory: float = float(LIMITS.sample_bytes),
    ) -> None:
        self.boundary = boundary
        self.class_prior = class_prior
        self.gap_estimator = gap_estimator
        self.relabelling = relabelling
        self.keep_labelled = keep_labelled
        self.reweight = reweight
        self.estimator = estimator
        self.device = device
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.max_memory = max_memory

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Lazy, y: Lazy) -> Self:
        """Fit the classifier to blocks of rows.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples: finite numbers. Data in memory are split into blocks.
        y : dask array or series of shape (n_samples,)
            *Observed* labels, in blocks that match those of ``X``.

        Returns
        -------
        PGPUClassifier
            The fitted classifier.
        """
        pos_label = self.pos_label
        names = list(getattr(X, "columns", ()))
        if not (hasattr(X, "to_delayed") or hasattr(y, "to_delayed")):
            samples, labels = check_fit_inputs(self, X, y, pos_label, single=True)
            X, y, pos_label = as_blocks(samples, labels)
        self.seed_ = self._draw_seed()
        with stage(self.verbose, "reading all blocks"):
            blocks = open_blocks(X, y, pos_label)
            sample = draw_sample(blocks, self.max_memory, self.seed_)
        model, seen = self.on_one_machine(), sample.samples
        if names:
            pandas = load_library("pandas", extra="dask", purpose="dask dataframes")
            seen = pandas.DataFrame(seen, columns=names)
        for each in (self, model):  # sets n_features_in_ and feature_names_in_
            validate_data(each, seen, skip_check_array=True)
        self._fit_sample(model, blocks, sample)
        self.model_, self.sample_rows_ = model, sample.rows
        self.reading_, self.boundary_ = model.reading_, model.boundary_
        self.classes_, self.n_labelled_ = model.classes_, model.n_labelled_
        self.n_samples_ = int(blocks.n_rows.sum())
        return self

    def _fit_sample(
        self, model: pgpu.PGPUClassifier, blocks: Blocks, sample: Sample
    ) -> None:
        labels = replace(blocks.labels, labelled=sample.labelled)
        rng = as_generator(model.random_state)
        model._fit(sample.samples, labels, rng, sample.weight)

    def _draw_seed(self) -> int:
        if isinstance(self.random_state, Integral):
            as_generator(self.random_state)  # raises if it is negative
            return int(self.random_state)
        return draw_seed(as_generator(self.random_state))

    def on_one_machine(self) -> pgpu.PGPUClassifier:
        """Return the classifier for data in memory with the same parameters.

        Returns
        -------
        probgap.PGPUClassifier
            Unfitted; after ``fit``, with the seed that was used. If all rows were drawn, it
            gives the same results.
        """
        parameters = self.get_params(deep=False)
        del parameters["max_memory"]
        if hasattr(self, "seed_") and not isinstance(self.random_state, Integral):
            parameters["random_state"] = self.seed_
        return pgpu.PGPUClassifier(**parameters)

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
        model = _pack(self.model_)
        if hasattr(X, "map_partitions"):
            meta = _predict_frame(X._meta, b"", method, empty, self.classes_)
            return X.map_partitions(
                _predict_frame, model, method, empty, self.classes_, meta=meta
            )
        X = X.rechunk({1: -1})
        form: dict[str, Any] = {"drop_axis": 1}
        if empty.ndim == 2:
            form = {"chunks": (X.chunks[0], (2,))}
        return X.map_blocks(_predict, model, method, empty, dtype=empty.dtype, **form)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _pack(model: pgpu.PGPUClassifier) -> bytes:
    """Serialise only what predictions need, so that the graph stays small."""
    slim = copy.copy(model)
    if hasattr(slim.estimator_, "held_out_"):
        slim.estimator_ = copy.copy(slim.estimator_)
        del slim.estimator_.held_out_
    # If two posteriors are averaged, one of them is read off the gap.
    for name in _OF_ROWS if model.averages_ else _OF_ROWS | _OF_GAP:
        delattr(slim, name)
    return zlib.compress(pickle.dumps(slim), level=1)


@lru_cache(maxsize=4)  # once for all blocks of a worker
def _unpack(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))


def _predict(
    block: Any, model: bytes, method: str, empty: NDArray[Any]
) -> NDArray[Any]:
    if block.shape[0] == 0:
        return empty
    return getattr(_unpack(model), method)(block)


def _predict_frame(
    frame: Any, model: bytes, method: str, empty: NDArray[Any], classes: NDArray[Any]
) -> Any:
    pd = load_library("pandas", extra="dask", purpose="dask dataframes")
    found = _predict(frame, model, method, empty)
    if found.ndim == 1:
        return pd.Series(found, index=frame.index, name=method)
    return pd.DataFrame(found, index=frame.index, columns=classes.tolist())
