"""The report of a fit: counts, checks and rows that agree, in every form of it."""

import json
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import probgap
from probgap import PGPUClassifier, PGPUClassifierCV
from probgap.exceptions import InvalidInputError, UnreliableFitWarning

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def made(framed):
    model, frame, labelled = framed
    ids = [f"P-{row}" for row in range(len(frame))]
    return probgap.report(model, frame, labelled, ids=ids, random_state=0)


@pytest.fixture(scope="module")
def tree(made):
    return made.tree


def test_the_tree_is_plain_data_with_every_key(made):
    plain = made.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    parts = "format table found ranked expected boundary decision belief drivers question next"
    assert set(plain) == {*parts.split(), "warnings", "run"}
    keys = {name: set(part) for name, part in plain.items() if isinstance(part, dict)}
    assert keys["found"] >= {"rows", "labelled", "unlabelled", "hidden", "level"}
    assert keys["found"] >= {"hidden_interval", "share_positive", "share_interval"}
    assert keys["expected"] == {"k", "low", "mean", "high"}
    assert keys["boundary"] == {"value", "rule", "spread", "fallback"}
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
    assert set(belief["scenarios"]) == {"low", "high", "familiarity"}
    assert {"method", "hidden", "both", "error"} <= set(belief["others"][0])
    assert set(plain["next"][0]) == {"row", "id", "gap", "probability", "why"}
    assert set(plain["run"]["versions"]) >= {"python", "probgap", "numpy"}


def test_page_file_notebook_and_attributes_say_the_same(made, tmp_path):
    found = made
    for name in ("report.html", "report.json"):
        found.save(tmp_path / name)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page == found.to_html()
    assert f"<h1>{found.headline}</h1>" in page
    assert found.headline in found._repr_html_()
    assert found.headline in repr(found)
    assert json.loads((tmp_path / "report.json").read_text()) == found.to_dict()
    with pytest.raises(InvalidInputError, match=r"must end in \.html or \.json"):
        found.save(tmp_path / "report.pdf")
    timed = found.with_run(timings={"fit": 2.0})
    assert timed.to_dict()["run"]["timings"] == {"fit": 2.0}
    assert found.tree["run"]["timings"] == {}


def test_figures_are_those_of_the_page(made):
    found = made
    assert set(found.figures) == {"count", "recall", "labelling", "reliability", "gaps"}
    for figure in found.figures.values():
        assert figure.inline() in found.to_html()
        assert len(figure.frame()) > 0


def test_counts_agree_with_each_other_and_with_the_model(tree, framed):
    model, frame, labelled = framed
    found, decision = tree["found"], tree["decision"]
    classifier = model[-1]
    assert decision["weights"]["bound"] is None  # nothing was left out
    called = classifier.probability_ > 0.5
    assert found["rows"] == found["labelled"] + found["unlabelled"] == len(frame)
    assert found["called_positive"] == (called & ~labelled).sum()
    estimate = classifier.estimate_
    assert found["hidden"] == estimate.n_hidden
    assert tuple(found["hidden_interval"]) == estimate.n_hidden_interval
    low, high = found["hidden_interval"]
    scenarios = tree["belief"]["scenarios"]
    assert 0 <= low <= scenarios["low"] <= found["hidden"] <= scenarios["high"] <= high
    histogram = decision["histogram"]
    assert sum(histogram["labelled"]) == found["labelled"]
    assert sum(histogram["unlabelled"]) == found["unlabelled"]
    sides = [decision[f"n_{side}"] for side in ("negative", "undecided", "positive")]
    assert sum(sides) == len(frame)
    assert decision["undecided_share"] == sides[1] / len(frame)


