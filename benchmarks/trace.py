"""Trace the files that one fit runs through, and how often it changes from one to another.

    python benchmarks/trace.py
    python benchmarks/trace.py --command    # probgap fit, from the CSV file to the report
    python benchmarks/trace.py --files      # with the calls of each file

A profile hook notes every call of a function of probgap during a default fit on a small
table, or during the command on one: which file it is in, and whether the call before was in
the same one. A reader who follows a row of data from ``fit`` to the end opens these files in
this order. What is loaded once is loaded by a call before. Of the command that first call is
counted, too, with all that runs once: bodies of classes, caches, and functions without a name.
Templates of pages count as files of their own.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import harness
import numpy as np
from sklearn.datasets import load_breast_cancer

import probgap

HOME = str(Path(probgap.__file__).parent)
LOADED = ("<module>",)
NO_FUNCTIONS = ("<module>", "<lambda>", "<genexpr>", "<listcomp>")


class Trace:
    """Counts calls by file, functions, and changes of file."""

    def __init__(self, left_out=NO_FUNCTIONS):
        self.left_out = left_out
        self.calls = Counter()
        self.functions = set()
        self.changes = 0
        self._last = ""

    def __str__(self):
        """Return the counts."""
        return (
            f"{len(self.calls)} files, {len(self.functions)} functions, "
            f"{self.changes} changes of file"
        )

    def __call__(self, frame, event, _):
        """Note a call."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(HOME):
            return
        if code.co_name in self.left_out:
            return
        file = code.co_filename[len(HOME) + 1 :]
        self.calls[file] += 1
        self.functions.add((file, code.co_qualname))
        self.changes += file != self._last
        self._last = file


def trace(task, found):
    with harness.quietly():
        threading.setprofile(found)
        sys.setprofile(found)
        try:
            task()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return found


def trace_fit(n_samples):
    from probgap import PGPUClassifier  # noqa: PLC0415 (the command loads it itself)
    from probgap.datasets import hide_labels, make_square  # noqa: PLC0415

    X, y, posterior = make_square(n_samples, random_state=0)
    s = hide_labels(X, y, 2.0 * posterior - 1.0, ("linear", 0.6), random_state=1)
    model = PGPUClassifier(random_state=0)
    model.fit(X, s)
    return trace(lambda: model.fit(X, s), Trace())


def trace_command():
    """Trace ``probgap fit`` on breast cancer, half of the positives labelled."""
    from probgap.cli import main as run  # noqa: PLC0415 (needs more libraries)

    frame = load_breast_cancer(as_frame=True).frame
    labelled = (frame.pop("target") == 0) & (np.arange(len(frame)) % 2 == 0)
    frame["found"] = np.where(labelled, "yes", "")
    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(Path(folder, "table.csv"), index=False)
        sys.argv = ["probgap", "fit", f"{folder}/table.csv", "--label", "found"]
        sys.argv += ["--out", f"{folder}/results", "--force", "--quiet"]

        def task():
            with contextlib.suppress(SystemExit):
                run()

        print(f"first call: {trace(task, Trace(LOADED))}")
        return trace(task, Trace())


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--command", action="store_true", help="trace probgap fit")
    parser.add_argument("--files", action="store_true")
    options = harness.parse(parser)
    found = trace_command() if options.command else trace_fit(options.rows)
    print(found)
    for file, calls in found.calls.most_common() if options.files else ():
        print(f"{calls:7,} {file}")


if __name__ == "__main__":
    main()
