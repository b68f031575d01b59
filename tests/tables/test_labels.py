"""Which rows are labelled, and no guess between two words."""

import numpy as np
import pandas as pd
import pytest

from probgap.exceptions import InvalidInputError
from probgap.tables import read_labels


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 0, 0], [True, False, False]),
        ([1.0, np.nan, 1.0], [True, False, True]),
        (["1", "0", ""], [True, False, False]),
        (["1.0", "0.0", "0"], [True, False, False]),
        ([True, False, False], [True, False, False]),
        (["True", "False", None], [True, False, False]),
        (["yes", "no", "NO"], [True, False, False]),
        (["Yes", "yes ", "n"], [True, True, False]),
        (["fraud", "", " "], [True, False, False]),
        (["fraud", "unlabelled", "Unknown"], [True, False, False]),
        (["P", "U", "U"], [True, False, False]),
        ([1, -1, 0], [True, False, False]),
        (["positive", "negative", "N/A"], [True, False, False]),
        ([7, 0, 0], [True, False, False]),
        ([True, None, "no"], [True, False, False]),
    ],
)
def test_spellings(values, expected):
    column = pd.Series(values, dtype=object)
    labels = read_labels(column)
    assert labels.find(column).tolist() == expected
    assert labels.n_labelled == sum(expected)
    assert sum(labels.unlabelled.values()) == len(values) - sum(expected)
    assert labels.find(pd.Series(values)).tolist() == expected


@pytest.mark.parametrize(
    ("values", "positive", "expected"),
    [
        (["a", "b", "c"], "b", [False, True, False]),
        ([1, 2, 3], "2", [False, True, False]),
        ([1.0, 2.0, np.nan], "1", [True, False, False]),
        (["1", "2"], "1.0", [True, False]),
        ([True, False], "1", [True, False]),
        ([1, 0], "true", [True, False]),
        (["no", "yes"], "no", [True, False]),
        (["Fraud", "ok"], "fraud", [True, False]),
    ],
)
def test_a_named_positive_is_taken_and_nothing_else(values, positive, expected):
    column = pd.Series(values)
    assert read_labels(column, positive).find(column).tolist() == expected


def test_several_values_may_mean_positive_and_one_checked_and_negative():
    values = ["Card", None, "identity", "no", "card ", "card", "?", "NO"]
    column = pd.Series(values, name="y")
    labels = read_labels(column, ["CARD", "identity", "CARD"], "No")
    assert labels.find_kinds(column).tolist() == (
        ["card", "", "identity", "", "card", "card", "", ""]
    )
    found = [True, False, True, False, True, True, False, False]
    assert labels.find(column).tolist() == found
    negative = [False, False, False, True, False, False, False, True]
    assert labels.find_negatives(column).tolist() == negative
    assert labels.positive == "card or identity"
    assert labels.sentence == (
        "Reading 'card' (3 rows), 'identity' (1 row) as labelled positive, 'no' (2 rows) "
        "as checked and negative, empty cells, '?' as unlabelled."
    )
    assert labels.count({"CARD": 2, "Identity": 1, "no": 7}) == 3


@pytest.mark.parametrize(
    ("values", "asks"),
    [
        (["yes", "no", ""], "If 'no' means checked"),
        ([1, 0, None], "fit with --negative 0 "),
        (["yes", "no", "no"], None),
        (["yes", "unknown", ""], None),
    ],
)
def test_no_beside_empty_cells_may_mean_checked(values, asks):
    sentence = read_labels(pd.Series(values, dtype=object)).sentence
    assert asks in sentence if asks else "--negative" not in sentence


@pytest.mark.parametrize(
    ("negative", "values"),
    [("no", ("no", "1")), ("0", (0, 1)), ("-1", (-1, 1)), (None, (0, 1))],
)
def test_predictions_say_what_was_said_of_checked_rows(negative, values):
    column = pd.Series(["1", negative or "", ""])
    assert read_labels(column, "1", negative).values == values


def test_the_sentence_and_the_counts():
    labels = read_labels(pd.Series(["no", "fraud", None, "no"], name="y"))
    assert labels.unlabelled == {"": 1, "no": 2}
    assert labels.positive == "fraud"
    assert labels.sentence == (
        "Reading 'fraud' (1 row) as labelled positive, empty cells, 'no' as unlabelled. "
        "If 'no' means checked and found negative, fit with --negative no (neg_label= in "
        "Python)."
    )


@pytest.mark.parametrize(
    ("values", "positive", "says"),
    [
        (["a", "b", ""], None, "'a', 'b'; say which"),
        ([0, 1, 2], None, "'1', '2'"),
        (["fraud", "legit"], None, "--positive"),
        ([0, 0, 0], None, "marks no row"),
        (["No", "", ""], None, "if 'No' marks the known .*, add --positive No "),
        (["no", "unknown"], None, "say if one of them marks"),
        (["", None], None, "marks no row"),
        ([], None, "marks no row"),
        (["x", "x"], None, "in every row"),
        (["x", ""], "z", "never holds 'z'"),
        (["x", ""], ["x", "z"], "never holds 'z'"),
        (["x", ""], "", "not an empty cell"),
        (list(np.arange(100) / 7), None, "93 more values"),
        ([[1], [2]], None, "a single value|more than one value"),
    ],
)
def test_bad_labels_give_one_sentence(values, positive, says):
    with pytest.raises(InvalidInputError, match=says):
        read_labels(pd.Series(values, dtype=object), positive)


def test_a_value_is_positive_or_negative():
    column = pd.Series(["No", "yes", None])
    with pytest.raises(InvalidInputError, match=r"\(--positive\)\. Got 'No' for both"):
        read_labels(column, ["yes", "no"], "No")
