import re
from threading import Event, Thread

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from probgap._core.runtime import one_thread, remark, stage


def test_a_stage_is_announced_before_it_begins_and_timed_when_it_ends(capsys):
    with stage(1, "long work"):
        assert capsys.readouterr().err == "[probgap] long work ..."
    assert re.fullmatch(r" \d+\.\d s\n", capsys.readouterr().err)


def test_a_stage_is_silent_unless_asked(capsys):
    with stage(0, "long work"):
        pass
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_remarks_are_lines_of_their_own_and_the_stage_is_said_again(capsys):
    with stage(1, "one"):
        remark("a plan")
        remark("another")
    with stage(1, "two"):
        pass
    remark("alone")
    said = re.sub(r"\d+\.\d s", "0.0 s", capsys.readouterr().err)
    assert said.splitlines() == [
        "[probgap] one ...",
        "[probgap] a plan",
        "[probgap] another",
        "[probgap] one ... 0.0 s",
        "[probgap] two ... 0.0 s",
        "[probgap] alone",
    ]


def test_threads_that_overlap_leave_no_limit_behind():
    def threads():
        return [library["num_threads"] for library in threadpool_info()]

    entered, leave = Event(), Event()

    def stay():
        with one_thread():
            entered.set()
            leave.wait(10)

    with threadpool_limits(2):
        before = threads()
        other = Thread(target=stay)
        with one_thread():
            other.start()
            assert entered.wait(10)
        leave.set()
        other.join()
        assert threads() == before


def test_one_thread_is_one_and_ends():
    def threads():
        return {library["num_threads"] for library in threadpool_info()}

    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2):
        before = threads()
        assert 2 in before
        with one_thread():
            assert threads() == {1}
            with one_thread():
                assert threads() == {1}
            assert threads() == {1}
        assert threads() == before
