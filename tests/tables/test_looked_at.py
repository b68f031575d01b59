"""Columns that say who was looked at, of tables and of matrices."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from probgap import PGPUClassifier, io, report
from probgap.diagnostics import held_out_calibration
from probgap.exceptions import InvalidInputError, UnreliableFitWarning
from probgap.inspection import column_importance
from probgap.tables import TableClassifier, plan_columns

N = 420
RATES = {"A": 0.9, "B": 0.4, "C": 0.04}


@pytest.fixture(scope="module")
def cases():
    rng = np.random.default_rng(0)
    clinic = rng.choice(list(RATES), N)
    year = rng.choice([2019, 2020, 2021, 2022], N)
    day = np.datetime64("2020-01-01") + rng.integers(0, 900, N)
    x, z = rng.normal(size=(2, N)).round(3)
    positive = x + 0.5 * z > 0.2
    labelled = positive & (rng.random(N) < pd.Series(clinic).map(RATES))
    frame = pd.DataFrame({"clinic": clinic, "year": year, "x": x, "z": z})
    frame["day"] = day.astype(str)
    return frame, labelled, positive


@pytest.fixture(scope="module")
def model(cases):
    frame, labelled, _ = cases
    return TableClassifier(labelled_by=["clinic"], random_state=0).fit(frame, labelled)


def groups_of(model, column="clinic"):
    found = [group for group in model.labelling_.groups if group.column == column]
    return {group.level: group for group in found}


def fit(cases, labelled_by, **options):
    frame, labelled, _ = cases
    options = {"labelled_by": labelled_by, "random_state": 0} | options
    return TableClassifier(**options).fit(frame, labelled)


def test_rates_and_hidden_positives_of_each_group_are_found(cases, model):
    frame, labelled, positive = cases
    for level, group in groups_of(model).items():
        rows = (frame["clinic"] == level).to_numpy()
        assert (group.rows, group.labelled) == (rows.sum(), (rows & labelled).sum())
        assert group.rate_low <= RATES[level] / 0.9 <= group.rate_high
        hidden = (rows & positive & ~labelled).sum()
        assert group.hidden_low <= hidden <= group.hidden_high
    low, high = model.estimate_.n_hidden_interval
    assert low <= (positive & ~labelled).sum() <= high
    total = sum(group.hidden for group in model.labelling_.groups)
    assert total == pytest.approx(model.estimate_.n_hidden)


def test_it_answers_as_for_the_prepared_matrix_with_the_column_beside_it(cases, model):
    frame, labelled, _ = cases
    samples = model.pipeline_[0].transform(model.read_inputs(frame)).astype(object)
    beside = np.column_stack([samples, frame["clinic"]])
    own = PGPUClassifier(labelled_by=[-1], random_state=0).fit(beside, labelled)
    assert_array_equal(own.probability_, model.pipeline_[-1].probability_)


def test_the_plan_says_what_the_column_is_for_and_new_rows_may_lack_it(cases, model):
    frame, _, _ = cases
    assert model.plan_.names("who was looked at") == ("clinic",)
    assert list(model.feature_names_in_) == ["year", "x", "z", "day"]
    without = model.predict_proba(frame.drop(columns="clinic"))
    assert_array_equal(model.predict_proba(frame.assign(clinic="new")), without)


def test_what_tells_the_same_as_a_declared_column_is_left_out(cases):
    frame, labelled, _ = cases
    code = {"A": "north", "B": "south", "C": "hill"}
    frame = pd.concat([frame["clinic"].map(code).rename("place"), frame], axis=1)
    plan = plan_columns(frame, labelled=labelled, labelled_by=["clinic"])
    assert plan.columns[0].why == "tells the same as 'clinic'"


@pytest.mark.parametrize("dates", [True, False])
def test_numbers_dates_and_missing_cells_are_groups(cases, dates):
    frame, labelled, _ = cases
    frame = frame.assign(year=frame["year"].where(frame.index % 7 > 0))
    if not dates:
        frame["day"] = pd.to_datetime(frame["day"]).astype("int64") / 1e9
    model = fit((frame, labelled, None), ["year", "day"])
    years = groups_of(model, "year")
    assert list(years) == ["2019", "2020", "2021", "2022", "(missing)"]
    assert years["(missing)"].rows == 60
    days = groups_of(model, "day")
    assert len(days) == 10
    assert next(iter(days)).startswith("2020-01-0") is dates
    assert sum(group.rows for group in days.values()) == N


def test_codes_that_are_numbers_are_levels_if_they_are_categories(cases):
    frame, labelled, _ = cases
    sites = np.arange(N) % 120
    frame = frame.assign(site=sites)
    ranges = fit((frame, labelled, None), ["site"])
    levels = fit((frame, labelled, None), ["site"], category=["site"])
    assert len(ranges.labelling_.groups) == 10
    assert len(levels.labelling_.groups) == 120


def test_a_group_that_was_never_looked_at_has_hidden_positives_all_the_same(cases):
    frame, _, positive = cases
    labelled = positive & (frame["clinic"] == "A").to_numpy() & (frame["x"] > 0.3)
    model = fit((frame, labelled.to_numpy(), None), ["clinic"])
    never = groups_of(model)["C"]
    assert never.labelled == 0
    assert never.rate < 0.1
    assert never.hidden_low > 5.0


def test_one_group_alone_changes_nothing(cases):
    frame, labelled, _ = cases
    one = fit((frame.assign(clinic="A"), labelled, None), ["clinic"])
    none = fit((frame.drop(columns="clinic"), labelled, None), [])
    assert groups_of(one)["A"].rate == 1.0
    assert none.labelling_ is None
    gaps = [each.pipeline_[-1].observed_gap_ for each in (one, none)]
    assert_array_equal(*gaps)


def test_a_column_in_both_roles_stays_among_the_features(cases):
    model = fit(cases, ["clinic", "year"], keep=["clinic"])
    assert model.labelling_.kept == ("clinic",)
    assert "clinic" in model.plan_.inputs
    names = model.pipeline_[0].get_feature_names_out()
    places = model.pipeline_[-1].looked_.kept["clinic"]
    assert ["clinic" in name for name in names] == [
        at in places for at in range(names.size)
    ]
    rates = [groups_of(model)[level].rate for level in "ABC"]
    assert rates[0] > rates[1] > rates[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labelled_by": ["clinics"]}, "has no column 'clinics'"),
        ({"labelled_by": [0]}, "has no column 0; it has"),
        ({"labelled_by": ["clinic"], "drop": ["clinic"]}, "neither label, id nor"),
        ({"labelled_by": ["clinic"], "id": "clinic"}, "neither label, id nor"),
        ({"labelled_by": ["clinic", "year", "x", "z", "day"]}, "no column to learn"),
        (
            {"labelled_by": ["clinic", "year", "x", "z", "day"], "keep": ["x"]},
            "no column to learn",
        ),
        ({"labelled_by": ["clinic"], "estimator": LogisticRegression()}, "estimator"),
    ],
)
def test_declarations_that_cannot_work_are_refused(cases, options, message):
    with pytest.raises(InvalidInputError, match=message):
        fit(cases, **options)


def test_a_column_that_mirrors_the_label_says_nothing_of_who_was_looked_at(cases):
    frame, labelled, _ = cases
    frame = frame.assign(finder=np.where(labelled, "ann", None))
    with pytest.raises(InvalidInputError, match="'finder', which mirrors the label"):
        fit((frame, labelled, None), ["finder"])


def test_a_matrix_refuses_what_cannot_work(cases):
    frame, labelled, _ = cases
    X = frame[["x", "z", "year"]]
    for options, message in (
        ({"labelled_by": ["w"]}, "must hold columns of X, which has x, z, year"),
        ({"labelled_by": [0, 1, 2]}, "must leave a column"),
        ({"labelled_by": [2], "keep": [1]}, "keep must hold columns of labelled_by"),
        ({"labelled_by": []}, "must name a column"),
        ({"labelled_by": [True]}, r"must hold columns of X, .* Got True\."),
        ({"keep": ["x"]}, r"keep must be None without labelled_by\. Got \['x'\]"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            PGPUClassifier(**options).fit(X, labelled)
    X = X.set_axis(["x", "z", "z"], axis=1)
    with pytest.raises(InvalidInputError, match=r"some of one name\. Got 'z'"):
        PGPUClassifier(labelled_by=["z"]).fit(X, labelled)


def test_a_column_declared_twice_counts_once(cases):
    frame, labelled, _ = cases
    once, twice = (
        TableClassifier(labelled_by=names, random_state=0).fit(frame, labelled)
        for names in (["year"], ["year", "year"])
    )
    assert twice.labelling_.groups == once.labelling_.groups


def test_sparse_rows_are_as_dense_ones(cases):
    frame, labelled, _ = cases
    X = frame[["x", "z", "year"]].to_numpy()
    model = PGPUClassifier(labelled_by=[2], random_state=0)
    dense, sparse = (clone(model).fit(rows, labelled) for rows in (X, csr_array(X)))
    rates = [each.labelling_.rate for each in (dense, sparse)]
    assert np.abs(rates[0] - rates[1]).max() < 0.1
    assert_array_equal(
        sparse.predict(csr_array(X)), sparse.predict(csr_array(X[:, :2]))
    )


def test_polars_is_taken_as_pandas_is(cases, model):
    polars = pytest.importorskip("polars")
    frame, labelled, _ = cases
    columns = {name: frame[name].tolist() for name in frame}
    other = fit((polars.DataFrame(columns), labelled, None), ["clinic"])
    assert_array_equal(
        other.pipeline_[-1].probability_, model.pipeline_[-1].probability_
    )


def test_it_is_an_estimator_like_others(cases, model):
    frame, labelled, _ = cases
    copy = clone(model)
    assert copy.get_params()["labelled_by"] == ["clinic"]
    copy.set_params(n_jobs=2).fit(frame, labelled)
    assert_array_equal(
        copy.pipeline_[-1].probability_, model.pipeline_[-1].probability_
    )
    assert copy.labelling_.groups == model.labelling_.groups
    found = GridSearchCV(clone(model), {"labelled_by": [[], ["clinic"]]}, cv=2)
    found.fit(frame, labelled)
    assert len(found.cv_results_["params"]) == 2


def test_a_saved_model_knows_who_was_looked_at(model, cases, tmp_path):
    frame, _, _ = cases
    io.save(model, tmp_path / "model.probgap")
    loaded = io.load(tmp_path / "model.probgap")
    assert loaded.labelling_.groups == model.labelling_.groups
    assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


def as_array(frame):
    return frame[["x", "z", "clinic"]].to_numpy(dtype=object)


@pytest.mark.parametrize("kind", ["table", "frame", "array", "pipeline"])
def test_a_report_judges_by_what_the_model_learnt_from(cases, model, kind):
    frame, labelled, _ = cases
    X = frame[["x", "z", "clinic"]]
    fitted: object = PGPUClassifier(labelled_by=["clinic"], random_state=0)
    if kind == "table":
        fitted, X = model, frame
    elif kind == "array":
        X = as_array(frame)
        fitted.set_params(labelled_by=[2]).fit(X, labelled)
    elif kind == "frame":
        fitted.fit(X, labelled)
    else:
        fitted = make_pipeline(FunctionTransformer(), fitted).fit(X, labelled)
    found = report(fitted, X, labelled, random_state=0)
    assert not [warning for warning in found.warnings if warning["code"] == "not_run"]
    looked = found.to_dict()["looked"]
    assert [group["level"] for group in looked["groups"]] == ["A", "B", "C"]
    drivers = {each["column"]: each for each in found.tree["drivers"]["columns"]}
    assert drivers.get("clinic", {"importance": 0.0})["importance"] == 0.0
    assert found.tree["expected"]["mean"][-1] == pytest.approx(
        found.tree["found"]["hidden"]
    )
    page = found.to_html()
    assert "Who was looked at" in page
    assert "probgap audit . --by clinic" not in page  # there is no folder
    assert found.figures["looked"].data["level"] == ["A", "B", "C"]


def test_held_out_labels_are_compared_with_the_chance_of_being_looked_at(cases):
    frame, labelled, _ = cases
    X = frame[["x", "z", "clinic"]]
    declared = PGPUClassifier(labelled_by=["clinic"], random_state=0).fit(X, labelled)
    found = held_out_calibration(declared, X, labelled, n_splits=2, random_state=0)
    assert found.error < 0.05
    mean = np.mean([each["predicted"] for each in found.bins])
    assert mean == pytest.approx(labelled.mean(), abs=0.03)
    with pytest.raises(InvalidInputError, match="must hold the rows of the fit"):
        held_out_calibration(declared, X[:200], labelled[:200])
    columns = column_importance(declared, X, labelled, random_state=0).columns
    assert set(columns) == {"x", "z"}


def test_a_notebook_shows_the_rates(model):
    shown = model._repr_html_inner()
    assert "rates by clinic" in shown
    assert "A 100%" in shown


def test_a_column_without_which_the_truth_cannot_be_told_is_warned_of():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(500, 2)), rng.integers(0, 2, 500)])
    labelled = (X[:, 0] * (2.0 * X[:, 2] - 1.0) > 0.2) & (rng.random(500) < 0.7)
    model = PGPUClassifier(labelled_by=[2], random_state=0)
    with pytest.warns(UnreliableFitWarning, match="among the features") as caught:
        model.fit(X, labelled)
    assert [each.message.code for each in caught] == ["declared"]
    plain = PGPUClassifier(random_state=0).fit(X, labelled)
    ends = np.array(model.labelling_.hidden_as_features)
    assert np.abs(ends - plain.estimate_.n_hidden_interval).max() < 40.0
    words = [warning["code"] for warning in report(model, X, labelled).warnings]
    assert words.count("declared") == 1


def test_rows_drawn_from_a_larger_table_count_as_many(cases):
    frame, labelled, _ = cases
    frame = frame.assign(found=np.where(labelled, "yes", None))
    model = TableClassifier(labelled_by=["clinic"], random_state=0)
    model._fit_weighted(frame, "found", np.where(labelled, 1.0, 5.0))
    groups = groups_of(model)
    rows = sum(group.rows for group in groups.values())
    assert rows == labelled.sum() + 5 * (~labelled).sum()
    assert groups["C"].rate < groups["B"].rate < groups["A"].rate
    held_out = report(model, frame, random_state=0).tree["decision"]["reliability"]
    mean = np.mean([each["predicted"] for each in held_out])
    assert mean == pytest.approx(labelled.mean(), abs=0.05)
