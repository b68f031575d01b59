import numpy as np
import pandas as pd
import pytest

from probgap._core.checks import decode_labels, require_labelled_and_unlabelled
from probgap.exceptions import InvalidInputError, ProbgapWarning


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([0, 1, 1, 0], [0, 1]),
        ([-1, 1, 1, -1], [-1, 1]),
        ([1, 2, 2, 1], [1, 2]),
        ([0.0, 1.0, 1.0, 0.0], [0.0, 1.0]),
        ([False, True, True, False], [False, True]),
        (["no", "yes", "yes", "no"], ["no", "yes"]),
        (np.array(["no", "yes", "yes", "no"], dtype=object), ["no", "yes"]),
        (pd.Series(["no", "yes", "yes", "no"], dtype="category"), ["no", "yes"]),
        (["f", "t", "t", "f"], ["f", "t"]),
        (["one", "two", "two", "one"], ["one", "two"]),
        (["zero", "one", "one", "zero"], ["one", "zero"]),
        (["9", "10", "10", "9"], ["10", "9"]),
        (pd.Series([0, 1, 1, 0], dtype="Int64"), [0, 1]),
        (pd.Series([False, True, True, False], dtype="boolean"), [False, True]),
        (np.array([[0], [1], [1], [0]]).ravel(), [0, 1]),
    ],
)
def test_the_greater_of_two_values_is_labelled(y, classes):
    labels = decode_labels(y)
    np.testing.assert_array_equal(labels.labelled, [False, True, True, False])
    assert labels.classes.tolist() == classes


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([np.nan, 1.0, 1.0, np.nan], [0.0, 1.0]),
        ([None, 1, 1, None], [0, 1]),
        ([None, 0, 0, None], [-1, 0]),
        ([None, True, True, None], [False, True]),
        ([None, "fraud", "fraud", None], ["fraud", "not fraud"]),
        ([np.nan, "fraud", "fraud", np.nan], ["fraud", "not fraud"]),
        ([None, "spam", "spam", None], ["not spam", "spam"]),
        ([None, -2, -2, None], [-2, 0]),
        (pd.Series([pd.NA, 1, 1, pd.NA], dtype="Int64"), [0, 1]),
        (pd.Series([pd.NA, True, True, None], dtype="boolean"), [False, True]),
        (pd.Series([None, "fraud", "fraud", None]), ["fraud", "not fraud"]),
        (pd.Series([pd.NA, "a", "a", pd.NA], dtype="category"), ["a", "not a"]),
    ],
)
def test_a_missing_entry_is_unlabelled(y, classes):
    labels = decode_labels(y)
    np.testing.assert_array_equal(labels.labelled, [False, True, True, False])
    assert labels.classes.tolist() == classes


def test_pos_label_names_the_labelled_value():
    labels = decode_labels(["fraud", "unknown", "fraud"], pos_label="fraud")
    assert labels.classes.tolist() == ["fraud", "unknown"]
    assert labels.positive == 0
    np.testing.assert_array_equal(labels.labelled, [True, False, True])
    assert decode_labels([None, 3, 3], pos_label=3).labelled.sum() == 2


@pytest.mark.parametrize(
    ("y", "pos_label", "classes"),
    [
        (["b", "a", None, "a"], ("a", "b"), ["a or b", "not a or b"]),
        (["b", "a", "ok", "a"], ["a", "b"], ["a or b", "ok"]),
        (["b", "a", "ok", "a"], ("a", "b", "a"), ["a or b", "ok"]),
        ([2, 1, 0, 1], (1, 2), [0, 1]),
        ([2.0, 1.0, np.nan, 1.0], (2, 1), [0.0, 2.0]),
        (pd.Series(["b", "a", pd.NA, "a"], dtype="category"), ("a", "b"), None),
    ],
)
def test_several_values_may_mean_positive(y, pos_label, classes):
    labels = decode_labels(y, pos_label)
    np.testing.assert_array_equal(labels.labelled, [True, True, False, True])
    assert labels.negative is None
    assert classes is None or labels.classes.tolist() == classes
    assert labels.name_of("labelled") in (classes or ["a or b"])


