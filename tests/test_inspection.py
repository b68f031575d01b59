import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from probgap import PGPUClassifier
from probgap.exceptions import InvalidInputError
from probgap.inspection import (
    column_importance,
    nearest_labelled,
    row_contributions,
    word_contributions,
)
from probgap.tables import TableClassifier


@pytest.fixture(scope="module")
def fitted():
    """Three columns of which the last matters not, behind a scaler."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1.0, 5.0, 10.0]
    s = (X[:, 0] + 0.2 * X[:, 1] > 0.5) & (rng.random(300) < 0.7)
    model = make_pipeline(StandardScaler(), PGPUClassifier(random_state=0))
    return model.fit(X, s), X, s


def log_odds(model, X):
    p = model.predict_proba(X)[:, 1]
    return np.log(p / (1 - p))


def test_contributions_sum_to_the_difference_from_the_background(fitted):
    model, X, _ = fitted
    parts = row_contributions(model, X[[7]], X, n_background=30, random_state=0)
    assert parts.columns == [0, 1, 2]
    assert parts.n_background == 30
    assert parts.prediction == pytest.approx(log_odds(model, X[[7]])[0])
    assert parts.contributions.sum() == pytest.approx(parts.prediction - parts.baseline)
    all_rows = row_contributions(model, X[[7]], X[:20], random_state=0)
    assert all_rows.baseline == pytest.approx(log_odds(model, X[:20]).mean())


def test_contributions_are_shapley_values(fitted):
    """Two columns have two orders, so that both orders give the values exactly."""
    _, X, s = fitted
    model = PGPUClassifier(random_state=0).fit(X[:, :2], s)
    row, other = X[[3], :2], X[[4], :2]
    parts = row_contributions(model, row, other)
    mixed = np.array([[row[0, 0], other[0, 1]], [other[0, 0], row[0, 1]]])
    f_row, f_other = log_odds(model, row)[0], log_odds(model, other)[0]
    first, second = log_odds(model, mixed)
    assert parts.contributions[0] == pytest.approx(
        (first - f_other + f_row - second) / 2
    )
    assert parts.contributions[1] == pytest.approx(
        (second - f_other + f_row - first) / 2
    )


def test_one_column_contributes_all():
    X = np.linspace(-1, 1, 60).reshape(-1, 1)
    model = PGPUClassifier(random_state=0).fit(X, X[:, 0] > 0.4)
    parts = row_contributions(model, X[[-1]], X, random_state=0)
    assert parts.contributions.sum() == pytest.approx(parts.prediction - parts.baseline)


def test_a_frame_gives_names_and_the_same_numbers(fitted):
    _, X, s = fitted
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(300) * 2)
    model = make_pipeline(StandardScaler(), PGPUClassifier(random_state=0)).fit(
        frame, s
    )
    plain = make_pipeline(StandardScaler(), PGPUClassifier(random_state=0)).fit(X, s)
    named = row_contributions(model, frame.iloc[[7]], frame, random_state=0)
    numbered = row_contributions(plain, X[[7]], X, random_state=0)
    assert named.columns == ["a", "b", "c"]
    # A frame is scaled to other last bits. The kernel's solver turns 1e-15 into 1e-7 of a
    # soft label, and the final forest then splits elsewhere: 1e-2 of its log-odds.
    np.testing.assert_allclose(named.contributions, numbered.contributions, atol=1e-2)
    by_name = column_importance(model, frame, s, random_state=0)
    by_number = column_importance(plain, X, s, random_state=0)
    assert [ord(name) - ord("a") for name in by_name.columns] == by_number.columns
    np.testing.assert_allclose(by_name.importance, by_number.importance, atol=1e-4)


def test_columns_that_matter_come_first(fitted):
    model, X, s = fitted
    found = column_importance(model, X, s, random_state=0)
    assert found.columns[-1] == 2
    assert found.importance[0] > 0.05
    assert abs(found.importance[-1]) < 0.05
    assert found.n_left_out == 0
    assert found.n_rows == 120
    assert 0.6 < found.score <= 1


def test_of_very_many_columns_the_most_tied_are_tried():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 40))
    s = (X[:, 17] > 0) & (rng.random(200) < 0.8)
    model = PGPUClassifier(random_state=0).fit(X, s)
    found = column_importance(model, X, s, max_columns=5, n_repeats=2, random_state=0)
    assert found.columns[0] == 17
    assert len(found.columns) == 5
    assert found.n_left_out == 35


def test_sparse_rows_are_inspected_too(fitted):
    _, X, s = fitted
    sparse = csr_matrix(X / [1.0, 5.0, 10.0])
    model = PGPUClassifier(random_state=0).fit(sparse, s)
    parts = row_contributions(model, sparse[[0]], sparse, n_background=5)
    assert parts.contributions.sum() == pytest.approx(parts.prediction - parts.baseline)
    assert column_importance(model, sparse, s, random_state=0).columns[-1] == 2
    assert nearest_labelled(model, sparse, s, sparse[[0]], n=2)[0].size == 2


def test_the_nearest_are_labelled_and_near_as_the_classifier_sees_it(fitted):
    model, X, s = fitted
    index, away = nearest_labelled(model, X, s, X[[10]], n=4)
    Z = model[:-1].transform(X)
    distance = np.linalg.norm(Z - Z[10], axis=1)
    expected = np.flatnonzero(s)[np.argsort(distance[s])[:4]]
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_allclose(away, distance[expected])


def few(labelled, n):
    return labelled & (labelled.cumsum() <= n)


def test_no_more_are_found_than_are_labelled(fitted):
    model, X, s = fitted
    assert nearest_labelled(model, X, few(s, 2), X[[0]], n=9)[0].size == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X, s: nearest_labelled(m, X, s, X[:1], n=0), "Got 0"),
        (lambda m, X, s: nearest_labelled(m, X, s, X[:2]), "got 2"),
        (lambda m, X, _: row_contributions(m, X[:2], X), "got 2"),
        (lambda m, X, s: column_importance(m, X, few(s, 3)), "Got 3 of 300"),
    ],
)
def test_bad_input_is_refused_with_what_came(fitted, call, message):
    with pytest.raises(InvalidInputError, match=message):
        call(*fitted)


def test_words_of_a_text_speak_for_and_against():
    rng = np.random.default_rng(0)
    words = rng.choice(["cash", "again", "home", "paid", "late", "card"], (300, 5))
    X = pd.DataFrame({"n": rng.normal(size=300), "note": [" ".join(w) for w in words]})
    known = (words == "late").any(axis=1) & (rng.random(300) < 0.6)
    model = TableClassifier(random_state=0).fit(X, known).pipeline_
    one = pd.DataFrame({"n": [0.0], "note": ["PAID, late; late again"]})
    parts = word_contributions(model, one, "note", random_state=0)
    assert parts.columns == ["paid", "late", "again"]
    assert parts.contributions.sum() == pytest.approx(parts.prediction - parts.baseline)
    assert parts.contributions.argmax() == 1
    assert parts.prediction == pytest.approx(log_odds(model, one)[0])
    assert word_contributions(model, one.assign(note=[None]), "note").columns == []
    with pytest.raises(InvalidInputError, match=r"column of text\. Got 'n'\."):
        word_contributions(model, one, "n")
