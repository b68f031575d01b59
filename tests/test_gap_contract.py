"""What scikit-learn asks of estimators of the gap."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

from probgap.gap import MixedGapEstimator, ObservedGapEstimator

# Checks that fit many times to one table in several formats, which both estimators take
# by the same code: the mixture is slow at them.
FORMATS = {
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_estimator_sparse_matrix",
    "check_estimators_dtypes",
    "check_transformer_data_not_an_array",
}


def checks_of(estimator, slow=()):
    """Return scikit-learn's checks as parameters, some of them for slow runs alone."""
    for given, check in estimator_checks_generator(estimator):
        name = check.func.__name__
        marks = [pytest.mark.slow] if name in slow else []
        yield pytest.param(given, check, marks=marks, id=f"{given!r}-{name}")


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *checks_of(MixedGapEstimator(), slow=FORMATS),
        *checks_of(ObservedGapEstimator(LogisticRegression())),
    ],
)
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "check"), list(checks_of(ObservedGapEstimator()))
)
def test_scikit_learn_does_not_complain_about_platt_scaling(estimator, check):
    check(estimator)
