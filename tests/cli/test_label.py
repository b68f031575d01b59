"""probgap label: answers are kept, several people can answer, attacks are refused."""

import http.client
import json
import os
import random
import re
import signal
import threading
import time
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")

from probgap.audit import design, estimate
from probgap.cli._journal import FROM_FILE, JOURNAL, Journal, Record, read_journal
from probgap.cli._labelling import AnsweredError, LabelSession


@pytest.fixture
def ask(tmp_path):
    """Ask about rows of which the first 40 are positive."""

    opened = ExitStack()

    def begin(budget=30, earlier=None):
        made = design(np.linspace(0.99, 0.01, 300), budget=budget)
        session = LabelSession(
            opened.enter_context(Journal(tmp_path)),
            made,
            lambda row: {"row": row + 1, "id": None, "cells": [["a", "<b>"]]},
            earlier or {},
            lambda n: made.extend({}, n),
        )
        return session, made.rows.tolist()

    with opened:
        yield begin


def row_of(view):
    return view["row"]["row"] - 1


def test_an_answer_is_on_disk_when_the_next_row_comes(ask, tmp_path):
    session, rows = ask()
    for row, word in zip(rows, ("yes", "no", "unknown"), strict=False):
        assert row_of(session.view("a")) == row
        view = session.answer("a", row, word)
        assert read_journal(tmp_path)[-1] == Record(row, word, "audit", "a")
    assert (view["answered"], view["yes"], view["no"], view["unknown"]) == (3, 1, 1, 1)


def test_the_estimate_is_that_of_the_audit_and_more_can_be_asked(ask):
    session, rows = ask()
    for row in rows:
        view = session.answer("a", row, "yes" if row < 40 else "no")
    found = session.estimate()
    made = design(np.linspace(0.99, 0.01, 300), budget=30)
    expected = estimate(made, {row: row < 40 for row in rows})
    assert (found["low"], found["high"]) == expected.count_interval
    assert found["headline"] == expected.headline
    assert found["trace"][-1] == [30, found["low"], found["count"], found["high"]]
    assert view["row"] is None
    assert view["more"]
    assert session.more("a", 20)["asked"] == 50
    assert session.view("a")["row"] is not None


def test_undo_is_a_record_and_shows_the_row_again(ask, tmp_path):
    session, (row, *_) = ask()
    assert session.undo("a")["answered"] == 0
    session.answer("a", row, "yes")
    assert session.estimate()["answers"] == 1
    view = session.undo("a")
    assert row_of(view) == row
    assert (view["answered"], view["undo"]) == (0, False)
    session.answer("a", row, "no")
    assert [record.word for record in read_journal(tmp_path)] == ["yes", "undo", "no"]
    assert session.answers == {row: False}
    assert session.estimate()["trace"][0][2] < 300


def test_two_people_see_different_rows_and_overwrite_nothing(ask, tmp_path):
    session, _ = ask()
    mine, yours = row_of(session.view("a")), row_of(session.view("b"))
    assert mine != yours
    session.answer("a", mine, "yes")
    with pytest.raises(AnsweredError, match="answered elsewhere: yes"):
        session.answer("b", mine, "no")
    assert row_of(session.view("b")) == yours
    session.answer("a", mine, "yes")  # sent again: the reply was lost
    assert len(read_journal(tmp_path)) == 1
    # Nobody takes back what another one said.
    assert session.undo("b")["yes"] == 1


