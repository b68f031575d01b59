import json
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_matrix
from sklearn.base import clone

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap.diagnostics import examine
from probgap.exceptions import InvalidInputError, ProbgapWarning


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


def test_the_account_as_plain_data_has_every_key(account):
    plain = account[0].to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    keys = {name: set(part) for name, part in plain.items() if isinstance(part, dict)}
    assert keys["found"] >= {"rows", "labelled", "unlabelled", "hidden", "level"}
    assert keys["found"] >= {"hidden_interval", "share_positive", "share_interval"}
    assert "called_positive" in keys["found"]
    assert keys["boundary"] == {"value", "rule", "spread", "fallback"}
    assert keys["decision"] >= {"n_negative", "n_undecided", "n_positive"}
    assert keys["decision"] >= {
        "undecided_share",
        "histogram",
        "reliability",
        "weights",
    }
    assert keys["drivers"] >= {"scored_by", "score", "columns"}
    belief = plain["belief"]
    assert set(belief["labelling"]) >= {"bins", "rises", "rank_correlation"}
    assert set(belief["held_out"]) >= {"recall", "n_labelled", "calibration_error"}
    assert set(belief["worlds"]) == {"low", "high", "familiarity"}
    assert {"method", "hidden", "both", "error"} <= set(belief["others"][0])
    assert set(plain["next"][0]) == {"row", "id", "gap", "probability", "why"}
    assert isinstance(plain["warnings"], list)


def test_progress_begins_at_nothing_and_ends_at_all(account):
    _, told = account
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1]
    assert all(done <= total for done, total, _ in told)


def test_counts_agree_with_each_other_and_with_the_model(account, framed):
    found, _ = account
    model, frame, labelled = framed
    counts, boundary, worlds = found.found, found.boundary, found.worlds
    classifier = model[-1]
    assert found.weights.bound is None  # nothing was left out
    called = classifier.probability_ > 0.5
    assert counts.rows == counts.labelled + counts.unlabelled == len(frame)
    assert counts.called_positive == (called & ~labelled).sum()
    reading = classifier.reading_
    assert counts.hidden == pytest.approx(reading.n_hidden)
    assert counts.hidden_interval == pytest.approx(reading.n_hidden_interval)
    low, high = counts.hidden_interval
    assert 0 <= low <= counts.hidden <= high <= counts.unlabelled
    assert low <= worlds.low <= counts.hidden <= worlds.high <= high
    assert len(found.histogram.edges) == 41
    assert sum(found.histogram.labelled) == counts.labelled
    assert sum(found.histogram.unlabelled) == counts.unlabelled
    sides = boundary.n_negative, boundary.n_undecided, boundary.n_positive
    assert sum(sides) == len(frame)
    assert found.undecided_share == boundary.n_undecided / len(frame)


def test_held_out_predictions_are_those_of_the_fit(account, framed):
    found, _ = account
    model, frame, labelled = framed
    assert sum(row.n for row in found.held_out.bins) == len(frame)
    recall = (model[-1].posterior_[labelled] > 0.5).mean()
    assert found.held_out.recall == pytest.approx(recall)
    assert found.held_out.n_labelled == labelled.sum()
    assert sum(row.n for row in found.labelling.bins) == len(frame)


def test_other_methods_are_compared_on_rows_they_were_not_fitted_on(account, framed):
    found, _ = account
    _, frame, _ = framed
    assert found.n_compared == len(frame) // 2
    ours = {other.both + other.only_here for other in found.others}
    assert len(ours) == 1
    assert all(other.hidden <= found.n_compared for other in found.others)
    assert all(other.error is None for other in found.others)


def test_drivers_are_columns_that_the_model_sees(account):
    found, _ = account
    assert set(found.drivers.columns) == {"x", "y", "noise", "kind"}
    assert set(found.drivers.columns[:2]) == {"x", "y"}


def test_what_to_label_next_is_unlabelled_and_counted_from_one(account, framed):
    found, _ = account
    _, frame, labelled = framed
    rows = [entry.row for entry in found.next]
    assert 0 < len(set(rows)) == len(rows) <= 50
    assert min(rows) >= 1
    assert max(rows) <= len(frame)
    assert not labelled[np.array(rows) - 1].any()


def test_the_same_seed_gives_the_same_account_whatever_n_jobs(fitted, light):
    _, X, labelled, _ = fitted
    X, labelled = X[:200], labelled[:200]
    model = clone(light).fit(X, labelled)
    with parallel_config(backend="threading"):
        first, second = (
            examine(model, X, labelled, random_state=1, n_jobs=n).to_dict()
            for n in (None, 2)
        )
    assert first == second