def test_rows_are_ranked_by_the_probability_of_the_model(made, framed):
    found = made
    model, frame, labelled = framed
    ranked = found.ranked
    assert (ranked["row"] == ranked.index + 1).all()
    known = model[-1].probability_[ranked.index]
    np.testing.assert_allclose(ranked["probability"], known, atol=1e-8)
    hidden = ranked[ranked["rank"] != ""]
    assert len(hidden) == (~labelled).sum()
    assert hidden["probability"].is_monotonic_decreasing
    assert hidden["probability"].sum() == pytest.approx(found.tree["found"]["hidden"])
    ends = hidden[["probability_low", "probability_high"]].T.to_numpy()
    assert (ends[0] - 1e-8 <= hidden["probability"]).all()
    assert (hidden["probability"] <= ends[1] + 1e-8).all()
    first = found.tree["ranked"][0]
    assert first["probability"] == hidden["probability"].iloc[0]
    assert first["id"] == hidden["id"].iloc[0] == f"P-{hidden.index[0]}"
    assert first["values"]["kind"] == frame["kind"][hidden.index[0]]


def test_checks_are_of_rows_that_models_had_not_seen(tree, framed):
    model, frame, labelled = framed
    held_out, belief = tree["belief"]["held_out"], tree["belief"]
    assert sum(row["n"] for row in tree["decision"]["reliability"]) == len(frame)
    assert sum(row["n"] for row in belief["labelling"]["bins"]) == len(frame)
    recall = (model[-1].posterior_[labelled] > 0.5).mean()
    assert held_out["recall"] == pytest.approx(recall)
    assert belief["n_compared"] == len(frame) // 2
    for other in belief["others"]:
        assert other["both"] + other["only_here"] == belief["n_called"]
    assert all(other["hidden"] <= belief["n_compared"] for other in belief["others"])
    names = [each["column"] for each in tree["drivers"]["columns"]]
    assert set(names) == {"x", "y", "noise", "kind"}
    assert set(names[:2]) == {"x", "y"}


def test_what_to_label_next_is_unlabelled_and_counted_from_one(made, framed):
    found = made
    _, frame, labelled = framed
    rows = [entry["row"] for entry in found.tree["next"]]
    assert 0 < len(set(rows)) == len(rows) <= 50
    assert not labelled[np.array(rows) - 1].any()
    table = found.label_next
    assert table["row"].tolist() == rows
    assert table["kind"].tolist() == frame["kind"].iloc[np.array(rows) - 1].tolist()


def test_the_same_seed_gives_the_same_report_whatever_n_jobs(fitted, light):
    _, X, labelled, _ = fitted
    X, labelled = X[:200], labelled[:200]
    model = clone(light).fit(X, labelled)
    with parallel_config(backend="threading"):
        first, second = (
            probgap.report(model, X, labelled, random_state=1, n_jobs=n).to_dict()
            for n in (None, 2)
        )
    assert first == second


@pytest.mark.filterwarnings("ignore::probgap.exceptions.UnreliableFitWarning")
def test_a_few_labels_give_a_report_with_a_strong_warning():
    X = np.random.default_rng(0).normal(size=(60, 2))
    s = np.zeros(60, dtype=int)
    s[np.argsort(-X[:, 0])[:3]] = 1
    model = PGPUClassifier(random_state=0).fit(X, s)
    found = probgap.report(model, X, s, random_state=0)
    plain = found.to_dict()
    json.dumps(plain, allow_nan=False)
    assert (found.warnings[0]["level"], found.warnings[0]["code"]) == ("strong", "few")
    assert "Only 3 positives are labelled" in found.warnings[0]["what"]
    assert [w["code"] for w in found.warnings].count("not_run") == 3
    assert (plain["belief"]["scar"], plain["drivers"]) == (None, None)
    assert plain["belief"]["others"] == []


