"""Tables as they are, in Python."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from probgap import PGPUClassifier, io
from probgap.exceptions import InvalidInputError
from probgap.tables import TableClassifier, make_preprocessor, plan_columns

LIGHT = {"gap_estimator": LogisticRegression(), "estimator": LogisticRegression()}
QUICK = TableClassifier(PGPUClassifier(random_state=0, **LIGHT))
pytestmark = pytest.mark.filterwarnings("ignore::probgap.exceptions.ProbgapWarning")


@pytest.fixture(scope="module")
def table():
    rng, n = np.random.default_rng(0), 300
    age, team = rng.integers(20, 70, n), rng.choice(["red", "blue"], n)
    positive = (age > 45) & (team == "red")
    words = rng.choice(["late", "again", "cash", "paid", "twice", "home"], (n, 5))
    days = pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    frame = pd.DataFrame(
        {
            "age": pd.Series(age, dtype="Int64").mask(rng.random(n) < 0.1),
            "team": pd.Series(team).mask(rng.random(n) < 0.1).astype("category"),
            "day": pd.Timestamp("2020-01-01") + days,
            "note": [" ".join(row) for row in words],
            "row id": np.arange(n),
        },
        index=rng.permutation(n) + 7,
    )
    return frame, positive & (rng.random(n) < 0.7), positive


def test_several_values_are_one_class(table):
    frame, known, _ = table
    kinds = np.where(known, np.where(frame["row id"] % 2, "card", "identity"), None)
    model = clone(QUICK).set_params(pos_label=("card", "identity")).fit(frame, kinds)
    assert model.classes_.tolist() == ["card or identity", "not card or identity"]
    named = clone(model).fit(frame.assign(found=kinds), "found")
    assert named.labels_.kinds.keys() == {"card", "identity"}
    same = clone(QUICK).fit(frame, known)
    for each in (model, named):
        assert_array_equal(
            each.predict_proba(frame)[:, 0], same.predict_proba(frame)[:, 1]
        )


def test_rows_may_be_checked_and_negative(table):
    frame, known, positive = table
    checked = ~positive & (frame["row id"] % 2 == 0).to_numpy()
    y = np.select([known, checked], ["fraud", "fine"], None)
    model = clone(QUICK).set_params(neg_label="fine").fit(frame, y)
    named = clone(model).fit(frame.assign(found=y), "found")
    for each in (model, named):
        assert each.classes_.tolist() == ["fine", "fraud"]
        assert_array_equal(each.pipeline_[-1].negative_, checked)
        assert_array_equal(each.pipeline_[-1].probability_[checked], 0.0)
    assert (
        "as checked and negative, empty cells as unlabelled" in named.labels_.sentence
    )
    other = TableClassifier(LogisticRegression(), neg_label="fine")
    with pytest.raises(InvalidInputError, match="estimator must have neg_label"):
        other.fit(frame, y)


@parametrize_with_checks([QUICK])
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


def test_it_is_the_preparation_of_the_command_and_the_default(table):
    X, known, positive = table
    model = TableClassifier(random_state=0).fit(X, known)
    uses = {column.name: column.use for column in model.plan_.columns}
    assert list(uses.values()) == ["number", "category", "date", "text", "left out"]
    step = make_preprocessor(plan_columns(X.assign(known=known), label="known"))
    plain = make_pipeline(step, PGPUClassifier(random_state=0)).fit(X, known)
    assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert_array_equal(model.decision_function(X), plain.decision_function(X))
    assert model.score(X, positive) > 1.0 - positive.mean()  # all taken for negative
    assert model.feature_names_in_.tolist() == ["age", "team", "day", "note"]


def test_frames_of_other_libraries_give_the_same(table):
    X, known, _ = table
    model = QUICK.fit(X, known)
    others = [pa.Table.from_pandas(X, preserve_index=False)]
    if find_spec("polars"):
        others.append(import_module("polars").from_pandas(X))
    for other in others:
        assert_array_equal(model.predict_proba(other), model.predict_proba(X))
        again = TableClassifier(QUICK.estimator).fit(other, known)
        assert again.plan_ == model.plan_
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        with pytest.raises(InvalidInputError, match=r"X must hold rows\. Got none"):
            model.predict(other[:0])


@pytest.mark.parametrize("own", [None, "fraud"])
def test_labels_are_read_once_for_the_plan_and_the_classifier(table, own):
    X, known, _ = table
    y = pd.Series(np.where(known, "fraud", "ok"), name="age")
    inner = PGPUClassifier(random_state=0, pos_label=own, **LIGHT)
    if own is None:
        with pytest.raises(InvalidInputError, match="pos_label must say which"):
            TableClassifier(inner).fit(X, y)
    named = TableClassifier(inner, pos_label="fraud").fit(X, y)
    plain = TableClassifier(inner.set_params(pos_label=None)).fit(X, known)
    missing = TableClassifier(inner).fit(X, np.where(known, "fraud", None))
    assert_array_equal(named.predict(X) == "fraud", plain.predict(X))
    assert_array_equal(missing.predict(X) == "fraud", plain.predict(X))
    assert named.classes_.tolist() == ["fraud", "ok"]


def test_columns_are_chosen_as_in_the_command(table):
    X, known, _ = table
    chosen = X.assign(code=np.tile([1, 2, 3], 100), mirror=known.astype(str))
    model = TableClassifier(QUICK.estimator, drop=["note"], category=["code"])
    plan = {column.name: column for column in model.fit(chosen, known).plan_.columns}
    assert plan["code"].use == "category"
    assert plan["note"].why == "dropped on request"
    assert plan["mirror"].why.startswith("mirrors the label")
    with pytest.raises(InvalidInputError, match="did you mean 'team'"):
        TableClassifier(drop=["tem"]).fit(X, known)
    with pytest.raises(ValueError, match="yet now missing:\n- team"):
        model.predict(chosen.drop(columns="team"))
    with pytest.raises(ValueError, match="in the same order as they were in fit"):
        model.predict(chosen[[*reversed(chosen.columns)]])
    others = chosen.drop(columns=["mirror", "note"])
    others.insert(1, "new", 1)
    assert_array_equal(model.predict(others), model.predict(chosen))


def test_labels_may_be_a_column_of_the_table(table):
    X, known, _ = table
    frame = X.assign(found=np.where(known, "Yes", ""), case=np.arange(len(X)))
    model = TableClassifier(QUICK.estimator, id="case").fit(frame, "found")
    assert (model.label_, model.labels_.positive) == ("found", "Yes")
    assert model.classes_.tolist() == ["No", "Yes"]
    uses = {column.name: column.use for column in model.plan_.columns}
    assert (uses["found"], uses["case"]) == ("label", "id")
    apart = TableClassifier(QUICK.estimator, drop=["case"])
    apart.fit(frame.drop(columns="found"), known)
    assert apart.label_ is None
    assert_array_equal(model.predict_proba(X), apart.predict_proba(frame))
    with pytest.raises(InvalidInputError, match="has no column 'foun'; did you mean"):
        model.fit(frame, "foun")
    with pytest.raises(InvalidInputError, match="marks 1 of 300 rows; a fit needs"):
        model.fit(frame.assign(found=["Yes", *[""] * 299]), "found")


def test_what_the_estimator_leaves_open_is_handed_on(table):
    X, known, _ = table
    inner = PGPUClassifier(class_prior=0.3, **LIGHT)
    model = TableClassifier(inner, class_prior=0.2, random_state=3, n_jobs=1)
    chosen = model.fit(X, known).pipeline_[-1].get_params(deep=False)
    assert [chosen[n] for n in ("class_prior", "random_state", "n_jobs")] == [0.3, 3, 1]


def test_any_classifier_and_any_search(table):
    X, known, _ = table
    grid = {"estimator__C": [0.1, 1.0], "drop": [(), ("day",)]}
    search = GridSearchCV(TableClassifier(LogisticRegression()), grid, cv=2)
    assert search.fit(X, known).predict_proba(X).shape == (len(X), 2)
    decides = TableClassifier(LinearSVC()).fit(X, known)
    assert not hasattr(decides, "predict_proba")
    assert decides.decision_function(X).shape == (len(X),)


def test_arrays_have_numbered_columns(table):
    X, known, _ = table
    model = QUICK.fit(X[["age", "team"]].to_numpy(), known)
    assert [column.name for column in model.plan_.columns] == ["x0", "x1"]
    assert [column.use for column in model.plan_.columns] == ["number", "category"]
    with pytest.raises(ValueError, match="X has 1 features, but TableClassifier"):
        model.predict(X[["age"]].to_numpy())


def test_it_tells_the_count_and_remembers_what_was_usual(table, probgap, tmp_path):
    X, known, _ = table
    assert not hasattr(TableClassifier(), "estimate_")
    model = clone(QUICK).fit(X, known)
    estimate = model.pipeline_[-1].estimate_
    assert model.estimate_ is estimate
    assert f"{estimate.hidden_range} (90% interval)" in model._repr_html_()
    assert "90% interval" not in clone(QUICK)._repr_html_()
    assert not hasattr(TableClassifier(LinearSVC()).fit(X, known), "estimate_")
    io.save(model, tmp_path / "model.probgap")
    X.assign(age=1000 * X["age"]).to_csv(tmp_path / "new.csv", index=False)
    words = ("predict", tmp_path / "model.probgap", tmp_path / "new.csv")
    said = probgap(*words, "--strict")
    assert said.exit_code == 1
    assert "Column 'age' left its training range" in said.stderr


@pytest.fixture(scope="module")
def visits():
    """Return a table with three rows of each customer, alike but for noise."""
    rng, n = np.random.default_rng(1), 120
    customer = np.repeat(np.arange(n), 3)
    traits = np.repeat(rng.normal(size=(n, 4)), 3, axis=0)
    frame = pd.DataFrame(traits + 0.05 * rng.normal(size=traits.shape))
    frame.columns = list("abcd")
    known = np.repeat(rng.random(n) < 0.4, 3)  # by a coin
    return frame.assign(customer=[f"C-{k:03}" for k in customer]), known


def test_rows_of_a_group_are_held_out_together(visits):
    frame, known = visits
    rest = frame.drop(columns="customer")
    model = TableClassifier(group="customer", random_state=0).fit(frame, known)
    assert {c.name: c.use for c in model.plan_.columns}["customer"] == "group"
    assert list(model.plan_.inputs) == list("abcd")
    told = TableClassifier(random_state=0).fit(rest, known, groups=frame["customer"])
    gaps = [each.pipeline_[-1].observed_gap_ for each in (model, told)]
    assert_array_equal(*gaps)
    assert roc_auc_score(known, gaps[0]) < 0.65
    apart = TableClassifier(random_state=0).fit(rest, known)
    assert roc_auc_score(known, apart.pipeline_[-1].observed_gap_) > 0.9
    assert_array_equal(model.predict(rest), model.predict(frame))
    kept = TableClassifier(group="a", keep=["a"], random_state=0).fit(frame, known)
    assert "a" in kept.plan_.inputs


def test_groups_that_cannot_be_used_are_refused(visits):
    frame, known = visits
    with pytest.raises(InvalidInputError, match="groups must be None if group names"):
        TableClassifier(group="customer").fit(frame, known, groups=known)
    with pytest.raises(InvalidInputError, match="'nobody'"):
        TableClassifier(group="nobody").fit(frame, known)
    with pytest.raises(InvalidInputError, match="must take groups in fit"):
        TableClassifier(LogisticRegression(), group="customer").fit(frame, known)
    with pytest.raises(InvalidInputError, match="another one than the label"):
        TableClassifier(group="known").fit(frame.assign(known=known), "known")


def test_ids_that_repeat_are_noticed(visits):
    frame, known = visits
    number = frame["customer"].str[2:].astype(int)
    once = [f"R-{row}" for row in range(len(frame))]
    twice = [f"H-{row // 2}" for row in range(len(frame))]
    frame = frame.assign(customer_id=number, order=once, size=number % 5, home=twice)
    plan = plan_columns(frame, labelled=known)
    uses = {c.name: c.use for c in plan.repeated_ids}
    assert uses == {"customer": "category", "customer_id": "number", "home": "left out"}
    assert not plan_columns(frame, labelled=known, group="customer").repeated_ids
