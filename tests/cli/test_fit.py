"""probgap fit, predict, explain and compare as a person uses them."""

import json
import os
import re
import signal

import numpy as np
import pyarrow.parquet as pq
import pytest

pd = pytest.importorskip("pandas")
io = pytest.importorskip("probgap.io")

FILES = {"report.html", "scores.csv", "label_next.csv", "model.probgap", "run.json"}
COLUMNS = ["row", "id", "observed_label", "gap", "decided", "probability"]
COLUMNS += ["predicted_label", "rank", "probability_low", "probability_high"]


def read(path):
    return pd.read_csv(path, keep_default_na=False)


def test_the_summary_fits_one_screen(fitted):
    lines = fitted.printed.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 120
    for word in ("Best estimate", "Predicted positive", "report.html", "C-0"):
        assert word in fitted.printed
    for inner in ("  gap", "Boundary", "±", "score "):
        assert inner not in fitted.printed
    assert f"To know how many: probgap audit {fitted.out}\n" in fitted.printed
    assert "\x1b[" not in fitted.printed  # no colour where there is no terminal
    steps = (
        "Reading the table",
        "Fitting the model",
        "Checking it",
        "Writing the report",
    )
    assert fitted.said == "".join(f"{step} ...\n" for step in steps)


def test_there_is_one_count_wherever_it_is_shown(fitted):
    model = io.load(fitted.out / "model.probgap").pipeline_[-1]
    estimate = model.estimate_
    count, ends = estimate.n_hidden, estimate.n_hidden_interval
    found = json.loads((fitted.out / "run.json").read_text())["found"]
    assert found["hidden"] == pytest.approx(count)
    assert found["hidden_interval"] == pytest.approx(ends)
    prior = estimate.class_prior * found["rows"] - model.n_labelled_
    assert prior == pytest.approx(count)
    low, high = (f"{end:,.0f}" for end in ends)
    table = f"between {low} and {high} (90% interval), best estimate {count:,.0f}"
    assert table in model._repr_html_()
    assert found["headline"].startswith(f"Between {low} and {high} more positives")
    summary = rf"{found['headline']}\nBest estimate +{count:.0f}  hidden positives"
    assert re.search(summary, fitted.printed)
    page = (fitted.out / "report.html").read_text()
    assert re.search(f"<h1>(Perhaps b|B)etween {low} and {high} more", page)
    assert f"The best estimate is {count:,.0f} more" in page
    scores = read(fitted.out / "scores.csv")
    called = (scores["predicted_label"] == "yes") & (scores["observed_label"] == "")
    assert called.sum() == found["called_positive"]
    said = f"Predicted positive: {found['called_positive']} of {found['unlabelled']}"
    assert said in page


def test_what_fit_and_its_checks_warn_of_is_said_once(small):
    warnings = json.loads((small.out / "run.json").read_text())["warnings"]
    assert sum("positives are labelled" in w["what"] for w in warnings) == 1
    assert warnings[0]["level"] == "strong"


