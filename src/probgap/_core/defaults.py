"""The numbers that shape a fit, in one place, each with what speaks for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Defaults:
    """Numbers that were chosen rather than derived.

    Attributes
    ----------
    most_exact : int
        Samples up to which SVMs have kernels; of more, Nystroem features. Up to as many,
        the default's predictions average the posterior read off the gap, which follows
        sharp borders, and that of the final classifier, which smooths out noise, in twice
        the time. With 10,000 samples of 20 columns exact kernels took twice as long and
        were no more accurate (0.846 against 0.853).
    landmarks_per_root : float
        Landmarks for each unit of the square root of the number of samples. About so
        many keep the rate at which the error falls (Rudi, Camoriano, Rosasco, NIPS 2015).
    landmark_range : tuple of int
        Fewest and most landmarks. With 1000 of them accuracy was 0.865 at 100,000 samples
        and 0.864 at a million: nothing is left to win.
    most_landmarks, landmark_gain : int, float
        Landmarks of kernel logistic regression, and the share of the held-out log-loss
        that twice as many must save. On TCDB 1200 saved 13% over 300; on eight of nine
        other tables 600 saved less than this. 2400 would save 2% more on TCDB, in three
        times the time.
    most_rows, most_values : int
        Rows that the kernel, the linear model and the forest of the default learn from,
        and values (rows times columns) that boosting does, if that is more.
    most_mixed : int
        Rows that the weights of these learners are fitted on.
    most_columns : int
        Columns that are learnt from as they are; of more, components are.
    most_feature_values : int
        Kernel features that are kept in memory: 1.6 GB in single precision.
    most_calibrated : int
        Samples that turn decisions into probabilities: a share of 10,000 has a standard
        error of at most 0.5%.
    sure : float
        Distance from 0 and 1 at which probabilities are cut off before their log-odds are
        read; held-out ones of the default are, too.
    fewest_negatives : float
        Share of the unlabelled samples that a boundary must leave on the negative side.
        Where classes overlap, the paper's rules sink towards -1 and leave fewer.
    fallback_share : float
        Share of them that is taken as negative otherwise: the lower quartile holds few
        positives unless most of them are positive.
    sample_bytes : int
        Memory of the rows that :class:`probgap.dask.PGPUClassifier` draws from blocks,
        400,000 rows of 20 columns. Accuracy was 88.5% with them, of one million rows and
        of twenty million (``benchmarks/dask_scale.py``).
    """

    most_exact: int = 6000
    landmarks_per_root: float = 3.0
    landmark_range: tuple[int, int] = (300, 1000)
    most_landmarks: int = 1200
    landmark_gain: float = 0.01
    most_rows: int = 10_000
    most_values: int = 8_000_000
    most_mixed: int = 100_000
    most_columns: int = 500
    most_feature_values: int = 400_000_000
    most_calibrated: int = 10_000
    sure: float = 1e-4
    fewest_negatives: float = 0.02
    fallback_share: float = 0.25
    sample_bytes: int = 64 * 10**6


DEFAULTS = Defaults()

# Of two strings the greater is the later in the alphabet, which is seldom the meaning.
_WORDS = (
    "unlabelled unlabeled unlabel unl u unknown unchecked unverified untested none null "
    "na nan no not negative neg n false missing other rest"
)
WORDS_FOR_UNLABELLED = frozenset(_WORDS.split())
