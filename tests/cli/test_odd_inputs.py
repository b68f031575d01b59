"""Odd tables that work, and places that refuse: permissions, full disks, closed pipes."""

import contextlib
import errno
import functools
import gzip
import io
import json
import os
import re
import resource
import shlex
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest

from probgap.cli import main

FIT = "fit t.csv --label found --out out"
PREDICT = "predict run/model.probgap t.csv --out scored.csv"
PRINT = "predict run/model.probgap t.csv"
FILES = ("report.html", "scores.csv", "label_next.csv", "model.probgap", "run.json")
NO_ROOM = "no room for the results: No space left on device."

MIXED = {"nothing": "", "constant": 7, "mixed": ["1", "x", "2.5", ""] * 8}
NAMES = {"😀": range(32), "a\nb": range(32, 0, -1), "": 1.5, "=x": 2}
ODD_CELLS = ["<script>alert(1)</script>", "=cmd()", "grün", "</style>"] * 8
HUGE = {3: "1e99", 4: "-1e99", 5: "5e-324"}

# As many in one table as go together.
ODD = {
    "all odd cells": lambda good: good.csv(
        colour=ODD_CELLS, case="=1+1", size=HUGE, **MIXED, **NAMES
    ).encode("utf-16"),
    "two labelled positives in Parquet": lambda good: gzip.compress(
        good.parquet(found=["yes"] * 2 + [""] * 30)
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_table_is_no_bad_input(name, place, good, probgap):
    content = ODD[name](good)
    data = content.encode() if isinstance(content, str) else content
    (place / "t.csv").write_bytes(data)
    result = probgap(*shlex.split(FIT), "--id", "case", "--fast", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    scores = pd.read_csv("out/scores.csv")
    assert scores["probability"].between(0, 1).all()
    assert len(scores) == 32
    assert "<script>alert" not in Path("out/report.html").read_text()
    for file in ("scores.csv", "label_next.csv"):
        assert not re.search(r"(^|,)[=@]", Path("out", file).read_text(), re.MULTILINE)
    result = probgap("predict", "out/model.probgap", "t.csv", "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert len(result.stdout.splitlines()) == 33


def test_ten_thousand_columns_are_not_listed(place, good, refuses):
    wide = {f"x{i}": range(32) for i in range(10_000)}
    frame = pd.concat([good.frame(), pd.DataFrame(wide)], axis=1)
    frame.to_csv(place / "t.csv", index=False)
    said = "which has case, size, colour, found, x0, x1, x2, x3 and "
    refuses(FIT.replace("found", "fuond"), said)


@contextlib.contextmanager
def as_nobody():
    """Give up the superuser's rights, as permissions mean nothing to him."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def shared_place(good, probgap, monkeypatch):
    """Make a folder with a table, which everybody may enter."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "t.csv").write_text(good.csv())
        monkeypatch.chdir(place)
        probgap(*shlex.split(FIT), "--drop", "nowhere")  # all that is needed is loaded
        yield place


def test_a_table_that_may_not_be_read_is_refused(
    shared_place, probgap, is_one_sentence
):
    (shared_place / "t.csv").chmod(0o000)
    shared_place.chmod(0o777)
    with as_nobody():
        result = probgap(*shlex.split(FIT), "--quiet")
    is_one_sentence(result.stderr, "table 't.csv': Permission denied.")


@pytest.mark.parametrize("out", ["out", "deep/er/out"])
def test_a_read_only_place_is_refused_before_the_table_is_read(
    shared_place, probgap, is_one_sentence, out
):
    shared_place.chmod(0o555)
    with as_nobody():
        result = probgap(
            *shlex.split(FIT.replace("t.csv", "x").replace(" out", f" {out}"))
        )
    is_one_sentence(result.stderr, "--out must be in a folder that can be written to.")
    assert [path.name for path in shared_place.iterdir()] == ["t.csv"]


class FullDisk(io.StringIO):
    def write(self, _):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill_disk(patch, file):
    """Let the disk be full when a file is written to."""
    really = io.open

    def open_it(path, mode="r", *more, **options):
        stream = really(path, mode, *more, **options)
        if file not in str(path) or mode[0] == "r":
            return stream
        stream.close()
        return FullDisk()

    patch.setattr(io, "open", open_it)


@pytest.fixture
def fitted_already(small, monkeypatch):
    """Leave nothing to a fit but to write its files."""
    monkeypatch.setattr("probgap.cli.fit.analyse", lambda *_, **__: small.analysis)


@pytest.mark.usefixtures("fitted_already")
@pytest.mark.parametrize("file", FILES)
def test_a_full_disk_leaves_nothing(file, refuses, monkeypatch):
    fill_disk(monkeypatch, file)
    refuses(FIT.replace(" out", " deep/er/out"), NO_ROOM)


@pytest.mark.usefixtures("fitted_already")
def test_a_full_disk_keeps_earlier_results(refuses, monkeypatch):
    fill_disk(monkeypatch, "run.json")
    refuses(FIT.replace(" out", " run --force"), NO_ROOM)


@pytest.mark.usefixtures("fitted_already")
def test_earlier_results_return_if_new_ones_cannot_take_their_place(
    refuses, monkeypatch
):
    rename, refused = Path.rename, []

    def refuse(self, target):
        if Path(target).name == "run" and not refused:
            refused.append(self)
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        refuses(FIT.replace(" out", " run --force"), ": Permission denied.")


@pytest.mark.usefixtures("fitted_already", "place")
def test_a_narrow_window_shows_numbers_whole(probgap):
    result = probgap(*shlex.split(FIT), env={"COLUMNS": "40"})
    assert result.exit_code == 0, result.stderr
    ranked = json.loads(Path("out/run.json").read_text(encoding="utf-8"))["ranked"]
    for entry in ranked[:6]:  # as many as leave room for warnings
        assert f"{entry['probability']:.3f}" in result.stdout
        assert "{:.2f}".format(entry["interval"][1]) in result.stdout


@pytest.mark.usefixtures("fitted_already")
def test_force_replaces_earlier_results_whole(place, probgap, listing):
    before = listing(place)
    for file in FILES:
        (place / "run" / file).write_text("old")
    words = FIT.replace(" out", " run --force --quiet")
    assert probgap(*shlex.split(words)).exit_code == 0
    after = listing(place)
    assert set(after) == set(before)
    assert b"old" not in after.values()


def test_a_full_disk_leaves_no_scores(refuses, monkeypatch):
    fill_disk(monkeypatch, "scored.csv")
    refuses(PREDICT, NO_ROOM)


@pytest.mark.usefixtures("fitted_already")
def test_a_limit_on_files_leaves_nothing(refuses):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        refuses(FIT, "no room for the results: File too large.")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("place")
def test_a_full_disk_behind_a_pipe_is_one_sentence(
    monkeypatch, capsys, is_one_sentence
):
    monkeypatch.setattr(sys, "argv", ["probgap", *shlex.split(PRINT), "--quiet"])
    full = Path("/dev/full").open("w")  # noqa: SIM115 (closing it fails)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            main()
    with contextlib.suppress(OSError):
        full.close()
    is_one_sentence(capsys.readouterr().err, NO_ROOM)
    assert ended.value.code == 1


@pytest.mark.usefixtures("place")
def test_no_standard_input_is_one_sentence(start, is_one_sentence):
    words = shlex.split(FIT.replace("t.csv", "-"))
    process = start(*words, "--quiet", preexec_fn=functools.partial(os.close, 0))
    _, said = process.communicate(timeout=60)
    is_one_sentence(said, "Standard input is closed")
    assert process.returncode == 1
