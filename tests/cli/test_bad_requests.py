"""Bad requests, one by one: columns, places, models and runs that cannot be used."""

import hashlib
import json
import pickle
import re

import numpy as np
import pytest

from probgap import PGPUClassifier
from probgap import io as models

FIT = "fit t.csv --label found --out out"
COMPARE = "compare t.csv --label found"
PREDICT = "predict run/model.probgap t.csv --out scored.csv"
PRINT = "predict run/model.probgap t.csv"
OVER = PRINT + " --out t.csv --force"
EXPLAIN = "explain run --row c1"


def put(name, content):
    """Write a file into the folder of a case."""

    def make(place, good):
        data = content(good) if callable(content) else content
        data = data.encode() if isinstance(data, str) else data
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)

    return make


def change(name, alter):
    """Alter the bytes of a file of the run that was made before."""

    def make(place, _):
        path = place / "run" / name
        path.write_bytes(alter(path.read_bytes()))

    return make


def change_run(**keys):
    return change("run.json", lambda data: json.dumps(json.loads(data) | keys).encode())


def change_table(**keys):
    def alter(data):
        run = json.loads(data)
        run["table"] |= keys
        return json.dumps(run).encode()

    return change("run.json", alter)


def newer_format(data):
    """Rewrite a model file as a later version would."""
    return re.sub(rb"^(probgap model) \d+", rb"\1 99", data)


def flip(data):
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def replace_by_folder(name):
    def make(place, _):
        (place / name).unlink(missing_ok=True)
        (place / name).mkdir()

    return make


def nothing(place, good):
    """Leave the folder as it is."""


def both(*steps):
    def make(place, good):
        for step in steps:
            step(place, good)

    return make


def without(name):
    return lambda place, _: (place / name).unlink()


