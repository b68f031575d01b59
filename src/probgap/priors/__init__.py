"""Estimates of the class prior, the share of positives, with ten methods."""

from probgap.priors._estimate import (
    estimate_class_prior,
    estimate_class_prior_from_scores,
)
from probgap.priors._result import ClassPrior

__all__ = ["ClassPrior", "estimate_class_prior", "estimate_class_prior_from_scores"]
