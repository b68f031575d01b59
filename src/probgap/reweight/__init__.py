"""Kernel mean matching: weights that make one sample represent another."""

from probgap.reweight._bound import LeftOutBound, left_out_bound, risk_bound
from probgap.reweight._kmm import (
    KernelMeanMatching,
    kernel_mean_matching,
    match_selections,
)
from probgap.reweight._result import KMMResult

__all__ = [
    "KMMResult",
    "KernelMeanMatching",
    "LeftOutBound",
    "kernel_mean_matching",
    "left_out_bound",
    "match_selections",
    "risk_bound",
]
