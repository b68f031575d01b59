"""Kernel mean matching: weights that make one sample stand for another."""

from probgap.reweight._kmm import kernel_mean_matching, match_selections
from probgap.reweight._solvers import KMMResult

__all__ = ["KMMResult", "kernel_mean_matching", "match_selections"]
