"""The numbers that shape a fit, in one place, each with its evidence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Defaults:
    """Numbers that were chosen rather than derived.

    Attributes
    ----------
    most_exact : int
        Largest number of samples for which SVMs use exact kernels; beyond it they use
        Nystroem features. Up to this number the default also averages two posteriors, in
        twice the time: the one read off the gap, which follows sharp borders, and that of
        the final classifier, which smooths out noise. At 10,000 samples of 20 columns exact
        kernels took twice as long and were no more accurate (0.846 against 0.853).
    landmarks_per_root : float
        Landmarks per square root of the number of samples. About this many preserve the
        learning rate of the exact kernel (Rudi, Camoriano, Rosasco, NIPS 2015).
    landmark_range : tuple of int
        Fewest and most landmarks. With 1000 of them accuracy was 0.865 at 100,000 samples
        and 0.864 at a million: more would not help.
    most_landmarks, landmark_gain : int, float
        Most landmarks of kernel logistic regression, and the share of the held-out
        log-loss by which doubling them must lower it. On TCDB 1200 saved 13% over 300; on
        seven other tables 600 saved less than 0.4%. 2400 would save 2% more on TCDB, and
        the whole fit would take three times as long.
    most_rows, most_values : int
        Most rows on which the kernel model, the linear model and the forest are fitted,
        and most values (rows times columns) for boosting, if that allows more rows.
    most_mixed : int
        Most rows on which the mixture weights of these learners are fitted.
    most_columns : int
        Most columns that learners see as they are; wider tables are reduced to components.
    most_feature_values : int
        Most kernel feature values kept in memory: 1.6 GB in single precision.
    most_calibrated : int
        Most samples used to calibrate decisions: a proportion estimated from 10,000 has
        a standard error of at most 0.5%.
    least_probability : float
        Probabilities are clipped to this distance from 0 and 1 before their log-odds are
        read, as the held-out ones of the default are.
    fewest_negatives : float
        Share of the unlabelled samples that a boundary must leave on the negative side.
        Where classes overlap, the paper's rules tend towards -1 and leave fewer.
    fallback_share : float
        Share of the unlabelled samples that is taken as negative if it does not: the
        lower quartile by gap holds few positives unless most samples are positive.
    sample_bytes : int
        Memory for the rows that :class:`probgap.dask.PGPUClassifier` draws from blocks:
        400,000 rows of 20 columns. With these, accuracy was 88.5% on tables of one million
        rows and of twenty million (``benchmarks/dask_scale.py``).
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
    least_probability: float = 1e-4
    fewest_negatives: float = 0.02
    fallback_share: float = 0.25
    sample_bytes: int = 64 * 10**6


DEFAULTS = Defaults()

# By default the greater value of y is positive; for these words that is seldom meant.
_WORDS = (
    "unlabelled unlabeled unlabel unl u unknown unchecked unverified untested none null "
    "na nan no not negative neg n false missing other rest"
)
WORDS_FOR_UNLABELLED = frozenset(_WORDS.split())
