"""Trace the files that one fit runs through, and how often it changes from one to another.

    python benchmarks/trace.py
    python benchmarks/trace.py --files      # with the calls of each file

A profile hook notes every call of a function of probgap during a default fit on a small
table: which file it is in, and whether the call before was in the same one. A reader who
follows a row of data from ``fit`` to the end opens these files in this order.
"""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import probgap
from probgap import PGPUClassifier
from probgap.datasets import hide_labels, make_square

HOME = str(Path(probgap.__file__).parent)


class Trace:
    """Counts calls by file, functions, and changes of file."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.functions: set[tuple[str, str]] = set()
        self.changes = 0
        self._last = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call."""
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(HOME):
            return
        if frame.f_code.co_name in ("<module>", "<lambda>", "<genexpr>", "<listcomp>"):
            return
        file = name[len(HOME) + 1 :]
        self.calls[file] += 1
        self.functions.add((file, frame.f_code.co_qualname))
        self.changes += file != self._last
        self._last = file


def trace_fit(n_samples: int) -> Trace:
    X, y, posterior = make_square(n_samples, random_state=0)
    s = hide_labels(X, y, 2.0 * posterior - 1.0, ("linear", 0.6), random_state=1)
    model = PGPUClassifier(random_state=0)
    model.fit(X, s)  # loads what is loaded once
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        model.fit(X, s)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return trace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    trace = trace_fit(options.rows)
    print(
        f"{len(trace.calls)} files, {len(trace.functions)} functions, "
        f"{trace.changes} changes of file"
    )
    if options.files:
        for file, calls in trace.calls.most_common():
            print(f"{calls:7,} {file}")


if __name__ == "__main__":
    main()