@pytest.mark.parametrize(
    ("y", "pos_label", "neg_label", "classes"),
    [
        (["yes", "no", None, "yes"], None, "no", ["no", "yes"]),
        (["b", "no", None, "a"], ("a", "b"), "no", ["a or b", "no"]),
        ([1, -1, 0, 1], None, -1, [-1, 1]),
        ([1.0, 0.0, np.nan, 1.0], 1, 0, [0.0, 1.0]),
        (["fraud", "ok", "unknown", "fraud"], "fraud", "ok", ["fraud", "ok"]),
        (pd.Series([True, False, None, True], dtype="boolean"), None, False, [0, 1]),
    ],
)
def test_a_value_may_mean_checked_and_negative(y, pos_label, neg_label, classes):
    labels = decode_labels(y, pos_label, neg_label)
    np.testing.assert_array_equal(labels.labelled, [True, False, False, True])
    np.testing.assert_array_equal(labels.negative, [False, True, False, False])
    assert labels.classes.tolist() == classes
    assert labels.classes[1 - labels.positive] == neg_label


def test_where_nobody_checked_a_warning_says_so():
    with pytest.warns(ProbgapWarning, match="neg_label='No' is no value of y"):
        labels = decode_labels(["yes", "no", "no"], "yes", "No")
    assert labels.negative is None
    assert labels.classes.tolist() == ["no", "yes"]


def test_every_row_may_have_been_checked():
    labels = decode_labels(["no", "yes", "no"], None, "no")
    np.testing.assert_array_equal(labels.labelled, [False, True, False])
    np.testing.assert_array_equal(labels.negative, [True, False, True])


@pytest.mark.parametrize(
    ("y", "pos_label", "neg_label", "message"),
    [
        (["a", "b", None], ("a", "c"), None, r"pos_label .* found in y\. Got 'c'"),
        ([1, 0], (), None, r"pos_label must name a value of y\. Got \(\)\."),
        ([1, 0, None], 0, 0, r"neg_label must not be one of pos_label\. Got 0 for"),
        ([1, 2, 0, 3], (1, 2), None, r"y must hold two values"),
        ([1, 0, 2], 1, (0, 2), r"neg_label must be one value of y, .* Got \(0, 2\)"),
        ([1, 0, 2], 1, np.nan, r"neg_label must be one value of y, .* Got nan"),
        (
            ["yes", "no", None],
            "yes",
            None,
            r"checked and found negative \(neg_label of",
        ),
    ],
)
def test_labels_of_several_kinds_are_refused(y, pos_label, neg_label, message):
    with pytest.raises(InvalidInputError, match=message):
        decode_labels(y, pos_label, neg_label)


@pytest.mark.parametrize(
    ("y", "pos_label", "message"),
    [
        ([0, 1, 2], None, r"y must hold two values.*Got 3 values: \[0, 1, 2\]\."),
        (list(range(9)), None, r"Got 9 values: \[0, 1, 2, 3, 4\], \.\.\.\."),
        ([1, 1, 1], None, r"y must hold two classes.*Got one class: \[1\]\."),
        ([0, 0], None, r"y must hold two classes.*Got one class"),
        ([None, 1, 2], None, r"exactly one value.*Got 2 values: \[1, 2\]\. Several"),
        ([np.nan, np.nan], None, r"exactly one value.*Got no value"),
        ([None, None], None, r"exactly one value.*Got no value"),
        ([0, 1], 7, r"pos_label must be a value .* Got 7, y holds \[0"),
        ([None, 1], 7, r"pos_label must be a value found in y\. Got 7, y holds"),
        (["fraud", "ok"], None, r"pos_label must say .* y holds 'fraud' and 'ok'\."),
        ([None, "a", 3], None, r"exactly one value.*Got 2 values"),
    ],
)
def test_other_labels_are_refused_with_what_was_found(y, pos_label, message):
    with pytest.raises(InvalidInputError, match=message):
        decode_labels(y, pos_label)


@pytest.mark.parametrize("greater", ["unlabelled", "Unlabeled", "unknown"])
def test_a_greater_string_that_sounds_unlabelled_is_pointed_out(greater):
    with pytest.warns(
        ProbgapWarning, match=r"is taken as the labelled .* pos_label='Pos'"
    ):
        labels = decode_labels(["Pos", greater, "Pos"])
    assert labels.positive == 1


@pytest.mark.parametrize(
    ("y", "n_folds", "message"),
    [
        ([0, 0, 0, 1], None, r"at least 2 labelled samples\. Got 1 of class 1 among 4"),
        ([0, 1, 1, 1], None, r"at least 2 unlabelled samples\. Got 1 of class 0"),
        ([0, 0, 1, 1], 3, r"at least 3 labelled samples, one for each fold\. Got 2"),
    ],
)
def test_too_few_of_either_kind_are_refused(y, n_folds, message):
    with pytest.raises(InvalidInputError, match=message):
        require_labelled_and_unlabelled(decode_labels(y), n_folds=n_folds)
