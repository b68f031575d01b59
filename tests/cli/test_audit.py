"""Audits on the command line: questions out, answers back, whatever people type."""

import json
import shutil

import pandas as pd
import pytest


@pytest.fixture
def folder(fitted, tmp_path):
    return shutil.copytree(fitted.out, tmp_path / "results")


def fill(path, cases, words=("yes", "no")):
    """Answer all questions of a file by the truth."""
    asked = pd.read_csv(path, dtype=str, keep_default_na=False)
    true = cases.audited.to_numpy()[asked["row"].astype(int) - 1] == "yes"
    asked["answer"] = [words[0] if each else words[1] for each in true]
    return asked


def test_questions_answers_and_more(folder, probgap, cases, fitted):
    result = probgap("audit", folder, "--budget", 40)
    assert result.exit_code == 0, result.stderr
    asked = fill(folder / "audit.csv", cases)
    assert len(asked) == 40
    assert not {"probability", "gap", "score", "found"} & set(asked.columns)
    asked.assign(mine="x").sample(frac=1, random_state=0).to_csv(
        folder / "filled.csv", index=False, sep=";"
    )
    result = probgap("audit", folder, "--answers", folder / "filled.csv")
    assert result.exit_code == 0, result.stderr
    assert "Understood yes: 'yes'" in result.stderr
    hidden = int(((cases.audited == "yes") & (cases.found == "")).sum())
    kept = json.loads((folder / "audit.json").read_text())
    low, high = kept["estimate"]["count_interval"]
    assert low <= hidden <= high
    assert kept["estimate"]["headline"] in (folder / "audit.html").read_text()
    result = probgap("audit", folder, "--more", 15)
    assert result.exit_code == 0, result.stderr
    more = fill(folder / "audit_2.csv", cases)
    assert not set(more["row"]) & set(asked["row"])
    more.to_csv(folder / "audit_2.csv", index=False)
    result = probgap("audit", folder, "--answers", folder / "audit_2.csv", "--json")
    found = json.loads(result.stdout)
    assert found["n_yes"] + found["n_no"] == 55
    # Then the model is corrected, and used.
    result = probgap("correct", folder)
    assert result.exit_code == 0, result.stderr
    assert "55 answers" in result.stdout
    scores = pd.read_csv(folder / "corrected" / "scores.csv")
    assert len(scores) == len(cases)
    result = probgap("predict", folder / "corrected", fitted.table, "--quiet")
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) == len(cases) + 1


def test_groups_are_counted_one_by_one(folder, probgap, cases):
    result = probgap("audit", folder, "--budget", 60, "--by", "colour")
    assert result.exit_code == 0, result.stderr
    fill(folder / "audit.csv", cases).to_csv(folder / "audit.csv", index=False)
    result = probgap("audit", folder, "--answers", folder / "audit.csv")
    assert result.exit_code == 0, result.stderr
    hidden = cases[(cases.audited == "yes") & (cases.found == "")]
    told = json.loads((folder / "audit.json").read_text())["estimate"]
    page = (folder / "audit.html").read_text()
    assert told["by"] == "colour"
    assert "How many by <bdi>colour</bdi>?" in page
    assert [each["group"] for each in told["groups"]] == ["blue", "green", "red"]
    for each in told["groups"]:
        n = int((hidden.colour == each["group"]).sum())
        assert each["hidden_low"] - 2 <= n <= each["hidden_high"] + 2
        assert f"colour {each['group']}: {each['sentence']}." in result.stdout
        assert f"<bdi>{each['group']}</bdi>" in page
    result = probgap("audit", folder, "--more", 10)
    assert result.exit_code == 0, result.stderr
    kept = json.loads((folder / "audit.json").read_text())
    assert kept["design"]["groups"][0][0] == "blue"
    assert kept["estimate"]["n_asked"] == 70


