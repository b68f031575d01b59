"""The parts that a model file may hold: the trusted set, in the words of files.

A file names our classes as ``PARTS`` does, and others by the path that users import them
from, so that a private module may move. To add a class, add a line; to rename a class,
leave its name here as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import issparse

from probgap._core.folds import RowFolds
from probgap._core.kernels import KernelFeatures
from probgap._core.learners import KernelLogistic, LinearLogistic
from probgap._core.mixture import MixedClassifier, Mixture
from probgap._core.svm import FastSVC, NystroemSVM
from probgap._core.views import Columns, Directions, Words
from probgap._device.estimators import DevicePlatt, DeviceSVM
from probgap.baselines import (
    ElkanNotoClassifier,
    LiuTaoClassifier,
    NaiveClassifier,
    NatarajanClassifier,
)
from probgap.boundary import Boundary, MeanSmallest, Quantile
from probgap.gap import MixedGapEstimator, ObservedGapEstimator
from probgap.io._trees import StoredBoosting, StoredForest, Trees
from probgap.pgpu import PGPUClassifier, PGPUClassifierCV
from probgap.reading import Reading
from probgap.reading.network import Curves
from probgap.relabel import Relabelling
from probgap.reweight import KernelMeanMatching, KMMResult

PARTS: dict[str, type] = {
    # What users fit, and its settings.
    "PGPUClassifier": PGPUClassifier,
    "PGPUClassifierCV": PGPUClassifierCV,
    "ElkanNotoClassifier": ElkanNotoClassifier,
    "LiuTaoClassifier": LiuTaoClassifier,
    "NaiveClassifier": NaiveClassifier,
    "NatarajanClassifier": NatarajanClassifier,
    "ObservedGapEstimator": ObservedGapEstimator,
    "MixedGapEstimator": MixedGapEstimator,
    "MeanSmallest": MeanSmallest,
    "Quantile": Quantile,
    "KernelMeanMatching": KernelMeanMatching,
    "RowFolds": RowFolds,
    # What they found.
    "Boundary": Boundary,
    "Relabelling": Relabelling,
    "KMMResult": KMMResult,
    "Reading": Reading,
    "Curves": Curves,
    # What they predict by.
    "MixedClassifier": MixedClassifier,
    "Mixture": Mixture,
    "Columns": Columns,
    "Directions": Directions,
    "Words": Words,
    "KernelFeatures": KernelFeatures,
    "KernelLogistic": KernelLogistic,
    "LinearLogistic": LinearLogistic,
    "Forest": StoredForest,
    "Boosting": StoredBoosting,
    "Trees": Trees,
    "SVM": FastSVC,
    "FeatureSVM": NystroemSVM,
    "DeviceSVM": DeviceSVM,
    "DevicePlatt": DevicePlatt,
}
# What fields of parts must be, in the language of ``misfit``; "+" adds to another's rules.
_TEXT = """
fitted = n_features_in_: whole d; classes_: any 2; estimator_.classes_: any 2 | other;
    estimator_ gap_estimator_: fed
classifier = +fitted; positive_index_: whole 0..1; sample_weight_: float n 0.. | None;
    observed_gap_: float n -1..1 | None; posterior_: float n 0..1 | None
PGPUClassifier = +classifier; observed_gap_: float n; reading_: Reading | None;
    estimator_.held_out_ gap_estimator_.observed_gap_: float n | None;
    relabelling_.labels: int n | None
PGPUClassifierCV = +PGPUClassifier
ElkanNotoClassifier = +classifier
LiuTaoClassifier = +classifier
NaiveClassifier = +classifier
NatarajanClassifier = +classifier
ObservedGapEstimator = +classifier; observed_gap_: float n
MixedGapEstimator = +classifier; observed_gap_ log_odds_: float n; mixture_: Mixture
Boundary = value: number; spread: number 0..
Relabelling = labels: int n -1..1; positive_share: float? n 0..1
KMMResult = weights: float n 0..
Reading = boundary class_prior strangeness slope offset: number;
    n_hidden n_labelled n_unlabelled: number 0..; curves: Curves; scores: float scores;
    class_prior_interval n_hidden_interval: interval