def report_on(X, s, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit that has nothing to learn
        model = PGPUClassifier(random_state=0).fit(X, s)
    return probgap.report(model, X, s, random_state=0, **options)


def test_labels_that_mean_nothing_are_noticed():
    rng = np.random.default_rng(1)
    X, s = rng.normal(size=(300, 3)), rng.random(300) < 0.2
    assert "indistinct" in {w["code"] for w in report_on(X, s, fast=True).warnings}


def test_a_column_that_gives_the_label_away_is_noticed():
    rng = np.random.default_rng(2)
    X, s = rng.normal(size=(300, 3)), rng.random(300) < 0.2
    X[:, 1] = 4.0 * s + 0.1 * rng.normal(size=300)
    strong = [w for w in report_on(X, s).warnings if w["level"] == "strong"]
    assert any(w["code"] == "leak" and "'1' alone" in w["what"] for w in strong)


def test_warnings_of_the_fit_are_repeated_once(fitted):
    model, X, labelled, _ = fitted
    few = UnreliableFitWarning("Only some. Collect more.", "few")
    raised = [few, few, UserWarning("Something else. Do this.")]
    found = probgap.report(model, X, labelled, fast=True, caught=raised)
    said = {w["code"]: w for w in found.warnings}
    assert [w["code"] for w in found.warnings].count("few") == 1
    assert said["few"]["level"] == "strong"
    assert (said[""]["what"], said[""]["do"]) == ("Something else.", "Do this.")


def test_models_of_the_paper_are_described_too(fitted):
    _, X, labelled, _ = fitted
    model = PGPUClassifierCV.paper(boundaries=[-0.8, -0.6], cv=2, random_state=0)
    tree = probgap.report(model.fit(X, labelled), X, labelled, random_state=0).tree
    assert tree["boundary"]["rule"] == "cross_validated"
    weights, decided = tree["decision"]["weights"], model.relabelling_.decided
    assert weights["reweighted"]
    assert weights["kkt_residual"] < 1e-3
    wrong = (model.predict(X) == 1) != (model.relabelling_.labels == 1)
    assert weights["bound"]["share_left_out"] == pytest.approx(1.0 - decided.mean())
    assert weights["bound"]["risk_selected"] == pytest.approx(wrong[decided].mean())
    assert tree["belief"]["held_out"]["recall"] < 1.0  # by copies that had not seen it


def test_other_rows_models_and_labels_are_refused(fitted):
    model, X, labelled, _ = fitted
    with pytest.raises(InvalidInputError, match="Got 399"):
        probgap.report(model, X[:-1], labelled[:-1])
    with pytest.raises(InvalidInputError, match="y must be given"):
        probgap.report(model, X)
    with pytest.raises(InvalidInputError, match="Got LogisticRegression"):
        probgap.report(LogisticRegression().fit(X, labelled), X, labelled)


def test_sparse_rows_are_described_too(fitted):
    _, X, _, y_true = fitted
    sparse, labelled = csr_matrix(X[:200]), y_true[:200] & (np.arange(200) % 3 > 0)
    model = PGPUClassifier(random_state=0).fit(sparse, labelled)
    found = probgap.report(model, sparse, labelled, random_state=0)
    assert "not_run" not in {w["code"] for w in found.warnings}
    scar = found.tree["belief"]["scar"]
    assert set(scar) >= {"statistic", "p_value", "n_resamples", "verdict"}
    assert scar["n_rows"] == 200
    assert "<script" in found.to_html()


def test_many_columns_are_tried_by_the_most_telling(fitted, light):
    _, X, labelled, _ = fitted
    noise = np.random.default_rng(0).normal(size=(len(X), 40))
    wide = np.hstack([3.0 * X, 0.1 * noise])
    model = clone(light).fit(wide, labelled)
    drivers = probgap.report(model, wide, labelled, random_state=0).tree["drivers"]
    assert len(drivers["columns"]) == 30
    assert {each["column"] for each in drivers["columns"][:2]} == {"0", "1"}
    assert drivers["n_left_out"] == 12


def test_fast_leaves_out_the_checks_that_fit_something_else(tree, framed):
    model, frame, labelled = framed
    told = []
    options = {"random_state": 0, "progress": lambda *step: told.append(step)}
    fast = probgap.report(model, frame, labelled, fast=True, **options).tree
    assert (fast["belief"]["scar"], fast["drivers"], fast["belief"]["others"]) == (
        None,
        None,
        [],
    )
    assert fast["belief"]["held_out"] == tree["belief"]["held_out"]
    rows = [[entry["row"] for entry in each["next"]] for each in (fast, tree)]
    assert rows[0] == rows[1]
    assert [w["code"] for w in fast["warnings"]].count("fast") == 1
    assert "fast" not in {w["code"] for w in tree["warnings"]}
    assert {what for _, _, what in told} == {"held-out rows", "what to label next", ""}
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1]


