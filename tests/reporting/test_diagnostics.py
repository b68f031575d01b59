import re

import numpy as np
import pytest
from sklearn.base import clone

from probgap import PGPUClassifier
from probgap.datasets import hide_labels, make_triangles
from probgap.diagnostics import (
    compare_methods,
    held_out_calibration,
    scar_test,
)
from probgap.diagnostics._scar import judge_randomness
from probgap.exceptions import InvalidInputError
from probgap.inspection import column_importance
from probgap.methods import NaiveClassifier


def test_held_out_rows_are_all_judged_once(fitted, light):
    model, (_, X, labelled, _) = light, fitted
    how = {"n_splits": 2, "random_state": 0}
    found = held_out_calibration(model, X, labelled, n_bins=7, **how)
    assert len(found.bins) == 7
    assert sum(row["n"] for row in found.bins) == labelled.size
    assert found.n_labelled == labelled.sum()
    low, high = found.recall_interval
    assert low < found.recall < high
    assert found.roc_auc > 0.9
    assert all(row["low"] <= row["observed"] <= row["high"] for row in found.bins)


def test_of_many_rows_some_are_drawn(fitted, light):
    model, (_, X, labelled, _) = light, fitted
    how = {"n_splits": 2, "random_state": 0}
    found = held_out_calibration(model, X, labelled, max_rows=200, **how)
    assert sum(row["n"] for row in found.bins) == 200


def test_the_fit_to_the_frequency_of_labels_never_falls(fitted, light):
    model, (_, X, labelled, _) = light, fitted
    how = {"n_splits": 2, "random_state": 0}
    found = held_out_calibration(model, X, labelled, **how).labelling
    assert np.diff([row["fit"] for row in found["bins"]]).min() >= 0
    assert sum(row["labelled"] for row in found["bins"]) == labelled.sum()
    assert found["rank_correlation"] > 0.8


def test_too_few_rows_leave_the_rise_open(light):
    X, y, _ = make_triangles(60, random_state=0)
    model = clone(light).fit(X, y)
    found = held_out_calibration(model, X, y == 1, n_splits=2, random_state=0)
    assert found.labelling["rises"] is None
    assert found.labelling["p_value"] is None


def test_labels_by_the_gap_are_called_biased_and_labels_at_random_are_not():
    X, y, _ = make_triangles(800, random_state=0)
    edge = np.clip((X[:, 1] - X[:, 0]) / 2, 0, 1)
    rng = np.random.default_rng(1)
    by_gap = (y == 1) & (rng.random(y.size) < np.minimum(1, 0.4 + 1.5 * edge))
    at_random = hide_labels(X, y, 2.0 * y - 1, ("constant", 0.3), random_state=2) == 1
    biased, random = (
        scar_test(X, labelled, n_resamples=39, random_state=0)
        for labelled in (by_gap, at_random)
    )
    assert biased.verdict == "biased"
    assert biased.p_value == pytest.approx(1 / 40)
    assert random.p_value > 0.05
    assert random.statistic < biased.statistic


@pytest.mark.parametrize(
    ("p_value", "overlap", "power", "edge", "verdict"),
    [
        (0.01, 0.0, 0.5, 0.01, "biased"),
        (0.01, 0.3, 0.9, 0.01, "unclear"),
        (0.5, 0.0, 0.9, 0.5, "random"),
        (0.5, 0.0, 0.9, 0.01, "unclear"),
        (0.5, 0.0, 0.5, 0.5, "unclear"),
        (0.5, 0.3, 0.9, 0.5, "unclear"),
    ],
)
def test_a_verdict_needs_classes_that_part_and_power(
    p_value, overlap, power, edge, verdict
):
    assert judge_randomness(p_value, overlap, power, edge) == verdict


def test_every_method_gets_a_row_and_truth_adds_to_it(fitted):
    _, X, labelled, y_true = fitted
    told = []
    rows = compare_methods(
        X,
        labelled,
        truth=y_true,
        n_splits=2,
        random_state=0,
        progress=lambda *step: told.append(step),
    )
    assert len({row["method"] for row in rows}) == len(rows) == 18
    assert told[-1] == (36, 36, "probgap")
    ours = rows[-1]
    assert ours["agreement"] == 1.0
    assert ours["only_here"] == ours["only_there"] == 0
    for row in rows:
        assert row["error"] is None
        assert row["both"] + row["only_there"] == row["hidden"]
        assert row["both"] + row["only_here"] == ours["hidden"]
        either = ours["hidden"] + row["only_there"]
        assert row["overlap"] == pytest.approx(row["both"] / either)
        assert 0.5 < row["roc_auc"] <= 1
        for ranked in ("labelled", "hidden"):
            assert 0.5 < row[f"{ranked}_auc"] <= 1
            assert 0 < row[f"{ranked}_average_precision"] <= 1
        assert row["hidden_found"] <= row["hidden"]
    assert ours["accuracy"] > 0.95


