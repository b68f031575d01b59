"""The parts that a model file may hold: trusted types, and rules for their fields.

A file names our classes without their modules, and others by the path that users import
them from, so that a private module may move. To add a class, add its name and its rules.
"""

from __future__ import annotations

import numpy as np
from sklearn._loss._loss import CyHalfBinomialLoss

from probgap import active, baselines, boundary, gap, pgpu, reading, relabel, reweight
from probgap._core import kernels, learners, mixture, svm, validation, views
from probgap._device import estimators as device
from probgap.io import _trees as trees
from probgap.reading import network

PARTS: dict[str, type] = {
    name: getattr(module, name)
    for module, names in {
        # What users fit, its settings, and what it found.
        pgpu: "PGPUClassifier PGPUClassifierCV",
        baselines: "ElkanNotoClassifier LiuTaoClassifier NaiveClassifier "
        "NatarajanClassifier",
        gap: "MixedGapEstimator ObservedGapEstimator",
        boundary: "Boundary MeanSmallest Quantile",
        reweight: "KernelMeanMatching KMMResult",
        relabel: "Relabelling",
        reading: "Reading",
        network: "Curves",
        active: "Answers Belief CorrectedClassifier Points",
        # What predictions are made by.
        validation: "RowFolds",
        kernels: "KernelFeatures",
        learners: "KernelLogistic LinearLogistic",
        mixture: "MixedClassifier Mixture",
        views: "Columns Directions Words",
        trees: "Boosting Forest Trees",
        device: "DevicePlatt DeviceSVM",
    }.items()
    for name in names.split()
} | {"SVM": svm.FastSVC, "FeatureSVM": svm.NystroemSVM}
# What fields of parts must be, in the language of ``_checks``; "+" adds to another's rules.
_TEXT = """
fitted = n_features_in_: whole d; classes_: any 2; estimator_.classes_: any 2 | other;
    estimator_ gap_estimator_: fed
classifier = +fitted; positive_index_: whole 0..1; sample_weight_: float n 0.. | None;
    observed_gap_: float n -1..1 | None; posterior_: float n 0..1 | None
PGPUClassifier PGPUClassifierCV = +classifier; observed_gap_: float n; reading_: Reading | None;
    estimator_.held_out_ gap_estimator_.observed_gap_: float n | None;
    relabelling_.labels: int n | None
ElkanNotoClassifier LiuTaoClassifier NaiveClassifier NatarajanClassifier = +classifier
ObservedGapEstimator = +classifier; observed_gap_: float n
MixedGapEstimator = +classifier; observed_gap_ log_odds_: float n; mixture_: Mixture
Boundary = value: number; spread: number 0..
Relabelling = labels: int n -1..1; positive_share: float? n 0..1
KMMResult = weights: float n 0..
Reading = boundary class_prior strangeness slope offset: number;
    n_hidden n_labelled n_unlabelled: number 0..; curves: Curves; scores: float scores;
    class_prior_interval n_hidden_interval: tuple 2 number
Curves = weights: float k 0..; ceiling share: float k 0..1; middle: float 2 k;
    width: float 2 k >0; spread: float k >0; shift: float k
MixedClassifier = +fitted; mixture_: Mixture; held_out_: float n
Mixture = view: Columns | Directions | Words | None; learners: tuple k learner;
    weights: float k 0..; intercept: number
Columns = centre: float d; scale: float d >0
Directions = scale: float d >0; offset: float c; basis: float d c
Words = counts: flag; factor: float d; basis: float d c
KernelFeatures = landmarks: matrix m d; gamma: number >0; rotation: float m r
KernelLogistic = features: KernelFeatures; features.landmarks: float m d;
    scale: float d >0; coef: float r; intercept: number
LinearLogistic = coef: float d; intercept: number
Forest = n_features: whole d; nodes: Trees; frequency: number 0..1;
    margin: number >0..0.49
Boosting = n_features: whole d; nodes: Trees; n_rounds: tuple models whole >0;
    baseline: float64 models; margin: number >0..0.49
Trees = is_leaf: bool nodes; feature: int32 inner*; threshold: float64 inner* -inf..inf;
    missing_left: bool inner*; value: float64 leaves
FeatureSVM = +fitted; feature_map_: KernelFeatures; coef_: float r; intercept_: number
DeviceSVM = +fitted; support_vectors_: float v d; dual_coef_: float 1 v;
    intercept_: float 1; gamma_: number >0
CorrectedClassifier = belief: Belief
Belief = gamma: number 0..; answers: Answers
Answers = points: Points; dual: float n; root: float n >0; factor: float n n
Points = samples: matrix n d; score: float n
DevicePlatt = slope offset: number
BaseLibSVM = n_features_in_: whole d; support_vectors_: matrix v d; classes_: any 2;
    _dual_coef_ dual_coef_: matrix 1 v; support_: int v; _n_support: int 2 0..;
    _intercept_ intercept_: float 1; _probA _probB: float q*; _gamma: number 0..
BaseDecisionTree = n_features_in_ tree_.n_features: whole d;
    n_outputs_ tree_.n_outputs: whole o; tree_.max_n_classes: whole c;
    tree_.value: float nodes o c
BaseForest = n_features_in_: whole d; n_outputs_: whole o
BaseHistGradientBoosting = n_features_in_: whole d
_CalibratedClassifier = classes: any 2; calibrators: tuple 1 other
scikit-learn = n_features_in_: whole d | None; coef_ components_: float k d | other;
    intercept_ random_offset_: float k | other; random_weights_: float d k | other;
    normalization_: float k k | other; quantiles_: float? q d | other; a_ b_: number | None;
    center_ lambdas_ mean_ min_ scale_ statistics_ var_: any d | other
"""
RULES = {
    name: rules
    for names, rules in (
        row.split(" = ") for row in _TEXT.replace("\n    ", " ").strip().split("\n")
    )
    for name in names.split()
}
# Steps of a table's pipeline. They compute from their argument alone: nothing in this list
# may open, write or run anything.
MODULE_OF_STEPS = "probgap.tables._steps"
_STEP_NAMES = "bend hold name_dates to_categories to_dates to_documents to_numbers"
STEPS = frozenset(_STEP_NAMES.split())
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
# The file names the loader by which skops builds an object: some set attributes, some call
# the type with arguments from the file. So a name is trusted with one loader only.
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
    # Its module is not called the same in all versions of scikit-learn.
    "LossNode": {f"{CyHalfBinomialLoss.__module__}.{CyHalfBinomialLoss.__name__}"},
}


def is_trusted(loader: str, name: str) -> bool:
    """Return whether a type of this name may be built by this loader."""
    # Numbers, strings and None are built without their name.
    return loader == "JsonNode" or name in _TRUSTED.get(loader, ())


def public_name(loader: str, module: str, name: str) -> str:
    """Return a name as users import it, where that is trusted, and else as it is."""
    path = module.split(".")
    private = next((k for k, word in enumerate(path) if word[:1] == "_"), len(path))
    public = ".".join([*path[:private], name])
    return public if is_trusted(loader, public) else f"{module}.{name}"
