"""The README's code runs, and says what it promises."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the README is not beside the tests")
def test_the_ten_lines_run_and_find_hidden_positives(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 1
    assert len(blocks[0].split("\n\n")[-1].splitlines()) <= 10
    exec(compile(blocks[0], "README.md", "exec"), {})  # noqa: S102 (our own text)
    labelled, found, there = map(int, re.findall(r"\d+", capsys.readouterr().out))
    assert labelled < found <= there + 10