Curves = weights: shares k; ceiling share: float k 0..1; middle: float 2 k;
    width: float 2 k >0; spread: float k >0; shift: float k
MixedClassifier = +fitted; mixture_: Mixture; held_out_: float n
Mixture = view: Columns | Directions | Words | None; learners: learners;
    weights: float k 0..; intercept: number
Columns = centre: float d; scale: float d >0
Directions = scale: float d >0; offset: float c; basis: float d c
Words = counts: flag; factor: float d; basis: float d c
KernelFeatures = landmarks: float m d | sparse m d; gamma: number >0; rotation: float m r
KernelLogistic = features: KernelFeatures; features.landmarks: float m d;
    scale: float d >0; coef: float r; intercept: number
LinearLogistic = coef: float d; intercept: number
Forest = n_features: whole d; nodes: trees; frequency: number 0..1;
    margin: number >0..0.49
Boosting = n_features: whole d; nodes: trees; n_rounds: rounds;
    baseline: float64 models; margin: number >0..0.49
Trees = is_leaf: bool nodes; feature: int32 inner*; threshold: float64 inner* -inf..inf;
    missing_left: bool inner*; value: float64 leaves
FeatureSVM = +fitted; feature_map_: KernelFeatures; coef_: float r; intercept_: number
DeviceSVM = +fitted; support_vectors_: float v d; dual_coef_: float 1 v;
    intercept_: float 1; gamma_: number >0
DevicePlatt = slope offset: number
libsvm = n_features_in_: whole d; support_vectors_: float v d | sparse v d;
    _dual_coef_ dual_coef_: float c v | sparse c v; support_: int v; _n_support: int k 0..;
    _intercept_ intercept_: float p; _probA _probB: float q*; classes_: any k;
    _gamma: number 0..
scikit-learn = n_features_in_: whole d | None; coef_ components_: float k d | other;
    intercept_ random_offset_: float k | other; random_weights_: float d k | other;
    normalization_: float k k | other; quantiles_: float? q d | other; a_ b_: number | None;
    center_ lambdas_ mean_ min_ scale_ statistics_ var_: any d | other
