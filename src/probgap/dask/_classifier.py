"""PGPU on dask arrays and dataframes: rows stay in blocks, sums over blocks travel."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from probgap import pgpu
from probgap._core.errors import BoundaryWarning
from probgap._core.estimators import clone_with_seed
from probgap._core.features import landmarks_for_all
from probgap._core.folds import RowFolds
from probgap._core.inputs import check_fit_inputs
from probgap._core.machine import FeatureMachine
from probgap._core.progress import stage
from probgap._core.rng import RandomStateLike, as_generator, draw_seed
from probgap._core.threads import one_thread
from probgap.boundary import Boundary
from probgap.dask import _foreign as foreign
from probgap.dask import _stages as stages
from probgap.dask._lazy import as_lazy_array
from probgap.dask._matching import BlockMatching, match_blocks
from probgap.dask._predict import LazyClassifier
from probgap.dask._rows import BlockRows
from probgap.dask._table import BlockTable, as_blocks, open_table
from probgap.dask._values import BlockValues
from probgap.dask._wrapped import WrappedGap, fit_on_blocks, observed_gap_by
from probgap.gap import LabellingModel, ObservedGapEstimator
from probgap.pgpu._prior import ClassPrior, store_prior
from probgap.pgpu._signs import warn_of_signs

Lazy = Any  # a dask array or dataframe


class PGPUClassifier(LazyClassifier):
    """Classify from positive and unlabelled data in blocks, on one machine or many.

    The algorithm is that of :class:`probgap.PGPUClassifier` for many samples, kernel
    features with boosted trees beside them, and the answer is the same as
    :meth:`on_one_machine` gives, up to rounding, whatever the blocks and the workers.
    The table is never put together: each pass reads a block, makes its kernel values,
    and gives back sums. It rests on the same assumptions, and fails where they fail:
    labels must go by how clear a positive is, and by nothing else.

    Parameters
    ----------
    kernel_features : "auto" or int, default="auto"
        Number of Nystroem landmarks, or as many as one machine takes: 300 to 1000, by
        the square root of the number of rows. Beyond 400,000 rows, where one machine
        cannot use all of them, it goes down again, to 300 from 1.3 million rows on.
        Time grows with it, memory hardly.
    boundary : "auto" or float, default="auto"
        Where the boundary l lies: by the labelling model, or as given, in (-1, 0). With
        a ``gap_estimator``, "auto" is the rule of
        :func:`~probgap.boundary.estimate_boundary` of that name.
    gap_estimator : classifier of dask arrays with predict_proba, default=None
        Estimates P(s=1 | x) in place of the labelling model: one copy for each fold,
        fitted on the rows outside it, and one on all rows. ``fit(X, y)`` and
        ``predict_proba(X)`` get dask arrays of known length, in blocks, and the latter
        must give one; that is tried on 40 rows first, so that nothing brings the table
        to one machine unawares. How much memory its workers need is its own affair:
        ``xgboost.dask.DaskXGBClassifier`` holds the rows it is fitted on in the memory
        of all workers together, and needs a ``dask.distributed.Client``.
    relabelling : {"auto", "expectation", "corollary", "theorem"}, default="auto"
        As in :class:`probgap.PGPUClassifier`.
    reweight : bool, default=True
        Whether to weight what was chosen so that it stands for all rows. Where nothing
        was left out, as by default, the weights are 1.
    upper : float, default=1000.0
        The largest weight. The mean of the weights is 1, without slack.
    estimator : classifier of dask arrays whose fit takes sample_weight, default=None
        The final classifier in place of the kernel machine; likewise, and a row that
        counts as positive in part enters twice, with its shares as weights.
    cv : int or None, default=None
        Number of folds; ``None`` takes five, or as many as there are labelled samples.
    pos_label : object, default=None
        The value of ``y`` that marks a labelled positive. ``None`` takes the greater of
        the two.
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds and landmarks, and estimators whose ``random_state`` is None.
    verbose : int, default=0
        With 1, says on standard error what it is doing.

    Attributes
    ----------
    model_ : probgap.PGPUClassifier
        The fitted classifier for one machine, without what belongs to training rows:
        small, and needs no dask. This is what to save. Classifiers of xgboost.dask
        become ``xgboost.XGBClassifier``, those with ``to_local`` what that gives; others
        are kept as they are and predict what they can predict.
    boundary_ : Boundary
        The boundary, how it came about, how many rows lie on each side, and the
        candidates that were considered with what each scores.
    estimated_class_prior_, estimated_class_prior_interval_ : float, tuple of float
        Share of the rows that are positive, labelled or not, and where it may well lie;
        see Notes of :class:`probgap.PGPUClassifier`.
    estimated_labelling_rate_, estimated_labelling_rate_interval_ : float, tuple of float
        Share of the positives that is labelled, and where that may well lie.
    observed_gap_ : dask array of shape (n_samples,)
        The observed gap of each row, lazy: kept by the workers, as long as the client
        that was there in ``fit``.
    posterior_ : dask array of shape (n_samples,)
        P(Y=1 | x) of each row, likewise.
    seed_ : int
        The seed that was drawn by ``random_state``, or is it.
    kmm_ : BlockMatching or None
        Evidence of kernel mean matching: ``objective``, ``effective_sample_size``,
        ``converged`` and more. None where nothing was to match.
    n_samples_ : int
        Number of rows.
    n_labelled_ : int
        Number of labelled rows.
    n_passes_ : int
        How often the kernel values of all rows were made; what ``gap_estimator`` and
        ``estimator`` read is not counted.
    kept_ : bool
        Whether rows were kept in the workers' memory between passes; else each pass
        read them again.
    classes_ : ndarray of shape (2,)
        The two labels, in ascending order.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where ``X`` is a dataframe.

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
    >>> model = PGPUClassifier(kernel_features=100, random_state=0)
    >>> predicted = model.fit(blocks, da.from_array(s, chunks=250)).predict(blocks)
    >>> bool((predicted.compute() == y_true).mean() > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel_features": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "boundary": [StrOptions({"auto"}), Interval(Real, -1, 0, closed="neither")],
        "gap_estimator": [HasMethods(["fit", "predict_proba"]), None],
        "relabelling": [StrOptions({"auto", "expectation", "corollary", "theorem"})],
        "reweight": ["boolean"],
        "upper": [Interval(Real, 1, None, closed="left")],
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "cv": [Interval(Integral, 2, 127, closed="both"), None],
        "pos_label": "no_validation",
        "random_state": "no_validation",
        "verbose": ["verbose"],
    }

    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        *,
        kernel_features: Literal["auto"] | int = "auto",
        boundary: Literal["auto"] | float = "auto",
        gap_estimator: Any = None,
        relabelling: Literal["auto", "expectation", "corollary", "theorem"] = "auto",
        reweight: bool = True,
        upper: float = 1000.0,
        estimator: Any = None,
        cv: int | None = None,
        pos_label: object = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self.kernel_features = kernel_features
        self.boundary = boundary
        self.gap_estimator = gap_estimator
        self.relabelling = relabelling
        self.reweight = reweight
        self.upper = upper
        self.estimator = estimator
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Lazy, y: Lazy) -> Self:
        """Fit the classifier to blocks of rows.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Samples: numbers, all of them finite. What is in memory is cut into blocks.
        y : dask array or series of shape (n_samples,)
            *Observed* labels, in blocks that go with those of ``X``.

        Returns
        -------
        PGPUClassifier
            The fitted classifier.

        Warns
        -----
        UnreliableFitWarning
            If the data look as if the method cannot work, as for
            :class:`probgap.PGPUClassifier`.
        BoundaryWarning
            If the boundary that was found cannot be used as it stands.
        """
        self._validate_params()
        pos_label = self.pos_label
        if not (hasattr(X, "to_delayed") or hasattr(y, "to_delayed")):
            samples, labels = check_fit_inputs(self, X, y, pos_label, single=True)
            X, y, pos_label = as_blocks(samples, labels)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._try_estimators(X)
        seed = self.seed_ = self._draw_seed()
        with one_thread():
            rng = as_generator(seed)
            # Seeds come in the order in which one machine draws them.
            of_gap, of_folds = draw_seed(rng), seed
            if self.gap_estimator is None:
                of_folds = draw_seed(rng)
            with stage(self.verbose, "a first look at the blocks"):
                table = open_table(X, y, pos_label, self.cv, of_folds)
            gap = self._fit_gap(table, of_gap, rng)
            names = list(getattr(X, "columns", ()))
            if names and all(isinstance(name, str) for name in names):
                self.feature_names_in_ = np.array(names, dtype=object)
            if hasattr(self, "feature_names_in_"):
                gap.model.feature_names_in_ = self.feature_names_in_
            prior = self._learn(table, gap, rng)
        self._warn_if_not_converged()
        warn_of_signs(gap.model, gap.observed_gap, self.boundary_, prior, wrapped=False)
        return self

    def _try_estimators(self, X: Lazy) -> None:
        """Refuse what cannot be fitted on dask arrays, before anything is read."""
        for name in ("gap_estimator", "estimator"):
            estimator = getattr(self, name)
            if estimator is not None and hasattr(X, "to_delayed") and X.ndim == 2:
                weighted = name == "estimator"
                foreign.require_dask_estimator(
                    estimator, name, X.shape[1], weighted=weighted
                )

    def _fit_gap(
        self, table: BlockTable, seed: int, rng: np.random.Generator
    ) -> stages.AnyGap:
        """Step 1: how likely each row is to be labelled."""
        n_landmarks = self.kernel_features
        if isinstance(n_landmarks, str):
            n_landmarks = landmarks_for_all(table.n_rows)
        if self.gap_estimator is not None:
            with stage(self.verbose, "who is labelled"):
                model, observed = observed_gap_by(self.gap_estimator, table, rng)
            with stage(self.verbose, "kernel features"):
                kernel = stages.map_features(table, n_landmarks, draw_seed(rng))
            return WrappedGap(model, observed, BlockRows(table, kernel))
        of_features = draw_seed(as_generator(seed))
        with stage(self.verbose, "kernel features"):
            kernel = stages.map_features(table, n_landmarks, of_features)
        labelling = LabellingModel(
            n_components=n_landmarks, trees=True, forest=False, random_state=seed
        )
        return stages.fit_gap(table, kernel, labelling, of_features, self.verbose)

    def _draw_seed(self) -> int:
        if isinstance(self.random_state, Integral):
            as_generator(self.random_state)  # refuses a negative one
            return int(self.random_state)
        return draw_seed(as_generator(self.random_state))

    def _learn(
        self, table: BlockTable, gap: stages.AnyGap, rng: np.random.Generator
    ) -> ClassPrior:
        """Relabel, match, train: steps 3 to 5, and put the model together."""
        given = None if isinstance(self.boundary, str) else float(self.boundary)
        boundary, posterior = stages.settle(gap, given, rng)
        if boundary.fallback is not None:
            warnings.warn(boundary.fallback, BoundaryWarning, stacklevel=3)
        rule = self.relabelling
        if rule == "auto":
            rule = "expectation" if given is None else "corollary"
        share = stages.share_rows(gap, posterior, boundary, rule)
        weight: BlockValues | None = None
        self.kmm_: BlockMatching | None = None
        chosen = share.map(stages.decided)
        if round(chosen.total()) < table.n_rows:
            weight = chosen.kept()
            if self.reweight:
                with stage(self.verbose, "kernel mean matching"):
                    weight, self.kmm_ = match_blocks(gap, weight, self.upper)
        machine, passes = self._fit_final(gap, share, weight, boundary, rng)
        with stage(self.verbose, "how many are positive"):
            asked = stages.ask(machine, table, posterior, self.estimator)
            if given is not None and self.gap_estimator is not None:
                prior = stages.read_prior(gap.observed_gap)
            else:
                seed = draw_seed(rng)
                prior = stages.find_prior(gap, posterior, boundary, asked, seed)
        self._store(table, gap, posterior, machine)
        self.model_.slope_ = asked.slope
        self.boundary_ = self.model_.boundary_ = boundary
        for estimator in (self, self.model_):
            store_prior(estimator, prior)
        self.n_passes_ = gap.rows.passes + passes
        if self.kmm_ is not None:
            self.n_passes_ += self.kmm_.n_passes
        return prior

    def _fit_final(
        self,
        gap: stages.AnyGap,
        share: BlockValues,
        weight: BlockValues | None,
        boundary: Boundary,
        rng: np.random.Generator,
    ) -> tuple[Any, int]:
        """Step 5: the final classifier, and passes with kernel values."""
        if self.estimator is not None:
            estimator = clone_with_seed(self.estimator, rng)
            with stage(self.verbose, "final classifier"):
                decided = share.map(stages.decided)
                return fit_on_blocks(estimator, share, decided, weight), 0
        table, seed = share.table, draw_seed(rng)
        machine = FeatureMachine(
            n_components=len(gap.rows.kernel.landmarks), random_state=seed
        )
        if weight is None and boundary.rule == "auto":
            apart = boundary.separability
            machine.C = stages.find_penalty(table, share, seed, apart)
        target = share.map(stages.without_nan).kept()
        if weight is not None and not stages.both_classes(target, weight):
            weight = share.map(stages.decided)
        kernel = gap.rows.kernel
        rows = BlockRows(table, kernel, target, weight, gap.rows.column)
        with stage(self.verbose, "final classifier"):
            machine.fit_on_rows(rows, gap.feature_map)
        return machine, rows.passes

    def _store(
        self,
        table: BlockTable,
        gap: stages.AnyGap,
        posterior: BlockValues,
        machine: Any,
    ) -> None:
        labels = table.overview.labels
        model = pgpu.PGPUClassifier(
            kernel_features=len(gap.rows.kernel.landmarks),
            boundary=self.boundary,
            gap_estimator=foreign.unfitted_in_memory(self.gap_estimator),
            relabelling=self.relabelling,
            reweight=self.reweight,
            upper=self.upper,
            slack=0.0,
            estimator=foreign.unfitted_in_memory(self.estimator),
            pos_label=self.pos_label,
        )
        model.gap_estimator_, model.estimator_ = gap.model, machine
        model.classes_, model.positive_index_ = labels.classes, labels.positive
        model.n_features_in_ = table.overview.n_columns
        model.n_labelled_ = table.n_labelled
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        self.model_, self.kept_ = model, table.kept
        self.classes_, self.n_labelled_ = labels.classes, table.n_labelled
        self.n_features_in_, self.n_samples_ = model.n_features_in_, table.n_rows
        self.observed_gap_ = as_lazy_array(gap.observed_gap)
        self.posterior_ = as_lazy_array(posterior)

    def _warn_if_not_converged(self) -> None:
        gap = self.model_.gap_estimator_
        if isinstance(gap, LabellingModel) and not gap.converged_:
            warnings.warn(
                f"The labelling model stopped after {gap.n_iter_} iterations without "
                "converging. Scale the features.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def on_one_machine(self) -> pgpu.PGPUClassifier:
        """Give the classifier that gives the same answer to data in memory.

        Returns
        -------
        probgap.PGPUClassifier
            Unfitted, with the same parameters and seed. With ``kernel_features="auto"``
            it has exact kernels up to 6000 rows, and so another answer, unless this
            classifier was fitted before and so knows the number of landmarks.
            Classifiers of xgboost.dask become ``xgboost.XGBClassifier``, whose trees
            differ a little: workers cut features by sketches. Others are kept as they
            are.
        """
        features: Literal["auto", "exact"] | int = self.kernel_features
        if features == "auto" and hasattr(self, "model_"):
            features = self.model_.kernel_features
        gap: Any = "labelling"
        boundary: Any = self.boundary
        seed = getattr(self, "seed_", None)
        if seed is None or isinstance(self.random_state, Integral):
            seed = self._draw_seed()
        if self.gap_estimator is not None:
            folds = RowFolds(5 if self.cv is None else self.cv, seed)
            own = foreign.unfitted_in_memory(self.gap_estimator)
            gap = ObservedGapEstimator(own, cv=folds)
            boundary = "gaps" if boundary == "auto" else boundary
        return pgpu.PGPUClassifier(
            gap_estimator=gap,
            kernel_features=features,
            boundary=boundary,
            relabelling=self.relabelling,
            reweight=self.reweight,
            upper=self.upper,
            slack=0.0,
            estimator=foreign.unfitted_in_memory(self.estimator),
            cv=self.cv,
            pos_label=self.pos_label,
            random_state=seed,
        )