def test_a_fit_that_knows_who_was_looked_at_is_audited_by_that(
    probgap, cases, tmp_path
):
    hidden = (cases["colour"] == "red") & (cases.index % 4 > 0)
    frame = cases.assign(found=cases["audited"].where(~hidden, "").replace("no", ""))
    words = ("--id", "case", "--labelled-by", "colour")
    result, out = refit(probgap, frame, tmp_path, *words)
    assert result.exit_code == 0, result.stderr
    probgap("audit", out, "--budget", 60)
    fill(out / "audit.csv", cases).to_csv(out / "audit.csv", index=False)
    result = probgap("audit", out, "--answers", out / "audit.csv", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["by"] == "colour"
    rates = {each["group"]: each["model_rate"] for each in found["groups"]}
    assert rates["red"] == min(rates.values()) < 0.6
    page = (out / "audit.html").read_text()
    held = all(each["rate_holds"] for each in found["groups"])
    assert ("rates held in every group" in page) == held
    # Where the column tells no unlabelled rows apart, all of them are counted.
    shutil.rmtree(out)
    frame["found"] = frame["found"].where(frame["colour"] == "red", "yes")
    result, out = refit(probgap, frame, tmp_path, *words)
    assert result.exit_code == 0, result.stderr
    result = probgap("audit", out, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["groups"] == []


@pytest.mark.parametrize("column", ["opened", "noise"])  # one is dates, one numbers
def test_groups_are_ranges_of_dates_and_numbers(column, folder, probgap):
    result = probgap("audit", folder, "--budget", 40, "--by", column, "--json")
    assert result.exit_code == 0, result.stderr
    names = [each["group"] for each in json.loads(result.stdout)["groups"]]
    assert len(names) == 4
    assert names[0].startswith("up to 2024-0" if column == "opened" else "up to -0.")


def test_what_people_type(folder, probgap, cases):
    probgap("audit", folder, "--budget", 30)
    asked = fill(folder / "audit.csv", cases, ("Ja", "0"))
    drawn = set(asked["row"])
    strange = next(str(n) for n in range(1, 240) if str(n) not in drawn)
    asked.loc[0, "answer"] = "?"
    asked.loc[1, "answer"] = "perhaps so"
    asked.loc[2, "answer"] = ""
    asked.loc[3, "strength"] = "99"
    twice = pd.concat([asked.loc[[4]]] * 2).assign(answer=["y", "n"])
    unasked = asked.loc[[5, 6]].assign(row=[strange, "9999"])
    lost, asked = asked.loc[7, "row"], asked.drop(index=7)
    pd.concat([asked, twice, unasked]).to_csv(folder / "filled.csv", index=False)
    result = probgap("audit", folder, "--answers", folder / "filled.csv")
    assert result.exit_code == 0, result.stderr
    for sentence in (
        "'Ja' (",
        "'0' (",
        f"counted as unknown: row {asked.loc[1, 'row']}: 'perhaps so'.",
        f"Contradictory answers, counted as unknown: row {asked.loc[4, 'row']}.",
        "Rows that the table does not have, left out: '9999'.",
        f"not counted: row {strange}.",
        f"answers are used: row {asked.loc[3, 'row']} (strength).",
        f"not answered yet: row {lost}.",
    ):
        assert sentence in result.stderr
    kept = json.loads((folder / "audit.json").read_text())
    assert kept["estimate"]["n_unknown"] == 3
    assert [entry["row"] for entry in kept["others"]] == [int(strange)]
    # Such an answer counts as soon as its row is drawn.
    assert probgap("audit", folder, "--more", 240).exit_code == 0
    kept = json.loads((folder / "audit.json").read_text())
    assert int(strange) in {entry["row"] for entry in kept["answers"]}
    assert kept["others"] == []


def test_an_excel_file_of_the_likeliest(folder, probgap):
    pytest.importorskip("openpyxl")
    path = folder / "audit.xlsx"
    result = probgap("audit", folder, "--kind", "find", "--budget", 9, "--out", path)
    assert result.exit_code == 0, result.stderr
    asked = pd.read_excel(path).assign(answer="x")
    asked.to_excel(path, index=False)
    result = probgap("audit", folder, "--answers", path)
    assert "9 positives found" in result.stdout
    assert "not drawn at random" in result.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--answers", "filled.csv"], "holds no audit yet"),
        (["--more", "5"], "holds no audit yet"),
        (["--table", "nothing.csv"], "which is not a file"),
        (["--out", "no/such/audit.csv"], "a folder that exists"),
        (["--by", "color"], "Got 'color'. Did you mean 'colour'?"),
        (["--by", "found"], "Got 'found'."),
        (["--by", "case"], "the largest of 1"),
        (["--by", "country"], "groups must be two or more"),
        (["--by", "colour", "--kind", "find"], "--by requires --kind audit"),
        (["--by", "colour", "--more", "5"], "--by must come with the first questions"),
    ],
)
def test_refusals(words, sentence, folder, probgap):
    result = probgap("audit", folder, *words)
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert not (folder / "audit.json").exists()


def test_answers_are_not_overwritten_or_guessed(folder, probgap, cases):
    probgap("audit", folder, "--budget", 12)
    before = (folder / "audit.json").read_bytes()
    result = probgap("audit", folder, "--budget", 12)
    assert result.exit_code == 1
    assert "an audit has begun" in result.stderr
    asked = fill(folder / "audit.csv", cases)
    for drop, sentence in (("answer", "a column 'answer'"), ("row", "")):
        asked.drop(columns=drop).to_csv(folder / "filled.csv", index=False)
        result = probgap("audit", folder, "--answers", folder / "filled.csv")
        assert result.exit_code == (1 if sentence else 0)  # without numbers, by id
        assert sentence in result.stderr
        if sentence:
            assert (folder / "audit.json").read_bytes() == before
    assert json.loads((folder / "audit.json").read_text())["estimate"]["n_asked"] == 12
    (folder / "audit.json").write_text("{}")
    result = probgap("correct", folder)
    assert result.exit_code == 1
    assert "damaged" in result.stderr


