"""Kernel mean matching: weights that make one sample stand for another."""

from probgap.reweight._kmm import KMMResult, kernel_mean_matching

__all__ = ["KMMResult", "kernel_mean_matching"]