def test_a_method_that_fails_says_why_and_the_others_go_on(fitted):
    class Failing(PGPUClassifier):
        def fit(self, *_):
            msg = "cannot"
            raise ValueError(msg)

    _, X, labelled, _ = fitted
    methods = {"naive SVM": NaiveClassifier(), "probgap": Failing()}
    how = {"methods": methods, "n_splits": 2, "random_state": 0}
    rows = compare_methods(X, labelled, **how)
    assert [row["error"] for row in rows] == [None, "cannot"]
    assert rows[0]["hidden"] is not None
    assert rows[0]["agreement"] is None
    assert rows[1]["hidden"] is None


def test_a_preprocessor_is_fitted_on_each_fold(framed, light):
    model, frame, labelled = framed
    rows = compare_methods(
        frame,
        labelled,
        preprocessor=model[0],
        methods={"mine": NaiveClassifier(), "probgap": light},
        n_splits=2,
        random_state=0,
    )
    assert [row["error"] for row in rows] == [None, None]
    assert rows[1]["recall"] > 0.8


def few(labelled, n):
    mask = np.zeros(labelled.size, dtype=bool)
    mask[np.flatnonzero(labelled)[:n]] = True
    return mask


def test_too_few_labels_to_hold_out_are_refused(fitted):
    model, X, labelled, _ = fitted
    with pytest.raises(InvalidInputError, match="Got 2 of 400"):
        held_out_calibration(model, X, few(labelled, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: few(s, 9), "Got 9 of 400"),
        (lambda s: s & False, "Got no labelled"),
        (lambda s: s | True, "Got no unlabelled"),
    ],
)
def test_labels_that_cannot_be_tested_are_refused(fitted, change, message):
    _, X, labelled, _ = fitted
    with pytest.raises(InvalidInputError, match=message):
        scar_test(X, change(labelled))
    with pytest.raises(InvalidInputError, match="Got 0"):
        scar_test(X, labelled, n_resamples=0)


def test_a_comparison_refuses_what_it_cannot_use(fitted):
    _, X, labelled, _ = fitted
    for names in (["magic"], ["naive SVM", "naive SVM"], []):
        with pytest.raises(InvalidInputError, match=rf"Got {re.escape(repr(names))}"):
            compare_methods(X, labelled, methods=names)
    with pytest.raises(InvalidInputError, match=r"truth must have one entry .* \(1,\)"):
        compare_methods(X, labelled, truth=[True])
    with pytest.raises(InvalidInputError, match=r"n_splits must be at least 2\. Got 1"):
        compare_methods(X, labelled, n_splits=1)


@pytest.fixture(scope="module")
def copies():
    """Return rows of which three each are copies but for noise; labels are a coin's."""
    rng = np.random.default_rng(0)
    s, group = rng.random(150) < 0.4, np.repeat(np.arange(150), 3)
    X = np.repeat(rng.normal(size=(150, 5)), 3, axis=0)
    return X + 0.02 * rng.normal(size=X.shape), s[group], group


@pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")
def test_checks_hold_groups_out(copies):
    X, s, group = copies
    model = PGPUClassifier(random_state=0).fit(X, s)
    how = {"random_state": 0}
    scores = []
    for groups in (None, group):
        found = held_out_calibration(model, X, s, n_splits=3, groups=groups, **how)
        ranked = column_importance(model, X, s, n_repeats=1, groups=groups, **how)
        names = ["probgap", "naive forest"]
        rows = compare_methods(X, s, methods=names, n_splits=2, groups=groups, **how)
        aucs = [row["labelled_auc"] for row in rows]
        scores.append([found.roc_auc, ranked.score, *aucs])
    assert min(scores[0]) > 0.8
    assert max(scores[1]) < 0.65


def test_a_test_of_random_labels_takes_one_row_of_each_group(copies):
    X, s, group = copies
    found = scar_test(X, s, n_resamples=19, groups=group, random_state=0)
    assert found.n_rows <= 150
    assert scar_test(X, s, n_resamples=19, random_state=0).n_rows > 150
