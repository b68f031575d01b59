"""What every module may use: labels, checks, kernels, randomness and errors."""
