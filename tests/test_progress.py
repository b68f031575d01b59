"""What a long fit says of itself."""

import re

from probgap._core.progress import remark, stage


def said(capsys):
    return re.sub(r"\d+\.\d s", "0.0 s", capsys.readouterr().err)


def test_a_stage_is_a_line(capsys):
    with stage(1, "one"):
        pass
    with stage(0, "nothing"):
        pass
    assert said(capsys) == "[probgap] one ... 0.0 s\n"


def test_remarks_are_lines_of_their_own_and_the_stage_is_said_again(capsys):
    with stage(1, "one"):
        remark("a plan")
        remark("another")
    with stage(1, "two"):
        pass
    remark("alone")
    assert said(capsys).splitlines() == [
        "[probgap] one ...",
        "[probgap] a plan",
        "[probgap] another",
        "[probgap] one ... 0.0 s",
        "[probgap] two ... 0.0 s",
        "[probgap] alone",
    ]
