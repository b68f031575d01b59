"""Time ``import probgap`` against ``import sklearn.svm``, and commands that refuse bad input.

    python benchmarks/imports.py
    python benchmarks/imports.py --rounds 30

CPU seconds of a fresh interpreter, the best of many rounds; of imports, less those of an empty
one. ``import probgap`` loads its parts when they are asked for; what a user waits for in the end
is ``from probgap import PGPUClassifier``, which loads them. A command that cannot do what it is
asked for refuses before it loads scikit-learn.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

STATEMENTS = (
    "pass",
    "import sklearn.svm",
    "import probgap",
    "from probgap import PGPUClassifier",
)
COMMANDS = (
    "--help",
    "fit t.csv --label nope --out out",
    "fit nowhere.csv --label found --out out",
    "fit t.csv --label found --positive ja --out out",
    "fit t.csv --label found --out out --class-prior 7",
    "fit t.csv --label found --out out --seed x",
    "compare t.csv --label nope",
    "predict nowhere t.csv",
    "explain nowhere",
)


def cpu_seconds(*words, folder):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    before = os.times()
    subprocess.run(
        [sys.executable, *words],
        check=False,
        capture_output=True,
        cwd=folder,
        env=environment,
    )
    after = os.times()
    return (
        after.children_user
        - before.children_user
        + after.children_system
        - before.children_system
    )


def best_times(rounds, folder):
    (folder / "t.csv").write_text("a,b,found\n1,2,yes\n2,3,\n3,1,yes\n4,4,\n")
    words = {statement: ("-c", statement) for statement in STATEMENTS}
    words |= {command: ("-m", "probgap", *command.split(" ")) for command in COMMANDS}
    seconds = dict.fromkeys(words, float("inf"))
    for _ in range(rounds):
        for name in words:
            taken = cpu_seconds(*words[name], folder=folder)
            seconds[name] = min(seconds[name], taken)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds = best_times(arguments.rounds, Path(folder))
    empty, peer, *_ = seconds.values()
    for statement in STATEMENTS[1:]:
        own = seconds[statement] - empty
        print(f"{statement:36s} {own:6.3f} s  {own / (peer - empty):5.2f} x")
    for command in COMMANDS:
        print(f"probgap {command:52s} {seconds[command]:6.3f} s")


if __name__ == "__main__":
    main()
