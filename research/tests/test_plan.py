"""Specifications and plans: the paper's tables, and refusals in one sentence."""

import pytest

from probgap.exceptions import InvalidInputError
from research.paper.data import Labelling
from research.paper.plan import load_spec, paper_specs, plan

PAPER = [job for job in plan(paper_specs()) if job.table.isdigit()]


def test_the_paper_has_74_labellings_with_ten_splits_each():
    labellings = {(job.table, job.data, job.labelling) for job in PAPER}
    # 73 are printed; banana's last one is missing there.
    assert len(labellings) == 74
    assert {job.split for job in PAPER} == set(range(10))
    assert len({job.key for job in PAPER}) == len(PAPER)
    without_search = {job.data for job in PAPER} - {
        job.data for job in PAPER if job.method == "PGPUcv"
    }
    assert without_search == {"heart"}


def test_boundaries_are_looked_at_under_all_17_labellings():
    jobs = plan(paper_specs(), tables=["1", "2", "3", "4", "5", "6", "boundaries"])
    for data in ("triangles", "square"):
        assert len({str(job.labelling) for job in jobs if job.data == data}) == 17


def test_boundaries_are_placed_as_the_paper_has_it():
    smallest = {
        job.data: job.parameters["n_smallest"] for job in PAPER if job.method == "PGPU"
    }
    assert {data for data, n in smallest.items() if n == 3} == {"triangles", "square"}
    assert set(smallest.values()) == {1, 3}


@pytest.mark.parametrize(
    ("rate", "boundary"),
    [
        (("inverse", 0.1, 0.5), -1.0 / 1.5),
        (("linear", 0.6), -0.6),
        (("constant", 0.3), -0.3),
    ],
)
def test_the_true_boundary_is_minus_the_rate_at_gap_zero(rate, boundary):
    name, *parameters = rate
    assert Labelling(name, tuple(parameters)).true_boundary == pytest.approx(boundary)


def test_rows_tables_and_methods_can_be_chosen():
    chosen = {"tables": ["2", "1"], "rows": [2], "methods": ["SVM", "PGPU"]}
    jobs = plan(paper_specs(), **chosen, quick=True)
    assert {job.method for job in jobs} == {"SVM", "PGPU"}
    assert {job.key.rsplit("/", 2)[0] for job in jobs} == {
        "1/triangles/inverse(0.1, 1)",
        "2/triangles/linear(0.4)",
    }
    assert {job.split for job in jobs} == {0, 1}


@pytest.mark.parametrize(
    ("find", "put", "message"),
    [
        ('table = "small"\n', "", "must have the keys"),
        ('"triangles"', '"circles"', "data must be one of"),
        ("Liu = {}", "Lui = {}", "a method must be one of"),
        ('["inverse", 0.3, 0.5]', '["inverse", 0.3]', "rate must be"),
        ('["inverse", 0.3, 0.5]', '["cubic", 0.3]', "rate must be"),
        ("[[block]]", "[block", "must be a TOML file"),
        ("C = 1.0", "C = 2030-01-01", "values that JSON can hold"),
        ("[[block]]", "[[block]]\ncolour = 1", "a block of .* must have the keys"),
    ],
)
def test_a_wrong_specification_is_refused_in_one_sentence(
    small_spec, find, put, message
):
    text = small_spec.read_text()
    assert find in text
    small_spec.write_text(text.replace(find, put))
    with pytest.raises(InvalidInputError, match=message):
        plan([load_spec(small_spec)])


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="must be a TOML file"):
        load_spec(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"tables": ["9"]}, "a table must be one of"),
        ({"methods": ["Lui"]}, "a method must be one of"),
        ({"rows": [99]}, "rows must name"),
    ],
)
def test_a_choice_of_nothing_is_refused(choice, message):
    with pytest.raises(InvalidInputError, match=message):
        plan(paper_specs(), **choice)
