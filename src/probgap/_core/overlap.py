"""How well the classes seem to part, judged by the labelled positives."""

from __future__ import annotations

# The clearest labelled positives: their chance of being labelled is taken as the ceiling.
CEILING_QUANTILE = 0.8
# That of the very clearest.
HIGH_QUANTILE = 0.95
# With this share of labelled positives in negative ground, classes overlap fully.
_FULL_OVERLAP = 0.1


def separability(n_astray: int, n_labelled: int, n_unlabelled: int) -> float:
    """Give 1 where no labelled positive is astray, falling to 0 where a tenth are.

    Strays are counted against the labelled samples, or the unlabelled ones if those
    are fewer: among few negatives, a few strays are much.
    """
    share = float(n_astray) / min(n_labelled, n_unlabelled)
    return max(0.0, 1.0 - share / _FULL_OVERLAP)