def test_several_kinds_of_positives_and_rows_that_were_checked(
    cases, probgap, tmp_path
):
    kind = np.where(cases["strength"] > 2.0, "card", "identity")
    kind = np.where(cases["found"] == "yes", kind, "")
    checked = (cases["audited"] == "no") & (np.arange(len(cases)) % 3 == 0)
    source, out = tmp_path / "kinds.csv", tmp_path / "out"
    frame = cases.drop(columns=["audited", "found"])
    frame.assign(kind=np.where(checked, "fine", kind)).to_csv(source, index=False)
    words = ("fit", source, "--label", "kind", "--positive", "card", "--positive")
    words += ("identity", "--out", out, "--fast", "--id", "case")
    result = probgap(*words)
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert (
        "If 'fine' means checked and found negative, fit with --negative fine" in said
    )
    result = probgap(*words, "--negative", "fine", "--kinds", "--force")
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert f"'fine' ({checked.sum()} rows) as checked and negative" in said
    assert re.search(
        r"By kind, expected: (card|identity) \d+, (card|identity) \d+", said
    )
    tree = json.loads((out / "run.json").read_text())
    scores = read(out / "scores.csv").set_index("row")
    for each in tree["kinds"]:
        assert each["labelled"] == (scores["observed_label"] == each["kind"]).sum()
        first = scores[(scores["kind"] == each["kind"]) & (scores["rank"] != "")]
        assert each["first"] == first["id"].tolist()[:3]
    assert sum(each["hidden"] for each in tree["kinds"]) == pytest.approx(
        tree["found"]["hidden"]
    )
    assert "likeliest rows" in (out / "report.html").read_text()
    assert set(scores.index[scores["observed_label"] == "negative"] - 1) == set(
        np.flatnonzero(checked)
    )
    for rows in (read(out / "label_next.csv")["row"], audited(probgap, out)):
        assert not checked[rows - 1].any()
    free = cases.index[(kind == "") & ~checked][:6]
    answers = cases.loc[free, ["case"]].assign(answer="yes")
    answers.to_csv(tmp_path / "answers.csv", index=False)
    words += ("--negative", "fine", "--kinds", "--answers", tmp_path / "answers.csv")
    result = probgap(*words, "--out", tmp_path / "more")
    assert result.exit_code == 0, result.stderr
    told = json.loads((tmp_path / "more/run.json").read_text())["kinds"]
    known = {each["kind"]: each["labelled"] for each in tree["kinds"]}
    assert {each["kind"]: each["labelled"] for each in told} == {
        **known,
        "answered yes": 6,
    }


def test_kinds_need_several_positives(table, probgap, tmp_path):
    words = ("fit", table, "--label", "found", "--out", tmp_path / "out", "--kinds")
    result = probgap(*words)
    assert result.exit_code != 0
    assert "--kinds requires --positive several times" in result.stderr


def audited(probgap, out):
    result = probgap("audit", out, "--budget", 40)
    assert result.exit_code == 0, result.stderr
    return read(out / "audit.csv")["row"]


def test_fast_says_that_checks_were_left_out(table, probgap, tmp_path):
    out = tmp_path / "fast"
    words = ("fit", table, "--label", "found", "--id", "case", "--out", out, "--fast")
    result = probgap(*words)
    assert result.exit_code == 0, result.stderr
    said = "Four checks were left out to save time (--fast)"
    assert said in " ".join(result.stdout.split())
    assert said in (out / "report.html").read_text(encoding="utf-8")
    assert {path.name for path in out.iterdir()} == FILES
    run = json.loads((out / "run.json").read_text())
    assert run["belief"]["scar"] is None
    assert run["belief"]["held_out"] is not None


def test_scores_have_every_row_once_in_the_order_of_their_rank(fitted, cases):
    scores = read(fitted.out / "scores.csv")
    assert list(scores.columns) == COLUMNS
    assert sorted(scores["row"]) == list(range(1, len(cases) + 1))
    assert list(scores["id"]) == list(cases["case"].iloc[scores["row"] - 1])
    labelled = scores["observed_label"] == "yes"
    assert list(labelled) == list(cases["found"].iloc[scores["row"] - 1] == "yes")
    ranks = scores.loc[~labelled, "rank"].astype(int)
    assert list(ranks) == list(range(1, len(ranks) + 1))
    assert scores.loc[~labelled, "probability"].is_monotonic_decreasing
    assert (scores.loc[labelled, "rank"] == "").all()
    assert scores["probability"].between(0, 1).all()
    assert scores["gap"].between(-1, 1).all()
    positive = scores["predicted_label"] == "yes"
    assert (positive == (scores["probability"] > 0.5)).all()
    assert set(scores["decided"]) <= {"positive", "negative", "undecided"}
    assert (scores.loc[labelled, "decided"] == "positive").all()


def test_the_interval_of_a_probability_is_that_of_the_estimate(fitted):
    scores = read(fitted.out / "scores.csv")
    low, high = scores["probability_low"], scores["probability_high"]
    labelled = scores["observed_label"] == "yes"
    assert (low[labelled] == 1.0).all()
    assert (high[labelled] == 1.0).all()
    assert (low <= high).all()
    assert low[~labelled].is_monotonic_decreasing  # as the rank says
    assert high[~labelled].is_monotonic_decreasing
    estimate = io.load(fitted.out / "model.probgap").pipeline_[-1].estimate_
    ranges = estimate.probability_range(
        scores["probability"][~labelled], unlabelled=True
    )
    np.testing.assert_allclose(low[~labelled], ranges.low, atol=1e-6)
    ranked = json.loads((fitted.out / "run.json").read_text())["ranked"]
    for place, row in enumerate(ranked):
        assert row["interval"] == [low[place], high[place]]


