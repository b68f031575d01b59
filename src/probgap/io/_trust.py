"""What a model file may consist of: each type by its name, and how it may be made.

skops builds an object in a way that the file names (its *loader*): some set attributes,
some call the type with arguments from the file. So a name is trusted with one loader
only, and of functions only those that do nothing but compute.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import numpy as np

_OURS = frozenset(
    {
        "probgap.pgpu._classifier.PGPUClassifier",
        "probgap.pgpu._cv.PGPUClassifierCV",
        "probgap.baselines._elkan_noto.ElkanNotoClassifier",
        "probgap.baselines._liu_tao.LiuTaoClassifier",
        "probgap.baselines._naive.NaiveClassifier",
        "probgap.baselines._natarajan.NatarajanClassifier",
        "probgap.gap._observed.ObservedGapEstimator",
        "probgap._core.features.KernelFeatures",
        "probgap._core.folds.RowFolds",
        "probgap._core.machine.FeatureMachine",
        "probgap._core.svm.RBFMachine",
        "probgap._device._estimators.DeviceMachine",  # before 0.2
        "probgap._device._estimators.DeviceSVM",
        "probgap._device._estimators.DevicePlatt",
        "probgap.boundary.Boundary",
        "probgap.boundary.MeanSmallest",
        "probgap.boundary.Quantile",
        "probgap.relabel.Relabelling",
        "probgap.reweight._matching.KernelMeanMatching",
        "probgap.reweight._problem.KMMResult",
        "probgap.reweight._solvers.KMMResult",  # before 0.2
    }
)

# The learners that are mixed. Forest and Boosting are not among them: what is made of
# trees is stored as arrays (see _stored.py).
_MIXED = frozenset(
    {
        "probgap.gap._mixed.MixedGapEstimator",
        "probgap._core.mixed.MixedClassifier",
        "probgap._core.learners.Mixture",
        "probgap._core.learners.KernelLogistic",
        "probgap._core.learners.LinearLogistic",
        "probgap._core.views.Columns",
        "probgap._core.views.Directions",
        "probgap._core.views.Words",
        "probgap.io._stored.Nodes",
        "probgap.io._stored.StoredBoosting",
        "probgap.io._stored.StoredForest",
        "probgap.reading._curves.Curves",
        "probgap.reading._reading.Reading",
    }
)

# What a table's pipeline is made of, and what often stands beside our classifiers.
# Their compiled parts are looked into after loading (see _parts.py).
_SCIKIT_LEARN = frozenset(
    f"sklearn.{name}"
    for name in (
        "_loss.link.Interval",
        "_loss.link.LogitLink",
        "_loss.loss.HalfBinomialLoss",
        "calibration.CalibratedClassifierCV",
        "calibration._CalibratedClassifier",
        "calibration._SigmoidCalibration",
        "compose._column_transformer.ColumnTransformer",
        "compose._column_transformer._RemainderColsList",  # before 1.7
        "decomposition._pca.PCA",
        "decomposition._truncated_svd.TruncatedSVD",
        "ensemble._forest.ExtraTreesClassifier",
        "ensemble._hist_gradient_boosting.binning._BinMapper",
        "ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",
        "ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "feature_extraction.text.CountVectorizer",
        "feature_extraction.text.HashingVectorizer",
        "feature_extraction.text.TfidfTransformer",
        "feature_extraction.text.TfidfVectorizer",
        "feature_selection._variance_threshold.VarianceThreshold",
        "frozen._frozen.FrozenEstimator",
        "impute._base.MissingIndicator",
        "impute._base.SimpleImputer",
        "kernel_approximation.Nystroem",
        "kernel_approximation.RBFSampler",
        "linear_model._logistic.LogisticRegression",
        "model_selection._split.KFold",
        "model_selection._split.StratifiedKFold",
        "pipeline.FeatureUnion",
        "pipeline.Pipeline",
        "preprocessing._data.MaxAbsScaler",
        "preprocessing._data.MinMaxScaler",
        "preprocessing._data.Normalizer",
        "preprocessing._data.PowerTransformer",
        "preprocessing._data.QuantileTransformer",
        "preprocessing._data.RobustScaler",
        "preprocessing._data.StandardScaler",
        "preprocessing._encoders.OneHotEncoder",
        "preprocessing._function_transformer.FunctionTransformer",
        "preprocessing._label.LabelEncoder",
        "svm._classes.LinearSVC",
        "svm._classes.SVC",
        "tree._classes.ExtraTreeClassifier",
    )
)

# The steps of a table's pipeline. They compute from their argument alone: nothing in this
# list may open, write or run anything.
_FUNCTIONS = frozenset(
    f"probgap.tables._steps.{name}"
    for name in ("bend", "hold", "to_categories", "to_documents", "to_numbers")
)

_SPARSE = frozenset(
    f"scipy.sparse._{kind}.{kind}_{form}"
    for kind in ("csr", "csc")
    for form in ("matrix", "array")
)
_SCALARS = frozenset(
    f"numpy.{kind.__name__}"
    for kind in (np.bool_, np.str_, *np.sctypeDict.values())
    if issubclass(kind, np.bool_ | np.number | np.str_)
)
_PLAIN = frozenset(f"builtins.{name}" for name in ("bool", "float", "int", "str"))

_BY_LOADER: dict[str, Collection[str]] = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "SetNode": {"builtins.set"},
    "TupleNode": {"builtins.tuple"},
    "SliceNode": {"builtins.slice"},
    "TypeNode": _PLAIN | _SCALARS,
    "FunctionNode": _FUNCTIONS,
    # Older versions of skops take sparse arrays for plain objects.
    "ObjectNode": _OURS | _MIXED | _SCIKIT_LEARN | _SPARSE,
    "NdArrayNode": {"numpy.ndarray"} | _SCALARS,
    "MaskedArrayNode": {"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"},
    "DTypeNode": {"numpy.dtype"},
    "RandomGeneratorNode": {"numpy.random._generator.Generator"},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "SparseMatrixNode": _SPARSE,
    # Its constructor is called with arguments from the file: see require_sound.
    "TreeNode": {"sklearn.tree._tree.Tree"},
}


def is_trusted(loader: str, name: str) -> bool:
    """Say whether a thing of this name may be made in this way."""
    if loader == "JsonNode":  # numbers, strings and None; the name is not used
        return True
    if loader == "FunctionNode" and name in _ufuncs():
        return True
    if loader == "LossNode":
        return name == _loss()
    return name in _BY_LOADER.get(loader, ())


@cache
def _ufuncs() -> frozenset[str]:
    # numpy before 2.1 does not say that it is where they live, and skops looks for them.
    return frozenset(
        f"{module}.{name}"
        for name in dir(np)
        if isinstance(getattr(np, name), np.ufunc)
        for module in ("numpy", "numpy._core._multiarray_umath")
    )


@cache
def _loss() -> str:
    """Name the compiled loss of boosted trees, as this scikit-learn calls it."""
    from sklearn._loss._loss import CyHalfBinomialLoss  # noqa: PLC0415 (slow to load)

    return f"{CyHalfBinomialLoss.__module__}.{CyHalfBinomialLoss.__name__}"
