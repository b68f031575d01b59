"""The columns by which labels go, and the question about the strongest of them."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import probgap
from probgap import PGPUClassifier
from probgap.diagnostics import labelling_columns
from probgap.tables import TableClassifier

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


RATES = {"A": 0.8, "B": 0.3, "C": 0.05}


@pytest.fixture(scope="module")
def clinics():
    """A table in which clinics looked more or less often: frame, truth, labels."""
    rng = np.random.default_rng(0)
    signs = rng.normal(size=(700, 4))
    frame = pd.DataFrame(signs, columns=["pulse", "fever", "cough", "pain"])
    frame["clinic"] = rng.choice(list(RATES), 700)
    frame["case"] = [f"case {k}" for k in range(700)]
    frame["colour"] = rng.choice(["red", "blue"], 700)
    sick = signs.sum(axis=1) > 1.0
    return frame, sick, sick & (rng.random(700) < frame["clinic"].map(RATES))


@pytest.fixture(scope="module")
def clinics_model(clinics):
    frame, _, labelled = clinics
    return TableClassifier(random_state=0).fit(frame, labelled)


def test_the_column_that_says_who_was_looked_at_is_found(clinics, clinics_model):
    frame, sick, labelled = clinics
    found = labelling_columns(clinics_model, frame, labelled, random_state=0)
    first = found[0]
    assert (first.name, first.strong) == ("clinic", True)
    assert [one.name for one in found if one.strong] == ["clinic"]
    assert [group.level for group in first.groups] == list(RATES)
    for group in first.groups:
        assert group.rate_low <= RATES[group.level] / 0.8 <= group.rate_high
        at = frame["clinic"] == group.level
        assert (group.rows, group.labelled) == (at.sum(), labelled[at].sum())
    low, high = first.n_hidden_interval
    hidden = (sick & ~labelled).sum()
    assert low < first.n_hidden < high
    assert low < hidden < high
    assert clinics_model.estimate_.n_hidden < 0.7 * hidden
    again = labelling_columns(clinics_model, frame, labelled, random_state=0)
    assert again[0].evidence == first.evidence
    assert again[0].n_hidden == first.n_hidden


def test_the_count_is_about_that_of_a_model_that_was_told(clinics):
    frame, _, labelled = clinics
    told = TableClassifier(labelled_by=["clinic"], random_state=0)
    told.fit(frame, labelled)
    plain = TableClassifier(random_state=0).fit(frame, labelled)
    first = labelling_columns(plain, frame, labelled, random_state=0)[0]
    ratio = first.n_hidden / told.estimate_.n_hidden
    assert 0.7 < ratio < 1.4
    asked = labelling_columns(told, frame, labelled, random_state=0)
    assert not any(one.strong for one in asked)
    assert "clinic" not in {one.name for one in asked}


def test_no_column_is_asked_about_where_labels_go_by_none(clinics):
    frame, sick, _ = clinics
    X = frame.drop(columns=["clinic", "case", "colour"]).to_numpy()
    X = np.column_stack([X, frame["clinic"].map(ord)])
    s = sick & (np.random.default_rng(1).random(len(X)) < 0.5)
    model = PGPUClassifier(random_state=0).fit(X, s)
    assert not any(one.strong for one in labelling_columns(model, X, s, random_state=0))


def test_columns_of_arrays_are_found_by_their_position(clinics):
    frame, _, labelled = clinics
    X = frame.drop(columns=["clinic", "case", "colour"]).to_numpy()
    X = np.column_stack([frame["clinic"].map(ord), X])
    model = PGPUClassifier(random_state=0).fit(X, labelled)
    assert labelling_columns(model, X, labelled, random_state=0)[0].name == "0"
    weighed = PGPUClassifier(random_state=0).fit(
        X, labelled, sample_weight=np.where(X[:, 0] == ord("A"), 2, 1)
    )
    how = {"max_rows": 400, "random_state": 0}
    first = labelling_columns(weighed, X, labelled, **how)[0]
    assert (first.name, first.strong) == ("0", True)
    known = np.flatnonzero(labelled)[:3]
    few = np.zeros_like(labelled)
    few[known] = True
    assert labelling_columns(model, X, few, random_state=0) == ()
    sparse = csr_matrix(np.clip(X[:, 1:], 0, None))
    model = PGPUClassifier(random_state=0).fit(sparse, labelled)
    assert labelling_columns(model, sparse, labelled, random_state=0) == ()


def test_a_category_too_rare_to_learn_from_is_tried(clinics):
    frame, sick, _ = clinics
    rng = np.random.default_rng(2)
    site = rng.permutation(np.arange(700) % 140)
    labelled = sick & (rng.random(700) < np.where(site < 70, 0.9, 0.0))
    frame = frame.assign(clinic=[f"site {at}" for at in site])
    model = TableClassifier(random_state=0).fit(frame, labelled)
    use = {column.name: column.use for column in model.plan_.columns}
    assert use["clinic"] == "left out"
    found = labelling_columns(model, frame, labelled, random_state=0)
    assert (found[0].name, found[0].strong) == ("clinic", True)


def test_the_report_asks_once(clinics, clinics_model):
    frame, _, labelled = clinics
    made = probgap.report(clinics_model, frame, labelled, random_state=0)
    question = made.tree["question"]
    assert (question["name"], question["declared"]) == ("clinic", ["clinic"])
    words = (
        r"Rows of clinic A are labelled \d+ times as often as rows of clinic C that are "
        r"alike otherwise"
    )
    assert re.search(words, made.to_html())
    assert "labelled_by=[&#39;clinic&#39;]" in made.to_html()
    run = {"command": "probgap fit cases.csv"}
    asked = probgap.report(clinics_model, frame, labelled, run=run, random_state=0)
    assert "--labelled-by clinic" in asked.to_html()
    fast = probgap.report(clinics_model, frame, labelled, fast=True, random_state=0)
    assert fast.tree["question"] is None
    assert "who was looked at" in fast.to_html()
