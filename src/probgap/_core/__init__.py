"""What every room may use: labels, checks, kernels, randomness and errors."""