"""
RULES = dict(
    text.split(" = ") for text in _TEXT.replace("\n    ", " ").strip().split("\n")
)
# Steps of a table's pipeline, and where they are. They compute from their argument alone:
# nothing in this list may open, write or run anything.
STEPS = dict.fromkeys(
    (
        "bend",
        "hold",
        "name_dates",
        "to_categories",
        "to_dates",
        "to_documents",
        "to_numbers",
    ),
    "probgap.tables._steps",
)
# What a table's pipeline is made of, and what often stands beside our classifiers. Scalers
# and imputers can have learnt that a column has no value.
SCIKIT_LEARN = frozenset(
    f"sklearn.{module}.{name}"
    for module, names in {
        "_loss.link": "Interval LogitLink",
        "_loss.loss": "HalfBinomialLoss",
        "calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration",
        "compose": "ColumnTransformer",
        "compose._column_transformer": "_RemainderColsList",  # before 1.7
        "decomposition": "PCA TruncatedSVD",
        "ensemble": "ExtraTreesClassifier HistGradientBoostingClassifier",
        "ensemble._hist_gradient_boosting.binning": "_BinMapper",
        "ensemble._hist_gradient_boosting.predictor": "TreePredictor",
        "feature_extraction.text": "CountVectorizer HashingVectorizer TfidfTransformer "
        "TfidfVectorizer",
        "feature_selection": "VarianceThreshold",
        "frozen": "FrozenEstimator",
        "impute": "MissingIndicator SimpleImputer",
        "kernel_approximation": "Nystroem RBFSampler",
        "linear_model": "LogisticRegression",
        "model_selection": "KFold StratifiedKFold",
        "pipeline": "FeatureUnion Pipeline",
        "preprocessing": "FunctionTransformer LabelEncoder MaxAbsScaler MinMaxScaler "
        "Normalizer OneHotEncoder PowerTransformer QuantileTransformer RobustScaler "
        "StandardScaler",
        "svm": "LinearSVC SVC",
        "tree": "ExtraTreeClassifier",
    }.items()
    for name in names.split()
)
_SPARSE = {f"scipy.sparse.cs{k}_{form}" for k in "rc" for form in ("matrix", "array")}
_SCALARS = {
    f"numpy.{kind.__name__}"
    for kind in (np.bool_, np.str_, *np.sctypeDict.values())
    if issubclass(kind, np.bool_ | np.number | np.str_)
}
# skops builds a thing in a way that the file names: some set attributes, some call the
# type with arguments from the file. So a name is trusted with one of them only.
_TRUSTED = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "SetNode": {"builtins.set"},
    "TupleNode": {"builtins.tuple"},
    "SliceNode": {"builtins.slice"},
    "TypeNode": {f"builtins.{n}" for n in ("bool", "float", "int", "str")} | _SCALARS,
    "FunctionNode": {f"probgap.{name}" for name in STEPS}
    | {f"numpy.{n}" for n in dir(np) if isinstance(getattr(np, n), np.ufunc)},
    "ObjectNode": {f"probgap.{name}" for name in PARTS} | SCIKIT_LEARN | _SPARSE,
    "NdArrayNode": {"numpy.ndarray"} | _SCALARS,
    "MaskedArrayNode": {"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"},
    "DTypeNode": {"numpy.dtype"},
    "RandomGeneratorNode": {"numpy.random.Generator"},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "SparseMatrixNode": _SPARSE,
    "TreeNode": {"sklearn.tree._tree.Tree"},
}


def is_trusted(loader: str, name: str) -> bool:
    """Return whether a thing of this name may be made in this way."""
    if loader == "LossNode":
        return name == _compiled_loss()
    # Of numbers, strings and None, the name is not used.
    return loader == "JsonNode" or name in _TRUSTED.get(loader, ())


@cache
def _compiled_loss() -> str:
    """Return the loss of boosted trees, as this scikit-learn calls it."""
    from sklearn._loss._loss import CyHalfBinomialLoss  # noqa: PLC0415 (slow to load)

    return f"{CyHalfBinomialLoss.__module__}.{CyHalfBinomialLoss.__name__}"


def public_name(loader: str, module: str, name: str) -> str:
    """Return a name as users import it, where that is trusted, and else as it is."""
    path = module.split(".")
    private = next((k for k, word in enumerate(path) if word[:1] == "_"), len(path))
    public = ".".join([*path[:private], name])
    return public if is_trusted(loader, public) else f"{module}.{name}"


# The language of the table. Sizes of arrays have names: where one occurs again in an
# object or in a part of it, it must be the same.
Sizes = dict[str, int]


def misfit(thing: object, rules: str, sizes: Sizes) -> str:
    """Return the first field that is not as the rules say, "" if all are.

    A rule is "fields: form", or several forms with "|" between them. Forms are "float n d"
    for a matrix of finite numbers, "float? n" for a vector that may have gaps, "bool n*"
    for one that may be empty, "float n >0" and "float n 0..1" for vectors within bounds,
    "number 0.." for a single one, "whole n" for one of the sizes, the name of a part, or
    a word below.
    """
    for clause in filter(None, rules.split(";")):
        names, _, forms = clause.partition(":")
        if not forms:
            wrong = misfit(thing, RULES[clause.strip(" +")], sizes)
            if wrong:
                return wrong
        for name in names.split() if forms else ():
            value: Any = thing
            for attribute in name.split("."):
                value = getattr(value, attribute, None)
            if not any(_has_form(value, f.split(), sizes) for f in forms.split("|")):
                return name
    return ""


def _has_form(value: Any, words: list[str], sizes: Sizes) -> bool:
    kind, *names = words
    if kind in PARTS:
        return type(value) is PARTS[kind] and not misfit(value, RULES[kind], sizes)
    if kind in _WORDS:
        return bool(_WORDS[kind](value, names, sizes))
    bound = names.pop() if names and set(names[-1]) & set(">.") else ""
    if kind == "number":
        known = isinstance(value, float | int) and not isinstance(value, bool)
    elif kind == "whole":
        known = type(value) is int and value < 2**31
        known = known and all(_agree([name], (value,), sizes) for name in names)
    else:
        broad = {"float": "f", "float?": "f", "int": "i", "any": "biufOSUT"}
        known = type(value) is np.ndarray and _agree(names, value.shape, sizes)
        known = known and (
            value.dtype.kind in broad[kind] if kind in broad else value.dtype == kind
        )
    if not known or kind == "any":
        return known
    least, _, most = bound.lstrip(">").partition("..")
    low, high = float(least or -np.inf), float(most or np.inf)
    within = (value > low if bound[:1] == ">" else value >= low) & (value <= high)
    if "inf" not in bound:
        within &= np.isfinite(value)
    return bool(np.all(within | np.isnan(value) if kind[-1] == "?" else within))


def _agree(names: list[str], shape: tuple[int, ...], sizes: Sizes) -> bool:
    return len(names) == len(shape) and all(
        size == (int(name) if name.isdigit() else sizes.setdefault(name, size))
        and (size > 0 or name.endswith("*"))
        for name, size in zip(names, shape, strict=True)
    )


def _learners(value: Any, _: list[str], sizes: Sizes) -> bool:
    """Judge learners: trees follow indices of columns, however many a view gives them."""
    width = sizes.get("c", sizes.get("d"))
    for learner in value:
        own = {} if width is None else {"d": width}
        names = ("KernelLogistic", "LinearLogistic", "Forest", "Boosting")
        if not any(_has_form(learner, [name], own) for name in names):
            return False
        width = own["d"]
    sizes.setdefault("d", width or 0)
    return type(value) is tuple and _agree(["k"], (len(value),), sizes)


def _trees(value: Any, _: list[str], sizes: Sizes) -> bool:
    sizes["trees"] = value.count(sizes["d"]) if _has_form(value, ["Trees"], {}) else 0
    return sizes["trees"] > 0


def _rounds(value: Any, _: list[str], sizes: Sizes) -> bool:
    counts = type(value) is tuple and all(type(n) is int and n > 0 for n in value)
    return (
        counts
        and sum(value) == sizes["trees"]
        and _agree(["models"], (len(value),), sizes)
    )


def _sparse(value: Any, names: list[str], sizes: Sizes) -> bool:
    known = issparse(value) and _agree(names, value.shape, sizes)
    return known and bool(np.isfinite(value.data).all())


def _shares(value: Any, names: list[str], sizes: Sizes) -> bool:
    known = _has_form(value, ["float", *names, "0.."], sizes)
    return known and bool(abs(value.sum() - 1.0) < 1e-6)


def _interval(value: Any, _: list[str], sizes: Sizes) -> bool:
    known = type(value) is tuple and len(value) == 2
    return known and all(_has_form(end, ["number"], sizes) for end in value)


_WORDS: dict[str, Callable[[Any, list[str], Sizes], bool]] = {
    "None": lambda value, *_: value is None,
    "other": lambda value, *_: not isinstance(value, np.ndarray),
    "flag": lambda value, *_: type(value) is bool,
    # An estimator, if any, expects the columns that its owner has.
    "fed": lambda v, _, sizes: getattr(v, "n_features_in_", sizes["d"]) == sizes["d"],
    "interval": _interval,
    "learners": _learners,
    "rounds": _rounds,
    "shares": _shares,
    "sparse": _sparse,
    "trees": _trees,
}
