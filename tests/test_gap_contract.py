"""What scikit-learn asks of estimators of the gap."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

from probgap.gap import MixedGapEstimator, ObservedGapEstimator

# What the mixture itself makes of samples. The other checks are of the class that both
# estimators extend, and the mixture is slow at them.
OF_MIXTURE = {
    "check_classifiers_one_label",
    "check_classifiers_train",
    "check_dict_unchanged",
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_estimator_cloneable",
    "check_estimator_sparse_tag",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
}


def checks_of(estimator, quick=None):
    """Return scikit-learn's checks as parameters, all but the quick for slow runs alone."""
    for given, check in estimator_checks_generator(estimator):
        name = check.func.__name__
        marks = [] if quick is None or name in quick else [pytest.mark.slow]
        yield pytest.param(given, check, marks=marks, id=f"{given!r}-{name}")


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *checks_of(MixedGapEstimator(), quick=OF_MIXTURE),
        *checks_of(ObservedGapEstimator(LogisticRegression())),
    ],
)
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)
