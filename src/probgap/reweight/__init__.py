"""Kernel mean matching: weights that make one sample represent another."""

from probgap.reweight._bound import RiskBound, risk_bound
from probgap.reweight._kmm import (
    KernelMeanMatching,
    kernel_mean_matching,
    match_selections,
)
from probgap.reweight._problem import KMMResult

__all__ = [
    "KMMResult",
    "KernelMeanMatching",
    "RiskBound",
    "kernel_mean_matching",
    "match_selections",
    "risk_bound",
]