@pytest.mark.filterwarnings("ignore::probgap.exceptions.UnreliableFitWarning")
def test_a_few_labels_give_an_account_with_a_strong_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    s = np.zeros(60, dtype=int)
    s[np.argsort(-X[:, 0])[:3]] = 1
    model = PGPUClassifier(random_state=0).fit(X, s)
    found = examine(model, X, s == 1, random_state=0)
    plain = found.to_dict()
    json.dumps(plain, allow_nan=False)
    assert found.warnings[0].level == "strong"
    assert "Only 3 positives are labelled" in found.warnings[0].what
    failed = [w.what for w in found.warnings if "could not be made" in w.what]
    assert len(failed) == 3
    assert (found.scar, found.drivers, found.others) == (None, None, ())
    assert (plain["belief"]["scar"], plain["drivers"]) == (None, None)
    assert plain["belief"]["others"] == []


def test_labels_that_mean_nothing_are_noticed():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    s = rng.random(300) < 0.2
    with _quiet():
        model = PGPUClassifier(random_state=0).fit(X, s)
    found = examine(model, X, s, fast=True, random_state=0)
    assert any("look like all the others" in w.what for w in found.warnings)


def test_a_column_that_gives_the_label_away_is_noticed():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    s = rng.random(300) < 0.2
    X[:, 1] = 4.0 * s + 0.1 * rng.normal(size=300)
    with _quiet():
        model = PGPUClassifier(random_state=0).fit(X, s)
    found = examine(model, X, s, random_state=0)
    strong = [w.what for w in found.warnings if w.level == "strong"]
    assert any("'1' alone" in what for what in strong)


def check_bound(bound, model, X):
    """Count what leaving out rows can cost."""
    decided = model.relabelling_.decided
    wrong = (model.predict(X) == 1) != (model.relabelling_.labels == 1)
    assert bound.share_left_out == pytest.approx(1.0 - decided.mean())
    assert bound.risk_selected == pytest.approx(wrong[decided].mean())


def test_other_models_of_the_room_are_examined_too(fitted):
    _, X, labelled, _ = fitted
    model = PGPUClassifierCV.paper(boundaries=[-0.8, -0.6], cv=2, random_state=0)
    found = examine(model.fit(X, labelled), X, labelled, random_state=0)
    assert found.boundary.rule == "cross_validated"
    assert found.worlds.low <= found.found.hidden <= found.worlds.high
    assert found.weights.reweighted
    assert found.weights.kkt_residual < 1e-3
    check_bound(found.weights.bound, model, X)
    assert found.held_out.recall < 1.0  # by copies: gaps in sample tell nothing


def test_other_rows_than_those_of_the_fit_are_refused(fitted):
    model, X, labelled, _ = fitted
    with pytest.raises(InvalidInputError, match="Got 399"):
        examine(model, X[:-1], labelled[:-1])


def test_sparse_rows_are_examined_too(fitted):
    _, X, _, y_true = fitted
    sparse, labelled = csr_matrix(X[:200]), y_true[:200] & (np.arange(200) % 3 > 0)
    model = PGPUClassifier(random_state=0).fit(sparse, labelled)
    found = examine(model, sparse, labelled, random_state=0)
    assert not any("could not be made" in w.what for w in found.warnings)
    scar = found.to_dict()["belief"]["scar"]
    assert set(scar) >= {"statistic", "p_value", "n_resamples", "verdict"}
    assert scar["n_rows"] == 200


def test_many_columns_are_examined_by_the_most_telling(fitted, light):
    _, X, labelled, _ = fitted
    noise = np.random.default_rng(0).normal(size=(len(X), 40))
    wide = np.hstack([3.0 * X, 0.1 * noise])
    model = clone(light).fit(wide, labelled)
    found = examine(model, wide, labelled, random_state=0)
    assert len(found.drivers.columns) == 30
    assert set(found.drivers.columns[:2]) == {0, 1}
    assert found.drivers.n_left_out == 12
    named = found.to_dict()["drivers"]["columns"]
    assert {row["column"] for row in named[:2]} == {"0", "1"}


def test_fast_leaves_out_the_checks_that_fit_something_else(account, framed):
    model, frame, labelled = framed
    told = []
    fast = examine(
        model,
        frame,
        labelled,
        fast=True,
        random_state=0,
        progress=lambda *step: told.append(step),
    )
    whole, _ = account
    assert fast.scar is None
    assert fast.drivers is None
    assert fast.others == ()
    assert (fast.held_out, fast.next) == (whole.held_out, whole.next)
    assert [w.sign for w in fast.warnings].count("fast") == 1
    assert not any(w.sign == "fast" for w in whole.warnings)
    assert {what for _, _, what in told} == {"held-out rows", "what to label next", ""}
    assert told[-1][0] == told[-1][1]
