"""What scikit-learn asks of every estimator of the core, without exemptions."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap._core.mixture import MixedClassifier
from probgap._core.svm import NystroemSVM
from probgap.gap import MixedGapEstimator, ObservedGapEstimator
from probgap.methods import (
    ElkanNotoClassifier,
    LiuTaoClassifier,
    NaiveClassifier,
    NatarajanClassifier,
    NNPUClassifier,
    PGlinClassifier,
    PropensityWeightedClassifier,
    PUBaggingClassifier,
    PUSBClassifier,
    SAREMClassifier,
    SpyClassifier,
)

# Where a check is about labels, names or formats, any quick stages will do.
LIGHT = {"gap_estimator": LogisticRegression(), "estimator": LogisticRegression()}
# Checks of how samples and labels are taken and given back, by the class that all
# estimators extend: those of TAKEN stand for the others.
OF_BASE = {
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimators_nan_inf",
    "check_estimators_unfitted",
    "check_f_contiguous_array_estimator",
    "check_fit2d_predict1d",
    "check_fit_score_takes_y",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_supervised_y_2d",
}
# Checks of what the learners of the default make of a table, which are slow. The others
# ask how tables, labels and parameters are taken, before any learner sees them.
OF_STAGES = {
    "check_classifiers_one_label",
    "check_classifiers_train",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
}
TAKEN = [
    PGPUClassifier(**LIGHT),
    ObservedGapEstimator(LogisticRegression()),
    NaiveClassifier(),
    SpyClassifier(),
    PUBaggingClassifier(n_estimators=5),
    PropensityWeightedClassifier(),  # has a fit of its own
    NystroemSVM(),
]
OTHERS = [
    PGPUClassifier.paper(strict=False),
    PGPUClassifierCV.paper(boundaries=[-0.8, -0.6], cv=3, strict=False),
    ElkanNotoClassifier(),
    NatarajanClassifier(),
    LiuTaoClassifier(),
    PGlinClassifier(),
    NNPUClassifier(),
    PUSBClassifier(),
    SAREMClassifier(tol=1e-3),  # hundreds of rounds show no more
]
DEFAULTS = [PGPUClassifier(), MixedGapEstimator()]
SLOW = [PGPUClassifierCV(), ObservedGapEstimator(), MixedClassifier()]


def all_checks():
    """Return scikit-learn's checks; what others stand for is slow."""
    for model in (*TAKEN, *OTHERS, *DEFAULTS, *SLOW):
        for estimator, check in estimator_checks_generator(model):
            name = check.func.__name__
            quick = model in TAKEN or (model in OTHERS and name not in OF_BASE)
            if model in DEFAULTS:
                quick = name in OF_STAGES and not check.keywords
            marks = [] if quick else [pytest.mark.slow]
            yield pytest.param(estimator, check, marks=marks, id=f"{model!r}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(all_checks()))
@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)
