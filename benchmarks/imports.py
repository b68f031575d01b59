"""Time ``import probgap`` against ``import sklearn.svm``.

    python benchmarks/imports.py
    python benchmarks/imports.py --rounds 30

CPU seconds of a fresh interpreter, less those of an empty one, in turn, the best of many
rounds. ``import probgap`` loads its parts when they are asked for; what a user waits for in
the end is ``from probgap import PGPUClassifier``, which loads them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

STATEMENTS = (
    "pass",
    "import sklearn.svm",
    "import probgap",
    "from probgap import PGPUClassifier",
)


def cpu_seconds(statement):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    before = os.times()
    subprocess.run([sys.executable, "-c", statement], check=True, env=environment)
    after = os.times()
    return (
        after.children_user
        - before.children_user
        + after.children_system
        - before.children_system
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    seconds = dict.fromkeys(STATEMENTS, float("inf"))
    for _ in range(arguments.rounds):
        for statement in STATEMENTS:
            seconds[statement] = min(seconds[statement], cpu_seconds(statement))
    empty, peer, *_ = seconds.values()
    for statement in STATEMENTS[1:]:
        own = seconds[statement] - empty
        print(f"{statement:36s} {own:6.3f} s  {own / (peer - empty):5.2f} x")


if __name__ == "__main__":
    main()
