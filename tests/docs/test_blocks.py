"""What runs the code of the documentation: nothing wrong goes by unnoticed."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
if not (DOCS / "_ext" / "run_blocks.py").is_file():
    pytest.skip("the documentation is not beside the tests", allow_module_level=True)
sys.path.insert(0, str(DOCS / "_ext"))

pytest.importorskip("sphinx", reason="sphinx is not installed")

from run_blocks import BlockError, Page, check_setup


@pytest.fixture
def page(tmp_path):
    return Page(tmp_path)


def test_python_blocks_share_names_and_show_what_they_print_and_their_last_value(page):
    assert page.run_python("x = 6\nprint('six')") == "six\n"
    assert page.run_python("x + 1") == "7\n"
    assert page.run_python("x = 8") == ""


def test_python_and_commands_share_a_folder(page, tmp_path):
    page.run_python("import pathlib\nx = pathlib.Path('table.csv').write_text('a,b')")
    assert page.run_console("$ cat table.csv") == "$ cat table.csv\na,b"
    assert (tmp_path / "table.csv").is_file()


def test_a_warning_in_a_block_is_an_error(page):
    with pytest.raises(UserWarning, match="look"):
        page.run_python("import warnings\nwarnings.warn('look', UserWarning)")


def test_a_command_goes_on_after_a_backslash(page):
    assert page.run_console("$ echo one \\\n  two") == "$ echo one \\\n  two\none two"


def test_a_command_that_fails_fails_the_page_unless_that_is_expected(page):
    with pytest.raises(BlockError, match="ended with 3"):
        page.run_console("$ exit 3")
    assert page.run_console("$ exit 3", expected=3) == "$ exit 3"
    with pytest.raises(BlockError, match="ended with 0"):
        page.run_console("$ true", expected=3)


def test_output_is_made_by_the_build_not_written(page):
    with pytest.raises(BlockError, match="Got 'echo one"):
        page.run_console("$ echo one\none")


@pytest.mark.parametrize(
    "text",
    ["make demo && make test", "pip install '.[tool,dask]'  # extras", "pip install ."],
)
def test_commands_that_set_up_are_checked(text):
    check_setup(text)


@pytest.mark.parametrize(
    "text", ["make tea", "pip install '.[tea]'", "python tea.py", "tea --now"]
)
def test_commands_that_do_not_exist_are_found(text):
    with pytest.raises(BlockError, match=r"Got .*tea"):
        check_setup(text)
