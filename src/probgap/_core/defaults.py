"""The numbers that shape a fit, in one place, each with its evidence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Defaults:
    """Numbers that shape a fit; all others are scikit-learn's or derived.

    "Choosing" tables and labellings are those of ``benchmarks/default.py --half choosing``.

    Attributes
    ----------
    most_rows : int
        Most rows on which kernel and linear models and the forest are fitted. Up to this
        number the default also averages two posteriors: the one by the gap, which
        follows sharp borders, and that of the final classifier, which smooths out noise.
        SVMs, where they are asked for, have exact kernels up to this number: at 10,000 rows
        of 20 columns these took twice as long and were no more accurate (0.846, 0.853).
    most_values : int
        Most values (rows times columns) for boosting, if that allows more rows.
    n_repeats : int
        Repetitions of cross-validation, up to ``most_rows / n_repeats`` rows, where one
        split is too noisy: with one, accuracy with few labels fell by 0.3 points on the
        choosing tables. Beyond ``most_rows``, where boosting takes most of the time, it
        has this many folds in place of five.
    landmarks : tuple of int
        Fewest and most landmarks of kernel logistic regression; they are doubled while
        that lowers the held-out log-loss. On TCDB 1200 saved 13% over 300; 2400 would
        save 2% more, and the whole fit would take three times as long.
    penalties : tuple of float
        Inverse penalties to try. Powers of ten alone would cost up to 2% of the held-out
        log-loss of kernels on TCDB.
    smallest_leaf : int
        Fewest rows in a leaf of the forest. With 1 the ranking is as good and the model
        file several times as large; with 5 the average precision of hidden positives
        fell by 0.1 points on the choosing tables.
    boosting_rounds : int
        Rounds of boosting up to ``most_rows``; beyond it scikit-learn's own number, 100.
        30 cost 0.3 points of average precision on the choosing tables, 100 gained nothing.
    most_columns : int
        Most columns that learners see as they are; wider tables are reduced to components.
    components_per_root : float
        Components per square root of the number of rows. On bags of words (TCDB) 2 has an
        average precision 0.01 above 1.5, and 0.03 above 1.
    landmarks_per_root : float
        Landmarks of an SVM per square root of the number of samples. About this many
        preserve the learning rate of the exact kernel (Rudi, Camoriano, Rosasco, NIPS 2015).
    landmark_range : tuple of int
        Fewest and most of these landmarks. With 1000 of them accuracy was 0.865 at 100,000
        samples and 0.864 at a million: more would not help.
    most_feature_values : int
        Most kernel feature values kept in memory: 1.6 GB in single precision.
    most_calibrated : int
        Most samples used to calibrate decisions: a proportion estimated from 10,000 has
        a standard error of at most 0.5%.
    least_probability : float
        Probabilities of a given gap estimator are clipped to this distance from 0 and 1
        before their log-odds are read.
    fewest_negatives : float
        Share of the unlabelled samples that a boundary must leave on the negative side.
        Where classes overlap, the paper's rules tend towards -1 and leave fewer.
    fallback_share : float
        Share of the unlabelled samples that is taken as negative if it does not: the
        lower quartile by gap holds few positives unless most samples are positive.
    sample_bytes : int
        Memory for the rows that :class:`probgap.dask.DaskPGPUClassifier` draws from blocks:
        400,000 rows of 20 columns. With these, accuracy was 88.5% on tables of one million
        rows and of twenty million (``benchmarks/dask_scale.py``).
    """

    most_rows: int = 6000
    most_values: int = 4_000_000
    n_repeats: int = 3
    landmarks: tuple[int, int] = (300, 1200)
    penalties: tuple[float, ...] = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
    smallest_leaf: int = 3
    boosting_rounds: int = 40
    most_columns: int = 500
    components_per_root: float = 2.0
    landmarks_per_root: float = 3.0
    landmark_range: tuple[int, int] = (300, 1000)
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
# Beside one of these, another word marks the labelled positives.
WORDS_FOR_NO = WORDS_FOR_UNLABELLED | {"", "0", "-1", "f"}
