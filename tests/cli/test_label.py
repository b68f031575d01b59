"""The server of probgap label: answers are kept, attacks are refused."""

import http.client
import json
import os
import random
import re
import signal
import threading
import time
from types import SimpleNamespace
from urllib.parse import urlencode

import numpy as np
import pytest

uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")

from probgap.audit import design, estimate
from probgap.cli._journal import FROM_FILE, JOURNAL, Journal, Record, read_journal
from probgap.cli._labelling import LabelSession
from probgap.cli._server import Guard, bind, make_app

TOKEN = "t0ken"


class Client:
    """One window of a browser, as the server sees it."""

    def __init__(self, port, token=TOKEN, tab="a"):
        self.port, self.token, self.tab = port, token, tab

    def ask(self, path, change=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        ours = {"host": f"127.0.0.1:{self.port}", "connection": "close"}
        ours["cookie"] = f"probgap_{self.port}={self.token}"
        method = "GET"
        if change is not None:
            asked = urlencode({"tab": self.tab, **change})
            method, path = "POST", f"{path}?{asked}"
            ours["origin"] = f"http://{ours['host']}"
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {k: v for k, v in (ours | changed).items() if v is not None}
        connection.request(method, path, headers=sent)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, dict(response.getheaders()), content

    def get(self, name):
        return json.loads(self.ask(f"/api/{name}?tab={self.tab}")[2])

    def post(self, name, **change):
        status, _, content = self.ask(f"/api/{name}", change)
        return status, json.loads(content)

    def answer(self, row, word):
        return self.post("answer", row=row, answer=word)


@pytest.fixture
def serve(tmp_path):
    """Serve questions about rows of which the first 40 are positive."""
    running = []

    def start(kind="audit", budget=30, n=300, earlier=None):
        made = design(np.linspace(0.99, 0.01, n), budget=budget, kind=kind)
        journal = Journal(tmp_path)
        session = LabelSession(
            journal,
            made,
            lambda row: {"row": row + 1, "id": None, "cells": [["a", "<b>"]]},
            earlier or {},
            lambda old, more: old.extend(session.answers, more),
        )
        sock = bind("127.0.0.1", 0)
        port = sock.getsockname()[1]
        app = make_app(session, {"table": "t"}, Guard(TOKEN, port, network=False))
        config = uvicorn.Config(app, log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        running.append((server, thread, sock, journal))
        client = Client(port)
        parts = {"port": port, "session": session, "folder": tmp_path, "design": made}
        return SimpleNamespace(client=client, **parts)

    def stop():
        for server, thread, sock, journal in running:
            server.should_exit = True
            thread.join()
            sock.close()
            journal.__exit__()
        running.clear()

    yield SimpleNamespace(start=start, stop=stop)
    stop()


def test_an_answer_is_on_disk_when_the_next_row_comes(serve):
    site = serve.start()
    seen = []
    for word in ("yes", "no", "unknown"):
        row = site.client.get("row")["row"]["row"]
        status, view = site.client.answer(row, word)
        assert status == 200
        last = read_journal(site.folder)[-1]
        assert last == Record(row - 1, word, "audit", "a")
        seen.append(row)
    assert seen == (site.design.rows[:3] + 1).tolist()
    assert (view["answered"], view["yes"], view["no"], view["unknown"]) == (3, 1, 1, 1)


def test_the_estimate_is_that_of_the_audit(serve):
    site = serve.start()
    for row in site.design.rows.tolist():
        assert site.client.answer(row + 1, "yes" if row < 40 else "no")[0] == 200
    found = site.client.get("estimate")
    expected = estimate(site.design, {r: r < 40 for r in site.design.rows.tolist()})
    assert (found["low"], found["high"]) == expected.count_interval
    assert found["headline"] == expected.headline
    assert found["trace"][-1] == [30, found["low"], found["count"], found["high"]]
    view = site.client.get("row")
    assert view["row"] is None
    assert view["more"]
    assert site.client.post("more", n=20)[1]["asked"] == 50
    assert site.client.get("row")["row"] is not None


def test_undo_is_a_record_and_shows_the_row_again(serve):
    site = serve.start()
    row = site.client.get("row")["row"]["row"]
    assert site.client.post("undo")[1]["answered"] == 0
    site.client.answer(row, "yes")
    _, view = site.client.post("undo")
    assert view["row"]["row"] == row
    assert (view["answered"], view["undo"]) == (0, False)
    site.client.answer(row, "no")
    words = [record.word for record in read_journal(site.folder)]
    assert words == ["yes", "undo", "no"]
    assert site.session.answers == {row - 1: False}
    assert site.client.get("estimate")["answers"] == 1


def test_two_people_see_different_rows_and_overwrite_nothing(serve):
    site = serve.start()
    one, two = site.client, Client(site.port, tab="b")
    mine, yours = one.get("row")["row"]["row"], two.get("row")["row"]["row"]
    assert mine != yours
    assert one.answer(mine, "yes")[0] == 200
    status, view = two.answer(mine, "no")
    assert status == 409
    assert "answered elsewhere: yes" in view["error"]
    assert view["row"]["row"] == yours
    assert one.answer(mine, "yes")[0] == 200  # sent again: the reply was lost
    assert len(read_journal(site.folder)) == 1
    # Nobody takes back what another one said.
    assert two.post("undo")[1]["yes"] == 1


def test_many_at_once_lose_nothing(serve):
    site = serve.start(budget=60)

    def work(tab):
        client = Client(site.port, tab=tab)
        view = client.get("row")
        while view["row"] is not None:
            row = view["row"]["row"]
            view = client.answer(row, "yes" if row <= 40 else "no")[1]

    threads = [threading.Thread(target=work, args=(tab,)) for tab in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    truth = {row: row < 40 for row in site.design.rows.tolist()}
    assert site.session.answers == truth
    assert sorted(r.row for r in read_journal(site.folder)) == sorted(truth)


FOREIGN = [
    ({"cookie": None}, 403),
    ({"cookie": "probgap_PORT=wrong"}, 403),
    ({"host": "evil.example:PORT"}, 403),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"sec_fetch_site": "cross-site"}, 403),
]


@pytest.mark.parametrize(("change", "expected"), FOREIGN)
def test_a_foreign_request_is_refused(serve, change, expected):
    site = serve.start()
    change = {k: v and v.replace("PORT", str(site.port)) for k, v in change.items()}
    row = site.client.get("row")["row"]["row"]
    said = {"row": row, "answer": "yes"}
    assert site.client.ask("/api/answer", said, **change)[0] == expected
    status, headers, content = site.client.ask("/api/row?tab=a", **change)
    assert status == expected
    assert b"cells" not in content
    assert "set-cookie" not in headers
    assert read_journal(site.folder) == []


def test_an_answer_needs_an_origin_and_sense(serve):
    site = serve.start()
    said = {"row": int(site.design.rows[0]) + 1, "answer": "yes"}
    assert site.client.ask("/api/answer", said, origin=None)[0] == 403
    for said in ({"row": "one", "answer": "yes"}, {"row": 1, "answer": "maybe"}, {}):
        assert site.client.ask("/api/answer", said)[0] == 400
    assert site.client.ask("/api/answer", {"row": 10**6, "answer": "no"})[0] == 409
    assert site.client.ask("/api/undo")[0] == 405
    assert read_journal(site.folder) == []


def test_the_token_becomes_a_cookie_of_the_page_alone(serve):
    site = serve.start()
    stranger = Client(site.port, token="")
    for path in (
        "/",
        "/label.js",
        "/label.css",
        "/?token=wrong",
        "/label.js?token=t0ken",
    ):
        assert stranger.ask(path)[0] == 403
    status, headers, _ = stranger.ask(f"/?token={TOKEN}", sec_fetch_site="cross-site")
    assert status == 200
    assert headers["set-cookie"].lower().endswith("httponly; path=/; samesite=strict")
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    for path in ("/static/", "/answers.jsonl", "/../answers.jsonl", "/%2e%2e/label.py"):
        assert site.client.ask(path)[0] == 404


def test_a_torn_line_is_passed_over_and_ended(serve, tmp_path):
    whole = {"row": 3, "answer": "no", "mode": "audit", "by": "a"}
    (tmp_path / JOURNAL).write_text(json.dumps(whole) + '\n{"row": 7, "ans')
    first = Record(2, "no", "audit", "a")
    assert read_journal(tmp_path) == [first]
    site = serve.start()
    row = site.client.get("row")["row"]["row"]
    site.client.answer(row, "yes")
    assert read_journal(tmp_path) == [first, None, Record(row - 1, "yes", "audit", "a")]


def test_answers_from_earlier_can_be_undone_but_not_those_of_a_file(serve):
    past = serve.start().design.rows[:12].tolist()
    serve.stop()
    for by in ("b", FROM_FILE):
        earlier = {row: Record(row, "no", "audit", by) for row in past}
        site = serve.start(earlier=earlier)
        view = site.client.get("row")
        assert view["answered"] == 12
        assert view["row"]["row"] == site.design.rows[12] + 1
        trace = site.client.get("estimate")["trace"]
        assert [point[0] for point in trace] == list(range(1, 13))
        assert view["undo"] == (by != FROM_FILE)
        undone = site.client.post("undo")[1]["row"]["row"] == past[-1] + 1
        assert undone == (by != FROM_FILE)
        serve.stop()


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
