import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from probgap.relabel import hidden_probability, relabel, relabel_in_expectation

gaps = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1.0, 1.0))
boundaries = st.floats(-0.999, -0.001)


def test_a_case_by_hand():
    gap = [-1.0, -0.8, -0.79, 0.0, 0.01, 1.0]
    result = relabel(gap, lower=-0.8)
    np.testing.assert_array_equal(result.labels, [0, -1, -1, -1, 1, 1])
    assert (result.n_negative, result.n_undecided, result.n_positive) == (1, 3, 2)
    strong = relabel(gap, lower=-0.8, upper=-0.8)
    np.testing.assert_array_equal(strong.labels, [0, 0, 1, 1, 1, 1])


def test_labelled_positives_stay_or_go_by_the_letter():
    gap, labelled = [-0.9, -0.5, -0.5, 0.5], [True, True, False, False]
    kept = relabel(gap, labelled, lower=-0.8)
    np.testing.assert_array_equal(kept.labels, [1, 1, -1, 1])
    letter = relabel(gap, labelled, lower=-0.8, keep_labelled=False)
    np.testing.assert_array_equal(letter.labels, [-1, -1, -1, 1])


@given(gaps, boundaries, st.booleans(), st.booleans())
def test_no_labelled_positive_becomes_a_negative(gap, lower, strong, keep):
    labelled = np.arange(gap.size) % 2 == 0
    upper = lower if strong else 0.0
    found = relabel(gap, labelled, lower=lower, upper=upper, keep_labelled=keep)
    assert (found.labels[labelled] != 0).all()


@given(gaps, boundaries)
def test_theorem_2_leaves_nothing_out(gap, lower):
    assert relabel(gap, lower=lower, upper=lower).decided.all()


@given(gaps, boundaries)
def test_the_label_never_falls_as_the_gap_rises(gap, lower):
    labels = relabel(gap, lower=lower).labels.astype(float)
    rank = np.where(labels < 0, 0.5, labels)[np.argsort(gap, kind="stable")]
    assert (np.diff(rank) >= 0).all()


@given(gaps, boundaries)
def test_corollary_1_decides_as_theorem_2_where_it_decides(gap, lower):
    weak, strong = relabel(gap, lower=lower), relabel(gap, lower=lower, upper=lower)
    np.testing.assert_array_equal(
        weak.labels[weak.decided], strong.labels[weak.decided]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observed_gap": [0.0], "lower": 0.5, "upper": 0.0}, r"lower must not exceed"),
        (
            {"observed_gap": [1.5], "lower": -0.5},
            r"must lie in \[-1, 1\]\. Got a value",
        ),
        ({"observed_gap": [[0.0]], "lower": -0.5}, r"one-dimensional\. Got shape"),
        ({"observed_gap": [np.nan], "lower": -0.5}, r"contains NaN"),
        (
            {"observed_gap": [0.0], "labelled": [1, 0], "lower": -0.5},
            r"one entry for each of the 1 samples\. Got",
        ),
        (
            {"observed_gap": [0.0], "labelled": [3], "lower": -0.5},
            r"must hold booleans, or 0 and 1\. Got \[3\]",
        ),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        relabel(**arguments)


def test_expected_labels_by_hand():
    # P(s=1|x) = 0.5 and P(Y=1|x) = 0.75: of the unlabelled half, half are positive.
    hidden = hidden_probability([0.0, 0.0], [0.75, 0.75])
    result = relabel_in_expectation([0, 1], [0.75, 0.75], hidden)
    np.testing.assert_allclose(result.positive_share, [0.5, 1.0])
    np.testing.assert_array_equal(result.labels, [1, 1])
    doubtful = relabel_in_expectation([1], [0.75], [0.5], keep_labelled=False)
    np.testing.assert_allclose(doubtful.positive_share, [0.75])
    assert np.isfinite(hidden_probability([1.0], [1.0])).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden": [0.5, 0.5]}, r"hidden must have one value for each of the 1"),
        ({"posterior": [1.5]}, r"posterior must lie in \[0, 1\]\. Got 1\.5 to 1\.5"),
        ({"labelled": [0, 1]}, r"labelled must have one entry for each of the 1"),
    ],
)
def test_bad_expectations_are_refused(arguments, message):
    call = {"labelled": [0], "posterior": [0.5], "hidden": [0.5], **arguments}
    with pytest.raises(ValueError, match=message):
        relabel_in_expectation(**call)


def test_rows_known_to_be_negative_are_so_whatever_their_gap():
    found = relabel([-0.9, -0.5, 0.3, 0.4], [0, 0, 0, 1], lower=-0.8)
    assert found.with_negatives(None) is found
    known = found.with_negatives([0, 1, 1, 0])
    assert known.labels.tolist() == [0, 0, 0, 1]
    assert known.positive_share.tolist() == [0.0, 0.0, 0.0, 1.0]