# Answers that the next fit takes along


@pytest.fixture
def answered(folder, probgap, cases):
    """A fit with an audit of 60 rows that were answered, one as unknown."""
    probgap("audit", folder, "--budget", 60)
    asked = fill(folder / "audit.csv", cases)
    asked.loc[0, "answer"] = "?"
    asked.to_csv(folder / "audit.csv", index=False)
    result = probgap("audit", folder, "--answers", folder / "audit.csv")
    assert result.exit_code == 0, result.stderr
    return asked[1:].set_index("case")["answer"]


def refit(probgap, frame, folder, *words):
    """Fit to a table, taking answers along."""
    frame.drop(columns="audited").to_csv(folder / "next.csv", index=False)
    out = folder / "next"
    words = ("--label", "found", *words, "--fast", "--force", "--out", out)
    return probgap("fit", folder / "next.csv", *words), out


@pytest.mark.parametrize("source", ["answers.jsonl", "audit.csv"])
def test_answers_are_taken_along_by_id(
    source, folder, answered, probgap, cases, tmp_path
):
    later = cases.sample(frac=0.9, random_state=0)
    newly = answered.index[(answered == "no") & answered.index.isin(later["case"])][0]
    later.loc[later["case"] == newly, "found"] = "yes"  # the table itself stands
    result, out = refit(
        probgap, later, tmp_path, "--id", "case", "--answers", folder / source
    )
    assert result.exit_code == 0, result.stderr
    assert "that this table does not have, left out: C-0" in result.stderr
    scores = pd.read_csv(out / "scores.csv", keep_default_na=False).set_index("id")
    said = answered[answered.index.isin(scores.index)]
    before = later.set_index("case")["found"]
    labels = before.where(before == "yes", said.map({"yes": "yes", "no": "negative"}))
    labels = labels.fillna("")
    assert scores["observed_label"].equals(
        labels[scores.index].rename("observed_label")
    )
    assert (scores.loc[labels == "negative", "rank"] == "").all()
    kept = json.loads((out / "run.json").read_text())["run"]["answers"]
    n_yes, n_no = (labels[before == ""] == each for each in ("yes", "negative"))
    assert (len(kept["yes"]), len(kept["no"])) == (n_yes.sum(), n_no.sum())
    assert f"{n_yes.sum()} rows more labelled positive" in result.stderr
    # What follows knows them, too: nobody is asked again.
    result = probgap("audit", out, "--budget", 300)
    assert result.exit_code == 0, result.stderr
    asked = pd.read_csv(out / "audit.csv")
    assert set(asked["case"]) == set(labels.index[labels == ""])


@pytest.mark.parametrize("source", ["answers.jsonl", "audit.csv"])
def test_answers_without_an_id_need_the_same_rows(
    source, folder, answered, probgap, cases, tmp_path
):
    words = ("--answers", folder / source, "--quiet")
    grown = pd.concat([cases, cases.assign(strength=cases["strength"] + 1.0)])
    result, out = refit(probgap, grown, tmp_path, *words)
    assert result.exit_code == 0, result.stderr
    run = json.loads((out / "run.json").read_text())
    yes, no = (run["run"]["answers"][each] for each in ("yes", "no"))
    by_row = answered.set_axis(answered.index.str[2:].astype(int))
    assert yes == sorted(by_row.index[by_row == "yes"])
    assert no == sorted(by_row.index[by_row == "no"])
    result, _ = refit(probgap, cases[::-1], tmp_path, *words)
    assert result.exit_code == 1
    assert "found again, by the column of --id" in result.stderr


def test_answers_about_the_same_table_need_no_more_than_their_numbers(
    folder, answered, probgap, fitted, tmp_path
):
    (folder / "audit.json").write_text(
        json.dumps(json.loads((folder / "audit.json").read_text()) | {"asked": []})
    )
    words = ("--label", "found", "--fast", "--quiet", "--out", tmp_path / "again")
    result = probgap("fit", fitted.table, *words, "--answers", folder / "answers.jsonl")
    assert result.exit_code == 0, result.stderr
    run = json.loads((tmp_path / "again" / "run.json").read_text())["run"]
    assert len(run["answers"]["no"]) == (answered == "no").sum()


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("nothing.csv", "--answers must name a file"),
        ("elsewhere.jsonl", "must name answers.jsonl of a fit"),
        ("t.csv", "must have a column 'answer'"),
        ("answers.jsonl", "no run.json in it"),
    ],
)
def test_answers_that_will_not_do(file, sentence, refuses, place):
    for name in ("answers.jsonl", "elsewhere.jsonl"):
        (place / name).write_text("")
    refuses(f"fit t.csv --label found --out new --answers {file}", sentence)


def test_answers_need_the_whole_table(refuses):
    words = "fit t.csv --label found --out new --answers t.csv --engine dask"
    refuses(words, "--answers requires --engine memory")