def test_hidden_positives_come_first(fitted, cases):
    scores = read(fitted.out / "scores.csv")
    truth = (cases["audited"] == "yes").to_numpy()[scores["row"] - 1]
    unlabelled = (scores["observed_label"] == "").to_numpy()
    hidden = truth[unlabelled]
    assert hidden[:20].mean() > 0.9
    assert hidden[: hidden.sum()].mean() > 0.7


def test_the_run_is_told_whole(fitted, table):
    run = json.loads((fitted.out / "run.json").read_text())
    assert run["table"]["sha256"]
    assert run["table"]["path"] == str(table)
    assert sum(run["run"]["timings"].values()) > 0
    uses = {column["name"]: column["use"] for column in run["table"]["columns"]}
    assert (uses["country"], uses["opened"]) == ("left out", "date")
    assert set(run["run"]["files"]) == {path.name for path in fitted.out.iterdir()}


def test_the_rows_to_label_next_are_whole_and_wait_for_a_label(fitted, cases):
    suggested = read(fitted.out / "label_next.csv")
    assert 0 < len(suggested) <= 50
    assert (suggested["found"] == "").all()
    assert set(cases.columns) - {"audited"} <= set(suggested.columns)
    found = cases["found"].iloc[suggested["row"] - 1]
    assert (found == "").all()


def test_results_go_where_a_link_points(good, probgap, tmp_path):
    (tmp_path / "disk" / "results").mkdir(parents=True)
    (tmp_path / "disk" / "t.csv").write_text(good.csv())
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "results")
    words = ("fit", tmp_path / "disk" / "t.csv", "--label", "found", "--fast", "-q")
    words += ("--out", tmp_path / "link")
    for more in ((), ("--force",)):
        result = probgap(*words, *more)
        assert result.exit_code == 0, result.stderr
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "disk" / "results" / "run.json").is_file()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["disk", "link"]