def put_bare_model(place, _):
    """Save a classifier of the library, which has no columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 3.0 * (np.arange(60) < 20)[:, None]
    model = PGPUClassifier(random_state=0).fit(X, np.arange(60) < 15)
    models.save(model, place / "run" / "model.probgap")


def repeat_an_id(place, good):
    """Give two rows one id, in the table and in the run."""
    put("t.csv", good.csv(case={2: "c1"}))(place, good)
    digest = hashlib.sha256((place / "t.csv").read_bytes()).hexdigest()
    change_table(sha256=digest)(place, good)


# What the folder holds besides (a function that makes it), the command, what is said.
TWICE = "--row must be the id of one row. Got 'c1', the id of 2 rows."
BAD_REQUESTS = {
    # Where the table is.
    "no such table": (without("t.csv"), FIT, "table 't.csv': No such file"),
    "table is a folder": (
        replace_by_folder("t.csv"),
        FIT,
        "'t.csv' has no CSV or Parq",
    ),
    "name too long": (nothing, FIT.replace("t.csv", "a" * 300), "File name too long"),
    # Which columns.
    "label misspelt": (nothing, FIT.replace("found", "fuond"), "Did you mean 'found'?"),
    "no such id": (
        nothing,
        FIT + " --id nr",
        "--id must name a column of the table, which",
    ),
    "id is the label": (nothing, FIT + " --id found", "--id must name another column"),
    "no such column to drop": (nothing, FIT + " --drop siz", "Did you mean 'size'?"),
    "kept and dropped": (nothing, FIT + " --keep size --drop size", "nor dropped"),
    "declared column misspelt": (
        nothing,
        FIT + " --labelled-by color",
        "--labelled-by must name a column of the table, which",
    ),
    "declared column is the label": (
        nothing,
        FIT + " --labelled-by found",
        "neither label, id nor dropped",
    ),
    "all columns declared": (
        nothing,
        FIT + " --drop case --labelled-by colour,size",
        "no column to learn from besides 'found' and those of labelled_by",
    ),
    "everything dropped": (
        nothing,
        FIT + " --drop case,size,colour",
        "no column to learn from besides 'found': 'case' (dropped on request), ",
    ),
    "a column with a comma dropped": (
        put("t.csv", lambda good: good.csv(**{"c, d": range(32)})),
        FIT + " --drop case,size,colour --drop 'c, d'",
        "'c, d' (dropped on request)",
    ),
    "wrong positive": (nothing, FIT + " --positive ja", "never holds 'ja'"),
    # Where to.
    "out is a file": (
        put("out", "x"),
        FIT,
        "--out must name a folder. Got the file out",
    ),
    "out with earlier results": (
        put("out/run.json", "{}"),
        FIT,
        "which holds run.json;",
    ),
    "out with foreign files": (
        both(put("out/run.json", "{}"), *(put(f"out/{k}.tex", "x") for k in range(4))),
        FIT + " --force",
        "but out also holds 0.tex, 1.tex, 2.tex and 1 more;",
    ),
    "out holds the table": (
        put("out/label_next.csv", lambda good: good.csv()),
        FIT.replace("t.csv", "out/label_next.csv") + " --force",
        "--force would replace the table itself, out/label_next.csv; move it",
    ),
    "out is a link to nothing": (
        lambda place, _: (place / "out").symlink_to("nowhere"),
        FIT,
        "--out must name a folder. Got out, a link to nothing.",
    ),
    # Comparing.
    "truth is the label": (
        nothing,
        COMPARE + " --truth found",
        "--truth must name another",
    ),
    "truth that contradicts": (
        put(
            "t.csv", lambda good: good.csv(truth=["no", "yes", "no"] * 10 + ["no"] * 2)
        ),
        COMPARE + " --truth truth",
        "--truth must call labelled rows positive. Got 'truth', which calls none",
    ),
    "truth that is not known of all": (
        put("t.csv", lambda good: good.csv(truth=["yes", "no", "", "no"] * 8)),
        COMPARE + " --truth truth",
        "no rows of unknown truth. Got 'truth' with 'yes', 'no', empty cells.",
    ),
    "truth of other words": (
        put("t.csv", lambda good: good.csv(truth=["a", "b"] * 16)),
        COMPARE + " --truth truth",
        "spelt as in --label or as yes and no. Got 'truth' with 'a', 'b'.",
    ),
    "a method that is none": (
        put("t.csv", lambda good: good.csv()),
        COMPARE + " --only svm",
        "--only must be one of naive boosted trees, naive forest, PU bagging",
    ),
    # Models.
    "no such model": (without("run/model.probgap"), PREDICT, "No such file"),
    "truncated model": (
        change("model.probgap", lambda d: d[:-99]),
        PREDICT,
        "it was cut off, damaged or changed",
    ),
    "altered model": (change("model.probgap", flip), PREDICT, "damaged or changed"),
    "pickle in place of a model": (
        put("run/model.probgap", pickle.dumps({"a": 1})),
        PREDICT,
        "it is not a model file of probgap",
    ),
    "model of a later format": (
        change("model.probgap", newer_format),
        PREDICT,
        "upgrade probgap",
    ),
    "model without preparation": (
        put_bare_model,
        PREDICT,
        "which holds a PGPUClassifier",
    ),
    # Rows to score.
    "column missing": (
        put("t.csv", lambda good: good.csv("size")),
        PREDICT,
        "The table has no 'size': it needs every column",
    ),
    "text for a number": (
        put("t.csv", lambda good: good.csv(size={3: "lots"})),
        PREDICT,
        "Column 'size' has 'lots' in row 4, which is not a number; correct the cell, or",
    ),
    "inf to score": (
        put("t.csv", lambda good: good.csv(size={3: "inf"})),
        PREDICT,
        "is not a finite number",
    ),
    "scores without their id": (
        nothing,
        PREDICT + " --id nr",
        "--id must name a column",
    ),
    "scores into a folder": (
        replace_by_folder("scored.csv"),
        PREDICT,
        "must name a file",
    ),
    "scores over a file": (put("scored.csv", "x"), PREDICT, "replace it with --force"),
    "scores to nowhere": (
        nothing,
        PREDICT.replace("scored", "a/b"),
        "a folder that exists",
    ),
    "scores over the table": (
        nothing,
        OVER,
        "--out must not name an input file",
    ),
    # Explaining.
    "no such run": (
        nothing,
        "explain nowhere",
        "DIR must be a folder that probgap fit wrote",
    ),
    "folder without run": (
        without("run/run.json"),
        EXPLAIN,
        "Got run: no run.json in it.",
    ),
    "run of a later format": (change_run(format=9), EXPLAIN, "use a newer probgap"),
    "run with odd table": (change_run(table={"path": "t.csv"}), EXPLAIN, "fit again"),
    "nothing drives it": (
        change_run(drivers=None),
        "explain run",
        "There were too few labelled rows",
    ),
    "table changed": (
        put("t.csv", lambda good: good.csv() + "x,1,red,\n"),
        EXPLAIN,
        "other contents",
    ),
    "no such row": (nothing, EXPLAIN + "000", "Got 'c1000', the id of no row."),
    "row by an id of two": (repeat_an_id, EXPLAIN, TWICE),
    "row by no number": (
        change_table(id=None),
        EXPLAIN,
        "a number from 1 to 32. Got 'c1'",
    ),
    "run without its model": (without("run/model.probgap"), EXPLAIN, "No such file"),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_gives_one_sentence_and_leaves_nothing(
    name, place, good, refuses
):
    make, words, part = BAD_REQUESTS[name]
    make(place, good)
    refuses(words, part)
