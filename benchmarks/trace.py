"""Trace the files that one fit runs through, and how often it changes from one to another.

    python benchmarks/trace.py
    python benchmarks/trace.py --command    # probgap fit, from the CSV file to the report
    python benchmarks/trace.py --files      # with the calls of each file

A profile hook notes every call of a function of probgap during a default fit on a small
table, or during the command on one: which file it is in, and whether the call before was in
the same one. What is loaded once is loaded by a call before. Of the command that first call is
counted, too, with all that runs once: bodies of classes, caches, and functions without a name.
Templates of pages count as files of their own.
"""

import contextlib
import sys
import tempfile
import threading
from itertools import pairwise
from pathlib import Path

import harness
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import probgap

HOME = str(Path(probgap.__file__).parent)
LOADED = ("<module>",)
NO_FUNCTIONS = ("<module>", "<lambda>", "<genexpr>", "<listcomp>")


def trace(task, left_out=NO_FUNCTIONS):
    """Return the file and the name of each function that is called."""
    calls = []

    def note(frame, event, _):
        code = frame.f_code
        ours = code.co_filename.startswith(HOME) and code.co_name not in left_out
        if event == "call" and ours:
            calls.append((code.co_filename[len(HOME) + 1 :], code.co_qualname))

    with harness.quietly():
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            task()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return calls


def describe(calls):
    files = [file for file, _ in calls]
    changes = 1 + sum(a != b for a, b in pairwise(files))
    return f"{len(set(files))} files, {len(set(calls))} functions, {changes} changes of file"


def trace_fit(n_samples):
    from probgap import PGPUClassifier  # noqa: PLC0415 (the command loads it itself)
    from probgap.datasets import hide_labels, make_square  # noqa: PLC0415

    X, y, posterior = make_square(n_samples, random_state=0)
    s = hide_labels(X, y, 2.0 * posterior - 1.0, ("linear", 0.6), random_state=1)
    model = PGPUClassifier(random_state=0)
    model.fit(X, s)
    return trace(lambda: model.fit(X, s))


def trace_command():
    """Trace ``probgap fit`` on breast cancer, half of the positives labelled."""
    from probgap.cli import main as run  # noqa: PLC0415 (needs more libraries)

    frame = load_breast_cancer(as_frame=True).frame
    labelled = (frame.pop("target") == 0) & (np.arange(len(frame)) % 2 == 0)
    frame["found"] = np.where(labelled, "yes", "")

    def task():
        with contextlib.suppress(SystemExit):
            run()

    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(f"{folder}/table.csv", index=False)
        sys.argv = ["probgap", "fit", f"{folder}/table.csv", "--label", "found"]
        sys.argv += ["--out", f"{folder}/results", "--force", "--quiet"]
        print(f"first call: {describe(trace(task, LOADED))}")
        return trace(task)


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--command", action="store_true", help="trace probgap fit")
    parser.add_argument("--files", action="store_true")
    options = harness.parse(parser)
    calls = trace_command() if options.command else trace_fit(options.rows)
    print(describe(calls))
    if options.files:
        print(pd.Series([file for file, _ in calls]).value_counts().to_string())


if __name__ == "__main__":
    main()
