"""All that probgap imports of scikit-learn without a promise that it stays.

A minor release of scikit-learn may move or rename these, and then this is the file to
mend: no other imports a private name of it.
"""

from typing import Any

from sklearn import get_config
from sklearn._loss.loss import CyHalfBinomialLoss, HalfBinomialLoss
from sklearn.base import _fit_context as fit_context
from sklearn.calibration import _SigmoidCalibration as SigmoidCalibration
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "CyHalfBinomialLoss",
    "HalfBinomialLoss",
    "HasMethods",
    "Interval",
    "SigmoidCalibration",
    "StrOptions",
    "check_parameters",
    "check_sample_weight",
    "fit_context",
    "num_samples",
    "rbf_width",
    "safe_indexing",
]


def check_parameters(estimator: Any) -> None:
    """Check the parameters of an estimator by its constraints, unless that is off."""
    if not get_config()["skip_parameter_validation"]:
        estimator._validate_params()


def rbf_width(svm: Any) -> float:
    """Return the width of the kernel of a fitted ``SVC``, also where it was computed."""
    return svm._gamma