def test_many_at_once_lose_nothing(ask, tmp_path):
    session, rows = ask(budget=60)

    def work(by):
        view = session.view(by)
        while view["row"] is not None:
            row = row_of(view)
            with suppress(AnsweredError):  # the last rows are shown to several
                session.answer(by, row, "yes" if row < 40 else "no")
            view = session.view(by)

    threads = [threading.Thread(target=work, args=(by,)) for by in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.answers == {row: row < 40 for row in rows}
    assert sorted(record.row for record in read_journal(tmp_path)) == sorted(rows)


def test_a_torn_line_is_passed_over_and_ended(ask, tmp_path):
    whole = {"row": 3, "answer": "no", "mode": "audit", "by": "a"}
    (tmp_path / JOURNAL).write_text(json.dumps(whole) + '\n{"row": 7, "ans')
    first = Record(2, "no", "audit", "a")
    assert read_journal(tmp_path) == [first]
    session, (row, *_) = ask()
    session.answer("a", row, "yes")
    assert read_journal(tmp_path) == [first, None, Record(row, "yes", "audit", "a")]


@pytest.mark.parametrize("by", ["b", FROM_FILE])
def test_answers_from_earlier_can_be_undone_but_not_those_of_a_file(ask, by):
    _, rows = ask()
    earlier = {row: Record(row, "no", "audit", by) for row in rows[:12]}
    session, _ = ask(earlier=earlier)
    view = session.view("a")
    assert (view["answered"], row_of(view)) == (12, rows[12])
    trace = session.estimate()["trace"]
    assert [point[0] for point in trace] == list(range(1, 13))
    assert view["undo"] == (by != FROM_FILE)
    assert row_of(session.undo("a")) == rows[12 if by == FROM_FILE else 11]


class Client:
    """One window of a browser, as the server sees it."""

    def __init__(self, port, token):
        self.port, self.token = port, token

    def ask(self, path, change=None, **headers):
        url = f"http://127.0.0.1:{self.port}"
        ours = {"cookie": f"probgap_{self.port}={self.token}"}
        if change is not None:
            ours["origin"], path = url, f"{path}?{urlencode(change)}"
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {k: v for k, v in (ours | changed).items() if v is not None}
        method = "GET" if change is None else "POST"
        try:
            answer = urlopen(Request(url + path, headers=sent, method=method))
        except HTTPError as error:
            answer = error
        with answer:
            return answer.status, dict(answer.headers), answer.read()

    def get(self, name):
        return json.loads(self.ask(f"/api/{name}")[2])

    def answer(self, row, word):
        status, _, content = self.ask("/api/answer", {"row": row, "answer": word})
        return status, json.loads(content)


@pytest.fixture
def site(ask, serve_label, tmp_path):
    session, rows = ask()
    port, token = serve_label(session, {"table": "t"})
    return SimpleNamespace(client=Client(port, token), rows=rows, folder=tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"cookie": None},
        {"cookie": "probgap_PORT=wrong"},
        {"host": "evil.example:PORT"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
    ],
)
def test_a_foreign_request_is_refused(site, change):
    port = str(site.client.port)
    change = {k: v and v.replace("PORT", port) for k, v in change.items()}
    said = {"row": site.rows[0] + 1, "answer": "yes"}
    assert site.client.ask("/api/answer", said, **change)[0] == 403
    status, headers, content = site.client.ask("/api/row", **change)
    assert status == 403
    assert b"cells" not in content
    assert "set-cookie" not in headers
    assert read_journal(site.folder) == []


def test_an_answer_needs_an_origin_and_sense(site):
    said = {"row": site.rows[0] + 1, "answer": "yes"}
    assert site.client.ask("/api/answer", said, origin=None)[0] == 403
    for strange in ({"row": "one", "answer": "yes"}, {**said, "answer": "maybe"}, {}):
        assert site.client.ask("/api/answer", strange)[0] == 400
    for strange in ("all", "0", "1000000"):
        assert site.client.ask("/api/more", {"n": strange})[0] == 400
    assert site.client.ask("/api/undo")[0] == 405
    assert read_journal(site.folder) == []
    status, view = site.client.answer(10**6, "no")
    assert (status, view["error"]) == (409, "Row 1000000 was not drawn.")
    assert row_of(view) == site.rows[0]
    assert site.client.answer(site.rows[0] + 1, "yes")[0] == 200


def test_the_token_becomes_a_cookie_of_the_page_alone(site):
    stranger, token = Client(site.client.port, ""), site.client.token
    refused = ("/", "/label.js", "/style.css", "/label.css", "/?token=wrong")
    for path in (*refused, f"/label.js?token={token}"):
        assert stranger.ask(path)[0] == 403
    status, headers, _ = stranger.ask(f"/?token={token}", sec_fetch_site="cross-site")
    assert status == 200
    assert headers["set-cookie"].lower().endswith("httponly; path=/; samesite=strict")
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    for path in ("/static/", "/answers.jsonl", "/../answers.jsonl", "/%2e%2e/label.py"):
        assert site.client.ask(path)[0] == 404


