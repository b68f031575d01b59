"""PGPU on dask arrays and dataframes: fit on a sample of rows, predict all."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from probgap import pgpu
from probgap._core.checks import check_fit_inputs
from probgap._core.defaults import DEFAULTS
from probgap._core.errors import InvalidInputError, load_library
from probgap._core.runtime import RandomStateLike, as_generator, draw_seed, stage
from probgap._core.validation import DEFAULT_FOLDS, RowFolds
from probgap.boundary import BoundaryRule
from probgap.dask._estimators import AllRows, in_memory, is_made_for_dask
from probgap.dask._predict import LazyClassifier
from probgap.dask.blocks import Blocks, Sample, as_blocks, draw_sample, open_blocks
from probgap.dask.engine import Lazy
from probgap.gap import ObservedGapEstimator
from probgap.pgpu.base import BasePGPU, ClassPriorMixin
from probgap.pgpu.steps import Steps
from probgap.reweight import KernelMeanMatching


class PGPUClassifier(ClassPriorMixin, LazyClassifier):
    """Classify from positive and unlabelled data in blocks, on one machine or many.

    One pass over the blocks checks every value and draws a sample: all labelled rows, and
    as many others as ``max_memory`` holds, weighted to represent all.
    :class:`probgap.PGPUClassifier` is fitted to the sample, and all rows are predicted
    lazily, block by block. The sample depends only on the order of the rows and on
    ``random_state``: results are the same for any blocks and any workers and, if all rows
    fit, those of :class:`probgap.PGPUClassifier`. The assumptions are the same.

    Classifiers made for dask, such as ``xgboost.dask.DaskXGBClassifier``, are fitted to
    all rows.

    Parameters
    ----------
    boundary, class_prior : object
        As in :class:`probgap.PGPUClassifier`.
    gap_estimator : classifier with predict_proba, default=None
        Estimates P(s=1 | x). One made for dask is fitted on all rows, out of fold:
        ``fit(X, y)`` and ``predict_proba(X)`` get dask arrays of known length, and the
        latter must return one. A classifier counts as made for dask if it, or a class it
        inherits from, comes from a module with "dask" in its name: ``xgboost.dask``,
        ``lightgbm.dask``, ``dask_ml``. The memory of its workers is not limited here.
    relabelling, keep_labelled : object
        As in :class:`probgap.PGPUClassifier`.
    reweight : KernelMeanMatching or None, default=None
        How to weight the chosen samples; not with an ``estimator`` made for dask.
    estimator : classifier whose fit takes sample_weight, default=None
        The final classifier. One made for dask is fitted on all rows, if
        ``gap_estimator`` is made for dask, too: a row with a soft label enters twice, as
        a positive and as a negative, with the two shares as weights.
    device : str, default=None
        torch's name of a device to solve on.
    cv : int, splitter or None, default=None
        Folds for held-out gaps; an integer or None for a ``gap_estimator`` made for dask.
    pos_label, random_state, n_jobs, verbose : object
        As in :class:`probgap.PGPUClassifier`.
    max_memory : float, default=64e6
        Bytes that the rows drawn may take, in double precision. If the labelled rows would
        take more than half of it, they are sampled, too, with a warning. A fit takes about
        twenty times as much.

    Attributes
    ----------
    model_ : probgap.PGPUClassifier
        The fitted in-memory classifier; needs no dask. This is what to save. Its
        attributes about training samples are about the rows drawn. Classifiers of
        xgboost.dask become ``xgboost.XGBClassifier``, those with ``to_local`` what that
        returns; others are kept as they are.
    sample_rows_ : ndarray of shape (n_drawn,)
        Indices of the rows drawn.
    seed_ : int
        The seed: ``random_state`` if that is an integer, or else drawn from it.
    n_samples_ : int
        Number of rows.
    reading_, boundary_, n_labelled_, classes_, n_features_in_, feature_names_in_ : object
        As in :class:`probgap.PGPUClassifier`, counted over all rows, like
        ``estimated_class_prior_``, ``estimated_labelling_rate_`` and their intervals.

    See Also
    --------
    probgap.PGPUClassifier : The same for what fits into memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from probgap.dask import PGPUClassifier
    >>> from probgap.datasets import hide_labels, make_square
    >>> X, y_true, posterior = make_square(1000, random_state=0)
    >>> s = hide_labels(X, y_true, 2 * posterior - 1, ("linear", 0.6), random_state=1)
    >>> blocks = da.from_array(X, chunks=(250, 2))
    >>> model = PGPUClassifier(random_state=0).fit(blocks, da.from_array(s, chunks=250))
    >>> bool((model.predict(blocks).compute() == y_true).mean() > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BasePGPU._parameter_constraints,
        "boundary": "no_validation",  # checked by check_rule
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
        max_memory: float = float(DEFAULTS.sample_bytes),
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

        Warns
        -----
        UnreliableFitWarning
            If the method may not work on the data, as for :class:`probgap.PGPUClassifier`.
        BoundaryWarning
            If the boundary that was found had to be moved.
        ProbgapWarning
            If labelled rows had to be sampled, too.
        """
        self._validate_params()
        self._check_estimators()
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
        samples = model._in_double(sample.samples)
        steps = self._choose_steps(model, blocks, sample)
        rng = as_generator(model.random_state)
        model._fit_checked(samples, labels, steps, rng, sample.weight)

    def _choose_steps(
        self, model: pgpu.PGPUClassifier, blocks: Blocks, sample: Sample
    ) -> Steps:
        steps = model._choose_steps(len(sample.samples))
        if not is_made_for_dask(self.gap_estimator):
            return steps
        smaller = blocks.smaller_group
        if self.cv is not None and smaller < self.cv:
            msg = (
                f"y must hold at least {self.cv} labelled and as many unlabelled samples, "
                f"one for each fold. Got {smaller} of one kind."
            )
            raise InvalidInputError(msg)
        folds = self._folds(min(smaller, DEFAULT_FOLDS))
        rows = AllRows(blocks, folds, sample.rows, steps.rule)
        gap = ObservedGapEstimator(self.gap_estimator)
        steps = replace(steps, gap=gap, fit_gap=rows.fit_gap)
        if is_made_for_dask(self.estimator):
            steps = replace(steps, final=self.estimator, fit_final=rows.fit_final)
        return steps

    def _check_estimators(self) -> None:
        """Refuse estimators made for dask with parameters that they do not support."""
        gap_on_all = is_made_for_dask(self.gap_estimator)
        final_on_all = is_made_for_dask(self.estimator)
        msg = ""
        if gap_on_all and not (self.cv is None or isinstance(self.cv, Integral)):
            msg = (
                "cv must be an integer or None with a gap_estimator made for dask. "
                f"Got {self.cv!r}."
            )
        elif final_on_all and not gap_on_all:
            msg = (
                "estimator must come with a gap_estimator made for dask, if it is made for "
                f"dask itself. Got {self.gap_estimator!r} beside {self.estimator!r}."
            )
        elif final_on_all and self.reweight is not None:
            msg = (
                "reweight must be None with an estimator made for dask: weights are found "
                f"for rows in memory. Got {self.reweight!r}."
            )
        if msg:
            raise InvalidInputError(msg)

    def _folds(self, usual: int) -> RowFolds:
        return RowFolds(usual if self.cv is None else int(self.cv), self.seed_)

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
            gives the same results. Classifiers of xgboost.dask become
            ``xgboost.XGBClassifier``, whose trees differ slightly: on dask, split points
            come from quantile sketches.
        """
        parameters = self.get_params(deep=False)
        del parameters["max_memory"]
        if hasattr(self, "seed_") and not isinstance(self.random_state, Integral):
            parameters["random_state"] = self.seed_
        if is_made_for_dask(self.gap_estimator):
            cv = self._folds(DEFAULT_FOLDS) if hasattr(self, "seed_") else self.cv
            own = in_memory(self.gap_estimator)
            parameters["gap_estimator"] = ObservedGapEstimator(own, cv=cv)
        parameters["estimator"] = in_memory(self.estimator)
        return pgpu.PGPUClassifier(**parameters)
