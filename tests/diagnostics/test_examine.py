import json
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap.diagnostics import _examine, examine
from probgap.exceptions import InvalidInputError, ProbgapWarning
from probgap.gap import ObservedGapEstimator

SECTIONS = ["found", "boundary", "decision", "belief", "drivers", "next", "warnings"]


@contextmanager
def _quiet():
    """Let a fit that has nothing to learn say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbgapWarning)
        yield


@pytest.fixture(scope="module")
def account(framed):
    model, frame, labelled = framed
    told = []
    found = examine(
        model,
        frame,
        labelled,
        random_state=0,
        progress=lambda *step: told.append(step),
    )
    return found, told


def test_the_account_is_plain_and_has_every_section(account):
    found, _ = account
    assert list(found) == SECTIONS
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_progress_begins_at_nothing_and_ends_at_all(account):
    _, told = account
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1]
    assert all(done <= total for done, total, _ in told)


def test_counts_agree_with_each_other_and_with_the_model(account, framed):
    found, _ = account
    model, frame, labelled = framed
    counts, decision = found["found"], found["decision"]
    classifier = model[-1]
    called = classifier.posterior_ > 0.5
    assert counts["rows"] == counts["labelled"] + counts["unlabelled"] == len(frame)
    assert counts["called_positive"] == (called & ~labelled).sum()
    reading = classifier.reading_
    assert counts["hidden"] == pytest.approx(reading.n_hidden)
    assert counts["hidden_interval"] == pytest.approx(reading.n_hidden_interval)
    low, high = counts["hidden_interval"]
    assert 0 <= low <= counts["hidden"] <= high <= counts["unlabelled"]
    worlds = found["belief"]["worlds"]
    assert low <= worlds["low"] <= counts["hidden"] <= worlds["high"] <= high
    histogram = decision["histogram"]
    assert len(histogram["edges"]) == 41
    assert sum(histogram["labelled"]) == counts["labelled"]
    assert sum(histogram["unlabelled"]) == counts["unlabelled"]
    assert sum(row["n"] for row in decision["reliability"]) == len(frame)
    sides = [decision[f"n_{side}"] for side in ("negative", "undecided", "positive")]
    assert sum(sides) == len(frame)


def test_drivers_are_columns_that_the_model_sees(account):
    found, _ = account
    names = [row["column"] for row in found["drivers"]["columns"]]
    assert set(names) == {"x", "y", "noise", "kind"}
    assert set(names[:2]) == {"x", "y"}


def test_what_to_label_next_is_unlabelled_and_counted_from_one(account, framed):
    found, _ = account
    _, frame, labelled = framed
    rows = [entry["row"] for entry in found["next"]]
    assert 0 < len(set(rows)) == len(rows) <= 50
    assert min(rows) >= 1
    assert max(rows) <= len(frame)
    assert not labelled[np.array(rows) - 1].any()


def test_the_same_seed_gives_the_same_account_whatever_n_jobs(fitted):
    _, X, labelled, _ = fitted
    X, labelled = X[:200], labelled[:200]
    model = PGPUClassifier(gap_estimator=ObservedGapEstimator(), random_state=0).fit(
        X, labelled
    )
    first, second = (
        examine(model, X, labelled, random_state=1, n_jobs=n) for n in (None, 2)
    )
    assert first == second


def test_a_check_that_fails_is_none_and_a_warning(fitted, monkeypatch):
    def fail(*args, **kwargs):
        msg = "no luck"
        raise RuntimeError(msg)

    for name in ("hold_out", "scar_test", "compare_methods"):
        monkeypatch.setattr(_examine, name, fail)
    monkeypatch.setattr(_examine, "column_importance", fail)
    model, X, labelled, _ = fitted
    found = examine(model, X, labelled, random_state=0)
    assert found["drivers"] is None
    assert found["belief"].pop("worlds") is not None
    assert found["belief"] == {
        "scar": None,
        "labelling": None,
        "held_out": None,
        "others": [],
    }
    assert sum("no luck" in warning["what"] for warning in found["warnings"]) == 4


@pytest.mark.filterwarnings("ignore::probgap.exceptions.UnreliableFitWarning")
def test_a_few_labels_give_an_account_with_a_strong_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    s = np.zeros(60, dtype=int)
    s[np.argsort(-X[:, 0])[:3]] = 1
    model = PGPUClassifier(random_state=0).fit(X, s)
    found = examine(model, X, s == 1, random_state=0)
    json.dumps(found, allow_nan=False)
    assert found["warnings"][0]["level"] == "strong"
    assert "Only 3 positives are labelled" in found["warnings"][0]["what"]
    assert found["belief"]["scar"] is None


def only(monkeypatch, *names):
    """Make these checks alone."""
    checks = {name: _examine._CHECKS[name] for name in names}
    monkeypatch.setattr(_examine, "_CHECKS", checks)


def test_labels_that_mean_nothing_are_noticed(monkeypatch):
    only(monkeypatch, "held-out rows")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    s = rng.random(300) < 0.2
    with _quiet():
        model = PGPUClassifier(random_state=0).fit(X, s)
    found = examine(model, X, s, random_state=0)
    assert any("look like all the others" in w["what"] for w in found["warnings"])


def test_a_column_that_gives_the_label_away_is_noticed(monkeypatch):
    only(monkeypatch, "held-out rows", "columns")
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    s = rng.random(300) < 0.2
    X[:, 1] = 4.0 * s + 0.1 * rng.normal(size=300)
    with _quiet():
        model = PGPUClassifier(random_state=0).fit(X, s)
    found = examine(model, X, s, random_state=0)
    strong = [w["what"] for w in found["warnings"] if w["level"] == "strong"]
    assert any("'1' alone" in what for what in strong)


def test_other_models_of_the_room_are_examined_too(fitted):
    _, X, labelled, _ = fitted
    model = PGPUClassifierCV.paper(boundaries=[-0.8, -0.6], cv=2, random_state=0)
    found = examine(model.fit(X, labelled), X, labelled, random_state=0)
    assert found["boundary"]["rule"] == "cross_validated"
    worlds = found["belief"]["worlds"]
    assert worlds["low"] <= found["found"]["hidden"] <= worlds["high"]
    assert found["decision"]["weights"]["reweighted"]
    assert found["decision"]["weights"]["kkt_residual"] < 1e-3


def test_other_rows_than_those_of_the_fit_are_refused(fitted):
    model, X, labelled, _ = fitted
    with pytest.raises(InvalidInputError, match="Got 399"):
        examine(model, X[:-1], labelled[:-1])


def test_sparse_rows_are_examined_too(fitted):
    _, X, _, y_true = fitted
    sparse, labelled = csr_matrix(X[:200]), y_true[:200] & (np.arange(200) % 3 > 0)
    model = PGPUClassifier(random_state=0).fit(sparse, labelled)
    found = examine(model, sparse, labelled, random_state=0)
    assert not any("could not be made" in w["what"] for w in found["warnings"])
    assert found["belief"]["scar"] is not None


def test_many_columns_are_examined_by_the_most_telling(fitted, monkeypatch):
    only(monkeypatch, "columns")
    _, X, labelled, _ = fitted
    noise = np.random.default_rng(0).normal(size=(len(X), 220))
    wide = np.hstack([3.0 * X, 0.1 * noise])
    model = PGPUClassifier(random_state=0).fit(wide, labelled)
    found = examine(model, wide, labelled, random_state=0)
    columns = [row["column"] for row in found["drivers"]["columns"]]
    assert len(columns) == 30
    assert set(columns[:2]) == {"0", "1"}
