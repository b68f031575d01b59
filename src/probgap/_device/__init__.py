"""Exact kernel methods on a device of torch: kernels in tiles, and solvers by products."""
