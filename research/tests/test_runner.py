"""The runner: rows depend on the job alone, whoever runs it, when, and beside what."""

import ctypes
import random
import subprocess
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import joblib
import numpy as np
import pytest

import probgap
from probgap.exceptions import InvalidInputError
from research.paper import run as runner
from research.paper.data import check_data
from research.paper.plan import load_spec, paper_specs, pending, plan, rows_of
from research.paper.rows import RowFile, read_rows
from research.paper.run import keep_freed_memory, run

# What depends on the computer and the moment, and not on the job.
PASSING = ("seconds", "finished", "machine")


def lasting(rows):
    kept = [{k: v for k, v in row.items() if k not in PASSING} for row in rows]
    return sorted(kept, key=lambda row: row["key"])


@pytest.fixture(scope="module")
def jobs(small_table, tmp_path_factory):
    path = tmp_path_factory.mktemp("spec") / "small.toml"
    path.write_text(small_table)
    return plan([load_spec(path)], quick=True)


@pytest.fixture(scope="module")
def rows(jobs):
    return lasting(run(jobs, command="make reproduce"))


def test_rows_name_the_commit_they_were_made_at_and_none_outside_git(
    jobs, tmp_path, monkeypatch
):
    git = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setattr(runner, "_HERE", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert next(run(jobs[:1]))["commit"] is None
    git(["git", "init"])
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    git(["git", *who, "commit", "--allow-empty", "-m", "first"])
    head = git(["git", "rev-parse", "HEAD"]).stdout.decode()
    assert head.startswith(next(run(jobs[:1]))["commit"])


def test_a_row_says_what_was_run_and_what_came_out(jobs, rows):
    assert [row["key"] for row in rows] == sorted(job.key for job in jobs)
    assert {row["status"] for row in rows} == {"ok"}
    for row in rows:
        assert row["key"] == "/".join(
            [
                row["table"],
                row["data"],
                row["labelling"],
                row["method"],
                str(row["seed"]),
            ]
        )
        assert all(0.5 < row[m] <= 1.0 for m in ("accuracy", "f1", "auc"))
        assert row["parameters"]["svm"] == {"C": 1.0, "gamma": "auto"}
        assert row["versions"].keys() >= {"python", "numpy", "scikit-learn"}
        assert row["versions"]["probgap"] == probgap.__version__
        assert row["command"] == "make reproduce"
    searched = next(row for row in rows if row["method"] == "PGPUcv")
    assert searched["details"]["boundary"] in (-0.8, -0.6)
    assert searched["details"]["true_boundary"] in (-1.0 / 1.5, -0.3)


def test_rows_depend_neither_on_the_order_nor_on_processes_or_company(jobs, rows):
    some = random.Random(1).sample(jobs, 12)
    assert lasting(run(some, n_jobs=2, command="make reproduce")) == [
        row for row in rows if row["key"] in {job.key for job in some}
    ]


def test_a_dask_cluster_gives_the_same_rows(jobs, rows):
    distributed = pytest.importorskip("distributed")
    some = [job for job in jobs if job.method == "SVM"]
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert lasting(run(some, command="make reproduce")) == [
            row for row in rows if row["method"] == "SVM"
        ]


def test_a_job_that_fails_is_a_row_with_its_error(small_spec):
    text = small_spec.read_text().replace("n_smallest = 3", "n_smallest = -3")
    small_spec.write_text(text)
    rows = list(run(plan([load_spec(small_spec)], rows=[1], quick=True)))
    failed = [row for row in rows if row["status"] == "error"]
    assert {row["method"] for row in failed} == {"PGPU"}
    assert all(row["error"].startswith("InvalidInputError: ") for row in failed)
    assert all(row["accuracy"] is None for row in failed)
    assert len(rows) == 10


def test_jobs_with_a_row_are_not_run_again_unless_their_settings_changed(
    jobs, rows, small_spec, tmp_path
):
    assert pending(jobs, rows) == []
    failed = [{**row, "status": "error"} for row in rows[:2]]
    assert {job.key for job in pending(jobs, failed + rows[2:])} == {
        row["key"] for row in failed
    }
    with RowFile(tmp_path / "rows.jsonl") as file:
        for row in rows:
            file.append(row)
    assert pending(jobs, read_rows(tmp_path / "rows.jsonl")) == []
    full = plan([load_spec(small_spec)])
    assert len(pending(full, rows)) == len(full)


def test_rows_of_other_settings_are_neither_in_the_way_nor_in_the_answer(jobs, rows):
    other = [{**row, "parameters": {}, "status": "error"} for row in rows]
    assert pending(jobs, rows + other) == []
    assert rows_of(jobs, other + rows + other) == rows


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The rows of two figures, which hold the points of their splits."""
    path = tmp_path_factory.mktemp("spec") / "figure.toml"
    path.write_text(FIGURES)
    first, second = run(plan([load_spec(path)], quick=True))
    return first["details"], second["details"]


FIGURES = """
table = "figure1"
title = "Points of two splits"
splits = 1
test_share = 0.25
svm = {}

[[block]]
data = ["square"]
rates = [["linear", 0.6], ["inverse", 0.1, 0.5]]
methods = { figure = { n_smallest = 3 } }
"""


def test_a_split_is_standardised_by_its_training_part_and_hides_positives_alone(
    pictures,
):
    for details in pictures:
        panels = {name: np.array(values) for name, values in details["panels"].items()}
        assert {len(values) for values in panels.values()} == {300}
        for name in ("x1", "x2"):
            assert panels[name].mean() == pytest.approx(0.0, abs=1e-4)
            assert panels[name].std() == pytest.approx(1.0, abs=1e-4)
        assert set(panels["relabelled"]) <= {-1, 0, 1}
        assert 0 < panels["observed"].sum() == details["n_labelled"]
        assert panels["observed"].sum() < panels["true"].sum()
        assert not (panels["observed"] > panels["true"]).any()


def test_labellings_draw_samples_of_their_own(pictures):
    first, second = (set(details["panels"]["x1"]) for details in pictures)
    assert len(first & second) < 10  # equal to four decimals by chance alone


def test_real_data_are_taken_whole_or_in_part():
    try:
        check_data({"heart"})
    except InvalidInputError:
        pytest.skip("the data files are not there")
    job = plan(paper_specs(), tables=["7"], rows=[37])[0]
    rows = run([job, replace(job, split=1, max_rows=100)])
    assert [row["details"]["n_train"] for row in rows] == [202, 75]


@pytest.mark.parametrize(
    ("data", "rate", "message"),
    [
        ("heart", '"real"', "rate of heart must be a function"),
        ("tcdb", '"linear", 0.2', "rate of tcdb must be 'real'"),
    ],
)
def test_labels_follow_the_data_and_not_the_other_way_round(
    tmp_path, data, rate, message
):
    text = FIGURES.replace('"square"', f'"{data}"').replace('"linear", 0.6', rate)
    (tmp_path / "odd.toml").write_text(text)
    jobs = plan([load_spec(tmp_path / "odd.toml")], rows=[1], quick=True)
    (row,) = run(jobs)
    assert row["status"] == "error"
    assert message in row["error"]


def test_glibc_is_told_to_keep_freed_memory_and_another_library_nothing(monkeypatch):
    said = {}
    for library in (SimpleNamespace(mallopt=said.__setitem__), SimpleNamespace()):
        monkeypatch.setattr(ctypes, "CDLL", lambda _, library=library: library)
        keep_freed_memory()
    assert said == {-4: 0, -1: 2**31 - 1}  # M_MMAP_MAX and M_TRIM_THRESHOLD
