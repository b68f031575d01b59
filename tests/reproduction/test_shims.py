"""The old names of the room still work, with a warning that names the new place."""

import importlib
import sys

import pytest

from probgap import page, reproduction

OLD = {
    "experiments": "Block Job Labelling TableSpec check_data load_spec paper_specs "
    "pending plan rows_of run",
    "results": "RowFile latest_rows read_rows write_rows",
    "report": "ReportFiles build_report check_libraries render_page summarise",
}


@pytest.mark.parametrize("name", OLD)
def test_an_old_module_has_its_names_and_says_where_they_are_now(name):
    sys.modules.pop(f"probgap.{name}", None)
    with pytest.warns(DeprecationWarning, match=r"0\.3\. Use probgap\.reproduction"):
        old = importlib.import_module(f"probgap.{name}")
    assert set(old.__all__) >= set(OLD[name].split())
    for public in old.__all__:
        place = page if public in page.__all__ else reproduction
        assert getattr(old, public) is getattr(place, public)
