"""What is fitted to a sample of the rows speaks of all of them."""

import dask.array as da
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from probgap.dask import PGPUClassifier
from probgap.gap import MixedGapEstimator, ObservedGapEstimator


@pytest.mark.parametrize(
    "gap", [MixedGapEstimator(), ObservedGapEstimator(LogisticRegression())], ids=str
)
def test_the_chance_of_a_label_is_that_among_all_rows(table, gap):
    X, _, s = table
    model = PGPUClassifier(
        gap_estimator=gap,
        estimator=LogisticRegression(),
        max_memory=8 * 4 * 700,
        random_state=0,
    ).fit(da.from_array(X, chunks=(500, 4)), da.from_array(s, chunks=500))
    rows = model.sample_rows_
    # All labelled rows are in the sample, and so too many of them.
    assert s[rows].mean() > 1.5 * s.mean()
    fitted = model.model_.gap_estimator_
    chance = fitted.predict_proba(X)[:, 1]
    assert chance.mean() == pytest.approx(s.mean(), abs=0.02)
    assert_allclose(fitted.transform(X)[:, 0], 2.0 * chance - 1.0, atol=1e-12)