def test_a_folder_is_written_by_one_run_and_never_over_others_files(
    table, start, probgap, tmp_path
):
    out, link = tmp_path / "out", tmp_path / "link"
    out.mkdir()
    link.symlink_to(out)
    words = ("fit", table, "--label", "found", "--fast", "--out")
    first = start(*words, out)
    assert "Reading" in first.stderr.readline()
    second = probgap(*words, link, "--force")
    assert second.exit_code == 1
    assert "Another run of probgap is about to write to" in second.stderr
    (out / "run.json").write_text("mine")
    _, said = first.communicate(timeout=120)
    assert first.returncode == 1
    assert "which holds run.json" in said
    assert [path.read_text() for path in out.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_stopped_fit_leaves_nothing(table, start, tmp_path, number):
    process = start("fit", table, "--label", "found", "--out", tmp_path / "out")
    assert "Reading" in process.stderr.readline()
    assert "Fitting" in process.stderr.readline()
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_neither_standard_input_nor_jobs_change_a_score(
    table, probgap, fitted, tmp_path
):
    words = ("fit", "-", "--label", "found", "--id", "case", "--jobs", 2, "-q")
    words += ("--fast", "--out", tmp_path / "out")
    result = probgap(*words, input=table.read_bytes())
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    ours = (tmp_path / "out" / "scores.csv").read_bytes()
    assert ours == (fitted.out / "scores.csv").read_bytes()


def test_predict_agrees_with_fit_whatever_the_order_of_columns(
    fitted, cases, probgap, tmp_path
):
    model, out = fitted.out / "model.probgap", tmp_path / "scored.csv"
    names = ["remark", "noise", "opened", "colour", "strength", "case"]
    cases[names].to_csv(tmp_path / "new.csv", index=False)
    printed = probgap("predict", model, tmp_path / "new.csv", "--quiet").stdout
    assert printed.startswith("row,id,gap,decided,probability,predicted_label")
    result = probgap("predict", fitted.out, tmp_path / "new.csv", "--out", out)
    assert "240 rows" in result.stdout
    cases[names].head(1).to_csv(tmp_path / "one.csv", index=False)
    one = probgap("predict", model, tmp_path / "one.csv", "--out", tmp_path / "one")
    assert one.stdout.startswith("1 row, ")
    assert out.read_text().splitlines() == printed.splitlines()
    new = read(out).set_index("row")
    assert list(new["id"]) == list(cases["case"].iloc[new.index - 1])
    fitted_model = io.load(model)
    ordered = cases[fitted_model.feature_names_in_]
    chance = fitted_model.predict_proba(ordered)[:, 1]
    np.testing.assert_allclose(new["probability"], chance[new.index - 1], atol=1e-7)
    # scores.csv has the probabilities of models that have not seen the row.
    old = read(fitted.out / "scores.csv").set_index("row").loc[new.index]
    held_out = fitted_model.pipeline_[-1].probability_[new.index - 1]
    np.testing.assert_allclose(old["probability"], held_out, atol=1e-7)
    assert (new["predicted_label"] == old["predicted_label"]).mean() > 0.9
    assert probgap("predict", model, tmp_path / "new.csv", "--out", out).exit_code == 1
    out.write_text("old")
    out.chmod(0o600)
    probgap("predict", model, tmp_path / "new.csv", "--out", out, "--force")
    assert out.read_text().splitlines() == printed.splitlines()
    assert out.stat().st_mode & 0o777 == 0o600


@pytest.fixture
def drifted(cases, tmp_path):
    """New rows in which two columns left their ranges."""
    new = cases.assign(strength=1000.0 * cases["strength"], colour="purple")
    new.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "new.csv"


def test_predict_names_columns_that_left_their_training_range(
    fitted, drifted, probgap, tmp_path
):
    words = ("predict", fitted.out, drifted)
    result = probgap(*words)
    said = [line for line in result.stderr.splitlines() if "Warning" in line]
    assert [line.split("'")[1] for line in said] == ["strength", "colour"]
    assert "100% of its cells are of a category" in said[1]
    assert len(result.stdout.splitlines()) == 241
    out = tmp_path / "scored.parquet"
    result = probgap(*words, "--out", out, "--json", "--quiet")
    drift = json.loads(result.stdout)["drift"]
    assert result.stderr == ""
    assert [entry["column"] for entry in drift] == ["strength", "colour"]
    assert [f"Warning: {entry['notice']}" for entry in drift] == said
    stored = pq.read_metadata(out).metadata[b"probgap.drift"]
    assert json.loads(stored) == drift
    result = probgap("predict", fitted.out, fitted.table, "--out", out, "--force")
    assert "Warning" not in result.stderr
    assert json.loads(pq.read_metadata(out).metadata[b"probgap.drift"]) == []


@pytest.mark.parametrize("target", [(), ("--out", "scored.csv")])
def test_strict_refuses_what_left_its_range(
    fitted, drifted, target, probgap, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = probgap("predict", fitted.out, drifted, "--strict", "--quiet", *target)
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.fullmatch(
        r"Error: Column 'strength' left its training range: .*, and so did 'colour'; "
        r"--strict refuses that\.\n",
        result.stderr,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
    result = probgap("predict", fitted.out, fitted.table, "--strict", *target)
    assert result.exit_code == 0


def test_files_in_a_folder_are_one_table(table, fitted, probgap, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    head, *lines = table.read_text().splitlines(keepends=True)
    for at in (0, 120):
        part = folder / f"part-{at:03}.csv"
        part.write_text("".join([head, *lines[at : at + 120]]))
    out = tmp_path / "out"
    words = ("--label", "found", "--id", "case", "--fast", "--out", out)
    result = probgap("fit", folder, *words)
    assert "240 rows in 2 files" in " ".join(result.stdout.split())
    ours = (out / "scores.csv").read_bytes()
    assert ours == (fitted.out / "scores.csv").read_bytes()
    # One row is explained, too, as long as the files are the same.
    result = probgap("explain", out, "--row", "C-0200")
    assert (result.exit_code, "C-0200" in result.stdout) == (0, True)
    result = probgap("predict", out, f"{folder}/*.csv", "--json")
    assert len(result.stdout.splitlines()) == 240
    part.write_text(head + lines[0])
    result = probgap("explain", out, "--row", "C-0200")
    assert (result.exit_code, "other contents" in result.stderr) == (1, True)
    result = probgap("fit", f"{out}/sc*.csv", *words, "--force")
    assert (result.exit_code, "the table itself" in result.stderr) == (1, True)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_what_does_not_fit_into_memory_is_said_with_a_way_out(
    name, good, probgap, tmp_path, monkeypatch
):
    path = tmp_path / name
    path.write_bytes(good.parquet() if "parquet" in name else good.csv().encode())
    monkeypatch.setattr("probgap.cli._table.free_memory", lambda: 500.0)
    result = probgap("fit", path, "--label", "found", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "use probgap fit --engine dask" in result.stderr


def test_predict_prints_json_lines(fitted, table, probgap):
    result = probgap("predict", fitted.out / "model.probgap", table, "--json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == 240
    names = {"row", "id", "gap", "decided", "probability", "predicted_label"}
    names |= {"probability_low", "probability_high"}
    assert set(rows[0]) == names


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda cases: cases.drop(columns="strength"), ["'strength'"]),
        (
            lambda cases: cases.assign(strength=["lots", *cases["strength"][1:]]),
            ["strength", "lots"],
        ),
    ],
    ids=["missing column", "bad cell"],
)
def test_predict_names_what_is_wrong_and_writes_no_file(
    fitted, cases, probgap, tmp_path, spoil, named
):
    spoil(cases).to_csv(tmp_path / "new.csv", index=False)
    words = ("predict", fitted.out, tmp_path / "new.csv", "--out", tmp_path / "s.csv")
    result = probgap(*words)
    assert result.exit_code == 1
    assert all(word in result.stderr for word in named)
    assert not (tmp_path / "s.csv").exists()


def test_explain_names_the_column_that_matters(fitted, probgap):
    result = probgap("explain", fitted.out)
    assert result.exit_code == 0, result.stderr
    columns = re.findall(
        r"^(strength|remark|noise|colour)", result.stdout, re.MULTILINE
    )
    assert set(columns[:2]) == {"strength", "remark"}
    drivers = json.loads(probgap("explain", fitted.out, "--json").stdout)
    assert drivers["columns"][0]["column"] in {"strength", "remark"}


def test_explain_says_why_one_row_has_its_score(fitted, probgap):
    top = read(fitted.out / "scores.csv").iloc[0]
    result = probgap("explain", fitted.out, "--row", top["id"], "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["row"] == top["row"]
    assert told["probability"] == pytest.approx(top["probability"])
    assert told["probability_low"] == pytest.approx(top["probability_low"])
    assert told["probability_high"] == pytest.approx(top["probability_high"])
    assert told["gap"] == pytest.approx(top["gap"])
    total = sum(part["log_odds"] for part in told["contributions"])
    assert total == pytest.approx(told["log_odds"] - told["average_log_odds"])
    assert len(told["nearest_labelled"]) == 5
    shown = probgap("explain", fitted.out, "--row", top["id"]).stdout
    assert top["id"] in shown
    (ranked,) = (
        entry
        for entry in json.loads((fitted.out / "run.json").read_text())["ranked"]
        if entry["id"] == top["id"]
    )
    ends = "{:.2f} to {:.2f}".format(*ranked["interval"])
    said = rf"probability {ranked['probability']:.3f} \(90% interval {ends}\), gap"
    assert re.search(said, shown)
    assert "Labelled positives most like it" in shown


def test_explain_shows_the_words_of_a_text_and_the_values_of_similar_rows(
    fitted, cases, probgap
):
    row = cases.index[cases["remark"].str.startswith("late") & (cases["found"] == "")][
        0
    ]
    words = ("explain", fitted.out, "--row", cases["case"][row])
    told = json.loads(probgap(*words, "--json").stdout)
    (text,) = (part for part in told["contributions"] if "words" in part)
    spoke = {word["word"]: word["log_odds"] for word in text["words"]}
    assert text["column"] == "remark"
    assert {"late", "payment", "again"} <= spoke.keys() <= set(text["value"].split())
    assert spoke["late"] > 0
    similar = told["nearest_labelled"][0]
    assert similar["values"]["remark"] == cases["remark"][similar["row"] - 1]
    shown = probgap(*words).stdout
    assert re.search(r"^  for .*late \+\d", shown, re.MULTILINE)
    assert re.search(rf"^{similar['id']} .*late payment again", shown, re.MULTILINE)


@pytest.mark.parametrize(
    "methods",
    [
        pytest.param(["naive SVM", "Elkan-Noto", "probgap"], id="three"),
        pytest.param([], id="all", marks=pytest.mark.slow),
    ],
)
def test_compare_with_truth_prefers_ours_to_naive(cases, probgap, tmp_path, methods):
    path = tmp_path / "cases.csv"
    cases.to_csv(path, index=False)
    words = ["compare", path, "--label", "found", "--id", "case", "--folds", 2]
    words += [word for name in methods for word in ("--only", name)]
    result = probgap(*words, "--truth", "audited", "--json")
    assert result.exit_code == 0, result.stderr
    rows = {row["method"]: row for row in json.loads(result.stdout)}
    assert len(rows) == (len(methods) or 15)
    accuracy = {name: row["accuracy"] for name, row in rows.items()}
    ours = next(value for name, value in accuracy.items() if name.startswith("probgap"))
    naive = next(value for name, value in accuracy.items() if "naive" in name.lower())
    assert ours > naive


def test_compare_shows_a_table(good, probgap, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(good.csv(truth=["yes", "no", "no"] * 10 + ["yes", "no"]))
    words = ("compare", path, "--label", "found", "--truth", "truth", "--folds", 2)
    result = probgap(*words, "--only", "naive SVM", "--only", "Natarajan", "-q")
    assert result.exit_code == 0, result.stderr
    assert "balanced" in result.stdout
    assert "\x1b[" not in result.stdout
    assert "…" not in result.stdout  # numbers are shown in full, however wide
    twice = probgap(*words, "--only", "Natarajan", "--only", "Natarajan", "-q")
    assert twice.stdout.count("Natarajan") == 1


def test_codes_are_left_out_unless_they_are_kept(cases, probgap, tmp_path):
    rng = np.random.default_rng(0)
    numbers = {
        name: rng.choice(10**8, 240, replace=False) + 10**9
        for name in ("phone", "acct")
    }
    cases.assign(**numbers).drop(columns="audited").to_csv(tmp_path / "t.csv")
    words = ("fit", tmp_path / "t.csv", "--label", "found", "--id", "case")
    words += ("--keep", "acct", "--out", tmp_path / "out", "--fast")
    result = probgap(*words)
    assert "phone: id-like" in result.stdout
    assert "--keep brings one back" in " ".join(result.stdout.split())
    described = json.loads((tmp_path / "out" / "run.json").read_text())["table"]
    use = {column["name"]: column["use"] for column in described["columns"]}
    assert (use["acct"], use["phone"]) == ("number", "left out")
    # What was kept is kept when the table is read again.
    result = probgap("explain", tmp_path / "out", "--row", "C-0001", "--json")
    explained = json.loads(result.stdout)["contributions"]
    assert "acct" in {part["column"] for part in explained}


def test_codes_may_be_taken_for_categories(cases, probgap, tmp_path):
    coded = cases.assign(colour=cases["colour"].map({"red": 1, "green": 2, "blue": 5}))
    coded.drop(columns="audited").to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    words = (
        "fit",
        tmp_path / "t.csv",
        "--label",
        "found",
        "--id",
        "case",
        "--out",
        out,
        "--fast",
    )
    result = probgap(*words, "--category", "colour", "--drop", "remark", "--json")
    assert (result.exit_code, result.stderr) == (0, "")  # --json prints nothing else
    columns = json.loads(result.stdout)["table"]["columns"]
    use = {column["name"]: column["use"] for column in columns}
    assert (use["colour"], use["strength"]) == ("category", "number")
    told = json.loads(probgap("explain", out, "--row", "C-0001", "--json").stdout)
    used = {"colour", "strength", "noise", "opened"}
    assert {part["column"] for part in told["contributions"]} == used
    result = probgap(*words, "--category", "color", "--force")
    assert result.exit_code == 1
    assert "Did you mean 'colour'?" in result.stderr


def test_columns_that_say_who_was_looked_at_are_declared(
    cases, table, probgap, tmp_path
):
    out, path = tmp_path / "results", tmp_path / "new.csv"
    declared = ("--labelled-by", "colour,opened", "--keep", "opened")
    result = probgap(
        "fit", table, "--label", "found", "--id", "case", *declared, "--out", out
    )
    assert result.exit_code == 0, result.stderr
    assert "Who was looked at" in result.stdout
    looked = json.loads((out / "run.json").read_text())["looked"]
    assert (looked["columns"], looked["kept"]) == (["colour", "opened"], ["opened"])
    groups = [group for group in looked["groups"] if group["column"] == "colour"]
    assert [group["level"] for group in groups] == ["blue", "green", "red"]
    assert sum(group["rows"] for group in groups) == len(cases)
    page = (out / "report.html").read_text()
    assert "colour and opened say who was looked at" in page
    assert "probgap audit . --by colour" in page
    model = io.load(out / "model.probgap")
    assert "colour" not in model.plan_.inputs
    assert "opened" in model.plan_.inputs
    cases.drop(columns=["colour", "found"]).to_csv(path, index=False)
    scored = probgap(
        "predict", out / "model.probgap", path, "--out", tmp_path / "s.csv"
    )
    assert scored.exit_code == 0, scored.stderr


def test_rows_of_a_group_are_held_out_together(cases, probgap, tmp_path):
    source, rng = tmp_path / "visits.csv", np.random.default_rng(0)
    visits = cases.loc[cases.index.repeat(2)].reset_index(drop=True)
    visits["patient"] = [f"P{row // 2}" for row in range(len(visits))]
    visits["strength"] += 0.01 * rng.normal(size=len(visits))
    visits.to_csv(source, index=False)
    told = {}
    for group in ([], ["--group", "patient"]):
        out = tmp_path / f"out{len(group)}"
        asked = ["fit", source, "--label", "found", "--out", out, "--fast", *group]
        assert probgap(*asked).exit_code == 0
        found = json.loads((out / "run.json").read_text())
        told[len(group)] = found["belief"]["held_out"]["roc_auc"]
        offered = [w["do"] for w in found["warnings"] if w["code"] == "repeats"]
        assert bool(offered) == (not group)
        assert group or any("--group patient" in do for do in offered)
    uses = {column["name"]: column["use"] for column in found["table"]["columns"]}
    assert uses["patient"] == "group"
    assert told[2] < told[0]


def test_the_terminal_asks_who_was_looked_at(probgap, tmp_path):
    rng = np.random.default_rng(0)
    signs = rng.normal(size=(500, 4))
    clinic = rng.choice(["north", "south"], 500)
    sick = signs.sum(axis=1) > 1.0
    found = sick & (rng.random(500) < np.where(clinic == "north", 0.9, 0.05))
    frame = pd.DataFrame(signs, columns=["a", "b", "c", "d"])
    frame = frame.assign(clinic=clinic, found=np.where(found, "yes", ""))
    table = tmp_path / "cases.csv"
    frame.to_csv(table, index=False)
    words = ("fit", table, "--label", "found", "--out")
    said = " ".join(probgap(*words, tmp_path / "first").stdout.split())
    assert "Rows of clinic north are labelled" in said
    assert "as often as rows of clinic south that are alike otherwise" in said
    assert "--labelled-by clinic" in said
    asked = json.loads((tmp_path / "first" / "run.json").read_text())["question"]
    told = probgap(*words, tmp_path / "told", "--labelled-by", "clinic")
    assert "--labelled-by clinic." not in told.stdout
    run = json.loads((tmp_path / "told" / "run.json").read_text())
    assert run["question"] is None
    low, high = asked["n_hidden_interval"]
    assert low < run["found"]["hidden"] < high