def test_a_table_classifier_needs_no_more_than_its_frame(framed):
    from probgap.tables import TableClassifier  # noqa: PLC0415

    _, frame, labelled = framed
    y = pd.Series(np.where(labelled, "fraud", None), name="found")
    model = TableClassifier(random_state=0).fit(frame, y)
    tree = probgap.report(model, frame, y, fast=True, random_state=0).tree
    assert tree["found"]["labelled"] == labelled.sum()
    assert (tree["table"]["label"], tree["table"]["positive"]) == ("found", "fraud")
    uses = {column["name"]: column["use"] for column in tree["table"]["columns"]}
    assert (uses["x"], uses["kind"]) == ("number", "category")
    whole = frame.assign(found=y, case=[f"C-{row}" for row in range(len(frame))])
    again = TableClassifier(id="case", random_state=0).fit(whole, "found")
    report = probgap.report(again, whole, fast=True, random_state=0)
    assert report.tree["found"] == tree["found"]
    assert report.tree["table"]["sentence"].startswith("Reading 'fraud' (196")
    top = report.ranked.iloc[0]
    assert top["id"] == f"C-{top['row'] - 1}"


def test_hidden_positives_are_broken_down_by_kind():
    rng = np.random.default_rng(0)
    truth, kind = rng.random(300) < 0.5, rng.random(300) < 0.3
    X = rng.normal(size=(300, 3))
    X[:, 0] += 3.0 * truth
    X[:, 1] += 4.0 * (truth & kind)
    known = truth & (rng.random(300) < 0.5)
    y = np.where(known, np.where(kind, "card", "identity"), "ok")
    model = probgap.PGPUClassifier(pos_label=("card", "identity"), random_state=0)
    report = probgap.report(model.fit(X, y), X, y, fast=True, kinds=True)
    ranked = report.ranked[report.ranked["rank"] != ""].head(50)
    right = np.where(kind[ranked.index], "card", "identity") == ranked["kind"]
    assert right.mean() > 0.9
    found = {each["kind"]: each for each in report.tree["kinds"]}
    assert found["card"]["labelled"] == (y == "card").sum()
    hidden = (truth & ~known & kind).sum() / (truth & ~known).sum()
    share = found["card"]["hidden"] / report.tree["found"]["hidden"]
    assert abs(share - hidden) < 0.1
    plain = probgap.report(model, X, y, fast=True)
    assert "kind" not in plain.ranked
    assert "kinds" not in plain.to_dict()
    with pytest.raises(InvalidInputError, match="needs several values"):
        probgap.report(model, X, np.isin(y, ["card", "identity"]), kinds=True)


def test_an_id_that_repeats_is_offered_as_a_group():
    from probgap.tables import TableClassifier  # noqa: PLC0415

    rng = np.random.default_rng(0)
    customer, x = np.repeat(np.arange(60), 5), rng.normal(size=(300, 3))
    s = (x[:, 0] > 0) & (rng.random(300) < 0.6)
    frame = pd.DataFrame(x, columns=list("abc"))
    frame = frame.assign(**{"customer no": [f"C{k}" for k in customer]})
    light = PGPUClassifier(
        gap_estimator=LogisticRegression(), estimator=LogisticRegression()
    )
    said = {}
    for group in (None, "customer no"):
        model = TableClassifier(light, group=group, random_state=0).fit(frame, s)
        found = probgap.report(model, frame, s, fast=True, random_state=0)
        said[group] = [w for w in found.warnings if w["code"] == "repeats"]
    assert not said["customer no"]
    (offer,) = said[None]
    assert "60 values repeat" in offer["what"]
    assert "--group 'customer no'" in offer["do"]
    assert "--keep 'customer no'" in offer["do"]
