"""Try probgap label in Chromium: answers by keyboard, kills, two tabs, attacks, latency.

    python benchmarks/label.py                  # some minutes; 100,000 rows for the latency
    python benchmarks/label.py --quick          # fewer of everything

The true answer follows from the number of a row, so that each answer on disk can be
compared with it. Lost are answers that the page had acknowledged and the journal lacks;
wrong are those that differ. Latency lasts from the key until the next row is drawn.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Error, sync_playwright

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
KEYS = {"yes": "y", "no": "n", "unknown": "?"}
PROBGAP = [sys.executable, "-m", "probgap"]
# Presses a key, and returns the milliseconds until the next row is there.
PRESS = """async (key) => {
  while (busy) await new Promise((go) => setTimeout(go, 1));
  const started = performance.now(), before = view.answered;
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  while (view.answered === before || busy) await new Promise((go) => setTimeout(go, 1));
  document.body.getBoundingClientRect();
  return performance.now() - started;
}"""


def truth(row):
    """Return the answer to a row, by its number from 1."""
    return ("yes", "no", "no", "unknown")[row % 4]


def make_folder(parent, n_rows):
    """Fit a table with hostile cells and addresses of pictures."""
    rng, folder = np.random.default_rng(0), Path(parent, f"results_{n_rows}")
    positive = rng.random(n_rows) < 0.3
    table = pd.DataFrame(rng.normal(size=(n_rows, 6)) + 1.5 * positive[:, None])
    table.columns = [f"measure {j}" for j in range(6)]
    table["remark"], table["picture"] = HOSTILE, "http://example.org/a.png"
    table["found"] = np.where(positive & (rng.random(n_rows) < 0.4), "yes", "")
    path = Path(parent, f"table_{n_rows}.csv")
    table.to_csv(path, index=False)
    words = ["fit", str(path), "--label", "found", "--out", str(folder), "--fast"]
    subprocess.run([*PROBGAP, *words, "--quiet"], check=True)
    return folder


class Server:
    """A running ``probgap label``."""

    def __init__(self, folder, *words):
        self.folder = folder
        command = [*PROBGAP, "label", str(folder), "--no-browser", *words]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, **pipes)
        for line in self.process.stderr:
            found = re.search(r"http://127.0.0.1:(\d+)/\?token=(\S+)", line)
            if found:
                self.url, self.port, self.token = found[0], int(found[1]), found[2]
                return
        msg = "probgap label did not start."
        raise RuntimeError(msg)

    def stop(self, how=signal.SIGINT):
        """End the process, and read its last words."""
        self.process.send_signal(how)
        self.process.communicate()

    def journal(self):
        """Return the last answer to each row."""
        path, last = self.folder / "answers.jsonl", {}
        for line in path.read_bytes().split(b"\n")[:-1]:
            record = json.loads(line)
            last[record["row"]] = record["answer"]
        return {row: word for row, word in last.items() if word != "undo"}


def open_page(browser, server):
    """Open the page in a window of its own."""
    page = browser.new_context().new_page()
    page.alarms = []
    page.on("dialog", lambda dialog: (page.alarms.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: page.alarms.append(request.url))
    page.goto(server.url)
    page.wait_for_selector("#cells dd")
    return page


def answer(page, n, told, times=None):
    """Answer n rows by keys; ``told`` has what the page acknowledged."""
    for _ in range(n):
        row = page.evaluate("view.row && view.row.row")
        if row is None:
            return
        took = page.evaluate(PRESS, KEYS[truth(row)])
        told[row] = truth(row)
        if times is not None:
            times.append(took)


def tally(server, told):
    """Return how many answers are kept, lost and wrong."""
    kept = server.journal()
    lost = sum(kept.get(row) != word for row, word in told.items())
    wrong = sum(word != truth(row) for row, word in kept.items())
    return f"{len(kept)} kept, {lost} lost, {wrong} wrong"


def try_keyboard(browser, folder, n):
    """Answer by real key presses, some of them slips that are taken back."""
    server, told = Server(folder, "--budget", str(n + 10)), {}
    page = open_page(browser, server)
    for turn in range(n):
        keys = ["n", "z"] if turn % 10 == 7 else []
        row = page.evaluate("view.row.row")
        for key in [*keys, KEYS[truth(row)]]:
            before = page.evaluate("view.answered")
            page.keyboard.press(key)
            page.wait_for_function(
                "before => view.answered !== before && !busy", arg=before
            )
        told[row] = truth(row)
    own = f"http://127.0.0.1:{server.port}/"
    foreign = [a for a in page.alarms if not a.startswith((own, "data:"))]
    print(f"keyboard, {n} answers, a slip in ten undone: {tally(server, told)}")
    print(f"hostile cells: {len(foreign)} dialogs or foreign requests")
    server.stop()


def try_kills(browser, folder, times):
    """Kill the server while a page answers, again and again."""
    rng, told, server = random.Random(0), {}, None
    for _ in range(times):
        server = Server(folder, "--budget", "2000")
        page = open_page(browser, server)
        killer = threading.Timer(1.5 * rng.random(), server.process.kill)
        killer.start()
        page.set_default_timeout(2000)
        while server.process.poll() is None:
            row = page.evaluate("view.row.row")
            page.keyboard.press(KEYS[truth(row)])
            try:
                page.wait_for_function(
                    "row => !busy && view.row.row !== row", arg=row, timeout=1000
                )
            except Error:
                break  # not acknowledged
            told[row] = truth(row)
        killer.join()
        server.process.communicate()
        page.context.close()
    print(f"killed {times} times at random moments: {tally(server, told)}", flush=True)


def try_many(browser, folder, n):
    """Answer many rows in two tabs by turns."""
    server, told = Server(folder, "--budget", "2000"), {}
    pages = [open_page(browser, server) for _ in "ab"]
    while len(told) < n:
        for page in pages:
            answer(page, 5, told)
    print(f"two tabs, {n} more answers: {tally(server, told)}")
    server.stop()


def try_attacks(folder):
    """Send requests that must be refused."""
    server = Server(folder)
    own = f"127.0.0.1:{server.port}"
    cookie = f"probgap_{server.port}={server.token}"
    good = {"Host": own, "Cookie": cookie, "Origin": f"http://{own}"}
    changes = {
        "no token": {"Cookie": None},
        "wrong token": {"Cookie": cookie[:-1]},
        "foreign Host": {"Host": f"evil.example:{server.port}"},
        "Host without port": {"Host": "127.0.0.1"},
        "foreign Origin": {"Origin": "http://evil.example"},
        "no Origin": {"Origin": None},
        "null Origin": {"Origin": "null"},
        "another site": {"Sec-Fetch-Site": "cross-site"},
    }
    before, refused = server.journal(), []
    for name, change in changes.items():
        headers = {k: v for k, v in (good | change).items() if v is not None}
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        path = "/api/answer?tab=x&row=1&answer=yes"
        connection.request("POST", path, headers=headers)
        if connection.getresponse().status == 403:
            refused.append(name)
    print(f"attacks: {len(refused)} of {len(changes)} refused", end="; ")
    print("nothing written" if server.journal() == before else "SOMETHING WRITTEN")
    server.stop()


def measure_latency(browser, folder, n):
    """Measure one answer after the other."""
    server, times = Server(folder, "--budget", str(n)), []
    page = open_page(browser, server)
    answer(page, n, {}, times)
    print(
        f"latency of {len(times)} answers in {folder.name}: median "
        f"{statistics.median(times):.0f} ms, worst {max(times):.0f} ms"
    )
    server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only-latency", action="store_true")
    given = parser.parse_args()
    kills, many, timed = (3, 60, 20) if given.quick else (20, 1000, 100)
    with tempfile.TemporaryDirectory() as parent, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        if not given.only_latency:
            small = make_folder(parent, 3000)
            try_keyboard(browser, small, 10 if given.quick else 50)
            try_attacks(small)
            try_kills(browser, small, kills)
            try_many(browser, small, many)
        large = make_folder(parent, 3000 if given.quick else given.rows)
        measure_latency(browser, large, timed)
        browser.close()


if __name__ == "__main__":
    main()