@pytest.fixture
def run_label(place, start):
    """Start the command, and return a client with its process."""

    def run(*words):
        process = start("label", "run", "--no-browser", *words, cwd=place)
        for line in process.stderr:
            found = re.search(r"http://127.0.0.1:(\d+)/\?token=(\S+)", line)
            if found:
                break
        return process, Client(int(found[1]), found[2])

    return run


def kill_and_resume(run_label, folder, times, pause):
    """Answer until killed, again and again; return what was acknowledged."""
    told, rng = {}, random.Random(0)
    for _ in range(times):
        process, client = run_label("--budget", "20")
        killer = threading.Timer(pause * rng.random(), process.kill)
        killer.start()
        try:
            while (row := client.get("row")["row"]) is not None:
                word = rng.choice(["yes", "no", "unknown"])
                status, _ = client.answer(row["row"], word)
                assert status == 200
                told[row["row"]] = word
                time.sleep(0.01)
        except (OSError, http.client.HTTPException):
            pass
        process.wait()
        killer.join()
        process.communicate()
        kept = {r.row + 1: r.word for r in read_journal(folder)}
        # The one under way when it was killed may be on disk unacknowledged.
        assert told.items() <= kept.items()
        assert len(kept) <= len(told) + 1
        told = kept
    return told


def test_killed_it_goes_on_and_ctrl_c_tells_the_end(place, run_label):
    told = kill_and_resume(run_label, place / "run", 1, 0.2)
    process, client = run_label()
    view = client.get("row")
    assert view["answered"] == len(told)
    # An audit hides scores.
    assert set(view["row"]) == {"row", "id", "cells"}
    assert sorted(name for name, _ in view["row"]["cells"]) == ["colour", "size"]
    while (row := client.get("row")["row"]) is not None:
        client.answer(row["row"], "no")
    os.kill(process.pid, signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "The answers are in run/answers.jsonl" in said
    assert "hidden positives among" in printed
    kept = json.loads((place / "run" / "audit.json").read_text())
    answers = {each["row"]: each["answer"] for each in kept["answers"]}
    assert told.items() <= answers.items()
    assert len(answers) == 20
    assert (place / "run" / "audit.html").is_file()


@pytest.mark.slow
def test_killed_twenty_times_it_loses_nothing(place, run_label):
    kill_and_resume(run_label, place / "run", 20, 0.3)


def test_likeliest_first_leaves_the_audit_alone(place, run_label, probgap):
    assert probgap("audit", "run", "--budget", "5").exit_code == 0
    drawn = json.loads((place / "run" / "audit.json").read_text())["design"]["rows"]
    process, client = run_label("--mode", "find", "--budget", "4")
    view = client.get("row")
    assert view["mode"] == "find"
    assert view["row"]["score"] > 0
    assert len(view["row"]["similar"]) == 3
    why = [cell[2] for cell in view["row"]["cells"] if len(cell) == 3]
    assert any("of the labelled positives" in each for each in why)
    asked = []
    while view["row"] is not None:
        asked.append(view["row"]["row"])
        view = client.answer(asked[-1], "yes")[1]
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    kept = json.loads((place / "run" / "audit.json").read_text())
    assert [each["row"] for each in kept["others"]] == asked
    assert not set(drawn) & {row - 1 for row in asked}
    assert kept["answers"] == []


REFUSED = [
    ("label nowhere", "a folder that probgap fit wrote"),
    ("label run --host 0.0.0.0", "unless --allow-network is given"),
]


@pytest.mark.parametrize(("words", "part"), REFUSED)
def test_a_bad_request_is_one_sentence(place, probgap, is_one_sentence, words, part):
    result = probgap(*words.split())
    is_one_sentence(result.stderr, part)
    assert result.exit_code == 1
    assert not (place / "run" / JOURNAL).exists()


def test_one_server_at_a_time(place, probgap, is_one_sentence):
    pytest.importorskip("fcntl")
    with Journal(place / "run", alone=True):
        result = probgap("label", "run", "--no-browser")
    is_one_sentence(result.stderr, "Another probgap label is at work")
