"""What is not installed: the paper's experiments, and how the default's network is made."""
